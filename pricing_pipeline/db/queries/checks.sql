-- name: gaps
-- Of daily types: trading days between the first and the last value of each symbol in the last year, and by kind how
-- many lack one. Days between a past that somebody chose to backfill and the last year's first value do not count.
WITH pairs AS MATERIALIZED (
    SELECT r.data_type, i.symbol, c.calendar, c.sessions_to < (n.at AT TIME ZONE 'UTC')::date AS has_ended,
           e.first_on, e.last_on
    FROM (SELECT pricing.clock() AS at) n
    CROSS JOIN pricing.data_type_registry r
    JOIN pricing.instruments i USING (asset_class)
    LEFT JOIN pricing.calendars c ON c.calendar = i.calendar AND c.sessions_from IS NOT NULL
    CROSS JOIN LATERAL (SELECT x.observed_at FROM pricing.price_history x
                        WHERE x.data_type = r.data_type AND x.symbol = i.symbol
                        ORDER BY x.observed_at DESC LIMIT 1) newest
    CROSS JOIN LATERAL (SELECT x.observed_at FROM pricing.price_history x
                        WHERE x.data_type = r.data_type AND x.symbol = i.symbol
                          AND x.observed_at > n.at - interval '365 days'
                        ORDER BY x.observed_at LIMIT 1) oldest
    CROSS JOIN LATERAL (SELECT (oldest.observed_at AT TIME ZONE 'UTC')::date AS first_on,
                               (newest.observed_at AT TIME ZONE 'UTC')::date AS last_on) e
    WHERE r.data_type = ANY (CAST(:data_types AS text[])) AND pricing.is_daily(r.fetcher)),
-- Only symbols that lack something are worth asking pricing.gaps about. Days and values are grouped, not joined:
-- whatever the statistics say, that reads each once.
counted AS MATERIALIZED (
    SELECT p.*, x.expected, x.lacking
    FROM pairs p
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE d.is_open) AS expected,
               count(*) FILTER (WHERE d.is_open AND NOT d.is_stored) AS lacking
        FROM (SELECT u.at, bool_or(u.is_open) AS is_open, bool_or(NOT u.is_open) AS is_stored
              FROM (SELECT s.session::timestamp AT TIME ZONE 'UTC' AS at, true AS is_open
                    FROM pricing.calendar_sessions s
                    WHERE s.calendar = p.calendar AND s.session BETWEEN p.first_on AND p.last_on
                    UNION ALL
                    SELECT y.observed_at, false FROM pricing.price_history y
                    WHERE y.data_type = p.data_type AND y.symbol = p.symbol
                      AND y.observed_at >= p.first_on::timestamp AT TIME ZONE 'UTC') u
              GROUP BY 1) d) x),
found AS MATERIALIZED (
    SELECT c.data_type, c.symbol, g.* FROM counted c
    CROSS JOIN LATERAL pricing.gaps(c.data_type, c.symbol, c.first_on, c.last_on) g
    WHERE c.lacking > 0)
SELECT r.data_type, coalesce(a.symbols, 0) AS symbols, coalesce(a.unknown, 0) AS without_calendar,
       coalesce(a.ended, 0) AS calendar_ended, coalesce(a.expected, 0) AS expected,
       (SELECT jsonb_object_agg(k.kind, k.sessions)
        FROM (SELECT f.kind, sum(f.sessions) AS sessions FROM found f
              WHERE f.data_type = r.data_type
              GROUP BY 1) k) AS sessions,
       (SELECT count(*)
        FROM (SELECT p.calendar, min(p.first_on) AS first_on, max(p.last_on) AS last_on FROM pairs p
              WHERE p.data_type = r.data_type AND p.calendar IS NOT NULL
              GROUP BY 1) k
        CROSS JOIN LATERAL pricing.closed_days(k.calendar, k.first_on, k.last_on)) AS closed_days,
       (SELECT count(DISTINCT f.symbol) FROM found f
        WHERE f.data_type = r.data_type AND f.kind IN ('not_asked', 'failed')) AS lacking,
       (SELECT jsonb_agg(to_jsonb(f) - 'data_type')
        FROM (SELECT f.* FROM found f WHERE f.data_type = r.data_type AND f.kind <> 'queued'
              ORDER BY f.kind IN ('not_asked', 'failed') DESC, f.last_day DESC, f.symbol LIMIT 8) f) AS examples
