-- name: setup
-- What the embedded server still lacks of its roles and databases: statements to run, in order.
SELECT statement
FROM (
    SELECT 1 AS step,
           format('CREATE ROLE %I LOGIN NOSUPERUSER PASSWORD %L', role.name, role.verifier) AS statement
    FROM unnest(CAST(:roles AS text[]), CAST(:verifiers AS text[])) AS role (name, verifier)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role.name)
    UNION ALL
    SELECT 1, format('CREATE ROLE %I NOLOGIN', role.name) FROM unnest(CAST(:groups AS text[])) AS role (name)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role.name)
    UNION ALL
    SELECT 2, format('REVOKE %I FROM %I', owner.rolname, worker.rolname)
    FROM pg_catalog.pg_auth_members m
    JOIN pg_catalog.pg_roles owner ON owner.oid = m.roleid AND owner.rolname = :owner
    JOIN pg_catalog.pg_roles worker ON worker.oid = m.member AND worker.rolname = :worker
    UNION ALL
    SELECT 3, format('CREATE DATABASE %I OWNER %I', wanted.name, wanted.owner)
    FROM unnest(CAST(:databases AS text[]), ARRAY[CAST(:owner AS text), :worker]) AS wanted (name, owner)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = wanted.name)
    UNION ALL
    -- Whoever has no role of ours has no business in our databases, and none may keep temporary tables or settings there.
    SELECT 4, format('REVOKE ALL ON DATABASE %I FROM PUBLIC', ours.name)
    FROM (VALUES ('postgres'), ('template1') UNION SELECT unnest(CAST(:databases AS text[]))) AS ours (name)
    LEFT JOIN pg_catalog.pg_database d ON d.datname = ours.name
    WHERE d.oid IS NULL OR has_database_privilege('public', d.oid, 'CONNECT, TEMPORARY')
    UNION ALL
    SELECT 5, format('GRANT CONNECT ON DATABASE %I TO %I', ours.name, role.name)
    FROM unnest(CAST(:databases AS text[])) AS ours (name)
    CROSS JOIN unnest(array_append(CAST(:groups AS text[]), CAST(:worker AS text))) AS role (name)
    LEFT JOIN pg_catalog.pg_database d ON d.datname = ours.name
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = role.name
    WHERE (ours.name <> 'dagster' OR role.name = :worker)
      AND (d.oid IS NULL OR r.oid IS NULL OR NOT EXISTS (
          SELECT FROM aclexplode(d.datacl) a WHERE a.grantee = r.oid AND a.privilege_type = 'CONNECT'))
    UNION ALL
    SELECT 6, format('ALTER DATABASE %I RESET ALL', d.datname)
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    WHERE d.datname = ANY (CAST(:databases AS text[])) AND r.rolname = :worker
    UNION ALL
    -- As roles.set_timeouts does where the owner may.
    SELECT 7, format('ALTER ROLE %I IN DATABASE %I SET %s = %L', CAST(:worker AS text), 'pricing', setting.name, setting.value)
    FROM (VALUES ('idle_in_transaction_session_timeout', '30s'), ('lock_timeout', '2s'), ('statement_timeout', '10min'))
        AS setting (name, value)
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_db_role_setting known
        JOIN pg_catalog.pg_roles r ON r.oid = known.setrole AND r.rolname = :worker
        JOIN pg_catalog.pg_database d ON d.oid = known.setdatabase AND d.datname = 'pricing'
        WHERE array_to_string(known.setconfig, ',') LIKE '%' || setting.name || '=%')
    UNION ALL
    -- No login alone keeps the others out. The last places are for owner and worker (reserved_connections); what an
    -- administrator has set stays.
    SELECT 8, format('ALTER ROLE %I CONNECTION LIMIT %s', role.name, current_setting('max_connections')::integer * role.share / 100)
    FROM (VALUES (CAST(:worker AS text), 70), (CAST(:owner AS text), 20)
          UNION
          SELECT person.rolname::text, 10
          FROM pg_catalog.pg_roles person JOIN pg_catalog.pg_roles r ON r.rolname = ANY (CAST(:groups AS text[]))
          WHERE person.rolcanlogin AND NOT person.rolsuper AND pg_has_role(person.oid, r.oid, 'MEMBER')) AS role (name, share)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles known WHERE known.rolname = role.name AND known.rolconnlimit <> -1)
    UNION ALL
    SELECT 8, format('GRANT pg_use_reserved_connections TO %I', role.name)
    FROM (VALUES (CAST(:owner AS text)), (CAST(:worker AS text))) AS role (name)
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = role.name
    WHERE r.oid IS NULL OR NOT pg_has_role(r.oid, 'pg_use_reserved_connections', 'MEMBER')
) AS missing
ORDER BY step, statement;

