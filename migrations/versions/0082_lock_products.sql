-- Renamed to lock_products: the name stood for a turn at work, too.
DROP FUNCTION IF EXISTS pricing.take_turn(text[], text, bigint);

-- Replaced by traded_prices, which reads terminals, too.
DROP FUNCTION IF EXISTS pricing.prices_of_commodity(bigint, timestamptz);
