-- name: batch
-- How many symbols a call for the latest prices takes, and from how many on it may be made for more than one.
SELECT batch_size, batch_from FROM pricing.provider_capabilities WHERE (provider, fetcher) = (:provider, :fetcher);
