-- No version is released yet, so no client is at work while this runs.
-- squawk-ignore-file ban-drop-view, changing-column-type, adding-serial-primary-key-field
ALTER TABLE pricing.slot_windows ADD COLUMN unread_days date[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.slot_windows.unread_days IS
    'Those of the days on which the answer has a slot whose id cannot be read: it says nothing about them.';

-- Prices of a game may have fractions, and a commodity may have a price for each quality.
DROP FUNCTION IF EXISTS pricing.best_routes(text, integer);
DROP VIEW pricing.trade_routes;
ALTER TABLE pricing.commodity_prices
    ADD COLUMN quality text NOT NULL DEFAULT '',
    ALTER COLUMN buy TYPE numeric,
    ALTER COLUMN sell TYPE numeric,
    DROP CONSTRAINT commodity_prices_pkey,
    ADD CONSTRAINT commodity_prices_pkey PRIMARY KEY (symbol, commodity_id, quality);
ALTER TABLE pricing.commodity_price_revisions
    ADD COLUMN quality text NOT NULL DEFAULT '',
    ALTER COLUMN buy TYPE numeric,
    ALTER COLUMN sell TYPE numeric,
    DROP CONSTRAINT commodity_price_revisions_pkey,
    ADD CONSTRAINT commodity_price_revisions_pkey PRIMARY KEY (symbol, commodity_id, quality, revised_at);
COMMENT ON TABLE pricing.commodity_prices IS
    'Current belief: what each terminal trades. Money is in units of the game, amounts are in SCU. Both prices '
    'NULL = not traded there any more.';
COMMENT ON COLUMN pricing.commodity_prices.quality IS
    'Of which quality, in the provider''s word; empty = it names none.';
COMMENT ON COLUMN pricing.commodity_price_revisions.quality IS 'Of which quality; empty = the provider named none.';
CREATE VIEW pricing.trade_routes AS
SELECT c.commodity_id, c.name AS commodity, c.slug, a.quality,
       a.symbol AS from_symbol, f.name AS from_terminal, f.system AS from_system,
       b.symbol AS to_symbol, t.name AS to_terminal, t.system AS to_system,
       a.buy, b.sell, b.sell - a.buy AS margin, round((b.sell - a.buy) * 100.0 / a.buy, 1) AS margin_percent,
       a.stock, b.demand, least(a.stock, b.demand) AS quantity, (b.sell - a.buy) * least(a.stock, b.demand) AS total,
       a.game_version, least(coalesce(a.modified_at, a.recorded_at), coalesce(b.modified_at, b.recorded_at)) AS oldest_at
FROM pricing.commodity_prices a
JOIN pricing.commodity_prices b ON (b.commodity_id, b.quality) = (a.commodity_id, a.quality) AND b.symbol <> a.symbol AND b.sell > a.buy
     AND b.sell IS NOT NULL AND b.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
JOIN pricing.commodities c ON c.commodity_id = a.commodity_id AND c.is_available AND c.vanished_at IS NULL
JOIN pricing.terminals f ON f.symbol = a.symbol AND f.is_available AND f.vanished_at IS NULL
JOIN pricing.terminals t ON t.symbol = b.symbol AND t.is_available AND t.vanished_at IS NULL
WHERE a.buy IS NOT NULL AND a.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
  AND coalesce(least(a.stock, b.demand), 1) > 0;
COMMENT ON VIEW pricing.trade_routes IS
    'Every way to earn: buy a commodity at one terminal and sell it at another, in the version of the game that '
    'people play. The best first: ORDER BY total DESC NULLS LAST, margin DESC.';
COMMENT ON COLUMN pricing.trade_routes.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.trade_routes.commodity IS 'Its name.';
COMMENT ON COLUMN pricing.trade_routes.slug IS 'Its name in addresses.';
COMMENT ON COLUMN pricing.trade_routes.quality IS 'Of which quality; empty = the source names none.';
COMMENT ON COLUMN pricing.trade_routes.from_symbol IS 'Where to buy it.';
COMMENT ON COLUMN pricing.trade_routes.from_terminal IS 'The name of that terminal.';
COMMENT ON COLUMN pricing.trade_routes.from_system IS 'Its star system.';
COMMENT ON COLUMN pricing.trade_routes.to_symbol IS 'Where to sell it.';
COMMENT ON COLUMN pricing.trade_routes.to_terminal IS 'The name of that terminal.';
COMMENT ON COLUMN pricing.trade_routes.to_system IS 'Its star system.';
COMMENT ON COLUMN pricing.trade_routes.buy IS 'What a player pays for one SCU.';
COMMENT ON COLUMN pricing.trade_routes.sell IS 'What a player gets for it.';
COMMENT ON COLUMN pricing.trade_routes.margin IS 'What remains of one SCU; always above zero.';
COMMENT ON COLUMN pricing.trade_routes.margin_percent IS 'The same in percent of what it costs.';
COMMENT ON COLUMN pricing.trade_routes.stock IS 'How much can be bought; NULL = not reported.';
COMMENT ON COLUMN pricing.trade_routes.demand IS 'How much can be sold; NULL = not reported.';
COMMENT ON COLUMN pricing.trade_routes.quantity IS
    'How much can be traded: the smaller of both; NULL = neither is reported. Never 0.';
COMMENT ON COLUMN pricing.trade_routes.total IS 'What the whole quantity earns.';
COMMENT ON COLUMN pricing.trade_routes.game_version IS 'The version of the game that both prices are of.';
COMMENT ON COLUMN pricing.trade_routes.oldest_at IS 'The time of the older of both prices.';

-- These have other parameters or results now.
DROP FUNCTION IF EXISTS pricing.compared_prices(
    text, text[], bigint[], bigint[], bigint[], bigint[], bigint[], text[], timestamptz[]);
DROP FUNCTION IF EXISTS pricing.merge_commodity_prices(
    text, bigint, text[], text[], text[], boolean[], text[], bigint[], text[], text[], text[], bigint[], bigint[], bigint[], bigint[],
    text[], timestamptz[]);
DROP FUNCTION IF EXISTS pricing.commodity(text, timestamptz);
DROP FUNCTION IF EXISTS pricing.terminal(text, timestamptz);
DROP FUNCTION IF EXISTS pricing.traded_prices(bigint, text, timestamptz);
DROP FUNCTION IF EXISTS pricing.commodity_prices_as_of(timestamptz, bigint, text);
DROP FUNCTION IF EXISTS pricing.commodity_price_history(bigint, text);

-- Some exchanges have signs and spaces in their symbols: M&M:XNSE, VOLV B:XSTO.
ALTER TABLE pricing.instruments
    DROP CONSTRAINT symbol_is_sane,
    ADD CONSTRAINT symbol_is_sane
        CHECK (length(symbol) BETWEEN 1 AND 40 AND symbol ~ '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$');
