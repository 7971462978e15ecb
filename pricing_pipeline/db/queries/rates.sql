-- name: between
-- The rates between two currencies on some days, oldest first, a row in all, as history.columns has its columns.
SELECT string_agg(timestamptz_send(r.observed_at), '') AS observed_at,
       string_agg(int8send(r.amount), '') AS amounts,
       string_agg(int2send(r.scale), '') AS scales,
       string_agg(int2send(r.is_inverse::integer::smallint), '') AS inverse
FROM pricing.rates_between(:from_currency, :to_currency, CAST(:first_day AS date), CAST(:last_day AS date),
                           CAST(:as_of AS timestamptz), :of_days) r;

-- name: pairs
-- The exchange rates that are known, which have one of two currencies.
SELECT i.symbol FROM pricing.instruments i
WHERE i.asset_class = 'fx'
  AND (split_part(i.symbol, '/', 1) = ANY (CAST(:currencies AS text[]))
       OR split_part(i.symbol, '/', 2) = ANY (CAST(:currencies AS text[])));

-- name: latest
-- The latest rates that have one of some currencies, the newest first; of two of one time the quote.
SELECT l.data_type, l.symbol, l.amount, l.scale, l.observed_at
FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
WHERE r.asset_class = 'fx' AND r.is_active AND l.amount > 0
  AND (l.currency = split_part(l.symbol, '/', 2)) IS NOT FALSE
  AND (split_part(l.symbol, '/', 1) = ANY (CAST(:currencies AS text[]))
       OR split_part(l.symbol, '/', 2) = ANY (CAST(:currencies AS text[])))
ORDER BY l.observed_at DESC, r.fetcher <> 'quote', l.data_type;

-- name: currency_of
-- In which currency an instrument of a data type trades, where its values name none.
SELECT i.currency FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
WHERE r.data_type = :data_type AND i.symbol = :symbol;

-- name: type_of_rates
-- A data type of exchange rates that people may watch; NULL if there is none.
SELECT min(r.data_type) FROM pricing.data_type_registry r
WHERE r.asset_class = 'fx' AND r.is_active AND r.fetcher = 'quote';
