-- name: signs_of_life
-- When any notifier last looked for trouble and for messages, and what time it is.
SELECT max(s.ended_at) FILTER (WHERE s.part = 'look_for_alerts') AS looked_at,
       max(s.ended_at) FILTER (WHERE s.part = 'send_messages') AS ran_at, pricing.clock() AS now
FROM pricing.signs_of_life s;

-- name: list
-- Side effects in some states: those that wait in claim order, then the newest finished ones; by_id the newest first,
-- older than one.
SELECT o.id, o.operation_type, o.status, o.payload, o.due_at, o.attempt, o.max_attempts, o.enqueued_at, o.finished_at,
       o.errors -> -1 ->> 'message' AS last_error, pricing.describe_wait(o) AS waits
FROM pricing.async_operations o
WHERE o.status = ANY (CAST(:statuses AS text[])) AND coalesce(o.operation_type = CAST(:operation_type AS text), true)
  AND (CAST(:after_id AS bigint) IS NULL OR o.id < :after_id)
ORDER BY CASE WHEN :by_id THEN o.id END DESC,
         o.finished_at IS NOT NULL,
         CASE WHEN o.finished_at IS NULL THEN o.due_at END,
         o.finished_at DESC,
         o.id
LIMIT :most;

-- name: show
-- Everything about one side effect.
SELECT o.id, o.operation_type, o.status, o.payload, o.idempotency_key, o.due_at, o.attempt, o.max_attempts,
       o.claimed_at, o.lease_until, o.worker, o.enqueued_at, o.finished_at, o.errors, o.result,
       pricing.describe_wait(o) AS waits
FROM pricing.async_operations o
WHERE o.id = :id;

-- name: dead
-- Ids of failed side effects.
SELECT o.id FROM pricing.async_operations_dead o WHERE o.status = 'failed' ORDER BY o.id;

-- name: lock
-- Lock these operations until the end of the transaction.
SELECT FROM pricing.async_operations o WHERE o.id = ANY (CAST(:ids AS bigint[])) ORDER BY o.id FOR UPDATE;

-- name: states
-- The status of each of these that exists.
SELECT o.id, o.status FROM pricing.async_operations o WHERE o.id = ANY (CAST(:ids AS bigint[]));

-- name: counts
-- Side effects by type and status.
SELECT s.operation_type, s.status, s.operations, s.oldest_at, s.newest_at, s.average_attempts
FROM pricing.operation_status s ORDER BY 1, 2;

-- name: today
-- How many were done today, in UTC, and how many have failed for good.
SELECT (SELECT count(*) FROM pricing.async_operations_completed c
        WHERE c.finished_at >= date_trunc('day', pricing.clock(), 'UTC')) AS done,
       (SELECT count(*) FROM pricing.async_operations_dead d
        WHERE d.status = 'failed' AND d.finished_at >= date_trunc('day', pricing.clock(), 'UTC')) AS failed;

-- name: sent
-- Messages that the channel `log` has kept, the newest first.
SELECT o.id, o.finished_at, o.result ->> 'to' AS recipient, o.result ->> 'title' AS title, o.result ->> 'body' AS body
FROM pricing.async_operations_completed o
WHERE o.operation_type = 'log'
ORDER BY o.finished_at DESC, o.id DESC LIMIT :most;
