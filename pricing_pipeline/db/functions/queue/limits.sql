-- Rate limits, and the calls that count. The call log is their memory. What outcomes say about a provider is in
-- breakers.sql, how the units of a day are spread in pacing.sql, and the quota of bytes in quota.sql.
--
-- A worker only reads these tables. What writes them for it has the owner's rights and takes the time from the clock.
-- These functions trust a caller only for the outcome of a call and the bytes of its answer, within bounds
-- (settle_call). Functions with a parameter for the time are for them, not for workers.

CREATE OR REPLACE FUNCTION pricing.check_limit() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NEW.day_timezone IS DISTINCT FROM OLD.day_timezone AND NOT pricing.is_time_zone(NEW.day_timezone) THEN
        RAISE EXCEPTION 'limit % of %: unknown time zone %', NEW.name, NEW.provider, NEW.day_timezone
            USING HINT = 'Use a name such as UTC or America/New_York.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_limit() IS
    'Trigger: refuses a limit of a calendar day in an unknown time zone, which would fail every claim.';

CREATE TRIGGER check_limit
    BEFORE INSERT OR UPDATE ON pricing.provider_limits
    FOR EACH ROW WHEN (NEW.day_timezone IS NOT NULL)
    EXECUTE FUNCTION pricing.check_limit();


