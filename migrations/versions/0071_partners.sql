-- Two partners that sell tours and activities. A new database gets them with its sample; one that has providers already gets
-- them here, in use where all of its providers are.
INSERT INTO pricing.data_collectors (provider, description, base_url, max_in_flight, throttle_pause_seconds, is_active)
SELECT p.provider, p.description, p.base_url, 2, 60, (SELECT bool_and(is_active) FROM pricing.data_collectors)
FROM (VALUES
    ('octo', 'A partner that follows OCTO: tours and activities', 'https://api.ventrata.com/octo'),
    ('headout', 'Headout: tours and activities', 'https://www.headout.com/api/public/v1')
) AS p (provider, description, base_url)
WHERE EXISTS (SELECT FROM pricing.data_collectors)
ON CONFLICT (provider) DO NOTHING;

INSERT INTO pricing.provider_limits (provider, name, units, window_seconds)
SELECT provider, 'minute', 30, 60 FROM pricing.data_collectors WHERE provider IN ('octo', 'headout')
ON CONFLICT (provider, name) DO NOTHING;

INSERT INTO pricing.provider_capabilities
    (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol, max_window_days, bytes_per_day, routes_new_types)
SELECT p.provider, f.fetcher, 1, 1, 1, 0, 366, f.bytes, p.provider = 'octo'
FROM pricing.data_collectors p, (VALUES ('product', 0), ('slots', 8000)) AS f (fetcher, bytes)
WHERE p.provider IN ('octo', 'headout')
ON CONFLICT (provider, fetcher) DO NOTHING;
