-- name: instruments
-- Symbols of shares, which two data types of the sample apply to.
INSERT INTO pricing.instruments (asset_class, symbol, scale, currency, calendar)
SELECT 'equity', 'R' || n, 2, 'USD', 'XNYS' FROM generate_series(0, %(symbols)s::integer - 1) n ON CONFLICT DO NOTHING;

-- name: prices
-- A fresh price of each symbol in each data type of prices, noted as looked at.
INSERT INTO pricing.latest_prices
    (data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider, call_id, source_text, changed_at)
SELECT r.data_type, i.symbol, 10000 + length(i.symbol), 2, 'USD', pricing.clock(), pricing.clock(), 'twelvedata', 1,
       '100.00', pricing.clock()
FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
WHERE r.is_active AND r.contents = 'prices' AND i.symbol ~ '^R[0-9]+$'
ON CONFLICT (data_type, symbol) DO UPDATE
    SET fetched_at = excluded.fetched_at, observed_at = excluded.observed_at, changed_at = excluded.changed_at;

-- name: rates
-- A rate a day of two pairs that lead from dollars to pounds by way of euros.
INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)
VALUES ('fx_daily', 'fx', 'daily_bars', 1440);
INSERT INTO pricing.instruments (asset_class, symbol, currency)
VALUES ('fx', 'EUR/USD', 'USD'), ('fx', 'EUR/GBP', 'GBP') ON CONFLICT DO NOTHING;
INSERT INTO pricing.price_history
    (data_type, symbol, observed_at, amount, scale, currency, provider, call_id, fetched_at)
SELECT 'fx_daily', 'EUR/' || p.currency, d.day, p.amount + extract(doy FROM d.day)::bigint * 37, 5, p.currency,
       'twelvedata', 1, pricing.clock()
FROM (VALUES ('USD', 108530), ('GBP', 84120)) p (currency, amount)
CROSS JOIN generate_series('2003-12-29Z'::timestamptz, '2024-01-01Z', '1 day') d (day)
WHERE extract(isodow FROM d.day) < 6;

-- name: long_ttl
-- What is fresh now stays so while it is read.
UPDATE pricing.data_type_registry SET default_ttl_minutes = 600;

-- name: analyze
ANALYZE;

-- name: bare
-- What a plain server would ask: the prices of some symbols in one data type.
SELECT data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider FROM pricing.latest_prices
WHERE symbol = ANY (%(symbols)s) AND data_type = %(data_type)s;

-- name: sessions
-- The processes of the sessions of this database.
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend';

-- name: copy
-- The columns of a history as CSV, with prices as decimals.
COPY (SELECT symbol, (observed_at AT TIME ZONE 'UTC')::date, observed_at,
             round(open_amount / 10::numeric ^ scale, scale), round(high_amount / 10::numeric ^ scale, scale),
             round(low_amount / 10::numeric ^ scale, scale), round(amount / 10::numeric ^ scale, scale),
             volume, currency, adjustment, provider, call_id, fetched_at, quality
      FROM pricing.price_history
      WHERE data_type = 'equity_daily' AND symbol = ANY (%(symbols)s)
        AND observed_at >= '1990-01-01' AND observed_at < '2030-01-01'
      ORDER BY symbol, observed_at) TO STDOUT (FORMAT csv, HEADER);
