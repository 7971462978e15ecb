-- name: plan
-- Queue what is missing between two days; returns the backfill and its number of tasks.
SELECT backfill_id, tasks FROM pricing.plan_backfill(:data_type, CAST(:first_day AS date), CAST(:last_day AS date),
                                                     CAST(:symbols AS text[]), :run_id);

-- name: progress
-- Tasks of a backfill: all, not finished, failed.
SELECT tasks, open, failed FROM pricing.backfill_progress(CAST(:backfill_id AS uuid));

-- name: failures
-- Why tasks of a backfill failed.
SELECT symbol, failure_kind, errors -> -1 ->> 'message' AS message FROM pricing.api_call_queue_dead
WHERE backfill_id = CAST(:backfill_id AS uuid) ORDER BY symbol LIMIT 20;
