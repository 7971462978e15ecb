-- The sample registry. Each row is all it takes: storage, assets, freshness policy and refresh follow.
-- Daily values are asked for when they should exist. Quotes go by their TTL alone, because the sandbox trades around
-- the clock; against real providers let them follow their markets, too: staleness_function = 'is_market_stale'.
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

-- Nothing leaves the machine: `pricing-pipeline notify log` shows what would have been sent.
INSERT INTO pricing.recipients (recipient, channel, least_severity, created_at)
VALUES ('mailbox', 'log', 'P2', pricing.clock())
ON CONFLICT (recipient) DO NOTHING;
