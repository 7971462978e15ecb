-- name: begin
-- Start a drain; NULL when as many as have work are at work.
SELECT pricing.begin_drain(:worker, :run_id, :seconds, CAST(:requested_at AS timestamptz), :most);

-- name: needed
-- How many drains have work, of the most that are allowed, and how many are at work and not about to end.
SELECT pricing.wanted_drains(:most) AS wanted, pricing.lasting_drains() AS lasting;

-- name: begun
-- Which of these runs have begun a drain, alive or not?
SELECT run_id FROM pricing.drains WHERE run_id = ANY (:runs);

-- name: warn_of_run
-- Note a run that failed where operators look.
SELECT pricing.warn('run', :job, :message, NULL);

-- name: extend
-- A drain says that it is alive, and which providers it asks.
SELECT pricing.extend_drain(CAST(:drain_id AS uuid), CAST(:providers AS text[]));

-- name: end
-- A drain says that it is done.
SELECT pricing.end_drain(CAST(:drain_id AS uuid));

-- name: process
-- The server's process that serves this session.
SELECT pg_backend_pid();

-- name: listen
-- Be woken when a provider that had nothing pending gets work.
LISTEN pricing_work;
