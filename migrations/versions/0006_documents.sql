-- Documents: what providers say about a company and not about its price, with history.

ALTER TABLE pricing.data_type_registry
    DROP CONSTRAINT fetcher_is_known,
    ADD CONSTRAINT fetcher_is_known
        CHECK (fetcher IN ('quote', 'daily_bars', 'nav', 'profile', 'earnings', 'income_statement')),
    ADD CONSTRAINT documents_have_no_backfill
        CHECK (fetcher IN ('quote', 'daily_bars', 'nav') OR history_from IS NULL);
COMMENT ON COLUMN pricing.data_type_registry.table_name IS
    'View or table the staleness function judges; empty = the view latest_price_<data_type>, of a document type document_<data_type>, made by a trigger.';

ALTER TABLE pricing.provider_capabilities ADD COLUMN routes_new_types boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN pricing.provider_capabilities.routes_new_types IS
    'Whether a new data type of this fetcher may find its route to this provider by itself. False = only who says so comes here.';

CREATE TABLE pricing.documents (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    period      date NOT NULL DEFAULT '-infinity',
    body        jsonb CONSTRAINT body_is_an_object CHECK (jsonb_typeof(body) = 'object'),
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, period)
);
COMMENT ON TABLE pricing.documents IS 'Current belief: one document for each pair and fiscal period. When a pair was last confirmed is in document_pairs.';
COMMENT ON COLUMN pricing.documents.data_type IS 'What kind of document it is.';
COMMENT ON COLUMN pricing.documents.symbol IS 'Whom it is about.';
COMMENT ON COLUMN pricing.documents.period IS 'The day the provider files it under: of an earnings report, or the last of a fiscal year; -infinity = it is about no period.';
COMMENT ON COLUMN pricing.documents.body IS 'The answer as it was checked, with the provider''s own names and digits; NULL = the provider has withdrawn it.';
COMMENT ON COLUMN pricing.documents.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.documents.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.documents.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.document_revisions (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    period      date NOT NULL,
    body        jsonb,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    revised_at  timestamptz NOT NULL,
    revised_by  bigint NOT NULL,
    PRIMARY KEY (data_type, symbol, period, revised_at)
);
COMMENT ON TABLE pricing.document_revisions IS 'What we believed before: the old body of every document that changed, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.document_revisions.data_type IS 'What kind of document it was.';
COMMENT ON COLUMN pricing.document_revisions.symbol IS 'Whom it was about.';
COMMENT ON COLUMN pricing.document_revisions.period IS 'The day the provider filed it under; -infinity = it was about no period.';
COMMENT ON COLUMN pricing.document_revisions.body IS 'What we believed; NULL = the provider had withdrawn it.';
COMMENT ON COLUMN pricing.document_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.document_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.document_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.document_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.document_revisions.revised_by IS 'The call that brought another body, or none.';

