-- Commodities of a game: terminals that trade them, and what they cost there. Prices belong to a version of the game.
CREATE TABLE pricing.game_versions (
    version    text PRIMARY KEY CONSTRAINT game_version_is_short CHECK (length(version) BETWEEN 1 AND 40),
    seen_at    timestamptz NOT NULL,
    live_since timestamptz,
    live_until timestamptz,
    CONSTRAINT live_times_are_in_order CHECK (live_until IS NULL OR live_until >= live_since)
);
-- squawk-ignore require-concurrent-index-creation
CREATE UNIQUE INDEX one_version_is_live ON pricing.game_versions ((true)) WHERE live_since IS NOT NULL AND live_until IS NULL;
COMMENT ON TABLE pricing.game_versions IS 'Versions of the game. Each new one begins with new prices.';
COMMENT ON COLUMN pricing.game_versions.version IS 'Its name, such as 4.1.';
COMMENT ON COLUMN pricing.game_versions.seen_at IS 'When a provider first named it.';
COMMENT ON COLUMN pricing.game_versions.live_since IS 'Since when it is what people play; NULL = it never was, as far as we know.';
COMMENT ON COLUMN pricing.game_versions.live_until IS 'Until when it was; NULL while it is. One version is live at most.';

CREATE TABLE pricing.terminals (
    symbol      text PRIMARY KEY CONSTRAINT terminal_symbol_is_short CHECK (length(symbol) BETWEEN 1 AND 40),
    name        text NOT NULL,
    code        text,
    system      text,
    planet      text,
    moon        text,
    place       text,
    is_available boolean NOT NULL DEFAULT true,
    modified_at timestamptz,
    recorded_at timestamptz NOT NULL,
    vanished_at timestamptz,
    call_id     bigint NOT NULL
);
COMMENT ON TABLE pricing.terminals IS 'Where commodities are traded. One that its provider lists no more stays, and is marked.';
COMMENT ON COLUMN pricing.terminals.symbol IS 'Its symbol, such as UEX:12.';
COMMENT ON COLUMN pricing.terminals.name IS 'Its name in the game.';
COMMENT ON COLUMN pricing.terminals.code IS 'Its short name, such as ARCL1.';
COMMENT ON COLUMN pricing.terminals.system IS 'The star system.';
COMMENT ON COLUMN pricing.terminals.planet IS 'The planet; NULL = at none.';
COMMENT ON COLUMN pricing.terminals.moon IS 'The moon; NULL = on none.';
COMMENT ON COLUMN pricing.terminals.place IS 'The station, outpost or city.';
COMMENT ON COLUMN pricing.terminals.is_available IS 'Whether players can trade there now.';
COMMENT ON COLUMN pricing.terminals.modified_at IS 'The source''s time of its last change; NULL = never changed.';
COMMENT ON COLUMN pricing.terminals.recorded_at IS 'When this row last changed here.';
COMMENT ON COLUMN pricing.terminals.vanished_at IS 'Since when its provider lists it no more; NULL = it is listed, or known from prices only.';
COMMENT ON COLUMN pricing.terminals.call_id IS 'The call that brought the last change.';

CREATE TABLE pricing.commodities (
    commodity_id bigint PRIMARY KEY,
    name         text NOT NULL,
    code         text,
    slug         text,
    kind         text,
    is_available boolean NOT NULL DEFAULT true,
    recorded_at  timestamptz NOT NULL,
    vanished_at  timestamptz,
    call_id      bigint NOT NULL
);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX commodities_by_slug ON pricing.commodities (slug);
COMMENT ON TABLE pricing.commodities IS 'Goods of the game.';
COMMENT ON COLUMN pricing.commodities.commodity_id IS 'The provider''s number of it.';
COMMENT ON COLUMN pricing.commodities.name IS 'Its name, such as Quantanium.';
COMMENT ON COLUMN pricing.commodities.code IS 'Its short name, such as QUAN.';
COMMENT ON COLUMN pricing.commodities.slug IS 'Its name in addresses, such as medical-supplies.';
COMMENT ON COLUMN pricing.commodities.kind IS 'What kind of good it is, in the provider''s word.';
COMMENT ON COLUMN pricing.commodities.is_available IS 'Whether it is in the game now.';
COMMENT ON COLUMN pricing.commodities.recorded_at IS 'When this row last changed here.';
COMMENT ON COLUMN pricing.commodities.vanished_at IS 'Since when its provider lists it no more; NULL = it is listed, or known from prices only.';
COMMENT ON COLUMN pricing.commodities.call_id IS 'The call that brought the last change.';

