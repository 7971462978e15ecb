-- name: note_runs
-- Note how the newest runs ended.
SELECT pricing.note_dagster_runs(CAST(:runs AS jsonb));

-- name: failing_ticks
-- Sensors and schedules that are noted as failing.
SELECT d.name FROM pricing.dagster_failures d WHERE d.kind = 'tick';

-- name: note_ticks
-- Note which sensors and schedules fail now.
SELECT pricing.note_dagster_ticks(CAST(:failing AS jsonb));
