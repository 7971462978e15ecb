-- name: claim
-- Claim tasks as calls that the provider allows now; commit before making them, and wait for the disk if the commit
-- does not.
SELECT call_id, key_name, data_type, fetcher, window_start, window_end, claim_token, claimed_at, asset_class, spellings,
       ids, symbols, priorities, attempts
FROM pricing.claim_calls(:provider, :worker, :max_calls, :run_id, CAST(:keys AS text[]), :is_waited_for);

-- name: await_disk
-- Wait until everything committed is on disk.
SELECT pricing.await_disk();

-- name: finish
-- Finish tasks that this claim still owns and settle their call; returns the tasks' ids.
SELECT pricing.finish_call(:call_id, CAST(:ids AS bigint[]), CAST(:token AS uuid), CAST(:http_status AS integer),
                           :wire_bytes, CAST(:kind AS text), CAST(:units_left AS integer), :is_owned,
                           CAST(:shown_units AS integer), CAST(:shown_seconds AS integer), :is_unannounced);

-- name: is_in_work
-- Whether a call's claim still owns a task of it.
SELECT EXISTS (SELECT FROM pricing.api_call_queue_live
               WHERE id = ANY (CAST(:ids AS bigint[])) AND status = 'processing' AND claim_token = CAST(:token AS uuid)
                 AND call_id = :call_id);

-- name: limit_lock_wait
-- How long this transaction waits for a lock of another session.
SELECT set_config('lock_timeout', CAST(CAST(:milliseconds AS integer) AS text), true);

-- name: lock_owned
-- Lock the tasks that this claim still owns, and return their ids: the fence before anything is stored.
SELECT pricing.lock_tasks(CAST(:ids AS bigint[]), CAST(:token AS uuid), :call_id);

-- name: providers_with_work
-- Providers that have pending tasks, those with the most urgent one first.
SELECT p.provider, p.max_in_flight, first.priority
FROM pricing.data_collectors p
-- In the order of the claim's index, so that it reads one entry of it: EXISTS became a join that read the whole queue.
CROSS JOIN LATERAL (
    SELECT q.priority, q.cadence_minutes, q.id FROM pricing.api_call_queue_live q
    WHERE q.provider = p.provider AND q.run_after IS NULL AND q.status = 'pending'
    ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1) first
WHERE p.is_active
ORDER BY first.priority DESC, first.cadence_minutes, first.id;

-- name: is_busy
-- True while anything is live, asked for by a client, or about to be queued by a walk, or anyone watches.
SELECT EXISTS (SELECT FROM pricing.api_call_queue_live)
    OR EXISTS (SELECT FROM pricing.pair_requests)
    OR EXISTS (SELECT FROM pricing.active_subscriptions)
    OR EXISTS (SELECT FROM pricing.schedule_walks WHERE walk_slot IS NOT NULL);

-- name: counts
-- Tasks by provider and status, and how long the oldest has been ready; dead ones are those that nobody has resolved.
SELECT coalesce(q.provider, 'none') AS provider, q.status, count(*) AS tasks,
       greatest(extract(epoch FROM n.at - min(coalesce(q.run_after, q.enqueued_at))), 0)::float8 AS oldest_seconds
FROM (SELECT pricing.clock() AS at) n CROSS JOIN pricing.api_call_queue_live q
GROUP BY 1, 2, n.at
UNION ALL
SELECT coalesce(d.provider, 'none'), 'dead', count(*),
       greatest(extract(epoch FROM n.at - min(d.finished_at)), 0)::float8
FROM (SELECT pricing.clock() AS at) n CROSS JOIN pricing.api_call_queue_dead d
WHERE d.resolved_at IS NULL
GROUP BY 1, n.at;

-- name: list
-- Tasks: live ones first in claim order, then the newest dead; by_id the newest first, older than one.
SELECT id, data_type, symbol, nullif(window_start, '-infinity') AS window_start,
       nullif(window_end, 'infinity') AS window_end,
       provider, status, priority, attempt, max_attempts, enqueued_at, run_after, finished_at, failure_kind,
       errors -> -1 ->> 'message' AS last_error
FROM pricing.api_call_queue
WHERE status = ANY (CAST(:statuses AS text[]))
  AND (CAST(:after_id AS bigint) IS NULL OR id < :after_id)
ORDER BY CASE WHEN :by_id THEN id END DESC,
         status IN ('failed', 'cancelled', 'completed'), finished_at DESC NULLS FIRST, priority DESC, id
LIMIT :at_most;

-- name: show
-- One task with its last call and its pair's back-off.
SELECT q.id, q.data_type, q.symbol, nullif(q.window_start, '-infinity') AS window_start,
       nullif(q.window_end, 'infinity') AS window_end,
       q.provider, q.status, q.priority, q.attempt, q.max_attempts, q.enqueued_at, q.run_after, q.claimed_at,
       q.lease_until, q.worker, q.backfill_id, q.finished_at, q.failure_kind, q.resolved_at, q.errors,
       q.call_id, c.outcome AS call_outcome, c.http_status, c.wire_bytes, c.run_id,
       CASE WHEN d.backoff_until > n.at THEN d.backoff_until END AS backoff_until
FROM (SELECT pricing.clock() AS at OFFSET 0) n
CROSS JOIN pricing.api_call_queue q
LEFT JOIN pricing.collector_call_log c USING (call_id)
LEFT JOIN pricing.demand d ON (d.data_type, d.symbol) = (q.data_type, q.symbol) AND q.window_end = 'infinity'
WHERE q.id = :id;

-- name: failed
-- Failed tasks that nothing has settled since.
SELECT q.id FROM pricing.api_call_queue_dead q
WHERE q.resolved_at IS NULL AND q.status = 'failed'
  AND q.data_type = coalesce(CAST(:data_type AS text), q.data_type)
  AND q.provider IS NOT DISTINCT FROM coalesce(CAST(:provider AS text), q.provider)
ORDER BY q.id;
