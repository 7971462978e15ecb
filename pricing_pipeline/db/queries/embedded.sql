-- name: setup
-- The statements that make the embedded server's missing roles and databases, in order.
WITH people AS (
    SELECT DISTINCT person.oid, person.rolname
    FROM pg_catalog.pg_roles person JOIN pg_catalog.pg_roles r ON r.rolname = ANY (CAST(:groups AS text[]))
    WHERE person.rolcanlogin AND NOT person.rolsuper AND person.rolname NOT IN (:owner, :worker, :location)
      AND pg_has_role(person.oid, r.oid, 'MEMBER'))
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
    -- Only our roles may connect to our databases, and none may keep temporary tables or settings there.
    SELECT 4, format('REVOKE ALL ON DATABASE %I FROM PUBLIC', ours.name)
    FROM (VALUES ('postgres'), ('template1') UNION SELECT unnest(CAST(:databases AS text[]))) AS ours (name)
    LEFT JOIN pg_catalog.pg_database d ON d.datname = ours.name
    WHERE d.oid IS NULL OR has_database_privilege('public', d.oid, 'CONNECT, TEMPORARY')
    UNION ALL
    SELECT 5, format('GRANT CONNECT ON DATABASE %I TO %I', ours.name, role.name)
    FROM unnest(CAST(:databases AS text[])) AS ours (name)
    CROSS JOIN unnest(CAST(:groups AS text[]) || ARRAY[CAST(:worker AS text), :location]) AS role (name)
    LEFT JOIN pg_catalog.pg_database d ON d.datname = ours.name
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = role.name
    WHERE (ours.name <> 'dagster' OR role.name IN (:worker, :location))
      AND (d.oid IS NULL OR r.oid IS NULL OR NOT EXISTS (
          SELECT FROM aclexplode(d.datacl) a WHERE a.grantee = r.oid AND a.privilege_type = 'CONNECT'))
    UNION ALL
    SELECT 6, format('ALTER DATABASE %I RESET ALL', d.datname)
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    WHERE d.datname = ANY (CAST(:databases AS text[])) AND r.rolname = :worker
    UNION ALL
    -- No login alone keeps the others out, or fills the disk with temporary files. The last places are for owner and
    -- worker (reserved_connections); what an administrator has set stays.
    SELECT 7, format('ALTER ROLE %I CONNECTION LIMIT %s', role.name,
                     current_setting('max_connections')::integer * role.share / 100)
    FROM (VALUES (CAST(:worker AS text), 70), (CAST(:owner AS text), 20), (CAST(:location AS text), 40)
          UNION SELECT p.rolname::text, 10 FROM people p) AS role (name, share)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles known
                      WHERE known.rolname = role.name AND known.rolconnlimit <> -1)
    UNION ALL
    SELECT 7, format('ALTER ROLE %I SET temp_file_limit = %L', p.rolname, '1GB') FROM people p
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_db_role_setting known CROSS JOIN LATERAL unnest(known.setconfig) AS setting
        WHERE known.setrole = p.oid AND split_part(setting, '=', 1) = 'temp_file_limit')
    UNION ALL
    SELECT 7, format('GRANT pricing_reader TO %I', CAST(:location AS text))
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_auth_members m
        JOIN pg_catalog.pg_roles r ON r.oid = m.roleid AND r.rolname = 'pricing_reader'
        JOIN pg_catalog.pg_roles member ON member.oid = m.member AND member.rolname = :location)
    UNION ALL
    SELECT 7, format('GRANT pg_use_reserved_connections TO %I', role.name)
    FROM (VALUES (CAST(:owner AS text)), (CAST(:worker AS text))) AS role (name)
    LEFT JOIN pg_catalog.pg_roles r ON r.rolname = role.name
    WHERE r.oid IS NULL OR NOT pg_has_role(r.oid, 'pg_use_reserved_connections', 'MEMBER')
) AS missing
ORDER BY step, statement;

-- name: open_databases
-- Databases that take connections. What PUBLIC may do in one of them can harm the sessions of all.
SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn ORDER BY datname;

