-- name: types
-- Every active data type, or every retired one.
SELECT data_type, description, fetcher, asset_class, table_name, default_ttl_minutes, refresh_strategy,
       refresh_schedule, schedule_timezone, history_from, background_ttl_minutes, owner, days_ahead, has_own_table
FROM pricing.data_type_registry WHERE is_active = :is_active ORDER BY data_type;

-- name: version
-- Changes with every change of the registry.
SELECT version FROM pricing.registry_state;

-- name: add
-- One INSERT adds a data type; triggers make its storage and its route.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule,
     schedule_timezone, history_from, background_ttl_minutes, staleness_function, owner, days_ahead)
VALUES (:data_type, :description, :asset_class, :fetcher, :ttl_minutes, :strategy, :schedule, :timezone,
        CAST(:history_from AS date), :background_ttl_minutes, :staleness_function, :owner,
        CAST(:days_ahead AS integer));

-- name: is_empty
-- True for a database that holds no data type yet.
SELECT NOT EXISTS (SELECT FROM pricing.data_type_registry);

-- name: has_providers
-- True once any provider is known.
SELECT EXISTS (SELECT FROM pricing.data_collectors);

-- name: providers
-- Active providers with their address.
SELECT provider, base_url, max_in_flight FROM pricing.data_collectors WHERE is_active ORDER BY provider;

-- name: addresses
-- All providers with their address, switched off or not.
SELECT provider, base_url FROM pricing.data_collectors ORDER BY provider;

-- name: left_out
-- How many instruments each active type with a schedule or a history leaves out of them, by reason, if it does.
SELECT r.data_type, x.left_out
FROM pricing.data_type_registry r
CROSS JOIN LATERAL (SELECT pricing.left_out(r.data_type) AS left_out) x
WHERE r.is_active AND (r.refresh_strategy = 'scheduled' OR r.history_from IS NOT NULL) AND x.left_out <> '{}'
ORDER BY 1;

-- name: routes
-- Providers that serve each active data type, or some symbol of it.
SELECT r.data_type, array_agg(DISTINCT p.provider ORDER BY p.provider) AS providers
FROM pricing.provider_routing r
JOIN pricing.data_collectors p USING (provider)
JOIN pricing.data_type_registry k USING (data_type)
WHERE r.is_active AND p.is_active AND k.is_active
GROUP BY 1
ORDER BY 1;

-- name: add_instrument
-- One instrument of the sample; it is known, so it counts as verified.
INSERT INTO pricing.instruments (asset_class, symbol, name, currency, scale, verified_at)
VALUES (:asset_class, :symbol, :name, :currency, CAST(:scale AS smallint), pricing.clock())
ON CONFLICT DO NOTHING;

-- name: said_of_retired
-- What is known of a retired data type; no row for another one.
SELECT pricing.why_sentence('retired', r.data_type)
FROM pricing.data_type_registry r
WHERE r.data_type = :data_type AND NOT r.is_active;

-- name: one
-- Everything about one data type, active or retired, with how many instruments are of its class.
SELECT r.data_type, r.description, r.is_active, r.fetcher, r.contents, r.asset_class,
       r.default_ttl_minutes AS ttl_minutes, r.background_ttl_minutes,
       r.refresh_strategy AS strategy, r.refresh_schedule AS schedule, r.schedule_timezone AS timezone, r.history_from,
       r.staleness_function, r.thin_after_days, r.thin_to_minutes, r.keep_months, r.owner, r.days_ahead,
       r.has_own_table, r.created_at,
       (SELECT count(*) FROM pricing.instruments i
        WHERE i.asset_class = r.asset_class AND i.is_active) AS instruments
FROM pricing.data_type_registry r
WHERE r.data_type = :data_type;

-- name: change_type
-- Change a data type; columns that the changes do not name stay.
UPDATE pricing.data_type_registry r
SET description = n.description, owner = n.owner, staleness_function = n.staleness_function,
    refresh_strategy = n.refresh_strategy, refresh_schedule = n.refresh_schedule,
    schedule_timezone = n.schedule_timezone, history_from = n.history_from, thin_after_days = n.thin_after_days,
    thin_to_minutes = n.thin_to_minutes, keep_months = n.keep_months, days_ahead = n.days_ahead
FROM pricing.data_type_registry o CROSS JOIN LATERAL jsonb_populate_record(o, CAST(:changes AS jsonb)) n
WHERE r.data_type = :data_type AND o.data_type = r.data_type;

