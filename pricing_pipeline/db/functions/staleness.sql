-- What of the demand is due: the staleness check, what reads ask for, and the duties that keep demand true.
-- Who wants what is in demand.sql, which function judges a time in registry.sql.

CREATE OR REPLACE FUNCTION pricing.enqueue_due(at_most integer DEFAULT 10000) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kinds text[];
BEGIN
    PERFORM pricing.require_primary();
    -- Two checks at once would only do the same work twice.
    IF NOT pg_try_advisory_xact_lock(hashtextextended('pricing.enqueue_due', 0)) THEN
        RETURN 0;
    END IF;
    -- What a crash takes back of it, the next check does again: its commit need not wait for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT array_agg(r.data_type ORDER BY 1) INTO kinds FROM pricing.data_type_registry r
    WHERE r.is_active
      AND EXISTS (SELECT FROM pricing.demand d
                  WHERE d.data_type = r.data_type AND d.due_at <= now_ AND d.due_at < 'infinity'); -- as the index says
    -- Behind what people want: the walks of scheduled types.
    RETURN pricing.enqueue_due_pairs(kinds, at_most) + pricing.walk_schedules();
END $$;
COMMENT ON FUNCTION pricing.enqueue_due(integer) IS
    'The staleness check: queues what is due and stale (at most so many pairs of each type), moves on what is still fresh, and goes on with the walks of scheduled types. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.enqueue_due_pairs(
    kinds text[], at_most integer, data_types text[] DEFAULT NULL, symbols text[] DEFAULT NULL, for_reader boolean DEFAULT false)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind text;
    queued integer := 0;
BEGIN
    RETURN pricing.check_pairs_due(kinds, at_most, data_types, symbols, for_reader);
EXCEPTION
    WHEN lock_not_available THEN
        RAISE; -- who waits for one lock would wait for each
    WHEN OTHERS THEN
        -- One bad type must not stop the others: one by one it is found, and named.
        FOR kind IN SELECT DISTINCT k FROM unnest(kinds) AS k ORDER BY 1 LOOP
            BEGIN
                queued := queued + pricing.check_pairs_due(ARRAY[kind], at_most, data_types, symbols, for_reader);
            EXCEPTION WHEN OTHERS THEN
                PERFORM pricing.warn('enqueue_due', kind, 'the staleness check failed: ' || SQLERRM, SQLSTATE);
            END;
        END LOOP;
        RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.enqueue_due_pairs(text[], integer, text[], text[], boolean) IS
    'The staleness check of some data types, together or, when that fails, one by one: of each at most so many of the pairs that are due or, of those that two lists name, for their viewers and holders or, in advance, for a reader. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.check_pairs_due(
    kinds text[], at_most integer, data_types text[], symbols text[], for_reader boolean) RETURNS integer
