-- A read may be of pairs of several data types. Without a data type it asks only for what is watched or held.
DROP FUNCTION IF EXISTS pricing.spelled_once(text[]);
DROP FUNCTION IF EXISTS pricing.prices_to_read(text[], text);
DROP FUNCTION IF EXISTS pricing.read_prices(text[], text, text);

-- A pair whose provider no worker asks was told to be queued, for ever.
ALTER TABLE pricing.drains ADD COLUMN providers text[];
COMMENT ON COLUMN pricing.drains.providers IS 'The providers that its worker asks; NULL = not known.';
DROP FUNCTION IF EXISTS pricing.extend_drain(uuid);
