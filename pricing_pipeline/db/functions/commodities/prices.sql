-- Prices of commodities: stored, and read as believed now or at a time.

CREATE OR REPLACE FUNCTION pricing.go_live(wanted_version text) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF EXISTS (SELECT FROM pricing.game_versions v
               WHERE v.version = wanted_version AND v.live_since IS NOT NULL AND v.live_until IS NULL) THEN
        RETURN false;
    END IF;
    UPDATE pricing.game_versions v SET live_until = greatest(now_, v.live_since)
    WHERE v.live_since IS NOT NULL AND v.live_until IS NULL;
    INSERT INTO pricing.game_versions AS v (version, seen_at, live_since) VALUES (wanted_version, now_, now_)
    ON CONFLICT (version) DO UPDATE
        SET live_since = excluded.live_since, live_until = NULL, is_test = false,
            earlier_live_times = v.earlier_live_times
                                 + coalesce(tstzmultirange(tstzrange(v.live_since, v.live_until)), '{}');
    RETURN true;
END $$;
COMMENT ON FUNCTION pricing.go_live(text) IS 'Stores which version of the game is live; false if that was known.';


CREATE OR REPLACE FUNCTION pricing.version_numbers(version text) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT ARRAY(SELECT left(m[1], 9)::integer FROM pg_catalog.regexp_matches(version, '[0-9]+', 'g') m)
$$;
COMMENT ON FUNCTION pricing.version_numbers(text) IS
    'The numbers in a version of the game, for sorting: 4.10 comes after 4.9.';


CREATE OR REPLACE FUNCTION pricing.merge_commodity_prices(
    from_provider text, from_call bigint, terminals text[], terminal_names text[], terminal_codes text[],
    whole boolean[], symbols text[], commodity_ids bigint[], qualities text[], names text[], codes text[], slugs text[],
    buys numeric[], sells numeric[], stocks bigint[], demands bigint[], versions text[], stamps timestamptz[])
