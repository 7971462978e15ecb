-- Who may do what. Runs at the end of each upgrade, in its transaction and after all functions, so that the rules below
-- also cover tables and functions that they do not name. Only differences are written. Roles that are missing are
-- passed over; grants that an administrator made to other roles are left alone.
--
--   pricing_owner    (or another owner of the schema) changes tables, registry, providers, limits and routes
--   pricing_worker   reads everything, writes what the pipeline learns and does; writes counts only by functions
--   pricing_client   calls the functions that are named for it below, for its own login, and nothing else
--   pricing_reader   reads what holds no secret; of rows that belong to a user, its own

-- What is made by hand between two upgrades.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

DO $grants$
DECLARE
    statement text;
    personal record;
    has_worker boolean := EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pricing_worker');
    has_reader boolean := EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pricing_reader');
BEGIN
    IF has_worker THEN
        ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_worker;
        ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT, USAGE ON SEQUENCES TO pricing_worker;
        ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT EXECUTE ON FUNCTIONS TO pricing_worker;
    END IF;
    IF has_reader THEN
        ALTER DEFAULT PRIVILEGES IN SCHEMA pricing GRANT SELECT ON TABLES TO pricing_reader;
    END IF;

    -- An empty path still lets a session's own temporary types come first: a domain named timestamptz in pg_temp ran
    -- its CHECK with the owner's rights. Named, pg_temp comes last, behind pg_catalog.
    FOR statement IN
        SELECT pg_catalog.format('ALTER FUNCTION %s SET search_path = pg_temp', p.oid::pg_catalog.regprocedure)
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pricing'::pg_catalog.regnamespace AND 'search_path=""' = ANY (p.proconfig)
        ORDER BY 1
    LOOP
        EXECUTE statement;
    END LOOP;

    -- Rows that belong to a user: every table with a column user_id. Rows that name nobody are for nobody either: by
    -- the number of its transaction (xmin, and pg_locks while it lasts) a row would tell which login has written it.
    FOR personal IN
        SELECT c.oid, c.relname, c.relrowsecurity FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id' AND NOT a.attisdropped
        WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        ORDER BY c.relname
    LOOP
        IF NOT personal.relrowsecurity THEN
            EXECUTE pg_catalog.format('ALTER TABLE pricing.%I ENABLE ROW LEVEL SECURITY', personal.relname);
        END IF;
        IF has_worker
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p
                           WHERE p.polrelid = personal.oid AND p.polname = 'worker_serves_all') THEN
            EXECUTE pg_catalog.format('CREATE POLICY worker_serves_all ON pricing.%I TO pricing_worker USING (true) '
                                      'WITH CHECK (true)', personal.relname);
            EXECUTE pg_catalog.format('COMMENT ON POLICY worker_serves_all ON pricing.%I IS %L', personal.relname,
                                      'A worker acts for every user.');
        END IF;
        IF has_reader
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p
                           WHERE p.polrelid = personal.oid AND p.polname = 'reader_sees_own') THEN
            EXECUTE pg_catalog.format('CREATE POLICY reader_sees_own ON pricing.%I FOR SELECT TO pricing_reader USING '
                                      '(user_id = session_user::text)', personal.relname);
            EXECUTE pg_catalog.format('COMMENT ON POLICY reader_sees_own ON pricing.%I IS %L', personal.relname,
                                      'A reader sees no rows of another login.');
        END IF;
    END LOOP;

    FOR statement IN
        WITH grantees AS (
            SELECT r.oid, r.rolname::text AS name FROM pg_catalog.pg_roles r
            JOIN pg_catalog.pg_namespace n ON n.nspname = 'pricing' AND n.nspowner <> r.oid
            WHERE r.rolname IN ('pricing_worker', 'pricing_client', 'pricing_reader')
            UNION ALL
            SELECT 0, 'PUBLIC'),
        relations AS (
            SELECT c.oid, c.relname::text AS name, c.relkind, c.relacl, c.relowner
            FROM pg_catalog.pg_class c
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace
              AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')),
        functions AS (
            SELECT p.oid, p.oid::pg_catalog.regprocedure::text AS name, p.proname, p.provolatile, p.prosecdef, p.proacl,
                   p.proowner,
                   p.prorettype = 'trigger'::pg_catalog.regtype AS is_trigger, -- which needs no right to execute
                   pg_catalog.oidvectortypes(p.proargtypes) = 'timestamp with time zone, integer'
                       AND p.prorettype = 'boolean'::pg_catalog.regtype AS is_staleness_function
            FROM pg_catalog.pg_proc p
            WHERE p.pronamespace = 'pricing'::pg_catalog.regnamespace),
        -- Tables that a worker may not change at will; in all others it may insert, update and delete.
        worker_privileges (pattern, privileges) AS (VALUES
            -- What the owner tells the pipeline.
            ('(data_type_registry|fetchers|registry_state|user_caps|calendar_rules)', 'SELECT'),
            ('alembic_version', 'SELECT'),
            ('(exchanges|symbol_aliases)', 'SELECT'),
            ('(data_collectors|provider_capabilities|provider_limits|provider_key_limits|provider_plans|'
             'provider_declarations|provider_symbols|provider_routing|plausibility_bounds|provider_credentials|'
             'operation_types|recipients|api_tokens|feed_pairs)', 'SELECT'),
            -- Which values are in files alone; only functions with the owner's rights move any.
            ('(exported_months|moved_days)', 'SELECT'),
            -- What decides how much may be asked, and from when the clock was set back: functions with the owner's
            -- rights write it.
            ('(collector_call_log|past_calls|api_data_usage|limit_counts|shown_limits|shown_batches|'
             'watched_calendars|size_estimates|ttl_stretches|provider_state|provider_keys|duties)', 'SELECT'),
            -- What is fetched, which no refresh deletes.
            ('(latest_prices|price_history(_.*)?|instruments|documents|confirmed_pairs|corporate_actions|'
             'corporate_action_pairs)', 'SELECT, INSERT, UPDATE'),
            ('(products|product_options|pax_categories|slots|slot_prices|pax_availability)', 'SELECT, INSERT, UPDATE'),
            ('(game_versions|terminals|commodities|commodity_prices)', 'SELECT, INSERT, UPDATE'),
            ('(price_revisions|revisions)', 'SELECT, INSERT')),
        -- Encrypted secrets are nothing for a reader, and neither are messages to others and what they ask for, nor
        -- how far this database has been upgraded.
        hidden_from_readers (pattern) AS (
            VALUES ('(provider_credentials|api_tokens|feed_pairs|recipients|failing_recipients|async_operations(_.*)?|'
                    'price_alerts|price_events|alembic_version)')),
        client_functions (name) AS (VALUES
            ('pricing.heartbeat(text[],text[])'), ('pricing.unsubscribe(text[],text[])'),
            ('pricing.hold(text[],text[],numeric[])'), ('pricing.release(text[],text[])'),
            ('pricing.all_or_nothing(jsonb)'),
            ('pricing.price(text)'), ('pricing.history(text,text,date,date,timestamp with time zone,text)'),
            ('pricing.document(text,text,timestamp with time zone)'),
            ('pricing.availability(text,date,date,integer,text,boolean,timestamp with time zone)'),
            ('pricing.commodity(text,timestamp with time zone)'), ('pricing.terminal(text,timestamp with time zone)'),
            ('pricing.best_routes(text,integer)')),
        wanted AS (
            SELECT 'SCHEMA' AS kind, 'pricing' AS object, 'pricing_worker' AS grantee, 'USAGE' AS privilege
            UNION ALL
            SELECT 'SCHEMA', 'pricing', 'pricing_client', 'USAGE'
            UNION ALL
            SELECT 'SCHEMA', 'pricing', 'pricing_reader', 'USAGE'
            UNION ALL
            SELECT 'TABLE', r.name, 'pricing_worker', pg_catalog.btrim(p.privilege)
            FROM relations r
            CROSS JOIN LATERAL pg_catalog.string_to_table(
                CASE WHEN r.relkind NOT IN ('r', 'p') THEN 'SELECT'
                     ELSE coalesce((SELECT e.privileges FROM worker_privileges e
                                    WHERE r.name ~ ('^' || e.pattern || '$')),
                                   'SELECT, INSERT, UPDATE, DELETE') END, ',') AS p (privilege)
            WHERE r.relkind <> 'S'
            UNION ALL
            SELECT 'SEQUENCE', r.name, 'pricing_worker', p.privilege
            FROM relations r CROSS JOIN (VALUES ('USAGE'), ('SELECT')) AS p (privilege)
            WHERE r.relkind = 'S'
            UNION ALL
            SELECT 'TABLE', r.name, 'pricing_reader', 'SELECT'
            FROM relations r
            WHERE r.relkind <> 'S'
              AND NOT EXISTS (SELECT FROM hidden_from_readers h WHERE r.name ~ ('^' || h.pattern || '$'))
            UNION ALL
            SELECT 'FUNCTION', f.name, 'pricing_worker', 'EXECUTE'
            FROM functions f
            WHERE NOT f.is_trigger
            UNION ALL
            SELECT 'FUNCTION', f.name, 'pricing_client', 'EXECUTE'
            FROM functions f JOIN client_functions USING (name)
            UNION ALL
            -- A reader calls what changes nothing; the clock and what asks it are volatile only because time moves on.
            SELECT 'FUNCTION', f.name, 'pricing_reader', 'EXECUTE'
            FROM functions f
            WHERE (NOT f.prosecdef
                   AND (f.provolatile <> 'v'
                        OR f.is_staleness_function
                        OR f.proname IN ('clock', 'is_stale', 'is_market_stale')))
               OR f.proname IN ('price', 'history', 'document', 'availability', 'commodity', 'terminal', 'best_routes',
                                'budget', 'needs', 'why_old')),
        found AS (
            SELECT 'SCHEMA' AS kind, n.nspname::text AS object, a.grantee, a.privilege_type AS privilege
            FROM pg_catalog.pg_namespace n
            CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a
            WHERE n.nspname = 'pricing'
            UNION ALL
            SELECT CASE r.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, r.name, a.grantee, a.privilege_type
            FROM relations r
            CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(
                r.relacl,
                pg_catalog.acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner))) a
            UNION ALL
            SELECT 'FUNCTION', f.name, a.grantee, a.privilege_type
            FROM functions f
            CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(f.proacl, pg_catalog.acldefault('f', f.proowner))) a),
        known AS (
            SELECT f.kind, f.object, g.name AS grantee, f.privilege
            FROM found f JOIN grantees g ON g.oid = f.grantee),
        missing AS (
            SELECT w.* FROM wanted w JOIN grantees g ON g.name = w.grantee
            EXCEPT
            SELECT * FROM known),
        surplus AS (
            SELECT * FROM known
            EXCEPT
            SELECT * FROM wanted)
        SELECT pg_catalog.format('%s %s ON %s %s %s %s', d.verb,
                                 pg_catalog.string_agg(d.privilege, ', ' ORDER BY d.privilege), d.kind,
                                 CASE WHEN d.kind IN ('TABLE', 'SEQUENCE')
                                      THEN pg_catalog.format('pricing.%I', d.object)
                                      ELSE d.object END,
                                 CASE d.verb WHEN 'GRANT' THEN 'TO' ELSE 'FROM' END, d.grantee)
        FROM (SELECT 'REVOKE' AS verb, * FROM surplus
              UNION ALL
              SELECT 'GRANT', * FROM missing) d
        GROUP BY d.verb, d.kind, d.object, d.grantee
        ORDER BY d.verb DESC, d.kind, d.object, d.grantee
    LOOP
        EXECUTE statement;
    END LOOP;
END $grants$;
