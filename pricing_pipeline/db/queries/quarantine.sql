-- name: hold
-- Keep values that are not believed, and the body that brought them; returns how many are new.
SELECT pricing.quarantine(:data_type, :provider, :call_id, CAST(:held AS jsonb), CAST(:body AS bytea),
                          CAST(:body_size AS integer), CAST(:http_status AS integer));

-- name: witnesses
-- Values of some symbols that were held for being far from the last one, within two weeks, oldest first.
SELECT q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value
FROM (SELECT pricing.clock() AS at OFFSET 0) n
JOIN pricing.quarantined_values q ON q.last_seen_at > n.at - interval '14 days'
WHERE q.data_type = :data_type AND q.provider = :provider AND q.symbol = ANY (CAST(:symbols AS text[]))
  AND q.status = 'held' AND q.kind IN ('jump', 'split', 'spike') AND q.observed_at IS NOT NULL
ORDER BY q.symbol, q.observed_at;

-- name: counts
-- Values that wait for a person, by data type, provider and kind: how many, of how many symbols, and when one last came.
SELECT data_type, provider, kind, count(*) AS held, count(DISTINCT symbol) AS symbols, max(last_seen_at) AS last_seen_at
FROM pricing.quarantined_values WHERE status = 'held' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: list
-- Held values, the newest first.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at, call_id,
       EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body
FROM pricing.quarantined_values q
WHERE q.status = 'held' AND q.data_type = coalesce(CAST(:data_type AS text), q.data_type)
  AND q.symbol = coalesce(CAST(:symbol AS text), q.symbol)
ORDER BY q.last_seen_at DESC, q.value_id DESC LIMIT :at_most;

-- name: body
-- The answer that first brought a held value, packed by zlib, and how long it was.
SELECT b.body, b.size FROM pricing.quarantined_values q JOIN pricing.quarantined_bodies b USING (call_id)
WHERE q.value_id = :value_id;
