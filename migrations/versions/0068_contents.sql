-- A data type consists of prices, documents, slots or prices of commodities. The core knows only that each has a name, a
-- view and fetchers; functions of that name do the rest.
CREATE TABLE pricing.contents (
    contents text PRIMARY KEY CONSTRAINT contents_is_plain_name CHECK (contents ~ '^[a-z][a-z0-9_]{0,30}$'),
    view_prefix text NOT NULL,
    description text NOT NULL
);
COMMENT ON TABLE pricing.contents IS 'What a data type can consist of. Each has storage of its own.';
COMMENT ON COLUMN pricing.contents.contents IS 'Its name.';
COMMENT ON COLUMN pricing.contents.view_prefix IS 'The view of a data type has this before the name of the type.';
COMMENT ON COLUMN pricing.contents.description IS 'For people.';
INSERT INTO pricing.contents (contents, view_prefix, description) VALUES
    ('prices', 'latest_price_', 'Prices of a symbol, one for each time, with a history.'),
    ('documents', 'document_', 'What a provider publishes about a symbol: flat bodies, one for each period.'),
    ('inventory', 'inventory_', 'Slots of a product: times, remaining places, and what they cost.'),
    ('commodities', 'commodity_', 'What a terminal of a game buys and sells, at which price, and how much of it.');

CREATE TABLE pricing.fetchers (
    fetcher text PRIMARY KEY,
    contents text NOT NULL REFERENCES pricing.contents,
    asset_classes text[],
    description text NOT NULL
);
CREATE INDEX fetchers_by_contents ON pricing.fetchers (contents);
COMMENT ON TABLE pricing.fetchers IS 'What a provider can be asked for. The registry names one for each data type.';
COMMENT ON COLUMN pricing.fetchers.fetcher IS 'Its name.';
COMMENT ON COLUMN pricing.fetchers.contents IS 'What the answers consist of.';
COMMENT ON COLUMN pricing.fetchers.asset_classes IS 'The classes of instruments that have it; NULL = all.';
COMMENT ON COLUMN pricing.fetchers.description IS 'For people.';
INSERT INTO pricing.fetchers (fetcher, contents, asset_classes, description) VALUES
    ('quote', 'prices', NULL, 'The latest price, stamped by the source.'),
    ('daily_bars', 'prices', NULL, 'Open, high, low, close and volume of each trading day.'),
    ('nav', 'prices', '{fund,etf}', 'One net asset value for each day.'),
    ('profile', 'documents', '{equity,etf,fund}', 'The profile of a company.'),
    ('earnings', 'documents', '{equity,etf,fund}', 'Actual and expected earnings per share.'),
    ('income_statement', 'documents', '{equity,etf,fund}', 'Annual income statements.'),
    ('dividends', 'documents', '{equity,etf,fund}', 'The dividends of a share.'),
    ('splits', 'documents', '{equity,etf,fund}', 'The splits of a share.'),
    ('product', 'inventory', '{inventory}', 'A product with its options and categories of guests.'),
    ('slots', 'inventory', '{inventory}', 'The slots of a product on the next days, with places and prices.'),
    ('terminal_prices', 'commodities', '{commodity}', 'All that a terminal of a game buys and sells.');

-- The registry has a few rows, and the pipeline is stopped for an upgrade.
ALTER TABLE pricing.data_type_registry
    ADD COLUMN contents text NOT NULL DEFAULT '',
    ADD COLUMN has_own_table boolean NOT NULL DEFAULT false,
    ADD COLUMN days_ahead integer;
UPDATE pricing.data_type_registry r SET contents = f.contents, has_own_table = r.table_name <> c.view_prefix || r.data_type
FROM pricing.fetchers f JOIN pricing.contents c USING (contents) WHERE f.fetcher = r.fetcher;
ALTER TABLE pricing.data_type_registry
    DROP CONSTRAINT fetcher_is_known,
    DROP CONSTRAINT documents_have_no_backfill,
    -- squawk-ignore adding-foreign-key-constraint
    ADD CONSTRAINT fetcher_is_known FOREIGN KEY (fetcher) REFERENCES pricing.fetchers,
    -- squawk-ignore adding-foreign-key-constraint
    ADD CONSTRAINT contents_are_known FOREIGN KEY (contents) REFERENCES pricing.contents,
    ADD CONSTRAINT only_prices_have_backfill CHECK (contents = 'prices' OR history_from IS NULL),
    ADD CONSTRAINT slots_have_days_ahead CHECK ((fetcher = 'slots') = (days_ahead IS NOT NULL)),
    ADD CONSTRAINT days_ahead_are_at_most_two_years CHECK (days_ahead BETWEEN 1 AND 731);
COMMENT ON COLUMN pricing.data_type_registry.contents IS 'What it consists of, by its fetcher; a trigger writes it.';
COMMENT ON COLUMN pricing.data_type_registry.has_own_table IS 'Whether table_name is a table or view that the user has made; a trigger writes it. Such a table is filled with what is fetched.';
COMMENT ON COLUMN pricing.data_type_registry.days_ahead IS 'For how many days of the product''s calendar slots are asked for, 1 = today; only of the fetcher slots.';

-- It says when each pair was last confirmed, of all contents but prices, which know it themselves.
-- squawk-ignore renaming-table
ALTER TABLE pricing.document_pairs RENAME TO confirmed_pairs;
-- squawk-ignore renaming-object
ALTER TABLE pricing.confirmed_pairs RENAME CONSTRAINT document_pairs_pkey TO confirmed_pairs_pkey;
-- squawk-ignore renaming-object
ALTER TABLE pricing.confirmed_pairs RENAME CONSTRAINT document_ttl_is_positive TO confirmed_ttl_is_positive;
COMMENT ON TABLE pricing.confirmed_pairs IS
    'When each pair of a data type without prices was last confirmed: what its staleness is judged by.';
COMMENT ON COLUMN pricing.confirmed_pairs.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.confirmed_pairs.symbol IS 'About whom or what.';

-- The column says it now.
DROP FUNCTION IF EXISTS pricing.is_document(text);