-- name: keep_from_people
-- Statements that keep from all but the superuser, owner and worker what in this database harms the whole server:
-- advisory locks fill the table of locks that all sessions share, messages fill the write-ahead log, and a loop in
-- plpgsql repeats anything. Large objects are for nobody: they belong to no schema, and nothing counts or removes them.
WITH harmful AS (
    SELECT format('FUNCTION pg_catalog.%s', p.oid::regprocedure) AS object, 'EXECUTE' AS privilege,
           p.proname NOT LIKE 'lo\_%' AS is_ours,
           coalesce(p.proacl, acldefault('f', p.proowner)) AS rights
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace
      AND (p.proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message')
           OR p.proname ~ '^pg_(try_)?advisory_(xact_)?lock(_shared)?$')
    UNION ALL
    SELECT 'LANGUAGE plpgsql', 'USAGE', true, coalesce(l.lanacl, acldefault('l', l.lanowner))
    FROM pg_catalog.pg_language l WHERE l.lanname = 'plpgsql')
SELECT format('REVOKE %s ON %s FROM PUBLIC', h.privilege, h.object) AS statement
FROM harmful h
WHERE EXISTS (SELECT FROM aclexplode(h.rights) a WHERE a.grantee = 0)
UNION ALL
SELECT format('GRANT %s ON %s TO %I', h.privilege, h.object, r.rolname)
FROM harmful h JOIN pg_catalog.pg_roles r ON r.rolname IN (:owner, :worker)
WHERE h.is_ours AND NOT EXISTS (SELECT FROM aclexplode(h.rights) a WHERE a.grantee = r.oid)
ORDER BY 1;

-- name: rights
-- Who may do what on the server: roles, what they are members of, their settings, and databases.
SELECT line FROM (
    SELECT 1 AS part, r.rolname::text AS object, 0 AS place,
           format('CREATE ROLE %I %s%s%s%s%s%s%s%s;', r.rolname,
                  CASE WHEN r.rolcanlogin THEN 'LOGIN' ELSE 'NOLOGIN' END,
                  CASE WHEN r.rolsuper THEN ' SUPERUSER' ELSE '' END,
                  CASE WHEN r.rolcreaterole THEN ' CREATEROLE' ELSE '' END,
                  CASE WHEN r.rolcreatedb THEN ' CREATEDB' ELSE '' END,
                  CASE WHEN r.rolreplication THEN ' REPLICATION' ELSE '' END,
                  CASE WHEN r.rolbypassrls THEN ' BYPASSRLS' ELSE '' END,
                  CASE WHEN r.rolinherit THEN '' ELSE ' NOINHERIT' END,
                  CASE r.rolconnlimit WHEN -1 THEN '' ELSE ' CONNECTION LIMIT ' || r.rolconnlimit END) AS line
    FROM pg_catalog.pg_roles r WHERE r.rolname NOT LIKE 'pg\_%'
    UNION ALL
    SELECT 1, member.rolname::text, 1,
           format('GRANT %I TO %I%s;', r.rolname, member.rolname,
                  CASE WHEN m.admin_option THEN ' WITH ADMIN OPTION' ELSE '' END)
    FROM pg_catalog.pg_auth_members m
    JOIN pg_catalog.pg_roles r ON r.oid = m.roleid
    JOIN pg_catalog.pg_roles member ON member.oid = m.member
    WHERE member.rolname NOT LIKE 'pg\_%'
    UNION ALL
    SELECT 1, r.rolname::text, 2, format('ALTER ROLE %I%s SET %s;', r.rolname, ' IN DATABASE ' || d.datname, setting)
    FROM pg_catalog.pg_db_role_setting s
    JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
    LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
    CROSS JOIN LATERAL unnest(s.setconfig) AS setting
    UNION ALL
    SELECT 2, d.datname::text, 0, format('CREATE DATABASE %I OWNER %I;', d.datname, r.rolname)
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    UNION ALL
    SELECT 2, d.datname::text, 1,
           format('GRANT %s ON DATABASE %I TO %s;', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type),
                  d.datname, coalesce(r.rolname::text, 'PUBLIC'))
    FROM pg_catalog.pg_database d
    CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE a.grantee <> d.datdba AND d.datallowconn
    GROUP BY d.datname, r.rolname) AS rights
ORDER BY part, object, place, line;

