-- name: set_up
-- Nobody may use the replaced schema: the restore waits a while for other sessions, and then fails with a message.
SET lock_timeout = '10s';
SET client_min_messages = 'error';

-- name: drop
-- Drops what a restore replaces.
DROP SCHEMA IF EXISTS pricing CASCADE;
