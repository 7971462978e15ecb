-- Who may do what on the embedded server, outside the schema pricing (schema.sql has that). To be read, not run.
-- Written by `make pages`; a test compares it with a new server.

-- In the database postgres
CREATE ROLE postgres LOGIN SUPERUSER CREATEROLE CREATEDB REPLICATION BYPASSRLS;
CREATE ROLE pricing_client NOLOGIN;
ALTER ROLE pricing_client IN DATABASE pricing SET client_connection_check_interval=5s;
ALTER ROLE pricing_client IN DATABASE pricing SET idle_in_transaction_session_timeout=30s;
ALTER ROLE pricing_client IN DATABASE pricing SET lock_timeout=2s;
ALTER ROLE pricing_client IN DATABASE pricing SET statement_timeout=10min;
CREATE ROLE pricing_location LOGIN CONNECTION LIMIT 40;
GRANT pricing_reader TO pricing_location;
CREATE ROLE pricing_owner LOGIN CONNECTION LIMIT 20;
GRANT pg_use_reserved_connections TO pricing_owner;
CREATE ROLE pricing_reader NOLOGIN;
ALTER ROLE pricing_reader IN DATABASE pricing SET client_connection_check_interval=5s;
ALTER ROLE pricing_reader IN DATABASE pricing SET idle_in_transaction_session_timeout=30s;
ALTER ROLE pricing_reader IN DATABASE pricing SET lock_timeout=2s;
ALTER ROLE pricing_reader IN DATABASE pricing SET statement_timeout=10min;
CREATE ROLE pricing_worker LOGIN CONNECTION LIMIT 70;
GRANT pg_use_reserved_connections TO pricing_worker;
ALTER ROLE pricing_worker IN DATABASE pricing SET client_connection_check_interval=5s;
ALTER ROLE pricing_worker IN DATABASE pricing SET idle_in_transaction_session_timeout=30s;
ALTER ROLE pricing_worker IN DATABASE pricing SET lock_timeout=2s;
ALTER ROLE pricing_worker IN DATABASE pricing SET statement_timeout=10min;
CREATE DATABASE dagster OWNER postgres;
GRANT CONNECT ON DATABASE dagster TO pricing_location;
GRANT CONNECT ON DATABASE dagster TO pricing_worker;
CREATE DATABASE postgres OWNER postgres;
CREATE DATABASE pricing OWNER pricing_owner;
GRANT CONNECT ON DATABASE pricing TO pricing_client;
GRANT CONNECT ON DATABASE pricing TO pricing_location;
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
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean,text,bytea,boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean,text,text,boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer,integer) FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, bytea, boolean) TO pricing_owner,
    pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, text, boolean) TO pricing_owner,
    pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT USAGE ON LANGUAGE plpgsql TO pricing_owner, pricing_worker;

-- In the database dagster
GRANT CREATE ON SCHEMA public TO pricing_worker;
GRANT USAGE ON SCHEMA public TO PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_creat(integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_export(oid,text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_from_bytea(oid,bytea) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_import(text,oid) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean,text,bytea,boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean,text,text,boolean) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer,integer) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer,integer) FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, bytea, boolean) TO pricing_owner,
    pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, text, boolean) TO pricing_owner,
    pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock(integer,integer) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(bigint) TO pricing_owner, pricing_worker;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_xact_lock_shared(integer,integer) TO pricing_owner, pricing_worker;
GRANT USAGE ON LANGUAGE plpgsql TO pricing_owner, pricing_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE pricing_worker IN SCHEMA public GRANT DELETE, INSERT, SELECT, UPDATE ON TABLES TO
    pricing_location;
ALTER DEFAULT PRIVILEGES FOR ROLE pricing_worker IN SCHEMA public GRANT SELECT, USAGE ON SEQUENCES TO pricing_location;
