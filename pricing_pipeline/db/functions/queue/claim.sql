-- Taking tasks and planning calls, within what the provider allows now. Lock order: see queue.sql.
--
-- If one waiting task alone could be called now, a claim returns a call. So a task is picked only if it could be called
-- alone: its provider can fetch it, and its units and bytes fit into what is left. A task that cannot be called is
-- skipped and hides no other, with one exception: for a task that has waited for a minute for more units than are left
-- at a time, they are saved during two of each five minutes (save_units). Tasks that can never be called are failed by
-- a duty (fail_impossible_tasks in by_hand.sql).

CREATE OR REPLACE FUNCTION pricing.claim_calls(
    wanted_provider text, worker_name text, max_calls integer, run text DEFAULT NULL, keys text[] DEFAULT NULL,
    is_waited_for boolean DEFAULT true, lease interval DEFAULT '60 seconds')
RETURNS TABLE (call_id bigint, key_name text, data_type text, fetcher text, window_start date, window_end date,
               claim_token uuid, claimed_at timestamptz, asset_class text, spellings jsonb,
               ids bigint[], symbols text[], priorities integer[], attempts smallint[])
-- Planned once: a better plan never paid for the millisecond that planning takes. The settings hold for all functions
-- that it calls.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '200ms'
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    allowed pricing.call_allowance;
    tasks pricing.picked_task[];
    first_day date;
    last_day date;
    units_per_call integer;
    units_per_symbol integer;
    places tid[];
    est_bytes bigint[];
    most integer;
    call_bytes bigint;
BEGIN
    IF NOT is_waited_for THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    allowed := pricing.allowance_of(wanted_provider, keys, max_calls);
    IF allowed.key_name IS NULL THEN
        RETURN;
    END IF;
    PERFORM pricing.await_claims();
    tasks := pricing.pick_for_claim(wanted_provider, allowed);
    key_name := allowed.key_name;
    claim_token := gen_random_uuid();
    claimed_at := allowed.at;
    FOR data_type, fetcher, asset_class, first_day, last_day, units_per_call, units_per_symbol, spellings,
        places, ids, symbols, priorities, attempts, est_bytes IN
        SELECT g.data_type, g.fetcher, g.asset_class, g.window_start, g.window_end, g.units_per_call,
               g.units_per_symbol, g.spellings, g.places, g.ids, g.symbols, g.priorities, g.attempts, g.bytes
        FROM pricing.group_calls(wanted_provider, tasks, allowed.most_calls) g ORDER BY g.turn LIMIT allowed.most_calls
    LOOP
        call_bytes := (SELECT sum(b) FROM unnest(est_bytes) AS b);
        most := pricing.count_fitting(
            priorities, est_bytes, call_bytes, units_per_call, units_per_symbol, allowed);
        CONTINUE WHEN most <= 0;
        IF most < cardinality(ids) THEN
            places := places[:most];
            ids := ids[:most];
            symbols := symbols[:most];
            priorities := priorities[:most];
            attempts := attempts[:most];
            call_bytes := (SELECT sum(b) FROM unnest(est_bytes[:most]) AS b);
        END IF;
        INSERT INTO pricing.collector_call_log AS c
            (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, run_id, worker,
             started_at)
        VALUES (wanted_provider, allowed.key_name, claim_calls.data_type, claim_calls.symbols, first_day, last_day,
                units_per_call + most * units_per_symbol, call_bytes, run, worker_name, claimed_at)
        RETURNING c.call_id INTO call_id;
        UPDATE pricing.api_call_queue_live q
        SET status = 'processing', attempt = q.attempt + 1, claim_token = claim_calls.claim_token,
            claimed_at = claim_calls.claimed_at, lease_until = claim_calls.claimed_at + lease, worker = worker_name,
            call_id = claim_calls.call_id
        WHERE q.ctid = ANY (places);
        window_start := nullif(first_day, '-infinity');
        window_end := nullif(last_day, 'infinity');
        RETURN NEXT;
        allowed.units_left := allowed.units_left - units_per_call - most * units_per_symbol;
        allowed.bytes_used := allowed.bytes_used + call_bytes;
    END LOOP;
    IF call_id IS NOT NULL THEN
        PERFORM pricing.note_claim(wanted_provider, allowed, call_id);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.claim_calls(text, text, integer, text, text[], boolean, interval) IS
    'Claims as many tasks as the provider allows, in at most max_calls calls of the key with the most room, and logs '
    'these as open; commit before making them, and unless is_waited_for, wait for await_disk.';


