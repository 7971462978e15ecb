-- name: enqueue
-- Queue a side effect with the transaction.
SELECT pricing.enqueue_operation(:operation_type, CAST(:payload AS jsonb), CAST(:due_at AS timestamptz));

-- name: claim
-- Claim operations that are due.
SELECT * FROM pricing.claim_operations(CAST(:types AS text[]), :most, :worker);

-- name: complete
-- Operations have happened; returns the ids that the claim still owned.
SELECT pricing.complete_operations(CAST(:ids AS bigint[]), :token, CAST(:results AS jsonb));

-- name: fail
-- An attempt has failed; returns the new status, or NULL if the claim was lost.
SELECT pricing.fail_operation(:id, :token, :message, :is_permanent, make_interval(secs => CAST(:retry_after AS float8)));

-- name: recover
-- Take back what a worker has said nothing about; returns how many.
SELECT pricing.recover_operations();

-- name: cancel
-- Cancel operations that wait or are under way.
SELECT pricing.cancel_operations(CAST(:ids AS bigint[]));

-- name: retry
-- Queue dead operations again.
SELECT pricing.retry_operations(CAST(:ids AS bigint[]));

-- name: seconds_to_next
-- Seconds until the next operation is due; NULL when none waits.
SELECT extract(epoch FROM min(o.due_at) - pricing.clock())::float8 FROM pricing.async_operations_live o
WHERE o.status = 'pending' AND o.operation_type = ANY (CAST(:types AS text[]));
