-- When the parts of the pipeline last gave a sign of life, and how long tasks take.
CREATE TABLE pricing.signs_of_life (
    part          text PRIMARY KEY,
    began_at      timestamptz NOT NULL,
    ended_at      timestamptz,
    seconds       float8,
    times         bigint NOT NULL DEFAULT 0,
    total_seconds float8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.signs_of_life IS 'What works again and again: a sensor of Dagster, the staleness check. And the start of the pipeline.';
COMMENT ON COLUMN pricing.signs_of_life.part IS 'Name of the sensor, enqueue_due = the staleness check, start = the last start of the pipeline, or the end of a time in which nothing ran.';
COMMENT ON COLUMN pricing.signs_of_life.began_at IS 'When it last began.';
COMMENT ON COLUMN pricing.signs_of_life.ended_at IS 'When it last succeeded; NULL = never yet.';
COMMENT ON COLUMN pricing.signs_of_life.seconds IS 'How long that took.';
COMMENT ON COLUMN pricing.signs_of_life.times IS 'How often it has succeeded.';
COMMENT ON COLUMN pricing.signs_of_life.total_seconds IS 'How long that took in all.';

CREATE TABLE pricing.task_times (
    data_type     text NOT NULL,
    wanted_by     text NOT NULL CONSTRAINT wanted_by_is_known CHECK (wanted_by IN ('viewers', 'holdings', 'schedules', 'backfills')),
    buckets       bigint[] NOT NULL,
    times         bigint NOT NULL,
    total_seconds float8 NOT NULL,
    counted_until timestamptz NOT NULL,
    PRIMARY KEY (data_type, wanted_by)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.task_times IS 'How long completed tasks took from queueing to stored, counted since the beginning.';
COMMENT ON COLUMN pricing.task_times.data_type IS 'Tasks of which data type.';
COMMENT ON COLUMN pricing.task_times.wanted_by IS 'Who wanted them, by their priority: viewers, holdings, schedules or backfills.';
COMMENT ON COLUMN pricing.task_times.buckets IS 'How many took up to so many seconds: one number for each of pricing.task_time_bounds(), each includes those before it.';
COMMENT ON COLUMN pricing.task_times.times IS 'How many there were.';
COMMENT ON COLUMN pricing.task_times.total_seconds IS 'How long they took in all.';
COMMENT ON COLUMN pricing.task_times.counted_until IS 'What finished up to then was counted; the latest of all rows counts.';

ALTER TABLE pricing.drains ADD COLUMN requested_at timestamptz;
COMMENT ON COLUMN pricing.drains.requested_at IS 'When its run was requested; NULL = not known.';
DROP FUNCTION IF EXISTS pricing.begin_drain(text, text, integer);

ALTER TABLE pricing.schedule_walks ADD COLUMN next_slot timestamptz;
COMMENT ON COLUMN pricing.schedule_walks.next_slot IS 'The first slot after served_slot, as the sensor reads the schedule; NULL = it has not read it yet, or cannot.';