CREATE OR REPLACE FUNCTION pricing.note_claim(
    wanted_provider text, allowed pricing.call_allowance, newest_call bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.provider_state s
    SET claims = s.claims + 1, last_call_at = allowed.at,
        breaker = CASE WHEN allowed.is_probe THEN 'half_open' ELSE s.breaker END,
        -- Not the lease, which the caller chooses: a probe is one probe.
        breaker_until = CASE WHEN allowed.is_probe THEN allowed.at + interval '60 seconds' ELSE s.breaker_until END,
        probe_call = CASE WHEN allowed.is_probe THEN newest_call ELSE s.probe_call END,
        queue_change = allowed.change, change_horizon = allowed.horizon,
        -- Entries of finished tasks before the first one are not read again, which is expensive while a snapshot keeps
        -- them. The transaction of the last change must have ended: until then its tasks are not visible.
        (first_urgency, first_cadence, first_id) = (
            SELECT (-q.priority), q.cadence_minutes, q.id - 1 FROM pricing.api_call_queue_live q
            WHERE pg_snapshot_xmin(pg_current_snapshot()) >= allowed.horizon
              AND q.provider = wanted_provider
              AND q.run_after IS NULL
              AND q.status = 'pending'
              AND ((-q.priority), q.cadence_minutes, q.id)
                  > (allowed.after_urgency, allowed.after_cadence, allowed.after_id)
            ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1)
    WHERE s.provider = wanted_provider;
END $$;
COMMENT ON FUNCTION pricing.note_claim(text, pricing.call_allowance, bigint) IS
    'Records that a claim has opened calls of a provider, the newest as its breaker''s probe if it is one, and where '
    'the next claim begins.';


CREATE OR REPLACE FUNCTION pricing.allowance_of(wanted_provider text, keys text[], max_calls integer)
RETURNS pricing.call_allowance
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    known record;
    state pricing.provider_state;
    able record;
    now_ timestamptz;
    room record;
    allowed pricing.call_allowance;
    payable bigint;
BEGIN
    -- The lock makes looking at the allowance and taking from it one step, for all workers.
    SELECT s AS state,
           -- Both are known before the lock, with which this transaction gets its number.
           (SELECT q.last_value FROM pricing.queue_change_seq q) AS change,
           (SELECT pg_current_xact_id_if_assigned() IS NULL) AS is_new
    INTO known FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    state := known.state;
    now_ := pricing.clock();
    IF state.breaker_until > now_ AND NOT pricing.may_probe_early(state, now_) THEN
        RETURN NULL;
    END IF;
    SELECT p.quota_bytes, p.max_in_flight, p.request_delay_ms, p.max_in_flight - used.calls AS free_calls,
           used.bytes AS bytes_used, c.*
    INTO able
    FROM pricing.data_collectors p
    CROSS JOIN pricing.provider_use(state, now_) used
    CROSS JOIN LATERAL (
        SELECT min(x.units_per_symbol) AS least_units,
               max(x.units_per_call + x.units_per_symbol) AS most_units,
               max(greatest(CASE WHEN x.batch_from = 1 THEN x.batch_size ELSE 1 END, x.window_batch_size))
                   AS most_tasks,
               max(CASE WHEN x.batch_from = 1 THEN 0 ELSE x.batch_size END) AS most_listed
        FROM pricing.provider_capabilities x WHERE x.provider = wanted_provider) c
    WHERE p.provider = state.provider AND p.is_active;
    IF coalesce(able.free_calls, 0) <= 0 THEN
        RETURN NULL;
    END IF;
    -- Counting thousands of calls in a window takes a millisecond, so the counts are kept for 32 claims.
    IF state.claims % 32 = 31 OR state.last_call_at > now_ THEN
        PERFORM pricing.count_units(state.provider, now_);
    END IF;
    SELECT r.key_name, r.units_left, r.units_limit, r.is_after_refusal INTO room
    FROM pricing.key_allowances(state.provider, now_) r
    WHERE r.is_usable
      AND r.units_left > 0
      AND (keys IS NULL OR r.key_name = ANY (keys))
      AND NOT pricing.is_kept_for_page(state, r.key_name, now_)
      AND NOT coalesce(able.request_delay_ms > 0 AND state.last_call_at > now_ - make_interval(
            secs => able.request_delay_ms / 1000.0 * CASE WHEN r.is_nearly_used_up THEN 2 ELSE 1 END), false)
    ORDER BY r.units_left DESC, r.key_name LIMIT 1;
    IF room.key_name IS NULL THEN
        RETURN NULL;
    END IF;
    allowed.at := now_;
    allowed.claims := state.claims;
    allowed.key_name := room.key_name;
    allowed.units_left := room.units_left;
    allowed.units_limit := room.units_limit;
    allowed.bytes_used := able.bytes_used;
    allowed.quota_bytes := able.quota_bytes;
    allowed.is_probe := state.breaker <> 'closed';
    allowed.is_single := allowed.is_probe OR room.is_after_refusal OR able.request_delay_ms > 0
                         OR able.max_in_flight = 1;
    allowed.most_calls := least(CASE WHEN allowed.is_single THEN 1 ELSE max_calls END, able.free_calls);
    -- Locking more rows than the units can pay for would be wasted. Whether a list serves any is not known yet.
    payable := least(5000, CASE WHEN able.least_units > 0 THEN greatest(room.units_left / able.least_units, 1) END);
    allowed.most_tasks := least(allowed.most_calls * able.most_tasks, payable);
    allowed.most_listed := least(allowed.most_calls * able.most_listed, payable);
    allowed.is_scarce := able.most_units > room.units_left;
    allowed.before_urgency := 2147483647;
    allowed.before_cadence := 0;
    allowed.before_id := 0;
    -- A claim begins at the first pending task, unless the queue has changed since the last claim found it.
    IF state.queue_change = known.change THEN
        allowed.horizon := state.change_horizon;
    ELSE
        -- If this transaction had no number then, the transaction of the change has a lower one.
        allowed.horizon := CASE WHEN known.is_new THEN pg_current_xact_id() END;
        state.first_urgency := NULL;
    END IF;
    allowed.change := known.change;
    allowed.after_urgency := coalesce(state.first_urgency, -2147483648);
    allowed.after_cadence := coalesce(state.first_cadence, 0);
    allowed.after_id := coalesce(state.first_id, 0);
    RETURN allowed;
END $$;
COMMENT ON FUNCTION pricing.allowance_of(text, text[], integer) IS
    'Locks a provider''s state and says what it allows now: the key with the most room, its units, the quota''s bytes, '
    'calls and tasks; NULL = no call.';


CREATE OR REPLACE FUNCTION pricing.provider_use(
    state pricing.provider_state, now_ timestamptz, own_call bigint DEFAULT NULL)
RETURNS TABLE (calls integer, bytes bigint)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT cardinality(o.in_flight)
           -- A call that waits for its next request is not in flight. The next free place is for the oldest such call.
           + (own_call IS NULL AND pricing.is_kept_for_page(state, state.page_key, now_)
              AND NOT coalesce(state.page_call = ANY (o.in_flight), false))::integer,
           (o.reserved + booked.bytes)::bigint
    -- By the index of open calls: of the last 15 s there may be thousands that have ended.
    FROM (SELECT coalesce(sum(c.reserved_bytes), 0) AS reserved,
                 -- A request ends within 10 s, and begins when its claim is on the disk. So the calls of a lost worker
                 -- also end soon.
                 coalesce(array_agg(DISTINCT coalesce(c.page_of, c.call_id)) FILTER (
                     WHERE coalesce(c.moved_to, c.started_at) > now_ - interval '15 seconds'
                       AND coalesce(c.page_of, c.call_id) IS DISTINCT FROM own_call), '{}') AS in_flight
          FROM pricing.collector_call_log c
          WHERE c.provider = state.provider AND c.finished_at IS NULL) o
    CROSS JOIN (SELECT coalesce(sum(u.bytes), 0) AS bytes FROM pricing.api_data_usage u
                WHERE u.provider = state.provider AND u.hour > now_ - pg_catalog.make_interval(hours => 721)) booked
$$;
COMMENT ON FUNCTION pricing.provider_use(pricing.provider_state, timestamptz, bigint) IS
    'How much of a provider is used, exact only under the lock of its state: calls in flight of all workers, with one '
    'for a call that waits for a page (except the named one), and bytes as in bytes_used.';


CREATE OR REPLACE FUNCTION pricing.save_units(wanted_provider text, allowed pricing.call_allowance)
RETURNS pricing.call_allowance
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := allowed.at;
    longer_left bigint;
    waiting record;
BEGIN
    -- Hours and days are not waited for: nothing would be called meanwhile.
    SELECT min(pricing.paced_units(l, allowed.key_name, pricing.units_in_force(l, allowed.key_name, now_), now_)
               - (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                  WHERE (c.provider, c.key_name) = (wanted_provider, allowed.key_name)
                    AND c.counted_at > pricing.limit_start(l, now_)))
    INTO longer_left
    FROM pricing.provider_limits l
    WHERE l.provider = wanted_provider AND coalesce(l.window_seconds, 86400) > 60;
    SELECT (-first.priority) AS urgency, first.cadence_minutes, first.id INTO waiting
    FROM (SELECT q.* FROM pricing.api_call_queue_live q
          WHERE q.provider = wanted_provider
            AND q.run_after IS NULL
            AND q.status = 'pending'
          ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1000) first
    JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, r.fetcher)
    CROSS JOIN LATERAL (SELECT c.units_per_call + c.units_per_symbol AS units) cost
    WHERE r.is_active
      AND cost.units > allowed.units_left
      AND cost.units <= least(allowed.units_limit, longer_left)
      -- Not all the time: other users of the key may take all units that come free.
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
COMMENT ON FUNCTION pricing.save_units(text, pricing.call_allowance) IS
    'Reserves units for the most urgent task that has waited a minute for more than are left, during two of every '
    'five minutes; otherwise cheaper tasks would use each unit that comes free.';


