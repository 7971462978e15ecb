-- The sample registry. Each row is all it takes: storage, assets, freshness policy and refresh follow.
-- Daily values are asked for when they should exist. Quotes go by their TTL alone, because the sandbox trades around the
-- clock; against real providers let them follow their markets, too: staleness_function = 'is_market_stale'.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule,
     schedule_timezone, history_from, estimated_data_size_bytes, staleness_function) VALUES
    ('equity_quote', 'Latest price of a share, refreshed every minute while someone watches.',
     'equity', 'quote', 1, 'on-demand', NULL, 'UTC', NULL, 600, 'is_data_stale'),
    ('equity_daily', 'Daily open, high, low, close and volume of a share, unadjusted.',
     'equity', 'daily_bars', 1440, 'on-demand', NULL, 'America/New_York', '2000-01-01', 1500, 'is_market_stale'),
    ('fx_rate', 'Latest exchange rate of a currency pair.',
     'fx', 'quote', 15, 'on-demand', NULL, 'UTC', NULL, 600, 'is_data_stale'),
    ('mf_nav', 'Net asset value of an Indian mutual fund, published once a day.',
     'fund', 'nav', 1440, 'scheduled', '30 23 * * *', 'Asia/Kolkata', '2006-04-01', 800, 'is_market_stale');

-- Products of partners, and their slots: those of today often, those of a month once a day. A wider answer counts for the
-- narrower types, so that a slot is never asked for twice at the same time.
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

-- Nothing leaves the machine: `pricing-pipeline notify log` shows what would have been sent.
INSERT INTO pricing.recipients (recipient, channel, least_severity, created_at) VALUES ('mailbox', 'log', 'P2', pricing.clock())
ON CONFLICT (recipient) DO NOTHING;
