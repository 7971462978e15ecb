-- What fails in Dagster, where the pipeline's own alerts can see it.
CREATE TABLE pricing.dagster_failures (
    kind      text NOT NULL CONSTRAINT dagster_failure_kind_is_known CHECK (kind IN ('run', 'tick')),
    name      text NOT NULL,
    run_id    text,
    reason    text NOT NULL,
    failed_at timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE pricing.dagster_failures IS 'What fails in Dagster now: a job whose last run failed, a sensor or schedule whose last tick did. The sensor note_failures writes it.';
COMMENT ON COLUMN pricing.dagster_failures.kind IS 'run = a job, or what a run without one materializes; tick = a sensor or schedule.';
COMMENT ON COLUMN pricing.dagster_failures.name IS 'The job, sensor or schedule; of a run that was started on assets, their names.';
COMMENT ON COLUMN pricing.dagster_failures.run_id IS 'The run that failed; NULL for ticks.';
COMMENT ON COLUMN pricing.dagster_failures.reason IS 'The first line of the error.';
COMMENT ON COLUMN pricing.dagster_failures.failed_at IS 'When the run failed, or when a tick was first seen to fail.';

ALTER TABLE pricing.alerts ADD COLUMN message_ids bigint[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.alerts.message_ids IS 'The last fifty operations that told recipients of it or of its end.';