-- name: rights_within
-- Who may do what in this database outside the schema pricing: schemas, and what PUBLIC has lost or others were given.
WITH closed AS (
    SELECT format('FUNCTION pg_catalog.%s', p.oid::regprocedure) AS object, 'EXECUTE' AS privilege, p.proacl AS rights
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace
      AND p.proname ~ '^(lo_|pg_(try_)?advisory_|pg_logical_emit_message$)'
      AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
    UNION ALL
    SELECT format('LANGUAGE %I', l.lanname), 'USAGE', l.lanacl
    FROM pg_catalog.pg_language l
    WHERE l.lanpltrusted AND NOT has_language_privilege('public', l.oid, 'USAGE'))
SELECT line FROM (
    SELECT 1 AS part,
           format('GRANT %s ON SCHEMA %I TO %s;', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type),
                  n.nspname, coalesce(r.rolname::text, 'PUBLIC')) AS line
    FROM pg_catalog.pg_namespace n
    CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE a.grantee <> n.nspowner
      AND n.nspname NOT LIKE 'pg\_%'
      AND n.nspname NOT IN ('information_schema', 'pricing')
    GROUP BY n.nspname, r.rolname
    UNION ALL
    SELECT 2, format('REVOKE %s ON %s FROM PUBLIC;', privilege, object) FROM closed
    UNION ALL
    SELECT 3, format('GRANT %s ON %s TO %s;', c.privilege, c.object,
                     string_agg(quote_ident(r.rolname), ', ' ORDER BY r.rolname))
    FROM closed c
    CROSS JOIN LATERAL aclexplode(c.rights) a
    JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE r.rolname NOT LIKE 'pg\_%' AND NOT r.rolsuper
    GROUP BY c.privilege, c.object
    UNION ALL
    SELECT 4, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT %s ON %s TO %I;',
                     maker.rolname, n.nspname,
                     string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type),
                     CASE d.defaclobjtype
                         WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' ELSE d.defaclobjtype::text END,
                     r.rolname)
    FROM pg_catalog.pg_default_acl d
    CROSS JOIN LATERAL aclexplode(d.defaclacl) a
    JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace AND n.nspname <> 'pricing'
    JOIN pg_catalog.pg_roles maker ON maker.oid = d.defaclrole
    JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    GROUP BY maker.rolname, n.nspname, d.defaclobjtype, r.rolname
) AS rights
ORDER BY part, line;

-- name: is_others
-- Whether a database belongs to another role than this session's: its owner decides what names mean in its sessions.
SELECT d.datdba <> r.oid
FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.rolname = current_user
WHERE d.datname = :database;

-- name: let_locations_report
-- Statements that let code locations of others keep their runs and events in Dagster's tables, which the worker makes,
-- now and later.
WITH kind AS (
    SELECT * FROM (VALUES ('TABLES', 'SELECT, INSERT, UPDATE, DELETE', ARRAY['r', 'p']),
                          ('SEQUENCES', 'USAGE, SELECT', ARRAY['S'])) AS k (name, rights, kinds))
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT %s ON %s TO %I',
              CAST(:worker AS text), kind.rights, kind.name, CAST(:location AS text)) AS statement
FROM kind
WHERE to_regnamespace('public') IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_default_acl d
    JOIN pg_catalog.pg_roles maker ON maker.oid = d.defaclrole AND maker.rolname = :worker
    CROSS JOIN LATERAL aclexplode(d.defaclacl) a
    JOIN pg_catalog.pg_roles r ON r.oid = a.grantee AND r.rolname = :location
    WHERE d.defaclobjtype = ANY (CAST(kind.kinds AS "char"[])))
UNION ALL
SELECT format('GRANT %s ON ALL %s IN SCHEMA public TO %I', kind.rights, kind.name, CAST(:location AS text))
FROM kind
WHERE EXISTS (
    SELECT FROM pg_catalog.pg_class c
    WHERE c.relnamespace = to_regnamespace('public') AND c.relkind = ANY (CAST(kind.kinds AS "char"[]))
      AND NOT EXISTS (
          SELECT FROM aclexplode(c.relacl) a
          JOIN pg_catalog.pg_roles r ON r.oid = a.grantee AND r.rolname = :location));

-- name: hand_over
-- Statements that take this database from the worker, but leave it its objects, and the right to create more.
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
