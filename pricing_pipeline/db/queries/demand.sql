-- name: served_slots
-- Up to which slot each active scheduled type is served.
SELECT w.data_type, w.served_slot
FROM pricing.schedule_walks w JOIN pricing.data_type_registry r USING (data_type)
WHERE r.is_active AND r.refresh_strategy = 'scheduled';

-- name: note_next_slot
-- The first slot after the served one.
UPDATE pricing.schedule_walks w SET next_slot = CAST(:slot AS timestamptz)
FROM (SELECT x.data_type FROM pricing.schedule_walks x WHERE x.data_type = :data_type FOR UPDATE SKIP LOCKED) mine
WHERE w.data_type = mine.data_type AND w.next_slot IS DISTINCT FROM CAST(:slot AS timestamptz);

-- name: instruments
-- Instruments by name, of one class or all, of some symbols or all.
SELECT i.asset_class, i.symbol, i.name, i.currency, i.verified_at,
       CASE WHEN NOT i.is_active THEN 'retired'
            WHEN i.update_mode <> 'api' THEN 'paused'
            WHEN i.verified_at IS NULL THEN 'unverified'
            ELSE 'active' END AS state,
       (SELECT count(DISTINCT a.user_id)
        FROM pricing.active_subscriptions a JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.asset_class = i.asset_class AND a.symbol = i.symbol) AS viewers,
       (SELECT count(DISTINCT h.user_id)
        FROM pricing.holdings h JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.asset_class = i.asset_class AND h.active_symbol = i.symbol) AS holders
FROM pricing.instruments i
WHERE (CAST(:asset_class AS text) IS NULL OR i.asset_class = :asset_class)
  AND (CAST(:symbols AS text[]) IS NULL OR i.symbol = ANY (CAST(:symbols AS text[])))
  AND (CAST(:after_class AS text) IS NULL
       OR (i.asset_class, i.symbol) > (CAST(:after_class AS text), CAST(:after_symbol AS text)))
ORDER BY i.asset_class, i.symbol LIMIT :at_most;

-- name: is_instrument
-- Whether a class has an instrument of this symbol, also a paused or retired one.
SELECT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (:asset_class, :symbol));

-- name: spelled
-- Symbols of one data type as their instruments are spelled.
SELECT pricing.spelled(array_fill(CAST(:data_type AS text), ARRAY[cardinality(CAST(:symbols AS text[]))]),
                       CAST(:symbols AS text[]));

-- name: spelled_anywhere
-- Symbols as their instruments are spelled, in any class.
SELECT array_agg(pricing.spelled(u.symbol) ORDER BY u.place)
FROM unnest(CAST(:symbols AS text[])) WITH ORDINALITY AS u (symbol, place);

-- name: freshness
-- For each active type, or those named: how many watched pairs are in each state, and when the oldest was fetched.
SELECT r.data_type, r.default_ttl_minutes, count(w.state) AS watched, count(w.fetched_at) AS confirmed,
       count(*) FILTER (WHERE w.state = 'fresh') AS fresh,
       count(*) FILTER (WHERE w.state = 'due') AS due,
       count(*) FILTER (WHERE w.state = 'late') AS late,
       count(*) FILTER (WHERE w.state = 'refused') AS refused,
       count(*) FILTER (WHERE w.state = 'paused') AS paused,
       count(*) FILTER (WHERE w.state = 'source_old') AS source_old,
       count(*) FILTER (WHERE w.fetched_at IS NULL AND w.state IN ('due', 'late')) AS missing,
       count(*) FILTER (WHERE w.is_outdated AND w.state = 'due') AS outdated,
       min(w.fetched_at) AS oldest_fetched_at
FROM pricing.data_type_registry r LEFT JOIN pricing.watched_pairs(CAST(:data_types AS text[])) w USING (data_type)
WHERE r.is_active AND (CAST(:data_types AS text[]) IS NULL OR r.data_type = ANY (CAST(:data_types AS text[])))
GROUP BY 1, 2 ORDER BY 1;

-- name: why
-- Why the prices of symbols are as old as they are: each of its data type, or of each that applies to it. Retired ones
-- that have nothing of a symbol are left out, unless it has no other.
WITH wanted AS MATERIALIZED (
    SELECT u.* FROM unnest(CAST(:symbols AS text[]), CAST(:data_types AS text[]))
        WITH ORDINALITY AS u (symbol, data_type, place)),
