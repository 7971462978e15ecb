-- What players read: where a commodity is traded, and what can be earned. Nothing here queues anything.

CREATE OR REPLACE FUNCTION pricing.short_word(word text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF length(word) > 200 THEN
        RAISE EXCEPTION 'a name of % characters is longer than any commodity or terminal has', length(word)
            USING HINT = 'Give a name, code, slug, number or symbol of at most 200 characters.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN word;
END $$;
COMMENT ON FUNCTION pricing.short_word(text) IS
    'A search word, unchanged; refuses more than 200 characters, which would be compared with every row.';


CREATE OR REPLACE FUNCTION pricing.commodity_of(word text) RETURNS bigint
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT c.commodity_id FROM pricing.commodities c
    WHERE lower(word) IN (c.slug, lower(c.code), lower(c.name), c.commodity_id::text)
    ORDER BY c.slug IS NOT DISTINCT FROM lower(word) DESC, c.vanished_at IS NULL DESC, c.commodity_id LIMIT 1
$$;
COMMENT ON FUNCTION pricing.commodity_of(text) IS
    'The number of the commodity with this slug, code, name or number, preferably a listed one; NULL = unknown.';


CREATE OR REPLACE FUNCTION pricing.terminal_of(word text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT t.symbol FROM pricing.terminals t
    WHERE lower(word) IN (lower(t.symbol), lower(t.code), lower(t.name))
    ORDER BY lower(t.symbol) = lower(word) DESC, t.vanished_at IS NULL DESC, t.symbol LIMIT 1
$$;
COMMENT ON FUNCTION pricing.terminal_of(text) IS
    'The symbol of the terminal with this symbol, code or name, preferably a listed one; NULL = unknown.';


CREATE OR REPLACE FUNCTION pricing.traded_prices(only_commodity bigint, only_terminal text, as_of timestamptz)
RETURNS TABLE (commodity text, slug text, symbol text, terminal text, code text, system text, place text,
               is_available boolean, quality text, buy numeric, sell numeric, stock bigint, demand bigint,
               game_version text, is_of_other_version boolean, modified_at timestamptz, recorded_at timestamptz,
               provider text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT c.name, c.slug, p.symbol, t.name, t.code, t.system, coalesce(t.place, t.moon, t.planet),
           t.is_available AND t.vanished_at IS NULL, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version,
           p.game_version IS DISTINCT FROM v.version AS is_of_other_version, p.modified_at, p.recorded_at, p.provider
    FROM pricing.commodity_prices_as_of(as_of, only_commodity, only_terminal) p
    JOIN pricing.terminals t USING (symbol)
    JOIN pricing.commodities c USING (commodity_id)
    LEFT JOIN LATERAL (
        SELECT x.version FROM pricing.game_version_in_play x WHERE as_of IS NULL
        UNION ALL
        (SELECT x.version FROM pricing.game_versions x
         WHERE coalesce(least(x.live_since, lower(x.earlier_live_times)), x.seen_at) <= as_of
         ORDER BY x.earlier_live_times @> as_of
                  OR coalesce(x.live_since <= as_of AND coalesce(as_of < x.live_until, true), false) DESC,
                  coalesce(x.live_since, x.seen_at) DESC, x.version DESC
         LIMIT 1)) v ON true
    WHERE p.buy IS NOT NULL OR p.sell IS NOT NULL
    ORDER BY is_of_other_version, CASE WHEN only_commodity IS NULL THEN lower(c.name) END,
             p.buy NULLS LAST, p.sell DESC NULLS LAST, p.symbol, p.quality
$$;
COMMENT ON FUNCTION pricing.traded_prices(bigint, text, timestamptz) IS
    'Prices of one commodity or at one terminal (NULL = all), as believed at a time (NULL = now), those of the '
    'version that was live then first.';


CREATE OR REPLACE FUNCTION pricing.commodity(wanted text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (symbol text, terminal text, code text, system text, place text, is_available boolean, quality text,
               buy numeric, sell numeric, stock bigint, demand bigint, game_version text, is_of_other_version boolean,
               modified_at timestamptz, recorded_at timestamptz, provider text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT p.symbol, p.terminal, p.code, p.system, p.place, p.is_available, p.quality, p.buy, p.sell, p.stock, p.demand,
           p.game_version, p.is_of_other_version, p.modified_at, p.recorded_at, p.provider
    FROM (SELECT pricing.commodity_of(pricing.short_word(wanted)) AS id) w
    CROSS JOIN LATERAL pricing.traded_prices(w.id, NULL, as_of) p
    WHERE w.id IS NOT NULL
$$;
COMMENT ON FUNCTION pricing.commodity(text, timestamptz) IS
    'Where a commodity (slug, code, name or number) is traded, with prices and amounts for one SCU, cheapest first, '
    'as believed now or at a time; queues nothing.';


CREATE OR REPLACE FUNCTION pricing.terminal(wanted text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (commodity text, slug text, quality text, buy numeric, sell numeric, stock bigint, demand bigint,
               game_version text, is_of_other_version boolean, modified_at timestamptz, recorded_at timestamptz,
               provider text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT p.commodity, p.slug, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version, p.is_of_other_version,
           p.modified_at, p.recorded_at, p.provider
    FROM (SELECT pricing.terminal_of(pricing.short_word(wanted)) AS symbol) w
    CROSS JOIN LATERAL pricing.traded_prices(NULL, w.symbol, as_of) p
    WHERE w.symbol IS NOT NULL
$$;
COMMENT ON FUNCTION pricing.terminal(text, timestamptz) IS
    'What a terminal (symbol, code or name) trades, with the columns of pricing.commodity: the live version first, '
    'then by name.';


CREATE OR REPLACE FUNCTION pricing.best_routes(starts_at text DEFAULT NULL, at_most integer DEFAULT 20)
RETURNS SETOF pricing.trade_routes
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s'
-- All pairs of terminals are compared, and the planner expects one.
SET enable_nestloop = off AS $$
    SELECT r.* FROM pricing.trade_routes r
    WHERE starts_at IS NULL OR r.from_symbol = (SELECT pricing.terminal_of(pricing.short_word(starts_at)))
    ORDER BY r.total DESC NULLS LAST, r.margin DESC, r.commodity_id, r.from_symbol, r.to_symbol LIMIT at_most
$$;
COMMENT ON FUNCTION pricing.best_routes(text, integer) IS
    'The most profitable trade routes, of all or from one terminal (its symbol, code or name).';
