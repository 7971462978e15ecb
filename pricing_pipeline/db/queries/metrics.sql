-- Figures of the whole pipeline, for /metrics. Each column that operations/figures.py does not use as a label is a
-- figure. No query returns a row per symbol or user.

-- name: subscriptions
-- How many subscriptions there are of each data type.
SELECT r.data_type,
       (SELECT count(*) FROM pricing.active_subscriptions a WHERE a.data_type = r.data_type) AS subscriptions
FROM pricing.data_type_registry r WHERE r.is_active;

-- name: task_times
-- How long completed tasks took from queueing to stored, counted by upper bounds in seconds.
SELECT t.data_type, t.wanted_by, pricing.task_time_bounds() AS bounds, t.buckets, t.times, t.total_seconds
FROM pricing.task_times t JOIN pricing.data_type_registry r USING (data_type);

-- name: ticks
-- Recurring work: how often, how long, and how long ago.
SELECT s.part, s.times AS ticks, s.total_seconds, s.seconds,
       CASE WHEN s.ended_at IS NOT NULL
            THEN greatest(extract(epoch FROM pricing.clock() - s.ended_at), 0)::float8 END AS age_seconds
FROM pricing.signs_of_life s WHERE s.part IN ('refresh_watched', 'report_prices', 'enqueue_due');

-- name: runs
-- How long the last drain took to begin after its run was requested, and how many drains are at work.
SELECT (SELECT greatest(extract(epoch FROM d.started_at - d.requested_at), 0)::float8 FROM pricing.drains d
        WHERE d.requested_at IS NOT NULL
        ORDER BY d.started_at DESC LIMIT 1) AS start_seconds,
       (SELECT count(*) FROM pricing.drains d
        WHERE d.finished_at IS NULL AND d.lease_until > pricing.clock()) AS drains;

-- name: breakers
-- Each state of the breaker of each active provider, and whether it is in it.
SELECT s.provider, b.state, (s.breaker = b.state)::integer AS is_so
FROM pricing.provider_state s JOIN pricing.data_collectors p USING (provider)
CROSS JOIN unnest(ARRAY['closed', 'open', 'half_open']) AS b (state)
WHERE p.is_active;

-- name: calls
-- Calls of the last five minutes that have ended, by provider and outcome, and how long they took on average.
SELECT c.provider, c.outcome, count(*) AS calls,
       avg(extract(epoch FROM c.finished_at - c.started_at))::float8 AS seconds
FROM (SELECT pricing.clock() AS at) n
CROSS JOIN pricing.data_collectors p
JOIN pricing.collector_call_log c ON c.provider = p.provider
    AND c.moved_to IS NULL
    AND c.started_at > n.at - interval '5 minutes'
    AND c.started_at <= n.at
WHERE c.finished_at IS NOT NULL
GROUP BY 1, 2;

-- name: estimates
-- Estimated sizes, and how often an answer was more than twice as long.
SELECT s.provider, s.data_type, s.per, s.bytes, s.measurements, s.overruns FROM pricing.size_estimates s;

-- name: locks
-- Ages of transactions and locks that keep others waiting, in sessions of this database that the login may see.
SELECT v.kind, coalesce(max(v.seconds), 0)::float8 AS oldest_seconds, count(v.seconds) AS sessions
FROM (SELECT k.kind, x.seconds FROM (VALUES ('transaction'), ('rows'), ('advisory'), ('waiting')) AS k (kind)
      LEFT JOIN LATERAL (
          SELECT extract(epoch FROM clock_timestamp() - CASE k.kind WHEN 'waiting' THEN w.since
                                                                    ELSE a.xact_start END) AS seconds
          FROM pg_stat_activity a
          LEFT JOIN LATERAL (
              SELECT min(l.waitstart) AS since,
                     bool_or(l.granted AND l.locktype = 'relation' AND l.mode LIKE 'Row%') AS has_rows,
                     bool_or(l.granted AND l.locktype = 'advisory') AS has_advisory
              FROM pg_locks l WHERE l.pid = a.pid) w ON true
          WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
            AND CASE k.kind WHEN 'transaction' THEN true
                            WHEN 'rows' THEN w.has_rows
                            WHEN 'advisory' THEN w.has_advisory
                            ELSE w.since IS NOT NULL END) x ON true) v
GROUP BY 1;

-- name: warnings
-- Warnings of the last hour by source; sources beyond the thirty most frequent count as other.
SELECT CASE WHEN w.place <= 30 THEN w.source ELSE 'other' END AS source, sum(w.times)::bigint AS warnings
FROM (SELECT x.source, sum(x.times) AS times, row_number() OVER (ORDER BY sum(x.times) DESC, x.source) AS place
      FROM pricing.recent_warnings('1 hour') x
      GROUP BY 1) w
GROUP BY 1;

-- name: operations
-- Side effects by type and status: those that wait, are under way, have failed for good, or were done in the last hour.
SELECT CASE WHEN t.operation_type IS NULL THEN 'other' ELSE o.operation_type END AS operation_type, o.status,
       sum(o.operations)::bigint AS operations, max(o.oldest_seconds)::float8 AS oldest_seconds
FROM (SELECT l.operation_type, l.status, count(*) AS operations,
             greatest(extract(epoch FROM n.at - min(l.due_at)), 0) AS oldest_seconds
      FROM (SELECT pricing.clock() AS at) n CROSS JOIN pricing.async_operations_live l
      GROUP BY 1, 2, n.at
      UNION ALL
      SELECT d.operation_type, d.status, count(*), NULL
      FROM pricing.async_operations_dead d
      WHERE d.status = 'failed'
      GROUP BY 1, 2
      UNION ALL
      SELECT c.operation_type, 'completed', count(*), NULL
      FROM (SELECT pricing.clock() AS at) n
      JOIN pricing.async_operations_completed c ON c.finished_at > n.at - interval '1 hour' AND c.finished_at <= n.at
      GROUP BY 1) o
LEFT JOIN pricing.operation_types t USING (operation_type)
GROUP BY 1, 2;

-- name: alerts
-- Open alerts by rule and severity.
SELECT a.rule, a.severity, count(*) AS alerts
FROM pricing.alerts a
WHERE a.raised_at IS NOT NULL AND a.resolved_at IS NULL
GROUP BY 1, 2;
