-- Takes from people's logins what harms the whole server: advisory locks, messages into the write-ahead log, plpgsql
-- and large objects. An administrator runs it in each database, also in template1, with the names of your roles. It
-- takes these rights from every other login of the server: grant them where they are needed.
BEGIN;
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
             AND proname ~ '^(pg_(try_)?advisory_(xact_)?lock(_shared)?|pg_logical_emit_message)$' LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO pricing_owner, pricing_worker', f);
    END LOOP;
END $$;
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
GRANT USAGE ON LANGUAGE plpgsql TO pricing_owner, pricing_worker;
REVOKE EXECUTE ON FUNCTION lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) FROM PUBLIC;
COMMIT;
