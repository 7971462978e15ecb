-- Renamed to lock_products: the name stood for a turn at work, too.

DROP FUNCTION IF EXISTS pricing.take_turn(text[], text, bigint);