CREATE OR REPLACE FUNCTION pricing.may_probe_early(state pricing.provider_state, now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN state.breaker = 'open' AND state.breaker_openings > 1 AND state.breaker_since <= now_ - interval '45 seconds'
           AND coalesce((SELECT q.priority > 0 FROM pricing.api_call_queue_live q
                         WHERE q.provider = state.provider
                           AND q.run_after IS NULL
                           AND q.status = 'pending'
                         ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1), false);
END $$;
COMMENT ON FUNCTION pricing.may_probe_early(pricing.provider_state, timestamptz) IS
    'Whether an open breaker lets a probe through early: 45 s after the last one failed, while a viewer waits.';


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
    'Waits up to a quarter of a second until no other claim is under way, so that each sees the others'' symbols.';


CREATE OR REPLACE FUNCTION pricing.pick_for_claim(
    wanted_provider text, allowed pricing.call_allowance) RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    tasks pricing.picked_task[];
BEGIN
    IF allowed.is_scarce THEN
        allowed := pricing.save_units(wanted_provider, allowed);
    END IF;
    IF allowed.is_probe THEN
        RETURN pricing.pick_probe(wanted_provider, allowed);
    END IF;
    tasks := pricing.pick_tasks(wanted_provider, allowed, allowed.most_tasks,
                                allowed.after_urgency, allowed.after_cadence, allowed.after_id);
    IF allowed.most_listed > allowed.most_tasks THEN
        tasks := pricing.pick_for_list(wanted_provider, allowed, tasks);
    END IF;
    -- Every tenth claim begins with a backfill, so that live work never starves it. Where only one call may be made at
    -- a time, it would take the place of a person's.
    IF allowed.claims % 10 = 9 AND NOT (allowed.is_single AND coalesce(tasks[1].priority, 0) > 0) THEN
        tasks := pricing.pick_tasks(wanted_provider, allowed, 1, 1, 2147483647, 9223372036854775807) || tasks;
    END IF;
    RETURN tasks;
END $$;
COMMENT ON FUNCTION pricing.pick_for_claim(text, pricing.call_allowance) IS
    'Locks and returns the tasks of a claim, most urgent first: one for a probe, and in every tenth claim a backfill '
    'first.';


CREATE OR REPLACE FUNCTION pricing.pick_tasks(
    wanted_provider text, allowed pricing.call_allowance, at_most integer,
    after_urgency integer, after_cadence integer, after_id bigint)
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN ARRAY(
        SELECT ROW(
                   q.ctid, q.id, q.data_type, q.symbol, q.window_start, q.window_end,
                   q.priority, q.cadence_minutes, q.est_bytes, q.attempt,
                   CASE WHEN q.attempt = 0 THEN 1
                        -- A missing entry of a list stays missing, and a list that does not load must not stop work.
                        WHEN q.window_end = 'infinity' AND EXISTS (
                            SELECT FROM pricing.data_type_registry r
                            JOIN pricing.provider_capabilities c USING (fetcher)
                            WHERE r.data_type = q.data_type AND c.provider = wanted_provider AND c.batch_from > 1)
                        THEN 2147483647
                        ELSE pricing.batch_parts(q.errors) END)::pricing.picked_task
        FROM pricing.api_call_queue_live q
        WHERE q.provider = wanted_provider
          AND q.run_after IS NULL
          AND q.status = 'pending'
          AND ((-q.priority), q.cadence_minutes, q.id) > (after_urgency, after_cadence, after_id)
          AND ((-q.priority), q.cadence_minutes, q.id)
              < (allowed.before_urgency, allowed.before_cadence, allowed.before_id)
          AND q.data_type = ANY (ARRAY(
              SELECT r.data_type FROM pricing.data_type_registry r JOIN pricing.provider_capabilities c USING (fetcher)
              WHERE c.provider = wanted_provider
                AND r.is_active
                AND c.units_per_call + c.units_per_symbol <= allowed.units_left))
          AND allowed.bytes_used + q.est_bytes <= pricing.quota_for(allowed.quota_bytes, q.priority)
          -- Only symbols of open calls can be in work, and few pending ones are.
          AND (q.symbol NOT IN (SELECT unnest(c.symbols) FROM pricing.collector_call_log c WHERE c.finished_at IS NULL)
               OR NOT pricing.is_in_work(q.symbol))
        ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT at_most FOR UPDATE OF q SKIP LOCKED);
END $$;
COMMENT ON FUNCTION pricing.pick_tasks(text, pricing.call_allowance, integer, integer, integer, bigint) IS
    'Locks and returns the most urgent pending tasks of a provider, after a place in the claim''s order (urgency = '
    '-priority), that could be called alone now.';


CREATE OR REPLACE FUNCTION pricing.pick_for_list(
    wanted_provider text, allowed pricing.call_allowance, picked pricing.picked_task[])
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    last_picked pricing.picked_task := picked[allowed.most_tasks];
BEGIN
    IF last_picked.window_end IS DISTINCT FROM 'infinity' THEN
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
    'The picked tasks, with more if the provider has a list of latest prices, the calls are full, and the last task '
    'asks for such a price.';


CREATE OR REPLACE FUNCTION pricing.batch_size(
    able pricing.provider_capabilities, shown integer, first_day date, last_day date) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE WHEN last_day = 'infinity' THEN least(able.batch_size, shown)
                ELSE greatest(1, least(able.window_batch_size,
                                       able.window_days_per_call / (last_day - first_day + 1), shown)) END
$$;
COMMENT ON FUNCTION pricing.batch_size(pricing.provider_capabilities, integer, date, date) IS
    'How many symbols one call may ask for, given how many the provider has shown to take (NULL = unknown).';


CREATE OR REPLACE FUNCTION pricing.batch_of(
    able pricing.provider_capabilities, first_day date, last_day date) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    -- A day, as for shown_units.
    RETURN pricing.batch_size(
        able,
        (SELECT s.shown_size FROM pricing.shown_batches s
         WHERE (s.provider, s.fetcher, s.is_of_days) = (able.provider, able.fetcher, last_day <> 'infinity')
           AND s.shown_at > pricing.clock() - interval '1 day'),
        first_day, last_day);
END $$;
COMMENT ON FUNCTION pricing.batch_of(pricing.provider_capabilities, date, date) IS
    'How many symbols one call of a provider may ask for, for the latest price or a span of days, within what it has '
    'shown and the most days of a call.';


CREATE OR REPLACE FUNCTION pricing.group_calls(wanted_provider text, picked pricing.picked_task[], at_most integer)
RETURNS TABLE (turn bigint, data_type text, fetcher text, asset_class text, window_start date, window_end date,
               units_per_call integer, units_per_symbol integer, spellings jsonb, places tid[], ids bigint[],
               symbols text[], priorities integer[], attempts smallint[], bytes bigint[])
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT kind.turns[call.first], kind.data_type, kind.fetcher, kind.asset_class, kind.window_start, kind.window_end,
           kind.units_per_call, kind.units_per_symbol,
           (SELECT jsonb_object_agg(s.symbol, s.spelling) FROM pricing.provider_symbols s
            WHERE s.provider = wanted_provider AND s.asset_class = kind.asset_class AND s.symbol = ANY (kind.symbols)),
           kind.places[call.first:call.last], kind.ids[call.first:call.last], kind.symbols[call.first:call.last],
           kind.priorities[call.first:call.last], kind.attempts[call.first:call.last],
           kind.bytes[call.first:call.last]
    FROM (SELECT k.*, r.fetcher, r.asset_class, c.units_per_call, c.units_per_symbol,
                 greatest(1, pricing.batch_size(c, shown.shown_size, k.window_start, k.window_end) / k.parts) AS size,
                 CASE WHEN k.window_end = 'infinity' THEN c.batch_from ELSE 1 END AS least_size
          FROM (SELECT f.data_type, f.window_start, f.window_end, f.parts, count(*)::integer AS tasks,
                       array_agg(f.turn ORDER BY f.turn) AS turns,
                       array_agg(f.place ORDER BY f.turn) AS places,
                       array_agg(f.id ORDER BY f.turn) AS ids,
                       array_agg(f.symbol ORDER BY f.turn) AS symbols,
                       array_agg(f.priority ORDER BY f.turn) AS priorities,
                       array_agg((f.attempt + 1)::smallint ORDER BY f.turn) AS attempts,
                       array_agg(f.est_bytes ORDER BY f.turn) AS bytes
                -- Calls for one symbol are made one after the other.
                FROM (SELECT DISTINCT ON (t.symbol) t.*
                      FROM unnest(picked) WITH ORDINALITY
                           AS t (place, id, data_type, symbol, window_start, window_end, priority, cadence_minutes,
                                 est_bytes, attempt, parts, turn)
                      ORDER BY t.symbol, t.turn) f
                GROUP BY 1, 2, 3, 4) k
          JOIN pricing.data_type_registry r USING (data_type)
          JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, r.fetcher)
          LEFT JOIN pricing.shown_batches shown
              ON (shown.provider, shown.fetcher, shown.is_of_days) = (c.provider, c.fetcher, k.window_end <> 'infinity')
             AND shown.shown_at > pricing.clock() - interval '1 day' OFFSET 0) kind
    -- Those that are too few to share a call (batch_from) are asked for one by one.
    CROSS JOIN LATERAL (
        SELECT CASE WHEN kind.size < kind.least_size THEN 0
                    WHEN kind.tasks % kind.size < kind.least_size THEN kind.tasks - kind.tasks % kind.size
                    ELSE kind.tasks END AS tasks) sharing
    CROSS JOIN LATERAL (
        SELECT n AS first, least(n + kind.size - 1, sharing.tasks) AS last
        FROM generate_series(1, sharing.tasks, kind.size) AS n
        UNION ALL
        SELECT n, n FROM generate_series(sharing.tasks + 1, kind.tasks) AS n
        LIMIT at_most) call