FROM pricing.data_type_registry r
LEFT JOIN (SELECT c.data_type, count(c.calendar) AS symbols, count(*) - count(c.calendar) AS unknown,
                  count(*) FILTER (WHERE c.has_ended) AS ended, sum(c.expected)::bigint AS expected
           FROM counted c GROUP BY 1) a USING (data_type)
WHERE r.data_type = ANY (CAST(:data_types AS text[])) AND pricing.is_daily(r.fetcher)
ORDER BY 1;

-- name: outliers
-- Values that wait for a person, by data type: how many, of how many symbols, since when, and the kinds; and steps of
-- the last year's daily prices that look like a split that no source has reported, and its payments that no total
-- return can count.
SELECT r.data_type, count(q.value_id) AS quarantined, count(DISTINCT q.symbol) AS symbols, min(q.recorded_at) AS oldest,
       (array_agg(DISTINCT q.kind ORDER BY q.kind) FILTER (WHERE q.kind IS NOT NULL)) AS kinds,
       (SELECT count(*) FROM pricing.latest_prices l WHERE l.data_type = r.data_type)
         + (SELECT count(*) FROM pricing.confirmed_pairs l WHERE l.data_type = r.data_type) AS priced,
       (SELECT array_agg(pg_catalog.format('%s %s %s:%s', i.symbol, u.ex_on, u.new_shares, u.old_shares)
                         ORDER BY u.ex_on DESC, i.symbol)
        FROM (SELECT (pricing.clock() AT TIME ZONE 'UTC')::date AS today) n
        CROSS JOIN pricing.instruments i
        CROSS JOIN LATERAL pricing.unreported_splits(r.data_type, i.symbol, n.today - 365, n.today) u
        WHERE i.asset_class = r.asset_class AND r.fetcher = 'daily_bars') AS unreported_splits,
       (SELECT array_agg(pg_catalog.format('%s %s %s/%s', c.symbol, c.ex_on, c.currency, price.currency)
                         ORDER BY c.ex_on DESC, c.symbol)
        FROM (SELECT (pricing.clock() AT TIME ZONE 'UTC')::date AS today) n
        JOIN pricing.corporate_actions c ON c.asset_class = r.asset_class
            AND c.amount IS NOT NULL
            AND c.ex_on BETWEEN n.today - 365 AND n.today
        CROSS JOIN LATERAL pricing.close_before(r.data_type, c.symbol, c.ex_on, NULL, '{}') price
        WHERE pricing.is_daily(r.fetcher) AND c.currency <> price.currency
          AND pricing.rate_of_day(c.currency, price.currency, c.ex_on) IS NULL
          AND NOT EXISTS (SELECT FROM pricing.sources_of_rates(c.currency, price.currency) s
                          WHERE pricing.has_moved(s.data_type, s.symbol, c.ex_on))) AS without_rate
FROM pricing.data_type_registry r
LEFT JOIN pricing.quarantined_values q ON q.data_type = r.data_type AND q.status = 'quarantined'
WHERE r.data_type = ANY (CAST(:data_types AS text[]))
GROUP BY 1
ORDER BY 1;

-- name: agreement
-- By data type, how far two providers are apart about one instrument: latest prices within 36 hours of each other, in
-- whatever data types, and what second providers said in the last week about values that wait for a person.
WITH said AS MATERIALIZED (
    SELECT l.data_type, l.symbol, l.provider, o.provider AS other_provider, x.ours, x.theirs,
           greatest(x.ours, x.theirs) / least(x.ours, x.theirs) AS ratio
    FROM pricing.data_type_registry r
    JOIN pricing.latest_prices l USING (data_type)
    JOIN pricing.data_type_registry k ON k.asset_class = r.asset_class AND k.data_type <> r.data_type
    JOIN pricing.latest_prices o ON (o.data_type, o.symbol) = (k.data_type, l.symbol)
    CROSS JOIN LATERAL (SELECT l.amount * ('1e-' || l.scale)::numeric AS ours,
                               o.amount * ('1e-' || o.scale)::numeric AS theirs) x
    WHERE r.data_type = ANY (CAST(:data_types AS text[])) AND l.provider <> o.provider
      AND l.amount > 0 AND o.amount > 0
      AND l.currency IS NOT DISTINCT FROM o.currency
      AND l.observed_at BETWEEN o.observed_at - interval '36 hours' AND o.observed_at + interval '36 hours'
    UNION ALL
    SELECT q.data_type, q.symbol, q.provider, o.provider, (q.bar ->> 'close')::numeric, o.value,
           greatest(o.ratio, 1 / o.ratio)
    FROM (SELECT pricing.clock() AS at) n
    JOIN pricing.second_opinions o ON o.ratio IS NOT NULL AND o.answered_at > n.at - interval '7 days'
    JOIN pricing.quarantined_values q USING (value_id)
    WHERE q.data_type = ANY (CAST(:data_types AS text[])) AND q.status = 'quarantined'),
