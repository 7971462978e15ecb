-- name: be_patient
-- A migration waits for its locks, without a time limit.
SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '0', true);

-- name: wait_for_lock
-- For how long it waits until another upgrade has ended.
SELECT set_config('lock_timeout', :patience, true);

-- name: lock
-- One migration at a time; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pricing.migrate', 0));

-- name: holders
-- The sessions with that lock, oldest first.
SELECT a.pid, a.usename, a.backend_start
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND a.datname = current_database()
  AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('pricing.migrate', 0)
ORDER BY a.backend_start, a.pid;

-- name: be_quiet
-- Hide notices that something already exists.
SET LOCAL client_min_messages = warning;

-- name: schema
-- The schema must exist before Alembic's version table can live in it.
CREATE SCHEMA IF NOT EXISTS pricing;

-- name: defer_body_checks
-- Let functions be created in any order.
SET LOCAL check_function_bodies = off;

-- name: triggers
SELECT t.tgname AS trigger, c.relname AS relation
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'pricing'::regnamespace AND NOT t.tgisinternal;

-- name: functions
-- Statements that drop the functions of these names that no trigger, view or default uses.
SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
WHERE p.pronamespace = 'pricing'::regnamespace AND p.proname = ANY (:names)
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid);

-- name: former_functions
-- Statements that drop the functions of these names that this transaction has not made: they have other parameters.
SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
WHERE p.pronamespace = 'pricing'::regnamespace AND p.proname = ANY (:names) AND age(p.xmin) > 0;