$$;
COMMENT ON FUNCTION pricing.group_calls(text, pricing.picked_task[], integer) IS
    'Groups tasks into calls of one data type and window, each symbol once; turn is the place of a call''s first task '
    'among those picked.';


CREATE OR REPLACE FUNCTION pricing.count_fitting(
    priorities integer[], bytes bigint[], all_bytes bigint, units_per_call integer, units_per_symbol integer,
    allowed pricing.call_allowance)
RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    used bigint := allowed.bytes_used;
    most bigint := cardinality(bytes);
BEGIN
    IF units_per_symbol > 0 THEN
        most := least(most, (allowed.units_left - units_per_call) / units_per_symbol);
    ELSIF units_per_call > allowed.units_left THEN
        RETURN 0;
    END IF;
    -- Mostly the quota is far away.
    IF used + all_bytes <= pricing.quota_for(allowed.quota_bytes, -2) THEN
        RETURN most;
    END IF;
    FOR n IN 1..most LOOP
        used := used + bytes[n];
        IF used > pricing.quota_for(allowed.quota_bytes, priorities[n]) THEN
            RETURN n - 1;
        END IF;
    END LOOP;
    RETURN most;
END $$;
COMMENT ON FUNCTION pricing.count_fitting(
    integer[], bigint[], bigint, integer, integer, pricing.call_allowance) IS
    'How many of a call''s tasks, from its first, fit the units and bytes that are left.';


CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- There is one log: when a commit is on the disk, so is everything before it. This commit writes something, and
    -- locks nothing.
    SELECT pg_logical_emit_message(true, 'pricing', '')
$$;
COMMENT ON FUNCTION pricing.await_disk() IS
    'Makes sure, in its own transaction, that everything committed before is on disk.';


CREATE OR REPLACE FUNCTION pricing.is_in_work(wanted_symbol text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pricing.collector_call_log c
        WHERE c.finished_at IS NULL AND wanted_symbol = ANY (c.symbols)
          -- A call stays open for a while after its tasks were recovered from a lost worker.
          AND (EXISTS (SELECT FROM pricing.api_call_queue_live q
                       WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                           = (c.data_type, wanted_symbol, c.window_start, c.window_end)
                         AND q.status = 'processing')
               OR (c.started_at > pricing.clock() - interval '60 seconds' AND EXISTS (
                       SELECT FROM pricing.second_opinions o WHERE o.call_id = c.call_id AND o.answered_at IS NULL))));
END $$;
COMMENT ON FUNCTION pricing.is_in_work(text) IS
    'Whether an open call asks any provider about this symbol now, for a task or a second opinion; tasks given back '
    'or cancelled meanwhile do not count.';


CREATE OR REPLACE FUNCTION pricing.batch_parts(errors jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN (10 ^ least(3, (SELECT count(*) FROM jsonb_array_elements(errors) AS e
                           WHERE e ->> 'kind' IN ('plan_restricted', 'request_refused', 'unknown_symbol',
                                                  'schema_drift', 'client_fault', 'unfinished'))))::integer;
END $$;
COMMENT ON FUNCTION pricing.batch_parts(jsonb) IS
    'By how much a task''s failures shrink its calls: each refusal of a batch makes the next ten times smaller, so '
    'the third asks for one symbol.';


CREATE OR REPLACE FUNCTION pricing.claim_search(
    wanted_provider text, worker_name text, keys text[], wanted_type text,
    OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT c.refusal, c.key_name, c.call_id, c.claimed_at
    FROM pricing.claim_by_hand(wanted_provider, wanted_type, NULL, '{}', keys, worker_name) c
$$;
COMMENT ON FUNCTION pricing.claim_search(text, text, text[], text) IS
    'Logs one call of a provider''s search for a person as open, within its limits and quota (commit before making '
    'it), or says why not now.';
