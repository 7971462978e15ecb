-- name: arrange
WITH unlimited AS (DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata')
UPDATE pricing.data_collectors SET max_in_flight = %(in_flight)s WHERE provider = 'twelvedata';

-- name: instruments
INSERT INTO pricing.instruments (asset_class, symbol, verified_at)
SELECT 'equity', 'S' || i, pricing.clock() FROM generate_series(1, %(symbols)s) AS i ORDER BY 2;

-- name: plain_table
CREATE TABLE bars (symbol text NOT NULL, day date NOT NULL, open float8, high float8, low float8, close float8, volume bigint);

-- name: plain_copy
COPY bars FROM STDIN;