pairs AS MATERIALIZED (
    SELECT u.data_type, u.symbol, u.place FROM wanted u WHERE u.data_type IS NOT NULL
    UNION ALL
    SELECT k.data_type, u.symbol, u.place
    FROM (SELECT w.symbol, w.place FROM wanted w WHERE w.data_type IS NULL) u
    JOIN pricing.instruments i USING (symbol)
    JOIN pricing.data_type_registry k USING (asset_class)
    WHERE (k.is_active
           OR EXISTS (SELECT FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (k.data_type, u.symbol))
           OR NOT EXISTS (SELECT FROM pricing.data_type_registry o
                          WHERE o.asset_class = k.asset_class AND o.is_active)))
SELECT r.data_type, r.symbol, w.state,
       w.sentence || coalesce('. Its viewers are owed a price since ' || pricing.format_time(late.owed_since)
                              || ', so it counts as late', '') AS sentence,
       w.observed_at, w.fetched_at, w.since, w.next_at
FROM pairs r
CROSS JOIN LATERAL pricing.why_old(r.data_type, r.symbol) w
LEFT JOIN (SELECT x.data_type, x.symbol, x.owed_since
           FROM pricing.watched_pairs(ARRAY(SELECT DISTINCT p.data_type FROM pairs p)) x
           WHERE x.state = 'late' AND x.symbol = ANY (CAST(:symbols AS text[]))) late USING (data_type, symbol)
ORDER BY r.place, 1;

-- name: unknown_symbols
-- Symbols that are no instruments, or none that their data type applies to, in words.
SELECT u.data_type, u.symbol, w.state, w.sentence
FROM unnest(CAST(:symbols AS text[]), CAST(:data_types AS text[])) WITH ORDINALITY AS u (symbol, data_type, place)
CROSS JOIN LATERAL pricing.why_no_prices(u.symbol, u.data_type) w
WHERE NOT EXISTS (SELECT FROM pricing.instruments i JOIN pricing.data_type_registry k USING (asset_class)
                  WHERE i.symbol = u.symbol AND coalesce(k.data_type = u.data_type, true))
ORDER BY u.place;

-- name: why_late
-- Why watched pairs of a data type are late, those that are owed longest first.
SELECT late.data_type, late.symbol, w.state, w.sentence, w.observed_at, w.fetched_at, w.since, w.next_at
FROM (SELECT p.data_type, p.symbol, p.owed_since FROM pricing.watched_pairs(ARRAY[CAST(:data_type AS text)]) p
      WHERE p.state = 'late' ORDER BY p.owed_since, p.symbol LIMIT :at_most) late
CROSS JOIN LATERAL pricing.why_old(late.data_type, late.symbol) w
ORDER BY late.owed_since, late.symbol;

-- name: outlook
-- The facts for the sensor: whether anything is watched, held or queued, and whether a drain is at work.
SELECT EXISTS (SELECT FROM pricing.active_subscriptions) AS watched,
       EXISTS (SELECT FROM pricing.holdings WHERE active_symbol IS NOT NULL) AS held,
       EXISTS (SELECT FROM pricing.api_call_queue_live)
           OR EXISTS (SELECT FROM pricing.pair_requests)
           OR EXISTS (SELECT FROM pricing.schedule_walks WHERE walk_slot IS NOT NULL) AS queued,
       (SELECT array_agg(r.data_type ORDER BY r.data_type) FROM pricing.data_type_registry r
        WHERE EXISTS (SELECT FROM pricing.active_subscriptions a WHERE a.data_type = r.data_type)) AS watched_types,
       d.drain_id, extract(epoch FROM d.ends_at - n.at)::float8 AS drain_seconds_left,
       extract(epoch FROM n.at)::float8 AS now_epoch,
       (SELECT version FROM pricing.registry_state) AS registry_version
FROM (SELECT pricing.clock() AS at OFFSET 0) n
LEFT JOIN LATERAL (
    SELECT drain_id, ends_at FROM pricing.drains
    WHERE finished_at IS NULL AND lease_until > n.at
    ORDER BY ends_at DESC LIMIT 1) d ON true;

-- name: waits_for
-- Why the providers of a type's queued pairs may not be called now, except for rate limits, which pass.
SELECT w.sentence
FROM (SELECT q.provider, max(q.priority) AS priority, max(q.est_bytes) AS needed
      FROM pricing.api_call_queue_live q
      WHERE q.data_type = :data_type AND q.window_start = '-infinity' AND q.window_end = 'infinity'
      GROUP BY 1) waiting
CROSS JOIN LATERAL pricing.why_not_called(waiting.provider, waiting.priority, waiting.needed) w
WHERE w.state <> 'rate_limited'
ORDER BY 1;

