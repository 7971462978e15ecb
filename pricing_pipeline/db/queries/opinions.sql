-- name: second_providers
-- The second provider for each quarantined value; no row for an unknown value.
SELECT q.value_id, q.status, pricing.second_provider(q.data_type, q.symbol, q.provider) AS provider,
       q.provider AS sent_by, q.data_type,
       q.observed_at IS NOT NULL
           OR (SELECT r.fetcher FROM pricing.data_type_registry r WHERE r.data_type = q.data_type) = 'quote' AS has_day
FROM pricing.quarantined_values q
WHERE q.value_id = ANY (CAST(:value_ids AS bigint[]))
ORDER BY 1;

-- name: ask_again
-- Have workers ask about quarantined values, up to four times; returns those that wait for a decision.
UPDATE pricing.quarantined_values q SET ask_at = pricing.clock(), asked = 0
FROM (SELECT x.value_id FROM pricing.quarantined_values x
      WHERE x.value_id = ANY (CAST(:value_ids AS bigint[])) AND x.status = 'quarantined'
      ORDER BY 1 FOR NO KEY UPDATE) mine
WHERE q.value_id = mine.value_id
RETURNING q.value_id;

-- name: claim
-- Claim one call about quarantined values, or return why none is allowed now.
SELECT c.refusal, c.key_name, c.call_id, c.data_type, c.fetcher, c.day, c.claimed_at, c.value_ids, c.symbols,
       r.asset_class,
       (SELECT jsonb_object_agg(s.symbol, s.spelling) FROM pricing.provider_symbols s
        WHERE s.provider = :provider AND s.asset_class = r.asset_class AND s.symbol = ANY (c.symbols)) AS overrides
FROM pricing.claim_opinions(:provider, :worker, CAST(:keys AS text[]), CAST(:run_id AS text),
                            CAST(:only_value AS bigint)) c
LEFT JOIN pricing.data_type_registry r USING (data_type);

-- name: fail
-- Store why another provider gave no value.
UPDATE pricing.second_opinions SET answered_at = pricing.clock(), failure = left(:failure, 500)
WHERE call_id = :call_id;

-- name: of
-- The opinions of other providers on some quarantined values.
SELECT value_id, provider, call_id, asked_at, answered_at, observed_at, value, currency, adjustment, ratio,
       pricing.agreement(ratio) AS verdict, failure
FROM pricing.second_opinions
WHERE value_id = ANY (CAST(:value_ids AS bigint[]))
ORDER BY value_id, asked_at, provider;
