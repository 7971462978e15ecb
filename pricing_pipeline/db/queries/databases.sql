-- name: exists
-- True when the server has a database of this name.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name);

-- name: create
-- Followed by the quoted name.
CREATE DATABASE

-- name: identity
-- Which database this is, wherever its server is moved: the cluster's own number, and the database's in it.
SELECT c.system_identifier || '/' || d.oid FROM pg_control_system() c CROSS JOIN pg_database d WHERE d.datname = current_database();