-- name: unasked
-- The watched or held pairs of a data type, or these symbols, that are in none of these tasks: how many, the first one,
-- and a sentence that says why. No row = all are in a task.
WITH wanted AS (
    SELECT a.symbol FROM pricing.active_subscriptions a WHERE a.data_type = :data_type
    UNION
    SELECT h.active_symbol FROM pricing.holdings h WHERE h.data_type = :data_type AND h.active_symbol IS NOT NULL),
left_over AS MATERIALIZED (
    SELECT s.symbol
    FROM (SELECT w.symbol FROM wanted w WHERE CAST(:symbols AS text[]) IS NULL
          UNION
          SELECT unnest(CAST(:symbols AS text[]))) s
    EXCEPT
    SELECT q.symbol FROM pricing.api_call_queue_live q WHERE q.id = ANY (CAST(:tasks AS bigint[]))),
first AS MATERIALIZED (SELECT count(*) AS pairs, min(l.symbol) AS symbol FROM left_over l HAVING count(*) > 0)
SELECT l.pairs, l.symbol, pricing.without_full_stop(CASE
    WHEN u.left_out = 'paused' THEN (pricing.why_old(:data_type, l.symbol)).sentence
    WHEN r.provider IS NULL THEN pricing.describe_no_route(:data_type, l.symbol)
    WHEN l.symbol NOT IN (SELECT w.symbol FROM wanted w) THEN pricing.why_sentence('unwatched', :data_type, l.symbol)
    WHEN d.backoff_until > pricing.clock() THEN pg_catalog.format(
        'its last task failed, and it is not asked for before %s. '
        '`pricing-pipeline task list --status failed` shows why', pricing.format_time(d.backoff_until))
    ELSE coalesce((pricing.why_not_called(r.provider, 0, k.estimated_data_size_bytes)).sentence,
                  (pricing.why_old(:data_type, l.symbol)).sentence) END) AS why
FROM first l
JOIN pricing.data_type_registry k ON k.data_type = :data_type
LEFT JOIN LATERAL pricing.route(:data_type, l.symbol) r ON true
LEFT JOIN pricing.demand d ON (d.data_type, d.symbol) = (:data_type, l.symbol)
LEFT JOIN pricing.universe u ON (u.data_type, u.symbol) = (:data_type, l.symbol);

-- name: progress
-- How many of some tasks are not finished, and how many failed.
SELECT (SELECT count(*) FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (CAST(:tasks AS bigint[]))) AS open,
       (SELECT count(*) FROM pricing.api_call_queue_dead q
        WHERE q.id = ANY (CAST(:tasks AS bigint[])) AND q.status = 'failed') AS failed;

-- name: watching
-- Who watches what: by data type or by client (the other is NULL), those with the most subscriptions first.
SELECT a.data_type, a.user_id, count(*) AS subscriptions, count(DISTINCT a.user_id) AS clients,
       count(DISTINCT (a.data_type, a.symbol)) AS pairs, max(a.last_seen_at) AS seen_at
FROM pricing.active_subscriptions a
GROUP BY GROUPING SETS ((a.data_type), (a.user_id), ())
ORDER BY 3 DESC, 1, 2;