-- What is due is looked up, however much of all that is wanted it is.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET jit = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    judge record;
    found_ record;
    stale_types text[] := '{}';
    stale_symbols text[] := '{}';
    viewers integer[] := '{}';
    -- NO KEY UPDATE, so that heartbeats (which take a key share through the foreign key) do not wait.
    all_due constant text := $query$
        kinds CROSS JOIN LATERAL (
            SELECT longest.* FROM (
                SELECT d.ctid AS place, d.symbol, d.due_at FROM pricing.demand d
                WHERE d.data_type = kinds.data_type AND d.due_at <= $2 AND d.due_at < 'infinity'
                ORDER BY d.due_at LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED) longest
            ORDER BY longest.symbol) pair -- neighbours lie on the same pages of every index
        $query$;
    -- Of the pairs that a first look or a new holding names, what nobody else watches is judged at once: its due_at may
    -- date from when nobody did. A reader counts as a viewer.
    named_due constant text := $query$
        kinds CROSS JOIN LATERAL (
            SELECT d.ctid AS place, d.symbol, d.due_at FROM unnest($7, $3) AS u (data_type, symbol) JOIN pricing.demand d USING (data_type, symbol)
            WHERE d.data_type = kinds.data_type AND (d.due_at <= $2 OR (
                d.due_at < 'infinity' AND coalesce(d.held_until, '-infinity') <= $2 AND NOT $6
                AND ($5 OR 1 >= (SELECT count(*) FROM pricing.active_subscriptions a
                                 WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)))))
            ORDER BY d.symbol FOR NO KEY UPDATE OF d SKIP LOCKED) pair
        $query$;
    check_ constant text := $query$
        WITH kinds AS MATERIALIZED (
            SELECT r.data_type, r.asset_class, r.default_ttl_minutes, r.background_ttl_minutes
            FROM pricing.data_type_registry r WHERE r.data_type = ANY ($1) ORDER BY 1),
        due AS MATERIALIZED (
            SELECT kinds.*, pair.* FROM %1$s),
        asked AS (
            SELECT due.*, greatest((SELECT count(*)::integer FROM pricing.active_subscriptions a
                                    WHERE a.data_type = due.data_type AND a.symbol = due.symbol), $5::integer) AS viewers,
                   EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (due.asset_class, due.symbol)
                                                               AND (i.update_mode <> 'api' OR NOT i.is_active)) AS is_paused
            FROM due OFFSET 0),
        -- Held and unwatched: the background TTL, and only if somebody looked at it within 48 hours.
        wanted AS (
            SELECT a.*, NOT a.is_paused AND a.viewers = 0 AND EXISTS (
                SELECT FROM pricing.holdings h WHERE (h.data_type, h.active_symbol) = (a.data_type, a.symbol)) AS is_held
            FROM asked a OFFSET 0),
        judged AS (
            SELECT w.*, v.stamp, make_interval(mins => ttl.minutes) AS ttl, %4$s AS next_at,
                   NOT w.is_paused AND (w.viewers > 0 OR w.is_held) AND %3$s AS is_stale
            FROM wanted w LEFT JOIN %2$s
            CROSS JOIN LATERAL (
                SELECT CASE WHEN w.viewers > 0 THEN coalesce(v.own_ttl, w.default_ttl_minutes)
                            ELSE w.background_ttl_minutes END AS minutes) ttl %5$s OFFSET 0),
        decided AS (
            SELECT j.*, j.is_stale AND (j.viewers > 0 OR j.stamp IS NULL OR EXISTS (
                SELECT FROM pricing.pair_views p WHERE (p.data_type, p.symbol) = (j.data_type, j.symbol)
                                                   AND p.viewed_at > $2 - interval '48 hours')) AS is_fetched
            FROM judged j OFFSET 0),
        looked AS (
            UPDATE pricing.demand d
            SET due_at = CASE WHEN j.is_fetched THEN 'infinity'
                              WHEN j.is_paused THEN $2 + interval '10 minutes'
                              WHEN j.viewers = 0 AND NOT j.is_held THEN $2 + interval '1 minute'
                              WHEN j.is_stale THEN $2 + interval '1 hour' -- held, and nobody looks: a read would queue it
                              WHEN j.next_at > $2 THEN j.next_at
                              -- Old, and yet judged fresh by a function of one's own: nobody knows until when, so
                              -- look again soon.
                              ELSE $2 + least(j.ttl / 4, CASE WHEN j.viewers > 0 THEN interval '1 minute'
                                                              ELSE interval '15 minutes' END) END,
                became_due_at = CASE WHEN j.is_fetched THEN j.due_at END,
                read_at = CASE WHEN $5 THEN $2 ELSE d.read_at END
            FROM decided j WHERE d.ctid = j.place
            RETURNING j.data_type, j.symbol, j.viewers, j.is_fetched)
        SELECT array_agg(data_type) AS data_types, array_agg(symbol) AS symbols, array_agg(viewers) AS viewers
        FROM looked WHERE is_fetched
        $query$;
