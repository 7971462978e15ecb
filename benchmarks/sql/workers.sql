-- name: arrange
-- So many providers that answer alike, without limits, one symbol a call.
WITH providers AS (
    INSERT INTO pricing.data_collectors (provider, base_url, max_in_flight)
    SELECT 'provider' || i, 'https://example.com', %(at_once)s FROM generate_series(1, %(most)s) AS i RETURNING provider)
INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, batch_from, window_batch_size, units_per_call, units_per_symbol)
SELECT provider, 'quote', 1, 1, 1, 1, 0 FROM providers;

-- name: enqueue
INSERT INTO pricing.api_call_queue_live (data_type, symbol, window_start, window_end, provider, priority, est_bytes, enqueued_at)
SELECT 'equity_quote', 'S' || p || 'N' || i, '-infinity', 'infinity', 'provider' || p, 1, 500, pricing.clock()
FROM generate_series(1, %(providers)s) AS p, generate_series(1, %(calls)s) AS i;
