-- How the units of a calendar day are spread over it.
--
-- Polling from midnight on would leave no units when the market opens. So a tenth of the day's units is there at once,
-- eight tenths come evenly with the trading hours of what is watched, and a tenth when trading is over: for closing
-- prices, and for people who come late. While a market trades until the day ends, nothing comes after it.

CREATE OR REPLACE FUNCTION pricing.find_watched_calendars(wanted_provider text) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.chosen_routes r JOIN pricing.data_type_registry k USING (data_type)
               WHERE r.provider = wanted_provider
                 AND k.is_active
                 AND k.fetcher = 'quote') THEN
        RETURN QUERY
        SELECT DISTINCT coalesce(i.calendar, '') FROM pricing.demand d
        JOIN pricing.data_type_registry k USING (data_type)
        JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (k.asset_class, d.symbol)
        WHERE NOT d.is_background
          AND k.is_active
          AND k.fetcher = 'quote'
          AND i.is_active
          -- Its first answer tells the currency of a new instrument, and with it its calendar.
          AND (i.calendar IS NOT NULL OR i.verified_at IS NOT NULL)
          AND EXISTS (SELECT FROM pricing.chosen_routes r
                      WHERE r.provider = wanted_provider
                        AND r.data_type = d.data_type
                        AND coalesce(r.symbol, d.symbol) = d.symbol);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.find_watched_calendars(text) IS
    'The calendars of the quotes watched at a provider, computed from demand; an empty text stands for quotes without '
    'one.';


CREATE OR REPLACE FUNCTION pricing.note_watched_calendars() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    changed integer;
BEGIN
    WITH found AS MATERIALIZED (
        SELECT l.provider, w.calendar
        FROM (SELECT DISTINCT x.provider FROM pricing.provider_limits x WHERE x.day_timezone IS NOT NULL) l
        CROSS JOIN LATERAL pricing.find_watched_calendars(l.provider) AS w (calendar)),
    gone AS (
        DELETE FROM pricing.watched_calendars c
        WHERE (c.provider, c.calendar) NOT IN (SELECT f.provider, f.calendar FROM found f)
        RETURNING 1),
    come AS (
        INSERT INTO pricing.watched_calendars (provider, calendar)
        SELECT f.provider, f.calendar FROM found f
        ON CONFLICT DO NOTHING
        RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM come) INTO changed;
    RETURN changed;
END $$;
COMMENT ON FUNCTION pricing.note_watched_calendars() IS
    'Stores the calendars of the quotes watched at each provider with a limit of a calendar day, so that claims need '
    'not find them; returns how many changed.';


CREATE OR REPLACE FUNCTION pricing.watched_calendars_of(wanted_provider text) RETURNS SETOF text
-- Few: the planner would think of a thousand, and read the sessions of all calendars.
LANGUAGE plpgsql STABLE ROWS 4 SET search_path = '' AS $$
BEGIN
    -- While duties run, the stored calendars are at most a minute old.
    RETURN QUERY
    SELECT c.calendar FROM pricing.watched_calendars c
    WHERE c.provider = wanted_provider
      AND EXISTS (SELECT FROM pricing.duties d
                  WHERE d.duty = 'note_watched_calendars'
                    AND d.last_success_at BETWEEN pricing.clock() - interval '2 minutes'
                                              AND pricing.clock() + interval '10 seconds');
    -- Nothing noted may mean that somebody has begun to watch since. The day's units must not all be there until it is.
    IF NOT FOUND THEN
        RETURN QUERY SELECT f.calendar FROM pricing.find_watched_calendars(wanted_provider) AS f (calendar);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.watched_calendars_of(text) IS
    'The calendars of the quotes watched at a provider: as stored within two minutes, otherwise computed.';


