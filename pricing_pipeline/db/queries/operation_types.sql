-- name: all
-- Operation types by name, with what prevents removing each.
SELECT t.operation_type, t.description, t.payload_fields, t.max_attempts, t.time_limit_seconds, t.first_pause,
       t.is_active, t.is_built_in, t.takes_messages,
       (SELECT count(*) FROM pricing.async_operations_live o WHERE o.operation_type = t.operation_type) AS live,
       ARRAY(SELECT r.recipient FROM pricing.recipients r WHERE r.channel = t.operation_type ORDER BY 1) AS recipients
FROM pricing.operation_types t
WHERE coalesce(t.operation_type = CAST(:operation_type AS text), true)
ORDER BY NOT t.is_built_in, 1;

-- name: add
-- Add an operation type; none when one of this name already exists.
INSERT INTO pricing.operation_types
    (operation_type, description, payload_fields, max_attempts, time_limit_seconds, first_pause)
VALUES (:operation_type, :description, CAST(:payload_fields AS jsonb), :max_attempts, :time_limit_seconds, :first_pause)
ON CONFLICT (operation_type) DO NOTHING RETURNING operation_type;

-- name: change
-- Change an operation type.
UPDATE pricing.operation_types t
SET description = :description, payload_fields = CAST(:payload_fields AS jsonb), max_attempts = :max_attempts,
    time_limit_seconds = :time_limit_seconds, first_pause = :first_pause, is_active = :is_active
WHERE t.operation_type = :operation_type;

-- name: remove
-- Delete an operation type; no row when it is built in, or still used.
DELETE FROM pricing.operation_types t
WHERE t.operation_type = :operation_type AND NOT t.is_built_in
  AND NOT EXISTS (SELECT FROM pricing.async_operations_live o WHERE o.operation_type = t.operation_type)
  AND NOT EXISTS (SELECT FROM pricing.recipients r WHERE r.channel = t.operation_type)
RETURNING t.operation_type;
