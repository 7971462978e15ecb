-- name: needed
-- How many drains have work, of the most that are allowed, and how many are at work and not about to end.
SELECT pricing.wanted_drains(:most) AS wanted, pricing.lasting_drains() AS lasting;

-- name: begun
-- Which of these runs have begun a drain, alive or not?
SELECT run_id FROM pricing.drains WHERE run_id = ANY (:runs);

-- name: process
-- The server's process that serves this session.
SELECT pg_backend_pid();

-- name: listen
-- Be woken when a provider that had nothing pending gets work.
LISTEN pricing_work;
