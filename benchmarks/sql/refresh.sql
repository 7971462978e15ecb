-- name: arrange
WITH unlimited AS (DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata'),
in_flight AS (UPDATE pricing.data_collectors SET max_in_flight = %(in_flight)s WHERE provider = 'twelvedata')
UPDATE pricing.provider_capabilities SET batch_size = %(batch)s WHERE provider = 'twelvedata' AND fetcher = 'quote';

-- name: enqueue
SELECT pricing.enqueue('equity_quote', array_agg('S' || i), array_agg(1)) FROM generate_series(1, %(symbols)s) AS i;

-- name: plain_table
CREATE TABLE prices (symbol text PRIMARY KEY, price float8 NOT NULL, fetched_at timestamptz NOT NULL);

-- name: plain_store
INSERT INTO prices SELECT *, now() FROM unnest(%(symbols)s::text[], %(prices)s::float8[])
ON CONFLICT (symbol) DO UPDATE SET price = excluded.price, fetched_at = excluded.fetched_at;
