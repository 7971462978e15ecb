-- The daemon of `up` notes a code location that does not load, and sensors that do not work.
ALTER TABLE pricing.dagster_failures
    DROP CONSTRAINT dagster_failure_kind_is_known,
    ADD CONSTRAINT dagster_failure_kind_is_known CHECK (kind IN ('run', 'tick', 'location', 'sensor'));
COMMENT ON TABLE pricing.dagster_failures IS
    'What fails in Dagster now: a job whose last run failed, a sensor or schedule whose last tick did; the sensor '
    'note_failures writes these. And a code location that does not load, and sensors that have not worked since it '
    'was loaded; the daemon of `up` writes these.';
COMMENT ON COLUMN pricing.dagster_failures.kind IS
    'run = a job, or what a run without one materializes; tick = a sensor or schedule; location = a code location; '
    'sensor = a sensor that has not worked since its code location was loaded.';
COMMENT ON COLUMN pricing.dagster_failures.name IS
    'The job, sensor, schedule or code location; of a run that was started on assets, their names.';
COMMENT ON COLUMN pricing.dagster_failures.run_id IS 'The run that failed; NULL for all others.';
COMMENT ON COLUMN pricing.dagster_failures.reason IS 'The first line of the error, or what a sensor lacks.';
COMMENT ON COLUMN pricing.dagster_failures.failed_at IS
    'When the run failed, or when something else was first seen to fail.';
DROP FUNCTION IF EXISTS pricing.note_dagster_ticks(jsonb);
