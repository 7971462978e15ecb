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
    FROM unnest(CAST(:databases AS text[]), CAST(:owners AS text[])) AS wanted (name, owner)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = wanted.name)
    UNION ALL
    -- As roles.set_timeouts does where the owner may.
    SELECT 4, format('ALTER ROLE %I IN DATABASE %I SET %s = %L', CAST(:worker AS text), wanted.name, setting.name, setting.value)
    FROM unnest(CAST(:databases AS text[]), CAST(:owners AS text[])) AS wanted (name, owner)
    CROSS JOIN (VALUES ('idle_in_transaction_session_timeout', '30s'), ('lock_timeout', '2s'), ('statement_timeout', '10min'))
        AS setting (name, value)
    WHERE wanted.owner = :owner AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_db_role_setting known
        JOIN pg_catalog.pg_roles r ON r.oid = known.setrole AND r.rolname = :worker
        JOIN pg_catalog.pg_database d ON d.oid = known.setdatabase AND d.datname = wanted.name
        WHERE array_to_string(known.setconfig, ',') LIKE '%' || setting.name || '=%')
) AS missing
ORDER BY step, statement;

-- name: hand_over
-- Statements that give this database, when it is the owner's, to the worker with all that is in it. REASSIGN takes the
-- owner's other databases along, so they are given back.
SELECT statement
FROM (
    SELECT 1 AS step, format('REASSIGN OWNED BY %I TO %I', CAST(:owner AS text), CAST(:worker AS text)) AS statement
    UNION ALL
    SELECT 2, format('ALTER DATABASE %I OWNER TO %I', d.datname, CAST(:owner AS text))
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    WHERE r.rolname = :owner AND d.datname <> current_database()
) AS steps
WHERE EXISTS (SELECT FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
              WHERE d.datname = current_database() AND r.rolname = :owner)
ORDER BY step, statement;
