-- Taking tasks and planning calls, within what the provider allows now. Lock order: see queue.sql.

CREATE OR REPLACE FUNCTION pricing.claim_calls(
    wanted_provider text, worker_name text, max_calls integer, run text DEFAULT NULL, keys text[] DEFAULT NULL,
    is_waited_for boolean DEFAULT true, lease interval DEFAULT '60 seconds')
RETURNS TABLE (call_id bigint, key_name text, data_type text, fetcher text, window_start date, window_end date,
               claim_token uuid, claimed_at timestamptz,
               ids bigint[], symbols text[], priorities integer[], attempts smallint[])
-- Planned once: what a new plan could know better never paid for the millisecond that planning takes.
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    state pricing.provider_state;
    collector pricing.data_collectors;
    chosen record;
    used bigint;
    most_tasks integer;
    is_probe boolean;
    ahead bigint;
    is_going_on boolean;
    taken record;
    calls refcursor;
    planned record;
    fitting integer;
    size bigint;
    est_bytes bigint;
    claimed integer := 0;
BEGIN
    IF NOT is_waited_for THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    -- The lock makes looking at the allowance and taking from it one step, for all workers.
    SELECT * INTO state FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    now_ := pricing.clock();
    claimed_at := now_;
    claim_token := gen_random_uuid();
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = wanted_provider AND p.is_active;
    -- Until breaker_until an open breaker waits, and a half-open one trusts that its probe is alive.
    IF collector IS NULL OR state.breaker_until > now_ THEN
        RETURN;
    END IF;
    is_probe := state.breaker <> 'closed';
    -- Thousands of calls in a window took a millisecond of every claim; now of every 32nd. A clock that was set back
    -- would log calls before the last count.
    IF state.claims % 32 = 31 OR state.last_call_at > now_ THEN
        PERFORM pricing.count_units(wanted_provider, now_);
    END IF;

    SELECT r.key_name, r.units_left, r.is_pressed, r.is_feeling INTO chosen FROM pricing.key_room(wanted_provider, now_) r
    WHERE r.is_usable AND r.units_left > 0 AND (keys IS NULL OR r.key_name = ANY (keys))
    ORDER BY r.units_left DESC, r.key_name LIMIT 1;
    IF chosen IS NULL THEN
        RETURN;
    END IF;
    IF collector.request_delay_ms > 0 THEN
        IF state.last_call_at > now_ - make_interval(
               secs => collector.request_delay_ms / 1000.0 * CASE WHEN chosen.is_pressed THEN 2 ELSE 1 END) THEN
            RETURN;
        END IF;
        max_calls := 1;
    END IF;
    IF is_probe OR chosen.is_feeling THEN
        max_calls := 1;
    END IF;
    used := pricing.bytes_used(wanted_provider, now_);
    -- Locking more rows than the units can pay for would be work for nothing.
    SELECT least(max_calls * max(greatest(c.batch_size, c.window_batch_size)), 5000,
                 CASE WHEN min(c.units_per_symbol) > 0 THEN chosen.units_left / min(c.units_per_symbol) END)
    INTO most_tasks FROM pricing.provider_capabilities c WHERE c.provider = wanted_provider;
    IF is_probe THEN
        most_tasks := 1;
    END IF;

    -- Every tenth claim begins with a backfill, so that live work never starves it.
    IF state.claims % 10 = 9 THEN
        SELECT q.id INTO ahead FROM pricing.api_call_queue_live q
        WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending' AND q.priority = -2
          AND NOT pricing.is_in_work(q.symbol)
        ORDER BY q.cadence_minutes, q.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;

    -- Entries of finished tasks stay at the head of the index while a snapshot needs them. Where they are many, a claim
    -- goes on after the last one for a moment; what has come before it is found by the next claim that looks from the
    -- first task on, as one does when the moment is over or too little is left. The two looks stand side by side because a
    -- condition that served both would be none that the index can begin at.
    is_going_on := state.passed_at > now_ - interval '250 milliseconds' AND state.passed_at <= now_;
    IF is_going_on THEN
        WITH asked AS MATERIALIZED (
            SELECT unnest(c.symbols) AS symbol FROM pricing.collector_call_log c WHERE c.finished_at IS NULL)
        SELECT array_agg(r.id) AS ids, array_agg(r.place) AS places, array_agg(r.data_type) AS types, array_agg(r.symbol) AS symbols,
               array_agg(r.window_start) AS starts, array_agg(r.window_end) AS ends, array_agg(r.priority) AS priorities,
               array_agg(r.cadence_minutes) AS cadences, array_agg(r.est_bytes) AS sizes, array_agg(r.attempt + 1::smallint) AS attempts,
               array_agg(CASE WHEN r.attempt = 0 THEN 1 ELSE pricing.batch_parts(r.errors) END) AS parts INTO taken
        FROM (SELECT q.ctid AS place, q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.cadence_minutes,
                     q.est_bytes, q.attempt, q.errors
              FROM pricing.api_call_queue_live q
              WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending' AND q.id IS DISTINCT FROM ahead
                AND q.priority = state.passed_priority AND q.cadence_minutes = state.passed_cadence AND q.id > state.passed_id
                AND (q.symbol NOT IN (SELECT a.symbol FROM asked a) OR NOT pricing.is_in_work(q.symbol))
              ORDER BY q.priority DESC, q.cadence_minutes, q.id LIMIT most_tasks FOR UPDATE SKIP LOCKED) r;
        is_going_on := cardinality(taken.ids) = most_tasks;
    END IF;
    IF is_going_on IS NOT TRUE THEN
        WITH asked AS MATERIALIZED (
            SELECT unnest(c.symbols) AS symbol FROM pricing.collector_call_log c WHERE c.finished_at IS NULL)
        SELECT array_agg(r.id) AS ids, array_agg(r.place) AS places, array_agg(r.data_type) AS types, array_agg(r.symbol) AS symbols,
               array_agg(r.window_start) AS starts, array_agg(r.window_end) AS ends, array_agg(r.priority) AS priorities,
               array_agg(r.cadence_minutes) AS cadences, array_agg(r.est_bytes) AS sizes, array_agg(r.attempt + 1::smallint) AS attempts,
               array_agg(CASE WHEN r.attempt = 0 THEN 1 ELSE pricing.batch_parts(r.errors) END) AS parts INTO taken
        -- Busy symbols are left out here and not later: many tasks of one that is being fetched would hide all others.
        -- Only what an open call has asked for can be busy, and little of what is pending is.
        FROM (SELECT q.ctid AS place, q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.cadence_minutes,
                     q.est_bytes, q.attempt, q.errors
              FROM pricing.api_call_queue_live q
              WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending' AND q.id IS DISTINCT FROM ahead
                AND (q.symbol NOT IN (SELECT a.symbol FROM asked a) OR NOT pricing.is_in_work(q.symbol))
              ORDER BY q.priority DESC, q.cadence_minutes, q.id LIMIT most_tasks FOR UPDATE SKIP LOCKED) r;
    END IF;
    IF ahead IS NOT NULL THEN
        SELECT array_prepend(q.id, taken.ids) AS ids, array_prepend(q.ctid, taken.places) AS places, array_prepend(q.data_type, taken.types) AS types,
               array_prepend(q.symbol, taken.symbols) AS symbols, array_prepend(q.window_start, taken.starts) AS starts,
               array_prepend(q.window_end, taken.ends) AS ends, array_prepend(q.priority, taken.priorities) AS priorities,
               array_prepend(q.cadence_minutes, taken.cadences) AS cadences, array_prepend(q.est_bytes, taken.sizes) AS sizes,
               array_prepend(q.attempt + 1::smallint, taken.attempts) AS attempts,
               array_prepend(CASE WHEN q.attempt = 0 THEN 1 ELSE pricing.batch_parts(q.errors) END, taken.parts) AS parts
        INTO taken FROM pricing.api_call_queue_live q WHERE q.id = ahead;
    END IF;

    IF taken.ids IS NULL THEN
        RETURN;
    END IF;

    IF taken.types[1] = ALL (taken.types) AND taken.starts[1] = ALL (taken.starts) AND taken.ends[1] = ALL (taken.ends)
       AND taken.parts[1] = ALL (taken.parts) THEN
        -- Mostly all are of one kind, so that no two are for one symbol: nothing to sort and to group.
        OPEN calls FOR
            SELECT k.data_type, k.fetcher, taken.starts[1] AS window_start, taken.ends[1] AS window_end, k.units_per_call, k.units_per_symbol,
                   taken.ids[n:n + k.most - 1] AS ids, taken.places[n:n + k.most - 1] AS places, taken.symbols[n:n + k.most - 1] AS symbols,
                   taken.sizes[n:n + k.most - 1] AS sizes, taken.priorities[n:n + k.most - 1] AS priorities,
                   taken.attempts[n:n + k.most - 1] AS attempts
            FROM (SELECT t.data_type, t.fetcher, c.units_per_call, c.units_per_symbol,
                         greatest(1, CASE WHEN taken.ends[1] = 'infinity' THEN c.batch_size ELSE c.window_batch_size END / taken.parts[1]) AS most
                  FROM pricing.data_type_registry t JOIN pricing.provider_capabilities c USING (fetcher)
                  WHERE t.data_type = taken.types[1] AND c.provider = wanted_provider OFFSET 0) k
            CROSS JOIN LATERAL generate_series(1, cardinality(taken.ids), k.most) AS n
            LIMIT max_calls;
    ELSE
        OPEN calls FOR
            WITH tasks AS MATERIALIZED (
                SELECT * FROM unnest(taken.ids, taken.places, taken.types, taken.symbols, taken.starts, taken.ends, taken.priorities,
                                     taken.sizes, taken.attempts, taken.parts) WITH ORDINALITY
                    AS t (id, place, data_type, symbol, window_start, window_end, priority, est_bytes, attempt, parts, turn)),
            kinds AS (
                SELECT t.data_type, t.window_start, t.window_end, t.parts, array_agg(t.turn) AS turns, array_agg(t.id) AS ids,
                       array_agg(t.place) AS places, array_agg(t.symbol) AS symbols, array_agg(t.est_bytes) AS sizes,
                       array_agg(t.priority) AS priorities, array_agg(t.attempt) AS attempts
                FROM (SELECT x.* FROM tasks x
                      -- Calls for one symbol are made one after the other.
                      WHERE x.turn IN (SELECT min(y.turn) FROM tasks y GROUP BY y.symbol)
                      ORDER BY x.data_type, x.window_start, x.window_end, x.parts, x.turn) t
                GROUP BY 1, 2, 3, 4)
            SELECT k.data_type, t.fetcher, k.window_start, k.window_end, c.units_per_call, c.units_per_symbol,
                   k.ids[n:n + part.most - 1] AS ids, k.places[n:n + part.most - 1] AS places, k.symbols[n:n + part.most - 1] AS symbols,
                   k.sizes[n:n + part.most - 1] AS sizes, k.priorities[n:n + part.most - 1] AS priorities,
                   k.attempts[n:n + part.most - 1] AS attempts
            FROM kinds k JOIN pricing.data_type_registry t USING (data_type)
            JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (wanted_provider, t.fetcher)
            CROSS JOIN LATERAL (
                SELECT greatest(1, CASE WHEN k.window_end = 'infinity' THEN c.batch_size ELSE c.window_batch_size END / k.parts) AS most) part
            CROSS JOIN LATERAL generate_series(1, cardinality(k.ids), part.most) AS n
            ORDER BY k.turns[n], n LIMIT max_calls;
    END IF;

    LOOP
        FETCH calls INTO planned;
        EXIT WHEN NOT FOUND;
        fitting := cardinality(planned.ids);
        -- The largest prefix that fits, into the units and into the quota.
        IF planned.units_per_symbol > 0 THEN
            fitting := least((chosen.units_left - planned.units_per_call) / planned.units_per_symbol, fitting);
        END IF;
        EXIT WHEN fitting < 1 OR chosen.units_left < planned.units_per_call;
        est_bytes := 0;
        FOREACH size IN ARRAY planned.sizes[:fitting] LOOP
            est_bytes := est_bytes + size;
        END LOOP;
        IF used + est_bytes > pricing.quota_for(collector.quota_bytes, -2) THEN
            SELECT count(*), sum(u.size) INTO fitting, est_bytes
            FROM (SELECT s.size, s.priority, sum(s.size) OVER (ORDER BY s.place) AS so_far
                  FROM unnest(planned.sizes[:fitting], planned.priorities) WITH ORDINALITY AS s (size, priority, place)) u
            WHERE used + u.so_far <= pricing.quota_for(collector.quota_bytes, u.priority);
            CONTINUE WHEN fitting < 1;
        END IF;
        key_name := chosen.key_name;
        data_type := planned.data_type;
        fetcher := planned.fetcher;
        window_start := nullif(planned.window_start, '-infinity');
        window_end := nullif(planned.window_end, 'infinity');
        ids := planned.ids[:fitting];
        symbols := planned.symbols[:fitting];
        priorities := planned.priorities[:fitting];
        attempts := planned.attempts[:fitting];
        INSERT INTO pricing.collector_call_log AS c
            (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, run_id, worker, started_at)
        VALUES (wanted_provider, claim_calls.key_name, claim_calls.data_type, claim_calls.symbols, planned.window_start,
                planned.window_end, planned.units_per_call + fitting * planned.units_per_symbol, est_bytes,
                run, worker_name, now_)
        RETURNING c.call_id INTO claim_calls.call_id;
        UPDATE pricing.api_call_queue_live q
        SET status = 'processing', attempt = q.attempt + 1, claim_token = claim_calls.claim_token, claimed_at = now_,
            lease_until = now_ + lease, worker = worker_name, call_id = claim_calls.call_id
        WHERE q.ctid = ANY (planned.places[:fitting]);
        RETURN NEXT;
        claimed := claimed + fitting;
        chosen.units_left := chosen.units_left - planned.units_per_call - fitting * planned.units_per_symbol;
        used := used + est_bytes;
    END LOOP;
    CLOSE calls;
    IF claim_calls.call_id IS NULL THEN
        RETURN;
    END IF;

    UPDATE pricing.provider_state s
    SET claims = s.claims + 1, last_call_at = now_,
        breaker = CASE WHEN is_probe THEN 'half_open' ELSE 'closed' END,
        breaker_until = CASE WHEN is_probe THEN now_ + lease END,
        probe_call = CASE WHEN is_probe THEN claim_calls.call_id END,
        -- Nothing that was seen and left may be passed over.
        passed_at = CASE WHEN claimed = cardinality(taken.ids) AND (is_going_on OR pricing.is_littered())
                         THEN CASE WHEN is_going_on THEN s.passed_at ELSE now_ END END,
        passed_priority = taken.priorities[claimed], passed_cadence = taken.cadences[claimed], passed_id = taken.ids[claimed]
    WHERE s.provider = wanted_provider;
