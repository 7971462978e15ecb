-- name: failures
-- Why tasks that a backfill waited for failed; those that people called off have not.
SELECT q.symbol, q.failure_kind, q.errors -> -1 ->> 'message' AS message
FROM pricing.backfills b
JOIN pricing.api_call_queue_dead q ON q.backfill_id IS NOT NULL
    AND (q.backfill_id = b.backfill_id OR (
        q.enqueued_at <= b.requested_at AND q.finished_at >= b.requested_at
        AND q.data_type = b.data_type AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start))
WHERE b.backfill_id = CAST(:backfill_id AS uuid) AND q.status = 'failed'
ORDER BY q.symbol LIMIT 20;

-- name: cancelled
-- How many tasks of a backfill were called off.
SELECT count(*) FROM pricing.api_call_queue_dead
WHERE backfill_id = CAST(:backfill_id AS uuid) AND status = 'cancelled';

-- name: outcome
-- How many instruments a backfill has left out, by reason; when it ended, and when it was called off.
SELECT left_out, finished_at, cancelled_at FROM pricing.backfills WHERE backfill_id = CAST(:backfill_id AS uuid);

-- name: recent
-- The newest backfills after one, or one, and how far they are.
SELECT b.backfill_id, b.data_type, b.window_start AS first_day, b.window_end AS last_day, b.symbols, b.run_id,
       b.requested_at, b.finished_at, b.cancelled_at, b.left_out,
       greatest(b.tasks, live.tasks + dead.tasks)::integer AS tasks,
       greatest(b.tasks - live.tasks - dead.tasks, 0)::integer AS done, dead.failed::integer AS failed,
       (dead.tasks - dead.failed)::integer AS cancelled, live.tasks::integer AS open
FROM (SELECT x.* FROM pricing.backfills x
      WHERE coalesce(x.backfill_id = CAST(:backfill_id AS uuid), true)
        AND (CAST(:after_id AS uuid) IS NULL
             OR (x.requested_at, x.backfill_id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid)))
      ORDER BY x.requested_at DESC, x.backfill_id DESC LIMIT :at_most) b
-- As in backfill_progress, tasks of earlier backfills count too, but only of those that share its days.
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(o.backfill_id), '{}') AS ids,
           coalesce(array_agg(o.backfill_id) FILTER (WHERE coalesce(o.finished_at >= b.requested_at, true)),
                    '{}') AS open_ids
    FROM pricing.backfills o
    WHERE o.data_type = b.data_type AND o.requested_at <= b.requested_at AND o.backfill_id <> b.backfill_id
      AND o.window_start <= b.window_end AND o.window_end >= b.window_start) earlier
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM pricing.api_call_queue_live q
    WHERE q.backfill_id = ANY (b.backfill_id || earlier.ids) AND (q.backfill_id = b.backfill_id OR (
        q.enqueued_at <= b.requested_at AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start))) live
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks, count(*) FILTER (WHERE q.status = 'failed') AS failed
    FROM pricing.api_call_queue_dead q
    WHERE q.backfill_id = ANY (b.backfill_id || earlier.open_ids) AND (q.backfill_id = b.backfill_id OR (
        q.enqueued_at <= b.requested_at AND q.finished_at >= b.requested_at
        AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start))) dead
ORDER BY b.requested_at DESC, b.backfill_id DESC;

-- name: under_way
-- Backfills of runs that have tasks in the queue: one entry of its index for each, independent of its tasks.
SELECT b.backfill_id, b.run_id FROM pricing.backfills b
CROSS JOIN LATERAL (SELECT FROM pricing.api_call_queue_live q WHERE q.backfill_id = b.backfill_id LIMIT 1) open
WHERE b.run_id IS NOT NULL AND b.finished_at IS NULL;

-- name: of_run
-- The backfill that a run has planned, of one data type or any.
SELECT backfill_id FROM pricing.backfills
WHERE run_id = :run_id AND coalesce(data_type = CAST(:data_type AS text), true)
ORDER BY requested_at DESC LIMIT 1;

-- name: spent
-- Calls made for a backfill's tasks, retries included, their units and wire bytes, and the rows those calls stored.
WITH work AS MATERIALIZED (
    SELECT q.data_type, q.symbol, q.window_start, q.window_end, q.provider, q.enqueued_at
    FROM pricing.api_call_queue q WHERE q.backfill_id = CAST(:backfill_id AS uuid)),
calls AS MATERIALIZED (
    SELECT DISTINCT c.call_id, c.units, c.wire_bytes
    FROM work w JOIN pricing.collector_call_log c
        ON c.provider = w.provider AND c.started_at >= w.enqueued_at AND c.data_type = w.data_type
       AND (c.window_start, c.window_end) = (w.window_start, w.window_end) AND w.symbol = ANY (c.symbols)),
stored AS (
    SELECT count(*) AS found
    FROM work w JOIN pricing.price_history h
        ON h.data_type = w.data_type AND h.symbol = w.symbol
       AND h.observed_at >= w.window_start::timestamp AT TIME ZONE 'UTC'
       AND h.observed_at < (w.window_end + 1)::timestamp AT TIME ZONE 'UTC'
    WHERE h.call_id IN (SELECT call_id FROM calls))
SELECT count(*) AS calls, coalesce(sum(units), 0)::bigint AS units, coalesce(sum(wire_bytes), 0)::bigint AS wire_bytes,
       (SELECT found FROM stored) AS rows_stored
FROM calls;

-- name: waits_for
-- Why the providers of a backfill's open tasks may not be called now, except for rate limits, which pass.
SELECT w.sentence
FROM (SELECT q.provider, max(q.priority) AS priority, max(q.est_bytes) AS needed
      FROM pricing.api_call_queue_live q
      WHERE q.backfill_id = CAST(:backfill_id AS uuid)
      GROUP BY 1) waiting
CROSS JOIN LATERAL pricing.why_not_called(waiting.provider, waiting.priority, waiting.needed) w
WHERE w.state <> 'rate_limited'
ORDER BY 1;
