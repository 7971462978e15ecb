-- name: settings
-- The present settings of a provider that a plan decides.
SELECT p.is_active,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('name', l.name, 'units', l.units, 'seconds', l.window_seconds,
                                                     'day', l.day_timezone) ORDER BY l.name), '[]')
        FROM pricing.provider_limits l WHERE l.provider = p.provider) AS limits,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('key_name', k.key_name, 'name', k.name, 'units', k.units)
                                  ORDER BY k.name, k.key_name), '[]')
        FROM pricing.provider_key_limits k WHERE k.provider = p.provider) AS key_limits,
       (SELECT coalesce(jsonb_agg(r.data_type ORDER BY r.data_type), '[]')
        FROM pricing.provider_routing r
        WHERE r.provider = p.provider AND r.symbol IS NULL AND r.is_active
          AND r.data_type = ANY (CAST(:data_types AS text[]))) AS routes,
       (SELECT coalesce(jsonb_object_agg(c.fetcher, c.batch_size), '{}')
        FROM pricing.provider_capabilities c
        WHERE c.provider = p.provider AND c.fetcher = ANY (CAST(:fetchers AS text[]))) AS batch,
       (SELECT coalesce(jsonb_object_agg(c.fetcher, c.batch_from), '{}')
        FROM pricing.provider_capabilities c
        WHERE c.provider = p.provider AND c.fetcher = ANY (CAST(:fetchers AS text[]))) AS batch_from,
       (SELECT coalesce(jsonb_object_agg(r.data_type, jsonb_build_object(
                   'ttl_minutes', r.default_ttl_minutes, 'staleness_function', r.staleness_function,
                   'is_active', true)), '{}')
        FROM pricing.data_type_registry r
        WHERE r.data_type = ANY (CAST(:data_types AS text[])) AND r.is_active) AS types
FROM pricing.data_collectors p
WHERE p.provider = :provider;

-- name: keep
-- Store the plan of a provider, and the settings from before its first plan.
INSERT INTO pricing.provider_plans (provider, plan, symbols, settings_before)
VALUES (:provider, :plan, :symbols, CAST(:before AS jsonb))
ON CONFLICT (provider) DO UPDATE
SET plan = excluded.plan, symbols = excluded.symbols,
    -- Settings that the first plan did not decide have not changed until now.
    settings_before = provider_plans.settings_before || jsonb_build_object(
        'types', excluded.settings_before -> 'types' || provider_plans.settings_before -> 'types',
        'batch', excluded.settings_before -> 'batch' || provider_plans.settings_before -> 'batch',
        -- Plans of an earlier version did not store it.
        'batch_from', excluded.settings_before -> 'batch_from'
                      || coalesce(provider_plans.settings_before -> 'batch_from', '{}'));

-- name: forget
-- Remove the plan of a provider; returns the settings from before it.
DELETE FROM pricing.provider_plans WHERE provider = :provider RETURNING settings_before;

-- name: types_before
-- Data types as they were before the plans of other providers.
SELECT coalesce(jsonb_object_agg(t.key, t.value), '{}')
FROM pricing.provider_plans p
CROSS JOIN jsonb_each(p.settings_before -> 'types') t
WHERE p.provider <> :provider;

-- name: in_use
-- The plans in use.
SELECT provider, plan FROM pricing.provider_plans ORDER BY 1;

-- name: activate
-- Switch a provider on or off.
UPDATE pricing.data_collectors SET is_active = :is_active WHERE provider = :provider AND is_active <> :is_active;

-- name: set_type
-- Set the TTL and staleness function of a data type, and whether it is active.
UPDATE pricing.data_type_registry
SET default_ttl_minutes = :ttl_minutes, staleness_function = :staleness_function, is_active = :is_active
WHERE data_type = :data_type
  AND (default_ttl_minutes, staleness_function, is_active)
      IS DISTINCT FROM (:ttl_minutes, :staleness_function, :is_active);

-- name: count_check
-- Count the call that has tried a key, and its pages.
WITH made AS (
    SELECT b.bytes, b.number, nextval('pricing.call_id_seq') AS call_id
    FROM unnest(CAST(:wire_bytes AS bigint[])) WITH ORDINALITY AS b (bytes, number))
INSERT INTO pricing.collector_call_log
    (call_id, provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, wire_bytes,
     worker, started_at, finished_at, outcome, http_status, page_of)
SELECT m.call_id, c.provider, :key_name, :data_type, ARRAY[CAST(:symbol AS text)], '-infinity', 'infinity',
       c.units_per_call + c.units_per_symbol, m.bytes, m.bytes, 'provider use', pricing.clock(), pricing.clock(), 'ok',
       :http_status, CASE WHEN m.number > 1 THEN (SELECT f.call_id FROM made f WHERE f.number = 1) END
FROM made m CROSS JOIN pricing.provider_capabilities c
WHERE (c.provider, c.fetcher) = (:provider, :fetcher);

-- name: routes_of_symbols
-- The routes of single symbols to a provider.
SELECT r.data_type, r.symbol FROM pricing.provider_routing r
WHERE r.provider = :provider AND r.symbol IS NOT NULL AND r.is_active
ORDER BY 1, 2;
