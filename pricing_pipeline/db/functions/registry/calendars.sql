-- When markets trade, when a newer value should exist, and where calendars come from.

CREATE OR REPLACE FUNCTION pricing.is_time_zone(name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_timezone_names z WHERE z.name = is_time_zone.name)
$$;
COMMENT ON FUNCTION pricing.is_time_zone(text) IS
    'Whether this server knows a time zone of this name. It takes some milliseconds: the server reads its files.';


CREATE OR REPLACE FUNCTION pricing.calendars_to_extend(again boolean DEFAULT false)
RETURNS TABLE (calendar text, from_day date, to_day date)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    until date := make_date(extract(year FROM now_ AT TIME ZONE 'UTC')::integer + 1, 12, 31);
BEGIN
    RETURN QUERY
    SELECT c.calendar, date '2000-01-01', until FROM pricing.calendars c
    WHERE EXISTS (SELECT FROM pricing.instruments i WHERE i.calendar = c.calendar)
      -- An exchange that has not told next year's holidays is asked about once a week.
      AND (again OR c.filled_at IS NULL OR (coalesce(c.sessions_to < until, true) AND c.filled_at < now_ - interval '7 days'))
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.calendars_to_extend(boolean) IS
    'Calendars of some instrument whose sessions are not known to the end of next year, and the days they are wanted for; again = all that are in use.';


