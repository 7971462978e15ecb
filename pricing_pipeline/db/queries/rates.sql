-- name: between
-- The rates of a pair of currencies on some days, oldest first, a row in all, as history.columns has its columns.
SELECT string_agg(timestamptz_send(r.at), '') AS times,
       string_agg(int8send(r.amount), '') AS amounts,
       string_agg(int2send((2 * r.scale + r.is_inverse::integer)::smallint), '') AS kinds,
       string_agg(r.words, E'\n') AS words
FROM pricing.rates_between(:from_currency, :to_currency, :of, CAST(:first_day AS date), CAST(:last_day AS date),
                           CAST(:as_of AS timestamptz), pricing.read_moved(CAST(:archived AS jsonb))) r;

-- name: moved
-- The exchange rates of which values of some days have moved to files.
SELECT m.data_type, m.symbol FROM pricing.moved_days m JOIN pricing.data_type_registry r USING (data_type)
WHERE r.asset_class = 'fx' AND m.noted_days && daterange(CAST(:first_day AS date), CAST(:last_day AS date), '[]');

-- name: latest
-- The latest rates of some currencies, and the pairs that these are of.
SELECT c.currency, r.* FROM unnest(CAST(:currencies AS text[])) c (currency)
CROSS JOIN LATERAL pricing.latest_rate(c.currency, :to_currency) r
WHERE r.up IS NOT NULL;

-- name: currency_of
-- In which currency an instrument of a data type trades, where its values name none.
SELECT i.currency FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
WHERE r.data_type = :data_type AND i.symbol = :symbol;

-- name: currencies
-- The currencies of the prices of some pairs.
SELECT DISTINCT coalesce(l.currency, i.currency)
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol)
JOIN pricing.data_type_registry r USING (data_type)
LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol);

-- name: type_of_rates
-- A data type of exchange rates that people may watch; NULL if there is none.
SELECT min(r.data_type) FROM pricing.data_type_registry r
WHERE r.asset_class = 'fx' AND r.is_active AND r.fetcher = 'quote';
