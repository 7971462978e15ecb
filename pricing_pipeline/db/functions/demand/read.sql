-- What an application reads over HTTP, hundreds of times a second: prices, why they are old, and the request for what
-- is missing or stale, in one statement. What such a request does is in requests.sql, why a price is old in why.sql.

CREATE OR REPLACE FUNCTION pricing.format_iso(at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT pg_catalog.replace(pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000', '')
$$;
COMMENT ON FUNCTION pricing.format_iso(timestamptz) IS
    'A time for programs: ISO 8601 in UTC, with microseconds where there are any.';


CREATE OR REPLACE FUNCTION pricing.about_price(wanted_type text, wanted_symbol text, sender text)
RETURNS TABLE (is_daily boolean, paused boolean, provider_active boolean, frozen_since timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT pricing.is_daily(r.fetcher),
           EXISTS (SELECT FROM pricing.instruments i
                   WHERE i.asset_class = r.asset_class AND i.symbol = wanted_symbol
                     AND (i.update_mode <> 'api' OR NOT i.is_active)),
           coalesce((SELECT p.is_active FROM pricing.data_collectors p WHERE p.provider = sender), false),
           (SELECT l.changed_at FROM pricing.latest_prices l
            WHERE l.data_type = wanted_type AND l.symbol = wanted_symbol
              AND l.observed_at - l.changed_at > pricing.frozen_after(r.fetcher))
    FROM pricing.data_type_registry r WHERE r.data_type = wanted_type
$$;
COMMENT ON FUNCTION pricing.about_price(text, text, text) IS
    'What stands beside a pair''s price: whether it is of a day, is paused, has an active sender, and since when its '
    'value is the same.';


CREATE OR REPLACE FUNCTION pricing.why_as_json(data_type text, symbol text, stops pricing.provider_stop[]) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    -- Of a row, because json_build_object writes other spaces than the rest of an answer has.
    RETURN (SELECT row_to_json(reason) FROM (
                SELECT w.state, w.sentence, pricing.format_iso(w.since) AS since,
                       pricing.format_iso(w.next_at) AS next_at
                FROM pricing.why_old(data_type, symbol, stops) w) reason);
END $$;
COMMENT ON FUNCTION pricing.why_as_json(text, text, pricing.provider_stop[]) IS
    'Why a pair''s price is as old as it is, in the form of the HTTP API.';


CREATE OR REPLACE FUNCTION pricing.spelled_once(INOUT symbols text[], INOUT data_types text[])
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    SELECT array_agg(w.symbol ORDER BY w.place),
           array_agg(w.data_type ORDER BY w.place) FILTER (WHERE data_types IS NOT NULL)
    INTO symbols, data_types
    FROM (SELECT pricing.spelled(u.given) AS symbol, u.data_type, min(u.place) AS place
          FROM unnest(symbols, data_types) WITH ORDINALITY AS u (given, data_type, place)
          GROUP BY 1, 2) w;
END $$;
COMMENT ON FUNCTION pricing.spelled_once(text[], text[]) IS
    'Symbols as their instruments are spelled, in any class, each once; with data types, each pair once.';


CREATE OR REPLACE FUNCTION pricing.shared_stops(data_types text[], symbols text[], providers text[])
RETURNS pricing.provider_stop[]
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN ARRAY(
        SELECT pricing.stop_of(o.provider)
        FROM (SELECT coalesce(u.provider, (
                  SELECT q.provider FROM pricing.api_call_queue_live q
                  WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                      = (u.data_type, u.symbol, '-infinity', 'infinity'))) AS provider
              FROM unnest(data_types, symbols, providers) AS u (data_type, symbol, provider)) o
        WHERE o.provider IS NOT NULL GROUP BY o.provider HAVING count(*) > 1);
END $$;
COMMENT ON FUNCTION pricing.shared_stops(text[], text[], text[]) IS
    'What stops each provider that several of these pairs get their price from or wait for, so that each provider is '
    'checked once.';


CREATE OR REPLACE FUNCTION pricing.prices_to_read(
    symbols text[], data_types text[],
    OUT prices json, OUT missing json, OUT known bigint[], OUT stale_types text[], OUT stale_symbols text[],
    OUT unseen_types text[], OUT unseen_symbols text[])
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    named text[] := (SELECT array_agg(DISTINCT u.data_type) FROM unnest(data_types) AS u (data_type)
                     HAVING bool_and(u.data_type IS NOT NULL));
BEGIN
    WITH pairs AS MATERIALIZED (
        SELECT r.data_type, w.symbol, w.place, r.is_active, pricing.is_daily(r.fetcher) AS is_daily,
               l.amount, l.scale, l.currency, l.observed_at, l.fetched_at, l.provider,
               coalesce(p.is_active, false) AS provider_active, i.update_mode <> 'api' OR NOT i.is_active AS paused,
               CASE WHEN l.observed_at - l.changed_at > pricing.frozen_after(r.fetcher)
                    THEN l.changed_at END AS frozen_since,
               judged.verdict,
               -- A price that is fresh in our own table may be stale in the user's.
               coalesce(judged.verdict IN ('stale', 'unjudged'), true) OR r.has_own_table AS is_stale,
               -- A read without a data type asks only for what somebody wants. For a fresh price this does not matter.
               (coalesce(judged.verdict <> 'fresh', true) OR r.has_own_table) AND (
                   w.data_type IS NOT NULL
                   OR EXISTS (SELECT FROM pricing.active_subscriptions a
                              WHERE a.data_type = r.data_type AND a.symbol BETWEEN w.symbol AND w.symbol
                              ORDER BY a.symbol OFFSET 0)
                   OR EXISTS (SELECT FROM pricing.holdings h
                              WHERE h.data_type = r.data_type AND h.active_symbol BETWEEN w.symbol AND w.symbol
                              ORDER BY h.active_symbol OFFSET 0)) AS is_wanted,
               NOT EXISTS (SELECT FROM pricing.pair_views v
                           WHERE (v.data_type, v.symbol) = (r.data_type, w.symbol)
                             AND v.viewed_at > now_ - interval '10 minutes' OFFSET 0) AS is_unseen
        FROM pricing.data_type_registry r
        JOIN unnest(symbols, data_types) WITH ORDINALITY AS w (symbol, data_type, place)
            ON w.data_type IS NULL OR w.data_type = r.data_type
        -- OFFSET: looked up one by one, never joined, however few there were when this was planned.
        CROSS JOIN LATERAL (SELECT x.update_mode, x.is_active, x.calendar FROM pricing.instruments x
                            WHERE (x.asset_class, x.symbol) = (r.asset_class, w.symbol) OFFSET 0) i
        LEFT JOIN LATERAL (SELECT x.*, pricing.ttl_of(r, x.cache_ttl_minutes) AS ttl_minutes
                           FROM pricing.latest_prices x
                           WHERE (x.data_type, x.symbol) = (r.data_type, w.symbol) OFFSET 0) l ON true
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN l.fetched_at IS NULL THEN NULL
                WHEN r.has_own_table OR r.staleness_function NOT IN ('is_data_stale', 'is_market_stale')
                THEN pricing.verdict_on(r.data_type, w.symbol)
                WHEN l.fetched_at > now_ + interval '1 minute' OR due.at <= now_ THEN 'stale'
                -- For most quotes that is enough: the source is a little behind, or has the close of a closed market.
                WHEN l.observed_at >= l.fetched_at - interval '30 minutes' THEN 'fresh'
                WHEN r.fetcher = 'quote'
                     AND l.observed_at >= (SELECT s.closes_at FROM pricing.calendar_sessions s
                                           WHERE s.calendar = i.calendar AND s.closes_at <= l.fetched_at
                                           ORDER BY s.closes_at DESC LIMIT 1) - interval '20 minutes'
                     AND l.fetched_at < (SELECT s.opens_at FROM pricing.calendar_sessions s
                                         WHERE s.calendar = i.calendar AND s.closes_at > l.fetched_at
                                         ORDER BY s.closes_at LIMIT 1) THEN 'fresh'
                WHEN pricing.is_source_old(r, w.symbol, l.observed_at, l.fetched_at, l.ttl_minutes) THEN 'source_old'
                ELSE 'fresh' END AS verdict
            FROM pricing.stale_at(r, w.symbol, l.fetched_at, l.ttl_minutes) due OFFSET 0) judged
        LEFT JOIN pricing.data_collectors p ON p.provider = l.provider
        WHERE (named IS NULL OR r.data_type = ANY (named)) AND r.contents = 'prices'
          AND (r.is_active OR l.fetched_at IS NOT NULL)
        ORDER BY 1, 2),
    stops AS (SELECT pricing.shared_stops(array_agg(x.data_type), array_agg(x.symbol), array_agg(x.provider)) AS known
              FROM pairs x WHERE x.verdict IS DISTINCT FROM 'fresh')
    -- A row becomes JSON in half the time that json_build_object takes.
    SELECT (SELECT json_agg(p) FROM (
               SELECT x.symbol, x.data_type,
                      CASE WHEN x.is_daily THEN (x.observed_at AT TIME ZONE 'UTC')::date END AS date,
                      (x.amount * ('1e-' || x.scale)::numeric)::text AS price, x.currency,
                      pricing.format_iso(x.observed_at) AS observed_at, pricing.format_iso(x.fetched_at) AS fetched_at,
                      round(extract(epoch FROM now_ - x.fetched_at), 3) AS age_seconds,
                      x.verdict AS state, x.verdict = 'fresh' AS fresh,
                      x.paused, x.provider, x.provider_active, pricing.format_iso(x.frozen_since) AS frozen_since,
                      CASE WHEN x.verdict <> 'fresh'
                           THEN pricing.why_as_json(x.data_type, x.symbol, (SELECT s.known FROM stops s)) END AS why
               FROM pairs x WHERE x.fetched_at IS NOT NULL) p),
           json_agg(json_build_object('symbol', x.symbol, 'data_type', x.data_type, 'why',
                                      pricing.why_as_json(x.data_type, x.symbol, (SELECT s.known FROM stops s))))
               -- A pair that nobody wants is not missing, unless the symbol has no other.
               FILTER (WHERE x.fetched_at IS NULL AND (
                   x.is_wanted
                   OR x.place NOT IN (SELECT o.place FROM pairs o WHERE o.fetched_at IS NOT NULL OR o.is_wanted))),
           array_agg(DISTINCT x.place),
           array_agg(x.data_type) FILTER (WHERE x.is_active AND x.is_stale AND x.is_wanted),
           array_agg(x.symbol) FILTER (WHERE x.is_active AND x.is_stale AND x.is_wanted),
           array_agg(x.data_type) FILTER (WHERE x.is_active AND x.is_unseen),
           array_agg(x.symbol) FILTER (WHERE x.is_active AND x.is_unseen)
    INTO prices, missing, known, stale_types, stale_symbols, unseen_types, unseen_symbols
    FROM pairs x;
END $$;
COMMENT ON FUNCTION pricing.prices_to_read(text[], text[]) IS
    'Prices of pairs, or of symbols in every data type of prices, in the form of the HTTP API, and which of them a '
    'read must request; writes nothing.';


CREATE OR REPLACE FUNCTION pricing.why_no_prices(symbol text, wanted_type text, OUT state text, OUT sentence text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF wanted_type IS NOT NULL AND kind IS NULL THEN
        state := 'unknown_type';
        sentence := pricing.why_sentence('unknown_type', left(wanted_type, 60));
    ELSIF NOT kind.is_active THEN
        state := 'retired';
        sentence := pricing.why_sentence('retired', wanted_type);
    ELSIF kind.contents <> 'prices' AND EXISTS (
            SELECT FROM pricing.instruments i
            WHERE (i.asset_class, i.symbol) = (kind.asset_class, why_no_prices.symbol)) THEN
        state := 'unknown_type';
        sentence := pg_catalog.format('%s is a data type of %s, not of prices', wanted_type, kind.contents);
    ELSE
        state := 'unknown_symbol';
        sentence := pricing.describe_unknown_symbol(symbol, wanted_type);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_no_prices(text, text) IS
    'Why a pair, or a symbol without a data type, can have no prices: a state and a sentence.';


CREATE OR REPLACE FUNCTION pricing.describe_unknown_symbol(symbol text, wanted_type text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN wanted_type IS NULL
                     AND EXISTS (SELECT FROM pricing.instruments i WHERE i.symbol = describe_unknown_symbol.symbol)
                THEN pg_catalog.format('no active data type of prices applies to the instrument %s', symbol)
                     || CASE WHEN EXISTS (SELECT FROM pricing.instruments i
                                          JOIN pricing.data_type_registry r USING (asset_class)
                                          WHERE i.symbol = describe_unknown_symbol.symbol)
                             THEN '; see GET /v1/why for its other data types' ELSE '' END
                ELSE pg_catalog.format('no instrument%s is called %s; %s', ' of ' || wanted_type, symbol,
                                       coalesce(pricing.describe_misfit(symbol, wanted_type),
                                                'watching it adds it')) END
$$;
COMMENT ON FUNCTION pricing.describe_unknown_symbol(text, text) IS
    'The HTTP API''s answer for a symbol that is not an instrument, has no prices, or does not fit the data type.';


CREATE OR REPLACE FUNCTION pricing.read_prices(symbols text[], data_types text[], only_type text, user_id text)
RETURNS text
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted record;
    answer record;
    are_all_known boolean;
BEGIN
    IF only_type IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM pricing.data_type_registry r
                       WHERE r.data_type = only_type AND r.is_active AND r.contents = 'prices') THEN
            RETURN NULL;
        END IF;
        data_types := array_fill(only_type, ARRAY[cardinality(symbols)]);
    END IF;
    answer := pricing.prices_to_read(symbols, data_types);
    are_all_known := coalesce(cardinality(answer.known), 0) = cardinality(symbols);
    -- Nearly all symbols are spelled as their instruments are, and judging that costs as much as their prices.
    IF NOT are_all_known THEN
        wanted := pricing.spelled_once(symbols, data_types);
        IF wanted.symbols <> symbols THEN
            symbols := wanted.symbols;
            data_types := wanted.data_types;
            answer := pricing.prices_to_read(symbols, data_types);
            are_all_known := coalesce(cardinality(answer.known), 0) = cardinality(symbols);
        END IF;
    END IF;
    -- Symbols that a replica does not know may be new.
    IF current_setting('pricing.has_primary', true) = 'on' AND current_setting('transaction_read_only')::boolean
       AND (NOT are_all_known OR coalesce(answer.unseen_types, answer.stale_types) IS NOT NULL) THEN
        RAISE EXCEPTION 'this read may have something to ask for, and a replica takes no writes'
            USING HINT = 'Read it from the primary.', ERRCODE = 'read_only_sql_transaction';
    END IF;
    IF NOT are_all_known THEN
        SELECT json_agg(m.pair) INTO answer.missing FROM (
            SELECT json_array_elements(answer.missing)
            UNION ALL
            SELECT json_build_object('symbol', u.symbol, 'data_type', u.data_type, 'why', json_build_object(
                       'state', w.state, 'sentence', w.sentence, 'since', NULL, 'next_at', NULL))
            FROM unnest(symbols, data_types) WITH ORDINALITY AS u (symbol, data_type, place)
            CROSS JOIN LATERAL pricing.why_no_prices(u.symbol, u.data_type) w
            WHERE answer.known IS NULL OR u.place <> ALL (answer.known)) AS m (pair);
    END IF;
    -- The reasons are read before anything is requested: later, a failed pair would look queued. A replica only
    -- answers.
    IF coalesce(answer.unseen_types, answer.stale_types) IS NOT NULL
       AND NOT current_setting('transaction_read_only')::boolean THEN
        PERFORM pricing.note_views(answer.unseen_types, answer.unseen_symbols) WHERE answer.unseen_types IS NOT NULL;
        IF user_id IS NOT NULL THEN
            PERFORM pricing.request_reads(user_id, answer.stale_types, answer.stale_symbols)
            WHERE answer.stale_types IS NOT NULL;
        ELSE
            PERFORM pricing.serve_pairs('read', answer.stale_types, answer.stale_symbols)
            WHERE answer.stale_types IS NOT NULL;
        END IF;
    END IF;
    RETURN pg_catalog.format('{"prices":%s,"missing":%s}', coalesce(answer.prices, '[]'),
                             coalesce(answer.missing, '[]'));
END $$;
COMMENT ON FUNCTION pricing.read_prices(text[], text[], text, text) IS
    'The complete JSON answer to a read of pairs or symbols; requests what is missing or stale within the user''s '
    'caps (NULL = as a worker); NULL if only_type is not an active data type of prices.';
