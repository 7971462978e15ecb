-- Drains (workers at the queue) and the periodic duties around them.

CREATE OR REPLACE FUNCTION pricing.take_turn(wanted text) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM FROM pricing.turns t WHERE t.name = wanted FOR UPDATE SKIP LOCKED;
    IF FOUND OR EXISTS (SELECT FROM pricing.turns t WHERE t.name = wanted) THEN
        RETURN FOUND;
    END IF;
    BEGIN
        INSERT INTO pricing.turns (name) VALUES (wanted);
        RETURN true;
    EXCEPTION WHEN unique_violation OR lock_not_available THEN
        RETURN false; -- another session is making the row
    END;
END $$;
COMMENT ON FUNCTION pricing.take_turn(text) IS
    'Takes the turn at some work until the transaction ends; false, without waiting, if another session has it.';


CREATE OR REPLACE FUNCTION pricing.await_turn(wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    INSERT INTO pricing.turns (name) VALUES (wanted) ON CONFLICT DO NOTHING;
    PERFORM FROM pricing.turns t WHERE t.name = wanted FOR UPDATE;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'another session is at %, and does not end', wanted
        USING HINT = 'Try again. docs/operations.md, "Something is locked", says how to find that session.',
              ERRCODE = 'lock_not_available';
END $$;
COMMENT ON FUNCTION pricing.await_turn(text) IS
    'Takes a turn as take_turn does, but waits a second for it, for a person.';


CREATE OR REPLACE FUNCTION pricing.wanted_drains(most integer) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    -- A drain makes ten calls at once.
    calls_of_drain constant integer := 10;
    -- In seconds. A run starts in three to nine of them, and what is done by then needs no further drain.
    horizon constant float8 := 15;
    in_flight float8;
BEGIN
    IF most <= 1 THEN
        RETURN 1;
    END IF;
    -- Little's law: calls in flight at a time = calls a second, times the seconds that each takes.
    SELECT sum(least(
               p.max_in_flight,
               least(waiting.tasks / took.tasks,
                     pricing.units_available(p.provider, pricing.clock()) / took.units) * took.seconds / horizon))
    INTO in_flight
    FROM pricing.data_collectors p
    CROSS JOIN LATERAL (
        -- Averages of the last calls. For a provider without any the first drain makes some.
        SELECT avg(greatest(extract(epoch FROM c.finished_at - c.started_at), 0))::float8 AS seconds,
               greatest(avg(c.units)::float8, 0.001) AS units, greatest(avg(cardinality(c.symbols))::float8, 1) AS tasks
        FROM (SELECT x.* FROM pricing.collector_call_log x
              WHERE x.provider = p.provider AND x.moved_to IS NULL AND x.outcome = 'ok'
              ORDER BY x.started_at DESC LIMIT 100) c) took
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks
        FROM (SELECT FROM pricing.api_call_queue_live q
              WHERE q.provider = p.provider
                AND q.run_after IS NULL
                AND q.status = 'pending'
              -- A longer queue would not change the result: max_in_flight bounds it.
              LIMIT ceil(p.max_in_flight * horizon / greatest(took.seconds, 0.01) * took.tasks)::bigint) w) waiting
    WHERE p.is_active AND took.seconds IS NOT NULL;
    RETURN least(most, greatest(1, ceil(in_flight / calls_of_drain)))::integer;
END $$;
COMMENT ON FUNCTION pricing.wanted_drains(integer) IS
    'How many drains have work, up to the allowed number: one for every ten calls that would be in flight over the '
    'next 15 s.';


CREATE OR REPLACE FUNCTION pricing.lasting_drains() RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- A drain about to end does not count: its successor starts beside it, and no second is lost. A launch takes three
    -- to nine seconds.
    RETURN (SELECT count(*) FROM pricing.drains d
            WHERE d.finished_at IS NULL
              AND d.lease_until > now_
              AND d.ends_at > now_ + interval '15 seconds');
END $$;
COMMENT ON FUNCTION pricing.lasting_drains() IS 'How many drains are at work and not about to end.';


CREATE OR REPLACE FUNCTION pricing.begin_drain(
    worker_name text, run text, seconds integer, requested timestamptz DEFAULT NULL,
    most integer DEFAULT 1) RETURNS uuid
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz;
    begun uuid;