RETURNS TABLE (symbol text, added bigint, revised bigint, is_stale_source boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    live text;
BEGIN
    -- Versions, terminals and commodities that only prices have named so far.
    INSERT INTO pricing.game_versions (version, seen_at)
    SELECT DISTINCT v.version, now_
    FROM unnest(versions) AS v (version)
    WHERE v.version IS NOT NULL
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    INSERT INTO pricing.terminals (symbol, name, code, recorded_at, call_id)
    SELECT t.symbol, coalesce(t.name, t.symbol), t.code, now_, from_call
    FROM unnest(terminals, terminal_names, terminal_codes) AS t (symbol, name, code) ORDER BY 1
    ON CONFLICT DO NOTHING;
    INSERT INTO pricing.commodities (commodity_id, name, code, slug, recorded_at, call_id)
    SELECT DISTINCT ON (c.id) c.id, c.name, c.code, coalesce(c.slug, pricing.slug_of(c.name)), now_, from_call
    FROM unnest(commodity_ids, names, codes, slugs) AS c (id, name, code, slug)
    WHERE NOT EXISTS (SELECT FROM pricing.commodities x WHERE x.commodity_id = c.id)
    ORDER BY c.id, c.code, c.slug
    ON CONFLICT DO NOTHING;
    -- One session at a time stores prices of a terminal: otherwise two could keep one old price twice.
    PERFORM FROM pricing.terminals t WHERE t.symbol = ANY (terminals) ORDER BY t.symbol FOR NO KEY UPDATE;
    now_ := greatest(now_, pricing.clock());
    SELECT v.version INTO live FROM pricing.game_version_in_play v;
    RETURN QUERY
    WITH compared AS MATERIALIZED (
        SELECT s.symbol, s.commodity_id, s.quality, s.buy, s.sell, s.stock, s.demand, s.version AS said_version,
               -- If a list names no version, a price that the source has not touched since keeps its version.
               coalesce(s.version,
                        CASE WHEN p.symbol IS NOT NULL AND s.modified_at IS NOT DISTINCT FROM p.modified_at
                                  AND (s.buy, s.sell, s.stock, s.demand)
                                      IS NOT DISTINCT FROM (p.buy, p.sell, p.stock, p.demand)
                             THEN p.game_version
                             ELSE live END) AS version,
               s.modified_at,
               -- A patch starts over: prices of the live version are newer, whatever their time. Prices of a new patch
               -- may come before the list of versions names it: then their time decides.
               CASE WHEN s.version <> p.game_version AND live IN (s.version, p.game_version)
                         AND (pricing.version_numbers(other.version) <= pricing.version_numbers(live)
                              OR EXISTS (SELECT FROM pricing.game_versions v
                                         WHERE v.version = other.version AND v.is_test))
                    THEN p.game_version = live
                    ELSE coalesce(s.modified_at < p.modified_at, false) END AS is_older
        FROM unnest(symbols, commodity_ids, qualities, buys, sells, stocks, demands, versions, stamps)
            AS s (symbol, commodity_id, quality, buy, sell, stock, demand, version, modified_at)
        LEFT JOIN pricing.commodity_prices p USING (symbol, commodity_id, quality)
        CROSS JOIN LATERAL (SELECT CASE live WHEN s.version THEN p.game_version ELSE s.version END AS version) other),
    -- A list with nothing newer than the stored prices is outdated, so a missing price proves nothing.
    stale AS MATERIALIZED (SELECT c.symbol FROM compared c GROUP BY c.symbol HAVING bool_and(c.is_older)),
    -- A commodity that is missing from a terminal's complete list is no longer traded there. Prices of another version
    -- of the game stay.
    withdrawn AS MATERIALIZED (
        SELECT p.symbol, p.commodity_id, p.quality, p.game_version, p.modified_at
        FROM (SELECT t.symbol,
                     coalesce((SELECT s.said_version FROM compared s
                               WHERE s.symbol = t.symbol AND s.said_version IS NOT NULL
                               ORDER BY s.said_version IS DISTINCT FROM live,
                                        pricing.version_numbers(s.said_version) DESC
                               LIMIT 1), live) AS version
              FROM unnest(terminals, whole) AS t (symbol, is_whole)
              WHERE t.is_whole AND t.symbol NOT IN (SELECT l.symbol FROM stale l)) reach
        JOIN pricing.commodity_prices p ON p.symbol = reach.symbol AND p.game_version IS NOT DISTINCT FROM reach.version
        WHERE (p.buy IS NOT NULL OR p.sell IS NOT NULL) AND p.call_id <= from_call
          -- A list that names no quality of a commodity does not say which qualities of it are traded.
          AND NOT EXISTS (SELECT FROM compared s
                          WHERE (s.symbol, s.commodity_id) = (p.symbol, p.commodity_id)
                            AND s.quality IN (p.quality, ''))),
    news AS MATERIALIZED (
        SELECT c.symbol, c.commodity_id, c.quality, c.buy, c.sell, c.stock, c.demand, c.version, c.modified_at
        FROM compared c
        WHERE NOT c.is_older
        UNION ALL
        SELECT w.symbol, w.commodity_id, w.quality, NULL, NULL, NULL, NULL, w.game_version, w.modified_at
        FROM withdrawn w),
    changed AS MATERIALIZED (
        SELECT p.symbol, p.commodity_id, p.quality
        FROM news n JOIN pricing.commodity_prices p USING (symbol, commodity_id, quality)
        WHERE (n.buy, n.sell, n.stock, n.demand, n.version, n.modified_at)
              IS DISTINCT FROM (p.buy, p.sell, p.stock, p.demand, p.game_version, p.modified_at)),
    written AS (
        INSERT INTO pricing.commodity_prices AS p
            (symbol, commodity_id, quality, buy, sell, stock, demand, game_version, modified_at, recorded_at, provider,
             call_id)
        SELECT n.symbol, n.commodity_id, n.quality, n.buy, n.sell, n.stock, n.demand, n.version, n.modified_at, now_,
               from_provider, from_call
        FROM news n
        WHERE NOT EXISTS (SELECT FROM pricing.commodity_prices x
                          WHERE (x.symbol, x.commodity_id, x.quality) = (n.symbol, n.commodity_id, n.quality))
           OR EXISTS (SELECT FROM changed c
                      WHERE (c.symbol, c.commodity_id, c.quality) = (n.symbol, n.commodity_id, n.quality))
        ORDER BY n.symbol, n.commodity_id, n.quality
        ON CONFLICT (symbol, commodity_id, quality) DO UPDATE
            SET buy = excluded.buy, sell = excluded.sell, stock = excluded.stock, demand = excluded.demand,
                game_version = excluded.game_version, modified_at = excluded.modified_at,
                recorded_at = greatest(excluded.recorded_at, p.recorded_at), provider = excluded.provider,
                call_id = excluded.call_id
        RETURNING p.symbol)
    SELECT t.symbol,
           (SELECT count(*) FROM written w WHERE w.symbol = t.symbol)
           - (SELECT count(*) FROM changed c WHERE c.symbol = t.symbol),
           (SELECT count(*) FROM changed c WHERE c.symbol = t.symbol),
           t.symbol IN (SELECT l.symbol FROM stale l)
    FROM (SELECT DISTINCT u.symbol FROM unnest(terminals) AS u (symbol)) t
    ORDER BY t.symbol;
END $$;
COMMENT ON FUNCTION pricing.merge_commodity_prices(
    text, bigint, text[], text[], text[], boolean[], text[], bigint[], text[], text[], text[], text[], numeric[],
    numeric[], bigint[], bigint[], text[], timestamptz[]) IS
    'Stores one call''s prices of some terminals, keeps old values as revisions, and returns for each terminal how '
    'many were added and revised, and whether all were older than the stored ones.';


CREATE OR REPLACE FUNCTION pricing.slug_of(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT nullif(pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.lower(name), '[^a-z0-9]+', '-', 'g'), '-'), '')
$$;
COMMENT ON FUNCTION pricing.slug_of(text) IS 'A name as it is written in a URL: Medical Supplies is medical-supplies.';


