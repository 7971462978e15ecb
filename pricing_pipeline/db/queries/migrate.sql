-- name: lock
-- One migration at a time, whoever starts it; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pricing.migrate', 0));

-- name: schema
-- The schema must exist before Alembic's version table can live in it.
CREATE SCHEMA IF NOT EXISTS pricing;

-- name: defer_body_checks
-- Let functions be created in any order.
SET LOCAL check_function_bodies = off;