CREATE OR REPLACE FUNCTION pricing.key_allowances(wanted_provider text, now_ timestamptz)
RETURNS TABLE (key_name text, is_active boolean, is_usable boolean, units_left bigint, units_limit integer,
               is_after_refusal boolean, is_nearly_used_up boolean,
               blocked_until timestamptz, blocked_reason text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    k record;
BEGIN
    FOR k IN
        SELECT x.*, EXISTS (SELECT FROM pricing.provider_limits l WHERE l.provider = wanted_provider) AS is_limited
        FROM (VALUES (wanted_provider)) AS p (provider)
        LEFT JOIN pricing.provider_keys x USING (provider)
    LOOP
        key_name := coalesce(k.key_name, 'default');
        is_active := coalesce(k.is_active, true);
        is_usable := is_active AND coalesce(k.blocked_until, '-infinity') <= now_;
        is_after_refusal := coalesce(k.throttles, 0) > 0;
        is_nearly_used_up := coalesce(k.reported_left <= 5 AND k.reported_at > now_ - interval '60 seconds', false);
        blocked_until := k.blocked_until;
        blocked_reason := k.blocked_reason;
        IF is_usable AND is_after_refusal THEN
            -- After a refusal one call at a time goes out, so that no wave follows the pause.
            is_usable := NOT EXISTS (
                SELECT FROM pricing.counted_calls c
                WHERE c.provider = wanted_provider
                  AND c.finished_at IS NULL
                  AND c.key_name = k.key_name
                  AND c.counted_at > now_ - interval '60 seconds');
        END IF;
        units_left := 1000000000; -- no limit
        IF k.is_limited THEN
            SELECT min(plan.paced - used.units - CASE
                       WHEN plan.is_reported AND k.foreign_until > now_ THEN k.foreign_units
                       ELSE 0 END),
                   min(plan.units) INTO units_left, units_limit
            FROM (SELECT l.name, pricing.limit_start(l, now_) AS since,
                         -- A call begins within five seconds of its claim, or not at all. No longer than half a
                         -- window: a slow provider could never be used up.
                         make_interval(secs => coalesce(least(5.0, 0.5 * l.window_seconds), 5.0)) AS slack,
                         allowed.units, pricing.paced_units(l, key_allowances.key_name, allowed.units, now_) AS paced,
                         l.window_seconds
                             = max(l.window_seconds) FILTER (
                                 WHERE pricing.is_short_window(l.window_seconds)) OVER () AS is_reported
                  FROM pricing.provider_limits l
                  CROSS JOIN LATERAL (SELECT pricing.units_in_force(l, key_allowances.key_name, now_) AS units
                                      OFFSET 0) allowed
                  WHERE l.provider = wanted_provider) plan
            LEFT JOIN pricing.limit_counts n
                ON (n.provider, n.key_name, n.name) = (wanted_provider, key_allowances.key_name, plan.name)
               AND n.counted_to <= now_ AND plan.since >= n.counted_from AND plan.since < n.counted_to
            CROSS JOIN LATERAL (
                -- A call reaches its provider some time between its claim and its end: one that began before the
                -- window and ended in it may have arrived in it.
                SELECT (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                        WHERE c.provider = wanted_provider
                          AND c.key_name = key_allowances.key_name
                          AND c.counted_at > plan.since - plan.slack
                          AND c.counted_at <= plan.since
                          AND coalesce(c.finished_at, 'infinity') > plan.since)
                     + CASE WHEN n.units IS NULL
                            THEN (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                                  WHERE c.provider = wanted_provider
                                    AND c.key_name = key_allowances.key_name
                                    AND c.counted_at > plan.since)
                            ELSE n.units
                                 - (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                                    WHERE c.provider = wanted_provider
                                      AND c.key_name = key_allowances.key_name
                                      AND c.counted_at > n.counted_from
                                      AND c.counted_at <= plan.since)
                                 + (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                                    WHERE c.provider = wanted_provider
                                      AND c.key_name = key_allowances.key_name
                                      AND c.counted_at >= n.counted_to) END AS units) used;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.key_allowances(text, timestamptz) IS
    'A provider''s keys and the units that each may be charged now; exact only under the lock of provider_state.';


CREATE OR REPLACE FUNCTION pricing.units_written(wanted pricing.provider_limits, key text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN coalesce((SELECT own.units FROM pricing.provider_key_limits own
                     WHERE (own.provider, own.name, own.key_name) = (wanted.provider, wanted.name, key)), wanted.units);
END $$;
COMMENT ON FUNCTION pricing.units_written(pricing.provider_limits, text) IS
    'Units that a limit allows a key, as written.';


CREATE OR REPLACE FUNCTION pricing.shown_units(
    wanted pricing.provider_limits, key text, now_ timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT s.shown_units FROM pricing.shown_limits s
            WHERE (s.provider, s.key_name, s.name) = (wanted.provider, key, wanted.name)
              -- Some providers name a limit only when they refuse a call. While it is kept, nothing shows that the plan
              -- has grown. So the written limit is tried again once a day.
              AND s.shown_at > now_ - interval '1 day'
              -- With less no call could be made that shows another limit.
              AND s.shown_units >= (SELECT max(c.units_per_call + c.units_per_symbol)
                                    FROM pricing.provider_capabilities c
                                    WHERE c.provider = wanted.provider));
END $$;
COMMENT ON FUNCTION pricing.shown_units(pricing.provider_limits, text, timestamptz) IS
    'Units that a limit allows a key, as its provider has shown within a day; NULL = no lower than written.';


CREATE OR REPLACE FUNCTION pricing.units_in_force(
    wanted pricing.provider_limits, key text, now_ timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN least(pricing.units_written(wanted, key), pricing.shown_units(wanted, key, now_));
END $$;
COMMENT ON FUNCTION pricing.units_in_force(pricing.provider_limits, text, timestamptz) IS
    'Units that a key may be charged in a limit''s window: the lower of written and shown.';


CREATE OR REPLACE FUNCTION pricing.is_short_window(seconds integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    -- A limit without a window is mostly one of a minute. Taken for a limit of a day, it would stop nearly all work.
    SELECT seconds <= 3600
$$;
COMMENT ON FUNCTION pricing.is_short_window(integer) IS
    'Whether a provider that shows a limit without naming its window may mean this one (NULL = a calendar day): up to '
    'an hour.';


CREATE OR REPLACE FUNCTION pricing.limit_window(seconds integer) RETURNS interval
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    -- More than the window, because a provider may round times, and still count a call that has only just left it here.
    RETURN make_interval(secs => seconds + 0.005);
END $$;
COMMENT ON FUNCTION pricing.limit_window(integer) IS
    'How far back a window of this many seconds is counted: five milliseconds longer.';


CREATE OR REPLACE FUNCTION pricing.limit_start(wanted pricing.provider_limits, now_ timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF wanted.window_seconds IS NOT NULL THEN
        RETURN now_ - pricing.limit_window(wanted.window_seconds);
    END IF;
    RETURN date_trunc('day', now_, wanted.day_timezone) - pricing.limit_window(0);
END $$;
COMMENT ON FUNCTION pricing.limit_start(pricing.provider_limits, timestamptz) IS
    'The time after which calls count against the limit now.';


CREATE OR REPLACE FUNCTION pricing.count_units(wanted_provider text, now_ timestamptz) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.limit_counts AS n (provider, key_name, name, counted_from, counted_to, units)
    SELECT l.provider, k.key_name, l.name, since.at, now_,
           (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
            WHERE c.provider = wanted_provider
              AND c.key_name = k.key_name
              AND c.counted_at > since.at
              AND c.counted_at < now_)
    FROM pricing.provider_limits l
    CROSS JOIN (SELECT 'default' AS key_name
                UNION
                SELECT x.key_name FROM pricing.provider_keys x WHERE x.provider = wanted_provider) k
    CROSS JOIN LATERAL (SELECT pricing.limit_start(l, now_) AS at) since
    WHERE l.provider = wanted_provider
    ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT limit_counts_pkey
        DO UPDATE SET counted_from = excluded.counted_from, counted_to = excluded.counted_to, units = excluded.units
$$;
COMMENT ON FUNCTION pricing.count_units(text, timestamptz) IS
    'Counts a provider''s windows from its call log for later claims; only under the lock of provider_state.';


CREATE OR REPLACE FUNCTION pricing.units_available(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT coalesce(sum(greatest(r.units_left, 0)), 0) FROM pricing.key_allowances(wanted_provider, now_) r
            WHERE r.is_active AND coalesce(r.blocked_until, '-infinity') <= now_);
END $$;
COMMENT ON FUNCTION pricing.units_available(text, timestamptz) IS
    'Units that a provider may be charged now, over all its active keys that are not blocked.';


CREATE OR REPLACE FUNCTION pricing.settle_call(
    settled bigint, result text, status integer, bytes bigint, message text DEFAULT NULL, kind text DEFAULT NULL,
    is_owned boolean DEFAULT false, stated_left integer DEFAULT NULL, shown_units integer DEFAULT NULL,
    shown_seconds integer DEFAULT NULL, without_length boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    hour_ timestamptz := date_trunc('hour', now_, 'UTC');
    closed record;
    call pricing.collector_call_log;
BEGIN
    UPDATE pricing.collector_call_log c
    SET outcome = result, http_status = status, wire_bytes = bytes, is_unannounced = without_length,
        error = left(message, 500), failure_kind = kind, finished_at = now_
    WHERE c.call_id = settled AND c.finished_at IS NULL
    RETURNING c AS call, EXISTS (SELECT FROM pricing.collector_call_log p WHERE p.page_of = settled) AS has_pages,
              -- Mostly an answer says nothing new of its provider.
              kind IS NOT NULL OR stated_left IS NOT NULL OR shown_units IS NOT NULL
              OR EXISTS (SELECT FROM pricing.provider_state s WHERE s.provider = c.provider AND s.probe_call = settled)
              OR EXISTS (SELECT FROM pricing.provider_keys k
                         WHERE (k.provider, k.key_name) = (c.provider, c.key_name) AND k.throttles > 0)
              OR EXISTS (SELECT FROM pricing.outages o
                         WHERE (o.provider, o.data_type) = (c.provider, c.data_type) AND o.answered_at IS NULL)
                  AS is_news
    INTO closed;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    call := closed.call;
    IF closed.has_pages THEN
        PERFORM pricing.settle_pages(settled);
        call.wire_bytes := bytes + (SELECT coalesce(sum(p.wire_bytes), 0) FROM pricing.collector_call_log p
                                    WHERE p.page_of = settled);
    END IF;
    -- A client takes 16 MiB at most; 64 times as much is allowed, so that a larger bound there needs no change here. Of
    -- a call that was lost the estimate is booked. Other figures would undo the quota.
    IF bytes IS NULL OR bytes < 0 OR bytes > greatest(call.reserved_bytes, 64 * 16 * 1024 * 1024) THEN
        RAISE EXCEPTION 'an answer cannot have % bytes', coalesce(bytes::text, 'no')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- In a row that is free: one row for all would stay locked until this transaction is on the disk, and all wait for
    -- it.
    UPDATE pricing.api_data_usage u
    SET calls = u.calls + 1, units = u.units + call.units, bytes = u.bytes + settle_call.bytes
    WHERE u.provider = call.provider AND u.hour = hour_ AND u.slot = (
        SELECT x.slot FROM pricing.api_data_usage x WHERE x.provider = call.provider AND x.hour = hour_
        ORDER BY x.slot LIMIT 1 FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO pricing.api_data_usage (provider, hour, slot, calls, units, bytes)
        -- In a new row: the one of this session may be among the locked ones.
        VALUES (call.provider, hour_, (random() * 2000000000)::integer, 1, call.units, bytes);
    END IF;
    IF result = 'ok' AND kind IS NULL AND bytes > 0 AND call.page_of IS NULL THEN
        PERFORM pricing.learn_size(call, now_);
    END IF;
    IF is_owned AND closed.is_news THEN
        PERFORM pricing.judge_call(call, stated_left, shown_units, shown_seconds);
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION pricing.settle_call(
    bigint, text, integer, bigint, text, text, boolean, integer, integer, integer, boolean) IS
    'Closes a call and its open page, and books its wire bytes, once; false when it was closed before. What the call '
    'says about its provider counts if its claim still owned a task (is_owned).';


CREATE OR REPLACE FUNCTION pricing.settle_unsent(unsent bigint, message text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    call pricing.collector_call_log;
BEGIN
    UPDATE pricing.collector_call_log c SET units = 0
    WHERE c.call_id = unsent AND c.finished_at IS NULL RETURNING * INTO call;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Counts that include the call are made again.
    DELETE FROM pricing.limit_counts n
    WHERE (n.provider, n.key_name) = (call.provider, call.key_name)
      AND coalesce(call.moved_to, call.started_at) <= n.counted_to;
    -- It counts as a fault of the provider. So a worker that says this of every call opens the breaker, and gets no
    -- room.
    RETURN pricing.settle_call(unsent, 'failed', NULL, 0, message, 'provider_down', is_owned => true);
END $$;
COMMENT ON FUNCTION pricing.settle_unsent(bigint, text) IS
    'Closes a call for which no connection could be made, as a fault of its provider, and gives its units back; false '
    'when it was closed before.';


CREATE OR REPLACE FUNCTION pricing.lock_call(locked bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM FROM pricing.collector_call_log c WHERE c.call_id = locked FOR UPDATE;
END $$;
COMMENT ON FUNCTION pricing.lock_call(bigint) IS
    'Locks a call''s row until the transaction ends, so that what is stored for it can be settled.';


CREATE OR REPLACE FUNCTION pricing.learn_size(call pricing.collector_call_log, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    each float8 := call.wire_bytes / greatest(cardinality(call.symbols), 1)::float8;
    unit text := 'symbol';
    overrun boolean := call.wire_bytes > 2 * call.reserved_bytes;
BEGIN
    IF call.window_end <> 'infinity' THEN
        -- A short span is mostly its frame, for which the estimate allows 1,000 bytes: it says little about a day.
        IF call.window_end - call.window_start < 29 AND NOT overrun THEN
            RETURN;
        END IF;
        unit := 'day';
        each := greatest(each - 1000, 1) / (call.window_end - call.window_start + 1);
    END IF;
    -- A well-known size is not written by every call: all workers would wait for this one row.
    IF NOT overrun AND EXISTS (
        SELECT FROM pricing.size_estimates s
        WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit)
          AND s.measurements >= 20
          AND abs(s.bytes - each) <= 0.05 * s.bytes) THEN
        RETURN;
    END IF;
    -- A measurement is not worth waiting for.
    PERFORM FROM pricing.size_estimates s
    WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM pricing.size_estimates s
                             WHERE (s.provider, s.data_type, s.per) = (call.provider, call.data_type, unit)) THEN
        RETURN;
    END IF;
    INSERT INTO pricing.size_estimates AS s
        (provider, data_type, per, bytes, overruns, last_overrun_at, last_overrun_ratio)
    VALUES (call.provider, call.data_type, unit, each, overrun::integer, CASE WHEN overrun THEN now_ END,
            CASE WHEN overrun THEN call.wire_bytes / greatest(call.reserved_bytes, 1)::float8 END)
    ON CONFLICT ON CONSTRAINT size_estimates_pkey DO UPDATE
    SET bytes = 0.9 * s.bytes + 0.1 * excluded.bytes,
        measurements = s.measurements + 1,
        overruns = s.overruns + excluded.overruns,
        last_overrun_at = coalesce(excluded.last_overrun_at, s.last_overrun_at),
        last_overrun_ratio = coalesce(excluded.last_overrun_ratio, s.last_overrun_ratio);
END $$;
COMMENT ON FUNCTION pricing.learn_size(pricing.collector_call_log, timestamptz) IS
    'Corrects the size estimate by a good call''s bytes, one part in ten after the first, and counts answers of more '
    'than twice their estimate.';


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
                  ON (q.data_type, q.symbol, q.window_start, q.window_end)
                   = (c.data_type, s, c.window_start, c.window_end)
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
COMMENT ON FUNCTION pricing.expire_calls() IS
    'Closes calls whose worker was lost and books their estimate: their fate is unknown, so they count as made.';


CREATE OR REPLACE FUNCTION pricing.forget_shown_batch() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    DELETE FROM pricing.shown_batches s WHERE (s.provider, s.fetcher) = (NEW.provider, NEW.fetcher);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.forget_shown_batch() IS 'Forgets a shown batch size when a person writes one.';

CREATE TRIGGER forget_shown_batch
    AFTER UPDATE OF batch_size, window_batch_size ON pricing.provider_capabilities
    FOR EACH ROW
    EXECUTE FUNCTION pricing.forget_shown_batch();


CREATE OR REPLACE FUNCTION pricing.forget_shown_limit() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_TABLE_NAME = 'provider_limits' THEN
        DELETE FROM pricing.shown_limits s WHERE (s.provider, s.name) = (OLD.provider, OLD.name);
    ELSIF TG_OP = 'DELETE' THEN
        DELETE FROM pricing.shown_limits s
        WHERE (s.provider, s.key_name, s.name) = (OLD.provider, OLD.key_name, OLD.name);
    ELSE
        DELETE FROM pricing.shown_limits s
        WHERE (s.provider, s.key_name, s.name) = (NEW.provider, NEW.key_name, NEW.name);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.forget_shown_limit() IS 'Forgets a shown limit when a person writes one.';

CREATE TRIGGER forget_shown_limit
    AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_key_limits
    FOR EACH ROW
    EXECUTE FUNCTION pricing.forget_shown_limit();

CREATE TRIGGER forget_shown_limit
    AFTER UPDATE ON pricing.provider_limits
    FOR EACH ROW
    EXECUTE FUNCTION pricing.forget_shown_limit();
