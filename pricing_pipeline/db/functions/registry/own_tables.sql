-- Tables that users make for a data type. The pipeline fills them with the prices that it fetches, and judges staleness
-- by their rows. Views are left alone: a view shows what the pipeline stores in another shape.

CREATE OR REPLACE FUNCTION pricing.own_columns(kind pricing.data_type_registry)
RETURNS TABLE (name text, source text, is_needed boolean)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT a.attname::text,
           CASE WHEN a.attname::text = kind.symbol_column THEN 'symbol'
                WHEN a.attname::text = kind.timestamp_column THEN 'fetched_at'
                WHEN a.attname::text IN ('provider', 'call_id')
                     OR (kind.contents = 'prices'
                         AND a.attname::text IN ('price', 'amount', 'scale', 'currency', 'observed_at', 'source_text'))
                THEN a.attname::text END,
           a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = kind.table_name
      AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      AND a.attname::text <> 'cache_ttl_minutes'
$$;
COMMENT ON FUNCTION pricing.own_columns(pricing.data_type_registry) IS
    'The columns of a user''s table for a data type, which part of a price fills each (NULL = none), and whether it '
    'is required; no rows for a view.';


CREATE OR REPLACE FUNCTION pricing.check_own_table(kind pricing.data_type_registry) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    needed text := (SELECT pg_catalog.string_agg(c.name, ', ' ORDER BY c.name)
                    FROM pricing.own_columns(kind) c
                    WHERE c.source IS NULL AND c.is_needed);
BEGIN
    IF needed IS NOT NULL THEN
        RAISE EXCEPTION 'data type %: nothing fills the column(s) % of pricing.%, which cannot be empty',
            kind.data_type, needed, kind.table_name
            USING HINT = CASE kind.contents
                             WHEN 'prices'
                             THEN 'Give them a default. Filled are the symbol, the timestamp, and price, amount, '
                                  'scale, currency, observed_at, source_text, provider and call_id.'
                             ELSE 'Give them a default. Filled are the symbol, the timestamp, provider and call_id.'
                             END,
                  ERRCODE = 'not_null_violation';
    ELSIF EXISTS (SELECT FROM pricing.own_columns(kind)) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_index i
            JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = kind.table_name
              AND a.attname::text = kind.symbol_column AND i.indnkeyatts = 1
              AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL) THEN
        RAISE EXCEPTION 'data type %: pricing.% has no unique index on its column % alone',
            kind.data_type, kind.table_name, kind.symbol_column
            USING HINT = pg_catalog.format('It keeps one row for each symbol. Run: CREATE UNIQUE INDEX ON pricing.%I '
                                           '(%I). A view needs none.', kind.table_name, kind.symbol_column),
                  ERRCODE = 'invalid_table_definition';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_own_table(pricing.data_type_registry) IS
    'Refuses a user''s table that cannot be filled: without a unique index on its symbol, or with required columns '
    'that are not fetched.';


CREATE OR REPLACE FUNCTION pricing.fill_own_table(wanted_type text, symbols text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '100ms' AS $$
DECLARE
    kind pricing.data_type_registry;
    names text;
    sources text;
    changes text;
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    SELECT pg_catalog.string_agg(pg_catalog.quote_ident(c.name), ', ' ORDER BY c.name),
           pg_catalog.string_agg('s.' || c.source, ', ' ORDER BY c.name),
           pg_catalog.string_agg(pg_catalog.format('%1$I = excluded.%1$I', c.name), ', ' ORDER BY c.name)
    INTO names, sources, changes
    FROM pricing.own_columns(kind) c
    WHERE c.source IS NOT NULL;
    IF names IS NULL THEN
        RETURN; -- a view
    END IF;
    EXECUTE pg_catalog.format(
        'INSERT INTO pricing.%I (%s) SELECT %s FROM %s s WHERE s.data_type = $1 AND s.symbol = ANY ($2) '
        'ORDER BY s.symbol ON CONFLICT (%I) DO UPDATE SET %s',
        kind.table_name, names, sources,
        CASE kind.contents
            WHEN 'prices'
            THEN '(SELECT l.*, l.amount * (''1e-'' || l.scale)::numeric AS price FROM pricing.latest_prices l)'
            ELSE 'pricing.confirmed_pairs' END,
        kind.symbol_column, changes)
    USING wanted_type, symbols;
EXCEPTION
    WHEN OTHERS THEN -- we have stored the price anyway, and the next answer fills this table
        PERFORM pricing.warn(
            'fill_own_table', wanted_type,
            pg_catalog.format('pricing.%I was not filled: ', kind.table_name) || SQLERRM, SQLSTATE);
END $$;
COMMENT ON FUNCTION pricing.fill_own_table(text, text[]) IS
    'Copies latest prices into the user''s table for their data type, with the owner''s rights; a failure is only a '
    'warning.';
