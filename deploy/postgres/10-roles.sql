-- Roles and databases of an empty server, as its administrator. The passwords come from the environment of psql.
-- docs/running.md, "A server of your own", names it.
\set ON_ERROR_STOP on
\getenv owner_password PRICING_OWNER_PASSWORD
\getenv worker_password PRICING_WORKER_PASSWORD

-- The server's log would repeat a statement that fails, with its password. Only a superuser may prevent that.
SELECT format('SET %s', setting)
  FROM unnest('{log_min_error_statement = panic,log_statement = none,log_min_duration_statement = -1}'::text[]) AS setting
 WHERE current_setting('is_superuser')::boolean \gexec
CREATE ROLE pricing_owner LOGIN PASSWORD :'owner_password' CONNECTION LIMIT 20;
CREATE ROLE pricing_worker LOGIN PASSWORD :'worker_password' CONNECTION LIMIT 70;
CREATE ROLE pricing_client NOLOGIN;
CREATE ROLE pricing_reader NOLOGIN;
-- An administrator who is no superuser gives databases only to roles that it is a member of.
SELECT 'GRANT pricing_owner, pricing_worker TO CURRENT_USER'
 WHERE NOT current_setting('is_superuser')::boolean \gexec
CREATE DATABASE pricing OWNER pricing_owner ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE dagster OWNER pricing_worker ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE pricing, dagster FROM PUBLIC;
GRANT CONNECT ON DATABASE pricing TO pricing_worker, pricing_client, pricing_reader;
-- PostgreSQL 15 has no reserved connections, and only a superuser hands them out.
SELECT 'GRANT pg_use_reserved_connections TO pricing_owner, pricing_worker'
 WHERE current_setting('server_version_num')::int >= 160000
   AND current_setting('is_superuser')::boolean \gexec
