-- Who may do what on the embedded server, outside the schema pricing (schema.sql has that). To be read, not run.
-- Written by `make pages`; a test compares it with a new server.

-- In the database postgres
CREATE ROLE postgres LOGIN SUPERUSER CREATEROLE CREATEDB REPLICATION BYPASSRLS;
CREATE ROLE pricing_client NOLOGIN;
CREATE ROLE pricing_owner LOGIN CONNECTION LIMIT 20;
GRANT pg_use_reserved_connections TO pricing_owner;
CREATE ROLE pricing_reader NOLOGIN;
CREATE ROLE pricing_worker LOGIN CONNECTION LIMIT 70;
GRANT pg_use_reserved_connections TO pricing_worker;
ALTER ROLE pricing_worker IN DATABASE pricing SET idle_in_transaction_session_timeout=30s;
ALTER ROLE pricing_worker IN DATABASE pricing SET lock_timeout=2s;
ALTER ROLE pricing_worker IN DATABASE pricing SET statement_timeout=10min;
CREATE DATABASE dagster OWNER postgres;
GRANT CONNECT ON DATABASE dagster TO pricing_worker;
CREATE DATABASE postgres OWNER postgres;
CREATE DATABASE pricing OWNER pricing_owner;
GRANT CONNECT ON DATABASE pricing TO pricing_client;
GRANT CONNECT ON DATABASE pricing TO pricing_reader;
GRANT CONNECT ON DATABASE pricing TO pricing_worker;
CREATE DATABASE template0 OWNER postgres;
CREATE DATABASE template1 OWNER postgres;

-- In the database pricing
GRANT USAGE ON SCHEMA public TO PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_creat(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_export(oid,text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_from_bytea(oid,bytea) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text,oid) FROM PUBLIC;

-- In the database dagster
GRANT CREATE ON SCHEMA public TO pricing_worker;
GRANT USAGE ON SCHEMA public TO PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_creat(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_export(oid,text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_from_bytea(oid,bytea) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text,oid) FROM PUBLIC;
