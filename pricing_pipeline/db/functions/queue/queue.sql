-- The life of a task but for its claim, which is in claim.sql, and for what people do to it, which is in by_hand.sql:
-- enqueue, complete, fail, snooze, extend, return, promote, recover.
--
-- Lock order everywhere: live tasks, the call or prices, api_data_usage, provider_state, outages, shown_limits,
-- provider_keys, shown_batches; rows of one table in key order. A claim locks provider_state first, and then waits half
-- a second at most for its turn. Workers wait for nobody's demand: they move on what is free, and repair_demand makes
-- due what another session has locked. Only follow_clock and what people do (by_hand.sql, pauses.sql, triggers) wait
-- for demand, and they take it before tasks. A fence waits a second at most. An answer that is settled part by part
-- locks the tasks of a part after the prices of the one before: it waits a tenth of a second for each lock, so that it
-- is no part of a deadlock.

CREATE OR REPLACE FUNCTION pricing.enqueue_pairs(
    data_types text[], symbols text[], priorities integer[],
    window_starts date[] DEFAULT NULL, window_ends date[] DEFAULT NULL, backfill uuid DEFAULT NULL,
    until timestamptz DEFAULT NULL)
RETURNS integer
-- Planned once for a session with all that it calls: a plan takes longer than a hundred tasks. It may be made while the
-- queue is empty, and must serve when it is full. (Older servers reckon that what reads a table all the same is worth
-- compiling.)
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET jit = off SET lock_timeout = '100ms' AS $$
DECLARE
    queued record;
BEGIN
    IF backfill IS NOT NULL THEN
        PERFORM set_config('lock_timeout', '1s', true); -- a plan is whole or refused
    ELSIF until IS NOT NULL THEN
        PERFORM set_config('lock_timeout', '20ms', true); -- part of a batch that has met a lock
    END IF;
    queued := pricing.insert_tasks(data_types, symbols, priorities, window_starts, window_ends, backfill);
    IF queued.live_ids IS NOT NULL THEN
        PERFORM pricing.raise_priorities(queued.live_ids, queued.live_priorities);
    END IF;
    PERFORM pricing.reroute_tasks(k.data_type, symbols)
    FROM (SELECT x.data_type FROM pricing.data_type_registry x WHERE x.data_type = ANY (data_types) ORDER BY 1) k
    WHERE pricing.has_detours(k.data_type);
    -- Wake workers only when a provider had nothing to do: a notification for every transaction costs most of the
    -- speed.
    IF queued.is_news THEN
        PERFORM pricing.wake_workers();
    END IF;
    IF queued.are_unrouted THEN
        PERFORM pricing.bury_unrouted(data_types, symbols, priorities, window_starts, window_ends, backfill);
    END IF;
    RETURN queued.added;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    IF backfill IS NOT NULL THEN
        RAISE;
    END IF;
    RETURN pricing.enqueue_by_halves(data_types, symbols, priorities, window_starts, window_ends,
                                     coalesce(until, clock_timestamp() + interval '1 second'));
END $$;
COMMENT ON FUNCTION pricing.enqueue_pairs(text[], text[], integer[], date[], date[], uuid, timestamptz) IS
    'Queues pairs for now or for spans of days, or raises the priority of live tasks; skips inactive types and what '
    'another session is queueing (a backfill fails instead); returns how many tasks are new.';


CREATE OR REPLACE FUNCTION pricing.note_queue_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM pg_current_xact_id(); -- first, so that a session that sees the change also sees that it is under way
    PERFORM nextval('pricing.queue_change_seq');
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.note_queue_change() IS
    'Trigger: signals, before tasks are added or reordered, that the first task of the next claim may be a different '
    'one.';

CREATE TRIGGER note_queue_change
    BEFORE INSERT OR UPDATE OF provider, priority, cadence_minutes, run_after ON pricing.api_call_queue_live
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.note_queue_change();

CREATE TRIGGER note_queue_change
    BEFORE INSERT OR UPDATE ON pricing.api_call_queue
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.note_queue_change();


