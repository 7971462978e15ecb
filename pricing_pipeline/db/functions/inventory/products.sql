-- Stores what providers answer about products. Their slots: slots.sql.

CREATE OR REPLACE FUNCTION pricing.merge_products(
    wanted_type text, from_provider text, from_call bigint, answered text[], products jsonb, options jsonb,
    categories jsonb)
RETURNS TABLE (symbol text, added bigint, revised bigint)
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    kinds CONSTANT text[] := ARRAY(SELECT p->>'symbol' FROM jsonb_array_elements(products) p ORDER BY 1);
    -- Only zones that differ from the stored ones: an answer without news looks up none.
    zones CONSTANT text[] := pricing.known_time_zones(ARRAY(
        SELECT DISTINCT u.time_zone FROM jsonb_to_recordset(products) AS u (symbol text, time_zone text)
        LEFT JOIN pricing.products p USING (symbol)
        WHERE u.time_zone <> coalesce(p.time_zone, '')));
    added_symbols text[];
    revised_symbols text[];
    moved text[];
    overtaken text[];
BEGIN
    INSERT INTO pricing.products AS p (symbol, provider, name, time_zone, call_id, recorded_at)
    SELECT u.symbol, from_provider, u.name, CASE WHEN u.time_zone = ANY (zones) THEN u.time_zone END,
           from_call, pricing.clock()
    FROM jsonb_to_recordset(products) AS u (symbol text, name text, time_zone text)
    WHERE NOT EXISTS (SELECT FROM pricing.products x WHERE x.symbol = u.symbol)
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    -- Every writer of a product locks its row, so answers about it take turns.
    PERFORM FROM pricing.products p WHERE p.symbol = ANY (kinds) ORDER BY p.symbol FOR NO KEY UPDATE;
    now_ := pricing.clock();
    overtaken := pricing.overtaken_products(kinds, from_call);
    IF cardinality(overtaken) > 0 THEN
        products := pricing.without_products(products, overtaken);
        options := pricing.without_products(options, overtaken);
        categories := pricing.without_products(categories, overtaken);
    END IF;
    added_symbols := ARRAY(SELECT p.symbol FROM pricing.products p
                           WHERE p.symbol = ANY (kinds) AND p.call_id = from_call);
    WITH said AS (
        -- Without a zone that the database knows, the product keeps its zone.
        SELECT u.symbol, u.name, pricing.zone_of(p) AS before,
               CASE WHEN u.time_zone = ANY (zones) THEN u.time_zone ELSE p.time_zone END AS time_zone
        FROM jsonb_to_recordset(products) AS u (symbol text, name text, time_zone text)
        JOIN pricing.products p USING (symbol)),
    changed AS (
        UPDATE pricing.products p
        SET provider = from_provider, name = s.name, time_zone = s.time_zone, is_listed = true, call_id = from_call,
            recorded_at = now_
        FROM said s
        WHERE p.symbol = s.symbol
          AND (p.provider, p.name, p.time_zone, p.is_listed) IS DISTINCT FROM (from_provider, s.name, s.time_zone, true)
        RETURNING p.symbol, pricing.zone_of(p) IS DISTINCT FROM s.before AS is_moved)
    SELECT coalesce(array_agg(c.symbol), '{}'), array_agg(c.symbol) FILTER (WHERE c.is_moved)
    INTO revised_symbols, moved FROM changed c;
    revised_symbols := revised_symbols || pricing.merge_product_options(from_provider, from_call, now_, options)
                                       || pricing.merge_pax_categories(from_provider, from_call, now_, categories);
    PERFORM pricing.place_slots(m.symbol, from_call, now_) FROM unnest(moved) AS m (symbol) ORDER BY m.symbol;
    PERFORM pricing.confirm_pairs(wanted_type, answered, from_provider, from_call);
    PERFORM pricing.verify_instruments(wanted_type, kinds, NULL);
    RETURN QUERY
    SELECT a.symbol, (a.symbol = ANY (added_symbols))::integer::bigint,
           (a.symbol <> ALL (added_symbols) AND a.symbol = ANY (revised_symbols))::integer::bigint
    FROM (SELECT DISTINCT u.symbol FROM unnest(answered) AS u (symbol)) a ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.merge_products(text, text, bigint, text[], jsonb, jsonb, jsonb) IS
    'Stores products from one call with their options and categories, keeps old values as revisions, and returns for '
    'each symbol whether it is new or changed.';