BEGIN
    -- Our own tables and functions judge all types at once: to plan the query takes as long as a hundred pairs.
    FOR judge IN
        SELECT array_agg(r.data_type ORDER BY r.data_type) AS data_types, min(r.staleness_function) AS function_name,
               min(r.table_name) AS table_name, min(r.symbol_column) AS symbol_column, min(r.timestamp_column) AS timestamp_column,
               bool_and(r.table_name = 'latest_price_' || r.data_type) AS is_ours
        FROM pricing.data_type_registry r WHERE r.data_type = ANY (check_pairs_due.kinds)
        GROUP BY CASE WHEN r.table_name = 'latest_price_' || r.data_type AND r.staleness_function IN ('is_data_stale', 'is_market_stale')
                      THEN r.staleness_function ELSE 'a judge of its own: ' || r.data_type END
        ORDER BY 1
    LOOP
        BEGIN
            EXECUTE pg_catalog.format(
                check_, CASE WHEN symbols IS NULL THEN all_due ELSE named_due END,
                -- Of our own table, which has the key for it, a row is looked up: a join would read all prices of the type.
                CASE WHEN judge.is_ours
                     THEN 'LATERAL (SELECT l.fetched_at AS stamp, l.cache_ttl_minutes AS own_ttl FROM pricing.latest_prices l '
                          'WHERE (l.data_type, l.symbol) = (w.data_type, w.symbol) OFFSET 0) v ON true'
                     ELSE pg_catalog.format('(SELECT x.%1$I AS stamp, x.cache_ttl_minutes AS own_ttl, x.%3$I AS symbol FROM pricing.%2$I x) v '
                                            'ON v.symbol = w.symbol', judge.timestamp_column, judge.table_name, judge.symbol_column) END,
                -- What is_data_stale says, said here: eight thousand calls of it are a fifth of a check.
                CASE WHEN judge.function_name = 'is_data_stale' AND judge.is_ours THEN
                    'coalesce(v.stamp <= $2 - make_interval(mins => ttl.minutes), true)' -- our tables know no other TTL than a positive one
                WHEN judge.function_name = 'is_data_stale' THEN
                    'CASE WHEN ttl.minutes > 0 THEN coalesce(v.stamp <= $2 - make_interval(mins => ttl.minutes), true) '
                    'ELSE pricing.is_data_stale(v.stamp, ttl.minutes) END'
                WHEN judge.function_name = 'is_market_stale' THEN
                    'CASE WHEN ttl.minutes > 0 THEN coalesce(next.at <= $2, true) ELSE pricing.is_data_stale($2, ttl.minutes) END'
                ELSE pg_catalog.format('coalesce(pricing.%I(v.stamp, ttl.minutes), true)', judge.function_name) END,
                -- When a pair that is fresh can be stale: after its TTL, or when its market should bring a newer value.
                CASE judge.function_name WHEN 'is_market_stale' THEN 'next.at' ELSE 'v.stamp + make_interval(mins => ttl.minutes)' END,
                CASE judge.function_name WHEN 'is_market_stale' THEN
                    'CROSS JOIN LATERAL (SELECT CASE WHEN ttl.minutes > 0 THEN pricing.next_value_at('
                    'w.data_type, w.symbol, v.stamp, make_interval(mins => ttl.minutes)) END AS at OFFSET 0) next' END)
            INTO found_ USING judge.data_types, now_, symbols, at_most, for_reader, false, data_types;
        EXCEPTION WHEN OTHERS THEN
            IF cardinality(judge.data_types) > 1 THEN
                RAISE;
            END IF;
            -- What cannot be judged counts as stale, once per TTL: after a fetch the pair is due a TTL later.
            PERFORM pricing.warn('enqueue_due', judge.data_types[1],
                                 'staleness cannot be judged, and what is due counts as stale: ' || SQLERRM, SQLSTATE);
            EXECUTE pg_catalog.format(
                check_, CASE WHEN symbols IS NULL THEN all_due ELSE named_due END,
                'LATERAL (SELECT l.fetched_at AS stamp, l.cache_ttl_minutes AS own_ttl FROM pricing.latest_answers l '
                'WHERE (l.data_type, l.symbol) = (w.data_type, w.symbol) OFFSET 0) v ON true',
                '(w.viewers > 0 OR pricing.is_data_stale(v.stamp, ttl.minutes))',
                'v.stamp + make_interval(mins => ttl.minutes)', '')
            INTO found_ USING judge.data_types, now_, symbols, at_most, for_reader, true, data_types;
        END;
        stale_types := stale_types || found_.data_types;
        stale_symbols := stale_symbols || found_.symbols;
        viewers := viewers || found_.viewers;
    END LOOP;
    IF stale_types = '{}' THEN
        RETURN 0;
    END IF;
    -- Mostly none of them has a task, or it would not have been due.
    PERFORM pricing.enqueue_pairs(stale_types, stale_symbols, viewers, are_new => true);
    RETURN cardinality(stale_types);