CREATE TABLE pricing.commodity_prices (
    symbol       text NOT NULL REFERENCES pricing.terminals,
    commodity_id bigint NOT NULL REFERENCES pricing.commodities,
    buy          bigint CONSTRAINT buy_is_positive CHECK (buy > 0),
    sell         bigint CONSTRAINT sell_is_positive CHECK (sell > 0),
    stock        bigint CONSTRAINT stock_is_counted CHECK (stock >= 0),
    demand       bigint CONSTRAINT demand_is_counted CHECK (demand >= 0),
    game_version text REFERENCES pricing.game_versions,
    modified_at  timestamptz,
    recorded_at  timestamptz NOT NULL,
    provider     text NOT NULL,
    call_id      bigint NOT NULL,
    PRIMARY KEY (symbol, commodity_id),
    CONSTRAINT stock_is_of_what_is_sold CHECK (stock IS NULL OR buy IS NOT NULL),
    CONSTRAINT demand_is_for_what_is_bought CHECK (demand IS NULL OR sell IS NOT NULL)
);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX commodity_prices_by_commodity ON pricing.commodity_prices (commodity_id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX commodity_prices_by_version ON pricing.commodity_prices (game_version);
COMMENT ON TABLE pricing.commodity_prices IS
    'Current belief: what each terminal trades. Money is in whole units of the game, amounts are in SCU. Both prices NULL = not traded there any more.';
COMMENT ON COLUMN pricing.commodity_prices.symbol IS 'The terminal.';
COMMENT ON COLUMN pricing.commodity_prices.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.commodity_prices.buy IS 'What a player pays for one SCU; NULL = the terminal sells none.';
COMMENT ON COLUMN pricing.commodity_prices.sell IS 'What a player gets for one SCU; NULL = the terminal takes none.';
COMMENT ON COLUMN pricing.commodity_prices.stock IS 'How much a player can buy; NULL = nobody has reported it.';
COMMENT ON COLUMN pricing.commodity_prices.demand IS 'How much a player can sell; NULL = nobody has reported it.';
COMMENT ON COLUMN pricing.commodity_prices.game_version IS 'The version of the game that the price is of; NULL = no version was known.';
COMMENT ON COLUMN pricing.commodity_prices.modified_at IS 'The source''s time of the price; NULL = the source says never.';
COMMENT ON COLUMN pricing.commodity_prices.recorded_at IS 'Since when we believe it.';
COMMENT ON COLUMN pricing.commodity_prices.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.commodity_prices.call_id IS 'The call that brought it.';

CREATE TABLE pricing.commodity_price_revisions (
    symbol       text NOT NULL,
    commodity_id bigint NOT NULL,
    buy          bigint,
    sell         bigint,
    stock        bigint,
    demand       bigint,
    game_version text,
    modified_at  timestamptz,
    recorded_at  timestamptz NOT NULL,
    provider     text NOT NULL,
    call_id      bigint NOT NULL,
    revised_at   timestamptz NOT NULL,
    revised_by   bigint NOT NULL,
    PRIMARY KEY (symbol, commodity_id, revised_at),
    CONSTRAINT belief_lasts CHECK (revised_at > recorded_at)
);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX commodity_price_revisions_by_commodity ON pricing.commodity_price_revisions (commodity_id, revised_at);
COMMENT ON TABLE pricing.commodity_price_revisions IS
    'What we believed before: the old row of every price that changed, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.commodity_price_revisions.symbol IS 'The terminal.';
COMMENT ON COLUMN pricing.commodity_price_revisions.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.commodity_price_revisions.buy IS 'What a player paid.';
COMMENT ON COLUMN pricing.commodity_price_revisions.sell IS 'What a player got.';
COMMENT ON COLUMN pricing.commodity_price_revisions.stock IS 'How much a player could buy.';
COMMENT ON COLUMN pricing.commodity_price_revisions.demand IS 'How much a player could sell.';
COMMENT ON COLUMN pricing.commodity_price_revisions.game_version IS 'The version of the game that the price was of.';
COMMENT ON COLUMN pricing.commodity_price_revisions.modified_at IS 'The source''s time of the price.';
COMMENT ON COLUMN pricing.commodity_price_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.commodity_price_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.commodity_price_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.commodity_price_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.commodity_price_revisions.revised_by IS 'The call that brought another price, or none.';

CREATE TABLE pricing.etl_warnings (
    warning_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    etl        text NOT NULL,
    run        text NOT NULL,
    step       text NOT NULL,
    kind       text NOT NULL,
    message    text NOT NULL,
    warned_at  timestamptz NOT NULL
);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX etl_warnings_by_time ON pricing.etl_warnings (warned_at);
COMMENT ON TABLE pricing.etl_warnings IS 'What went wrong in an ETL, which went on without it. Kept for 90 days.';
COMMENT ON COLUMN pricing.etl_warnings.warning_id IS 'Its number.';
COMMENT ON COLUMN pricing.etl_warnings.etl IS 'Which ETL: commodities.';
COMMENT ON COLUMN pricing.etl_warnings.run IS 'Which run of it.';
COMMENT ON COLUMN pricing.etl_warnings.step IS 'What it was doing: game versions, terminals, commodities or prices.';
COMMENT ON COLUMN pricing.etl_warnings.kind IS 'What kind of failure: as of tasks, or rejected_rows, refused (no call was allowed) and lock_lost.';
COMMENT ON COLUMN pricing.etl_warnings.message IS 'What happened, and what to do.';
COMMENT ON COLUMN pricing.etl_warnings.warned_at IS 'When.';

CREATE VIEW pricing.game_version_in_play AS
SELECT v.version FROM pricing.game_versions v
ORDER BY v.live_since IS NOT NULL AND v.live_until IS NULL DESC, coalesce(v.live_since, v.seen_at) DESC, v.version DESC LIMIT 1;
COMMENT ON VIEW pricing.game_version_in_play IS
    'The version of the game that people play; until the list of versions was read, the one that prices named last.';
COMMENT ON COLUMN pricing.game_version_in_play.version IS 'Its name. No row = none is known.';

CREATE VIEW pricing.trade_routes AS
SELECT c.commodity_id, c.name AS commodity, c.slug,
       a.symbol AS from_symbol, f.name AS from_terminal, f.system AS from_system,
       b.symbol AS to_symbol, t.name AS to_terminal, t.system AS to_system,
       a.buy, b.sell, b.sell - a.buy AS margin, round((b.sell - a.buy) * 100.0 / a.buy, 1) AS margin_percent,
       a.stock, b.demand, least(a.stock, b.demand) AS quantity, (b.sell - a.buy) * least(a.stock, b.demand)::numeric AS total,
       a.game_version, least(coalesce(a.modified_at, a.recorded_at), coalesce(b.modified_at, b.recorded_at)) AS oldest_at
FROM pricing.commodity_prices a
JOIN pricing.commodity_prices b ON b.commodity_id = a.commodity_id AND b.symbol <> a.symbol AND b.sell > a.buy
     AND b.sell IS NOT NULL AND b.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
JOIN pricing.commodities c ON c.commodity_id = a.commodity_id AND c.is_available AND c.vanished_at IS NULL
JOIN pricing.terminals f ON f.symbol = a.symbol AND f.is_available AND f.vanished_at IS NULL
JOIN pricing.terminals t ON t.symbol = b.symbol AND t.is_available AND t.vanished_at IS NULL
WHERE a.buy IS NOT NULL AND a.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
  AND coalesce(least(a.stock, b.demand), 1) > 0;
COMMENT ON VIEW pricing.trade_routes IS
    'Every way to earn: buy a commodity at one terminal and sell it at another, in the version of the game that people play. The best first: ORDER BY total DESC NULLS LAST, margin DESC.';
COMMENT ON COLUMN pricing.trade_routes.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.trade_routes.commodity IS 'Its name.';
COMMENT ON COLUMN pricing.trade_routes.slug IS 'Its name in addresses.';
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
COMMENT ON COLUMN pricing.trade_routes.quantity IS 'How much can be traded: the smaller of both; NULL = neither is reported. Never 0.';
COMMENT ON COLUMN pricing.trade_routes.total IS 'What the whole quantity earns.';
COMMENT ON COLUMN pricing.trade_routes.game_version IS 'The version of the game that both prices are of.';
COMMENT ON COLUMN pricing.trade_routes.oldest_at IS 'The time of the older of both prices.';
