-- name: exists
-- True when the server has a database of this name.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name);

-- name: create
-- With its quoted name. Of another template it would take the encoding, which may not be UTF8.
CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0
