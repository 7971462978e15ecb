-- name: claim
-- Take one call about a held value, or learn why nobody may be asked now.
SELECT refusal, provider, key_name, call_id, data_type, symbol, fetcher, day, claimed_at
FROM pricing.claim_opinion(:value_id, :worker, CAST(:keys AS text[]));

-- name: note
-- Keep what another provider said.
SELECT pricing.note_opinion(:value_id, :call_id, CAST(:observed_at AS timestamptz), CAST(:value AS numeric),
                            CAST(:currency AS text), CAST(:failure AS text));

-- name: of
-- What other providers said about a held value.
SELECT provider, call_id, asked_at, answered_at, observed_at, value, currency, failure
FROM pricing.second_opinions WHERE value_id = :value_id ORDER BY asked_at, provider;
