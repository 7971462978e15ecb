-- Providers of the sample, with the limits of the sample plan. The free plan of Twelve Data would be
-- ('twelvedata', 'minute', 8, 60, NULL) and ('twelvedata', 'day', 800, NULL, 'UTC').
INSERT INTO pricing.data_collectors (provider, description, base_url, max_in_flight, throttle_pause_seconds) VALUES
    ('twelvedata', 'Twelve Data: equities, foreign exchange, crypto', 'https://api.twelvedata.com', 8, 5),
    ('mfapi',      'mfapi.in: net asset values of Indian mutual funds', 'https://api.mfapi.in', 3, 5),
    -- It names no limits and refuses without a word how long: few calls, and a long pause after a refusal.
    ('yahoo',      'Yahoo Finance: equities, funds, currencies, crypto', 'https://query1.finance.yahoo.com', 2, 60);

INSERT INTO pricing.provider_limits (provider, name, units, window_seconds) VALUES
    ('twelvedata', 'minute', 2000, 60),
    ('mfapi',      'second', 4, 1),
    ('yahoo',      'minute', 60, 60);

INSERT INTO pricing.provider_capabilities
    (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol, max_window_days, bytes_per_day) VALUES
    ('twelvedata', 'quote',      100, 1, 0, 1, 1,     0),
    ('twelvedata', 'daily_bars', 100, 1, 0, 1, 5000, 120),
    ('mfapi',      'nav',        1,   1, 1, 0, 20000, 45),
    ('yahoo',      'quote',      20,  1, 1, 0, 1,     0),
    ('yahoo',      'daily_bars', 1,   1, 1, 0, 20000, 130);
