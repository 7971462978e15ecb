-- name: note_shared
-- Note how many shared values of all types of a fetcher have changed.
SELECT pricing.note_shared_changes(u.symbol, :fetcher, u.changes)
FROM unnest(CAST(:symbols AS text[]), CAST(:changes AS bigint[])) AS u (symbol, changes);

-- name: note
-- Notes how many values of these months have changed in the history of a type.
INSERT INTO pricing.data_changes (data_type, month, changes)
SELECT :data_type, u.month, u.changes
FROM unnest(CAST(:months AS date[]), CAST(:changes AS bigint[])) AS u (month, changes);

-- name: is_unnumbered
-- Whether anything has changed since the last time.
SELECT EXISTS (SELECT FROM pricing.data_changes);

-- name: take_turn
-- The turn to tell Dagster, until the transaction ends; false when another session has it. Hundreds of months are
-- reported in one transaction, which is idle meanwhile.
SELECT pricing.take_turn('tell_changes'), set_config('idle_in_transaction_session_timeout', '10min', true);

-- name: log
-- Which sequence of versions this is. A restored backup has another one, and so has a server that was set back in time.
SELECT concat_ws('/', c.system_identifier, p.timeline_id, 'pricing.data_versions'::regclass::oid)
FROM pg_control_system() c CROSS JOIN pg_control_checkpoint() p;

-- name: since
-- New versions after a version, in order.
SELECT data_type, nullif(month, '-infinity') AS month, version, changes
FROM pricing.data_versions WHERE version > :version ORDER BY version LIMIT :at_most;

-- name: current
-- The version of each of these months of a type; a NULL month is what is latest.
SELECT data_type, nullif(month, '-infinity') AS month, version, changes
FROM pricing.data_versions
WHERE data_type = :data_type
  AND month = ANY (ARRAY(SELECT coalesce(m, '-infinity') FROM unnest(CAST(:months AS date[])) AS m));

-- name: filling
-- The data types for which a backfill has tasks in the queue.
SELECT DISTINCT b.data_type FROM pricing.backfills b
WHERE b.finished_at IS NULL
  AND EXISTS (SELECT FROM pricing.api_call_queue_live q WHERE q.backfill_id = b.backfill_id);
