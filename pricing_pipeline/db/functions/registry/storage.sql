-- The storage of a data type, which appears and vanishes with its row in the registry.
--
-- Prices have a history and latest prices. All else has tables of its own, and pricing.confirmed_pairs says when each
-- pair was last confirmed: staleness, schedules and reports go by that and by nothing else.

CREATE OR REPLACE FUNCTION pricing.own_view(contents text, data_type text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT v.prefix || own_view.data_type
    FROM (VALUES ('prices', 'latest_price_'), ('documents', 'document_'), ('inventory', 'inventory_'),
                 ('commodities', 'commodity_')) AS v (contents, prefix)
    WHERE v.contents = own_view.contents
$$;
COMMENT ON FUNCTION pricing.own_view(text, text) IS
    'The name of a data type''s view, unless its row names another table.';


CREATE OR REPLACE FUNCTION pricing.apply_fetcher() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    asked pricing.fetchers;
BEGIN
    SELECT * INTO asked FROM pricing.fetchers f WHERE f.fetcher = NEW.fetcher;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'data type %: there is no fetcher %', NEW.data_type, NEW.fetcher
            USING HINT = 'The fetchers are '
                      || (SELECT pg_catalog.string_agg(f.fetcher, ', ' ORDER BY f.fetcher) FROM pricing.fetchers f)
                      || '.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    NEW.contents := asked.contents;
    IF NEW.staleness_function = '' THEN
        NEW.staleness_function := CASE WHEN pricing.is_daily(NEW.fetcher) THEN 'is_market_stale'
                                       ELSE 'is_data_stale' END;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.fetcher, NEW.asset_class) = (OLD.fetcher, OLD.asset_class) THEN
        RETURN NEW; -- an existing type may go on, or be retired
    END IF;
    IF NEW.asset_class <> ALL (asked.asset_classes) THEN
        RAISE EXCEPTION 'data type %: the fetcher % does not fit the asset class %: only instruments of % have what it '
                        'asks for',
            NEW.data_type, NEW.fetcher, NEW.asset_class, pg_catalog.array_to_string(asked.asset_classes, ', ')
            USING HINT = 'Name another fetcher (quote and daily_bars fit every class), or the asset class of the '
                         'instruments that are meant.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.apply_fetcher() IS
    'Refuses a data type whose fetcher is unknown or does not fit its asset class, and fills in its contents and '
    'staleness function.';

CREATE TRIGGER apply_fetcher
    BEFORE INSERT OR UPDATE ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.apply_fetcher();


CREATE OR REPLACE FUNCTION pricing.check_table(kind pricing.data_type_registry, is_new boolean) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    missing text;
BEGIN
    -- A row may name a table or view of this schema that its owner made, with the columns that the staleness check
    -- needs. Only three of the pipeline's own have these columns, and they hold all types.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                   WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = kind.table_name) THEN
        IF kind.has_own_table OR NOT is_new THEN
            RAISE EXCEPTION 'data type %: table pricing.% does not exist', kind.data_type, kind.table_name
                USING HINT = 'Create the table first, or leave table_name empty to get one.',
                      ERRCODE = 'undefined_table';
        END IF;
    ELSE
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = 'pricing' AND c.relname::text = kind.table_name AND c.relowner = n.nspowner
                         AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
                         AND kind.table_name NOT IN ('latest_prices', 'confirmed_pairs', 'latest_answers')) THEN
            RAISE EXCEPTION 'data type %: pricing.% is not a table or view that a data type may name',
                kind.data_type, kind.table_name
                USING HINT = 'Name a table or view of your own that the owner of the schema made.',
                      ERRCODE = 'wrong_object_type';
        END IF;
        SELECT pg_catalog.string_agg(wanted.name, ', ' ORDER BY wanted.name) INTO missing
        FROM (VALUES (kind.symbol_column, ARRAY['text', 'varchar']), (kind.timestamp_column, ARRAY['timestamptz']),
                     ('cache_ttl_minutes', ARRAY['integer'])) AS wanted (name, types)
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = kind.table_name
              AND a.attname::text = wanted.name AND a.attnum > 0 AND NOT a.attisdropped
              AND a.atttypid = ANY (wanted.types::pg_catalog.regtype[]));
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: pricing.% lacks column(s) %', kind.data_type, kind.table_name, missing
                USING HINT = 'symbol_column (text), timestamp_column (timestamptz) and cache_ttl_minutes (integer) '
                             'must exist.',
                      ERRCODE = 'undefined_column';
        END IF;
        IF kind.has_own_table THEN
            PERFORM pricing.check_own_table(kind);
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_table(pricing.data_type_registry, boolean) IS
    'Refuses a data type whose table or view is missing, not the owner''s, or unfit for the staleness check.';


CREATE OR REPLACE FUNCTION pricing.check_data_type() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own_view text := pricing.own_view(NEW.contents, NEW.data_type);
    cron_fault text;
