-- name: quarantine
-- Keep values that are not believed, and the body that brought them; returns how many are new.
SELECT pricing.quarantine(:data_type, :provider, :call_id, CAST(:doubted AS jsonb), CAST(:body AS bytea),
                          CAST(:body_size AS integer), CAST(:http_status AS integer));

-- name: witnesses
-- Values of some symbols that were quarantined because they are far from the last one, within two weeks, oldest first.
SELECT q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value
FROM (SELECT pricing.clock() AS at OFFSET 0) n
JOIN pricing.quarantined_values q ON q.last_seen_at > n.at - interval '14 days'
WHERE q.data_type = :data_type AND q.provider = :provider AND q.symbol = ANY (CAST(:symbols AS text[]))
  AND q.status = 'quarantined' AND q.kind IN ('jump', 'split', 'spike') AND q.observed_at IS NOT NULL
ORDER BY q.symbol, q.observed_at;

-- name: rivals
-- What other providers said of the same times of some symbols, and was quarantined: the newest word of each, on the same basis. Their
-- quotes are of a quarter of an hour around, and no later ones of them are believed.
SELECT DISTINCT ON (q.symbol, q.data_type, q.provider, CASE WHEN NOT k.is_quote THEN q.observed_at END)
       q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value, q.provider
FROM (SELECT r.fetcher = 'quote' AS is_quote,
             CASE WHEN r.fetcher = 'quote' THEN interval '15 minutes' ELSE interval '0' END AS around,
             pricing.types_alike(:data_type) || CAST(:data_type AS text) AS types
      FROM pricing.data_type_registry r WHERE r.data_type = :data_type OFFSET 0) k
CROSS JOIN unnest(CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]), CAST(:last_times AS timestamptz[]),
                  CAST(:currencies AS text[]), CAST(:bases AS text[])) AS w (symbol, first_at, last_at, currency, basis)
JOIN pricing.quarantined_values q ON q.data_type = ANY (k.types) AND q.symbol = w.symbol
     AND q.observed_at BETWEEN w.first_at - k.around AND w.last_at + k.around
WHERE q.provider <> :provider AND q.status = 'quarantined' AND q.bar IS NOT NULL AND (q.bar ->> 'close')::numeric > 0
  AND (pricing.is_of_level(q.kind) OR q.kind = 'disagreement')
  AND (q.bar ->> 'currency' = w.currency) IS NOT FALSE AND q.bar ->> 'adjustment' = w.basis
  AND NOT EXISTS (SELECT FROM pricing.price_history h
                  WHERE (h.data_type, h.symbol, h.provider) = (q.data_type, q.symbol, q.provider)
                    AND h.observed_at >= q.observed_at AND (k.is_quote OR h.observed_at = q.observed_at))
ORDER BY q.symbol, q.data_type, q.provider, CASE WHEN NOT k.is_quote THEN q.observed_at END, q.observed_at DESC, q.last_seen_at DESC;

-- name: counts
-- Values that wait for a person, by data type, provider and kind: how many, of how many symbols, and when one last came.
SELECT data_type, provider, kind, count(*) AS quarantined, count(DISTINCT symbol) AS symbols, max(last_seen_at) AS last_seen_at
FROM pricing.quarantined_values WHERE status = 'quarantined' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- name: list
-- Values in one state, or in all: what came last first; by_id what came first last, older than one.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at, call_id,
       EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body,
       status, resolved_at, resolved_by, resolution, bar
FROM pricing.quarantined_values q
WHERE q.status = coalesce(CAST(:status AS text), q.status) AND q.data_type = coalesce(CAST(:data_type AS text), q.data_type)
  AND q.symbol = coalesce(CAST(:symbol AS text), q.symbol)
  AND (CAST(:after_id AS bigint) IS NULL OR q.value_id < :after_id)
ORDER BY CASE WHEN NOT :by_id THEN q.last_seen_at END DESC, q.value_id DESC LIMIT :at_most;

-- name: show
-- One value, whatever has become of it.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at, call_id,
       EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body,
       status, resolved_at, resolved_by, resolution, bar
FROM pricing.quarantined_values q WHERE q.value_id = :value_id;

-- name: neighbours
-- What is believed of the same pair just before, at and after the time of a quarantined value, and what other data types last said.
WITH doubted AS (SELECT q.data_type, q.symbol, q.observed_at FROM pricing.quarantined_values q WHERE q.value_id = :value_id)
SELECT n.place, n.data_type, n.observed_at, n.amount, n.scale, n.currency, n.provider FROM doubted v CROSS JOIN LATERAL (
    (SELECT 'before' AS place, h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider FROM pricing.price_history h
     WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at < v.observed_at ORDER BY h.observed_at DESC LIMIT 1)
    UNION ALL
    SELECT 'same', h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider FROM pricing.price_history h
    WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at = v.observed_at
    UNION ALL
    (SELECT 'after', h.data_type, h.observed_at, h.amount, h.scale, h.currency, h.provider FROM pricing.price_history h
     WHERE h.data_type = v.data_type AND h.symbol = v.symbol AND h.observed_at > v.observed_at ORDER BY h.observed_at LIMIT 1)
    UNION ALL
    SELECT 'other type', l.data_type, l.observed_at, l.amount, l.scale, l.currency, l.provider
    FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
    WHERE l.symbol = v.symbol AND l.data_type <> v.data_type
      AND r.asset_class = (SELECT k.asset_class FROM pricing.data_type_registry k WHERE k.data_type = v.data_type)) n
ORDER BY n.observed_at, n.place, n.data_type;

-- name: released
-- Of values that are doubted now, those that people have released.
SELECT q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value FROM pricing.quarantined_values q
WHERE q.data_type = :data_type AND q.provider = :provider AND q.symbol = ANY (CAST(:symbols AS text[]))
  AND q.status = 'released' AND q.bar IS NOT NULL;

-- name: level
-- The ids of the values that are quarantined with one.
SELECT pricing.level_of(:value_id);

-- name: decide
-- Release or reject quarantined values; what became of each.
SELECT value_id, outcome, is_latest, revised FROM pricing.decide_quarantined(CAST(:ids AS bigint[]), :decision, :by_whom, CAST(:why AS text));

-- name: show_some
-- Some values, whatever has become of them.
SELECT value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at, call_id,
       EXISTS (SELECT FROM pricing.quarantined_bodies b WHERE b.call_id = q.call_id) AS has_body,
       status, resolved_at, resolved_by, resolution, bar
FROM pricing.quarantined_values q WHERE q.value_id = ANY (CAST(:ids AS bigint[]));

-- name: of_level
-- Values of a symbol in one data type that are quarantined because of their level, of each time the one that came last, oldest first.
SELECT * FROM (
    SELECT DISTINCT ON (q.provider, q.observed_at)
           value_id, data_type, symbol, provider, observed_at, kind, value, reason, times, recorded_at, last_seen_at, call_id,
           false AS has_body, status, resolved_at, resolved_by, resolution, bar
    FROM pricing.quarantined_values q
    WHERE q.data_type = :data_type AND q.symbol = :symbol AND q.status = 'quarantined' AND pricing.is_of_level(q.kind)
      AND q.bar IS NOT NULL AND q.observed_at IS NOT NULL
    ORDER BY q.provider, q.observed_at, q.last_seen_at DESC, q.value_id DESC) newest
ORDER BY observed_at, value_id;

-- name: body
-- The answer that first brought a quarantined value, packed by zlib, and how long it was.
SELECT b.body, b.size FROM pricing.quarantined_values q JOIN pricing.quarantined_bodies b USING (call_id)
WHERE q.value_id = :value_id;