CREATE OR REPLACE FUNCTION pricing.trading_hours(
    wanted_provider text, since timestamptz, until timestamptz) RETURNS tstzmultirange
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH watched AS MATERIALIZED (SELECT w.calendar FROM pricing.watched_calendars_of(wanted_provider) AS w (calendar))
    SELECT coalesce(range_agg(trading.span), '{}') FROM (
        -- The closing price is there a quarter of an hour after the close.
        SELECT s.span FROM watched w CROSS JOIN LATERAL (
            SELECT tstzrange(greatest(x.opens_at, since), least(x.closes_at + interval '15 minutes', until)) AS span
            FROM pricing.calendar_sessions x
            -- The longest session, the week of foreign exchange, has five days; without an end the index would be read
            -- to its own.
            WHERE x.calendar = w.calendar
              AND x.closes_at > since
              AND x.closes_at < until + interval '7 days'
              AND x.opens_at < until
            OFFSET 0) s
        UNION ALL
        -- Without known sessions, it may trade at any time.
        SELECT tstzrange(since, until) FROM watched w
        WHERE NOT EXISTS (SELECT FROM pricing.calendars c
                          WHERE c.calendar = w.calendar AND c.sessions_to >= since::date)) trading
$$;
COMMENT ON FUNCTION pricing.trading_hours(text, timestamptz, timestamptz) IS
    'When, between two times, the quotes watched at a provider can change: in their sessions, or always where these '
    'are unknown.';


CREATE OR REPLACE FUNCTION pricing.duration_of(ranges tstzmultirange) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT coalesce(sum(upper(r) - lower(r)), '0') FROM unnest(ranges) AS r
$$;
COMMENT ON FUNCTION pricing.duration_of(tstzmultirange) IS 'The total duration of some ranges of time.';


CREATE OR REPLACE FUNCTION pricing.paced_share(
    hours tstzmultirange, since timestamptz, until timestamptz, at timestamptz) RETURNS float8
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF isempty(hours) OR at >= upper(hours) THEN
        RETURN 1;
    END IF;
    RETURN 0.1 + CASE WHEN upper(hours) >= until THEN 0.9 ELSE 0.8 END
               * extract(epoch FROM pricing.duration_of(hours * tstzmultirange(tstzrange(since, at))))
               / extract(epoch FROM pricing.duration_of(hours))
         -- Between two sessions, the part kept for closing prices may be used.
         + CASE WHEN at > lower(hours) AND NOT hours @> at THEN 0.1 ELSE 0 END;
END $$;
COMMENT ON FUNCTION pricing.paced_share(tstzmultirange, timestamptz, timestamptz, timestamptz) IS
    'The share of a day''s units, 0.1 to 1, that may be used by a time of day, given the day''s trading hours.';