CREATE OR REPLACE FUNCTION pricing.insert_tasks(
    data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[],
    backfill uuid,
    OUT added integer, OUT is_news boolean, OUT are_unrouted boolean,
    OUT live_ids bigint[], OUT live_priorities integer[])
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    FOR try IN 1..100 LOOP
        BEGIN
            WITH routed AS MATERIALIZED (
                SELECT r.*, live.id AS live_id
                FROM pricing.routed_pairs(data_types, symbols, priorities, window_starts, window_ends) r
                LEFT JOIN LATERAL (
                    SELECT q.id FROM pricing.api_call_queue_live q
                    WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                          = (r.data_type, r.symbol, r.window_start, r.window_end)
                    OFFSET 0) live ON true),
            inserted AS (
                INSERT INTO pricing.api_call_queue_live
                    (data_type, symbol, window_start, window_end, provider, priority, cadence_minutes, est_bytes,
                     enqueued_at, backfill_id)
                SELECT r.data_type, r.symbol, r.window_start, r.window_end, r.provider, r.priority, r.cadence_minutes,
                       r.est_bytes, now_, backfill
                FROM routed r WHERE r.provider IS NOT NULL AND r.live_id IS NULL
                RETURNING provider)
            -- The statement does not see its own rows, so what it finds pending was so before. In the order of the
            -- claim's index, this reads one entry.
            SELECT coalesce(sum(news.tasks), 0),
                   bool_or((SELECT q.id FROM pricing.api_call_queue_live q
                            WHERE q.provider = news.provider
                              AND q.run_after IS NULL
                              AND q.status = 'pending'
                            ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1) IS NULL),
                   (SELECT bool_or(r.provider IS NULL) FROM routed r),
                   (SELECT array_agg(r.live_id) FROM routed r WHERE r.live_id IS NOT NULL),
                   (SELECT array_agg(r.priority) FROM routed r WHERE r.live_id IS NOT NULL)
            INTO added, is_news, are_unrouted, live_ids, live_priorities
            FROM (SELECT i.provider, count(*) AS tasks FROM inserted i GROUP BY 1) news;
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            -- Another session has queued one of them since this one looked. Looking, and in this rare case looking
            -- again, takes a third less time than an insert that expects conflicts.
            CONTINUE WHEN try < 100;
            RAISE;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.insert_tasks(text[], text[], integer[], date[], date[], uuid) IS
    'Adds a task for each pair that has a provider and no live task; returns how many, whether a provider had none '
    'pending, whether pairs have no provider, and the live tasks with the wanted priorities.';


CREATE OR REPLACE FUNCTION pricing.routed_pairs(
    data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[])
