-- name: plain_table
-- The same columns and key as pricing.price_history_<type>, as one table.
CREATE TABLE copied (LIKE pricing.price_history_equity_daily INCLUDING DEFAULTS, PRIMARY KEY (data_type, symbol, observed_at));

-- name: empty_plain
TRUNCATE copied;

-- name: empty_ours
TRUNCATE pricing.price_history_equity_daily, pricing.price_revisions, pricing.latest_prices;

-- name: copy
COPY copied (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume, provider, call_id, fetched_at)
FROM STDIN;

-- name: versions
SELECT count(*), coalesce(max(xmin::text::bigint), 0) FROM pricing.price_history_equity_daily;

-- name: instruments
INSERT INTO pricing.instruments (asset_class, symbol, scale, currency)
SELECT 'equity', 'H' || n, 2, 'USD' FROM generate_series(0, %(symbols)s::integer - 1) n ON CONFLICT DO NOTHING;

-- name: bare_query
SELECT observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume, adjustment, provider, call_id, fetched_at
FROM pricing.price_history
WHERE data_type = 'equity_daily' AND symbol = 'H0' AND observed_at >= '1990-01-01' AND observed_at < '2030-01-01'
ORDER BY observed_at;