-- Each instrument once, with what is furthest apart.
worst AS (
    SELECT DISTINCT ON (s.data_type, s.symbol) s.* FROM said s ORDER BY s.data_type, s.symbol, s.ratio DESC)
SELECT r.data_type, count(p.symbol) AS compared, count(*) FILTER (WHERE p.ratio > 1.1) AS apart,
       max(p.ratio)::float8 AS worst,
       (array_agg(pg_catalog.format('%s: %s %s, %s %s', p.symbol, p.ours, p.provider, p.theirs, p.other_provider)
                  ORDER BY p.ratio DESC, p.symbol) FILTER (WHERE p.ratio > 1.1))[1:5] AS examples
FROM pricing.data_type_registry r LEFT JOIN worst p USING (data_type)
WHERE r.data_type = ANY (CAST(:data_types AS text[]))
GROUP BY 1
ORDER BY 1;

-- name: revisions
-- Of daily types: values of the last year that were revised in the last 30 days, among all values of the year.
SELECT k.data_type, coalesce(v.stored, 0) AS stored, coalesce(c.revised, 0) AS revised,
       coalesce(c.symbols, 0) AS symbols, c.examples
FROM (SELECT pricing.clock() AS at) n
CROSS JOIN pricing.data_type_registry k
LEFT JOIN LATERAL (
    SELECT count(*) AS revised, count(DISTINCT x.symbol) AS symbols,
           (array_agg(DISTINCT x.symbol || ' ' || to_char(x.observed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')))[1:5]
               AS examples
    FROM pricing.price_revisions x
    WHERE x.data_type = k.data_type
      AND x.revised_at > n.at - interval '30 days'
      AND x.observed_at > n.at - interval '365 days') c ON true
LEFT JOIN LATERAL (
    SELECT sum(h.found)::bigint AS stored
    FROM pricing.instruments i
    CROSS JOIN LATERAL (
        SELECT count(*) AS found FROM pricing.price_history x
        WHERE x.data_type = k.data_type AND x.symbol = i.symbol
          AND x.observed_at > n.at - interval '365 days' OFFSET 0) h
    WHERE i.asset_class = k.asset_class) v ON true
WHERE k.data_type = ANY (CAST(:data_types AS text[])) AND pricing.is_daily(k.fetcher)
ORDER BY 1;

-- name: fetched_types
-- Those of some data types for which anything was ever fetched, quarantined values included.
SELECT r.data_type FROM pricing.data_type_registry r
WHERE r.data_type = ANY (CAST(:data_types AS text[]))
  AND (EXISTS (SELECT FROM pricing.latest_answers l WHERE l.data_type = r.data_type)
       OR EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = r.data_type)
       OR EXISTS (SELECT FROM pricing.quarantined_values q WHERE q.data_type = r.data_type));

-- name: freshness_samples
-- How a data type served its viewers over the last day, oldest first; at most 288.
SELECT s.at, s.watched, s.fresh, s.late
FROM (SELECT pricing.clock() AS at) n
JOIN pricing.freshness_samples s ON s.data_type = :data_type AND s.at > n.at - interval '24 hours' AND s.at <= n.at
ORDER BY s.at;

-- name: plot_series
-- The pair of a type that most watch, of the others the first: its values of the last year, and which were revised.
WITH chosen AS (
    SELECT l.symbol FROM pricing.latest_prices l
    LEFT JOIN (SELECT a.symbol, count(*) AS viewers FROM pricing.active_subscriptions a
               WHERE a.data_type = :data_type
               GROUP BY 1) w USING (symbol)
    WHERE l.data_type = :data_type
    ORDER BY w.viewers DESC NULLS LAST, l.symbol LIMIT 1)
SELECT c.symbol, h.observed_at, h.amount, h.scale, h.currency,
       EXISTS (SELECT FROM pricing.price_revisions v
               WHERE v.data_type = :data_type AND v.symbol = c.symbol
                 AND v.observed_at = h.observed_at) AS is_revised
FROM (SELECT pricing.clock() AS at) n CROSS JOIN chosen c
JOIN LATERAL (SELECT x.observed_at, x.amount, x.scale, x.currency FROM pricing.price_history x
              WHERE x.data_type = :data_type AND x.symbol = c.symbol AND x.observed_at > n.at - interval '365 days'
              ORDER BY x.observed_at DESC LIMIT 2000) h ON true
ORDER BY h.observed_at;

-- name: plot_gaps
-- Trading days that a symbol of a daily type lacks between two days; one row without days when it lacks none, and none
-- where its calendar is not known.
SELECT g.first_day, g.last_day FROM pricing.data_type_registry r
JOIN pricing.instruments i ON i.asset_class = r.asset_class AND i.symbol = :symbol
JOIN pricing.calendars c ON c.calendar = i.calendar AND c.sessions_from IS NOT NULL
LEFT JOIN LATERAL pricing.gaps(r.data_type, i.symbol, CAST(:first_day AS date), CAST(:last_day AS date)) g ON true
WHERE r.data_type = :data_type AND pricing.is_daily(r.fetcher)
ORDER BY 1;

-- name: month_rows
-- Rows of a price type in some UTC months, by their first days; nothing if that is too much to count.
WITH wanted AS MATERIALIZED (SELECT w.month FROM unnest(CAST(:months AS date[])) AS w (month)),
seen AS MATERIALIZED (
    SELECT h.observed_at
    FROM pricing.data_type_registry r
    JOIN pricing.instruments i USING (asset_class)
    CROSS JOIN LATERAL (
        SELECT x.observed_at FROM pricing.price_history x
        WHERE x.data_type = r.data_type AND x.symbol = i.symbol
          AND x.observed_at >= (SELECT min(w.month) FROM wanted w)::timestamp AT TIME ZONE 'UTC'
          AND x.observed_at < ((SELECT max(w.month) FROM wanted w) + interval '1 month') AT TIME ZONE 'UTC'
        OFFSET 0) h
    WHERE r.data_type = :data_type AND r.contents = 'prices'
    LIMIT :at_most + 1)
SELECT w.month, count(s.observed_at) AS rows FROM wanted w
LEFT JOIN seen s ON (date_trunc('month', s.observed_at, 'UTC') AT TIME ZONE 'UTC')::date = w.month
WHERE (SELECT count(*) FROM seen) BETWEEN 1 AND :at_most
GROUP BY 1;

-- name: total_rows
-- Rows of the history of a type, or its documents, counted up to one more than a bound.
SELECT count(*)
FROM (SELECT FROM pricing.price_history h WHERE h.data_type = :data_type
      UNION ALL
      SELECT FROM pricing.documents d WHERE d.data_type = :data_type
      LIMIT :at_most + 1) t;

-- name: lacking
-- Of UTC months of a type, by their first days: how many of its instruments lack days that can be fetched by now, and
-- of how many. A type without history has no gaps.
WITH kind AS (
    SELECT r.data_type, r.history_from, (pricing.clock() AT TIME ZONE 'UTC')::date - 1 AS yesterday
    FROM pricing.data_type_registry r
    WHERE r.data_type = :data_type AND r.history_from IS NOT NULL),
wanted AS MATERIALIZED (
    SELECT w.month, (w.month + interval '1 month')::date - 1 AS ends
    FROM unnest(CAST(:months AS date[])) AS w (month)),
open AS MATERIALIZED (
    SELECT m.symbol, m.first_day, m.last_day
    FROM kind k
    CROSS JOIN LATERAL pricing.missing_windows(
        k.data_type, greatest((SELECT min(w.month) FROM wanted w), k.history_from),
        least((SELECT max(w.ends) FROM wanted w), k.yesterday)) m
    UNION ALL
    SELECT q.symbol, q.window_start, q.window_end FROM kind k JOIN pricing.api_call_queue_live q USING (data_type)
    WHERE q.window_end <> 'infinity')
SELECT w.month,
       (SELECT count(DISTINCT o.symbol) FROM open o WHERE o.first_day <= w.ends AND o.last_day >= w.month) AS lacking,
       (SELECT count(*) FROM pricing.universe u
        WHERE u.data_type = :data_type AND u.left_out IS NULL) AS instruments
FROM wanted w;