-- name: close_large_objects
-- Statements that keep all but the superuser from making large objects in this database: they belong to no schema, and
-- nothing counts or removes them.
SELECT format('REVOKE EXECUTE ON FUNCTION pg_catalog.%s FROM PUBLIC', p.oid::regprocedure)
FROM pg_catalog.pg_proc p
WHERE p.oid IN ('pg_catalog.lo_creat(integer)'::regprocedure, 'pg_catalog.lo_create(oid)'::regprocedure,
                'pg_catalog.lo_from_bytea(oid, bytea)'::regprocedure)
  AND has_function_privilege('public', p.oid, 'EXECUTE')
ORDER BY 1;

-- name: rights
-- Who may do what on the server: roles, what they are members of, their settings, and databases.
SELECT line FROM (
    SELECT 1 AS part, r.rolname::text AS object, 0 AS place,
           format('CREATE ROLE %I %s%s%s%s%s%s%s%s;', r.rolname, CASE WHEN r.rolcanlogin THEN 'LOGIN' ELSE 'NOLOGIN' END,
                  CASE WHEN r.rolsuper THEN ' SUPERUSER' ELSE '' END, CASE WHEN r.rolcreaterole THEN ' CREATEROLE' ELSE '' END,
                  CASE WHEN r.rolcreatedb THEN ' CREATEDB' ELSE '' END, CASE WHEN r.rolreplication THEN ' REPLICATION' ELSE '' END,
                  CASE WHEN r.rolbypassrls THEN ' BYPASSRLS' ELSE '' END, CASE WHEN r.rolinherit THEN '' ELSE ' NOINHERIT' END,
                  CASE r.rolconnlimit WHEN -1 THEN '' ELSE ' CONNECTION LIMIT ' || r.rolconnlimit END) AS line
    FROM pg_catalog.pg_roles r WHERE r.rolname NOT LIKE 'pg\_%'
    UNION ALL
    SELECT 1, member.rolname::text, 1, format('GRANT %I TO %I%s;', r.rolname, member.rolname, CASE WHEN m.admin_option THEN ' WITH ADMIN OPTION' ELSE '' END)
    FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.roleid JOIN pg_catalog.pg_roles member ON member.oid = m.member
    WHERE member.rolname NOT LIKE 'pg\_%'
    UNION ALL
    SELECT 1, r.rolname::text, 2, format('ALTER ROLE %I%s SET %s;', r.rolname, ' IN DATABASE ' || d.datname, setting)
    FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_roles r ON r.oid = s.setrole LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
    CROSS JOIN LATERAL unnest(s.setconfig) AS setting
    UNION ALL
    SELECT 2, d.datname::text, 0, format('CREATE DATABASE %I OWNER %I;', d.datname, r.rolname)
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    UNION ALL
    SELECT 2, d.datname::text, 1, format('GRANT %s ON DATABASE %I TO %s;', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), d.datname,
                                         coalesce(r.rolname::text, 'PUBLIC'))
    FROM pg_catalog.pg_database d
    CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE a.grantee <> d.datdba AND d.datallowconn GROUP BY d.datname, r.rolname) AS rights
ORDER BY part, object, place, line;

-- name: rights_within
-- Who may do what in this database outside the schema pricing: schemas, and what was taken from PUBLIC.
SELECT line FROM (
    SELECT 1 AS part, format('GRANT %s ON SCHEMA %I TO %s;', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), n.nspname,
                             coalesce(r.rolname::text, 'PUBLIC')) AS line
    FROM pg_catalog.pg_namespace n
    CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE a.grantee <> n.nspowner AND n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT IN ('information_schema', 'pricing')
    GROUP BY n.nspname, r.rolname
    UNION ALL
    SELECT 2, format('REVOKE EXECUTE ON FUNCTION pg_catalog.%s FROM PUBLIC;', p.oid::regprocedure)
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname LIKE 'lo\_%' AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
) AS rights
ORDER BY part, line;

-- name: is_others
-- Whether a database belongs to another role than this session's: its owner decides what names mean in its sessions.
SELECT d.datdba <> r.oid FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.rolname = current_user
WHERE d.datname = :database;

-- name: hand_over
-- Statements that take this database from the worker, and leave it what is in it and room for more.
SELECT statement
FROM (
    SELECT 1 AS step, format('GRANT CREATE ON SCHEMA public TO %I', CAST(:worker AS text)) AS statement
    WHERE to_regnamespace('public') IS NOT NULL
    UNION ALL
    SELECT 2, format('ALTER DATABASE %I OWNER TO %I', current_database(), current_user)
    UNION ALL
    -- What the former owner was granted has passed to the new one.
    SELECT 3, format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), CAST(:worker AS text))
) AS steps
ORDER BY step, statement;
