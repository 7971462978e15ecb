-- What the queue and the demand are found by.

-- Values of a call come as arrays, no longer through a staging table.
DROP FUNCTION IF EXISTS pricing.open_staging();
DROP FUNCTION IF EXISTS pricing.merge_prices(text, text, bigint, boolean);
