-- name: counts
-- Values that wait for a person, by data type, provider and kind: how many, of how many symbols, the last one's time.
SELECT data_type, provider, kind, count(*) AS quarantined, count(DISTINCT symbol) AS symbols,
       max(last_seen_at) AS last_seen_at
FROM pricing.quarantined_values
WHERE status = 'quarantined'
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

-- name: list
-- Values in one state, or in all: the latest first; with by_id in descending order of ids, below one.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at,
       call_id, EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body,
       status, resolved_at, resolved_by, resolution, bar
FROM pricing.quarantined_values q
WHERE q.status = coalesce(CAST(:status AS text), q.status)
  AND q.data_type = coalesce(CAST(:data_type AS text), q.data_type)
  AND q.symbol = coalesce(CAST(:symbol AS text), q.symbol)
  AND (CAST(:after_id AS bigint) IS NULL OR q.value_id < :after_id)
ORDER BY CASE WHEN NOT :by_id THEN q.last_seen_at END DESC, q.value_id DESC LIMIT :at_most;

-- name: neighbours
-- The believed values of the same pair just before, at and after the time of a quarantined value, and the last ones of
-- other data types.
WITH doubted AS (
    SELECT q.data_type, q.symbol, q.observed_at FROM pricing.quarantined_values q WHERE q.value_id = :value_id)
SELECT n.place, n.data_type, n.observed_at, n.amount, n.scale, n.currency, n.provider
FROM doubted v
CROSS JOIN LATERAL (
    (SELECT 'before' AS place, h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider
     FROM pricing.price_history h
     WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at < v.observed_at
     ORDER BY h.observed_at DESC LIMIT 1)
    UNION ALL
    SELECT 'same', h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider
    FROM pricing.price_history h
    WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at = v.observed_at
    UNION ALL
    (SELECT 'after', h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider
     FROM pricing.price_history h
     WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at > v.observed_at
     ORDER BY h.observed_at LIMIT 1)
    UNION ALL
    SELECT 'other type', l.data_type, l.observed_at, l.amount, l.scale, l.currency, l.provider
    FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
    WHERE l.symbol = v.symbol AND l.data_type <> v.data_type
      AND r.asset_class = (SELECT k.asset_class FROM pricing.data_type_registry k WHERE k.data_type = v.data_type)) n
ORDER BY n.observed_at, n.place, n.data_type;

-- name: show_some
-- Some values, in any state.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at,
       call_id, EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body,
       status, resolved_at, resolved_by, resolution, bar
FROM pricing.quarantined_values q
WHERE q.value_id = ANY (CAST(:ids AS bigint[]));

-- name: of_level
-- Values of a symbol in one data type that are quarantined for their level, the last for each time, oldest first.
SELECT * FROM (
    SELECT DISTINCT ON (q.provider, q.observed_at)
           value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at,
           call_id, false AS has_body, status, resolved_at, resolved_by, resolution, bar
    FROM pricing.quarantined_values q
    WHERE q.data_type = :data_type AND q.symbol = :symbol AND q.status = 'quarantined' AND pricing.is_of_level(q.kind)
      AND q.bar IS NOT NULL AND q.observed_at IS NOT NULL
    ORDER BY q.provider, q.observed_at, q.last_seen_at DESC, q.value_id DESC) newest
ORDER BY observed_at, value_id;

-- name: body
-- The answer that first brought a quarantined value, compressed by zlib, and its length.
SELECT b.body, b.size FROM pricing.quarantined_values q JOIN pricing.quarantined_bodies b USING (call_id)
WHERE q.value_id = :value_id;
