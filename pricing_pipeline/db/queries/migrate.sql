-- name: be_patient
-- A migration waits for its locks, and takes as long as it takes.
SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true);

-- name: lock
-- One migration at a time, whoever starts it; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pricing.migrate', 0));

-- name: schema
-- The schema must exist before Alembic's version table can live in it.
CREATE SCHEMA IF NOT EXISTS pricing;

-- name: defer_body_checks
-- Let functions be created in any order.
SET LOCAL check_function_bodies = off;
