-- name: batch
-- How many symbols a call for the latest prices takes, and from how many on it may be made for more than one.
SELECT batch_size, batch_from FROM pricing.provider_capabilities WHERE (provider, fetcher) = (:provider, :fetcher);

-- name: claim
-- Take one call for a person, or learn why none may be made now.
SELECT refusal, key_name, call_id, claimed_at
FROM pricing.claim_by_hand(:provider, :data_type, :fetcher, CAST(:symbols AS text[]), CAST(:keys AS text[]), :who);
