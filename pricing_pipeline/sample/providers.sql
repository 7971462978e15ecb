-- Providers of the sample, with the limits of the sample plan. The free plan of Twelve Data would be
-- ('twelvedata', 'minute', 8, 60, NULL) and ('twelvedata', 'day', 800, NULL, 'UTC'); that of Financial Modeling Prep
-- ('fmp', 'day', 250, 86400, NULL) and a batch_size of 1 for its quotes.
INSERT INTO pricing.data_collectors (provider, description, base_url, max_in_flight, throttle_pause_seconds) VALUES
    ('twelvedata', 'Twelve Data: equities, foreign exchange, crypto', 'https://api.twelvedata.com', 8, 5),
    ('mfapi',      'mfapi.in: net asset values of Indian mutual funds', 'https://api.mfapi.in', 3, 5),
    -- It names no limits and refuses without a word how long: few calls, and a long pause after a refusal.
    ('yahoo',      'Yahoo Finance: equities, funds, currencies, crypto', 'https://query1.finance.yahoo.com', 2, 60),
    ('fmp',        'Financial Modeling Prep: documents on companies; quotes and bars of shares',
                   'https://financialmodelingprep.com/stable', 5, 60),
    -- OCTO is a standard: the address is that of the partner whose products are asked for.
    ('octo',       'A partner that follows OCTO: tours and activities', 'https://api.ventrata.com/octo', 2, 60),
    ('headout',    'Headout: tours and activities', 'https://www.headout.com/api/public/v1', 2, 60);
-- It names no limits either: these were seen with one account.
INSERT INTO pricing.data_collectors
    (provider, description, base_url, max_in_flight, request_delay_ms, throttle_pause_seconds) VALUES
    ('uex', 'UEX: prices of commodities in a game, by terminal', 'https://api.uexcorp.space/2.0', 1, 500, 5);

INSERT INTO pricing.provider_limits (provider, name, units, window_seconds) VALUES
    ('twelvedata', 'minute', 2000, 60),
    ('mfapi',      'second', 4, 1),
    ('yahoo',      'minute', 60, 60),
    ('fmp',        'minute', 300, 60),
    ('octo',       'minute', 30, 60),
    ('headout',    'minute', 30, 60),
    ('uex',        'minute', 10, 60);
INSERT INTO pricing.provider_limits (provider, name, units, day_timezone) VALUES ('uex', 'day', 14400, 'UTC');

INSERT INTO pricing.provider_capabilities
    (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol, max_window_days, bytes_per_day,
     routes_new_types) VALUES
    ('twelvedata', 'quote',      100, 1, 0, 1, 1,     0, true),
    ('twelvedata', 'daily_bars', 100, 120, 0, 1, 5000, 120, true),
    ('mfapi',      'nav',        1,   1, 1, 0, 20000, 45, true),
    ('yahoo',      'quote',      20,  1, 1, 0, 1,     0, true),
    ('yahoo',      'daily_bars', 1,   1, 1, 0, 20000, 130, true),
    -- Its prices name no currency, and it lacks many pairs and coins: they come from it only where a route says so.
    ('fmp',        'quote',      100, 1, 1, 0, 1,     0, false),
    ('fmp',        'daily_bars', 1,   1, 1, 0, 1825, 60, false),
    ('fmp',        'profile',          1, 1, 1, 0, 1, 0, true),
    ('fmp',        'earnings',         1, 1, 1, 0, 1, 0, true),
    ('fmp',        'income_statement', 1, 1, 1, 0, 1, 0, true),
    ('fmp',        'dividends',        1, 1, 1, 0, 1, 0, true),
    ('fmp',        'splits',           1, 1, 1, 0, 1, 0, true),
    -- Each partner has products of its own: a symbol of Headout comes from it by a route of its own.
    ('octo',       'product',          1, 1, 1, 0, 1, 0, true),
    ('octo',       'slots',            1, 1, 1, 0, 366, 8000, true),
    ('headout',    'product',          1, 1, 1, 0, 1, 0, false),
    ('headout',    'slots',            1, 1, 1, 0, 366, 8000, false),
    ('uex',        'terminal_prices', 10, 1, 1, 0, 1, 0, true);

-- mfapi has one list of the latest NAVs of all schemes, some 10 MB (1 MB packed). It is worth that once single calls
-- would take two minutes, at four a second.
UPDATE pricing.provider_capabilities SET batch_size = 5000, batch_from = 500
WHERE provider = 'mfapi' AND fetcher = 'nav';

-- Short spans share a call. A long one travels alone: its bars are read by columns, in a tenth of the time.
UPDATE pricing.provider_capabilities SET window_days_per_call = 2000
WHERE provider = 'twelvedata' AND fetcher = 'daily_bars';
