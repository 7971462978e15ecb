-- Terminals of a game, by what they trade. A sync brings all of them once an hour; a watched one is fresher.
INSERT INTO pricing.data_type_registry
    (data_type, description, asset_class, fetcher, default_ttl_minutes, estimated_data_size_bytes) VALUES
    ('commodity_price', 'What a terminal of the game buys and sells, at which price, and how much of it.',
     'commodity', 'terminal_prices', 30, 30000);
INSERT INTO pricing.instruments (asset_class, symbol, name, verified_at) VALUES
    ('commodity', 'UEX:6', 'TDD - Lorville', pricing.clock()),
    ('commodity', 'UEX:15', 'TDD - Orison', pricing.clock())
ON CONFLICT DO NOTHING;