END $$;
COMMENT ON FUNCTION pricing.claim_calls(text, text, integer, text, text[], boolean, interval) IS
    'Takes as many tasks as the provider allows now, grouped into at most max_calls calls of the key with the most room (of keys, if given), and logs those calls as open. The transaction must be committed before the calls are made. The window of a call for latest prices is NULL. Unless is_waited_for, the commit does not wait for the disk, so that the next claim need not either; then await_disk must have returned, too.';


CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- The log is one: when a commit is on the disk, so is all before it. This one has something to write, and locks nothing.
    SELECT pg_logical_emit_message(true, 'pricing', '')
$$;
COMMENT ON FUNCTION pricing.await_disk() IS
    'In a transaction of its own: when that is committed, all that was committed before is on the disk. Crash or not, it cannot be lost any more.';


CREATE OR REPLACE FUNCTION pricing.is_littered() RETURNS boolean
-- One figure, asked for once: a place to keep it for this transaction would cost more than the figure.
LANGUAGE plpgsql STABLE SET search_path = '' SET stats_fetch_consistency = 'none' AS $$
BEGIN
    RETURN coalesce(pg_stat_get_dead_tuples('pricing.api_call_queue_live'::regclass) > 5000, false);
END $$;
COMMENT ON FUNCTION pricing.is_littered() IS
    'Whether many finished tasks are still in the way of claims: more than vacuum leaves behind between two rounds of a queue that is not busy.';


CREATE OR REPLACE FUNCTION pricing.is_in_work(wanted_symbol text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pricing.collector_call_log c
        JOIN pricing.api_call_queue_live q
            ON (q.data_type, q.symbol, q.window_start, q.window_end) = (c.data_type, wanted_symbol, c.window_start, c.window_end)
        WHERE c.finished_at IS NULL AND wanted_symbol = ANY (c.symbols) AND q.status = 'processing');
END $$;
COMMENT ON FUNCTION pricing.is_in_work(text) IS
    'Whether a task of this symbol is being worked on, at whatever provider. A task in work always has an open call.';


CREATE OR REPLACE FUNCTION pricing.batch_parts(errors jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN (10 ^ least(3, (SELECT count(*) FROM jsonb_array_elements(errors) AS e
                           WHERE e ->> 'kind' IN ('plan_restricted', 'request_refused', 'unknown_symbol', 'schema_drift', 'client_fault'))))::integer;
END $$;
COMMENT ON FUNCTION pricing.batch_parts(jsonb) IS
    'By how much smaller the calls of a task are after its failures. A refusal of a whole batch does not say which symbol it means: each one makes the next call ten times smaller, so that the third asks for one symbol, and only what is refused alone is refused for good.';
