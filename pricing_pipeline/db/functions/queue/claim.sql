-- Taking tasks and planning calls, within what the provider allows now. Lock order: see queue.sql.
--
-- If one waiting task alone could be called now, a claim returns a call. So a task is picked only if it could be called
-- alone: its provider can fetch it, and its units and bytes fit into what is left. What cannot be called is passed over
-- and hides nothing, with one exception: for a task that has waited for a minute for more units than are left at a time,
-- they are saved during two of each five minutes (save_units). Tasks that can never be called are failed by a duty
-- (fail_impossible_tasks in by_hand.sql).

CREATE OR REPLACE FUNCTION pricing.claim_calls(
    wanted_provider text, worker_name text, max_calls integer, run text DEFAULT NULL, keys text[] DEFAULT NULL,
    is_waited_for boolean DEFAULT true, lease interval DEFAULT '60 seconds')
RETURNS TABLE (call_id bigint, key_name text, data_type text, fetcher text, window_start date, window_end date,
               claim_token uuid, claimed_at timestamptz,
               ids bigint[], symbols text[], priorities integer[], attempts smallint[])
-- Planned once: what a new plan could know better never paid for the millisecond that planning takes.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    state pricing.provider_state;
    allowed pricing.call_allowance;
    tasks pricing.picked_task[];
    planned record;
    call_units integer;
    call_bytes bigint;
BEGIN
    IF NOT is_waited_for THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    -- The lock makes looking at the allowance and taking from it one step, for all workers.
    SELECT * INTO state FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    now_ := pricing.clock();
    allowed := pricing.allowance_of(state, keys, max_calls, now_);
    IF allowed.key_name IS NULL THEN
        RETURN;
    END IF;
    PERFORM pricing.await_claims();
    tasks := pricing.pick_for_claim(wanted_provider, allowed, state.claims, now_);
    key_name := allowed.key_name;
    claim_token := gen_random_uuid();
    claimed_at := now_;
    FOR planned IN SELECT * FROM pricing.group_calls(wanted_provider, tasks, allowed.most_calls) LOOP
        planned.tasks := pricing.fitting_tasks(planned.tasks, planned.units_per_call, planned.units_per_symbol, allowed);
        CONTINUE WHEN cardinality(planned.tasks) = 0;
        SELECT array_agg(t.id), array_agg(t.symbol), array_agg(t.priority), array_agg((t.attempt + 1)::smallint), sum(t.est_bytes)
        INTO ids, symbols, priorities, attempts, call_bytes FROM unnest(planned.tasks) AS t;
        call_units := planned.units_per_call + cardinality(ids) * planned.units_per_symbol;
        INSERT INTO pricing.collector_call_log AS c
            (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, run_id, worker, started_at)
        VALUES (wanted_provider, allowed.key_name, planned.data_type, claim_calls.symbols, planned.window_start, planned.window_end,
                call_units, call_bytes, run, worker_name, now_)
        RETURNING c.call_id INTO call_id;
        UPDATE pricing.api_call_queue_live q
        SET status = 'processing', attempt = q.attempt + 1, claim_token = claim_calls.claim_token, claimed_at = now_,
            lease_until = now_ + lease, worker = worker_name, call_id = claim_calls.call_id
        WHERE q.ctid = ANY (ARRAY(SELECT t.place FROM unnest(planned.tasks) AS t));
        data_type := planned.data_type;
        fetcher := planned.fetcher;
        window_start := nullif(planned.window_start, '-infinity');
        window_end := nullif(planned.window_end, 'infinity');
        RETURN NEXT;
        allowed.units_left := allowed.units_left - call_units;
        allowed.bytes_used := allowed.bytes_used + call_bytes;
    END LOOP;
    IF call_id IS NOT NULL THEN
        PERFORM pricing.note_claim(wanted_provider, allowed.is_probe, call_id, now_);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.claim_calls(text, text, integer, text, text[], boolean, interval) IS
    'Takes as many tasks as the provider allows now, grouped into at most max_calls calls of the key with the most room (of keys, if given), and logs those calls as open. The transaction must be committed before the calls are made. The window of a call for latest prices is NULL. Unless is_waited_for, the commit does not wait for the disk, so that the next claim need not either; then await_disk must have returned, too. Fails (55P03) when somebody holds the provider''s state for a fifth of a second.';


