-- name: setup
-- What the embedded server still lacks of its roles and databases: statements to run, in order.
SELECT statement
FROM (
    SELECT 1 AS step,
           format('CREATE ROLE %I LOGIN NOSUPERUSER PASSWORD %L', role.name, role.verifier) AS statement
    FROM unnest(CAST(:roles AS text[]), CAST(:verifiers AS text[])) AS role (name, verifier)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role.name)
    UNION ALL
    SELECT 2, format('GRANT %I TO %I', CAST(:owner AS text), CAST(:worker AS text))
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = :worker)
    UNION ALL
    SELECT 3, format('CREATE DATABASE %I OWNER %I', wanted.name, CAST(:owner AS text))
    FROM unnest(CAST(:databases AS text[])) AS wanted (name)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = wanted.name)
) AS missing
ORDER BY step, statement;
