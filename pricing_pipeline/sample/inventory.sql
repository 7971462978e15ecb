-- Products of partners, and their slots: those of today often, those of a month once a day. A wider answer counts for
-- the narrower types, so that a slot is never asked for twice at the same time.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule, days_ahead,
     estimated_data_size_bytes) VALUES
    ('product_details', 'A product with its options, categories of guests and time zone.',
     'inventory', 'product', 1440, 'scheduled', '30 2 * * *', NULL, 3000),
    ('slots_today', 'Slots of a product on the same day.',
     'inventory', 'slots', 15, 'scheduled', '*/15 * * * *', 1, 9000),
    ('slots_week', 'Slots of a product on seven days, today included.',
     'inventory', 'slots', 240, 'scheduled', '5 */4 * * *', 7, 63000),
    ('slots_month', 'Slots of a product on thirty days, today included.',
     'inventory', 'slots', 1440, 'scheduled', '10 3 * * *', 30, 270000);
INSERT INTO pricing.provider_routing (data_type, symbol, provider)
SELECT data_type, '5002', 'headout' FROM pricing.data_type_registry WHERE contents = 'inventory';
