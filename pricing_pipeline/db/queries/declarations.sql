-- name: all
-- Declarations of providers.
SELECT provider, host, content FROM pricing.provider_declarations ORDER BY 1;

-- name: begin
-- One declaration is written at a time: two could name one host.
LOCK TABLE pricing.provider_declarations IN SHARE ROW EXCLUSIVE MODE;

-- name: lock
-- Lock a provider by its name, so that nobody stores keys of it; no row for an unknown name.
SELECT p.provider, EXISTS (SELECT FROM pricing.provider_declarations d WHERE d.provider = p.provider) AS is_declared
FROM pricing.data_collectors p WHERE p.provider = :provider FOR UPDATE;

-- name: addresses
-- Base URLs of all other providers.
SELECT provider, base_url FROM pricing.data_collectors WHERE provider <> :provider ORDER BY 1;

-- name: settings
-- The present settings of a provider that a declaration decides.
SELECT p.description, p.base_url, p.max_in_flight, p.request_delay_ms, p.throttle_pause_seconds, p.quota_bytes,
       (SELECT coalesce(jsonb_object_agg(
                   c.fetcher, to_jsonb(c) - '{provider,fetcher,routes_new_types,window_days_per_call}'::text[]), '{}')
        FROM pricing.provider_capabilities c WHERE c.provider = p.provider) AS capabilities,
       d.host, d.content
FROM pricing.data_collectors p LEFT JOIN pricing.provider_declarations d USING (provider)
WHERE p.provider = :provider;

-- name: put_provider
-- How a declared provider is called. One that was switched off stays so.
INSERT INTO pricing.data_collectors AS p
    (provider, description, base_url, max_in_flight, request_delay_ms, throttle_pause_seconds, quota_bytes)
VALUES (:provider, :description, :base_url, :max_in_flight, :request_delay_ms, :throttle_pause_seconds, :quota_bytes)
ON CONFLICT (provider) DO UPDATE
SET description = excluded.description, base_url = excluded.base_url, max_in_flight = excluded.max_in_flight,
    request_delay_ms = excluded.request_delay_ms, throttle_pause_seconds = excluded.throttle_pause_seconds,
    quota_bytes = excluded.quota_bytes
WHERE (p.description, p.base_url, p.max_in_flight, p.request_delay_ms, p.throttle_pause_seconds, p.quota_bytes)
    IS DISTINCT FROM (excluded.description, excluded.base_url, excluded.max_in_flight, excluded.request_delay_ms,
                      excluded.throttle_pause_seconds, excluded.quota_bytes);

-- name: put_declaration
-- The declaration itself, behind its provider's row.
INSERT INTO pricing.provider_declarations AS d (provider, host, content) VALUES (:provider, :host, :content)
ON CONFLICT (provider) DO UPDATE SET host = excluded.host, content = excluded.content
WHERE (d.host, d.content) IS DISTINCT FROM (excluded.host, excluded.content);

-- name: put_capability
-- What a declared provider can be asked for. New data types find no route to it by themselves.
INSERT INTO pricing.provider_capabilities AS c
    (provider, fetcher, batch_size, batch_from, window_batch_size, units_per_call, units_per_symbol, max_window_days,
     bytes_per_day, routes_new_types)
VALUES (:provider, :fetcher, :batch_size, :batch_from, :window_batch_size, :units_per_call, :units_per_symbol,
        :max_window_days, :bytes_per_day, false)
ON CONFLICT (provider, fetcher) DO UPDATE
SET batch_size = excluded.batch_size, batch_from = excluded.batch_from, window_batch_size = excluded.window_batch_size,
    units_per_call = excluded.units_per_call, units_per_symbol = excluded.units_per_symbol,
    max_window_days = excluded.max_window_days, bytes_per_day = excluded.bytes_per_day, window_days_per_call = NULL
WHERE (c.batch_size, c.batch_from, c.window_batch_size, c.units_per_call, c.units_per_symbol, c.max_window_days,
       c.bytes_per_day, c.window_days_per_call)
    IS DISTINCT FROM (excluded.batch_size, excluded.batch_from, excluded.window_batch_size, excluded.units_per_call,
                      excluded.units_per_symbol, excluded.max_window_days, excluded.bytes_per_day, NULL);

-- name: keep_capabilities
-- A provider can be asked for these fetchers only.
DELETE FROM pricing.provider_capabilities WHERE provider = :provider AND fetcher <> ALL (CAST(:fetchers AS text[]));

-- name: uses
-- Uses of a provider for other fetchers than these: data types with a route to it, the first such route as a command
-- names it, and data types with unfinished tasks.
SELECT ARRAY(SELECT DISTINCT r.data_type
             FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
             WHERE r.provider = :provider AND k.fetcher <> ALL (CAST(:fetchers AS text[]))
             ORDER BY 1) AS routed,
       (SELECT concat_ws(' ', r.symbol, '--type', r.data_type)
        FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
        WHERE r.provider = :provider AND k.fetcher <> ALL (CAST(:fetchers AS text[]))
        ORDER BY r.data_type, r.symbol LIMIT 1) AS route,
       ARRAY(SELECT DISTINCT q.data_type
             FROM pricing.api_call_queue_live q JOIN pricing.data_type_registry k USING (data_type)
             WHERE q.provider = :provider AND k.fetcher <> ALL (CAST(:fetchers AS text[]))
             ORDER BY 1) AS queued;

-- name: remove
-- Forget a declared provider: how it is called, its limits and its keys. Its calls stay in the log, and its prices
-- where they are.
WITH limits AS (DELETE FROM pricing.provider_limits WHERE provider = :provider),
     capabilities AS (DELETE FROM pricing.provider_capabilities WHERE provider = :provider)
DELETE FROM pricing.data_collectors WHERE provider = :provider;

-- name: plan
-- The plan of a provider that is in use.
SELECT plan FROM pricing.provider_plans WHERE provider = :provider;