CREATE OR REPLACE FUNCTION pricing.overtaken_products(symbols text[], from_call bigint) RETURNS text[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- A call about slots, which may take minutes, asks for the product first.
    SELECT ARRAY(
        SELECT s FROM unnest(symbols) AS s
        WHERE EXISTS (SELECT FROM pricing.slot_windows w WHERE w.symbol = s AND w.call_id > from_call)
           OR EXISTS (SELECT FROM pricing.data_type_registry r JOIN pricing.confirmed_pairs c USING (data_type)
                      WHERE r.fetcher = 'product' AND c.symbol = s AND c.call_id > from_call))
$$;
COMMENT ON FUNCTION pricing.overtaken_products(text[], bigint) IS
    'Which of the products already have an answer from a later call.';


CREATE OR REPLACE FUNCTION pricing.without_products(rows_ jsonb, symbols text[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT coalesce(jsonb_agg(r), '[]') FROM jsonb_array_elements(rows_) r WHERE r->>'symbol' <> ALL (symbols)
$$;
COMMENT ON FUNCTION pricing.without_products(jsonb, text[]) IS 'The rows of an answer without those of these products.';


CREATE OR REPLACE FUNCTION pricing.unlist_products(refused text[], from_provider text, from_call bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    unlisted text[];
BEGIN
    INSERT INTO pricing.products (symbol, provider, is_listed, call_id, recorded_at)
    SELECT s, from_provider, false, from_call, pricing.clock() FROM unnest(refused) AS s
    WHERE NOT EXISTS (SELECT FROM pricing.products p WHERE p.symbol = s)
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    PERFORM FROM pricing.products p WHERE p.symbol = ANY (refused) ORDER BY p.symbol FOR NO KEY UPDATE;
    WITH gone AS (
        UPDATE pricing.products p SET is_listed = false, call_id = from_call, recorded_at = pricing.clock()
        WHERE p.symbol = ANY (refused) AND p.is_listed
          -- The provider that has described the product last, or listed its slots last.
          AND (p.provider = from_provider
               OR from_provider = (SELECT w.provider FROM pricing.slot_windows w
                                   WHERE w.symbol = p.symbol
                                   ORDER BY w.call_id DESC LIMIT 1))
          AND p.symbol <> ALL (pricing.overtaken_products(refused, from_call))
          AND coalesce(p.call_id < from_call, true)
        RETURNING p.symbol)
    SELECT array_agg(g.symbol) INTO unlisted FROM gone g;
    PERFORM pricing.note_shared_changes(u, f, 1)
    FROM unnest(unlisted) AS u CROSS JOIN unnest(ARRAY['product', 'slots']) AS f;
END $$;
COMMENT ON FUNCTION pricing.unlist_products(text[], text, bigint) IS
    'Marks products as no longer listed by their provider, unless a later call lists them.';


CREATE OR REPLACE FUNCTION pricing.merge_product_options(
    from_provider text, from_call bigint, now_ timestamptz, options jsonb)
RETURNS text[]
LANGUAGE sql SET search_path = '' AS $$
    WITH said AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(options) AS u (symbol text, option_id text, name text, is_default boolean)),
    news AS MATERIALIZED (
        SELECT s.symbol, s.option_id, s.name, s.is_default, true AS is_listed FROM said s
        UNION ALL
        SELECT o.symbol, o.option_id, o.name, o.is_default, false FROM pricing.product_options o
        WHERE o.symbol IN (SELECT s.symbol FROM said s) AND o.provider = from_provider
          AND NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.option_id) = (o.symbol, o.option_id))),
    changed AS (
        UPDATE pricing.product_options o
        SET name = n.name, is_default = n.is_default, is_listed = n.is_listed, call_id = from_call, recorded_at = now_
        FROM news n
        WHERE (o.symbol, o.provider, o.option_id) = (n.symbol, from_provider, n.option_id)
          AND (o.name, o.is_default, o.is_listed) IS DISTINCT FROM (n.name, n.is_default, n.is_listed)
        RETURNING o.symbol),
    added AS (
        INSERT INTO pricing.product_options AS o (symbol, provider, option_id, name, is_default, call_id, recorded_at)
        SELECT n.symbol, from_provider, n.option_id, n.name, n.is_default, from_call, now_ FROM news n
        WHERE NOT EXISTS (SELECT FROM pricing.product_options x
                          WHERE (x.symbol, x.provider, x.option_id) = (n.symbol, from_provider, n.option_id))
        ORDER BY 1, 3
        RETURNING o.symbol)
    SELECT coalesce(array_agg(DISTINCT w.symbol), '{}')
    FROM (SELECT c.symbol FROM changed c UNION ALL SELECT a.symbol FROM added a) w
$$;
COMMENT ON FUNCTION pricing.merge_product_options(text, bigint, timestamptz, jsonb) IS
    'Stores the options that products list, marks those no longer listed, and returns the changed products.';


CREATE OR REPLACE FUNCTION pricing.merge_pax_categories(
    from_provider text, from_call bigint, now_ timestamptz, categories jsonb)
RETURNS text[]
LANGUAGE sql SET search_path = '' AS $$
    WITH said AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(categories)
            AS u (symbol text, category_id text, name text, kind text, age_from integer, age_to integer,
                  pax_count integer)),
    news AS MATERIALIZED (
        SELECT s.*, true AS is_listed FROM said s
        UNION ALL
        SELECT c.symbol, c.category_id, c.name, c.kind, c.age_from, c.age_to, c.pax_count, false
        FROM pricing.pax_categories c
        WHERE c.symbol IN (SELECT s.symbol FROM said s) AND c.provider = from_provider
          AND NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.category_id) = (c.symbol, c.category_id))),
    changed AS (
        UPDATE pricing.pax_categories c
        SET name = n.name, kind = n.kind, age_from = n.age_from, age_to = n.age_to, pax_count = n.pax_count,
            is_described = n.is_listed, is_listed = n.is_listed, call_id = from_call, recorded_at = now_
        FROM news n
        WHERE (c.symbol, c.provider, c.category_id) = (n.symbol, from_provider, n.category_id)
          AND (c.name, c.kind, c.age_from, c.age_to, c.pax_count, c.is_described, c.is_listed)
              IS DISTINCT FROM (n.name, n.kind, n.age_from, n.age_to, n.pax_count, n.is_listed, n.is_listed)
        RETURNING c.symbol),
    added AS (
        INSERT INTO pricing.pax_categories AS c
            (symbol, provider, category_id, name, kind, age_from, age_to, pax_count, is_described, call_id, recorded_at)
        SELECT n.symbol, from_provider, n.category_id, n.name, n.kind, n.age_from, n.age_to, n.pax_count, true,
               from_call, now_
        FROM news n
        WHERE NOT EXISTS (SELECT FROM pricing.pax_categories x
                          WHERE (x.symbol, x.provider, x.category_id) = (n.symbol, from_provider, n.category_id))
        ORDER BY 1, 3
        RETURNING c.symbol)
    SELECT coalesce(array_agg(DISTINCT w.symbol), '{}')
    FROM (SELECT c.symbol FROM changed c UNION ALL SELECT a.symbol FROM added a) w
$$;
COMMENT ON FUNCTION pricing.merge_pax_categories(text, bigint, timestamptz, jsonb) IS
    'Stores the categories that products list, marks those no longer listed, and returns the changed products.';