BEGIN
    -- A function from before this check existed may stay, so that the type can be retired.
    IF NEW.refresh_schedule IS DISTINCT FROM OLD.refresh_schedule THEN
        cron_fault := pricing.cron_fault(NEW.refresh_schedule);
        IF cron_fault IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: the schedule % %',
                NEW.data_type, pg_catalog.quote_literal(NEW.refresh_schedule), cron_fault
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.data_type <> OLD.data_type THEN
            RAISE EXCEPTION 'data type % cannot be renamed', OLD.data_type
                USING HINT = 'Add the new name and retire this one.', ERRCODE = 'invalid_parameter_value';
        ELSIF NEW.contents <> OLD.contents THEN
            RAISE EXCEPTION 'data type % cannot become one of %', OLD.data_type, NEW.contents
                USING HINT = 'Its storage is of the other kind. Add a new data type and retire this one.',
                      ERRCODE = 'invalid_parameter_value';
        ELSIF (NEW.table_name, NEW.symbol_column, NEW.timestamp_column, NEW.staleness_function, NEW.schedule_timezone)
              = (OLD.table_name, OLD.symbol_column, OLD.timestamp_column, OLD.staleness_function, OLD.schedule_timezone)
              AND NEW.is_active <= OLD.is_active THEN
            RETURN NEW; -- a type whose table has vanished can still be retired
        END IF;
    ELSIF NEW.contents = 'prices' AND EXISTS (
            SELECT FROM pg_catalog.pg_class c
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace
              AND c.relname::text = 'price_history_' || NEW.data_type
              AND NOT EXISTS (
                  SELECT FROM pg_catalog.pg_inherits i
                  WHERE i.inhrelid = c.oid AND i.inhparent = 'pricing.price_history'::pg_catalog.regclass)) THEN
        -- The index of one type's history could be called as another type's history.
        RAISE EXCEPTION 'data type %: the name pricing.price_history_% is taken', NEW.data_type, NEW.data_type
            USING HINT = 'Choose another name for the data type.', ERRCODE = 'duplicate_table';
    END IF;

    IF NEW.table_name IN ('', own_view) THEN
        NEW.table_name := own_view;
        NEW.symbol_column := 'symbol';
        NEW.timestamp_column := 'fetched_at';
    END IF;
    NEW.has_own_table := NEW.table_name <> own_view;
    PERFORM pricing.check_table(NEW, is_new => TG_OP = 'INSERT');
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = 'pricing' AND p.proname::text = NEW.staleness_function AND p.proowner = n.nspowner
                     AND p.proargtypes::text = '1184 23' AND p.prorettype = 'boolean'::pg_catalog.regtype
                     AND p.prokind = 'f' AND NOT p.proretset) THEN
        RAISE EXCEPTION 'data type %: staleness function pricing.%(timestamptz, integer) does not exist',
            NEW.data_type, NEW.staleness_function
            USING HINT = 'Use is_data_stale, or let the owner of the schema create the function, returning boolean, '
                         'first.',
                  ERRCODE = 'undefined_function';
    END IF;
    IF NOT pricing.is_time_zone(NEW.schedule_timezone) THEN
        RAISE EXCEPTION 'data type %: unknown time zone %', NEW.data_type, NEW.schedule_timezone
            USING HINT = 'Use a name such as UTC or Asia/Kolkata.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_data_type() IS
    'Refuses a registry row with a table, staleness function, time zone or schedule that is not allowed.';

CREATE TRIGGER check_data_type
    BEFORE INSERT OR UPDATE ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.check_data_type();


