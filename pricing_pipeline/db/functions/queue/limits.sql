-- Rate limits and quota. The call log is the memory of both. What outcomes say about a provider is in breakers.sql.
-- A worker only reads these tables. What writes them for it has the owner's rights and takes the time from the clock. Of its
-- caller it believes the outcome of a call and the bytes of its answer, within bounds (settle_call). Functions that are given
-- a time are for those, not for a worker.

CREATE OR REPLACE FUNCTION pricing.key_allowances(wanted_provider text, now_ timestamptz)
RETURNS TABLE (key_name text, is_active boolean, is_usable boolean, units_left bigint, units_limit integer, is_after_refusal boolean, is_nearly_used_up boolean,
               blocked_until timestamptz, blocked_reason text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    are_limited boolean := EXISTS (SELECT FROM pricing.provider_limits l WHERE l.provider = wanted_provider);
    k pricing.provider_keys;
BEGIN
    FOR k IN SELECT x.* FROM (VALUES (wanted_provider)) AS p (provider) LEFT JOIN pricing.provider_keys x USING (provider) LOOP
        key_name := coalesce(k.key_name, 'default');
        is_active := coalesce(k.is_active, true);
        is_usable := is_active AND coalesce(k.blocked_until, '-infinity') <= now_;
        is_after_refusal := coalesce(k.throttles, 0) > 0;
        is_nearly_used_up := coalesce(k.reported_left <= 5 AND k.reported_at > now_ - interval '60 seconds', false);
        SELECT k.blocked_until, k.blocked_reason INTO blocked_until, blocked_reason;
        IF is_usable AND is_after_refusal THEN
            -- After a refusal one call at a time goes out, so that no wave follows the pause.
            is_usable := NOT EXISTS (
                SELECT FROM pricing.counted_calls c
                WHERE c.provider = wanted_provider AND c.finished_at IS NULL AND c.key_name = k.key_name
                  AND c.counted_at > now_ - interval '60 seconds');
        END IF;
        units_left := 1000000000; -- no limit
        IF are_limited THEN
            SELECT min(plan.paced - used.units - CASE WHEN plan.is_reported AND k.foreign_until > now_ THEN k.foreign_units ELSE 0 END),
                   min(plan.units) INTO units_left, units_limit
            FROM (SELECT l.name, pricing.limit_start(l, now_) AS since,
                         -- No longer: a slow provider could never be used up.
                         make_interval(secs => coalesce(least(1.0, 0.5 * l.window_seconds), 1.0)) AS slack,
                         allowed.units, pricing.paced_units(l, key_allowances.key_name, allowed.units, now_) AS paced,
                         -- What providers say is left is of their longest window below a day.
                         l.window_seconds = max(l.window_seconds) OVER () AS is_reported
                  FROM pricing.provider_limits l
                  CROSS JOIN LATERAL (SELECT pricing.units_in_force(l, key_allowances.key_name, now_) AS units OFFSET 0) allowed
                  WHERE l.provider = wanted_provider) plan
            LEFT JOIN pricing.limit_counts n
                ON (n.provider, n.key_name, n.name) = (wanted_provider, key_allowances.key_name, plan.name)
               AND n.counted_to <= now_ AND plan.since >= n.counted_from AND plan.since < n.counted_to
            CROSS JOIN LATERAL (
                -- A call reaches its provider some time between its claim and its end: one that began before the window and
                -- ended in it may have arrived in it.
                SELECT (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                        WHERE c.provider = wanted_provider AND c.key_name = key_allowances.key_name
                          AND c.counted_at > plan.since - plan.slack AND c.counted_at <= plan.since
                          AND coalesce(c.finished_at, 'infinity') > plan.since)
                     + CASE WHEN n.units IS NULL
                    THEN (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                          WHERE c.provider = wanted_provider AND c.key_name = key_allowances.key_name AND c.counted_at > plan.since)
                    ELSE n.units
                       - (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                          WHERE c.provider = wanted_provider AND c.key_name = key_allowances.key_name
                            AND c.counted_at > n.counted_from AND c.counted_at <= plan.since)
                       + (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                          WHERE c.provider = wanted_provider AND c.key_name = key_allowances.key_name
                            AND c.counted_at >= n.counted_to) END AS units) used;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.key_allowances(text, timestamptz) IS
    'The keys of a provider, and the units that each may be charged now, the least over its limits. Exact only under the lock of the provider_state row.';


CREATE OR REPLACE FUNCTION pricing.units_written(wanted pricing.provider_limits, key text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN coalesce((SELECT own.units FROM pricing.provider_key_limits own
                     WHERE (own.provider, own.name, own.key_name) = (wanted.provider, wanted.name, key)), wanted.units);
END $$;
COMMENT ON FUNCTION pricing.units_written(pricing.provider_limits, text) IS 'Units that a limit allows to a key, as a person has written.';


CREATE OR REPLACE FUNCTION pricing.shown_units(wanted pricing.provider_limits, key text, now_ timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT s.shown_units FROM pricing.shown_limits s
            WHERE (s.provider, s.key_name, s.name) = (wanted.provider, key, wanted.name)
              -- Some providers name a limit only when they refuse a call. While it is kept to, nothing says that the plan has
              -- grown. So what is written is tried again once a day.
              AND s.shown_at > now_ - interval '1 day'
              -- With less no call could be made that shows another limit.
              AND s.shown_units >= (SELECT max(c.units_per_call + c.units_per_symbol) FROM pricing.provider_capabilities c
                                    WHERE c.provider = wanted.provider));
END $$;
COMMENT ON FUNCTION pricing.shown_units(pricing.provider_limits, text, timestamptz) IS
    'Units that a limit allows to a key, as its provider has shown within a day. NULL = it has shown no lower limit than the written one, or one that pays for no call.';


CREATE OR REPLACE FUNCTION pricing.units_in_force(wanted pricing.provider_limits, key text, now_ timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN least(pricing.units_written(wanted, key), pricing.shown_units(wanted, key, now_));
END $$;
COMMENT ON FUNCTION pricing.units_in_force(pricing.provider_limits, text, timestamptz) IS
    'Units that a key may be charged in the window of a limit: as written, or as shown by the provider, if that is less.';


CREATE OR REPLACE FUNCTION pricing.limit_window(seconds integer) RETURNS interval
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    -- More than the window, because a provider may round times, and still count a call that has only just left it here.
    RETURN make_interval(secs => seconds + 0.005);
END $$;
COMMENT ON FUNCTION pricing.limit_window(integer) IS 'How far back a window of so many seconds is counted: five milliseconds more than it is long.';


CREATE OR REPLACE FUNCTION pricing.limit_start(wanted pricing.provider_limits, now_ timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF wanted.window_seconds IS NOT NULL THEN
        RETURN now_ - pricing.limit_window(wanted.window_seconds);
    END IF;
    RETURN date_trunc('day', now_, wanted.day_timezone) - pricing.limit_window(0);
END $$;
COMMENT ON FUNCTION pricing.limit_start(pricing.provider_limits, timestamptz) IS 'Calls after this moment count against the limit now.';


-- A day's units are spent where they serve. Whoever polls from midnight on has none left when the market opens. So a tenth is
-- there at once, eight tenths come evenly with the trading hours of what is watched, and a tenth comes when trading is over:
-- for closing prices, and for people who come late. While a market trades at the end of the day, nothing comes after it.

CREATE OR REPLACE FUNCTION pricing.find_watched_calendars(wanted_provider text) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = '' SET jit = off AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.chosen_routes r JOIN pricing.data_type_registry k USING (data_type)
               WHERE r.provider = wanted_provider AND k.is_active AND k.fetcher = 'quote') THEN
        RETURN QUERY
        SELECT DISTINCT coalesce(i.calendar, '') FROM pricing.demand d
        JOIN pricing.data_type_registry k USING (data_type)
        JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (k.asset_class, d.symbol)
        WHERE NOT d.is_background AND k.is_active AND k.fetcher = 'quote' AND i.is_active
          AND EXISTS (SELECT FROM pricing.chosen_routes r WHERE r.provider = wanted_provider AND r.data_type = d.data_type
                                                            AND coalesce(r.symbol, d.symbol) = d.symbol);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.find_watched_calendars(text) IS
    'The calendars of the quotes that are watched at a provider, of all that is wanted; empty text for those without one.';


CREATE OR REPLACE FUNCTION pricing.note_watched_calendars() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    changed integer;
BEGIN
    WITH found AS MATERIALIZED (
        SELECT l.provider, w.calendar FROM (SELECT DISTINCT x.provider FROM pricing.provider_limits x WHERE x.day_timezone IS NOT NULL) l
        CROSS JOIN LATERAL pricing.find_watched_calendars(l.provider) AS w (calendar)),
    gone AS (
        DELETE FROM pricing.watched_calendars c WHERE (c.provider, c.calendar) NOT IN (SELECT f.provider, f.calendar FROM found f) RETURNING 1),
    come AS (
        INSERT INTO pricing.watched_calendars (provider, calendar) SELECT f.provider, f.calendar FROM found f ON CONFLICT DO NOTHING RETURNING 1)
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM come) INTO changed;
    RETURN changed;
END $$;
COMMENT ON FUNCTION pricing.note_watched_calendars() IS
    'Notes the calendars of the quotes that are watched at each provider with a limit of a calendar day, so that no claim has to look at all that is wanted. Returns how many have come or gone.';


CREATE OR REPLACE FUNCTION pricing.watched_calendars_of(wanted_provider text) RETURNS SETOF text
-- Few: the planner would think of a thousand, and read the sessions of all calendars.
LANGUAGE plpgsql STABLE ROWS 4 SET search_path = '' AS $$
BEGIN
    -- What is noted is a minute old at most while duties run.
    RETURN QUERY
    SELECT c.calendar FROM pricing.watched_calendars c
    WHERE c.provider = wanted_provider
      AND EXISTS (SELECT FROM pricing.duties d WHERE d.duty = 'note_watched_calendars'
                  AND d.last_success_at BETWEEN pricing.clock() - interval '2 minutes' AND pricing.clock() + interval '10 seconds');
    -- Nothing noted may mean that somebody has begun to watch since. The day's units must not all be there until it is.
    IF NOT FOUND THEN
        RETURN QUERY SELECT f.calendar FROM pricing.find_watched_calendars(wanted_provider) AS f (calendar);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.watched_calendars_of(text) IS
    'The calendars of the quotes that are watched at a provider: as noted within two minutes, or, where none is noted, as they are.';


CREATE OR REPLACE FUNCTION pricing.trading_hours(wanted_provider text, since timestamptz, until timestamptz) RETURNS tstzmultirange
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH watched AS MATERIALIZED (SELECT w.calendar FROM pricing.watched_calendars_of(wanted_provider) AS w (calendar))
    SELECT coalesce(range_agg(trading.span), '{}') FROM (
        -- The closing price is there a quarter of an hour after the close.
        SELECT tstzrange(greatest(s.opens_at, since), least(s.closes_at + interval '15 minutes', until)) AS span
        FROM watched w JOIN pricing.calendar_sessions s ON s.calendar = w.calendar AND s.closes_at > since AND s.opens_at < until
        UNION ALL
        -- Of what has no known sessions nobody knows when it trades.
        SELECT tstzrange(since, until) FROM watched w
        WHERE NOT EXISTS (SELECT FROM pricing.calendars c WHERE c.calendar = w.calendar AND c.sessions_to >= since::date)) trading
$$;
COMMENT ON FUNCTION pricing.trading_hours(text, timestamptz, timestamptz) IS
    'When, between two times, the quotes that are watched at a provider can change: the sessions of their calendars, or always where those are not known.';


CREATE OR REPLACE FUNCTION pricing.duration_of(ranges tstzmultirange) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT coalesce(sum(upper(r) - lower(r)), '0') FROM unnest(ranges) AS r
$$;
COMMENT ON FUNCTION pricing.duration_of(tstzmultirange) IS 'How long some ranges of time last together.';


CREATE OR REPLACE FUNCTION pricing.paced_share(hours tstzmultirange, since timestamptz, until timestamptz, at timestamptz) RETURNS float8
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF isempty(hours) OR at >= upper(hours) THEN
        RETURN 1;
    END IF;
    RETURN 0.1 + CASE WHEN upper(hours) >= until THEN 0.9 ELSE 0.8 END
               * extract(epoch FROM pricing.duration_of(hours * tstzmultirange(tstzrange(since, at))))
               / extract(epoch FROM pricing.duration_of(hours))
         -- Between two sessions, what is kept for closing prices may be used.
         + CASE WHEN at > lower(hours) AND NOT hours @> at THEN 0.1 ELSE 0 END;
END $$;
COMMENT ON FUNCTION pricing.paced_share(tstzmultirange, timestamptz, timestamptz, timestamptz) IS
    'The share of a day''s units, from 0.1 to 1, that may be used by a time of the day, by the trading hours of the day.';


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
    RETURN CASE WHEN hours @> next_at THEN next_at ELSE (SELECT min(lower(r)) FROM unnest(hours) AS r WHERE lower(r) > next_at) END;
END $$;
COMMENT ON FUNCTION pricing.overdrawn_at(tstzmultirange, timestamptz, bigint, bigint, timestamptz) IS
    'When the next unit of a day comes of which more is used than its trading hours have brought, because nobody watched before: what is left is spread over the rest of them. NULL = not before they have brought more.';


CREATE OR REPLACE FUNCTION pricing.paced_units(wanted pricing.provider_limits, key text, units bigint, now_ timestamptz) RETURNS bigint
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
    RETURN CASE WHEN used.units >= paced AND hours @> now_ AND pricing.overdrawn_at(hours, until, units, used.units, used.last_at) <= now_
                THEN used.units + 1 ELSE paced END;
END $$;
COMMENT ON FUNCTION pricing.paced_units(pricing.provider_limits, text, bigint, timestamptz) IS
    'How many of the units of a limit a key may have used by now. Those of a calendar day come with the trading hours of what is watched. Where nothing that is watched trades that day, all are there.';


CREATE OR REPLACE FUNCTION pricing.used_since(wanted_provider text, key text, since timestamptz, OUT units bigint, OUT last_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT coalesce(sum(c.units), 0), max(c.counted_at) FROM pricing.counted_calls c
    WHERE c.provider = wanted_provider AND c.key_name = key AND c.counted_at > since - pricing.limit_window(0)
$$;
COMMENT ON FUNCTION pricing.used_since(text, text, timestamptz) IS 'The units that a key has used since a time, and when the last of them was.';


CREATE OR REPLACE FUNCTION pricing.paced_at(wanted pricing.provider_limits, key text, units bigint, now_ timestamptz) RETURNS timestamptz
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
        (SELECT m FROM generate_series(date_trunc('minute', now_) + interval '1 minute', until, interval '1 minute') AS m
         WHERE floor(units * pricing.paced_share(hours, since, until, m)) > used.units ORDER BY 1 LIMIT 1),
        pricing.overdrawn_at(hours, until, units, used.units, used.last_at), until);
END $$;
COMMENT ON FUNCTION pricing.paced_at(pricing.provider_limits, text, bigint, timestamptz) IS
    'When one more unit of a calendar day''s limit may be used by a key than were by now, to the minute.';


CREATE OR REPLACE FUNCTION pricing.paced_rate(wanted pricing.provider_limits, units bigint, now_ timestamptz) RETURNS float8
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    day_ timestamptz := date_trunc('day', now_, wanted.day_timezone);
    minutes float8;
BEGIN
    IF wanted.day_timezone IS NULL THEN
        RETURN units * 60 / wanted.window_seconds::float8;
    END IF;
    -- Of the longest day of a week: on a Sunday, too.
    SELECT max(extract(epoch FROM pricing.duration_of(pricing.trading_hours(wanted.provider, d.since, d.since + interval '1 day'))) / 60) INTO minutes
    FROM (SELECT day_ - make_interval(days => n) AS since FROM generate_series(0, 6) AS n) d;
    RETURN CASE WHEN minutes BETWEEN 1 AND 1439 THEN units * 0.8 / minutes ELSE units / 1440.0 END;
END $$;
COMMENT ON FUNCTION pricing.paced_rate(pricing.provider_limits, bigint, timestamptz) IS
    'Units a minute that a limit allows while what is watched trades.';


CREATE OR REPLACE FUNCTION pricing.next_day(now_ timestamptz, zone text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT (date_trunc('day', now_ AT TIME ZONE zone) + interval '1 day') AT TIME ZONE zone
$$;
COMMENT ON FUNCTION pricing.next_day(timestamptz, text) IS 'The beginning of the next day in a time zone.';


CREATE OR REPLACE FUNCTION pricing.count_units(wanted_provider text, now_ timestamptz) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.limit_counts AS n (provider, key_name, name, counted_from, counted_to, units)
    SELECT l.provider, k.key_name, l.name, since.at, now_,
           (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
            WHERE c.provider = wanted_provider AND c.key_name = k.key_name AND c.counted_at > since.at AND c.counted_at < now_)
    FROM pricing.provider_limits l
    CROSS JOIN (SELECT 'default' AS key_name UNION SELECT x.key_name FROM pricing.provider_keys x WHERE x.provider = wanted_provider) k
    CROSS JOIN LATERAL (SELECT pricing.limit_start(l, now_) AS at) since
    WHERE l.provider = wanted_provider
    ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT limit_counts_pkey
        DO UPDATE SET counted_from = excluded.counted_from, counted_to = excluded.counted_to, units = excluded.units
$$;
COMMENT ON FUNCTION pricing.count_units(text, timestamptz) IS
    'Counts the windows of a provider from its call log, for later claims to go on from. Only under the lock of the provider_state row.';


CREATE OR REPLACE FUNCTION pricing.units_available(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT coalesce(sum(greatest(r.units_left, 0)), 0) FROM pricing.key_allowances(wanted_provider, now_) r
            WHERE r.is_usable OR r.is_after_refusal);
END $$;
COMMENT ON FUNCTION pricing.units_available(text, timestamptz) IS 'Units that a provider may be charged now, over all its active keys that are not blocked.';


CREATE OR REPLACE FUNCTION pricing.bytes_used(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (coalesce((SELECT sum(u.bytes) FROM pricing.api_data_usage u
                      WHERE u.provider = wanted_provider AND u.hour > now_ - make_interval(hours => 721)), 0)
          + coalesce((SELECT sum(c.reserved_bytes) FROM pricing.collector_call_log c
                      WHERE c.provider = wanted_provider AND c.finished_at IS NULL), 0))::bigint;
END $$;
COMMENT ON FUNCTION pricing.bytes_used(text, timestamptz) IS 'Bytes of the last 720 hours (an hour that is partly in counts whole), calls in flight included at their estimate.';


CREATE OR REPLACE FUNCTION pricing.quota_for(quota bigint, priority integer) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN quota / 100 * CASE priority WHEN -2 THEN 75 WHEN -1 THEN 90 ELSE 95 END;
END $$;
COMMENT ON FUNCTION pricing.quota_for(bigint, integer) IS 'How much of a quota work of this priority may use: backfill stops at 75 %, scheduled at 90 %, the rest at 95 %.';


CREATE OR REPLACE FUNCTION pricing.settle_call(
    settled bigint, result text, status integer, bytes bigint, message text DEFAULT NULL, kind text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    hour_ timestamptz := date_trunc('hour', now_, 'UTC');
    call pricing.collector_call_log;
BEGIN
    UPDATE pricing.collector_call_log c
    SET outcome = result, http_status = status, wire_bytes = bytes, error = left(message, 500), failure_kind = kind, finished_at = now_
    WHERE c.call_id = settled AND c.finished_at IS NULL
    RETURNING * INTO call;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- A client takes 16 MiB at most; 64 times as much is allowed, so that a larger bound there needs no change here. Of a call
    -- that was lost the estimate is booked. Other figures would undo the quota.
    IF bytes IS NULL OR bytes < 0 OR bytes > greatest(call.reserved_bytes, 64 * 16 * 1024 * 1024) THEN
        RAISE EXCEPTION 'an answer does not take % bytes', coalesce(bytes::text, 'no') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- In a row that is free: one row for all would stay locked until this transaction is on the disk, and all wait for it.
    UPDATE pricing.api_data_usage u SET calls = u.calls + 1, units = u.units + call.units, bytes = u.bytes + settle_call.bytes
    WHERE u.provider = call.provider AND u.hour = hour_ AND u.slot = (
        SELECT x.slot FROM pricing.api_data_usage x WHERE x.provider = call.provider AND x.hour = hour_
        ORDER BY x.slot LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO pricing.api_data_usage (provider, hour, slot, calls, units, bytes)
        -- In a row of its own: that of this session may be one of those that are locked.
        VALUES (call.provider, hour_, (random() * 2000000000)::integer, 1, call.units, bytes);
    END IF;
    IF result = 'ok' AND kind IS NULL AND bytes > 0 THEN
        PERFORM pricing.learn_size(call, now_);
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION pricing.settle_call(bigint, text, integer, bigint, text, text) IS 'Closes a call and books its wire bytes, once; false when it was closed before.';


CREATE OR REPLACE FUNCTION pricing.note_unannounced(answered bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    UPDATE pricing.collector_call_log c SET is_unannounced = true WHERE c.call_id = answered
$$;
COMMENT ON FUNCTION pricing.note_unannounced(bigint) IS 'Notes that the answer of a call came without saying how long it is.';


CREATE OR REPLACE FUNCTION pricing.lock_call(locked bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM FROM pricing.collector_call_log c WHERE c.call_id = locked FOR UPDATE;
END $$;
COMMENT ON FUNCTION pricing.lock_call(bigint) IS
    'Locks the row of a call until the transaction ends, so that what is stored for it can be settled.';


CREATE OR REPLACE FUNCTION pricing.learn_size(call pricing.collector_call_log, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    each float8 := call.wire_bytes / greatest(cardinality(call.symbols), 1)::float8;
    unit text := 'symbol';
    overrun boolean := call.wire_bytes > 2 * call.reserved_bytes;
BEGIN
    IF call.window_end <> 'infinity' THEN
        -- A short span is mostly its frame, of which the estimate allows 1,000 bytes: it says little about a day.
        IF call.window_end - call.window_start < 29 AND NOT overrun THEN
            RETURN;
        END IF;
        unit := 'day';
        each := greatest(each - 1000, 1) / (call.window_end - call.window_start + 1);
    END IF;
    -- What is known well is not written anew by every call: all workers would wait for this one row.
    IF NOT overrun AND EXISTS (
        SELECT FROM pricing.size_estimates s
        WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit)
          AND s.measurements >= 20 AND abs(s.bytes - each) <= 0.05 * s.bytes) THEN
        RETURN;
    END IF;
    -- A measurement is not worth waiting for.
    PERFORM FROM pricing.size_estimates s
    WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM pricing.size_estimates s
                             WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit)) THEN
        RETURN;
    END IF;
    INSERT INTO pricing.size_estimates AS s (provider, data_type, per, bytes, measured_at, overruns, last_overrun_at, last_overrun_ratio)
    VALUES (call.provider, call.data_type, unit, each, now_, overrun::integer, CASE WHEN overrun THEN now_ END,
            CASE WHEN overrun THEN call.wire_bytes / greatest(call.reserved_bytes, 1)::float8 END)
    ON CONFLICT ON CONSTRAINT size_estimates_pkey DO UPDATE
    SET bytes = 0.9 * s.bytes + 0.1 * excluded.bytes, measurements = s.measurements + 1, measured_at = excluded.measured_at,
        overruns = s.overruns + excluded.overruns, last_overrun_at = coalesce(excluded.last_overrun_at, s.last_overrun_at),
        last_overrun_ratio = coalesce(excluded.last_overrun_ratio, s.last_overrun_ratio);
END $$;
COMMENT ON FUNCTION pricing.learn_size(pricing.collector_call_log, timestamptz) IS
    'Corrects the size estimate by what a good call brought: the first measurement whole, then nine parts old and one part new. Counts answers of more than twice their estimate.';


CREATE OR REPLACE FUNCTION pricing.expire_calls() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    forgotten pricing.collector_call_log;
    expired integer := 0;
BEGIN
    FOR forgotten IN
        SELECT c.* FROM pricing.collector_call_log c
        WHERE c.finished_at IS NULL AND coalesce(c.moved_to, c.started_at) < now_ - interval '60 seconds'
          AND NOT EXISTS (
              SELECT FROM unnest(c.symbols) AS s
              JOIN pricing.api_call_queue_live q
                  ON (q.data_type, q.symbol, q.window_start, q.window_end) = (c.data_type, s, c.window_start, c.window_end)
              WHERE q.call_id = c.call_id AND q.status = 'processing')
        ORDER BY c.provider, c.call_id FOR UPDATE OF c SKIP LOCKED
    LOOP
        PERFORM pricing.settle_call(forgotten.call_id, 'unknown', NULL, forgotten.reserved_bytes,
                                    'the worker was lost during the call; its estimate is booked');
        PERFORM pricing.lose_probe(forgotten.provider, forgotten.call_id);
        expired := expired + 1;
    END LOOP;
    RETURN expired;
END $$;
COMMENT ON FUNCTION pricing.expire_calls() IS 'Closes calls whose worker was lost, booking their estimate: their fate is unknown, so they count as made.';


CREATE OR REPLACE FUNCTION pricing.queue_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    room bigint;
BEGIN
    SELECT pricing.quota_for(p.quota_bytes, least_priority) - pricing.bytes_used(p.provider, pricing.clock()) INTO room
    FROM pricing.data_collectors p WHERE p.provider = wanted_provider;
    -- Mostly the quota is far away: no more tasks fit into the pages of the table (100 bytes are the least that one takes), and
    -- none is twice as large as the largest of today. Where that is not enough to know, those that wait are counted.
    IF more_bytes + pg_catalog.pg_relation_size('pricing.api_call_queue_live') / 100 * (
            SELECT 2 * greatest(max(r.estimated_data_size_bytes),
                                (SELECT ceil(max(s.bytes)) FROM pricing.size_estimates s WHERE s.per = 'symbol'))
            FROM pricing.data_type_registry r) <= room THEN
        RETURN NULL;
    END IF;
    -- What is in work has its bytes reserved.
    room := room - (SELECT coalesce(sum(q.est_bytes), 0) FROM pricing.api_call_queue_live q
                    WHERE q.provider = wanted_provider AND q.run_after IS NULL AND (-q.priority) <= -least_priority AND q.status = 'pending')
                 - (SELECT coalesce(sum(q.est_bytes), 0) FROM pricing.api_call_queue_live q
                    WHERE q.provider = wanted_provider AND q.run_after IS NOT NULL AND q.priority >= least_priority);
    RETURN CASE WHEN room < more_bytes THEN greatest(room, 0) END;
END $$;
COMMENT ON FUNCTION pricing.queue_room(text, integer, bigint) IS
    'The bytes that may still be queued for a provider: what its quota leaves work of this priority, less what waits of this priority or a higher one. NULL = so many more bytes fit.';


CREATE OR REPLACE FUNCTION pricing.producers_beside_each_other() RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN 16;
END $$;
COMMENT ON FUNCTION pricing.producers_beside_each_other() IS
    'How many sessions that queue as much as one does must fit into a quota beside each other, for one not to look what the others do.';


CREATE OR REPLACE FUNCTION pricing.take_room(wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    many bigint := pricing.producers_beside_each_other();
BEGIN
    -- Sessions do not see what others are queueing. While that many like this one fit beside each other, they need not.
    IF pricing.queue_room(wanted_provider, least_priority, many * more_bytes) IS NULL THEN
        RETURN NULL;
    ELSIF NOT pricing.take_turn('queue_room ' || wanted_provider) THEN
        -- Whoever has the turn may keep it for long: the others go on, more slowly. A claim never goes past the quota.
        RETURN pricing.queue_room(wanted_provider, least_priority, many * more_bytes) / many;
    END IF;
    RETURN pricing.queue_room(wanted_provider, least_priority, many * more_bytes); -- whoever had the turn may have filled it
END $$;
COMMENT ON FUNCTION pricing.take_room(text, integer, bigint) IS
    'The bytes of room that are to be shared out (share_of), for a producer that wants to queue so many; NULL = sixteen such producers fit beside each other. One session at a time, until its transaction ends, may fill the room; each other has a sixteenth of it. So the queue goes past the room only while several do not commit, each by a sixteenth.';


CREATE OR REPLACE FUNCTION pricing.may_fit(wanted_provider text, priority integer, bytes bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT bytes <= pricing.quota_for(p.quota_bytes, priority) FROM pricing.data_collectors p WHERE p.provider = wanted_provider);
END $$;
COMMENT ON FUNCTION pricing.may_fit(text, integer, bigint) IS
    'Whether one such task fits into the empty quota of a provider. One that never does is queued all the same: so it fails, and says why (fail_impossible_tasks).';


CREATE OR REPLACE FUNCTION pricing.within_quota(
    wanted_type text, symbols text[], priorities integer[], OUT fitting text[], OUT fitting_priorities integer[], OUT left_out text[])
LANGUAGE plpgsql SET search_path = '' SET jit = off AS $$
DECLARE
    least_priority integer := (SELECT least(min(p), 0) FROM unnest(priorities) AS p);
BEGIN
    fitting := symbols;
    fitting_priorities := priorities;
    IF NOT EXISTS (
        SELECT FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (r.provider, r.data_type, 'symbol')
        WHERE r.data_type = wanted_type AND pricing.queue_room(
            r.provider, least_priority, pricing.producers_beside_each_other() * cardinality(symbols) * ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint) IS NOT NULL) THEN
        RETURN;
    END IF;
    WITH asked AS MATERIALIZED (
        SELECT u.symbol, u.priority, (pricing.route(wanted_type, u.symbol)).provider FROM unnest(symbols, priorities) AS u (symbol, priority)),
    sized AS (
        SELECT a.provider, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint AS bytes,
               array_agg(a.symbol) AS symbols, array_agg(a.priority) AS priorities
        FROM asked a JOIN pricing.data_type_registry k ON k.data_type = wanted_type
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (a.provider, wanted_type, 'symbol')
        WHERE a.provider IS NOT NULL AND pricing.may_fit(a.provider, least_priority, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint)
        GROUP BY 1, 2),
    rooms AS MATERIALIZED (
        SELECT z.*, pricing.take_room(z.provider, least_priority, cardinality(z.symbols) * z.bytes) AS room FROM sized z),
    without_room AS MATERIALIZED (
        SELECT r.provider, unnest(r.symbols) AS symbol FROM rooms r WHERE r.room IS NOT NULL
        EXCEPT
        SELECT r.provider, unnest(pricing.share_of(r.provider, r.room, wanted_type, r.symbols, r.priorities)) FROM rooms r WHERE r.room IS NOT NULL)
    SELECT array_agg(a.symbol ORDER BY a.symbol) FILTER (WHERE f.symbol IS NULL), array_agg(a.priority ORDER BY a.symbol) FILTER (WHERE f.symbol IS NULL),
           array_agg(a.symbol ORDER BY a.symbol) FILTER (WHERE f.symbol IS NOT NULL)
    INTO fitting, fitting_priorities, left_out FROM asked a LEFT JOIN without_room f USING (symbol);
END $$;
COMMENT ON FUNCTION pricing.within_quota(text, text[], integer[]) IS
    'Of the latest prices that a producer wants to queue, those that the quotas of their providers have room for, by the highest priority, and those that they have none for. What no provider serves fits.';


CREATE OR REPLACE FUNCTION pricing.share_of(
    wanted_provider text, room bigint, wanted_type text, symbols text[], viewers integer[]) RETURNS text[]
LANGUAGE sql SET search_path = '' SET jit = off AS $$
    WITH mine AS MATERIALIZED (SELECT u.symbol, u.viewers FROM unnest(symbols, viewers) AS u (symbol, viewers)),
    kinds AS MATERIALIZED (
        SELECT k.data_type, coalesce(s.bytes, k.estimated_data_size_bytes) AS bytes, (pricing.common_route(k.data_type)).provider AS common
        FROM pricing.data_type_registry k
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (wanted_provider, k.data_type, 'symbol')
        WHERE k.is_active AND pricing.may_fit(wanted_provider, 0, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint)
          AND EXISTS (SELECT FROM pricing.provider_routing r WHERE (r.data_type, r.provider) = (k.data_type, wanted_provider) AND r.is_active)),
    wanted AS (
        SELECT true AS is_mine, wanted_type AS data_type, m.symbol, m.viewers, coalesce(d.due_at, pricing.clock()) AS due_at
        FROM mine m LEFT JOIN pricing.demand d ON (d.data_type, d.symbol) = (wanted_type, m.symbol)
        UNION ALL
        SELECT false, d.data_type, d.symbol,
               greatest((SELECT count(*)::integer FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)),
                        (d.read_at IS NOT NULL)::integer), d.due_at
        FROM kinds k JOIN pricing.demand d USING (data_type)
        WHERE d.due_at <= pricing.clock() AND d.became_due_at IS NULL
          AND NOT (d.data_type = wanted_type AND EXISTS (SELECT FROM mine m WHERE m.symbol = d.symbol))
          AND coalesce(k.common, (pricing.route(d.data_type, d.symbol)).provider) = wanted_provider),
    ranked AS (
        -- One order of all, whoever asks: else each type might leave the room to another.
        SELECT w.*, sum(k.bytes) OVER (ORDER BY w.viewers DESC, w.due_at, w.data_type, w.symbol) AS bytes
        FROM wanted w JOIN kinds k USING (data_type))
    SELECT array_agg(r.symbol ORDER BY r.bytes) FROM ranked r WHERE r.is_mine AND r.bytes <= room
$$;
COMMENT ON FUNCTION pricing.share_of(text, bigint, text, text[], integer[]) IS
    'Of these pairs with so many viewers, those for which so many bytes of room suffice, when all that is due of a provider, of any type, is served by the number of its viewers. NULL = none.';


CREATE OR REPLACE FUNCTION pricing.unqueued_pairs() RETURNS TABLE (provider text, data_type text, pairs bigint)
LANGUAGE plpgsql STABLE SET search_path = '' SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH kinds AS MATERIALIZED (
        SELECT k.data_type, k.estimated_data_size_bytes, (pricing.common_route(k.data_type)).provider AS common
        FROM pricing.data_type_registry k WHERE k.is_active),
    due AS MATERIALIZED (
        SELECT coalesce(k.common, (pricing.route(d.data_type, d.symbol)).provider) AS provider, d.data_type, count(*) AS pairs
        FROM kinds k JOIN pricing.demand d USING (data_type)
        WHERE d.became_due_at IS NULL AND (d.due_at <= now_ OR d.owed_since <= now_) AND coalesce(d.backoff_until, '-infinity') <= now_
        GROUP BY 1, 2),
    without_room AS (
        SELECT u.provider FROM due u JOIN kinds k USING (data_type)
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (u.provider, u.data_type, 'symbol')
        GROUP BY 1 HAVING pricing.queue_room(u.provider, 0, ceil(sum(u.pairs * coalesce(s.bytes, k.estimated_data_size_bytes)))::bigint) IS NOT NULL)
    SELECT u.provider, u.data_type, u.pairs FROM due u JOIN without_room USING (provider) ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.unqueued_pairs() IS
    'How many pairs are due and not queued, where the quota of their provider has no room for all that are.';


CREATE OR REPLACE FUNCTION pricing.check_backfill_quota(wanted uuid) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    short record;
BEGIN
    -- Plans of other types, which are not committed, are not seen: where it may matter, one plan at a time is checked.
    PERFORM pricing.await_turn('queue_room ' || b.provider)
    FROM (SELECT q.provider, sum(q.est_bytes)::bigint AS wanted_bytes FROM pricing.api_call_queue_live q
          WHERE q.backfill_id = wanted GROUP BY 1 ORDER BY 1) b
    WHERE pricing.queue_room(b.provider, -2, (pricing.producers_beside_each_other() - 1) * b.wanted_bytes) IS NOT NULL;
    SELECT p.provider, p.quota_bytes, b.wanted_bytes,
           greatest(pricing.quota_for(p.quota_bytes, -2) - pricing.bytes_used(p.provider, now_) - b.other_bytes, 0) AS left_bytes INTO short
    FROM (SELECT q.provider, sum(q.est_bytes) FILTER (WHERE q.backfill_id = wanted) AS wanted_bytes,
                 coalesce(sum(q.est_bytes) FILTER (WHERE q.backfill_id IS DISTINCT FROM wanted AND q.status <> 'processing'), 0) AS other_bytes
          FROM pricing.api_call_queue_live q GROUP BY 1) b
    JOIN pricing.data_collectors p USING (provider)
    WHERE b.wanted_bytes > pricing.quota_for(p.quota_bytes, -2) - pricing.bytes_used(p.provider, now_) - b.other_bytes
    ORDER BY 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the backfill needs about % bytes from %, but % are left: backfills stop at 75 %% of its quota of % bytes, and what waits in the queue needs its part',
            short.wanted_bytes, short.provider, short.left_bytes, short.quota_bytes
            USING HINT = 'Ask for fewer days or symbols, try again when bytes of the last 30 days have left the window, or raise the quota with `pricing-pipeline provider change`.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_backfill_quota(uuid) IS 'Refuses a backfill that has just been queued if it cannot fit into what its providers'' quotas leave for backfills.';


CREATE OR REPLACE FUNCTION pricing.budget()
RETURNS TABLE (provider text, pairs bigint, units_needed float8, units_allowed float8, bytes_needed bigint, bytes_allowed bigint)
-- With the owner's rights: a reader sees its own subscriptions only, and the figure is of everybody's.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH wanted AS (
        SELECT d.data_type, d.symbol, r.fetcher, r.estimated_data_size_bytes,
               CASE WHEN watched.is_true THEN coalesce(l.cache_ttl_minutes, r.default_ttl_minutes) ELSE r.background_ttl_minutes END AS ttl
        FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
        LEFT JOIN pricing.latest_answers l USING (data_type, symbol)
        LEFT JOIN pricing.instruments i USING (asset_class, symbol)
        CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pricing.active_subscriptions a
                                           WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)) AS is_true) watched
        WHERE r.is_active AND coalesce(i.is_active AND i.update_mode = 'api', true)
          AND (watched.is_true OR EXISTS (SELECT FROM pricing.holdings h WHERE (h.data_type, h.active_symbol) = (d.data_type, d.symbol)))),
    routed AS (
        SELECT p.provider, w.data_type, w.ttl, coalesce(s.bytes, w.estimated_data_size_bytes) AS bytes,
               c.units_per_call, c.units_per_symbol, c.batch_size, c.batch_from,
               count(*) OVER (PARTITION BY p.provider, w.data_type) AS alike
        FROM wanted w
        LEFT JOIN pricing.chosen_routes broad ON broad.data_type = w.data_type AND broad.symbol IS NULL
        LEFT JOIN pricing.chosen_routes own ON own.data_type = w.data_type AND own.symbol = w.symbol
        JOIN pricing.data_collectors p ON p.provider = coalesce(own.provider, broad.provider) AND p.is_active
        JOIN pricing.provider_capabilities c ON c.provider = p.provider AND c.fetcher = w.fetcher
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (p.provider, w.data_type, 'symbol')),
    served AS (
        SELECT r.provider, count(*) AS pairs,
               -- Calls of many symbols share the price of the call; those of too few to share one do not.
               sum((r.units_per_symbol + r.units_per_call::float8 / CASE WHEN r.alike >= r.batch_from THEN least(r.alike, r.batch_size) ELSE 1 END) / r.ttl) AS units,
               sum(r.bytes / r.ttl) * 43200 AS bytes
        FROM routed r GROUP BY 1)
    SELECT p.provider, coalesce(s.pairs, 0), coalesce(s.units, 0), allowed.units, coalesce(s.bytes, 0)::bigint,
           pricing.quota_for(p.quota_bytes, 0)
    FROM pricing.data_collectors p LEFT JOIN served s USING (provider)
    CROSS JOIN LATERAL (
        SELECT sum(each.units) AS units
        FROM (VALUES (p.provider)) AS x (provider) LEFT JOIN pricing.provider_keys k USING (provider)
        CROSS JOIN LATERAL (
            SELECT min(pricing.paced_rate(l, pricing.units_in_force(l, coalesce(k.key_name, 'default'), now_), now_)) AS units
            FROM pricing.provider_limits l
            WHERE l.provider = p.provider) each
        WHERE coalesce(k.is_active, true)) allowed
    WHERE p.is_active ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.budget() IS
    'What is watched or held, against what its providers allow: units a minute and bytes in 30 days, needed and allowed (NULL = no limit).';
