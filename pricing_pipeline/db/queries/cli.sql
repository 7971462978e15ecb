-- name: revision
-- The migration that the database is at.
SELECT version_num FROM pricing.alembic_version;

-- name: warnings
-- Warnings of the last 24 hours, by subject, the newest first.
SELECT w.source, w.subject, w.times, w.last_at, w.sqlstate, w.message FROM pricing.recent_warnings('24 hours') w
ORDER BY w.last_at DESC, 1, 2;

-- name: confirmed
-- When the pairs of a data type without prices and documents were last confirmed, and by which provider.
SELECT p.symbol, p.fetched_at, p.provider
FROM pricing.confirmed_pairs p JOIN pricing.data_type_registry r USING (data_type)
WHERE p.data_type = :data_type AND p.symbol = ANY (CAST(:symbols AS text[]))
  AND r.contents NOT IN ('prices', 'documents')
ORDER BY p.symbol;

-- name: faults
-- Symbols of a data type that back off because their last task failed, and why.
SELECT d.symbol, coalesce(d.last_failure, 'no reason was recorded') AS reason, d.backoff_until
FROM pricing.demand d
WHERE d.data_type = :data_type AND d.symbol = ANY (CAST(:symbols AS text[]))
  AND d.backoff_until > pricing.clock() AND d.failures > 0
ORDER BY d.symbol;