CREATE OR REPLACE FUNCTION pricing.make_storage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    history text := 'price_history_' || NEW.data_type;
BEGIN
    -- LIKE + ATTACH: CREATE ... PARTITION OF would lock out every writer of price_history meanwhile.
    IF NEW.contents = 'prices' AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', history)) IS NULL THEN
        EXECUTE pg_catalog.format('CREATE TABLE pricing.%I (LIKE pricing.price_history INCLUDING ALL)', history);
        EXECUTE pg_catalog.format('ALTER TABLE pricing.price_history ATTACH PARTITION pricing.%I FOR VALUES IN (%L)',
                                  history, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON TABLE pricing.%I IS %L', history, 'History of ' || NEW.data_type || '.');
    END IF;
    IF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        PERFORM pricing.make_view(NEW.contents, NEW.table_name, NEW.data_type);
    END IF;
    -- Without a route nothing would be fetched; the first provider able and willing to serve the fetcher gets a visible
    -- rule.
    INSERT INTO pricing.provider_routing (data_type, provider)
    SELECT NEW.data_type, c.provider
    FROM pricing.provider_capabilities c JOIN pricing.data_collectors d USING (provider)
    WHERE c.fetcher = NEW.fetcher AND c.routes_new_types AND d.is_active
    ORDER BY c.provider LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.make_storage() IS
    'Gives a new data type its view, its history if it has prices, and a route.';

CREATE TRIGGER make_storage
    AFTER INSERT ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.make_storage();


CREATE OR REPLACE FUNCTION pricing.make_view(contents text, view_name text, data_type text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    source text := CASE contents WHEN 'prices' THEN 'latest_prices' ELSE 'confirmed_pairs' END;
    statement text;
BEGIN
    EXECUTE pg_catalog.format(
        'CREATE VIEW pricing.%I AS SELECT %s FROM pricing.%I p WHERE p.data_type = %L', view_name,
        CASE contents
            WHEN 'prices'
            THEN 'p.symbol, p.amount, p.scale, p.currency, p.observed_at, p.fetched_at, p.provider, p.call_id, '
                 'p.source_text, p.cache_ttl_minutes, p.amount * (''1e-'' || p.scale)::numeric AS price'
            WHEN 'documents'
            THEN 'p.symbol, (SELECT jsonb_agg(d.body ORDER BY d.period DESC) FROM pricing.documents d '
                 'WHERE (d.data_type, d.symbol) = (p.data_type, p.symbol) AND d.body IS NOT NULL) AS documents, '
                 'p.fetched_at, p.provider, p.call_id, p.cache_ttl_minutes'
            ELSE 'p.symbol, p.fetched_at, p.provider, p.call_id, p.cache_ttl_minutes' END,
        source, data_type);
    EXECUTE pg_catalog.format(
        'COMMENT ON VIEW pricing.%I IS %L', view_name,
        CASE contents WHEN 'prices' THEN 'Latest prices of ' || data_type || '.'
                      WHEN 'documents' THEN 'Documents of ' || data_type || '.'
                      ELSE 'When each pair of ' || data_type || ' was last confirmed.' END);
    FOR statement IN
        SELECT pg_catalog.format(
            'COMMENT ON COLUMN pricing.%I.%I IS %L', view_name, v.attname,
            CASE v.attname WHEN 'price' THEN 'The price, exact: amount / 10^scale.'
                           WHEN 'documents' THEN 'Current documents, the newest period first.'
                           ELSE pg_catalog.col_description(c.attrelid, c.attnum) END)
        FROM pg_catalog.pg_attribute v
        LEFT JOIN pg_catalog.pg_attribute c
            ON c.attrelid = pg_catalog.format('pricing.%I', source)::pg_catalog.regclass AND c.attname = v.attname
        WHERE v.attrelid = pg_catalog.format('pricing.%I', view_name)::pg_catalog.regclass
        ORDER BY v.attnum
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.make_view(text, text, text) IS
    'Makes the view of a data type: its latest prices, its current documents, or when its pairs were confirmed.';


CREATE OR REPLACE FUNCTION pricing.drop_storage() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.confirmed_pairs p WHERE p.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % has data or is watched and cannot be deleted', OLD.data_type
            USING HINT = pg_catalog.format('Retire it instead: UPDATE pricing.data_type_registry '
                                           'SET is_active = false WHERE data_type = %L', OLD.data_type),
                  ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.contents = 'prices' THEN
        EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
    END IF;
    EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', pricing.own_view(OLD.contents, OLD.data_type));
    RETURN OLD;
EXCEPTION WHEN lock_not_available THEN
    -- Dropping its table locks all histories for a moment, and later sessions would queue behind that lock.
    RAISE EXCEPTION 'data type % cannot be deleted now: somebody is reading or storing prices in a transaction that '
                    'stays open', OLD.data_type
        USING HINT = 'Try again; docs/operations.md, "Something is locked", says how to find the session.',
              ERRCODE = 'lock_not_available';
END $$;
COMMENT ON FUNCTION pricing.drop_storage() IS
    'Refuses to delete a data type that has data; otherwise removes its empty storage.';

CREATE TRIGGER drop_storage
    BEFORE DELETE ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.drop_storage();


CREATE OR REPLACE FUNCTION pricing.confirm_pairs(
    wanted_type text, symbols text[], from_provider text, from_call bigint) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.confirmed_pairs AS p (data_type, symbol, fetched_at, provider, call_id)
    SELECT wanted_type, u.symbol, pricing.clock(), from_provider, from_call
    FROM (SELECT DISTINCT s AS symbol FROM unnest(symbols) AS s) u
    ORDER BY u.symbol
    ON CONFLICT (data_type, symbol) DO UPDATE
        SET fetched_at = excluded.fetched_at, provider = excluded.provider, call_id = excluded.call_id;
    SELECT pricing.finish_pending(wanted_type, symbols);
    SELECT pricing.fill_own_table(r.data_type, confirm_pairs.symbols)
    FROM pricing.data_type_registry r
    WHERE r.data_type = wanted_type AND r.has_own_table
$$;
COMMENT ON FUNCTION pricing.confirm_pairs(text, text[], text, bigint) IS
    'Records that a provider has answered for these pairs, whatever it said, and finishes their unclaimed tasks.';
