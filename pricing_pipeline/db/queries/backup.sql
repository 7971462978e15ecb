-- name: set_up
-- Nobody may use the replaced schema: the restore waits a while for other sessions, and then fails with a message.
SET lock_timeout = '10s';
SET client_min_messages = 'error';

-- name: make_run
-- A function for the statements of a backup: in it, none of them can end the transaction of the restore.
CREATE FUNCTION pg_temp.run(statements text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE statements; END $$;

-- name: run
SELECT pg_temp.run(:statements);

-- name: drop
-- Drops what a restore replaces.
DROP SCHEMA IF EXISTS pricing CASCADE;