BEGIN
    PERFORM pricing.require_primary();
    -- Several that were requested together begin together.
    FOR try IN 1..50 LOOP
        EXIT WHEN pricing.take_turn('begin_drain');
        IF try = 50 OR most = 1 THEN
            RETURN NULL;
        END IF;
        PERFORM pg_sleep(0.02);
    END LOOP;
    now_ := pricing.clock();
    IF pricing.lasting_drains() >= pricing.wanted_drains(most) THEN
        RETURN NULL;
    END IF;
    INSERT INTO pricing.drains (run_id, worker, started_at, ends_at, lease_until, requested_at)
    VALUES (run, worker_name, now_, now_ + make_interval(secs => seconds), now_ + interval '15 seconds', requested)
    RETURNING drain_id INTO begun;
    RETURN begun;
END $$;
COMMENT ON FUNCTION pricing.begin_drain(text, text, integer, timestamptz, integer) IS
    'Starts a drain whose run was requested at a time; NULL if wanted_drains are at work, or another session is '
    'starting one.';


CREATE OR REPLACE FUNCTION pricing.extend_drain(extended uuid, asked_providers text[] DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.drains d SET lease_until = pricing.clock() + interval '15 seconds', providers = asked_providers
    FROM (SELECT x.drain_id FROM pricing.drains x WHERE x.drain_id = extended FOR UPDATE SKIP LOCKED) mine
    WHERE d.drain_id = mine.drain_id
$$;
COMMENT ON FUNCTION pricing.extend_drain(uuid, text[]) IS
    'Renews a drain''s lease and the providers that it asks; skips a locked row.';


CREATE OR REPLACE FUNCTION pricing.end_drain(ended uuid) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.drains d SET finished_at = pricing.clock()
    FROM (SELECT x.drain_id FROM pricing.drains x WHERE x.drain_id = ended FOR UPDATE SKIP LOCKED) mine
    WHERE d.drain_id = mine.drain_id
$$;
COMMENT ON FUNCTION pricing.end_drain(uuid) IS 'Ends a drain, or leaves it to its lease if its row is locked.';


CREATE OR REPLACE FUNCTION pricing.pass_over(from_source text, data_type text, symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.warn(from_source, pass_over.data_type, CASE WHEN cardinality(symbols) = 1
        THEN symbols[1] || ' is passed over: another session has locked it'
        ELSE 'much of it is locked by other sessions, and the rest waits for the next check' END, '55P03')
$$;
COMMENT ON FUNCTION pricing.pass_over(text, text, text[]) IS
    'Records that pairs were skipped because another session has locked them, or because finding those took too long.';


CREATE OR REPLACE FUNCTION pricing.wake_workers() RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- The queue of notifications is the whole server's. One session that listens, and does not end its transaction,
    -- keeps it from being emptied; when it is full, sessions that notify fail at commit. Looking also removes what all
    -- have heard. A commit that writes into it has a lock of the whole server, for seconds when it writes much: others'
    -- would wait for it.
    IF pg_notification_queue_usage() < 0.5 AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_locks l
           WHERE l.locktype = 'object'
             AND l.database = 0
             AND l.classid = 'pg_catalog.pg_database'::regclass
             AND l.objid = 0) THEN
        PERFORM pg_notify('pricing_work', '');
    END IF;
END $$;
COMMENT ON FUNCTION pricing.wake_workers() IS
    'Wakes idle drains once this transaction commits, unless the server''s notification queue is half full or in use.';


CREATE OR REPLACE FUNCTION pricing.duty_intervals() RETURNS TABLE (place integer, name text, every interval)
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT v.place, v.name, v.every FROM (VALUES
        (1, 'recover_tasks', interval '10 seconds'),
        (2, 'lift_marks', interval '10 seconds'),
        (3, 'expire_calls', interval '15 seconds'),
        (4, 'repair_demand', interval '1 minute'),
        (5, 'reconcile_demand', interval '1 minute'),
        (6, 'retire_tasks', interval '1 minute'),
        (7, 'fail_impossible_tasks', interval '1 minute'),
        (8, 'adopt_pairs', interval '1 minute'),
        (9, 'note_watched_calendars', interval '1 minute'),
        (10, 'resolve_tasks', interval '1 minute'),
        (11, 'forget_views', interval '1 hour'),
        (12, 'warn_frozen', interval '1 hour'),
        (13, 'refetch_history', interval '10 minute'),
        (14, 'close_believed', interval '10 minute'),
        (15, 'enter_face_values', interval '10 minute'),
        (16, 'prune', interval '1 hour'),
        (17, 'prune_calls', interval '10 minute'),
        (18, 'thin_history', interval '1 minute'),
        (19, 'sample_freshness', interval '5 minute'),
        (20, 'count_task_times', interval '1 minute'),
        (21, 'stretch_ttls', interval '5 minute'),
        (22, 'number_changes', interval '1 minute'),
        -- Late, because add_demand cannot add deleted rows again until the round ends.
        (23, 'clean_subscriptions', interval '1 minute'),
        -- Last: a duty that locks a provider must wait for nothing after it.
        (24, 'watch_providers', interval '10 seconds'),
        (25, 'reroute_waiting', interval '10 seconds')) AS v (place, name, every)
$$;
COMMENT ON FUNCTION pricing.duty_intervals() IS
    'The periodic duties, each a function of this name, with their interval and order.';


CREATE OR REPLACE FUNCTION pricing.run_duties() RETURNS text[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    now_ timestamptz;
    duty_ record;
    ran text[] := '{}';
BEGIN
    PERFORM pricing.require_primary();
    -- Frees the server's queue of notifications of what all have heard. Once it is full nothing else does.
    PERFORM pg_notification_queue_usage();
    IF NOT pricing.take_turn('run_duties') THEN
        RETURN ran;
    END IF;
    now_ := pricing.clock();
    IF pricing.follow_clock(now_) THEN
        RETURN ran;
    END IF;
    FOR duty_ IN
        SELECT v.name FROM pricing.duty_intervals() v
        LEFT JOIN pricing.duties d ON d.duty = v.name
        -- A time ahead of the clock says nothing: the clock was set back while somebody had the row locked.
        WHERE NOT coalesce(d.last_success_at > now_ - v.every
                           AND d.last_success_at <= now_ + interval '10 seconds', false)
          AND coalesce(d.not_before <= now_, true)
          -- A failing duty must not make every look wait for its locks.
          AND NOT coalesce(d.last_failure_at > now_ - least(v.every, interval '1 minute')
                           AND d.last_failure_at <= now_ + interval '10 seconds', false)
        ORDER BY v.place
    LOOP
        PERFORM FROM pricing.duties d WHERE d.duty = duty_.name FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND AND EXISTS (SELECT FROM pricing.duties d WHERE d.duty = duty_.name);
        BEGIN
            SET LOCAL lock_timeout = '1s';
            EXECUTE pg_catalog.format('SELECT pricing.%I()', duty_.name);
            INSERT INTO pricing.duties AS d (duty, last_success_at) VALUES (duty_.name, now_)
            ON CONFLICT ON CONSTRAINT duties_pkey DO UPDATE SET last_success_at = excluded.last_success_at;
            ran := ran || duty_.name;
        EXCEPTION WHEN OTHERS THEN -- one failing duty must not stop the others; it stays overdue and visible
            INSERT INTO pricing.duties AS d (duty, last_failure_at, last_error)
            VALUES (duty_.name, now_, left(SQLERRM, 1000))
            ON CONFLICT ON CONSTRAINT duties_pkey
                DO UPDATE SET last_failure_at = excluded.last_failure_at, last_error = excluded.last_error;
            PERFORM pricing.warn('run_duties', duty_.name, SQLERRM, SQLSTATE);
            -- After one wait for a lock, each other duty would wait, too: they have their turn at the next look.
            EXIT WHEN SQLSTATE = '55P03';
        END;
    END LOOP;
    RETURN ran;
END $$;
COMMENT ON FUNCTION pricing.run_duties() IS
    'Runs overdue duties, one process at a time, and returns the names of those that succeeded.';


CREATE OR REPLACE FUNCTION pricing.require_primary() RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a read replica, and the queue works on the primary only'
            USING HINT = 'Point PRICING_DATABASE_URL at the primary.', ERRCODE = 'read_only_sql_transaction';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.require_primary() IS 'Refuses a read replica before anything is half done.';