CREATE OR REPLACE FUNCTION pricing.note_claim(wanted_provider text, is_probe boolean, newest_call bigint, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.provider_state s
    SET claims = s.claims + 1, last_call_at = now_, breaker = CASE WHEN is_probe THEN 'half_open' ELSE 'closed' END,
        -- Not the lease, which the caller chooses: a probe is one probe.
        breaker_until = CASE WHEN is_probe THEN now_ + interval '60 seconds' END,
        probe_call = CASE WHEN is_probe THEN newest_call END
    WHERE s.provider = wanted_provider;
END $$;
COMMENT ON FUNCTION pricing.note_claim(text, boolean, bigint, timestamptz) IS
    'Notes that a claim has opened calls of a provider, the newest of which is the probe of its breaker, if it is one.';


CREATE OR REPLACE FUNCTION pricing.allowance_of(
    state pricing.provider_state, keys text[], max_calls integer, now_ timestamptz) RETURNS pricing.call_allowance
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    allowed pricing.call_allowance;
    collector pricing.data_collectors;
    has_refused boolean;
    units_limit integer;
    free_calls integer;
    able record;
BEGIN
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = state.provider AND p.is_active;
    IF collector.provider IS NULL OR (state.breaker_until > now_ AND NOT pricing.may_probe_early(state, now_)) THEN
        RETURN NULL;
    END IF;
    free_calls := pricing.free_calls(state, now_);
    IF free_calls <= 0 THEN
        RETURN NULL;
    END IF;
    -- Counting thousands of calls in a window takes a millisecond, so the counts are kept for 32 claims.
    IF state.claims % 32 = 31 OR state.last_call_at > now_ THEN
        PERFORM pricing.count_units(state.provider, now_);
    END IF;
    SELECT r.key_name, r.units_left, r.is_after_refusal, r.units_limit INTO allowed.key_name, allowed.units_left, has_refused, units_limit
    FROM pricing.key_allowances(state.provider, now_) r
    WHERE r.is_usable AND r.units_left > 0 AND (keys IS NULL OR r.key_name = ANY (keys))
      AND NOT pricing.is_kept_for_page(state, r.key_name, now_)
      AND NOT coalesce(collector.request_delay_ms > 0 AND state.last_call_at > now_ - make_interval(
            secs => collector.request_delay_ms / 1000.0 * CASE WHEN r.is_nearly_used_up THEN 2 ELSE 1 END), false)
    ORDER BY r.units_left DESC, r.key_name LIMIT 1;
    IF allowed.key_name IS NULL THEN
        RETURN NULL;
    END IF;
    allowed.is_probe := state.breaker <> 'closed';
    allowed.is_single := allowed.is_probe OR has_refused OR collector.request_delay_ms > 0 OR collector.max_in_flight = 1;
    allowed.most_calls := least(CASE WHEN allowed.is_single THEN 1 ELSE max_calls END, free_calls);
    allowed.bytes_used := pricing.bytes_used(state.provider, now_);
    allowed.quota_bytes := collector.quota_bytes;
    allowed.units_limit := units_limit;
    allowed.before_urgency := 2147483647;
    allowed.before_cadence := 0;
    allowed.before_id := 0;
    -- Locking more rows than the units can pay for would be work for nothing; nor is it known yet whether a list serves any.
    SELECT least(5000, CASE WHEN min(c.units_per_symbol) > 0 THEN greatest(allowed.units_left / min(c.units_per_symbol), 1) END) AS payable,
           max(greatest(CASE WHEN c.batch_from = 1 THEN c.batch_size ELSE 1 END, c.window_batch_size)) AS largest,
           max(CASE WHEN c.batch_from = 1 THEN 0 ELSE c.batch_size END) AS listed,
           max(c.units_per_call + c.units_per_symbol) > allowed.units_left AS is_scarce
    INTO able FROM pricing.provider_capabilities c WHERE c.provider = state.provider;
    allowed.most_tasks := least(allowed.most_calls * able.largest, able.payable);
    allowed.most_listed := least(allowed.most_calls * able.listed, able.payable);
    allowed.is_scarce := able.is_scarce;
    RETURN allowed;
END $$;
COMMENT ON FUNCTION pricing.allowance_of(pricing.provider_state, text[], integer, timestamptz) IS
    'What a provider allows now: the key with the most room, its units, the bytes of the quota, how many calls and tasks. NULL = no call, also while as many calls are in flight as it may have. Exact only under the lock of the provider_state row.';


CREATE OR REPLACE FUNCTION pricing.free_calls(state pricing.provider_state, now_ timestamptz, own_call bigint DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    in_flight bigint[];
    is_page_due boolean;
BEGIN
    -- A request ends within 10 s, and begins when its claim is on the disk. So what a lost worker has begun is soon over, too.
    SELECT array_agg(DISTINCT coalesce(c.page_of, c.call_id)) INTO in_flight FROM pricing.counted_calls c
    WHERE c.provider = state.provider AND c.finished_at IS NULL AND c.counted_at > now_ - interval '15 seconds'
      AND coalesce(c.page_of, c.call_id) IS DISTINCT FROM own_call;
    -- A call that waits for its next request is not in flight. The next free place is for the oldest such call.
    is_page_due := own_call IS NULL AND pricing.is_kept_for_page(state, state.page_key, now_) AND NOT coalesce(state.page_call = ANY (in_flight), false);
    RETURN (SELECT p.max_in_flight FROM pricing.data_collectors p WHERE p.provider = state.provider)
         - coalesce(cardinality(in_flight), 0) - is_page_due::integer;
END $$;
COMMENT ON FUNCTION pricing.free_calls(pricing.provider_state, timestamptz, bigint) IS
    'How many more calls a provider may get at once, from all workers together: max_in_flight, less the calls in flight, less one for a call that waits for its next request. For the next request of a call, which is named, it does not count itself. Exact only under the lock of the provider_state row.';


CREATE OR REPLACE FUNCTION pricing.save_units(wanted_provider text, allowed pricing.call_allowance, now_ timestamptz)
RETURNS pricing.call_allowance
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off SET jit = off AS $$
DECLARE
    longer_left bigint;
    waiting record;
BEGIN
    -- Hours and days are not waited for: nothing would be called meanwhile.
    SELECT min(pricing.paced_units(l, allowed.key_name, pricing.units_in_force(l, allowed.key_name, now_), now_) - (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                                               WHERE (c.provider, c.key_name) = (wanted_provider, allowed.key_name)
                                                 AND c.counted_at > pricing.limit_start(l, now_)))
    INTO longer_left
    FROM pricing.provider_limits l
    WHERE l.provider = wanted_provider AND coalesce(l.window_seconds, 86400) > 60;
    SELECT (-first.priority) AS urgency, first.cadence_minutes, first.id INTO waiting
    FROM (SELECT q.* FROM pricing.api_call_queue_live q
          WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending'
          ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1000) first
    JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, r.fetcher)
    CROSS JOIN LATERAL (SELECT c.units_per_call + c.units_per_symbol AS units) cost
    WHERE r.is_active AND cost.units > allowed.units_left AND cost.units <= least(allowed.units_limit, longer_left)
      -- Not all the time: others who use the key may take whatever comes free.
      AND extract(epoch FROM now_ - first.enqueued_at)::bigint % 300 BETWEEN 60 AND 180
      AND allowed.bytes_used + first.est_bytes <= pricing.quota_for(allowed.quota_bytes, first.priority)
    ORDER BY (-first.priority), first.cadence_minutes, first.id LIMIT 1;
    IF FOUND THEN
        allowed.before_urgency := waiting.urgency;
        allowed.before_cadence := waiting.cadence_minutes;
        allowed.before_id := waiting.id;
    END IF;
    RETURN allowed;
END $$;
COMMENT ON FUNCTION pricing.save_units(text, pricing.call_allowance, timestamptz) IS
    'Has a claim leave units to the most urgent task that has waited for a minute and needs more than are left: nothing after it is picked, in the second and third of each five minutes that it waits. Only if it fits as soon as calls are a minute old. Otherwise each unit that comes free would go to cheaper work.';


CREATE OR REPLACE FUNCTION pricing.may_probe_early(state pricing.provider_state, now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN state.breaker = 'open' AND state.breaker_openings > 1 AND state.breaker_since <= now_ - interval '45 seconds'
           AND pricing.has_viewers_waiting(state.provider);
END $$;
COMMENT ON FUNCTION pricing.may_probe_early(pricing.provider_state, timestamptz) IS
    'Whether an open breaker lets its probe through before breaker_until: 45 s after the last probe failed, while a viewer waits. So viewers have their prices within a minute of the provider''s return, however long it was away.';


CREATE OR REPLACE FUNCTION pricing.has_viewers_waiting(wanted_provider text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN coalesce((SELECT q.priority > 0 FROM pricing.api_call_queue_live q
                     WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending'
                     ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1), false);
END $$;
COMMENT ON FUNCTION pricing.has_viewers_waiting(text) IS 'Whether a task that a viewer waits for is pending at a provider.';


CREATE OR REPLACE FUNCTION pricing.await_claims() RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Claims take a millisecond or two. If somebody holds the turn for longer, claims go on without it.
    FOR try IN 1..125 LOOP
        PERFORM FROM pricing.turns t WHERE t.name = 'claim' FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(0.002);
    END LOOP;
    INSERT INTO pricing.turns (name) VALUES ('claim') ON CONFLICT DO NOTHING;
END $$;
COMMENT ON FUNCTION pricing.await_claims() IS
    'Waits until no other claim is under way, of whatever provider, so that each sees the symbols of the others'' calls. Waits a quarter of a second at most.';


CREATE OR REPLACE FUNCTION pricing.pick_for_claim(
    wanted_provider text, allowed pricing.call_allowance, claims bigint, now_ timestamptz)
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    tasks pricing.picked_task[];
BEGIN
    IF allowed.is_scarce THEN
        allowed := pricing.save_units(wanted_provider, allowed, now_);
    END IF;
    IF allowed.is_probe THEN
        RETURN pricing.pick_probe(wanted_provider, allowed);
    END IF;
    tasks := pricing.pick_for_list(wanted_provider, allowed, pricing.pick_tasks(wanted_provider, allowed, allowed.most_tasks, -2147483648, 0, 0));
    -- Every tenth claim begins with a backfill, so that live work never starves it. Where only one call may be made at a
    -- time, it would take the place of a person's.
    IF claims % 10 = 9 AND NOT (allowed.is_single AND coalesce(tasks[1].priority, 0) > 0) THEN
        tasks := pricing.pick_tasks(wanted_provider, allowed, 1, 1, 2147483647, 9223372036854775807) || tasks;
    END IF;
    RETURN tasks;
END $$;
COMMENT ON FUNCTION pricing.pick_for_claim(text, pricing.call_allowance, bigint, timestamptz) IS
    'Locks and returns the tasks of a claim, the most urgent first: of a probe one, of every tenth claim a backfill before the others.';


CREATE OR REPLACE FUNCTION pricing.pick_tasks(
    wanted_provider text, allowed pricing.call_allowance, at_most integer, after_urgency integer, after_cadence integer, after_id bigint)
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
DECLARE
    -- What is left of the quota for each class of work.
    backfill_bytes bigint := pricing.quota_for(allowed.quota_bytes, -2) - allowed.bytes_used;
    scheduled_bytes bigint := pricing.quota_for(allowed.quota_bytes, -1) - allowed.bytes_used;
    other_bytes bigint := pricing.quota_for(allowed.quota_bytes, 0) - allowed.bytes_used;
BEGIN
    RETURN ARRAY(
        WITH callable AS MATERIALIZED (
            SELECT r.data_type, c.batch_from > 1 AS is_listed FROM pricing.data_type_registry r JOIN pricing.provider_capabilities c USING (fetcher)
            WHERE c.provider = wanted_provider AND r.is_active AND c.units_per_call + c.units_per_symbol <= allowed.units_left),
        asked AS MATERIALIZED (
            SELECT unnest(c.symbols) AS symbol FROM pricing.collector_call_log c WHERE c.finished_at IS NULL)
        SELECT ROW(q.ctid, q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.cadence_minutes, q.est_bytes,
                   q.attempt, CASE WHEN q.attempt = 0 THEN 1
                                   -- What a list lacks, it lacks again; and one that does not load must stop nobody.
                                   WHEN q.window_end = 'infinity' AND q.data_type IN (SELECT k.data_type FROM callable k WHERE k.is_listed) THEN 2147483647
                                   ELSE pricing.batch_parts(q.errors) END)::pricing.picked_task
        FROM pricing.api_call_queue_live q
        WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending'
          AND ((-q.priority), q.cadence_minutes, q.id) > (after_urgency, after_cadence, after_id)
          AND ((-q.priority), q.cadence_minutes, q.id) < (allowed.before_urgency, allowed.before_cadence, allowed.before_id)
          AND q.data_type IN (SELECT k.data_type FROM callable k)
          AND q.est_bytes <= CASE q.priority WHEN -2 THEN backfill_bytes WHEN -1 THEN scheduled_bytes ELSE other_bytes END
          -- Only what an open call has asked for can be in work, and little of what is pending is.
          AND (q.symbol NOT IN (SELECT a.symbol FROM asked a) OR NOT pricing.is_in_work(q.symbol))
        ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT at_most FOR UPDATE OF q SKIP LOCKED);
END $$;
COMMENT ON FUNCTION pricing.pick_tasks(text, pricing.call_allowance, integer, integer, integer, bigint) IS
    'Locks and returns the most urgent pending tasks of a provider of which each could be called alone now: its data type can be asked for, its units and bytes fit, its symbol is not in work. Of those after a place in the claim''s order (urgency = -priority).';


CREATE OR REPLACE FUNCTION pricing.pick_for_list(wanted_provider text, allowed pricing.call_allowance, picked pricing.picked_task[])
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    last_picked pricing.picked_task := picked[allowed.most_tasks];
BEGIN
    IF last_picked.window_end IS DISTINCT FROM 'infinity' OR allowed.most_listed <= allowed.most_tasks THEN
        RETURN picked;
    END IF;
    -- A deep backfill lies behind: thousands of its rows would be locked for nothing.
    IF allowed.before_urgency > 2 THEN
        allowed.before_urgency := 2;
        allowed.before_cadence := 0;
        allowed.before_id := 0;
    END IF;
    RETURN picked || pricing.pick_tasks(wanted_provider, allowed, allowed.most_listed - allowed.most_tasks,
                                        -last_picked.priority, last_picked.cadence_minutes, last_picked.id);
END $$;
COMMENT ON FUNCTION pricing.pick_for_list(text, pricing.call_allowance, pricing.picked_task[]) IS
    'What was picked, and more of what is more urgent than backfills where the provider has a list of latest prices that may serve it: the calls are full, and the last picked task asks for such a price.';


CREATE OR REPLACE FUNCTION pricing.batch_of(able pricing.provider_capabilities, first_day date, last_day date) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    -- A day, as for shown_units.
    shown integer := (SELECT s.shown_size FROM pricing.shown_batches s
                      WHERE (s.provider, s.fetcher, s.is_of_days) = (able.provider, able.fetcher, last_day <> 'infinity')
                        AND s.shown_at > pricing.clock() - interval '1 day');
BEGIN
    IF last_day = 'infinity' THEN
        RETURN least(able.batch_size, shown);
    END IF;
    RETURN greatest(1, least(able.window_batch_size, able.window_days_per_call / (last_day - first_day + 1), shown));
END $$;
COMMENT ON FUNCTION pricing.batch_of(pricing.provider_capabilities, date, date) IS
    'How many symbols one call of a provider may ask for: for the latest price, or for a span of days, of which all symbols together have no more days than a call may. Never more than the provider has shown within a day to take.';


CREATE OR REPLACE FUNCTION pricing.cut_calls(
    able pricing.provider_capabilities, first_day date, last_day date, parts integer, waiting integer)
RETURNS TABLE (from_task integer, to_task integer)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    least_size integer := CASE WHEN last_day = 'infinity' THEN able.batch_from ELSE 1 END;
    size integer := greatest(1, pricing.batch_of(able, first_day, last_day) / parts);
    sharing integer := 0;
BEGIN
    IF size >= least_size THEN
        sharing := waiting - CASE WHEN waiting % size < least_size THEN waiting % size ELSE 0 END;
    END IF;
    RETURN QUERY
    SELECT n, least(n + size - 1, sharing) FROM generate_series(1, sharing, size) AS n
    UNION ALL SELECT n, n FROM generate_series(sharing + 1, waiting) AS n;
END $$;
COMMENT ON FUNCTION pricing.cut_calls(pricing.provider_capabilities, date, date, integer, integer) IS
    'Cuts tasks of one kind into calls, from which to which: as many as a call may have, or a part of that (batch_parts); one by one those that are too few to share a call (batch_from).';


CREATE OR REPLACE FUNCTION pricing.group_calls(
    wanted_provider text, picked pricing.picked_task[], at_most integer)
RETURNS TABLE (data_type text, fetcher text, window_start date, window_end date, units_per_call integer, units_per_symbol integer,
               tasks pricing.picked_task[])
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    -- Mostly all are of one kind, so that no two are for one symbol: there is nothing to sort and to group, for a tenth of a
    -- claim's time. (A backfill that was picked first may come once more among the others.)
    IF (SELECT bool_and((t.data_type, t.window_start, t.window_end, t.parts)
                        = (picked[1].data_type, picked[1].window_start, picked[1].window_end, picked[1].parts))
               AND count(*) FILTER (WHERE t.id = picked[1].id) = 1 FROM unnest(picked) AS t) THEN
        RETURN QUERY
        SELECT r.data_type, r.fetcher, picked[1].window_start, picked[1].window_end, c.units_per_call, c.units_per_symbol,
               picked[cut.from_task:cut.to_task]
        FROM pricing.data_type_registry r JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, r.fetcher)
        CROSS JOIN LATERAL pricing.cut_calls(c, picked[1].window_start, picked[1].window_end, picked[1].parts, cardinality(picked)) cut
        WHERE r.data_type = picked[1].data_type LIMIT at_most;
        RETURN;
    END IF;
    RETURN QUERY
    WITH numbered AS MATERIALIZED (
        SELECT row_number() OVER () AS turn, t AS task, t.data_type, t.symbol, t.window_start, t.window_end, t.parts FROM unnest(picked) AS t),
    kinds AS (
        SELECT n.data_type, n.window_start, n.window_end, n.parts, array_agg(n.task ORDER BY n.turn) AS tasks, array_agg(n.turn ORDER BY n.turn) AS turns
        FROM numbered n
        -- Calls for one symbol are made one after the other.
        WHERE n.turn IN (SELECT min(x.turn) FROM numbered x GROUP BY x.symbol)
        GROUP BY 1, 2, 3, 4)
    SELECT k.data_type, r.fetcher, k.window_start, k.window_end, c.units_per_call, c.units_per_symbol,
           k.tasks[cut.from_task:cut.to_task]
    FROM kinds k JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, r.fetcher)
    CROSS JOIN LATERAL pricing.cut_calls(c, k.window_start, k.window_end, k.parts, cardinality(k.tasks)) cut
    ORDER BY k.turns[cut.from_task] LIMIT at_most;
END $$;
COMMENT ON FUNCTION pricing.group_calls(text, pricing.picked_task[], integer) IS
    'Groups tasks into calls of one data type and window, the most urgent first, each symbol once.';


CREATE OR REPLACE FUNCTION pricing.fitting_tasks(
    tasks pricing.picked_task[], units_per_call integer, units_per_symbol integer, allowed pricing.call_allowance)
RETURNS pricing.picked_task[]
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    task pricing.picked_task;
    used bigint := allowed.bytes_used;
    most bigint := cardinality(tasks);
    fitting integer := 0;
BEGIN
    IF units_per_symbol > 0 THEN
        most := least(most, (allowed.units_left - units_per_call) / units_per_symbol);
    ELSIF units_per_call > allowed.units_left THEN
        most := 0;
    END IF;
    tasks := tasks[:most];
    -- Mostly the quota is far away.
    IF used + (SELECT sum(t.est_bytes) FROM unnest(tasks) AS t) <= pricing.quota_for(allowed.quota_bytes, -2) THEN
        RETURN tasks;
    END IF;
    FOREACH task IN ARRAY tasks LOOP
        used := used + task.est_bytes;
        EXIT WHEN used > pricing.quota_for(allowed.quota_bytes, task.priority);
        fitting := fitting + 1;
    END LOOP;
    RETURN tasks[:fitting];
END $$;
COMMENT ON FUNCTION pricing.fitting_tasks(pricing.picked_task[], integer, integer, pricing.call_allowance) IS
    'The largest prefix of a call''s tasks that fits into the units and bytes that are left.';


CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- The log is one: when a commit is on the disk, so is all before it. This one has something to write, and locks nothing.
    SELECT pg_logical_emit_message(true, 'pricing', '')
$$;
COMMENT ON FUNCTION pricing.await_disk() IS
    'In a transaction of its own: when that is committed, all that was committed before is on the disk. Crash or not, it cannot be lost any more.';


CREATE OR REPLACE FUNCTION pricing.is_in_work(wanted_symbol text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pricing.collector_call_log c
        WHERE c.finished_at IS NULL AND wanted_symbol = ANY (c.symbols)
          -- A call stays open for a while after its tasks were recovered from a lost worker.
          AND (EXISTS (SELECT FROM pricing.api_call_queue_live q
                       WHERE (q.data_type, q.symbol, q.window_start, q.window_end) = (c.data_type, wanted_symbol, c.window_start, c.window_end)
                         AND q.status = 'processing')
               OR (c.started_at > pricing.clock() - interval '60 seconds' AND EXISTS (
                       SELECT FROM pricing.second_opinions o WHERE o.call_id = c.call_id AND o.answered_at IS NULL))));
END $$;
COMMENT ON FUNCTION pricing.is_in_work(text) IS
    'Whether somebody asks about this symbol now, at whatever provider: a task of it is in work, or a second opinion on it. Both have an open call. What was given back or cancelled meanwhile is not in work, though its answer may still come.';


CREATE OR REPLACE FUNCTION pricing.batch_parts(errors jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN (10 ^ least(3, (SELECT count(*) FROM jsonb_array_elements(errors) AS e
                           WHERE e ->> 'kind' IN ('plan_restricted', 'request_refused', 'unknown_symbol', 'schema_drift', 'client_fault', 'unfinished'))))::integer;
END $$;
COMMENT ON FUNCTION pricing.batch_parts(jsonb) IS
    'By how much smaller the calls of a task are after its failures. A refusal of a whole batch does not say which symbol it means: each one makes the next call ten times smaller, so that the third asks for one symbol, and only what is refused alone is refused for good.';


CREATE OR REPLACE FUNCTION pricing.claim_search(
    wanted_provider text, worker_name text, keys text[], wanted_type text,
    OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT c.refusal, c.key_name, c.call_id, c.claimed_at
    FROM pricing.claim_by_hand(wanted_provider, wanted_type, NULL, '{}', keys, worker_name) c
$$;
COMMENT ON FUNCTION pricing.claim_search(text, text, text[], text) IS
    'Takes one call of a provider''s search for a person, within its limits and quota, and logs it as open, of a unit and a data type that the provider serves: commit before making it. Or says in a sentence why not now.';
