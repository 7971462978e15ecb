-- name: read_alike
-- All queries of this transaction see the same moment, and change nothing.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: quarters
-- How each data type served its viewers over the last day, by quarters of an hour: the worst sample of each.
SELECT s.data_type, date_bin('15 minutes', s.at, '2000-01-01Z') AS at,
       min(CASE WHEN s.watched > 0 THEN s.fresh::float8 / s.watched END) AS fresh,
       max(s.late) AS late
FROM (SELECT pricing.clock() AS at) n
JOIN pricing.freshness_samples s ON s.at > n.at - interval '24 hours' AND s.at <= n.at
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: late_pairs
-- Late pairs, a few of each data type, those that are owed longest first, and why.
SELECT late.data_type, late.symbol, w.state, w.sentence, w.observed_at, w.fetched_at, w.since, w.next_at
FROM (SELECT p.data_type, p.symbol, p.owed_since,
             row_number() OVER (PARTITION BY p.data_type ORDER BY p.owed_since, p.symbol) AS place
      FROM pricing.watched_pairs() p WHERE p.state = 'late') late
CROSS JOIN LATERAL pricing.why_old(late.data_type, late.symbol) w
WHERE late.place <= :of_each
ORDER BY late.owed_since, late.data_type, late.symbol LIMIT :most;

-- name: watched
-- The watched pairs, those in trouble first and then the most watched: their states and prices; with the number of all.
SELECT w.data_type, w.symbol, w.state, v.viewers, k.contents, l.amount, l.scale, l.currency, w.fetched_at,
       count(*) OVER () AS total
FROM pricing.watched_pairs() w
JOIN (SELECT a.data_type, a.symbol, count(*) AS viewers FROM pricing.active_subscriptions a GROUP BY 1, 2) v
    USING (data_type, symbol)
JOIN pricing.data_type_registry k USING (data_type)
LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
ORDER BY array_position(ARRAY['late', 'refused', 'source_old', 'due', 'paused'], w.state) NULLS LAST, v.viewers DESC,
         w.symbol, w.data_type
LIMIT :most;

-- name: live_tasks
-- Live tasks by provider and data type.
SELECT l.provider, l.data_type,
       count(*) FILTER (WHERE l.status = 'pending') AS pending,
       count(*) FILTER (WHERE l.status = 'processing') AS processing,
       count(*) FILTER (WHERE l.status = 'scheduled') AS scheduled,
       count(*) FILTER (WHERE l.priority > 0) AS watched, min(l.enqueued_at) AS oldest_at
FROM pricing.api_call_queue_live l
GROUP BY 1, 2
ORDER BY 1, 2;

-- name: failing_tasks
-- Live tasks that have failed before and are retried, the newest failure first.
SELECT l.id, l.data_type, l.symbol, l.provider, l.status, l.attempt, l.max_attempts, l.enqueued_at, l.run_after,
       l.errors -> -1 ->> 'message' AS last_error
FROM pricing.api_call_queue_live l
WHERE l.errors <> '[]'
ORDER BY l.attempt DESC, l.id DESC LIMIT :most;

-- name: dead_tasks
-- Failed tasks that nothing has settled since, equal failures together, the newest first: faults of symbols are equal
-- by their kind, others by their message, whatever symbol it names. With how many tasks there are in all, and how many
-- of them failed by trouble that is not their symbol's.
SELECT (array_agg(q.id ORDER BY q.id DESC))[1:(:most_ids)] AS ids, count(*) AS tasks,
       (array_agg(DISTINCT q.symbol))[1:5] AS symbols, count(DISTINCT q.symbol) AS symbol_count,
       q.data_type, q.provider, q.failure_kind,
       (array_agg(q.attempt ORDER BY q.id DESC))[1] AS attempt,
       (array_agg(q.max_attempts ORDER BY q.id DESC))[1] AS max_attempts,
       max(q.finished_at) AS finished_at, (array_agg(q.message ORDER BY q.id DESC))[1] AS last_error,
       nullif((array_agg(q.window_start ORDER BY q.id DESC))[1], '-infinity') AS window_start,
       nullif((array_agg(q.window_end ORDER BY q.id DESC))[1], 'infinity') AS window_end,
       sum(count(*)) OVER ()::bigint AS total,
       coalesce(sum(count(*) FILTER (WHERE NOT q.is_of_symbol)) OVER (), 0)::bigint AS troubled
