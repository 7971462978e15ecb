-- Reads slots as believed now or at a time. Nothing here waits for a provider.

CREATE OR REPLACE FUNCTION pricing.product_day(wanted_symbol text, at timestamptz DEFAULT NULL) RETURNS date
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (coalesce(at, pricing.clock()) AT TIME ZONE coalesce(
        (SELECT pricing.zone_of(p) FROM pricing.products p WHERE p.symbol = wanted_symbol), 'UTC'))::date
$$;
COMMENT ON FUNCTION pricing.product_day(text, timestamptz) IS
    'The local day of a product at a time (NULL = now), or the UTC day if its zone is unknown.';


CREATE OR REPLACE FUNCTION pricing.slot_days(wanted_symbol text, first_day date, last_day date)
RETURNS TABLE (day date, fetched_at timestamptz, fresh boolean, data_type text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    today date := pricing.product_day(wanted_symbol);
    -- Days that another provider listed before no longer count.
    served_by text := (SELECT w.provider FROM pricing.slot_windows w
                       WHERE w.symbol = wanted_symbol ORDER BY w.call_id DESC LIMIT 1);
BEGIN
    RETURN QUERY
    SELECT d.day, w.fetched_at,
           CASE WHEN r.data_type IS NULL THEN NULL
                ELSE w.fetched_at IS NOT NULL AND NOT pricing.is_stale(r.data_type, w.fetched_at, r.ttl_minutes) END,
           r.data_type
    FROM (SELECT first_day + g.n AS day FROM generate_series(0, last_day - first_day) AS g (n)) d
    LEFT JOIN LATERAL (SELECT max(x.fetched_at) AS fetched_at FROM pricing.slot_windows x
                       WHERE x.symbol = wanted_symbol
                         AND x.provider = served_by
                         AND d.day BETWEEN x.first_day AND x.last_day
                         AND d.day <> ALL (x.unread_days)) w ON true
    -- The type with the fewest days that reaches this one asks for it most often.
    LEFT JOIN LATERAL (SELECT x.data_type, pricing.pair_ttl(x.data_type, wanted_symbol) AS ttl_minutes
                       FROM pricing.data_type_registry x
                       JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (x.asset_class, wanted_symbol)
                       WHERE x.fetcher = 'slots' AND x.is_active AND d.day BETWEEN today AND today + x.days_ahead - 1
                       ORDER BY x.days_ahead, x.default_ttl_minutes, x.data_type LIMIT 1) r ON true
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.slot_days(text, date, date) IS
    'Local days of a product: when their slots were last confirmed, and whether that is within the TTL of the most '
    'frequent data type that covers them.';


CREATE OR REPLACE FUNCTION pricing.slot_types_to_request(wanted_symbol text, last_day date) RETURNS text[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH known AS (
        SELECT r.data_type, r.fetcher, r.days_ahead, pricing.is_pair_stale(r.data_type, i.symbol) AS is_stale
        FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
        WHERE i.symbol = wanted_symbol AND r.contents = 'inventory' AND r.is_active
          -- Nobody asks for slots of the past.
          AND (r.fetcher = 'product' OR last_day >= pricing.product_day(wanted_symbol))),
    reach AS (
        SELECT min(k.days_ahead) AS days FROM known k
        WHERE pricing.product_day(wanted_symbol) + k.days_ahead > last_day)
    SELECT coalesce(array_agg(w.data_type), '{}') FROM (
        SELECT k.data_type FROM known k WHERE k.fetcher = 'product' AND k.is_stale
        UNION ALL
        -- The widest one that is stale brings the days of the others, too.
        (SELECT k.data_type FROM known k, reach m
         WHERE k.is_stale AND k.days_ahead <= coalesce(m.days, k.days_ahead)
         ORDER BY k.days_ahead DESC, k.data_type LIMIT 1)) w
$$;
COMMENT ON FUNCTION pricing.slot_types_to_request(text, date) IS
    'The data types that a read of a product''s slots up to a day requests: the product''s, and the widest stale one '
    'of slots that is not wider than needed.';


CREATE OR REPLACE FUNCTION pricing.slots_as_of(wanted_symbol text, first_day date, last_day date, as_of timestamptz)
RETURNS SETOF pricing.slots
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT s.* FROM pricing.slots s
    WHERE s.symbol = wanted_symbol AND s.local_day BETWEEN first_day AND last_day
      AND (as_of IS NULL OR s.recorded_at <= as_of)
    UNION ALL
    SELECT s.*
    FROM pricing.revisions_as_of('slots', ARRAY[wanted_symbol, to_char(first_day, 'YYYY-MM-DD')],
                                 ARRAY[wanted_symbol, to_char(last_day, 'YYYY-MM-DD')], as_of) r
    CROSS JOIN jsonb_populate_record(NULL::pricing.slots, r) s
$$;
COMMENT ON FUNCTION pricing.slots_as_of(text, date, date, timestamptz) IS
    'The slots of a product on local days, as believed at a time (NULL = now).';


CREATE OR REPLACE FUNCTION pricing.offers_as_of(wanted_slot bigint, as_of timestamptz)
RETURNS TABLE (category_key bigint, minimum integer, maximum integer, remaining integer, is_primary boolean,
               final_price bigint, original_price bigint, discount bigint, currency text, scale smallint)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT a.category_key, a.minimum, a.maximum, a.remaining, a.is_primary,
           p.final_price, p.original_price, p.discount, p.currency, p.scale
    FROM (SELECT c.category_key, c.minimum, c.maximum, c.remaining, c.is_primary, c.is_offered
          FROM pricing.pax_availability c
          WHERE c.slot_key = wanted_slot AND (as_of IS NULL OR c.recorded_at <= as_of)
          UNION ALL
          SELECT c.category_key, c.minimum, c.maximum, c.remaining, c.is_primary, c.is_offered
          FROM pricing.revisions_as_of('pax_availability', ARRAY[wanted_slot::text], ARRAY[wanted_slot::text], as_of) r
          CROSS JOIN jsonb_populate_record(NULL::pricing.pax_availability, r) c) a
    LEFT JOIN LATERAL (
        SELECT c.final_price, c.original_price, c.discount, c.currency, c.scale
        FROM pricing.slot_prices c
        WHERE c.slot_key = wanted_slot AND c.category_key = a.category_key
          AND (as_of IS NULL OR c.recorded_at <= as_of)
        UNION ALL
        SELECT c.final_price, c.original_price, c.discount, c.currency, c.scale
        FROM pricing.revisions_as_of('slot_prices', ARRAY[wanted_slot::text], ARRAY[wanted_slot::text], as_of) r
        CROSS JOIN jsonb_populate_record(NULL::pricing.slot_prices, r) c
        WHERE c.category_key = a.category_key) p ON true
    WHERE a.is_offered
$$;
COMMENT ON FUNCTION pricing.offers_as_of(bigint, timestamptz) IS
    'Who a slot is for and what it costs, as believed at a time (NULL = now).';


CREATE OR REPLACE FUNCTION pricing.categories_as_of(wanted_symbol text, as_of timestamptz)
RETURNS SETOF pricing.pax_categories
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT c.* FROM pricing.pax_categories c
    WHERE c.symbol = wanted_symbol AND (as_of IS NULL OR c.recorded_at <= as_of)
    UNION ALL
    SELECT c.* FROM pricing.revisions_as_of('pax_categories', ARRAY[wanted_symbol], ARRAY[wanted_symbol], as_of) r
    CROSS JOIN jsonb_populate_record(NULL::pricing.pax_categories, r) c
$$;
COMMENT ON FUNCTION pricing.categories_as_of(text, timestamptz) IS
    'The categories of a product, as believed at a time (NULL = now).';


CREATE OR REPLACE FUNCTION pricing.options_as_of(wanted_symbol text, as_of timestamptz)
RETURNS SETOF pricing.product_options
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT o.* FROM pricing.product_options o
    WHERE o.symbol = wanted_symbol AND (as_of IS NULL OR o.recorded_at <= as_of)
    UNION ALL
    SELECT o.* FROM pricing.revisions_as_of('product_options', ARRAY[wanted_symbol], ARRAY[wanted_symbol], as_of) r
    CROSS JOIN jsonb_populate_record(NULL::pricing.product_options, r) o
$$;
COMMENT ON FUNCTION pricing.options_as_of(text, timestamptz) IS
    'The options of a product, as believed at a time (NULL = now).';


CREATE OR REPLACE FUNCTION pricing.takes(
    pax integer, pax_count integer, minimum integer, maximum integer, remaining integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- units, of pax_count people each
    SELECT (pax - 1) / pax_count + 1 BETWEEN coalesce(minimum, 0) AND least(maximum, remaining, 2147483647)
$$;
COMMENT ON FUNCTION pricing.takes(integer, integer, integer, integer, integer) IS
    'Whether a category can take this many people, by its units, bounds and places left (NULL = no bound).';


CREATE OR REPLACE FUNCTION pricing.unit_of(scale smallint) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- Looked up: to make a number of '1e-2' hundreds of times takes longer than the read.
    SELECT ('{1,0.1,0.01,0.001,0.0001,0.00001,0.000001,0.0000001,0.00000001,0.000000001,0.0000000001,'
            '0.00000000001,0.000000000001,0.0000000000001,0.00000000000001,0.000000000000001,0.0000000000000001,'
            '0.00000000000000001,0.000000000000000001}'::pg_catalog.numeric[])[scale + 1]
$$;
COMMENT ON FUNCTION pricing.unit_of(smallint) IS 'The smallest amount with this many decimals, 0 to 18.';


CREATE OR REPLACE FUNCTION pricing.slots_to_read(
    wanted_symbol text, first_day date, last_day date, pax integer, only_currency text, only_sellable boolean,
    as_of timestamptz)
RETURNS TABLE (local_day date, option_id text, option_name text, slot_id text, local_start timestamp,
               local_end timestamp, starts_at timestamptz, ends_at timestamptz, utc_offset interval, time_zone text,
               status text, remaining integer, capacity integer, sellable boolean, category_id text, category text,
               is_primary boolean, minimum integer, maximum integer, pax_remaining integer, final numeric,
               original numeric, discount numeric, currency text, provider text, recorded_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = ''
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := coalesce(as_of, pricing.clock());
    -- Whether its provider still had it, as far as was known.
    is_listed boolean := coalesce((
        SELECT bool_and(x.is_listed)
        FROM (SELECT p.is_listed FROM pricing.products p
              WHERE p.symbol = wanted_symbol AND (as_of IS NULL OR p.recorded_at <= as_of)
              UNION ALL
              SELECT (r->>'is_listed')::boolean
              FROM pricing.revisions_as_of('products', ARRAY[wanted_symbol], ARRAY[wanted_symbol], as_of) r) x), true);
BEGIN
    RETURN QUERY
    WITH categories AS MATERIALIZED (SELECT c.* FROM pricing.categories_as_of(wanted_symbol, as_of) c),
    options AS MATERIALIZED (SELECT o.* FROM pricing.options_as_of(wanted_symbol, as_of) o),
    found AS (
        SELECT s.*, o.category_key, o.is_primary, o.minimum, o.maximum, o.remaining AS pax_remaining,
               o.final_price, o.original_price, o.discount, o.currency, pricing.unit_of(o.scale) AS unit,
               c.category_id, c.name AS category, v.name AS option_name,
               coalesce(v.is_listed, true) AS has_option,
               bool_or(o.is_primary) OVER slot AS has_primary,
               pricing.takes(pax, coalesce(c.pax_count, 1), o.minimum, o.maximum, o.remaining) AS does_take
        FROM pricing.slots_as_of(wanted_symbol, first_day, last_day, as_of) s
        LEFT JOIN LATERAL (
            SELECT x.* FROM pricing.offers_as_of(s.slot_key, as_of) x
            WHERE only_currency IS NULL
               OR (x.currency = only_currency AND coalesce(x.final_price, x.original_price) IS NOT NULL)) o ON true
        LEFT JOIN categories c ON c.category_key = o.category_key
        LEFT JOIN options v ON (v.provider, v.option_id) = (s.provider, s.option_id)
        WHERE only_currency IS NULL OR o.category_key IS NOT NULL
        WINDOW slot AS (PARTITION BY s.slot_key)),
    judged AS (
        SELECT f.*,
               is_listed AND f.has_option AND f.status IN ('available', 'freesale', 'limited')
               -- A slot of half a day or more is a ticket for the day, which is sold while it lasts.
               AND now_ < coalesce(f.bookable_until,
                                   CASE WHEN f.ends_at - f.starts_at >= interval '12 hours' THEN f.ends_at
                                        ELSE f.starts_at END)
               AND pax <= coalesce(f.remaining, 2147483647)
               -- A slot without categories is sold as it is.
               AND bool_or(f.category_key IS NULL OR (f.does_take AND (f.is_primary OR NOT f.has_primary)))
                   OVER (PARTITION BY f.slot_key) AS sellable
        FROM found f)
    SELECT j.local_day, j.option_id, j.option_name, j.slot_id, j.local_start, j.local_end, j.starts_at, j.ends_at,
           j.utc_offset, j.time_zone, j.status, j.remaining, j.capacity, j.sellable, j.category_id, j.category,
           j.is_primary, j.minimum, j.maximum, j.pax_remaining,
           j.final_price * j.unit, j.original_price * j.unit, j.discount * j.unit,
           CASE WHEN coalesce(j.final_price, j.original_price) IS NOT NULL THEN j.currency END,
           j.provider, j.recorded_at
    FROM judged j
    WHERE j.sellable OR NOT only_sellable
    ORDER BY j.local_start, j.option_id, j.slot_id, j.is_primary DESC, j.category_id;
END $$;
COMMENT ON FUNCTION pricing.slots_to_read(text, date, date, integer, text, boolean, timestamptz) IS
    'The slots of a product on local days, a row per category: exact prices, places, and whether this many people can '
    'be booked.';


CREATE OR REPLACE FUNCTION pricing.availability(
    wanted_symbol text, first_day date DEFAULT NULL, last_day date DEFAULT NULL, pax integer DEFAULT 1,
    only_currency text DEFAULT NULL, only_sellable boolean DEFAULT false, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (local_day date, option_id text, option_name text, slot_id text, local_start timestamp,
               local_end timestamp, starts_at timestamptz, status text, remaining integer, capacity integer,
               sellable boolean, category_id text, category text, is_primary boolean, minimum integer,
               maximum integer, pax_remaining integer, final numeric, original numeric, discount numeric,
               currency text, provider text, recorded_at timestamptz, fetched_at timestamptz, fresh boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
DECLARE
    wanted text[];
BEGIN
    wanted_symbol := pricing.spelled(wanted_symbol);
    first_day := coalesce(first_day, pricing.product_day(wanted_symbol, as_of));
    last_day := coalesce(last_day, first_day + 6);
    IF last_day - first_day >= 366 THEN
        RAISE EXCEPTION '% to % is more than 366 days', first_day, last_day
            USING HINT = 'Ask for fewer days, in several calls if need be.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
    SELECT s.local_day, s.option_id, s.option_name, s.slot_id, s.local_start, s.local_end, s.starts_at, s.status,
           s.remaining, s.capacity, s.sellable, s.category_id, s.category, s.is_primary, s.minimum, s.maximum,
           s.pax_remaining, s.final, s.original, s.discount, s.currency, s.provider, s.recorded_at,
           CASE WHEN as_of IS NULL THEN d.fetched_at END,
           CASE WHEN as_of IS NULL THEN d.fresh END
    FROM pricing.slots_to_read(wanted_symbol, first_day, last_day, pax, only_currency, only_sellable, as_of)
        WITH ORDINALITY s
    LEFT JOIN pricing.slot_days(wanted_symbol, first_day, last_day) d ON d.day = s.local_day
    ORDER BY s.ordinality;
    -- The answer is complete; missing or stale slots are requested afterwards. A replica only answers, and a read of
    -- the past requests nothing.
    IF as_of IS NULL AND NOT current_setting('transaction_read_only')::boolean THEN
        wanted := pricing.slot_types_to_request(wanted_symbol, last_day);
        PERFORM pricing.request_reads(session_user::pg_catalog.text COLLATE pg_catalog."default", wanted,
                                      array_fill(wanted_symbol, ARRAY[cardinality(wanted)]))
        WHERE cardinality(wanted) > 0;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.availability(text, date, date, integer, text, boolean, timestamptz) IS
    'The slots of a product on local days (a week from today; at most 366), a row per category, as believed now or at '
    'a time; queues what is missing or stale, and never waits.';
