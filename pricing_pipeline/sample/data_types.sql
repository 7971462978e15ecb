-- The sample registry. Each row is all it takes: storage, assets, freshness policy and refresh follow.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule,
     schedule_timezone, history_from, estimated_data_size_bytes) VALUES
    ('equity_quote', 'Latest price of a share, refreshed every minute while someone watches.',
     'equity', 'quote', 1, 'on-demand', NULL, 'UTC', NULL, 600),
    ('equity_daily', 'Daily open, high, low, close and volume of a share, unadjusted.',
     'equity', 'daily_bars', 1440, 'on-demand', NULL, 'America/New_York', '2000-01-01', 1500),
    ('fx_rate', 'Latest exchange rate of a currency pair.',
     'fx', 'quote', 15, 'on-demand', NULL, 'UTC', NULL, 600),
    ('mf_nav', 'Net asset value of an Indian mutual fund, published once a day.',
     'fund', 'nav', 1440, 'scheduled', '30 23 * * *', 'Asia/Kolkata', '2006-04-01', 800);