RETURNS TABLE (data_type text, symbol text, window_start date, window_end date,
               priority integer, cadence_minutes integer, provider text, est_bytes bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH kinds AS MATERIALIZED (
        SELECT k.data_type, k.default_ttl_minutes, k.estimated_data_size_bytes, k.fetcher
        FROM pricing.data_type_registry k WHERE k.data_type = ANY (data_types) AND k.is_active),
    routes AS MATERIALIZED (
        SELECT k.data_type, r.symbol, r.provider,
               ceil(coalesce(now_size.bytes, k.estimated_data_size_bytes)) AS latest_bytes,
               coalesce(day_size.bytes, c.bytes_per_day) AS day_bytes
        FROM kinds k JOIN pricing.chosen_routes r USING (data_type)
        JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
        LEFT JOIN pricing.size_estimates now_size
            ON (now_size.provider, now_size.data_type, now_size.per) = (r.provider, k.data_type, 'symbol')
        LEFT JOIN pricing.size_estimates day_size
            ON (day_size.provider, day_size.data_type, day_size.per) = (r.provider, k.data_type, 'day'))
    -- A symbol's own route goes before the broad one, unless its provider cannot serve now. They are put into the order
    -- in which rows are written everywhere, and which every index likes best.
    SELECT DISTINCT ON (w.data_type, w.symbol, s.window_start, s.window_end)
           w.data_type, w.symbol, s.window_start, s.window_end, w.priority, k.default_ttl_minutes,
           coalesce(own.provider, broad.provider),
           CASE WHEN s.window_end = 'infinity' THEN coalesce(own.latest_bytes, broad.latest_bytes)
                ELSE 1000 + ceil((s.window_end - s.window_start + 1)
                                 * coalesce(own.day_bytes, broad.day_bytes)) END::bigint
    FROM unnest(data_types, symbols, priorities, window_starts, window_ends)
             AS w (data_type, symbol, priority, window_start, window_end)
    CROSS JOIN LATERAL (SELECT coalesce(w.window_start, '-infinity') AS window_start,
                               coalesce(w.window_end, 'infinity') AS window_end) s
    JOIN kinds k USING (data_type)
    LEFT JOIN routes own ON (own.data_type, own.symbol) = (w.data_type, w.symbol)
    LEFT JOIN routes broad ON broad.data_type = w.data_type AND broad.symbol IS NULL
    ORDER BY 1, 2, 3, 4, w.priority DESC;
END $$;
COMMENT ON FUNCTION pricing.routed_pairs(text[], text[], integer[], date[], date[]) IS
    'Pairs of active data types, each once, with the provider to ask (NULL = none) and the bytes of the answer.';


CREATE OR REPLACE FUNCTION pricing.bury_unrouted(
    data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[],
    backfill uuid) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pair record;
BEGIN
    FOR pair IN
        WITH buried AS (
            INSERT INTO pricing.api_call_queue_dead
                (data_type, symbol, window_start, window_end, status, priority, enqueued_at, backfill_id,
                 finished_at, failure_kind, errors)
            SELECT r.data_type, r.symbol, r.window_start, r.window_end, 'failed', r.priority, now_, backfill,
                   now_, 'misconfigured',
                   jsonb_build_array(jsonb_build_object(
                       'at', now_, 'attempt', 0, 'kind', 'misconfigured',
                       'message', pricing.describe_no_route(r.data_type, r.symbol)))
            FROM pricing.routed_pairs(data_types, symbols, priorities, window_starts, window_ends) r
            WHERE r.provider IS NULL
            RETURNING data_type, symbol)
        SELECT b.data_type, array_agg(DISTINCT b.symbol) AS symbols
        FROM buried b
        WHERE backfill IS NULL
        GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM pricing.back_off(
            pair.data_type, pair.symbols, 'misconfigured',
            'no active provider serves this pair' || coalesce('; ' || pricing.describe_no_provider(), ''));
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.bury_unrouted(text[], text[], integer[], date[], date[], uuid) IS
    'Adds a dead task for each pair that no provider serves, and makes the pair back off, so that people see why it '
    'has no price.';


CREATE OR REPLACE FUNCTION pricing.enqueue_by_halves(
    data_types text[], symbols text[], priorities integer[], window_starts date[], window_ends date[],
    until timestamptz) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    middle integer := cardinality(symbols) / 2;
BEGIN
    IF middle = 0 OR clock_timestamp() > until THEN
        PERFORM pricing.pass_over('enqueue_pairs', data_types[1], symbols);
        -- Wanted pairs are due again; a scheduled pair is requested once more.
        IF window_starts IS NULL THEN
            PERFORM pricing.repair_demand(data_types, symbols);
        END IF;
        PERFORM pricing.request_pairs('scheduled', array_agg(u.data_type), array_agg(u.symbol))
        FROM unnest(data_types, symbols, priorities) AS u (data_type, symbol, priority)
        WHERE u.priority = -1 AND window_starts IS NULL HAVING count(*) > 0;
        RETURN 0;
    END IF;
    RETURN pricing.enqueue_pairs(data_types[:middle], symbols[:middle], priorities[:middle],
                                 window_starts[:middle], window_ends[:middle], until => until)
         + pricing.enqueue_pairs(data_types[middle + 1:], symbols[middle + 1:], priorities[middle + 1:],
                                 window_starts[middle + 1:], window_ends[middle + 1:], until => until);
END $$;
COMMENT ON FUNCTION pricing.enqueue_by_halves(text[], text[], integer[], date[], date[], timestamptz) IS
    'Queues pairs by halves while another session queues some of them, until only those are skipped or time is up; '
    'returns how many tasks are new.';


CREATE OR REPLACE FUNCTION pricing.raise_priorities(ids bigint[], priorities integer[]) RETURNS void
-- Few or many, the rows are read by their ids: a nested loop might look through one list for each entry of the other.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET enable_nestloop = off SET jit = off
SET lock_timeout = '100ms' AS $$
BEGIN
    UPDATE pricing.api_call_queue_live q SET priority = higher.priority
    FROM (SELECT x.id, u.priority
          FROM pricing.api_call_queue_live x JOIN unnest(ids, priorities) AS u (id, priority) USING (id)
          WHERE x.id = ANY (ids)
            AND x.priority < u.priority
          ORDER BY x.id FOR UPDATE OF x) higher
    WHERE q.id = ANY (ids) AND q.id = higher.id;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    BEGIN
        UPDATE pricing.api_call_queue_live q SET priority = higher.priority
        FROM (SELECT x.id, u.priority
              FROM pricing.api_call_queue_live x JOIN unnest(ids, priorities) AS u (id, priority) USING (id)
              WHERE x.id = ANY (ids)
                AND x.priority < u.priority
              ORDER BY x.id FOR UPDATE OF x SKIP LOCKED) higher
        WHERE q.id = ANY (ids) AND q.id = higher.id;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        -- SKIP LOCKED waits all the same for a row that was updated and locked again while PostgreSQL looked at it.
        NULL;
    END;
END $$;
COMMENT ON FUNCTION pricing.raise_priorities(bigint[], integer[]) IS
    'Raises live tasks to a higher priority; skips locked ones.';


CREATE OR REPLACE FUNCTION pricing.enqueue(
    wanted_type text, symbols text[], priorities integer[],
    window_starts date[] DEFAULT NULL, window_ends date[] DEFAULT NULL, backfill uuid DEFAULT NULL) RETURNS integer
LANGUAGE sql SET search_path = '' AS $$
    SELECT CASE WHEN cardinality(symbols) > 0
                THEN pricing.enqueue_pairs(pg_catalog.array_fill(wanted_type, ARRAY[cardinality(symbols)]), symbols,
                                           priorities, window_starts, window_ends, backfill)
                ELSE 0 END
$$;
COMMENT ON FUNCTION pricing.enqueue(text, text[], integer[], date[], date[], uuid) IS
    'Queues symbols of one data type, as enqueue_pairs does.';


CREATE OR REPLACE FUNCTION pricing.lock_tasks(ids bigint[], token uuid, of_call bigint DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
SET lock_timeout = '1s' AS $$
BEGIN
    RETURN ARRAY(
        SELECT q.id FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (ids)
          AND q.status = 'processing'
          AND q.claim_token = token
          AND (of_call IS NULL OR q.call_id = of_call)
        ORDER BY q.id FOR UPDATE);
END $$;
COMMENT ON FUNCTION pricing.lock_tasks(bigint[], uuid, bigint) IS
    'The fence: locks the tasks that a claim still owns, of one call or of all, until the transaction ends, and '
    'returns their ids; waits at most a second.';


CREATE OR REPLACE FUNCTION pricing.finish_tasks(
    wanted bigint[], token uuid DEFAULT NULL, of_call bigint DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off
SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    week smallint := floor(extract(epoch FROM now_) / 604800)::bigint % 8;
    done record;
BEGIN
    WITH gone AS (
        DELETE FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (wanted)
          AND (token IS NULL OR (q.status = 'processing' AND q.claim_token = token))
          AND (of_call IS NULL OR q.call_id = of_call)
        RETURNING q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.provider, q.priority,
                  q.cadence_minutes, q.est_bytes, q.enqueued_at, q.attempt, q.max_attempts, q.claim_token,
                  q.claimed_at, q.worker, q.call_id, q.backfill_id, q.errors),
    kept AS (
        INSERT INTO pricing.api_call_queue_completed
            (id, data_type, symbol, window_start, window_end, provider, status, priority, cadence_minutes, est_bytes,
             enqueued_at, attempt, max_attempts, claim_token, claimed_at, worker, call_id, backfill_id, errors,
             finished_at, ring)
        SELECT g.id, g.data_type, g.symbol, g.window_start, g.window_end, g.provider, 'completed', g.priority,
               g.cadence_minutes, g.est_bytes, g.enqueued_at, g.attempt, g.max_attempts, g.claim_token, g.claimed_at,
               g.worker, g.call_id, g.backfill_id, g.errors, now_, week
        FROM gone g)
    SELECT coalesce(array_agg(g.id), '{}') AS ids,
           array_agg(pair.place) FILTER (WHERE pair.place IS NOT NULL) AS places,
           array_agg(g.data_type) FILTER (WHERE pair.place IS NOT NULL) AS types,
           array_agg(g.symbol) FILTER (WHERE pair.place IS NOT NULL) AS symbols
    INTO done
    FROM gone g
    LEFT JOIN LATERAL (
        -- By a range of one value, in the order that only the right index has: those of an empty table look alike.
        SELECT x.ctid AS place FROM pricing.demand x
        WHERE g.window_end = 'infinity' AND x.data_type = g.data_type AND x.symbol BETWEEN g.symbol AND g.symbol
        ORDER BY x.symbol FOR NO KEY UPDATE SKIP LOCKED) pair ON true;
    IF done.places IS NOT NULL THEN
        -- By their places (ctid): a plan by keys, made while demand was small, read all demand.
        UPDATE pricing.demand d
        SET due_at = greatest(now_ + interval '1 second', coalesce(
                due.at, now_ + make_interval(mins => known.ttl_minutes))),
            became_due_at = NULL, stretched_from = NULL, owed_since = NULL, read_at = NULL, failures = 0,
            backoff_until = NULL, last_failure = NULL
        FROM unnest(done.places, done.types, done.symbols) AS g (place, data_type, symbol)
        JOIN pricing.data_type_registry r USING (data_type)
        LEFT JOIN LATERAL (
            SELECT x.fetched_at, x.cache_ttl_minutes FROM pricing.latest_prices x
            WHERE (x.data_type, x.symbol) = (g.data_type, g.symbol) OFFSET 0) l ON true
        CROSS JOIN LATERAL (
            SELECT pricing.ttl_beside(r, g.symbol, l.cache_ttl_minutes) AS ttl_minutes OFFSET 0) known
        CROSS JOIN LATERAL pricing.stale_at(r, g.symbol, l.fetched_at, known.ttl_minutes) due
        WHERE d.ctid = g.place;
    END IF;
    RETURN done.ids;
END $$;
COMMENT ON FUNCTION pricing.finish_tasks(bigint[], uuid, bigint) IS
    'Finishes tasks that lock_tasks has locked or, with a token, that its claim still owns, sets when their pairs are '
    'due again (except locked ones), and returns their ids.';


CREATE OR REPLACE FUNCTION pricing.complete_tasks(ids bigint[], token uuid) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- The fence and the end of a task are one step here: nothing is stored between them.
    RETURN pricing.finish_tasks(ids, token);
END $$;
COMMENT ON FUNCTION pricing.complete_tasks(bigint[], uuid) IS
    'Finishes claimed tasks and sets when their pairs are due again; returns the ids that the claim still owned.';


CREATE OR REPLACE FUNCTION pricing.finish_pending(wanted_type text, symbols text[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    locked bigint[];
BEGIN
    -- Locked tasks are skipped, because prices are locked already: they are requested once more.
    SELECT array_agg(mine.id) INTO locked FROM (
        SELECT q.id FROM pricing.api_call_queue_live q
        WHERE q.data_type = wanted_type
          AND q.symbol = ANY (symbols)
          AND q.window_start = '-infinity'
          AND q.window_end = 'infinity'
          AND q.status IN ('pending', 'scheduled')
        ORDER BY q.id FOR UPDATE SKIP LOCKED) mine;
    RETURN CASE WHEN locked IS NULL THEN '{}' ELSE pricing.finish_tasks(locked) END;
END $$;
COMMENT ON FUNCTION pricing.finish_pending(text, text[]) IS
    'Finishes unclaimed tasks for latest values, because another call''s answer has served their pairs; returns their '
    'ids.';


CREATE OR REPLACE FUNCTION pricing.finish_call(
    finished bigint, ids bigint[], token uuid, status integer, bytes bigint, kind text DEFAULT NULL,
    stated_left integer DEFAULT NULL, is_owned boolean DEFAULT true, shown_units integer DEFAULT NULL,
    shown_seconds integer DEFAULT NULL, without_length boolean DEFAULT false) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    done bigint[] := pricing.finish_tasks(ids, token, finished);
BEGIN
    PERFORM pricing.settle_call(finished, 'ok', status, bytes, NULL, kind, is_owned, stated_left, shown_units,
                                shown_seconds, without_length);
    RETURN done;
END $$;
COMMENT ON FUNCTION pricing.finish_call(
    bigint, bigint[], uuid, integer, bigint, text, integer, boolean, integer, integer, boolean) IS
    'Finishes an answered call''s tasks that its claim still owns, as complete_tasks does, and settles the call, '
    'which is judged if it owned one (is_owned); returns the ids of the tasks.';


CREATE OR REPLACE FUNCTION pricing.back_off(wanted_type text, symbols text[], kind text, reason text) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.demand d
    SET failures = d.failures + 1, last_failure = reason, became_due_at = NULL, stretched_from = NULL,
        backoff_until = pairs.until, due_at = pairs.until, read_at = NULL,
        owed_since = CASE WHEN NOT pricing.is_symbol_fault(kind) THEN least(d.owed_since, d.became_due_at, d.due_at) END
    FROM (SELECT x.data_type, x.symbol, pricing.clock() + pricing.backoff_interval(kind, x.failures) AS until
          FROM pricing.demand x
          WHERE x.data_type = wanted_type AND x.symbol = ANY (symbols)
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE SKIP LOCKED) pairs
    WHERE (d.data_type, d.symbol) = (pairs.data_type, pairs.symbol)
$$;
COMMENT ON FUNCTION pricing.back_off(text, text[], text, text) IS
    'Makes pairs back off after their task died: after trouble they stay owed, after a fault of the symbol they do '
    'not, and readers are told why; skips locked pairs.';


CREATE OR REPLACE FUNCTION pricing.spare_calls(ids bigint[], entry jsonb, message text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    spared bigint[] := ARRAY(
        SELECT o.id
        FROM pricing.api_call_queue_live q
        JOIN pricing.data_type_registry r ON r.data_type = q.data_type AND r.contents = 'prices'
        JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
        JOIN pricing.data_type_registry k ON k.asset_class = r.asset_class
        JOIN pricing.api_call_queue_live o ON (o.data_type, o.symbol) = (k.data_type, q.symbol)
        WHERE q.id = ANY (ids) AND q.status = 'processing' AND i.verified_at IS NULL
          AND o.provider = q.provider AND o.status <> 'processing' AND o.id <> ALL (ids)
          -- Only once: a provider may have the bars of what it has no quote of.
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_dead d
                          WHERE (d.data_type, d.symbol) = (o.data_type, o.symbol) AND d.resolved_at IS NULL)
        ORDER BY o.id FOR UPDATE OF o SKIP LOCKED);
BEGIN
    spared := ARRAY(SELECT unnest(spared) EXCEPT SELECT unnest(pricing.detour(spared, 'unknown_symbol', message)));
    PERFORM pricing.bury(spared, 'unknown_symbol', entry, message);
END $$;
COMMENT ON FUNCTION pricing.spare_calls(bigint[], jsonb, text) IS
    'Ends the waiting tasks of instruments that nobody has ever priced and that a provider does not know, as their '
    'claimed tasks end: one trial is enough.';


CREATE OR REPLACE FUNCTION pricing.fail_tasks(
    ids bigint[], token uuid, kind text, message text, is_permanent boolean, retry_after interval DEFAULT NULL)
RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb;
    snoozed boolean := kind IN ('throttled', 'key_refused', 'unfinished');
    locked bigint[] := pricing.lock_tasks(ids, token);
BEGIN
    -- For a call about one symbol: only if others are answered is this symbol at fault.
    IF kind = 'request_refused' AND cardinality(ids) = 1 THEN
        is_permanent := EXISTS (SELECT FROM pricing.api_call_queue_live q
                                WHERE q.id = ANY (locked) AND q.window_end <> 'infinity');
        IF NOT is_permanent AND pricing.others_were_answered(locked) THEN
            is_permanent := true;
            kind := 'unknown_symbol';
            message := 'it is refused alone, while others are answered: ' || message;
        END IF;
    END IF;
    entry := jsonb_build_object('at', now_, 'kind', kind, 'message', left(message, 500));
    IF is_permanent AND kind IN ('unknown_symbol', 'plan_restricted', 'endpoint_restricted') THEN
        PERFORM pricing.detour(locked, kind, message);
        IF pricing.is_symbol_fault(kind) THEN
            PERFORM pricing.bury_by_trouble(locked, entry, message);
        END IF;
        IF kind = 'unknown_symbol' THEN
            PERFORM pricing.spare_calls(locked, entry, message);
        END IF;
    END IF;
    -- Trouble of the provider or the key costs the task no attempt until it is a day old.
    UPDATE pricing.api_call_queue_live q
    SET status = 'scheduled', claim_token = NULL, lease_until = NULL,
        attempt = q.attempt - CASE WHEN snoozed THEN 1 ELSE 0 END,
        run_after = now_ + CASE WHEN snoozed THEN coalesce(retry_after, interval '5 seconds')
                                -- The source would only say the same again; it has a cadence of its own.
                                WHEN kind = 'implausible'
                                    THEN make_interval(mins => greatest(least(q.cadence_minutes, 60), 1))
                                         * 2 ^ (q.attempt - 1)
                                ELSE (ARRAY['5 seconds', '30 seconds', '2 minutes']::interval[])[least(q.attempt, 3)]
                           END * (1 + random() * 0.2),
        errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
    WHERE q.id = ANY (locked) AND NOT is_permanent
      AND CASE WHEN snoozed THEN q.enqueued_at > now_ - interval '24 hours' ELSE q.attempt < q.max_attempts END;

    PERFORM pricing.bury(
        (SELECT array_agg(q.id) FROM pricing.api_call_queue_live q
         WHERE q.id = ANY (locked) AND q.status = 'processing'),
        kind, entry, message);
    PERFORM pricing.stop_paused_tasks(locked);
    RETURN locked;
END $$;
COMMENT ON FUNCTION pricing.fail_tasks(bigint[], uuid, text, text, boolean, interval) IS
    'Fails claimed tasks: repeats them after 5 s, 30 s, 2 min (implausible: after their TTL), snoozes throttled and '
    'unfinished ones, gives unserved ones to the next provider, or buries them; returns the ids that the claim still '
    'owned.';


CREATE OR REPLACE FUNCTION pricing.append_errors(errors jsonb, added jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
DECLARE
    entry jsonb;
    left_out integer;
BEGIN
    FOR entry IN
        SELECT jsonb_array_elements(CASE jsonb_typeof(added) WHEN 'array' THEN added ELSE jsonb_build_array(added) END)
    LOOP
        IF jsonb_array_length(errors) >= 12 THEN
            left_out := coalesce((errors #>> '{1,left_out}')::integer, 1) + 1;
            errors := jsonb_set(errors - 2, '{1}', (errors -> 2) || jsonb_build_object(
                'kind', 'left_out', 'left_out', left_out,
                'message', pg_catalog.format('%s entries are left out here', left_out)));
        END IF;
        errors := errors || jsonb_build_array(entry);
    END LOOP;
    RETURN errors;
END $$;
COMMENT ON FUNCTION pricing.append_errors(jsonb, jsonb) IS
    'Adds an entry, or an array of them, to a task''s history; keeps the first and the last ten, and counts the '
    'rest.';


CREATE OR REPLACE FUNCTION pricing.bury(ids bigint[], kind text, entry jsonb, reason text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pair record;
BEGIN
    FOR pair IN
        WITH gone AS (
            DELETE FROM pricing.api_call_queue_live q USING (
                SELECT x.id FROM pricing.api_call_queue_live x WHERE x.id = ANY (ids) ORDER BY x.id FOR UPDATE) mine
            WHERE q.id = mine.id RETURNING q.*),
        kept AS (
            INSERT INTO pricing.api_call_queue_dead
                (id, data_type, symbol, window_start, window_end, provider, status, priority,
                 cadence_minutes, est_bytes, enqueued_at, attempt, max_attempts, claim_token,
                 claimed_at, worker, call_id, backfill_id, errors, finished_at, failure_kind)
            SELECT g.id, g.data_type, g.symbol, g.window_start, g.window_end, g.provider, 'failed', g.priority,
                   g.cadence_minutes, g.est_bytes, g.enqueued_at, g.attempt, g.max_attempts, g.claim_token,
                   g.claimed_at, g.worker, g.call_id, g.backfill_id,
                   pricing.append_errors(g.errors, entry || jsonb_build_object('attempt', g.attempt)),
                   now_, kind
            FROM gone g)
        SELECT g.data_type, array_agg(g.symbol) AS symbols
        FROM gone g
        WHERE g.window_end = 'infinity'
        GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM pricing.back_off(pair.data_type, pair.symbols, kind, left(reason, 500));
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.bury(bigint[], text, jsonb, text) IS
    'Moves tasks to the dead with their last error, and makes their pairs back off.';


CREATE OR REPLACE FUNCTION pricing.extend_tasks(ids bigint[], token uuid, lease interval DEFAULT '60 seconds')
RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    extended bigint[];
BEGIN
    WITH mine AS MATERIALIZED (
        SELECT x.id FROM pricing.api_call_queue_live x
        WHERE x.id = ANY (ids) AND x.status = 'processing' AND x.claim_token = token
        ORDER BY x.id FOR UPDATE SKIP LOCKED),
    kept AS (
        UPDATE pricing.api_call_queue_live q SET lease_until = greatest(q.lease_until, now_ + lease)
        FROM mine WHERE q.id = mine.id RETURNING q.id)
    SELECT array_agg(kept.id) INTO extended FROM kept;
    RETURN coalesce(extended, '{}');
END $$;
COMMENT ON FUNCTION pricing.extend_tasks(bigint[], uuid, interval) IS
    'Renews a worker''s lease on its tasks; returns the ids that its claim still owns.';


CREATE OR REPLACE FUNCTION pricing.return_tasks(
    ids bigint[], token uuid, kind text DEFAULT 'worker_stopped', message text DEFAULT 'returned by its worker',
    pause interval DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb := jsonb_build_object('at', now_, 'kind', kind, 'message', left(message, 500));
    returned integer;
BEGIN
    UPDATE pricing.api_call_queue_live q
    SET status = CASE WHEN pause IS NULL THEN 'pending' ELSE 'scheduled' END, run_after = now_ + pause,
        claim_token = NULL, lease_until = NULL, attempt = q.attempt - 1,
        errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.id = ANY (ids) AND x.status = 'processing' AND x.claim_token = token
          ORDER BY x.id FOR UPDATE SKIP LOCKED) mine
    WHERE q.id = mine.id;
    GET DIAGNOSTICS returned = ROW_COUNT;
    PERFORM pricing.stop_paused_tasks(ids);
    RETURN returned;
END $$;
COMMENT ON FUNCTION pricing.return_tasks(bigint[], uuid, text, text, interval) IS
    'Returns claimed tasks to the queue without costing an attempt, at once or after a pause; a locked task returns '
    'when its lease ends; returns how many.';


CREATE OR REPLACE FUNCTION pricing.promote_tasks() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    promoted integer;
BEGIN
    UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.status = 'scheduled' AND x.run_after <= now_
          ORDER BY x.run_after LIMIT 5000 FOR UPDATE SKIP LOCKED) ripe
    WHERE q.id = ripe.id;
    GET DIAGNOSTICS promoted = ROW_COUNT;
    RETURN promoted;
END $$;
COMMENT ON FUNCTION pricing.promote_tasks() IS 'Makes tasks pending whose pause is over.';


CREATE OR REPLACE FUNCTION pricing.recover_tasks() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb := jsonb_build_object(
        'at', now_, 'kind', 'worker_lost', 'message', 'the worker stopped answering; its lease ran out');
    asked bigint[];
    stuck bigint[];
BEGIN
    -- A claimed task has an open call; no call is closed while one of its tasks is claimed.
    SELECT array_agg(q.id) INTO asked
    FROM (SELECT c.data_type, unnest(c.symbols) AS symbol, c.window_start, c.window_end
          FROM pricing.collector_call_log c WHERE c.finished_at IS NULL) open_
    JOIN pricing.api_call_queue_live q USING (data_type, symbol, window_start, window_end)
    WHERE q.status = 'processing';
    IF asked IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(x.id) INTO stuck FROM (
        SELECT q.id FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (asked) AND q.status = 'processing' AND q.lease_until < now_
        ORDER BY q.id FOR UPDATE SKIP LOCKED) x;
    UPDATE pricing.api_call_queue_live q
    SET status = 'pending', run_after = NULL, claim_token = NULL, lease_until = NULL,
        errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
    WHERE q.id = ANY (stuck) AND q.attempt < q.max_attempts;
    PERFORM pricing.bury(
        (SELECT array_agg(q.id) FROM pricing.api_call_queue_live q
         WHERE q.id = ANY (stuck) AND q.status = 'processing'),
        'worker_lost', entry, 'the worker was lost at every attempt');
    PERFORM pricing.stop_paused_tasks(stuck);
    RETURN coalesce(cardinality(stuck), 0);
END $$;
COMMENT ON FUNCTION pricing.recover_tasks() IS
    'Takes tasks back from workers whose lease ran out, or buries those without an attempt left; returns how many.';