CREATE TABLE pricing.document_pairs (
    data_type         text NOT NULL,
    symbol            text NOT NULL,
    fetched_at        timestamptz NOT NULL,
    provider          text NOT NULL,
    call_id           bigint NOT NULL,
    cache_ttl_minutes integer CONSTRAINT document_ttl_is_positive CHECK (cache_ttl_minutes > 0),
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.document_pairs IS 'When the documents of each pair were last confirmed: what its staleness is judged by.';
COMMENT ON COLUMN pricing.document_pairs.data_type IS 'What kind of documents.';
COMMENT ON COLUMN pricing.document_pairs.symbol IS 'Whom they are about.';
COMMENT ON COLUMN pricing.document_pairs.fetched_at IS 'When a provider last answered; advances with every valid answer.';
COMMENT ON COLUMN pricing.document_pairs.provider IS 'Who answered.';
COMMENT ON COLUMN pricing.document_pairs.call_id IS 'The call that was answered: collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.document_pairs.cache_ttl_minutes IS 'Overrides the registry''s TTL for this pair; refreshes never touch it.';
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.document_pairs
    FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();

CREATE VIEW pricing.latest_answers AS
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.latest_prices
    UNION ALL
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.document_pairs;
COMMENT ON VIEW pricing.latest_answers IS 'When each pair was last confirmed, of whatever kind it is.';
COMMENT ON COLUMN pricing.latest_answers.data_type IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.symbol IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.latest_answers.cache_ttl_minutes IS 'TTL of this pair, if it has its own.';


-- ── Registry ───────────────────────────────────────────────────────────────────────────────────────

CREATE OR REPLACE FUNCTION pricing.check_data_type() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own_view text := CASE WHEN pricing.is_document(NEW.fetcher) THEN 'document_' ELSE 'latest_price_' END || NEW.data_type;
    missing text;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.data_type <> OLD.data_type THEN
            RAISE EXCEPTION 'data type % cannot be renamed', OLD.data_type
                USING HINT = 'Add the new name and retire this one.', ERRCODE = 'invalid_parameter_value';
        ELSIF pricing.is_document(NEW.fetcher) <> pricing.is_document(OLD.fetcher) THEN
            RAISE EXCEPTION 'data type % cannot become one of %', OLD.data_type,
                CASE WHEN pricing.is_document(NEW.fetcher) THEN 'documents' ELSE 'prices' END
                USING HINT = 'Its storage is of the other kind. Add a new data type and retire this one.',
                      ERRCODE = 'invalid_parameter_value';
        ELSIF (NEW.table_name, NEW.symbol_column, NEW.timestamp_column, NEW.staleness_function, NEW.schedule_timezone)
              = (OLD.table_name, OLD.symbol_column, OLD.timestamp_column, OLD.staleness_function, OLD.schedule_timezone)
              AND NEW.is_active <= OLD.is_active THEN
            RETURN NEW; -- a type whose table has vanished can still be retired
        END IF;
    ELSIF NOT pricing.is_document(NEW.fetcher) AND EXISTS (SELECT FROM pg_catalog.pg_class c
                  WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = 'price_history_' || NEW.data_type
                    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i
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
    -- What may be named: a table or view of this schema that its owner made, in the shape that staleness can be judged by.
    -- Of the pipeline's own only three have that shape, and they hold all types.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                   WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name) THEN
        IF NEW.table_name <> own_view OR TG_OP = 'UPDATE' THEN
            RAISE EXCEPTION 'data type %: table pricing.% does not exist', NEW.data_type, NEW.table_name
                USING HINT = 'Create the table first, or leave table_name empty to get one.', ERRCODE = 'undefined_table';
        END IF;
    ELSE
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = 'pricing' AND c.relname::text = NEW.table_name AND c.relowner = n.nspowner
                         AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NEW.table_name NOT IN ('latest_prices', 'document_pairs', 'latest_answers')) THEN
            RAISE EXCEPTION 'data type %: pricing.% is no table or view that a data type may name', NEW.data_type, NEW.table_name
                USING HINT = 'Name a table or view of your own that the owner of the schema made.', ERRCODE = 'wrong_object_type';
        END IF;
        SELECT pg_catalog.string_agg(wanted.name, ', ' ORDER BY wanted.name) INTO missing
        FROM (VALUES (NEW.symbol_column, ARRAY['text', 'varchar']), (NEW.timestamp_column, ARRAY['timestamptz']),
                     ('cache_ttl_minutes', ARRAY['integer'])) AS wanted (name, types)
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name
              AND a.attname::text = wanted.name AND a.attnum > 0 AND NOT a.attisdropped
              AND a.atttypid = ANY (wanted.types::pg_catalog.regtype[]));
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: pricing.% lacks column(s) %', NEW.data_type, NEW.table_name, missing
                USING HINT = 'symbol_column (text), timestamp_column (timestamptz) and cache_ttl_minutes (integer) must exist.',
                      ERRCODE = 'undefined_column';
        END IF;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = 'pricing' AND p.proname::text = NEW.staleness_function AND p.proowner = n.nspowner
                     AND p.proargtypes::text = '1184 23' AND p.prorettype = 'boolean'::pg_catalog.regtype
                     AND p.prokind = 'f' AND NOT p.proretset) THEN
        RAISE EXCEPTION 'data type %: staleness function pricing.%(timestamptz, integer) does not exist',
            NEW.data_type, NEW.staleness_function
            USING HINT = 'Use is_data_stale, or let the owner of the schema create the function, returning boolean, first.',
                  ERRCODE = 'undefined_function';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE name = NEW.schedule_timezone) THEN
        RAISE EXCEPTION 'data type %: unknown time zone %', NEW.data_type, NEW.schedule_timezone
            USING HINT = 'Use a name such as UTC or Asia/Kolkata.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION pricing.make_storage() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    history text := 'price_history_' || NEW.data_type;
    is_document boolean := pricing.is_document(NEW.fetcher);
    about record;
