-- What outcomes say about a provider and its keys: breakers, pauses after refusals, units that others used.
-- Lock order: see queue.sql.

CREATE OR REPLACE FUNCTION pricing.is_provider_fault(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT coalesce(kind IN ('provider_down', 'schema_drift', 'throttled'), false)
$$;
COMMENT ON FUNCTION pricing.is_provider_fault(text) IS
    'Whether a failed call counts against its provider; wrong keys, symbols, plans and requests are ours.';


CREATE OR REPLACE FUNCTION pricing.judge_call(
    call pricing.collector_call_log, stated_left integer, shown_units integer, shown_seconds integer) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    is_fault boolean := pricing.is_provider_fault(call.failure_kind);
    known record;
    calls integer;
    faults integer;
BEGIN
    SELECT s.probe_call, s.breaker, s.breaker_since, k.throttles INTO known
    FROM pricing.provider_state s
    LEFT JOIN pricing.provider_keys k ON (k.provider, k.key_name) = (s.provider, call.key_name)
    WHERE s.provider = call.provider;
    BEGIN
        IF known.probe_call = call.call_id THEN
            IF is_fault THEN
                PERFORM pricing.open_breaker(
                    call.provider, 'the last probe failed: ' || coalesce(call.error, call.failure_kind), call.call_id);
            ELSE
                UPDATE pricing.provider_state s
                SET breaker = 'closed', breaker_since = now_, breaker_began_at = NULL, breaker_until = NULL,
                    breaker_openings = 0, breaker_reason = NULL, probe_call = NULL
                WHERE s.provider = call.provider AND s.probe_call = call.call_id;
            END IF;
        ELSIF is_fault AND known.breaker = 'closed' THEN
            SELECT count(*) INTO faults FROM pricing.counted_calls c
            WHERE c.provider = call.provider
              AND c.counted_at > greatest(now_ - interval '10 minutes', known.breaker_since)
              AND c.failure_kind IS NOT NULL
              AND pricing.is_provider_fault(c.failure_kind);
            IF faults >= 10 THEN
                SELECT x.faults, x.calls INTO faults, calls
                FROM pricing.calls_that_count(
                    call.provider, greatest(now_ - interval '10 minutes', known.breaker_since)) x;
                IF faults >= 10 AND faults * 2 >= calls THEN
                    PERFORM pricing.open_breaker(call.provider, pg_catalog.format(
                        '%s of %s calls failed, the last one: %s',
                        faults, calls, coalesce(call.error, call.failure_kind)));
                END IF;
            END IF;
        END IF;

        -- A page does not count: its call counts, when it has its answer.
        IF call.page_of IS NULL THEN
            PERFORM pricing.note_outage(call, now_);
        END IF;
        -- Before provider_keys, as everybody locks them, and before what is left, which is counted against the limit.
        PERFORM pricing.store_shown_limit(call.provider, call.key_name, shown_units, shown_seconds, now_);
        IF call.outcome = 'ok' AND known.throttles > 0 THEN
            UPDATE pricing.provider_keys k SET throttles = 0, blocked_reason = NULL
            WHERE (k.provider, k.key_name) = (call.provider, call.key_name)
              AND k.throttles > 0
              AND k.blocked_until <= now_;
        END IF;
        PERFORM pricing.apply_units_left(call.provider, call.key_name, stated_left, now_);
    EXCEPTION WHEN lock_not_available THEN
        -- Storing the answer matters more than what it shows about its provider, which the next call shows again.
        PERFORM pricing.warn(
            'judge_call', call.provider,
            'its state or keys are locked by another session, so what a call shows is not recorded', '55P03');
    END;
END $$;
COMMENT ON FUNCTION pricing.judge_call(pricing.collector_call_log, integer, integer, integer) IS
    'Updates a provider''s breaker, outages, key pauses, shown limits and remaining units after a settled call whose '
    'claim was still owned; does nothing if the provider is locked.';


CREATE OR REPLACE FUNCTION pricing.calls_that_count(
    wanted_provider text, after timestamptz, OUT faults integer, OUT calls integer)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH seen AS (
        SELECT c.data_type, c.symbols, coalesce(pricing.is_provider_fault(c.failure_kind), false) AS is_fault,
               count(*) FILTER (WHERE c.outcome = 'ok' AND c.failure_kind IS NULL)
                   OVER (PARTITION BY c.data_type ORDER BY c.counted_at, c.call_id) AS answers
        FROM pricing.counted_calls c
        WHERE c.provider = wanted_provider
          AND c.counted_at > after
          AND c.outcome IN ('ok', 'failed')
          AND c.page_of IS NULL),
    judged AS (
        SELECT s.is_fault,
               s.is_fault
               AND s.answers > min(s.answers) FILTER (WHERE s.is_fault)
                   OVER (PARTITION BY s.data_type, s.symbols) AS is_own
        FROM seen s)
    SELECT count(*) FILTER (WHERE j.is_fault)::integer, count(*)::integer
    FROM judged j
    WHERE NOT j.is_own
$$;
COMMENT ON FUNCTION pricing.calls_that_count(text, timestamptz) IS
    'How many calls to a provider since then failed by its fault, and how many there were, a call and its pages '
    'counting once; a call that fails again after others of its type were answered does not count.';


CREATE OR REPLACE FUNCTION pricing.next_probe_at(state pricing.provider_state) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN state.breaker = 'open'
                 AND state.breaker_openings > 1
                 AND EXISTS (SELECT FROM pricing.api_call_queue_live q
                             WHERE q.provider = state.provider AND q.priority > 0)
                THEN least(state.breaker_until, state.breaker_since + interval '45 seconds')
                ELSE state.breaker_until END
$$;
COMMENT ON FUNCTION pricing.next_probe_at(pricing.provider_state) IS
    'When an open breaker''s next probe is made, sooner while a viewer waits (see may_probe_early).';


CREATE OR REPLACE FUNCTION pricing.open_breaker(
    wanted_provider text, reason text, failed_probe bigint DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.provider_state s
    SET breaker = 'open', breaker_since = pricing.clock(), breaker_openings = s.breaker_openings + 1, probe_call = NULL,
        breaker_began_at = CASE WHEN s.breaker = 'closed' THEN pricing.clock()
                                ELSE coalesce(s.breaker_began_at, s.breaker_since) END,
        breaker_until = pricing.clock()
                        + least(interval '60 seconds' * 2 ^ least(s.breaker_openings, 4), interval '10 minutes'),
        breaker_reason = left(reason, 500)
    WHERE s.provider = wanted_provider
      AND CASE WHEN failed_probe IS NULL THEN s.breaker = 'closed' ELSE s.probe_call = failed_probe END
$$;
COMMENT ON FUNCTION pricing.open_breaker(text, text, bigint) IS
    'Stops all calls to a provider for 60 s, doubling to 10 min with each failed probe; does nothing if another '
    'session was quicker.';


CREATE OR REPLACE FUNCTION pricing.lose_probe(wanted_provider text, lost bigint) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.provider_state s
    SET breaker = 'open', breaker_since = pricing.clock(), breaker_until = pricing.clock(), probe_call = NULL
    WHERE s.provider = (SELECT x.provider FROM pricing.provider_state x
                        WHERE x.provider = wanted_provider AND x.probe_call = lost FOR UPDATE SKIP LOCKED)
$$;
COMMENT ON FUNCTION pricing.lose_probe(text, bigint) IS
    'Allows another probe after a probe''s worker was lost: at once, or when the lease is over if the row is locked.';


CREATE OR REPLACE FUNCTION pricing.throttle(
    wanted_provider text, wanted_key text, pause interval, reason text) RETURNS interval
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    chosen interval;
BEGIN
    INSERT INTO pricing.provider_keys (provider, key_name) VALUES (wanted_provider, wanted_key) ON CONFLICT DO NOTHING;
    UPDATE pricing.provider_keys k
    SET throttles = k.throttles + 1, blocked_reason = left(reason, 500),
        -- Not coalesce(least(pause, ...), ...): least() passes over NULL.
        blocked_until = greatest(k.blocked_until, now_ + CASE
            WHEN pause IS NOT NULL THEN least(pause, interval '1 hour')
            ELSE least(make_interval(secs => p.throttle_pause_seconds) * 2 ^ least(k.throttles, 6),
                       interval '60 seconds') END)
    FROM pricing.data_collectors p
    WHERE (k.provider, k.key_name) = (wanted_provider, wanted_key) AND p.provider = k.provider;
    -- Refused work need not wait for this key while another is free. None may be active any more, because a
    -- person may have switched the refused ones off.
    SELECT coalesce(min(free.after) FILTER (WHERE free.is_active), min(free.after)) INTO chosen
    FROM (SELECT k.is_active, greatest(coalesce(k.blocked_until, now_) - now_, interval '0') AS after
          FROM pricing.provider_keys k
          WHERE k.provider = wanted_provider AND (k.is_active OR k.key_name = wanted_key)) free;
    RETURN chosen;
END $$;
COMMENT ON FUNCTION pricing.throttle(text, text, interval, text) IS
    'Stops all workers'' calls with a key for as long as the provider asked (at most 1 h), or for a growing pause; '
    'returns how long until one of the provider''s keys is free.';


CREATE OR REPLACE FUNCTION pricing.store_shown_limit(
    wanted_provider text, wanted_key text, shown integer, seconds integer, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted pricing.provider_limits;
    known pricing.shown_limits;
BEGIN
    IF coalesce(shown, 0) <= 0 THEN
        RETURN;
    END IF;
    SELECT l.* INTO wanted FROM pricing.provider_limits l
    WHERE l.provider = wanted_provider
      AND CASE WHEN seconds IS NULL THEN pricing.is_short_window(l.window_seconds)
               ELSE coalesce(l.window_seconds, 86400) = seconds END
    ORDER BY l.window_seconds DESC NULLS LAST, l.units, l.name LIMIT 1;
    IF wanted.name IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO known FROM pricing.shown_limits s
    WHERE (s.provider, s.key_name, s.name) = (wanted_provider, wanted_key, wanted.name);
    IF shown >= pricing.units_written(wanted, wanted_key) THEN
        DELETE FROM pricing.shown_limits s
        WHERE known.name IS NOT NULL
          AND (s.provider, s.key_name, s.name) = (wanted_provider, wanted_key, wanted.name);
    -- To the minute is exact enough, and most answers need not wait for each other here.
    ELSIF known.shown_units IS DISTINCT FROM shown
          OR known.shown_at NOT BETWEEN now_ - interval '1 minute' AND now_ THEN
        INSERT INTO pricing.shown_limits AS s (provider, key_name, name, shown_units, shown_at)
        VALUES (wanted_provider, wanted_key, wanted.name, shown, now_)
        ON CONFLICT ON CONSTRAINT shown_limits_pkey DO UPDATE
        SET shown_units = excluded.shown_units, shown_at = excluded.shown_at;
    END IF;
EXCEPTION WHEN foreign_key_violation THEN
    NULL; -- a person has just removed the limit
END $$;
COMMENT ON FUNCTION pricing.store_shown_limit(text, text, integer, integer, timestamptz) IS
    'Stores a lower limit that a provider has shown for a key in this many seconds (86400 = also a calendar day; NULL '
    '= its longest window up to an hour); a later, higher one replaces it.';


CREATE OR REPLACE FUNCTION pricing.apply_units_left(
    wanted_provider text, wanted_key text, stated_left integer, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    span interval;
    unseen integer := 0;
    known pricing.provider_keys;
BEGIN
    IF stated_left IS NULL THEN
        RETURN;
    END IF;
    SELECT pricing.limit_window(l.window_seconds),
           pricing.units_in_force(l, wanted_key, now_) - stated_left - (
               SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
               WHERE c.provider = l.provider
                 AND c.key_name = wanted_key
                 AND c.counted_at > now_ - pricing.limit_window(l.window_seconds))
    INTO span, unseen
    FROM pricing.provider_limits l
    WHERE l.provider = wanted_provider AND pricing.is_short_window(l.window_seconds)
    ORDER BY l.window_seconds DESC LIMIT 1;
    SELECT * INTO known FROM pricing.provider_keys k WHERE (k.provider, k.key_name) = (wanted_provider, wanted_key);
    IF coalesce(unseen, 0) <= 0 AND stated_left > 5 AND known.reported_left IS NULL THEN
        RETURN;
    END IF;
    -- More than we believed is never believed. Of two reports, the lower one counts until it is a window old.
    INSERT INTO pricing.provider_keys AS k
        (provider, key_name, reported_left, reported_at, foreign_units, foreign_until)
    VALUES (wanted_provider, wanted_key, CASE WHEN stated_left <= 5 THEN greatest(stated_left, 0) END, now_,
            greatest(unseen, 0), CASE WHEN unseen > 0 THEN now_ + span END)
    ON CONFLICT ON CONSTRAINT provider_keys_pkey DO UPDATE
    SET reported_left = excluded.reported_left, reported_at = excluded.reported_at,
        foreign_units = CASE WHEN unseen > 0
                                  AND (unseen >= k.foreign_units OR coalesce(k.foreign_until, '-infinity') <= now_)
                             THEN excluded.foreign_units
                             ELSE k.foreign_units END,
        foreign_until = CASE WHEN unseen > 0
                                  AND (unseen >= k.foreign_units OR coalesce(k.foreign_until, '-infinity') <= now_)
                             THEN excluded.foreign_until
                             ELSE k.foreign_until END;
END $$;
COMMENT ON FUNCTION pricing.apply_units_left(text, text, integer, timestamptz) IS
    'Subtracts units that others have used, if the provider reports fewer left than we believed, for its longest '
    'window up to an hour; five or fewer left double the delay between calls.';


CREATE OR REPLACE FUNCTION pricing.store_shown_batch(refused bigint, most integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    call record;
BEGIN
    SELECT c.provider, k.fetcher, c.window_end <> 'infinity' AS is_of_days, cardinality(c.symbols) AS size INTO call
    FROM pricing.collector_call_log c JOIN pricing.data_type_registry k USING (data_type) WHERE c.call_id = refused;
    IF coalesce(most, 0) < 1 OR coalesce(call.size, 0) <= most THEN
        RETURN;
    END IF;
    -- Among calls that were in flight together, the smallest counts.
    INSERT INTO pricing.shown_batches AS s (provider, fetcher, is_of_days, shown_size, shown_at)
    VALUES (call.provider, call.fetcher, call.is_of_days, most, pricing.clock())
    ON CONFLICT ON CONSTRAINT shown_batches_pkey DO UPDATE
    SET shown_size = CASE WHEN s.shown_at > pricing.clock() - interval '1 day'
                          THEN least(s.shown_size, excluded.shown_size)
                          ELSE excluded.shown_size END,
        shown_at = excluded.shown_at;
    PERFORM pricing.warn('store_shown_batch', call.provider, pg_catalog.format(
        'it refused a call for %s symbols as too many. Calls of %s ask for %s at most for a day. If it goes on, '
        '`pricing-pipeline provider change %s %s %s=%s` lowers it',
        call.size, call.fetcher, most, call.provider,
        CASE WHEN call.is_of_days THEN '--window-batch-size' ELSE '--batch-size' END,
        call.fetcher, most), '22023');
EXCEPTION WHEN lock_not_available OR foreign_key_violation THEN
    NULL; -- the next refusal says it again
END $$;
COMMENT ON FUNCTION pricing.store_shown_batch(bigint, integer) IS
    'Limits the symbols in a fetcher''s calls after a refusal of a call for too many, for a day or until a person '
    'writes its batch size.';


CREATE OR REPLACE FUNCTION pricing.register_keys(wanted_provider text, names text[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    added integer;
BEGIN
    INSERT INTO pricing.provider_keys (provider, key_name)
    SELECT wanted_provider, n FROM unnest(names) AS n
    WHERE EXISTS (SELECT FROM pricing.data_collectors p WHERE p.provider = wanted_provider)
      -- A provider without rows has one key, of this name. One whose other keys are gone needs it in writing.
      AND (names <> '{default}' OR EXISTS (SELECT FROM pricing.provider_keys k WHERE k.provider = wanted_provider))
      AND NOT EXISTS (SELECT FROM pricing.provider_keys k WHERE (k.provider, k.key_name) = (wanted_provider, n))
    ORDER BY n ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END $$;
COMMENT ON FUNCTION pricing.register_keys(text, text[]) IS
    'Records which keys a worker has, and adds rows for new ones; returns how many are new.';


CREATE OR REPLACE FUNCTION pricing.add_provider_state() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.provider_state (provider) VALUES (NEW.provider) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.add_provider_state() IS 'Adds the row that claims of a provider lock.';

CREATE TRIGGER add_provider_state
    AFTER INSERT ON pricing.data_collectors
    FOR EACH ROW
    EXECUTE FUNCTION pricing.add_provider_state();
