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
    FROM (SELECT 'postgres' AS name UNION SELECT unnest(CAST(:databases AS text[]))) AS ours
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
) AS missing
ORDER BY step, statement;

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