-- name: set_ttl
-- Change the TTLs of a data type; what is NULL stays.
UPDATE pricing.data_type_registry
SET default_ttl_minutes = coalesce(CAST(:ttl_minutes AS integer), default_ttl_minutes),
    background_ttl_minutes = coalesce(CAST(:background_ttl_minutes AS integer), background_ttl_minutes)
WHERE data_type = :data_type
RETURNING default_ttl_minutes, background_ttl_minutes;

-- name: set_own_ttl
-- Give pairs a TTL of their own, or none; returns the symbols that have a row to keep it in.
WITH prices AS (
    UPDATE pricing.latest_prices SET cache_ttl_minutes = CAST(:ttl_minutes AS integer)
    WHERE data_type = :data_type AND symbol = ANY (CAST(:symbols AS text[]))
    RETURNING symbol),
others AS (
    UPDATE pricing.confirmed_pairs SET cache_ttl_minutes = CAST(:ttl_minutes AS integer)
    WHERE data_type = :data_type AND symbol = ANY (CAST(:symbols AS text[]))
    RETURNING symbol)
SELECT symbol FROM prices UNION SELECT symbol FROM others ORDER BY 1;

-- name: set_active
-- Retire a data type or revive it; no row where it is so already.
UPDATE pricing.data_type_registry SET is_active = :is_active
WHERE data_type = :data_type AND is_active <> :is_active
RETURNING data_type;

-- name: rules_of_routes
-- The routes, in the order in which providers are asked.
SELECT r.data_type, r.symbol, r.rank, r.provider, r.is_active, p.is_active AS provider_active
FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider)
WHERE (CAST(:data_type AS text) IS NULL OR r.data_type = :data_type)
  AND (CAST(:provider AS text) IS NULL OR r.provider = :provider)
  AND (CAST(:symbols AS text[]) IS NULL OR r.symbol = ANY (CAST(:symbols AS text[])))
ORDER BY r.data_type, r.symbol NULLS FIRST, r.rank;

-- name: add_route
-- Have a provider serve a data type, or a symbol of it: last in the order unless its place is given.
INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)
SELECT :data_type, CAST(:symbol AS text), :provider, coalesce(CAST(:rank AS smallint), (
    SELECT coalesce(max(r.rank), 0) + 1 FROM pricing.provider_routing r
    WHERE r.data_type = :data_type AND r.symbol IS NOT DISTINCT FROM CAST(:symbol AS text)))
ON CONFLICT (data_type, symbol, provider) DO UPDATE
SET rank = coalesce(CAST(:rank AS smallint), provider_routing.rank), is_active = true
RETURNING rank;

-- name: remove_route
-- Ends a provider's route to a data type, or to a symbol of it.
DELETE FROM pricing.provider_routing
WHERE data_type = :data_type AND provider = :provider AND symbol IS NOT DISTINCT FROM CAST(:symbol AS text)
RETURNING rank;

-- name: rules_of_limits
-- Rate limits of providers, and those of keys that differ.
SELECT l.provider, l.name, k.key_name, coalesce(k.units, l.units) AS units, l.window_seconds, l.day_timezone
FROM pricing.provider_limits l
CROSS JOIN LATERAL (
    SELECT NULL::text AS key_name, NULL::integer AS units
    UNION ALL
    SELECT x.key_name, x.units FROM pricing.provider_key_limits x WHERE (x.provider, x.name) = (l.provider, l.name)) k
WHERE CAST(:provider AS text) IS NULL OR l.provider = :provider
ORDER BY l.provider, l.name, k.key_name NULLS FIRST;

-- name: set_units
-- Change how many units a limit allows; no row for an unknown name.
UPDATE pricing.provider_limits SET units = :units WHERE provider = :provider AND name = :name RETURNING name;

-- name: set_limit
-- Write a limit with its window.
INSERT INTO pricing.provider_limits (provider, name, units, window_seconds, day_timezone)
VALUES (:provider, :name, :units, CAST(:window_seconds AS integer), CAST(:day_timezone AS text))
ON CONFLICT (provider, name) DO UPDATE
SET units = EXCLUDED.units, window_seconds = EXCLUDED.window_seconds, day_timezone = EXCLUDED.day_timezone
RETURNING name;

-- name: set_key_limit
-- Write the units that a limit allows one key.
INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)
VALUES (:provider, :key_name, :name, :units)
ON CONFLICT (provider, key_name, name) DO UPDATE SET units = EXCLUDED.units
RETURNING name;

-- name: remove_limit
-- Removes a limit.
DELETE FROM pricing.provider_limits WHERE provider = :provider AND name = :name RETURNING name;

