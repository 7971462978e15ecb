-- name: make
-- The roles that the grants are given to, if this session may make them. Roles belong to the whole server, so an
-- upgrade of another database may be making the same ones, which no lock of this database prevents.
DO $$
DECLARE
    wanted text;
BEGIN
    IF NOT (SELECT r.rolcreaterole OR r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) THEN
        RETURN;
    END IF;
    FOREACH wanted IN ARRAY ARRAY['pricing_worker', 'pricing_client', 'pricing_reader'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = wanted);
        BEGIN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', wanted);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- the other one was quicker
        END;
    END LOOP;
END $$;

-- name: set_timeouts
-- What a login has in this database when its client sets nothing. A role's settings are those of logins of that name
-- only. It is skipped without the right to change roles, which the embedded server's owner lacks: there, the superuser
-- runs this.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT pg_catalog.format('ALTER ROLE %I IN DATABASE %I SET %s = %L', r.rolname, d.datname, s.name, s.value)
        FROM pg_catalog.pg_roles r
        JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
        CROSS JOIN (VALUES ('idle_in_transaction_session_timeout', '30s'), ('lock_timeout', '2s'),
                           ('statement_timeout', '10min'), ('client_connection_check_interval', '5s'))
            AS s (name, value)
        WHERE r.rolname IN ('pricing_worker', 'pricing_client', 'pricing_reader')
          -- Settings made by an administrator stay.
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_db_role_setting known
                          CROSS JOIN LATERAL pg_catalog.unnest(known.setconfig) AS setting
                          WHERE known.setrole = r.oid AND known.setdatabase IN (0, d.oid)
                            AND pg_catalog.split_part(setting, '=', 1) = s.name)
        ORDER BY 1
    LOOP
        EXECUTE statement;
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    NULL; -- docs/running.md says what an administrator runs
END $$;

-- name: act_as_owner
-- Objects that an administrator makes in the schema must belong to the schema's owner.
SELECT pg_catalog.set_config('role', r.rolname, true)
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
WHERE n.nspname = 'pricing' AND r.rolname <> current_user AND pg_catalog.pg_has_role(r.oid, 'MEMBER');

-- name: faults
-- Why this session's role has more than a worker's rights: each fault with the SQL by which an administrator ends it.
SELECT fault, remedy
FROM (
    SELECT 1 AS place, pg_catalog.format('the role %s is missing', missing.name) AS fault,
           pg_catalog.format('CREATE ROLE %I NOLOGIN', missing.name) AS remedy
    FROM (VALUES ('pricing_worker'), ('pricing_client'), ('pricing_reader')) AS missing (name)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = missing.name)
    UNION ALL
    SELECT 2, pg_catalog.format('%s, which owns the schema pricing, is a superuser', o.rolname),
           pg_catalog.format('CREATE ROLE pricing_owner LOGIN PASSWORD ''choose one''; '
                             'GRANT CREATE ON DATABASE %I TO pricing_owner; REASSIGN OWNED BY %I TO pricing_owner',
                             pg_catalog.current_database(), o.rolname)
    FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
    WHERE n.nspname = 'pricing' AND o.rolsuper
    UNION ALL
    SELECT 3, pg_catalog.format('PRICING_DATABASE_URL names %s, which may do everything that the owner %s may',
                                session_user, o.rolname),
           'ALTER ROLE pricing_worker LOGIN PASSWORD ''choose one''; '
           'then name pricing_worker in PRICING_DATABASE_URL, and '
           || o.rolname || ' in PRICING_OWNER_URL'
    FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
    WHERE n.nspname = 'pricing' AND pg_catalog.pg_has_role(session_user, o.oid, 'MEMBER')
) AS found
ORDER BY place, fault;
