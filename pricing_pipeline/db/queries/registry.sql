-- name: active
-- Every active data type.
SELECT data_type, description, fetcher, asset_class, table_name, default_ttl_minutes, refresh_strategy,
       refresh_schedule, schedule_timezone, history_from, background_ttl_minutes, owner
FROM pricing.data_type_registry WHERE is_active ORDER BY data_type;

-- name: version
-- Changes with every change of the registry.
SELECT version FROM pricing.registry_state;

-- name: add
-- One INSERT adds a data type; triggers make its storage and its route.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule,
     schedule_timezone, history_from, background_ttl_minutes, staleness_function, owner)
VALUES (:data_type, :description, :asset_class, :fetcher, :ttl_minutes, :strategy, :schedule, :timezone,
        CAST(:history_from AS date), :background_ttl_minutes, :staleness_function, :owner);

-- name: is_empty
-- True for a database that holds no data type yet.
SELECT NOT EXISTS (SELECT FROM pricing.data_type_registry);

-- name: has_providers
-- True once any provider is known.
SELECT EXISTS (SELECT FROM pricing.data_collectors);

-- name: providers
-- Active providers with their address.
SELECT provider, base_url, max_in_flight FROM pricing.data_collectors WHERE is_active ORDER BY provider;

-- name: left_out
-- How many instruments each active type with a schedule or a history leaves out of them, by reason; types that leave out some.
SELECT r.data_type, x.left_out FROM pricing.data_type_registry r CROSS JOIN LATERAL (SELECT pricing.left_out(r.data_type) AS left_out) x
WHERE r.is_active AND (r.refresh_strategy = 'scheduled' OR r.history_from IS NOT NULL) AND x.left_out <> '{}' ORDER BY 1;

-- name: routes
-- Providers that serve each active data type, or some symbol of it.
SELECT r.data_type, array_agg(DISTINCT p.provider ORDER BY p.provider) AS providers
FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider) JOIN pricing.data_type_registry k USING (data_type)
WHERE r.is_active AND p.is_active AND k.is_active GROUP BY 1 ORDER BY 1;

-- name: add_instrument
-- One instrument of the sample; it is known, so it counts as verified.
INSERT INTO pricing.instruments (asset_class, symbol, name, currency, scale, verified_at)
VALUES (:asset_class, :symbol, :name, :currency, CAST(:scale AS smallint), pricing.clock()) ON CONFLICT DO NOTHING;