CREATE OR REPLACE FUNCTION pricing.commodity_prices_as_of(
    as_of timestamptz DEFAULT NULL, only_commodity bigint DEFAULT NULL, only_terminal text DEFAULT NULL)
RETURNS TABLE (symbol text, commodity_id bigint, quality text, buy numeric, sell numeric, stock bigint, demand bigint,
               game_version text, modified_at timestamptz, recorded_at timestamptz, provider text, call_id bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT p.symbol, p.commodity_id, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version, p.modified_at,
           p.recorded_at, p.provider, p.call_id
    FROM pricing.commodity_prices p
    WHERE (as_of IS NULL OR p.recorded_at <= as_of)
      AND (only_commodity IS NULL OR p.commodity_id = only_commodity)
      AND (only_terminal IS NULL OR p.symbol = only_terminal)
    UNION ALL
    SELECT p.symbol, p.commodity_id, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version, p.modified_at,
           p.recorded_at, p.provider, p.call_id
    FROM pricing.revisions r CROSS JOIN jsonb_populate_record(NULL::pricing.commodity_prices, r.old) p
    WHERE r.kind = 'commodity_prices' AND r.recorded_at <= as_of AND r.revised_at > as_of
      AND (only_commodity IS NULL OR r.old->>'commodity_id' = only_commodity::text)
      AND (only_terminal IS NULL OR r.key BETWEEN ARRAY[only_terminal] AND ARRAY[only_terminal, NULL])
$$;
COMMENT ON FUNCTION pricing.commodity_prices_as_of(timestamptz, bigint, text) IS
    'Prices as they were believed at a time (NULL = now), of all commodities and terminals or of one; a row without '
    'prices says that the commodity was no longer traded there.';


CREATE OR REPLACE FUNCTION pricing.commodity_price_history(wanted_commodity bigint, wanted_terminal text)
RETURNS TABLE (believed_from timestamptz, believed_until timestamptz, quality text, buy numeric, sell numeric,
               stock bigint, demand bigint, game_version text, modified_at timestamptz, provider text, call_id bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT r.recorded_at, r.revised_at, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version, p.modified_at,
           p.provider, p.call_id
    FROM pricing.revisions r CROSS JOIN jsonb_populate_record(NULL::pricing.commodity_prices, r.old) p
    WHERE (r.kind, r.key) = ('commodity_prices', ARRAY[wanted_terminal, wanted_commodity::text])
    UNION ALL
    SELECT p.recorded_at, NULL, p.quality, p.buy, p.sell, p.stock, p.demand, p.game_version, p.modified_at, p.provider,
           p.call_id
    FROM pricing.commodity_prices p
    WHERE (p.symbol, p.commodity_id) = (wanted_terminal, wanted_commodity)
    ORDER BY 1, 3
$$;
COMMENT ON FUNCTION pricing.commodity_price_history(bigint, text) IS
    'Everything ever believed about a commodity at a terminal, oldest first; believed_until is NULL for current '
    'values.';