FROM (SELECT x.*, x.errors -> -1 ->> 'message' AS message, pricing.is_symbol_fault(x.failure_kind) AS is_of_symbol
      FROM pricing.api_call_queue_dead x WHERE x.resolved_at IS NULL AND x.status = 'failed') q
GROUP BY q.data_type, q.provider, q.failure_kind,
         CASE WHEN NOT q.is_of_symbol THEN replace(q.message, q.symbol, '') END
ORDER BY max(q.finished_at) DESC, max(q.id) DESC LIMIT :most;

-- name: operations
-- Side effects that have failed for good, and those that have failed and are tried again; with how many of each.
SELECT o.id, o.operation_type, o.status, o.payload ->> 'recipient' AS recipient, o.payload ->> 'title' AS title,
       o.attempt, o.max_attempts, o.enqueued_at, o.due_at, o.finished_at, o.errors -> -1 ->> 'message' AS last_error,
       count(*) OVER (PARTITION BY o.status) AS total
FROM pricing.async_operations o
WHERE o.status = 'failed' OR o.status IN ('pending', 'processing') AND o.errors <> '[]'
ORDER BY o.status <> 'failed', coalesce(o.finished_at, o.enqueued_at) DESC, o.id DESC LIMIT :most;

-- name: failing_recipients
-- Recipients whose last attempt failed, those with an open breaker first, and how many of their messages wait.
SELECT f.operation_type, f.recipient, f.since, f.failures, f.last_error,
       CASE WHEN f.breaker_until > n.at THEN f.breaker_until END AS breaker_until,
       (SELECT count(*) FROM pricing.async_operations_live o
        WHERE (o.operation_type, o.recipient, o.status) = (f.operation_type, f.recipient, 'pending')) AS waiting,
       count(*) OVER () AS total
FROM (SELECT pricing.clock() AS at) n CROSS JOIN pricing.failing_recipients f
ORDER BY f.breaker_until > n.at DESC NULLS LAST, f.since, f.operation_type, f.recipient LIMIT :most;

-- name: alert_places
-- The pages of the Dagster UI that open alerts are about, as paths.
SELECT a.alert_id, pricing.alert_place(a.rule, a.subject, a.says) AS place
FROM pricing.alerts a
WHERE a.alert_id = ANY (CAST(:alert_ids AS bigint[]));

-- name: around
-- Stored values of the same pairs before and after quarantined ones, oldest first.
SELECT q.value_id, h.observed_at, h.amount, h.scale
FROM pricing.quarantined_values q CROSS JOIN LATERAL (
    (SELECT b.observed_at, b.amount, b.scale FROM pricing.price_history b
     WHERE b.data_type = q.data_type AND b.symbol = q.symbol AND b.observed_at < q.observed_at
     ORDER BY b.observed_at DESC LIMIT :most)
    UNION ALL
    (SELECT a.observed_at, a.amount, a.scale FROM pricing.price_history a
     WHERE a.data_type = q.data_type AND a.symbol = q.symbol AND a.observed_at >= q.observed_at
     ORDER BY a.observed_at LIMIT :most)) h
WHERE q.value_id = ANY (CAST(:value_ids AS bigint[])) AND q.observed_at IS NOT NULL
ORDER BY 1, 2;

-- name: levels
-- The quarantined values on the level of each of these.
SELECT q.value_id, pricing.level_of(q.value_id) AS level FROM unnest(CAST(:value_ids AS bigint[])) AS q (value_id);

-- name: bytes_by_day
-- Bytes that providers sent on each of the last 30 days (UTC).
SELECT u.provider, (u.hour AT TIME ZONE 'UTC')::date AS day, sum(u.bytes)::bigint AS bytes
FROM (SELECT pricing.clock() AS at) n
JOIN pricing.api_data_usage u ON u.hour > n.at - interval '720 hours'
GROUP BY 1, 2
ORDER BY 1, 2;
