-- The offers of many slots are looked up together.
DROP FUNCTION IF EXISTS pricing.offers_as_of(bigint, timestamptz);
