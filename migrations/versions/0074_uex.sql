-- The provider of commodities. A new database gets it with its sample; one that has providers already gets it here, in use
-- where all of its providers are.
INSERT INTO pricing.data_collectors (provider, description, base_url, max_in_flight, request_delay_ms, throttle_pause_seconds, is_active)
SELECT 'uex', 'UEX: prices of commodities in a game, by terminal', 'https://api.uexcorp.space/2.0', 1, 500, 5, bool_and(is_active)
FROM pricing.data_collectors HAVING count(*) > 0
ON CONFLICT (provider) DO NOTHING;

INSERT INTO pricing.provider_limits (provider, name, units, window_seconds, day_timezone)
SELECT provider, l.name, l.units, l.window_seconds, l.day_timezone
FROM pricing.data_collectors, (VALUES ('minute', 10, 60, NULL), ('day', 14400, NULL, 'UTC')) AS l (name, units, window_seconds, day_timezone)
WHERE provider = 'uex'
ON CONFLICT (provider, name) DO NOTHING;

INSERT INTO pricing.provider_capabilities
    (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol, max_window_days, bytes_per_day, routes_new_types)
SELECT provider, 'terminal_prices', 10, 1, 1, 0, 1, 0, true FROM pricing.data_collectors WHERE provider = 'uex'
ON CONFLICT (provider, fetcher) DO NOTHING;
