-- name: gaps
-- Of daily types: days of the last year that at least half of a type's symbols have and a symbol lacks between its first and last.
WITH kinds AS MATERIALIZED (
    SELECT r.data_type, r.asset_class FROM pricing.data_type_registry r
    WHERE r.data_type = ANY (CAST(:data_types AS text[])) AND r.fetcher IN ('daily_bars', 'nav')),
seen AS MATERIALIZED (
    SELECT k.data_type, i.symbol, h.observed_at
    FROM (SELECT pricing.clock() AS at OFFSET 0) n CROSS JOIN kinds k JOIN pricing.instruments i USING (asset_class)
    CROSS JOIN LATERAL (SELECT x.observed_at FROM pricing.price_history x
                        WHERE x.data_type = k.data_type AND x.symbol = i.symbol AND x.observed_at > n.at - interval '365 days' OFFSET 0) h),
spans AS MATERIALIZED (
    SELECT s.data_type, s.symbol, min(s.observed_at) AS first_at, max(s.observed_at) AS last_at FROM seen s GROUP BY 1, 2),
days AS MATERIALIZED (
    SELECT d.data_type, d.observed_at FROM (SELECT s.data_type, s.observed_at, count(*) AS symbols FROM seen s GROUP BY 1, 2) d
    JOIN spans p ON p.data_type = d.data_type AND d.observed_at BETWEEN p.first_at AND p.last_at
    GROUP BY 1, 2, d.symbols HAVING 2 * d.symbols >= count(*)),
expected AS (
    SELECT p.data_type, p.symbol, d.observed_at, s.observed_at IS NULL AS is_missing
    FROM spans p JOIN days d ON d.data_type = p.data_type AND d.observed_at BETWEEN p.first_at AND p.last_at
    LEFT JOIN seen s ON (s.data_type, s.symbol, s.observed_at) = (p.data_type, p.symbol, d.observed_at))
