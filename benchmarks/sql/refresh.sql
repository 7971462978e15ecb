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

-- name: limit
WITH priced AS (
    UPDATE pricing.provider_capabilities SET units_per_call = 1, units_per_symbol = 0
    WHERE provider = 'twelvedata' AND fetcher = 'quote')
INSERT INTO pricing.provider_limits (provider, name, units, window_seconds) VALUES ('twelvedata', 'minute', %(calls)s, 60);

-- name: watch
-- Somebody looks at each, and there is no price yet: the drain's own check finds them due.
WITH wanted AS (
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT 'equity_quote', 'S' || i, pricing.clock() FROM generate_series(1, %(symbols)s) AS i ORDER BY 2 RETURNING 1)
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT 'user' || i, 'equity_quote', 'S' || i FROM generate_series(1, %(symbols)s) AS i CROSS JOIN (SELECT count(*) FROM wanted) AS first
ORDER BY 3;
