-- name: between
-- The rates of a pair of currencies on some days.
SELECT r.data_type, r.symbol, r.has_moved, r.is_inverse, r.times, r.amounts, r.scales
FROM pricing.rates_between(:from_currency, :to_currency, :of_days, CAST(:first_day AS date), CAST(:last_day AS date),
                           CAST(:as_of AS timestamptz), pricing.read_moved(CAST(:moved AS jsonb))) r;

-- name: pairs
-- The known currency pairs that contain any of these currencies.
SELECT i.symbol FROM pricing.instruments i
WHERE i.asset_class = 'fx' AND string_to_array(i.symbol, '/') && CAST(:currencies AS text[]);

-- name: latest
-- The latest rates of pairs that contain any of these currencies, in both directions. The newest counts; of the same
-- time, a quote before a bar, then the pair itself before its inverse.
SELECT DISTINCT ON (way.base, way.quote)
       way.base, way.quote, way.is_inverse, l.data_type, l.symbol, l.amount, l.scale, l.observed_at
FROM pricing.data_type_registry r
JOIN pricing.latest_prices l USING (data_type)
CROSS JOIN LATERAL (SELECT split_part(l.symbol, '/', 1) AS base, split_part(l.symbol, '/', 2) AS quote) pair
CROSS JOIN LATERAL (VALUES (pair.base, pair.quote, false), (pair.quote, pair.base, true)) way (base, quote, is_inverse)
WHERE r.asset_class = 'fx' AND r.is_active AND l.amount > 0 AND (l.currency = pair.quote) IS NOT FALSE
  AND ARRAY[pair.base, pair.quote] && CAST(:currencies AS text[])
ORDER BY way.base, way.quote, l.observed_at DESC, r.fetcher <> 'quote', way.is_inverse, l.data_type;

-- name: moved_of_payments
-- The exchange rates, moved to files, that a total return may need, with the days of their payments: rates between the
-- currency of a payment and one of the instrument's prices.
WITH own AS (
    SELECT h.currency FROM pricing.price_history h WHERE h.data_type = :data_type AND h.symbol = :symbol
    UNION
    SELECT i.currency FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
    WHERE r.data_type = :data_type AND i.symbol = :symbol)
SELECT s.data_type, s.symbol, min(a.ex_on) AS first_day, max(a.ex_on) AS last_day
FROM pricing.data_type_registry r
CROSS JOIN LATERAL pricing.actions_as_of(r.asset_class, :symbol, CAST(:as_of AS timestamptz)) a
JOIN own ON own.currency <> a.currency
CROSS JOIN LATERAL pricing.sources_of_rates(a.currency, own.currency) s
JOIN pricing.moved_days m ON (m.data_type, m.symbol) = (s.data_type, s.symbol) AND m.noted_days @> a.ex_on
WHERE r.data_type = :data_type AND a.amount IS NOT NULL AND a.ex_on > CAST(:first_day AS date)
GROUP BY 1, 2
ORDER BY 1, 2;

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
