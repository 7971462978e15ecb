-- Judging staleness. Every function the registry may name takes (timestamptz, integer minutes).

CREATE OR REPLACE FUNCTION pricing.ttl_of(kind pricing.data_type_registry, own_minutes integer,
                                          is_watched boolean DEFAULT true)
RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- without a path of its own, so that it becomes part of its query
    SELECT CASE WHEN NOT is_watched THEN kind.background_ttl_minutes
                WHEN own_minutes > 0 THEN own_minutes
                ELSE kind.default_ttl_minutes END
$$;
COMMENT ON FUNCTION pricing.ttl_of(pricing.data_type_registry, integer, boolean) IS
    'The TTL in minutes that counts for a pair. While it is watched: its own TTL if that is positive, else the TTL of '
    'its type. While it is only held: the background TTL of its type.';


CREATE OR REPLACE FUNCTION pricing.own_ttls(only_types text[] DEFAULT NULL, only_symbol text DEFAULT NULL)
RETURNS TABLE (data_type text, symbol text, ttl_minutes integer)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind record;
BEGIN
    FOR kind IN
        SELECT r.data_type, r.table_name, r.symbol_column FROM pricing.data_type_registry r
        WHERE r.has_own_table AND (only_types IS NULL OR r.data_type = ANY (only_types))
    LOOP
        BEGIN
            RETURN QUERY EXECUTE pg_catalog.format(
                'SELECT $1, v.%2$I::text, min(v.cache_ttl_minutes) FROM pricing.%1$I v WHERE v.cache_ttl_minutes > 0 '
                '%3$s GROUP BY 1, 2',
                kind.table_name, kind.symbol_column,
                CASE WHEN only_symbol IS NOT NULL THEN pg_catalog.format('AND v.%I = $2', kind.symbol_column) END)
            USING kind.data_type, only_symbol;
        EXCEPTION WHEN OTHERS THEN
            NULL; -- its pairs have the TTL of their type; the staleness check warns of the table
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.own_ttls(text[], text) IS
    'TTLs of single pairs that tables and views of users'' own name: of all data types or of some, of all symbols or '
    'of one. They go before what latest_answers has.';


CREATE OR REPLACE FUNCTION pricing.pair_ttl(wanted_type text, wanted_symbol text, is_watched boolean DEFAULT true)
RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    own_minutes integer;
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind.has_own_table THEN
        SELECT o.ttl_minutes INTO own_minutes FROM pricing.own_ttls(ARRAY[wanted_type], wanted_symbol) o;
    END IF;
    IF own_minutes IS NULL THEN
        SELECT a.cache_ttl_minutes INTO own_minutes FROM pricing.latest_answers a
        WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    END IF;
    RETURN pricing.ttl_of(kind, own_minutes, is_watched);
END $$;
COMMENT ON FUNCTION pricing.pair_ttl(text, text, boolean) IS
    'The TTL in minutes that counts for one pair, wherever its own TTL is stored. Queries over many pairs join '
    'own_ttls and ask ttl_of.';


CREATE OR REPLACE FUNCTION pricing.stale_at(kind pricing.data_type_registry, symbol text, stamp timestamptz,
                                            ttl_minutes integer)
RETURNS timestamptz
LANGUAGE sql STABLE AS $$ -- without a path of its own, so that it becomes part of its query
    SELECT CASE kind.staleness_function
               WHEN 'is_market_stale' THEN pricing.next_value_at(kind.data_type, symbol, stamp,
                   pg_catalog.make_interval(mins => ttl_minutes))
               ELSE stamp + pg_catalog.make_interval(mins => ttl_minutes) END
$$;
COMMENT ON FUNCTION pricing.stale_at(pricing.data_type_registry, text, timestamptz, integer) IS
    'When a pair that was confirmed at a time is due again: by the calendar of its instrument where its type follows '
    'calendars, else by the TTL.';


CREATE OR REPLACE FUNCTION pricing.is_past_ttl(stamp timestamptz, ttl_minutes integer, now_ timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- without a path of its own, so that it becomes part of its query
    -- A time that is to come dates from before the clock was set back, and says nothing.
    SELECT stamp IS NULL OR stamp <= now_ - pg_catalog.make_interval(mins => ttl_minutes) OR stamp > now_ + interval '1 minute'
$$;
COMMENT ON FUNCTION pricing.is_past_ttl(timestamptz, integer, timestamptz) IS
    'Whether the TTL has passed at a moment, or there is no time at all, or one more than a minute ahead of it.';


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
COMMENT ON FUNCTION pricing.is_data_stale(timestamptz, integer) IS 'Stale when the TTL has passed, when there is no time at all, or one more than a minute ahead. Refuses a TTL that is not positive.';


CREATE OR REPLACE FUNCTION pricing.is_stale(data_type text, stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
DECLARE
    judge text;
    verdict boolean;
BEGIN
    SELECT r.staleness_function INTO STRICT judge FROM pricing.data_type_registry r WHERE r.data_type = is_stale.data_type;
    IF judge = 'is_data_stale' THEN
        RETURN pricing.is_data_stale(stamp, ttl_minutes);
    END IF;
    EXECUTE pg_catalog.format('SELECT pricing.%I($1, $2)', judge) INTO STRICT verdict USING stamp, ttl_minutes;
    RETURN coalesce(verdict, true);
EXCEPTION WHEN OTHERS THEN
    RETURN true; -- a price must be readable whatever its judge does
END $$;
COMMENT ON FUNCTION pricing.is_stale(text, timestamptz, integer) IS 'Asks the staleness function that the registry names for the type. Without a verdict it is stale.';


CREATE OR REPLACE FUNCTION pricing.is_stale(data_type text, symbol text, stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.data_type_registry r WHERE r.data_type = is_stale.data_type AND r.staleness_function = 'is_market_stale') THEN
        RETURN pricing.is_market_stale(data_type, symbol, stamp, ttl_minutes);
    END IF;
    RETURN pricing.is_stale(data_type, stamp, ttl_minutes);
END $$;
COMMENT ON FUNCTION pricing.is_stale(text, text, timestamptz, integer) IS
    'Asks the staleness function that the registry names for the type about a pair, with its calendar if the function follows calendars.';


CREATE OR REPLACE FUNCTION pricing.decide_prices_from(wanted text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    decided text := (SELECT s.prices_from FROM pricing.registry_state s);
BEGIN
    -- Changes of the registry lock the row, so it is written once only.
    IF decided IS NULL THEN
        UPDATE pricing.registry_state s SET prices_from = coalesce(s.prices_from, wanted) RETURNING s.prices_from INTO decided;
    END IF;
    RETURN decided;
END $$;
COMMENT ON FUNCTION pricing.decide_prices_from(text) IS
    'From where the prices of this database come: the sandbox or the real providers. The first who asks decides.';
