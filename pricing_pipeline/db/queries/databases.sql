-- name: exists
-- True when the server has a database of this name.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = :name);

-- name: create
-- With its quoted name. From another template it would inherit the encoding, which may not be UTF8.
CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0

-- name: has_schema
-- True when there is our schema.
SELECT to_regclass('pricing.price_history') IS NOT NULL;

-- name: has_prices
-- True when there is any price.
SELECT EXISTS (SELECT FROM pricing.latest_prices) OR EXISTS (SELECT FROM pricing.price_history);

-- name: identity
-- Which database this is, wherever its server is moved: the cluster's own number, and the database's in it.
SELECT c.system_identifier || '/' || d.oid
FROM pg_control_system() c CROSS JOIN pg_database d
WHERE d.datname = current_database();
