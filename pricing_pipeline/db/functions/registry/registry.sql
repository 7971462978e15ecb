-- Judging staleness. Every function the registry may name takes (timestamptz, integer minutes).

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
