-- Renamed to lock_products: the name stood for a turn at work, too. Only functions call it.
-- `prices_of_commodity` stays until a later version: processes of the version before call it during an upgrade.
DROP FUNCTION IF EXISTS pricing.take_turn(text[], text, bigint);