END $$;
COMMENT ON FUNCTION pricing.check_pairs_due(text[], integer, text[], text[], boolean) IS
    'Judges what is due and queues what is stale, all data types at once; see enqueue_due_pairs.';


CREATE OR REPLACE FUNCTION pricing.request_prices(data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    missing_types text[];
    missing_symbols text[];
BEGIN
    PERFORM pricing.check_pairs(data_types, symbols);
    PERFORM pricing.note_views(data_types, symbols);
    -- Looking first: a hundred reads a second of a price that is on its way must neither write nor lock.
    SELECT array_agg(p.data_type), array_agg(p.symbol) INTO missing_types, missing_symbols
        FROM (SELECT DISTINCT r.data_type, u.symbol
              FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
              JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol)
              WHERE r.is_active AND i.is_active AND i.update_mode = 'api'
                AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live q WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                                                                          = (u.data_type, u.symbol, '-infinity', 'infinity'))
                AND NOT EXISTS (SELECT FROM pricing.demand d
                                WHERE (d.data_type, d.symbol) = (u.data_type, u.symbol) AND d.held_until > now_)
              OFFSET 0) p
        WHERE pricing.is_pair_stale(p.data_type, p.symbol);
    IF missing_types IS NULL THEN
        RETURN 0;
    END IF;
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT u.data_type, u.symbol, now_ FROM unnest(missing_types, missing_symbols) AS u (data_type, symbol)
    WHERE NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (u.data_type, u.symbol))
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    RETURN pricing.enqueue_due_pairs(missing_types, cardinality(missing_types), missing_types, missing_symbols, true);
END $$;
COMMENT ON FUNCTION pricing.request_prices(text[], text[]) IS
    'What a read asks for: queues those of the pairs that are missing or stale, as for one viewer. Instruments that are unknown or paused, and pairs that are held off, are passed over. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.is_pair_stale(data_type text, symbol text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    verdict boolean;
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = is_pair_stale.data_type;
    BEGIN
        EXECUTE pg_catalog.format(
            'SELECT pricing.%I(%s v.%I, coalesce(v.cache_ttl_minutes, $2)) FROM (SELECT $1) AS w (symbol) LEFT JOIN pricing.%I v ON v.%I = w.symbol',
            kind.staleness_function, CASE WHEN kind.staleness_function = 'is_market_stale' THEN '$3, $1,' ELSE '' END,
            kind.timestamp_column, kind.table_name, kind.symbol_column)
        INTO verdict USING symbol, kind.default_ttl_minutes, kind.data_type;
    EXCEPTION WHEN OTHERS THEN
        -- Stale, but at most once per TTL: what was fetched within it is not fetched again.
        SELECT bool_and(pricing.is_data_stale(l.fetched_at, coalesce(l.cache_ttl_minutes, kind.default_ttl_minutes))) INTO verdict
        FROM pricing.latest_answers l WHERE (l.data_type, l.symbol) = (is_pair_stale.data_type, is_pair_stale.symbol);
    END;
    RETURN coalesce(verdict, true);
END $$;
COMMENT ON FUNCTION pricing.is_pair_stale(text, text) IS 'Whether the pair''s price is missing or stale for a viewer, by the table and function that the registry names.';


CREATE OR REPLACE FUNCTION pricing.look_again(wanted_type text, only_symbol text DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.demand d
    SET due_at = least(d.due_at, pricing.clock()),
        became_due_at = CASE WHEN d.due_at < 'infinity' THEN d.became_due_at END
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE x.data_type = wanted_type AND (only_symbol IS NULL OR x.symbol = only_symbol)
            AND (x.held_until IS NULL OR x.held_until <= pricing.clock())
            AND (x.due_at < 'infinity' OR NOT EXISTS (
                SELECT FROM pricing.api_call_queue_live q
                WHERE (q.data_type, q.symbol, q.window_start, q.window_end) = (x.data_type, x.symbol, '-infinity', 'infinity')))
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol)
$$;
COMMENT ON FUNCTION pricing.look_again(text, text) IS
    'What is wanted of a data type, or of one symbol, is judged anew by the next staleness check, unless it is held off or a task of it is live.';


