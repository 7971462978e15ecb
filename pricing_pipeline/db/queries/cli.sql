-- name: revision
-- The migration that the database is at.
SELECT version_num FROM pricing.alembic_version;

-- name: queue_counts
-- Tasks by status: the live ones and the dead.
SELECT status, count(*) AS tasks FROM pricing.api_call_queue_live GROUP BY 1
UNION ALL
SELECT 'dead', count(*) FROM pricing.api_call_queue_dead;

-- name: backfill_of_run
-- The backfill that a run has planned.
SELECT backfill_id FROM pricing.backfills WHERE run_id = :run_id AND data_type = :data_type
ORDER BY requested_at DESC LIMIT 1;

-- name: backfill_cost
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

-- name: warnings
-- What went wrong in the last 24 hours without stopping anything else, by subject, the newest first.
SELECT w.source, w.subject, w.times, w.last_at, w.sqlstate, w.message FROM pricing.recent_warnings('24 hours') w
ORDER BY w.last_at DESC, 1, 2;

-- name: revised
-- Times of a pair's values between two times that were told otherwise before, by now or until a time.
SELECT DISTINCT v.observed_at FROM pricing.price_revisions v
WHERE v.data_type = :data_type AND v.symbol = :symbol
  AND v.observed_at BETWEEN CAST(:first AS timestamptz) AND CAST(:last AS timestamptz)
  AND (CAST(:as_of AS timestamptz) IS NULL OR v.revised_at <= CAST(:as_of AS timestamptz));

-- name: why_backfill_waits
-- Why the providers of a backfill's open tasks may not be called now, but for rate limits, which pass.
SELECT w.sentence
FROM (SELECT q.provider, max(q.priority) AS priority, max(q.est_bytes) AS needed FROM pricing.api_call_queue_live q
      WHERE q.backfill_id = CAST(:backfill_id AS uuid) GROUP BY 1) waiting
CROSS JOIN LATERAL pricing.why_not_called(waiting.provider, waiting.priority, waiting.needed) w
WHERE w.state <> 'rate_limited' ORDER BY 1;

-- name: faults
-- Symbols of a data type that back off because their last task failed, and why.
SELECT d.symbol, coalesce(d.last_failure, 'no reason is kept') AS reason, d.backoff_until FROM pricing.demand d
WHERE d.data_type = :data_type AND d.symbol = ANY (CAST(:symbols AS text[])) AND d.backoff_until > pricing.clock() AND d.failures > 0
ORDER BY d.symbol;
