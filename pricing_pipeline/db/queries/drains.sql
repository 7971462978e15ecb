-- name: begin
-- Start a drain; NULL when another is at work.
SELECT pricing.begin_drain(:worker, :run_id, :seconds, CAST(:requested_at AS timestamptz));

-- name: begun
-- Which of these runs have begun a drain, alive or not?
SELECT run_id FROM pricing.drains WHERE run_id = ANY (:runs);

-- name: warn_of_run
-- Note a run that failed where operators look.
SELECT pricing.warn('run', :job, :message, NULL);

-- name: extend
-- A drain says that it is alive.
SELECT pricing.extend_drain(CAST(:drain_id AS uuid));

-- name: end
-- A drain says that it is done.
SELECT pricing.end_drain(CAST(:drain_id AS uuid));

-- name: process
-- The server's process that serves this session.
SELECT pg_backend_pid();

-- name: listen
-- Be woken when a provider that had nothing pending gets work.
LISTEN pricing_work;
