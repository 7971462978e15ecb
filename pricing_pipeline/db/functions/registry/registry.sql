-- The kind of a data type's values, and how their staleness is judged. Every staleness function of the registry takes
-- (timestamptz, integer minutes).

CREATE OR REPLACE FUNCTION pricing.is_daily(fetcher text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT fetcher IN ('daily_bars', 'nav')
$$;
COMMENT ON FUNCTION pricing.is_daily(text) IS 'Whether a fetcher brings values of days, whose date is a trading day.';


CREATE OR REPLACE FUNCTION pricing.ttl_of(kind pricing.data_type_registry, own_minutes integer,
                                          is_watched boolean DEFAULT true)
RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE WHEN NOT is_watched THEN kind.background_ttl_minutes
                WHEN own_minutes > 0 THEN own_minutes
                ELSE kind.default_ttl_minutes END
$$;
COMMENT ON FUNCTION pricing.ttl_of(pricing.data_type_registry, integer, boolean) IS
    'A pair''s TTL in minutes: its own, otherwise its type''s, or the background TTL while it is only held.';


CREATE OR REPLACE FUNCTION pricing.own_ttls(only_types text[] DEFAULT NULL, only_symbols text[] DEFAULT NULL)
RETURNS TABLE (data_type text, symbol text, ttl_minutes integer)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    kind record;
    own record;
    own_types text[] := '{}';
    own_symbols text[] := '{}';
    own_minutes integer[] := '{}';
BEGIN
    FOR kind IN
        SELECT r.data_type, r.table_name, r.symbol_column FROM pricing.data_type_registry r
        WHERE r.has_own_table AND (only_types IS NULL OR r.data_type = ANY (only_types))
    LOOP
        BEGIN
            EXECUTE pg_catalog.format($query$
                SELECT array_agg($1) AS types, array_agg(v.symbol) AS symbols, array_agg(v.minutes) AS minutes
                FROM (SELECT x.%2$I::text AS symbol, min(x.cache_ttl_minutes) AS minutes FROM pricing.%1$I x
                      WHERE x.cache_ttl_minutes > 0 AND ($2 IS NULL OR x.%2$I = ANY ($2)) GROUP BY 1) v
                $query$, kind.table_name, kind.symbol_column)
            INTO own USING kind.data_type, only_symbols;
            own_types := own_types || own.types;
            own_symbols := own_symbols || own.symbols;
            own_minutes := own_minutes || own.minutes;
        EXCEPTION WHEN OTHERS THEN
            NULL; -- the staleness check warns of the table
        END;
    END LOOP;
    RETURN QUERY
    SELECT * FROM unnest(own_types, own_symbols, own_minutes)
    UNION ALL
    SELECT a.data_type, a.symbol, a.cache_ttl_minutes FROM pricing.latest_answers a
    WHERE a.cache_ttl_minutes > 0
      AND (only_types IS NULL OR a.data_type = ANY (only_types))
      AND (only_symbols IS NULL OR a.symbol = ANY (only_symbols))
      AND NOT EXISTS (SELECT FROM unnest(own_types, own_symbols) AS o (data_type, symbol)
                      WHERE (o.data_type, o.symbol) = (a.data_type, a.symbol));
END $$;
COMMENT ON FUNCTION pricing.own_ttls(text[], text[]) IS
    'The pairs with their own TTL, each once, wherever it is stored: in a user''s table, with the price, or in '
    'confirmed_pairs.';


CREATE OR REPLACE FUNCTION pricing.pair_ttl(wanted_type text, wanted_symbol text, is_watched boolean DEFAULT true)
RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    own_minutes integer;
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind.has_own_table THEN
        SELECT o.ttl_minutes INTO own_minutes FROM pricing.own_ttls(ARRAY[wanted_type], ARRAY[wanted_symbol]) o;
    ELSE
        SELECT a.cache_ttl_minutes INTO own_minutes FROM pricing.latest_answers a
        WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    END IF;
    RETURN pricing.ttl_of(kind, own_minutes, is_watched);
END $$;
COMMENT ON FUNCTION pricing.pair_ttl(text, text, boolean) IS
    'The TTL of one pair in minutes, wherever it is stored; queries over many pairs join own_ttls and call ttl_of.';


CREATE OR REPLACE FUNCTION pricing.ttl_beside(
    kind pricing.data_type_registry, symbol text, stored_minutes integer)
RETURNS integer
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE WHEN kind.has_own_table OR kind.contents <> 'prices' THEN pricing.pair_ttl(kind.data_type, symbol)
                ELSE pricing.ttl_of(kind, stored_minutes) END
$$;
COMMENT ON FUNCTION pricing.ttl_beside(pricing.data_type_registry, text, integer) IS
    'The TTL in minutes of a watched pair whose row of latest_prices was read: looked up only if it is stored '
    'elsewhere.';


CREATE OR REPLACE FUNCTION pricing.stale_at(
    kind pricing.data_type_registry, symbol text, stamp timestamptz, ttl_minutes integer)
RETURNS TABLE (at timestamptz)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE kind.staleness_function
               WHEN 'is_market_stale'
               THEN (SELECT v.at FROM pricing.next_value_at(kind, symbol, stamp,
                                                            pg_catalog.make_interval(mins => ttl_minutes)) v)
               ELSE stamp + pg_catalog.make_interval(mins => ttl_minutes) END
$$;
COMMENT ON FUNCTION pricing.stale_at(pricing.data_type_registry, text, timestamptz, integer) IS
    'When a pair that was confirmed at a time is due again: by its instrument''s calendar if its type follows '
    'calendars, otherwise by the TTL.';


CREATE OR REPLACE FUNCTION pricing.is_past_ttl(stamp timestamptz, ttl_minutes integer, now_ timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    -- A future time dates from before the clock was set back, and proves nothing.
    SELECT stamp IS NULL
        OR stamp <= now_ - pg_catalog.make_interval(mins => ttl_minutes)
        OR stamp > now_ + interval '1 minute'
$$;
COMMENT ON FUNCTION pricing.is_past_ttl(timestamptz, integer, timestamptz) IS
    'Whether the TTL has passed at a moment, or the time is missing or more than a minute ahead of it.';


CREATE OR REPLACE FUNCTION pricing.is_data_stale(stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF ttl_minutes IS NULL OR ttl_minutes <= 0 THEN
        RAISE EXCEPTION 'a TTL must be a positive number of minutes, not %', ttl_minutes
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN pricing.is_past_ttl(stamp, ttl_minutes, now_);
END $$;
COMMENT ON FUNCTION pricing.is_data_stale(timestamptz, integer) IS
    'Whether a time is older than the TTL, missing, or more than a minute ahead; refuses a TTL that is not positive.';


CREATE OR REPLACE FUNCTION pricing.is_stale(data_type text, stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
DECLARE
    judge text;
    verdict boolean;
BEGIN
    SELECT r.staleness_function INTO STRICT judge
    FROM pricing.data_type_registry r
    WHERE r.data_type = is_stale.data_type;
    IF judge = 'is_data_stale' THEN
        RETURN pricing.is_data_stale(stamp, ttl_minutes);
    END IF;
    EXECUTE pg_catalog.format('SELECT pricing.%I($1, $2)', judge) INTO STRICT verdict USING stamp, ttl_minutes;
    RETURN coalesce(verdict, true);
EXCEPTION WHEN OTHERS THEN
    RETURN true; -- a price must be readable even if its staleness function fails
END $$;
COMMENT ON FUNCTION pricing.is_stale(text, timestamptz, integer) IS
    'The verdict of the staleness function that the registry names for the type; stale without one.';


CREATE OR REPLACE FUNCTION pricing.is_stale(data_type text, symbol text, stamp timestamptz, ttl_minutes integer)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.data_type_registry r
               WHERE r.data_type = is_stale.data_type AND r.staleness_function = 'is_market_stale') THEN
        RETURN pricing.is_market_stale(data_type, symbol, stamp, ttl_minutes);
    END IF;
    RETURN pricing.is_stale(data_type, stamp, ttl_minutes);
END $$;
COMMENT ON FUNCTION pricing.is_stale(text, text, timestamptz, integer) IS
    'Asks the staleness function that the registry names for the type about a pair, with its calendar if the function '
    'follows calendars.';


CREATE OR REPLACE FUNCTION pricing.decide_prices_from(wanted text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    decided text := (SELECT s.prices_from FROM pricing.registry_state s);
BEGIN
    -- Changes of the registry lock the row, so it is written once only.
    IF decided IS NULL THEN
        UPDATE pricing.registry_state s SET prices_from = coalesce(s.prices_from, wanted)
        RETURNING s.prices_from INTO decided;
    END IF;
    RETURN decided;
END $$;
COMMENT ON FUNCTION pricing.decide_prices_from(text) IS
    'Whether this database has prices of the sandbox or of real providers; the first caller decides.';


CREATE OR REPLACE FUNCTION pricing.registry_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.registry_state SET version = version + 1;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.registry_changed() IS 'Counts the change, so that the sensor reloads the code location.';

CREATE TRIGGER provider_shown_anew
    AFTER UPDATE OF is_active, base_url ON pricing.data_collectors
    FOR EACH ROW WHEN (OLD.is_active IS DISTINCT FROM NEW.is_active OR OLD.base_url IS DISTINCT FROM NEW.base_url)
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed
    AFTER INSERT OR DELETE ON pricing.data_collectors
    FOR EACH ROW
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed
    AFTER INSERT OR UPDATE OR DELETE ON pricing.data_type_registry
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER declared_anew
    AFTER UPDATE ON pricing.provider_declarations
    FOR EACH ROW WHEN (OLD.content IS DISTINCT FROM NEW.content)
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed
    AFTER INSERT OR DELETE ON pricing.provider_declarations
    FOR EACH ROW
    EXECUTE FUNCTION pricing.registry_changed();

CREATE TRIGGER registry_changed
    AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_routing
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.registry_changed();


CREATE OR REPLACE FUNCTION pricing.fetcher_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.end_backoff(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.fetcher_changed() IS 'Ends all back-offs of a type that now fetches another kind of data.';

CREATE TRIGGER fetcher_changed
    AFTER UPDATE OF fetcher ON pricing.data_type_registry
    FOR EACH ROW WHEN (OLD.fetcher <> NEW.fetcher)
    EXECUTE FUNCTION pricing.fetcher_changed();
