-- A bar's open, high, low or volume may be untrue beside a close that is true: the bar is stored without it, and says so.

ALTER TABLE pricing.price_history ADD COLUMN quality text;
COMMENT ON COLUMN pricing.price_history.quality IS
    'Which parts of the source''s bar were dropped, because they cannot be true beside its close, and why; NULL = none.';
ALTER TABLE pricing.price_revisions ADD COLUMN quality text;
COMMENT ON COLUMN pricing.price_revisions.quality IS 'As in price_history.';
ALTER TABLE pricing.latest_prices ADD COLUMN quality text;
COMMENT ON COLUMN pricing.latest_prices.quality IS 'As in price_history, of the bar whose close it is.';

-- They take or give the quality now.
DROP FUNCTION IF EXISTS pricing.merge_prices(text, text, bigint, boolean, text[], timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], text[], numeric[], text[], text[]);
DROP FUNCTION IF EXISTS pricing.merge_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
DROP FUNCTION IF EXISTS pricing.revise_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
DROP FUNCTION IF EXISTS pricing.history(text, text, date, date, timestamptz, text);
DROP FUNCTION IF EXISTS pricing.adjusted_prices(text, text, date, date, timestamptz, text);
DROP FUNCTION IF EXISTS pricing.prices_as_of(text, text, date, date, timestamptz);
