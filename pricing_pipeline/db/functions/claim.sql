-- Taking tasks and planning calls, within what the provider allows now. Lock order: see queue.sql.

CREATE OR REPLACE FUNCTION pricing.claim_calls(
    wanted_provider text, worker_name text, max_calls integer, lease interval DEFAULT '60 seconds', run text DEFAULT NULL)
RETURNS TABLE (id bigint, data_type text, symbol text, window_start date, window_end date, priority integer,
               attempt smallint, claim_token uuid, claimed_at timestamptz, call_id bigint, fetcher text)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    state pricing.provider_state;
    units_left bigint;
    bytes_used bigint;
    quota bigint;
    token uuid := gen_random_uuid();
    backfill_first boolean;
    claimed integer;
BEGIN
    -- The lock makes looking at the allowance and taking from it one step, for all workers.
    SELECT * INTO state FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    now_ := pricing.clock();
    SELECT p.quota_bytes INTO quota FROM pricing.data_collectors p WHERE p.provider = wanted_provider AND p.is_active;
    IF quota IS NULL OR state.blocked_until > now_ THEN
        RETURN;
    END IF;
    units_left := pricing.units_available(wanted_provider, now_);
    IF units_left < 1 THEN
        RETURN;
    END IF;
    bytes_used := pricing.bytes_used(wanted_provider, now_);
    backfill_first := state.claims % 10 = 9;

    RETURN QUERY
    WITH ahead AS MATERIALIZED (
        -- Every tenth claim begins with a backfill, so that live work never starves it. Busy symbols are left
        -- out here and below, not later: many tasks of one that is being fetched would hide all others.
        SELECT q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.cadence_minutes, q.est_bytes, 0 AS lane
        FROM pricing.api_call_queue_live q
        WHERE backfill_first AND q.provider = wanted_provider AND q.status = 'pending' AND q.priority = -2
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live p WHERE p.symbol = q.symbol AND p.status = 'processing')
        ORDER BY q.cadence_minutes, q.id LIMIT 1 FOR UPDATE SKIP LOCKED),
    rest AS MATERIALIZED (
        SELECT q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.cadence_minutes, q.est_bytes, 1 AS lane
        FROM pricing.api_call_queue_live q
        WHERE q.provider = wanted_provider AND q.status = 'pending' AND q.id NOT IN (SELECT ahead.id FROM ahead)
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live p WHERE p.symbol = q.symbol AND p.status = 'processing')
        ORDER BY q.priority DESC, q.cadence_minutes, q.id
        LIMIT least(max_calls * (SELECT max(greatest(c.batch_size, c.window_batch_size))
                                 FROM pricing.provider_capabilities c WHERE c.provider = wanted_provider), 5000)
        FOR UPDATE SKIP LOCKED),
    candidates AS (
        SELECT * FROM ahead UNION ALL SELECT * FROM rest),
    -- Calls for one symbol are made one after the other.
    alone AS (
        SELECT c.*, row_number() OVER (PARTITION BY c.symbol ORDER BY c.lane, c.priority DESC, c.cadence_minutes, c.id) AS nth
        FROM candidates c),
    placed AS (
        SELECT a.*, k.fetcher, cap.units_per_call, cap.units_per_symbol,
               row_number() OVER (ORDER BY a.lane, a.priority DESC, a.cadence_minutes, a.id) AS place,
               row_number() OVER (PARTITION BY a.data_type, a.window_start, a.window_end
                                  ORDER BY a.lane, a.priority DESC, a.cadence_minutes, a.id) - 1 AS seat,
               CASE WHEN a.window_end = 'infinity' THEN cap.batch_size ELSE cap.window_batch_size END AS seats
        FROM alone a
        JOIN pricing.data_type_registry k USING (data_type)
        JOIN pricing.provider_capabilities cap ON cap.provider = wanted_provider AND cap.fetcher = k.fetcher
        WHERE a.nth = 1),
    batched AS (
        SELECT p.*, min(p.place) OVER (PARTITION BY p.data_type, p.window_start, p.window_end, p.seat / p.seats) AS call_place
        FROM placed p),
    priced AS (
        SELECT b.*, dense_rank() OVER (ORDER BY b.call_place) AS call_no,
               sum(b.units_per_symbol + CASE WHEN b.place = b.call_place THEN b.units_per_call ELSE 0 END)
                   OVER (ORDER BY b.call_place, b.place) AS units_so_far,
               sum(b.est_bytes) OVER (ORDER BY b.call_place, b.place) AS bytes_so_far
        FROM batched b),
    -- The largest prefix that fits: backfill stops at 75 % of the quota, scheduled at 90 %, the rest at 95 %.
    admitted AS MATERIALIZED (
        SELECT p.* FROM priced p
        WHERE p.call_no <= max_calls AND p.units_so_far <= units_left
          AND bytes_used + p.bytes_so_far <= quota / 100 * CASE p.priority WHEN -2 THEN 75 WHEN -1 THEN 90 ELSE 95 END),
    calls AS MATERIALIZED (
        SELECT a.call_no, nextval('pricing.call_id_seq') AS call_id, a.data_type, a.window_start, a.window_end,
               array_agg(a.symbol ORDER BY a.place) AS symbols,
               max(a.units_per_call) + sum(a.units_per_symbol) AS units, sum(a.est_bytes) AS est_bytes
        FROM admitted a GROUP BY a.call_no, a.data_type, a.window_start, a.window_end),
    logged AS (
        INSERT INTO pricing.collector_call_log
            (call_id, provider, data_type, symbols, window_start, window_end, units, reserved_bytes, run_id, worker, started_at)
        SELECT c.call_id, wanted_provider, c.data_type, c.symbols, c.window_start, c.window_end, c.units, c.est_bytes,
               run, worker_name, now_
        FROM calls c)
    UPDATE pricing.api_call_queue_live q
    SET status = 'processing', attempt = q.attempt + 1, claim_token = token, claimed_at = now_,
        lease_until = now_ + lease, worker = worker_name, call_id = c.call_id
    FROM admitted a JOIN calls c USING (call_no)
    WHERE q.id = a.id
    RETURNING q.id, q.data_type, q.symbol, q.window_start, q.window_end, q.priority, q.attempt, q.claim_token, q.claimed_at, q.call_id, a.fetcher;

    GET DIAGNOSTICS claimed = ROW_COUNT;
    IF claimed > 0 THEN
        UPDATE pricing.provider_state s SET claims = s.claims + 1 WHERE s.provider = wanted_provider;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.claim_calls(text, text, integer, interval, text) IS
    'Takes as many tasks as the provider allows now, grouped into at most max_calls calls, and logs those calls as open. The transaction must be committed before the calls are made.';
