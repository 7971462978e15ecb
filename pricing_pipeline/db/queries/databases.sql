-- name: exists
-- True when the server has a database of this name.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name);

-- name: create
-- Followed by the quoted name.
CREATE DATABASE
