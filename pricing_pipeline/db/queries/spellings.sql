-- name: at_providers
-- Providers that can be asked for instruments of a class, and how a person has spelled a symbol for each.
SELECT c.provider, s.spelling
FROM pricing.data_collectors c
LEFT JOIN pricing.provider_symbols s ON (s.provider, s.asset_class, s.symbol) = (c.provider, :asset_class, :symbol)
WHERE EXISTS (SELECT FROM pricing.provider_capabilities k JOIN pricing.data_type_registry r USING (fetcher)
              WHERE k.provider = c.provider AND r.asset_class = :asset_class)
ORDER BY 1;

-- name: others
-- The other symbols of a class for which nobody has given a spelling at a provider.
SELECT i.symbol FROM pricing.instruments i
WHERE i.asset_class = :asset_class AND i.symbol <> :symbol AND i.is_active
  AND NOT EXISTS (SELECT FROM pricing.provider_symbols s
                  WHERE (s.provider, s.asset_class, s.symbol) = (:provider, i.asset_class, i.symbol))
ORDER BY 1;

-- name: give
-- Have a provider asked for a symbol in this spelling.
INSERT INTO pricing.provider_symbols (provider, asset_class, symbol, spelling, given_at)
VALUES (:provider, :asset_class, :symbol, :spelling, pricing.clock())
ON CONFLICT (provider, asset_class, symbol) DO UPDATE SET spelling = excluded.spelling, given_at = pricing.clock();

-- name: take_back
-- Remove a symbol's spelling at a provider, so that the rule applies again; returns the removed one.
DELETE FROM pricing.provider_symbols
WHERE (provider, asset_class, symbol) = (:provider, :asset_class, :symbol)
RETURNING spelling;

-- name: holder
-- The symbol of a class for which a person has given this spelling at a provider.
SELECT symbol FROM pricing.provider_symbols
WHERE (provider, asset_class, spelling) = (:provider, :asset_class, :spelling);

-- name: given
-- The spellings that people have given for symbols of a class.
SELECT provider, symbol, spelling FROM pricing.provider_symbols WHERE asset_class = :asset_class ORDER BY 1, 2;

-- name: use
-- Which spelling a person has given for a symbol at a provider, and how many values that are stored of it were read
-- there since then; without one, all that were read there.
SELECT s.spelling,
       (SELECT count(*) FROM pricing.price_history h JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.asset_class = x.asset_class AND h.symbol = x.symbol AND h.provider = x.provider
          AND h.fetched_at >= coalesce(s.given_at, '-infinity')) AS values_read,
       coalesce((SELECT array_agg(r.data_type ORDER BY r.data_type) FROM pricing.data_type_registry r
                 WHERE r.asset_class = x.asset_class
                   AND EXISTS (SELECT FROM pricing.price_history h
                               WHERE (h.data_type, h.symbol, h.provider) = (r.data_type, x.symbol, x.provider)
                                 AND h.fetched_at >= coalesce(s.given_at, '-infinity'))), '{}') AS data_types
FROM (SELECT CAST(:provider AS text) AS provider, CAST(:asset_class AS text) AS asset_class,
             CAST(:symbol AS text) AS symbol) x
LEFT JOIN pricing.provider_symbols s USING (provider, asset_class, symbol);
