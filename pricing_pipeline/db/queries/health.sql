-- name: measure
-- Each part of the pipeline, and whether it is late.
SELECT part, is_late, since, says FROM pricing.health();

-- name: be_quick
-- The caller waits for the answer.
SET LOCAL statement_timeout = '1500ms';

-- name: now_epoch
-- The database's clock in Unix seconds.
SELECT extract(epoch FROM pricing.clock())::float8;

-- name: note_start
-- The pipeline starts, or the clock was set: nothing is late that had no time yet.
SELECT pricing.note_start();

-- name: note_begin
-- A sensor begins its tick.
SELECT pricing.note_life(:part);

-- name: note_end
-- A sensor has done its tick, in so many seconds.
SELECT pricing.note_life(:part, CAST(:seconds AS float8));