-- name: subscriptions
-- Who watches what: of a user or all, of a data type or all, of some symbols or all.
SELECT user_id, data_type, symbol, subscribed_at, last_seen_at FROM pricing.active_subscriptions
WHERE (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
  AND (CAST(:data_type AS text) IS NULL OR data_type = :data_type)
  AND (CAST(:symbols AS text[]) IS NULL OR symbol = ANY (CAST(:symbols AS text[])))
  AND (CAST(:after_user AS text) IS NULL
       OR (user_id, data_type, symbol)
          > (CAST(:after_user AS text), CAST(:after_type AS text), CAST(:after_symbol AS text)))
ORDER BY user_id, data_type, symbol LIMIT :at_most;

-- name: holdings
-- Who holds what: of a user or all, of a data type or all, of some symbols or all; closed ones too, if they are wanted.
SELECT user_id, data_type, symbol, quantity, status, since, closed_at FROM pricing.holdings
WHERE (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
  AND (CAST(:data_type AS text) IS NULL OR data_type = :data_type)
  AND (CAST(:symbols AS text[]) IS NULL OR symbol = ANY (CAST(:symbols AS text[])))
  AND (:closed_too OR status = 'active')
  AND (CAST(:after_user AS text) IS NULL
       OR (user_id, data_type, symbol)
          > (CAST(:after_user AS text), CAST(:after_type AS text), CAST(:after_symbol AS text)))
ORDER BY user_id, data_type, symbol LIMIT :at_most;

-- name: type_of_class
-- A data type that applies to an asset class; NULL = none.
SELECT min(data_type) FROM pricing.data_type_registry WHERE asset_class = :asset_class;

-- name: asset_classes
-- The asset classes that data types apply to.
SELECT DISTINCT asset_class FROM pricing.data_type_registry ORDER BY 1;

-- name: check_new
-- Refuse a name that no instrument can have.
SELECT pricing.check_shapes(array_fill(CAST(:data_type AS text), ARRAY[cardinality(CAST(:symbols AS text[]))]),
                            CAST(:symbols AS text[]));

-- name: add_instruments
-- Add instruments; returns the new ones.
INSERT INTO pricing.instruments (asset_class, symbol, name, currency, calendar, listed_on, scale, isin, figi)
SELECT x.asset_class, x.symbol, x.name, x.currency, x.calendar, x.listed_on, coalesce(x.scale, 2), x.isin, x.figi
FROM jsonb_to_recordset(CAST(:rows AS jsonb))
    AS x (asset_class text, symbol text, name text, currency text, calendar text, listed_on date, scale smallint,
          isin text, figi text)
ORDER BY 1, 2
ON CONFLICT DO NOTHING RETURNING asset_class, symbol;

-- name: read_symbol
-- The one spelling of a symbol of a class, known or not; NULL = an ISIN or a FIGI, or no symbol.
SELECT CASE WHEN NOT pricing.is_isin(upper(:symbol)) AND NOT pricing.is_figi(upper(:symbol)) THEN r.symbol END
FROM pricing.read_symbol(:asset_class, :symbol) r;

-- name: doubts
-- Doubts about accepted symbols of one data type.
SELECT j.symbol, j.reason
FROM pricing.judge_symbols(array_fill(CAST(:data_type AS text), ARRAY[cardinality(CAST(:symbols AS text[]))]),
                           CAST(:symbols AS text[])) j
WHERE j.outcome = 'doubtful' ORDER BY j.place;

-- name: identify
-- Give an instrument identifiers that it has not; returns those that it has then.
UPDATE pricing.instruments i
SET isin = coalesce(i.isin, CAST(:isin AS text)), figi = coalesce(i.figi, CAST(:figi AS text))
WHERE (i.asset_class, i.symbol) = (:asset_class, :symbol)
RETURNING i.isin, i.figi;

-- name: read_identifier
-- Words as an ISIN or a FIGI, if they are one.
SELECT CASE WHEN pricing.is_isin(t.text) THEN t.text END AS isin,
       CASE WHEN pricing.is_figi(t.text) THEN t.text END AS figi
FROM (SELECT upper(btrim(CAST(:words AS text))) AS text) t;

-- name: about_instruments
-- Everything about the instruments that a symbol names, one for each asset class.
SELECT i.asset_class, i.symbol, i.name, i.currency, i.isin, i.figi, i.scale, i.exchange, i.calendar,
       i.listed_on, i.created_at, i.verified_at,
       pricing.exchange_of(i.asset_class, i.symbol, i.currency) AS exchange_by_symbol,
       ARRAY(SELECT e.mic FROM pricing.exchanges e
             WHERE i.asset_class IN ('equity', 'etf')
               AND upper(substring(i.symbol FROM '[.:][^.:]+$')) = ANY (e.endings)
             ORDER BY 1) AS exchanges_by_symbol,
       ARRAY(SELECT r.data_type FROM pricing.data_type_registry r
             WHERE r.asset_class = i.asset_class AND r.is_active
             ORDER BY 1) AS data_types
FROM pricing.instruments i
WHERE i.symbol = :symbol AND (CAST(:asset_class AS text) IS NULL OR i.asset_class = :asset_class)
ORDER BY 1;

-- name: change_instrument
-- Change what is known of an instrument; columns that the changes do not name stay.
UPDATE pricing.instruments i
SET name = n.name, currency = n.currency, exchange = n.exchange, calendar = n.calendar, listed_on = n.listed_on,
    scale = n.scale, isin = n.isin, figi = n.figi
FROM pricing.instruments o CROSS JOIN LATERAL jsonb_populate_record(o, CAST(:changes AS jsonb)) n
WHERE (i.asset_class, i.symbol) = (:asset_class, :symbol) AND (o.asset_class, o.symbol) = (i.asset_class, i.symbol);

-- name: bounds
-- The bounds that count for an instrument, in each data type that has some.
SELECT DISTINCT ON (b.data_type)
       b.data_type, b.lowest, b.highest, b.jumps_trusted_until, b.symbol IS NOT NULL AS is_own
FROM pricing.plausibility_bounds b JOIN pricing.data_type_registry r USING (data_type)
WHERE r.asset_class = :asset_class AND (b.symbol = :symbol OR b.symbol IS NULL)
ORDER BY b.data_type, b.symbol NULLS LAST;

-- name: bounds_of_type
-- The bounds of a data type's symbols that have none of their own.
SELECT b.lowest, b.highest, b.jumps_trusted_until FROM pricing.plausibility_bounds b
WHERE b.data_type = :data_type AND b.symbol IS NULL;

-- name: change_bounds
-- Give a symbol, or with NULL a data type, bounds of its own: those of before, with the given changes.
INSERT INTO pricing.plausibility_bounds (data_type, symbol, lowest, highest, jumps_trusted_until)
SELECT :data_type, CAST(:symbol AS text), n.lowest, n.highest, n.jumps_trusted_until
FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
    SELECT x AS counted FROM pricing.plausibility_bounds x
    WHERE x.data_type = :data_type AND (x.symbol = CAST(:symbol AS text) OR x.symbol IS NULL)
    ORDER BY x.symbol NULLS LAST LIMIT 1) b ON true
CROSS JOIN LATERAL jsonb_populate_record(b.counted, CAST(:changes AS jsonb)) n
ON CONFLICT (data_type, symbol) DO UPDATE
SET lowest = EXCLUDED.lowest, highest = EXCLUDED.highest, jumps_trusted_until = EXCLUDED.jumps_trusted_until;

-- name: remove_bounds
-- A symbol goes by the bounds of its type.
DELETE FROM pricing.plausibility_bounds WHERE data_type = :data_type AND symbol = :symbol;

-- name: judge_symbols
-- The meaning of each pair of a data type and a symbol, in order.
SELECT data_type, given, symbol, outcome, reason, proposal
FROM pricing.judge_symbols(CAST(:data_types AS text[]), CAST(:symbols AS text[]))
ORDER BY place;

-- name: isins
-- Whether each of these is an ISIN with its check digit, and the active instruments that are known by it.
SELECT u.isin, pricing.is_isin(u.isin) AS is_valid, i.asset_class, i.symbol, i.currency
FROM unnest(CAST(:isins AS text[])) AS u (isin)
LEFT JOIN pricing.instruments i ON i.isin = u.isin AND i.is_active
ORDER BY u.isin, i.symbol;

-- name: doubtful_identifiers
-- Doubts about symbols of a file, known or not, whose instruments do not have the ISIN or FIGI of the file.
SELECT d.data_type, d.symbol, d.doubt
FROM (SELECT u.data_type, u.symbol,
             CASE WHEN i.isin <> u.isin THEN format('its ISIN is %s here, and %s in the file', i.isin, u.isin)
                  WHEN coalesce(i.isin = u.isin, i.figi = u.figi) IS NOT TRUE
                  THEN (pricing.read_symbol(r.asset_class, u.symbol)).doubt END AS doubt
      FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[]), CAST(:isins AS text[]), CAST(:figis AS text[]))
          AS u (data_type, symbol, isin, figi)
      JOIN pricing.data_type_registry r USING (data_type)
      LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol)) d
WHERE d.doubt IS NOT NULL;

-- name: types_to_hold
-- Each data type of prices, whether it is one of those that are named, and whether its class is held by it if none is.
SELECT r.asset_class, r.data_type, r.data_type = ANY (CAST(:data_types AS text[])) AS is_named,
       r.data_type = pricing.type_for(r.asset_class) AS is_usual
FROM pricing.data_type_registry r
WHERE r.is_active AND r.contents = 'prices'
ORDER BY r.asset_class, r.data_type;

-- name: learn_identifiers
-- Add the ISIN and FIGI to instruments without one.
UPDATE pricing.instruments i
SET isin = coalesce(i.isin, CASE WHEN pricing.is_isin(u.isin) THEN u.isin END),
    figi = coalesce(i.figi, CASE WHEN pricing.is_figi(u.figi) THEN u.figi END)
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[]), CAST(:isins AS text[]), CAST(:figis AS text[]))
    AS u (data_type, symbol, isin, figi)
JOIN pricing.data_type_registry r USING (data_type)
WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol)
  AND (i.isin IS NULL AND pricing.is_isin(u.isin) OR i.figi IS NULL AND pricing.is_figi(u.figi));