CREATE OR REPLACE FUNCTION pricing.store_sessions(
    wanted_calendar text, from_day date, to_day date, days date[], opens timestamptz[], closes timestamptz[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    UPDATE pricing.calendars c
    SET filled_at = now_, sessions_from = least(c.sessions_from, from_day), sessions_to = greatest(c.sessions_to, to_day)
    WHERE c.calendar = wanted_calendar;
    IF to_day < (now_ AT TIME ZONE 'UTC')::date + 14 THEN
        PERFORM pricing.warn('extend_calendars', wanted_calendar, pg_catalog.format(
            'trading days of %s are known to %s only: after that its instruments go by their TTL, and their gaps are not known. A newer exchange-calendars may know more',
            wanted_calendar, to_day), '01000');
    END IF;
    -- A day of mourning is told days before: what was a session is none any more.
    DELETE FROM pricing.calendar_sessions s
    WHERE s.calendar = wanted_calendar AND s.session BETWEEN from_day AND to_day AND NOT s.session = ANY (days);
    INSERT INTO pricing.calendar_sessions AS s (calendar, session, opens_at, closes_at)
    SELECT wanted_calendar, u.day, u.opens_at, u.closes_at FROM unnest(days, opens, closes) AS u (day, opens_at, closes_at)
    WHERE u.day BETWEEN from_day AND to_day ORDER BY 2
    ON CONFLICT ON CONSTRAINT calendar_sessions_pkey DO UPDATE SET opens_at = excluded.opens_at, closes_at = excluded.closes_at
        WHERE (s.opens_at, s.closes_at) IS DISTINCT FROM (excluded.opens_at, excluded.closes_at);
    RETURN cardinality(days);
END $$;
COMMENT ON FUNCTION pricing.store_sessions(text, date, date, date[], timestamptz[], timestamptz[]) IS
    'Writes the sessions of a calendar between two days, in place of those that were known; warns when they end within a fortnight. Returns how many.';


CREATE OR REPLACE FUNCTION pricing.note_unknown_calendar(wanted_calendar text) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.calendars c SET filled_at = pricing.clock() WHERE c.calendar = wanted_calendar
$$;
COMMENT ON FUNCTION pricing.note_unknown_calendar(text) IS 'Nobody knows its sessions; it is not asked about again for a week.';


CREATE OR REPLACE FUNCTION pricing.store_own_sessions(wanted_calendar text, from_day date, to_day date) RETURNS integer
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.store_sessions(wanted_calendar, from_day, to_day, array_agg(d.day), array_agg(d.opens_at), array_agg(d.closes_at))
    FROM (SELECT g.day::date AS day,
                 CASE wanted_calendar WHEN 'FX' THEN (g.day - interval '7 hours') AT TIME ZONE 'America/New_York' ELSE g.day AT TIME ZONE 'UTC' END AS opens_at,
                 CASE wanted_calendar WHEN 'FX' THEN (g.day + interval '17 hours') AT TIME ZONE 'America/New_York'
                                      ELSE (g.day + interval '1 day') AT TIME ZONE 'UTC' END AS closes_at
          FROM generate_series(from_day::timestamp, to_day::timestamp, interval '1 day') AS g (day)
          WHERE wanted_calendar <> 'FX' OR extract(isodow FROM g.day) < 6) d
$$;
COMMENT ON FUNCTION pricing.store_own_sessions(text, date, date) IS
    'Writes the sessions of FX (Monday to Friday, each from 17:00 in New York on the day before) or of 24/7 (every day of UTC). Returns how many.';


CREATE OR REPLACE FUNCTION pricing.publish_lag(wanted_type text, wanted_symbol text, fetcher text) RETURNS interval
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN coalesce((SELECT p.lag FROM pricing.publish_lags p WHERE (p.data_type, p.symbol) = (wanted_type, wanted_symbol)),
                    pricing.usual_publish_lag(fetcher));
END $$;
COMMENT ON FUNCTION pricing.publish_lag(text, text, text) IS 'How long after the close the daily value of a pair should be there: as learned, else as is usual.';


CREATE OR REPLACE FUNCTION pricing.next_value_at(
    wanted_type text, wanted_symbol text, confirmed_at timestamptz, ttl interval) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    market text;
    kind text;
    lag interval;
    newest date;
    expected timestamptz;
BEGIN
    SELECT i.calendar, r.fetcher INTO market, kind
    FROM pricing.data_type_registry r JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, wanted_symbol)
    WHERE r.data_type = wanted_type;
    IF market IS NULL OR kind NOT IN ('quote', 'daily_bars', 'nav') THEN
        RETURN confirmed_at + ttl;
    ELSIF kind = 'quote' THEN
        -- The closing price is there a quarter of an hour after the close, also from a source that is so much behind.
        SELECT s.opens_at INTO expected FROM pricing.calendar_sessions s
        WHERE s.calendar = market AND s.closes_at > confirmed_at - interval '15 minutes' ORDER BY s.closes_at LIMIT 1;
        RETURN greatest(confirmed_at + ttl, expected);
    END IF;
    lag := pricing.publish_lag(wanted_type, wanted_symbol, kind);
    SELECT (l.observed_at AT TIME ZONE 'UTC')::date INTO newest FROM pricing.latest_prices l
    WHERE (l.data_type, l.symbol) = (wanted_type, wanted_symbol);
    -- The first session of which there is no value, or none that was looked at after it had become final.
    SELECT least((SELECT s.closes_at FROM pricing.calendar_sessions s
                  WHERE s.calendar = market AND s.session > newest ORDER BY s.session LIMIT 1),
                 (SELECT s.closes_at FROM pricing.calendar_sessions s
                  WHERE s.calendar = market AND s.closes_at > confirmed_at - lag ORDER BY s.closes_at LIMIT 1)) + lag
    INTO expected;
    IF expected IS NULL THEN
        RETURN confirmed_at + ttl;
    ELSIF expected > confirmed_at THEN
        RETURN expected;
    END IF;
    -- It was asked for and was not there: again after a quarter of an hour, then ever more seldom, at least once in a TTL.
    RETURN confirmed_at + least(ttl, greatest(interval '15 minutes', (confirmed_at - expected) / 2));
END $$;
COMMENT ON FUNCTION pricing.next_value_at(text, text, timestamptz, interval) IS
    'When a newer value than the one confirmed then should exist: of quotes a TTL later, but not while the market is closed; of daily values when the next session''s value is published. Without a known calendar a TTL later.';


CREATE OR REPLACE FUNCTION pricing.newest_expected(
    kind pricing.data_type_registry, wanted_symbol text, asked_at timestamptz, ttl_minutes integer) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    market record;
    -- Quotes may be a quarter of an hour behind.
    expected timestamptz := asked_at - CASE kind.fetcher
        WHEN 'quote' THEN make_interval(mins => greatest(ttl_minutes, 15))
        ELSE greatest(make_interval(mins => ttl_minutes), interval '5 days') END;
BEGIN
    SELECT i.calendar, m.closed_at, m.opens_at INTO market
    FROM pricing.instruments i CROSS JOIN LATERAL (
        SELECT (SELECT s.closes_at FROM pricing.calendar_sessions s
                WHERE s.calendar = i.calendar AND s.closes_at <= asked_at ORDER BY s.closes_at DESC LIMIT 1) AS closed_at,
               (SELECT s.opens_at FROM pricing.calendar_sessions s
                WHERE s.calendar = i.calendar AND s.closes_at > asked_at ORDER BY s.closes_at LIMIT 1) AS opens_at) m
    WHERE (i.asset_class, i.symbol) = (kind.asset_class, wanted_symbol);
    IF kind.fetcher <> 'quote' AND market.closed_at IS NOT NULL THEN
        RETURN (SELECT s.session::timestamp AT TIME ZONE 'UTC' FROM pricing.calendar_sessions s
                WHERE s.calendar = market.calendar AND s.closes_at <= asked_at - pricing.publish_lag(kind.data_type, wanted_symbol, kind.fetcher)
                ORDER BY s.closes_at DESC LIMIT 1);
    ELSIF kind.fetcher = 'quote' AND expected < market.opens_at THEN
        -- While the market is closed the quotes of its close are the newest.
        RETURN least(expected, market.closed_at - interval '20 minutes');
    END IF;
    RETURN expected;
END $$;
COMMENT ON FUNCTION pricing.newest_expected(pricing.data_type_registry, text, timestamptz, integer) IS
    'From when on a source that keeps up had a value when it was asked. NULL = no session is known.';


CREATE OR REPLACE FUNCTION pricing.is_source_old(
    kind pricing.data_type_registry, symbol text, observed_at timestamptz, asked_at timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE sql STABLE AS $$ -- without a path of its own, so that it becomes part of its query
    SELECT CASE
        WHEN observed_at IS NULL THEN false
        -- Mostly that is enough: no calendar expects more.
        WHEN observed_at >= asked_at - CASE kind.fetcher WHEN 'quote' THEN pg_catalog.make_interval(mins => greatest(ttl_minutes, 15))
                                                         ELSE interval '1 day' END THEN false
        ELSE coalesce(observed_at < pricing.newest_expected(kind, symbol, asked_at, ttl_minutes), false) END
$$;
COMMENT ON FUNCTION pricing.is_source_old(pricing.data_type_registry, text, timestamptz, timestamptz, integer) IS
    'Whether a source that was asked at a time had nothing as new as it should have had.';


CREATE OR REPLACE FUNCTION pricing.is_market_stale(
    data_type text, symbol text, stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    IF ttl_minutes IS NULL OR ttl_minutes <= 0 THEN
        RETURN pricing.is_data_stale(stamp, ttl_minutes); -- which refuses it
    END IF;
    RETURN coalesce(pricing.next_value_at(data_type, symbol, stamp, pg_catalog.make_interval(mins => ttl_minutes)) <= pricing.clock()
                    OR stamp > pricing.clock() + interval '1 minute', true);
END $$;
COMMENT ON FUNCTION pricing.is_market_stale(text, text, timestamptz, integer) IS
    'Stale when a newer value should exist by the instrument''s calendar and by the TTL, or when there is no time at all, or one more than a minute ahead.';


CREATE OR REPLACE FUNCTION pricing.is_market_stale(stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    RETURN pricing.is_data_stale(stamp, ttl_minutes);
END $$;
COMMENT ON FUNCTION pricing.is_market_stale(timestamptz, integer) IS
    'What a data type names to follow calendars. Of a time alone no calendar is known, so here the TTL decides; who knows the symbol asks the one of four arguments.';