SELECT k.data_type, count(e.symbol) AS expected, count(*) FILTER (WHERE e.is_missing) AS missing,
       count(DISTINCT e.symbol) FILTER (WHERE e.is_missing) AS symbols,
       (array_agg(e.symbol || ' ' || to_char(e.observed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') ORDER BY e.observed_at DESC, e.symbol)
           FILTER (WHERE e.is_missing))[1:5] AS examples
FROM kinds k LEFT JOIN expected e USING (data_type) GROUP BY 1 ORDER BY 1;

-- name: outliers
-- Values that wait for a person, by data type: how many, of how many symbols, since when, and the kinds.
SELECT r.data_type, count(q.value_id) AS held, count(DISTINCT q.symbol) AS symbols, min(q.recorded_at) AS oldest,
       (array_agg(DISTINCT q.kind ORDER BY q.kind) FILTER (WHERE q.kind IS NOT NULL)) AS kinds,
       (SELECT count(*) FROM pricing.latest_answers l WHERE l.data_type = r.data_type) AS priced
FROM pricing.data_type_registry r LEFT JOIN pricing.quarantined_values q ON q.data_type = r.data_type AND q.status = 'held'
WHERE r.data_type = ANY (CAST(:data_types AS text[])) GROUP BY 1 ORDER BY 1;

-- name: agreement
-- Latest prices of one instrument that two providers gave within 36 hours of each other, by data type: how far they are apart.
SELECT r.data_type, count(p.symbol) AS compared, count(*) FILTER (WHERE p.ratio > 1.1) AS apart, max(p.ratio)::float8 AS worst,
       (array_agg(pg_catalog.format('%s: %s %s, %s %s', p.symbol, p.ours, p.provider, p.theirs, p.other_provider) ORDER BY p.ratio DESC)
           FILTER (WHERE p.ratio > 1.1))[1:5] AS examples
FROM pricing.data_type_registry r
LEFT JOIN LATERAL (
    SELECT l.symbol, l.provider, o.provider AS other_provider, x.ours, x.theirs, greatest(x.ours, x.theirs) / least(x.ours, x.theirs) AS ratio
    FROM pricing.latest_prices l
    JOIN pricing.data_type_registry k ON k.asset_class = r.asset_class AND k.data_type <> r.data_type
    JOIN pricing.latest_prices o ON (o.data_type, o.symbol) = (k.data_type, l.symbol)
    CROSS JOIN LATERAL (SELECT l.amount * ('1e-' || l.scale)::numeric AS ours, o.amount * ('1e-' || o.scale)::numeric AS theirs) x
    WHERE l.data_type = r.data_type AND l.provider <> o.provider AND l.amount > 0 AND o.amount > 0
      AND l.currency IS NOT DISTINCT FROM o.currency
      AND l.observed_at BETWEEN o.observed_at - interval '36 hours' AND o.observed_at + interval '36 hours') p ON true
WHERE r.data_type = ANY (CAST(:data_types AS text[])) GROUP BY 1 ORDER BY 1;

-- name: revisions
-- Of daily types: values of the last year that were revised in the last 30 days, among all values of the year.
SELECT k.data_type, coalesce(v.stored, 0) AS stored, coalesce(c.revised, 0) AS revised, coalesce(c.symbols, 0) AS symbols, c.examples
FROM (SELECT pricing.clock() AS at OFFSET 0) n
CROSS JOIN pricing.data_type_registry k
LEFT JOIN LATERAL (
    SELECT count(*) AS revised, count(DISTINCT x.symbol) AS symbols,
           (array_agg(DISTINCT x.symbol || ' ' || to_char(x.observed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')))[1:5] AS examples
    FROM pricing.price_revisions x
    WHERE x.data_type = k.data_type AND x.revised_at > n.at - interval '30 days' AND x.observed_at > n.at - interval '365 days') c ON true
LEFT JOIN LATERAL (
    SELECT sum(h.found)::bigint AS stored FROM pricing.instruments i CROSS JOIN LATERAL (
        SELECT count(*) AS found FROM pricing.price_history x
        WHERE x.data_type = k.data_type AND x.symbol = i.symbol AND x.observed_at > n.at - interval '365 days' OFFSET 0) h
    WHERE i.asset_class = k.asset_class) v ON true
WHERE k.data_type = ANY (CAST(:data_types AS text[])) AND k.fetcher IN ('daily_bars', 'nav') ORDER BY 1;

-- name: is_anything_stored
-- Whether there is a price, or a past one, to be checked.
SELECT EXISTS (SELECT FROM pricing.latest_prices) OR EXISTS (SELECT FROM pricing.price_history);

-- name: freshness_samples
-- How a data type served its viewers over the last day, oldest first; at most 288.
SELECT s.at, s.watched, s.fresh, s.late FROM (SELECT pricing.clock() AS at OFFSET 0) n
JOIN pricing.freshness_samples s ON s.data_type = :data_type AND s.at > n.at - interval '24 hours' ORDER BY s.at;

-- name: portrait
-- The pair of a type that most watch, of the others the first: its values of the last year, and which were revised.
WITH chosen AS (
    SELECT l.symbol FROM pricing.latest_prices l
    LEFT JOIN (SELECT a.symbol, count(*) AS viewers FROM pricing.active_subscriptions a WHERE a.data_type = :data_type GROUP BY 1) w USING (symbol)
    WHERE l.data_type = :data_type ORDER BY w.viewers DESC NULLS LAST, l.symbol LIMIT 1)
SELECT c.symbol, h.observed_at, h.amount, h.scale, h.currency, EXISTS (
           SELECT FROM pricing.price_revisions v WHERE v.data_type = :data_type AND v.symbol = c.symbol AND v.observed_at = h.observed_at) AS is_revised
FROM (SELECT pricing.clock() AS at OFFSET 0) n CROSS JOIN chosen c
JOIN LATERAL (SELECT x.observed_at, x.amount, x.scale, x.currency FROM pricing.price_history x
              WHERE x.data_type = :data_type AND x.symbol = c.symbol AND x.observed_at > n.at - interval '365 days'
              ORDER BY x.observed_at DESC LIMIT 2000) h ON true
ORDER BY h.observed_at;