CREATE OR REPLACE FUNCTION pricing.reconcile_demand() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    moved integer;
    total integer := 0;
BEGIN
    PERFORM pricing.stop_paused();
    FOR kind IN
        SELECT r.data_type, r.table_name, r.symbol_column, r.timestamp_column, r.default_ttl_minutes,
               r.staleness_function, r.table_name <> 'latest_price_' || r.data_type AS is_own
        FROM pricing.data_type_registry r WHERE r.is_active ORDER BY 1
    LOOP
        BEGIN
            -- Others write to a table of one's own: what they made older, gave a shorter TTL or removed may be
            -- due earlier than was known. Of our own table only TTLs of single pairs can have escaped.
            EXECUTE pg_catalog.format($query$
                UPDATE pricing.demand d SET due_at = greatest(early.stale_at, $2) FROM (
                    SELECT x.data_type, x.symbol, stale.at AS stale_at
                    FROM pricing.demand x LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
                    LEFT JOIN pricing.%1$I v ON v.%2$I = x.symbol
                    CROSS JOIN LATERAL (
                        SELECT coalesce(%4$s, $2) AS at) stale
                    WHERE x.data_type = $1 AND x.due_at > $2 + interval '1 minute' AND x.due_at < 'infinity' AND stale.at < x.due_at
                      AND (x.held_until IS NULL OR x.held_until <= $2) AND ($4 OR l.cache_ttl_minutes IS NOT NULL)
                      AND EXISTS (SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol))
                    ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x SKIP LOCKED) early
                WHERE (d.data_type, d.symbol) = (early.data_type, early.symbol)
                $query$, kind.table_name, kind.symbol_column, kind.timestamp_column,
                pg_catalog.format(
                    CASE WHEN kind.staleness_function = 'is_market_stale'
                         THEN 'pricing.next_value_at($1, x.symbol, greatest(v.%I, l.fetched_at), make_interval(mins => coalesce(v.cache_ttl_minutes, $3)))'
                         ELSE 'greatest(v.%I, l.fetched_at) + make_interval(mins => coalesce(v.cache_ttl_minutes, $3))' END,
                    kind.timestamp_column))
            USING kind.data_type, now_, kind.default_ttl_minutes, kind.is_own;
            GET DIAGNOSTICS moved = ROW_COUNT;
            total := total + moved;
        EXCEPTION
            WHEN lock_not_available THEN
                RAISE; -- who waits for one lock would wait for each
            WHEN OTHERS THEN -- one bad table must not stop the others
                PERFORM pricing.warn('reconcile_demand', kind.data_type, SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.reconcile_demand() IS
    'Makes due what changed behind our back: rows of tables of one''s own, TTLs of single pairs, tasks of paused instruments. Returns how many pairs are due earlier.';


CREATE OR REPLACE FUNCTION pricing.repair_demand() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    repaired integer;
BEGIN
    UPDATE pricing.demand d SET due_at = pricing.clock(), became_due_at = NULL FROM (
        SELECT x.data_type, x.symbol FROM pricing.demand x
        WHERE x.due_at = 'infinity' AND NOT EXISTS (
            SELECT FROM pricing.api_call_queue_live q
            WHERE (q.data_type, q.symbol, q.window_start, q.window_end) = (x.data_type, x.symbol, '-infinity', 'infinity'))
        ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE SKIP LOCKED) lost
    WHERE (d.data_type, d.symbol) = (lost.data_type, lost.symbol);
    GET DIAGNOSTICS repaired = ROW_COUNT;
    RETURN repaired;
END $$;
COMMENT ON FUNCTION pricing.repair_demand() IS 'Makes due again what waits for a task that is no longer there (cancelled or pruned by hand).';