CREATE OR REPLACE FUNCTION pricing.overdrawn_at(
    hours tstzmultirange, until timestamptz, units bigint, used bigint, last_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
DECLARE
    most float8 := units * CASE WHEN upper(hours) >= until THEN 1.0 ELSE 0.9 END;
    since timestamptz := greatest(last_at, lower(hours));
    next_at timestamptz;
BEGIN
    IF used >= most THEN
        RETURN NULL;
    END IF;
    next_at := since + pricing.duration_of(hours * tstzmultirange(tstzrange(since, until))) / (most - used);
    RETURN CASE WHEN hours @> next_at THEN next_at
                ELSE (SELECT min(lower(r)) FROM unnest(hours) AS r WHERE lower(r) > next_at) END;
END $$;
COMMENT ON FUNCTION pricing.overdrawn_at(tstzmultirange, timestamptz, bigint, bigint, timestamptz) IS
    'When a day''s next unit is free after more were used than its trading hours have released; NULL = not before '
    'they release more.';


CREATE OR REPLACE FUNCTION pricing.paced_units(
    wanted pricing.provider_limits, key text, units bigint, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    since timestamptz;
    until timestamptz;
    hours tstzmultirange;
    paced bigint;
    used record;
BEGIN
    IF wanted.day_timezone IS NULL THEN
        RETURN units;
    END IF;
    since := date_trunc('day', now_, wanted.day_timezone);
    until := pricing.next_day(now_, wanted.day_timezone);
    hours := pricing.trading_hours(wanted.provider, since, until);
    paced := least(greatest(floor(units * pricing.paced_share(hours, since, until, now_)), 1), units);
    used := pricing.used_since(wanted.provider, key, since);
    RETURN CASE WHEN used.units >= paced
                     AND hours @> now_
                     AND pricing.overdrawn_at(hours, until, units, used.units, used.last_at) <= now_
                THEN used.units + 1
                ELSE paced END;
END $$;
COMMENT ON FUNCTION pricing.paced_units(pricing.provider_limits, text, bigint, timestamptz) IS
    'How many units of a limit a key may have used by now: those of a calendar day come with the trading hours.';


CREATE OR REPLACE FUNCTION pricing.used_since(
    wanted_provider text, key text, since timestamptz, OUT units bigint, OUT last_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT coalesce(sum(c.units), 0), max(c.counted_at) FROM pricing.counted_calls c
    WHERE c.provider = wanted_provider
      AND c.key_name = key
      AND c.counted_at > since - pricing.limit_window(0)
$$;
COMMENT ON FUNCTION pricing.used_since(text, text, timestamptz) IS
    'The units that a key has used since a time, and when it used the last.';


CREATE OR REPLACE FUNCTION pricing.paced_at(
    wanted pricing.provider_limits, key text, units bigint, now_ timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    since timestamptz := date_trunc('day', now_, wanted.day_timezone);
    until timestamptz := pricing.next_day(now_, wanted.day_timezone);
    hours tstzmultirange := pricing.trading_hours(wanted.provider, since, until);
    used record := pricing.used_since(wanted.provider, key, since);
BEGIN
    IF used.units >= units THEN
        RETURN until;
    END IF;
    RETURN least(
        (SELECT m
         FROM generate_series(date_trunc('minute', now_) + interval '1 minute', until, interval '1 minute') AS m
         WHERE floor(units * pricing.paced_share(hours, since, until, m)) > used.units
         ORDER BY 1 LIMIT 1),
        pricing.overdrawn_at(hours, until, units, used.units, used.last_at), until);
END $$;
COMMENT ON FUNCTION pricing.paced_at(pricing.provider_limits, text, bigint, timestamptz) IS
    'When a key may use one more unit of a calendar day''s limit than by now, to the minute.';


CREATE OR REPLACE FUNCTION pricing.paced_rate(
    wanted pricing.provider_limits, units bigint, now_ timestamptz) RETURNS float8
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    day_ timestamptz := date_trunc('day', now_, wanted.day_timezone);
    minutes float8;
BEGIN
    IF wanted.day_timezone IS NULL THEN
        RETURN units * 60 / wanted.window_seconds::float8;
    END IF;
    -- Of the longest day of a week: on a Sunday, too.
    SELECT max(extract(epoch FROM pricing.duration_of(
                   pricing.trading_hours(wanted.provider, d.since, d.since + interval '1 day'))) / 60)
    INTO minutes
    FROM (SELECT day_ - make_interval(days => n) AS since FROM generate_series(0, 6) AS n) d;
    -- While no watched quote has known sessions, the day's trading hours are unknown.
    RETURN CASE WHEN minutes >= 1440 THEN units / 1440.0
                WHEN minutes >= 1 THEN units * 0.8 / minutes END;
END $$;
COMMENT ON FUNCTION pricing.paced_rate(pricing.provider_limits, bigint, timestamptz) IS
    'Units a minute that a limit allows while watched pairs trade; NULL = trading hours are unknown.';


CREATE OR REPLACE FUNCTION pricing.next_day(now_ timestamptz, zone text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT (date_trunc('day', now_ AT TIME ZONE zone) + interval '1 day') AT TIME ZONE zone
$$;
COMMENT ON FUNCTION pricing.next_day(timestamptz, text) IS 'The beginning of the next day in a time zone.';