BEGIN
    IF is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT p.symbol, '
            '(SELECT jsonb_agg(d.body ORDER BY d.period DESC) FROM pricing.documents d '
            'WHERE (d.data_type, d.symbol) = (p.data_type, p.symbol) AND d.body IS NOT NULL) AS documents, '
            'p.fetched_at, p.provider, p.call_id, p.cache_ttl_minutes FROM pricing.document_pairs p WHERE p.data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name, 'Documents of ' || NEW.data_type || '.');
        FOR about IN
            SELECT v.attname, coalesce(pg_catalog.col_description(p.attrelid, p.attnum), 'Current documents, the newest period first.') AS words
            FROM pg_catalog.pg_attribute v LEFT JOIN pg_catalog.pg_attribute p
                ON p.attrelid = 'pricing.document_pairs'::pg_catalog.regclass AND p.attname = v.attname
            WHERE v.attrelid = pg_catalog.format('pricing.%I', NEW.table_name)::pg_catalog.regclass ORDER BY v.attnum
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN pricing.%I.%I IS %L', NEW.table_name, about.attname, about.words);
        END LOOP;
    END IF;
    -- LIKE + ATTACH: CREATE ... PARTITION OF would lock out every writer of price_history meanwhile.
    IF NOT is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', history)) IS NULL THEN
        EXECUTE pg_catalog.format('CREATE TABLE pricing.%I (LIKE pricing.price_history INCLUDING ALL)', history);
        EXECUTE pg_catalog.format('ALTER TABLE pricing.price_history ATTACH PARTITION pricing.%I FOR VALUES IN (%L)',
                                  history, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON TABLE pricing.%I IS %L', history, 'History of ' || NEW.data_type || '.');
    END IF;
    IF NOT is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT symbol, amount, scale, currency, observed_at, fetched_at, provider, '
            'call_id, source_text, cache_ttl_minutes FROM pricing.latest_prices WHERE data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name,
                                  'Latest prices of ' || NEW.data_type || '.');
        PERFORM pricing.comment_columns(NEW.table_name);
    END IF;
    -- Without a route nothing would be fetched; the first provider able and willing to serve the fetcher gets a visible rule.
    INSERT INTO pricing.provider_routing (data_type, provider)
    SELECT NEW.data_type, c.provider
    FROM pricing.provider_capabilities c JOIN pricing.data_collectors d USING (provider)
    WHERE c.fetcher = NEW.fetcher AND c.routes_new_types AND d.is_active
    ORDER BY c.provider LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.make_storage() IS
    'Gives a new data type its history partition and its view of latest prices, or its view of documents; and a route.';

CREATE OR REPLACE FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.document_pairs p WHERE p.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % holds prices or documents or is watched and cannot be deleted', OLD.data_type
            USING HINT = 'Retire it instead: UPDATE pricing.data_type_registry SET is_active = false.',
                  ERRCODE = 'restrict_violation';
    END IF;
    IF pricing.is_document(OLD.fetcher) THEN
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'document_' || OLD.data_type);
    ELSE
        EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'latest_price_' || OLD.data_type);
    END IF;
    RETURN OLD;
END $$;