-- name: remove_key_limit
-- Remove a key's own limit.
DELETE FROM pricing.provider_key_limits
WHERE provider = :provider AND key_name = :key_name AND name = :name
RETURNING name;

-- name: about_providers
-- Providers, including inactive ones: what each can fetch, and what it serves.
SELECT p.provider, p.description, p.base_url, p.is_active, p.max_in_flight, p.request_delay_ms,
       p.throttle_pause_seconds, p.quota_bytes,
       ARRAY(SELECT c.fetcher FROM pricing.provider_capabilities c
             WHERE c.provider = p.provider
             ORDER BY 1) AS fetchers,
       ARRAY(SELECT DISTINCT r.data_type
             FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
             WHERE r.provider = p.provider AND r.is_active AND k.is_active
             ORDER BY 1) AS data_types
FROM pricing.data_collectors p
WHERE CAST(:provider AS text) IS NULL OR p.provider = :provider
ORDER BY 1;

-- name: put_aside
-- Switch all providers off until a plan is in use.
UPDATE pricing.data_collectors SET is_active = false WHERE is_active;

-- name: change_provider
-- Change how a provider is called; columns that the changes do not name stay.
UPDATE pricing.data_collectors p
SET is_active = n.is_active, max_in_flight = n.max_in_flight, request_delay_ms = n.request_delay_ms,
    throttle_pause_seconds = n.throttle_pause_seconds, quota_bytes = n.quota_bytes
FROM pricing.data_collectors o CROSS JOIN LATERAL jsonb_populate_record(o, CAST(:changes AS jsonb)) n
WHERE p.provider = :provider AND o.provider = p.provider;

-- name: batches
-- How large a call may be, by what is asked for.
SELECT fetcher, batch_size, batch_from, window_batch_size, window_days_per_call, max_window_days
FROM pricing.provider_capabilities WHERE provider = :provider ORDER BY fetcher;

-- name: change_batch
-- Change how large a call may be; columns that the changes do not name stay. No row where the provider has no such one.
UPDATE pricing.provider_capabilities c
SET batch_size = n.batch_size, window_batch_size = n.window_batch_size, window_days_per_call = n.window_days_per_call,
    -- A smaller batch is worth a call from its own size on, unless the changes say more.
    batch_from = CASE WHEN CAST(:changes AS jsonb) ? 'batch_from' THEN n.batch_from
                      ELSE least(o.batch_from, greatest(1, n.batch_size)) END
FROM pricing.provider_capabilities o CROSS JOIN LATERAL jsonb_populate_record(o, CAST(:changes AS jsonb)) n
WHERE (o.provider, o.fetcher) = (:provider, :fetcher) AND (c.provider, c.fetcher) = (o.provider, o.fetcher)
RETURNING c.fetcher;

-- name: probe
-- The next task is the probe; no row where the breaker is not open.
UPDATE pricing.provider_state SET breaker_until = pricing.clock()
WHERE provider = :provider AND breaker = 'open'
RETURNING provider;

-- name: caps
-- How many pairs each user may watch, hold and begin, and how many price alerts have.
SELECT pairs_per_user, new_pairs_per_minute, price_alerts_per_user FROM pricing.user_caps;

-- name: set_caps
-- Change the caps of users; what is NULL stays.
UPDATE pricing.user_caps
SET pairs_per_user = coalesce(CAST(:pairs_per_user AS integer), pairs_per_user),
    new_pairs_per_minute = coalesce(CAST(:new_pairs_per_minute AS integer), new_pairs_per_minute),
    price_alerts_per_user = coalesce(CAST(:price_alerts_per_user AS integer), price_alerts_per_user);

-- name: first_stored
-- The day of the first price of each active type of prices without history, if the database or a file has one.
SELECT r.data_type, (s.since AT TIME ZONE 'UTC')::date AS first_day
FROM pricing.data_type_registry r
CROSS JOIN LATERAL (
    SELECT least(
        (SELECT pricing.start_of(min(e.month)) FROM pricing.exported_months e WHERE e.data_type = r.data_type),
        (SELECT min(h.observed_at) FROM pricing.instruments i
         CROSS JOIN LATERAL (SELECT x.observed_at FROM pricing.price_history x
                             WHERE x.data_type = r.data_type AND x.symbol = i.symbol
                             ORDER BY x.observed_at LIMIT 1) h
         WHERE i.asset_class = r.asset_class)) AS since) s
WHERE r.is_active AND r.contents = 'prices' AND r.history_from IS NULL AND s.since IS NOT NULL;
