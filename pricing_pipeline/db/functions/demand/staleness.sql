-- Which demand is due: the staleness check, and the duties that keep demand correct. The check of a data type finds and
-- locks its due pairs (check_type), judges them, decides and writes when each is due again (move_due), and queues what
-- is stale (queue_stale). What reads ask for is in requests.sql, who wants what in demand.sql, the TTL of a pair and
-- the functions that judge a time in registry.sql.

CREATE OR REPLACE FUNCTION pricing.enqueue_due(at_most integer DEFAULT 10000) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    queued integer := 0;
BEGIN
    PERFORM pricing.require_primary();
    -- The next check repeats what a crash undoes, so the commit need not wait for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    BEGIN
        queued := pricing.serve_requests();
    EXCEPTION WHEN OTHERS THEN -- what clients ask for must not keep what is due from being queued
        PERFORM pricing.warn('enqueue_due', 'requests', SQLERRM, SQLSTATE);
    END;
    FOR kind IN
        SELECT r.data_type, known.queued_until
        FROM pricing.data_type_registry r LEFT JOIN pricing.check_marks m USING (data_type)
        CROSS JOIN LATERAL (SELECT coalesce(m.queued_until, '-infinity') AS queued_until) known
        WHERE r.is_active
          AND (SELECT d.due_at FROM pricing.demand d
               WHERE d.data_type = r.data_type AND d.due_at >= known.queued_until AND d.due_at <= now_
                 AND d.became_due_at IS NULL
               ORDER BY d.due_at LIMIT 1) IS NOT NULL
        ORDER BY 1
    LOOP
        -- Two checks at once share the work: each takes the types that the other has not begun.
        IF pricing.take_turn('check ' || kind.data_type) THEN
            queued := queued + pricing.check_type(kind.data_type, at_most, queued_until => kind.queued_until);
        END IF;
    END LOOP;
    -- Behind what people want: the walks of scheduled types.
    queued := queued + pricing.walk_schedules();
    PERFORM pricing.note_life('enqueue_due', extract(epoch FROM pricing.clock() - now_)::float8);
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.enqueue_due(integer) IS
    'The staleness check: serves requests, queues at most this many due and stale pairs of each data type, continues '
    'walks, and returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.check_type(
    wanted_type text, at_most integer, symbols text[] DEFAULT NULL,
    queued_until timestamptz DEFAULT '-infinity', until timestamptz DEFAULT NULL) RETURNS integer
-- A session plans this and all that it calls once. A plan made while the tables were empty must serve when they are
-- full, but all indexes of an empty table look alike. So tables with several indexes are queried by a range of one
-- value, in the order that only the right index has. Each pair is looked up once, so memoizing would not pay.
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_memoize = off SET lock_timeout = '100ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
    route record;
    room bigint;
    places tid[];
    stale record;
BEGIN
    IF until IS NOT NULL THEN
        PERFORM set_config('lock_timeout', '20ms', true); -- part of a check that has met a lock
    END IF;
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    route := pricing.common_route(wanted_type);
    IF pricing.may_fit(route.provider, 0, route.est_bytes) THEN
        room := pricing.take_room(route.provider, 0, coalesce(cardinality(symbols), at_most) * route.est_bytes);
        IF room IS NOT NULL THEN
            symbols := pricing.most_wanted(wanted_type, route.provider, room, symbols, at_most, queued_until);
            IF symbols IS NULL THEN
                RETURN 0;
            END IF;
        END IF;
    END IF;
    -- Find. NO KEY UPDATE is enough: no key is changed.
    IF symbols IS NULL THEN
        places := ARRAY(
            SELECT d.ctid FROM pricing.demand d
            WHERE d.data_type = wanted_type
              AND d.due_at >= queued_until
              AND d.due_at <= now_
              AND d.became_due_at IS NULL
            ORDER BY d.due_at LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED);
    ELSE
        -- Among pairs named by a first view or a new holding, those whose due_at dates from a time without viewers are
        -- judged at once.
        places := ARRAY(
            SELECT named.place FROM unnest(symbols) AS u (symbol) CROSS JOIN LATERAL (
                SELECT d.ctid AS place FROM pricing.demand d
                WHERE d.data_type = wanted_type
                  AND d.symbol BETWEEN u.symbol AND u.symbol
                  AND d.became_due_at IS NULL
                  AND (d.due_at <= now_ OR (d.is_background AND coalesce(d.backoff_until, '-infinity') <= now_))
                ORDER BY d.symbol FOR NO KEY UPDATE SKIP LOCKED) named);
    END IF;
    stale := pricing.move_due(kind, now_, places);
    -- After queueing all that is due, the next check starts here and does not rescan the backlog.
    IF cardinality(places) < at_most AND stale.symbols IS NOT NULL THEN
        INSERT INTO pricing.check_marks AS m (data_type, queued_until) VALUES (wanted_type, now_)
        ON CONFLICT ON CONSTRAINT check_marks_pkey DO UPDATE SET queued_until = excluded.queued_until;
    END IF;
    RETURN pricing.queue_stale(kind, stale.symbols, stale.viewers, route.provider, route.est_bytes);
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN
        RETURN pricing.check_by_halves(
            wanted_type,
            coalesce(symbols, (SELECT array_agg(x.symbol) FROM (
                SELECT d.symbol FROM pricing.demand d
                WHERE d.data_type = wanted_type AND d.due_at >= queued_until AND d.due_at <= now_
                  AND d.became_due_at IS NULL
                ORDER BY d.due_at LIMIT at_most) x)),
            coalesce(until, clock_timestamp() + interval '1 second'));
    WHEN OTHERS THEN -- one bad type must not stop the others
        PERFORM pricing.warn('enqueue_due', wanted_type, 'the staleness check failed: ' || SQLERRM, SQLSTATE);
        RETURN 0;
END $$;
COMMENT ON FUNCTION pricing.check_type(text, integer, text[], timestamptz, timestamptz) IS
    'The staleness check of at most this many due pairs of a data type, or of those in a list; skips locked pairs and '
    'returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.pairs_at(wanted_type text, wanted_class text, places tid[])
RETURNS TABLE (place tid, symbol text, is_owed boolean, viewers integer, is_paused boolean, is_held boolean)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT d.ctid, d.symbol, d.owed_since IS NOT NULL, v.viewers,
           EXISTS (SELECT FROM pricing.instruments i
                   WHERE i.asset_class = wanted_class AND i.symbol = d.symbol
                     AND (i.update_mode <> 'api' OR NOT i.is_active)),
           v.viewers = 0 AND d.symbol IS NOT DISTINCT FROM (
               SELECT h.active_symbol FROM pricing.holdings h
               WHERE h.data_type = wanted_type AND h.active_symbol >= d.symbol ORDER BY h.active_symbol LIMIT 1)
    FROM pricing.demand d CROSS JOIN LATERAL (
        -- A reader counts as a viewer until it is served.
        SELECT greatest(count(*)::integer, (d.read_at IS NOT NULL)::integer) AS viewers
        FROM (SELECT FROM pricing.active_subscriptions a
              WHERE a.data_type = wanted_type AND a.symbol BETWEEN d.symbol AND d.symbol ORDER BY a.symbol) x) v
    WHERE d.ctid = ANY (places)
$$;
COMMENT ON FUNCTION pricing.pairs_at(text, text, tid[]) IS
    'Who wants the pairs at these places of demand: viewers, or else whether somebody holds them, and whether they are '
    'paused.';


CREATE OR REPLACE FUNCTION pricing.judged_elsewhere(kind pricing.data_type_registry, places tid[])
RETURNS pricing.due_pair[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    judged pricing.due_pair[];
BEGIN
    -- A TTL that is not positive is a fault of its row, which reconcile_demand reports: that pair has the type's.
    EXECUTE pg_catalog.format($query$
        SELECT array_agg(ROW(p.*, v.%1$I, ttl.minutes, %4$s)::pricing.due_pair ORDER BY p.symbol)
        FROM pricing.pairs_at(($2).data_type, ($2).asset_class, $1) p
        LEFT JOIN pricing.%2$I v ON v.%3$I = p.symbol
        LEFT JOIN pricing.own_ttls(ARRAY[($2).data_type],
                                   ARRAY(SELECT d.symbol FROM pricing.demand d WHERE d.ctid = ANY ($1))) o
            ON o.symbol = p.symbol
        CROSS JOIN LATERAL (SELECT pricing.ttl_of($2, o.ttl_minutes, p.viewers > 0) AS minutes) ttl
        $query$, kind.timestamp_column, kind.table_name, kind.symbol_column,
        CASE WHEN kind.staleness_function IN ('is_data_stale', 'is_market_stale') THEN 'NULL'
             -- Unwanted pairs are not judged: a user's own function may be slow, or fail where there is no price.
             ELSE pg_catalog.format('CASE WHEN NOT p.is_paused AND (p.viewers > 0 OR p.is_held) THEN '
                                    'coalesce(pricing.%I(v.%I, ttl.minutes), true) END',
                                    kind.staleness_function, kind.timestamp_column) END)
    INTO judged USING places, kind;
    RETURN judged;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN
        RAISE;
    WHEN OTHERS THEN
        -- A pair that cannot be judged counts as stale, once per TTL: after a fetch it is due a TTL later.
        PERFORM pricing.warn('enqueue_due', kind.data_type,
                             'staleness cannot be judged, so due pairs count as stale: ' || SQLERRM, SQLSTATE);
        RETURN ARRAY(
            SELECT ROW(p.*, l.fetched_at, ttl.minutes,
                       p.viewers > 0 OR pricing.is_data_stale(l.fetched_at, ttl.minutes))::pricing.due_pair
            FROM pricing.pairs_at(kind.data_type, kind.asset_class, places) p
            LEFT JOIN LATERAL (SELECT a.fetched_at, a.cache_ttl_minutes FROM pricing.latest_answers a
                               WHERE (a.data_type, a.symbol) = (kind.data_type, p.symbol) LIMIT 1) l ON true
            CROSS JOIN LATERAL (SELECT pricing.ttl_of(kind, l.cache_ttl_minutes, p.viewers > 0) AS minutes) ttl);
END $$;
COMMENT ON FUNCTION pricing.judged_elsewhere(pricing.data_type_registry, tid[]) IS
    'Due pairs with times, TTLs and verdicts from a table or function of the user''s own; if that fails, all count as '
    'stale.';


CREATE OR REPLACE FUNCTION pricing.move_due(
    kind pricing.data_type_registry, now_ timestamptz, places tid[], OUT symbols text[], OUT viewers integer[])
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    is_own_judge boolean := kind.staleness_function NOT IN ('is_data_stale', 'is_market_stale');
    is_elsewhere boolean := is_own_judge OR kind.table_name <> 'latest_price_' || kind.data_type;
    elsewhere pricing.due_pair[] := CASE WHEN is_elsewhere THEN pricing.judged_elsewhere(kind, places) END;
    -- Mostly no quota is near its end. Pairs that a user's own function judges are never stretched.
    are_stretched boolean := NOT is_own_judge AND pricing.are_ttls_stretched();
    -- NULL = each pair has its own.
    factors float8[] := CASE WHEN are_stretched AND NOT pricing.differs_by_symbol(kind.data_type)
                             THEN pricing.stretch_of(kind.data_type, NULL, now_) END;
BEGIN
    WITH known AS (
        SELECT w.*, coalesce(l.fetched_at, e.fetched_at) AS stamp,
               pricing.ttl_of(kind, l.cache_ttl_minutes, w.viewers > 0) AS ttl, NULL::boolean AS is_stale
        FROM pricing.pairs_at(kind.data_type, kind.asset_class, places) w
        LEFT JOIN LATERAL (SELECT x.fetched_at, x.cache_ttl_minutes FROM pricing.latest_prices x
                           WHERE x.data_type = kind.data_type AND x.symbol = w.symbol LIMIT 1) l ON true
        -- Where there is no price, the provider may have said so.
        LEFT JOIN LATERAL (SELECT x.fetched_at FROM pricing.empty_answers x
                           WHERE l.fetched_at IS NULL AND x.data_type = kind.data_type AND x.symbol = w.symbol
                           LIMIT 1) e ON true
        WHERE NOT is_elsewhere
        UNION ALL
        SELECT * FROM unnest(elsewhere)),
    judged AS (
        -- A TTL added to a stamp in the far future would overflow.
        SELECT k.*, due.at AS next_at FROM known k
        CROSS JOIN LATERAL pricing.stale_at(kind, k.symbol, least(k.stamp, now_ + interval '1 minute'), k.ttl) due
        ORDER BY k.symbol), -- neighbours lie on the same pages of every index
    decided AS MATERIALIZED (
        SELECT j.*, late.is_late, fetched.is_fetched, ripe.at AS ripe_at,
               -- Pairs without a price, or already owed one, do not wait until they are ripe.
               fetched.is_fetched AND (ripe.at > now_ AND j.stamp <= now_ + interval '1 minute'
                                       AND NOT j.is_owed) IS NOT TRUE AS is_queued
        FROM judged j
        CROSS JOIN LATERAL (
            SELECT NOT j.is_paused AND (j.viewers > 0 OR j.is_held)
                   AND coalesce(j.is_stale, j.next_at <= now_ OR j.stamp > now_ + interval '1 minute', true)
                   AS is_late) late
        -- Held and unwatched: only if somebody looked at it within 48 hours.
        CROSS JOIN LATERAL (
            SELECT late.is_late AND (j.viewers > 0 OR j.stamp IS NULL OR EXISTS (
                       SELECT FROM pricing.pair_views v
                       WHERE v.data_type = kind.data_type AND v.symbol = j.symbol
                         AND v.viewed_at > now_ - interval '48 hours')) AS is_fetched) fetched
        CROSS JOIN LATERAL (
            SELECT CASE WHEN are_stretched AND late.is_late THEN j.next_at + make_interval(secs => j.ttl * 60 * (
                       (coalesce(factors, pricing.stretch_of(kind.data_type, j.symbol, now_)))
                           [CASE WHEN j.viewers > 0 THEN 1 ELSE 2 END] - 1)) END AS at) ripe),
    moved AS (
        -- A queued pair keeps its place among the due ones, so no index changes.
        UPDATE pricing.demand d
        SET due_at = CASE WHEN j.is_queued THEN d.due_at
                          WHEN j.is_fetched THEN j.ripe_at
                          WHEN j.is_paused THEN now_ + interval '10 minutes'
                          WHEN j.viewers = 0 AND NOT j.is_held THEN now_ + interval '1 minute'
                          WHEN j.is_late THEN now_ + interval '1 hour' -- held, and nobody looks: a read would queue it
                          WHEN j.next_at > now_ THEN j.next_at
                          -- Old, and yet judged fresh by a user's own function, which does not say until when: look
                          -- again soon.
                          ELSE now_ + least(make_interval(mins => j.ttl) / 4,
                                            CASE WHEN j.viewers > 0 THEN interval '1 minute'
                                                 ELSE interval '15 minutes' END) END,
            is_background = j.viewers = 0,
            -- A TTL that was made longer since also decides how long the price has been owed.
            became_due_at = CASE WHEN j.is_queued THEN least(greatest(d.due_at, j.next_at), d.stretched_from, now_) END,
            stretched_from = CASE WHEN j.is_fetched AND NOT j.is_queued THEN j.next_at END,
            owed_since = CASE WHEN j.is_fetched THEN d.owed_since END,
            read_at = CASE WHEN j.is_fetched OR j.is_paused THEN d.read_at END
        FROM decided j WHERE d.ctid = j.place
        RETURNING j.symbol, j.viewers, j.is_queued)
    SELECT array_agg(m.symbol), array_agg(m.viewers) INTO symbols, viewers FROM moved m WHERE m.is_queued;
END $$;
COMMENT ON FUNCTION pricing.move_due(pricing.data_type_registry, timestamptz, tid[]) IS
    'Judges the pairs at these locked places of demand, decides and writes when each is due again, and returns the '
    'stale ones with their viewers.';


CREATE OR REPLACE FUNCTION pricing.queue_stale(
    kind pricing.data_type_registry, symbols text[], viewers integer[], provider text, est_bytes bigint)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    queued integer;
    left_out text[];
    had_work boolean;
BEGIN
    IF symbols IS NULL THEN
        RETURN 0;
    ELSIF provider IS NOT NULL THEN
        -- Mostly none of them has a task, or it would not be due, and one provider serves all.
        BEGIN
            had_work := (SELECT q.id FROM pricing.api_call_queue_live q
                         WHERE q.provider = queue_stale.provider AND q.run_after IS NULL AND q.status = 'pending'
                         ORDER BY (-q.priority), q.cadence_minutes, q.id LIMIT 1) IS NOT NULL;
            INSERT INTO pricing.api_call_queue_live
                (data_type, symbol, provider, priority, cadence_minutes, est_bytes, enqueued_at)
            SELECT kind.data_type, u.symbol, provider, u.viewers, kind.default_ttl_minutes, est_bytes, now_
            FROM unnest(symbols, viewers) AS u (symbol, viewers);
            GET DIAGNOSTICS queued = ROW_COUNT;
            PERFORM pricing.wake_workers() WHERE NOT had_work;
            RETURN queued;
        EXCEPTION WHEN unique_violation THEN
            NULL; -- some have one
        END;
    ELSE
        SELECT w.fitting, w.fitting_priorities, w.left_out INTO symbols, viewers, left_out
        FROM pricing.within_quota(kind.data_type, symbols, viewers) w;
        -- A pair without room in a quota stays owed.
        UPDATE pricing.demand d
        SET due_at = now_ + interval '1 minute', became_due_at = NULL,
            owed_since = least(d.owed_since, d.became_due_at, d.due_at)
        WHERE d.data_type = kind.data_type AND d.symbol = ANY (left_out);
    END IF;
    RETURN CASE WHEN symbols IS NULL THEN 0 ELSE pricing.enqueue_pairs(
        array_fill(kind.data_type, ARRAY[cardinality(symbols)]), symbols, viewers) END;
END $$;
COMMENT ON FUNCTION pricing.queue_stale(pricing.data_type_registry, text[], integer[], text, bigint) IS
    'Queues stale pairs whose demand is locked: at the one provider of all of them, or (NULL) each at its own, as far '
    'as quotas have room; returns how many tasks are new.';


CREATE OR REPLACE FUNCTION pricing.most_wanted(
    wanted_type text, provider text, room bigint, wanted text[], at_most integer, queued_until timestamptz)
RETURNS text[]
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF room = 0 THEN
        RETURN NULL;
    END IF;
    -- The other pairs stay due, and the next check looks again.
    RETURN (
        SELECT (pricing.share_of(most_wanted.provider, room, wanted_type, array_agg(x.symbol), array_agg(x.viewers)))
                   [:coalesce(at_most, 2147483647)]
        FROM (SELECT d.symbol,
                     greatest((SELECT count(*)::integer FROM pricing.active_subscriptions a
                               WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)),
                              (d.read_at IS NOT NULL)::integer) AS viewers
              FROM pricing.demand d
              WHERE d.data_type = wanted_type AND d.became_due_at IS NULL
                AND CASE WHEN wanted IS NULL THEN d.due_at BETWEEN queued_until AND pricing.clock()
                         ELSE d.symbol = ANY (wanted) END) x);
END $$;
COMMENT ON FUNCTION pricing.most_wanted(text, text, bigint, text[], integer, timestamptz) IS
    'The due pairs with the most viewers, as many as their providers'' quotas have room for; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.check_by_halves(wanted_type text, symbols text[], until timestamptz) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    middle integer := cardinality(symbols) / 2;
    -- At random, so that locks in one half do not hide the other half from every check.
    is_turned boolean := random() < 0.5;
BEGIN
    IF symbols IS NULL THEN
        RETURN 0;
    ELSIF middle = 0 OR clock_timestamp() > until THEN
        PERFORM pricing.pass_over('enqueue_due', wanted_type, symbols);
        RETURN 0;
    END IF;
    RETURN pricing.check_type(
               wanted_type, NULL, CASE WHEN is_turned THEN symbols[middle + 1:] ELSE symbols[:middle] END,
               until => until)
           + pricing.check_type(
               wanted_type, NULL, CASE WHEN is_turned THEN symbols[:middle] ELSE symbols[middle + 1:] END,
               until => until);
END $$;
COMMENT ON FUNCTION pricing.check_by_halves(text, text[], timestamptz) IS
    'Checks pairs by halves until only locked ones are skipped, or time is up; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.is_pair_stale(data_type text, symbol text) RETURNS boolean
-- STABLE, to see what the calling statement sees: otherwise a price that comes meanwhile would make an old one look
-- fresh.
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    fetched_at timestamptz;
    ttl integer := pricing.pair_ttl(data_type, symbol);
    verdict boolean;
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = is_pair_stale.data_type;
    SELECT l.fetched_at INTO fetched_at FROM pricing.latest_answers l
    WHERE (l.data_type, l.symbol) = (is_pair_stale.data_type, is_pair_stale.symbol);
    -- Most pairs are judged here, without a dynamic statement, which is planned each time and may fail.
    IF kind.table_name = 'latest_price_' || kind.data_type AND kind.staleness_function = 'is_data_stale' THEN
        RETURN pricing.is_data_stale(fetched_at, ttl);
    ELSIF kind.table_name = 'latest_price_' || kind.data_type AND kind.staleness_function = 'is_market_stale' THEN
        RETURN pricing.is_market_stale(data_type, symbol, fetched_at, ttl);
    END IF;
    BEGIN
        EXECUTE pg_catalog.format(
            'SELECT pricing.%I(%s v.%I, $2) FROM (SELECT $1) AS w (symbol) LEFT JOIN %s v ON v.%I = w.symbol',
            kind.staleness_function, CASE WHEN kind.staleness_function = 'is_market_stale' THEN '$3, $1,' ELSE '' END,
            kind.timestamp_column,
            -- Our own table, and the answers that there is no price.
            CASE kind.table_name WHEN 'latest_price_' || kind.data_type
                 THEN '(SELECT a.symbol, a.fetched_at FROM pricing.latest_answers a '
                      'WHERE a.data_type = $3 AND a.symbol = $1)'
                 ELSE pg_catalog.format('pricing.%I', kind.table_name) END,
            kind.symbol_column)
        INTO verdict USING symbol, ttl, kind.data_type;
    EXCEPTION WHEN OTHERS THEN
        -- Stale, but at most once per TTL: a pair fetched within its TTL is not fetched again.
        verdict := pricing.is_data_stale(fetched_at, ttl);
    END;
    RETURN coalesce(verdict, true);
END $$;
COMMENT ON FUNCTION pricing.is_pair_stale(text, text) IS
    'Whether a pair''s price is missing or stale for a viewer, by the registry''s table and function.';


CREATE OR REPLACE FUNCTION pricing.verdict_on(wanted_type text, wanted_symbol text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    answer pricing.latest_answers;
    ttl integer := pricing.pair_ttl(wanted_type, wanted_symbol);
BEGIN
    IF pricing.is_pair_stale(wanted_type, wanted_symbol) THEN
        RETURN 'stale';
    END IF;
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    SELECT * INTO answer FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    IF kind.staleness_function NOT IN ('is_data_stale', 'is_market_stale')
       AND kind.table_name = 'latest_price_' || kind.data_type
            AND pricing.is_stale(wanted_type, answer.fetched_at, ttl) THEN
        RETURN 'unjudged';
    END IF;
    RETURN CASE WHEN pricing.is_source_old(kind, wanted_symbol, answer.observed_at, answer.fetched_at, ttl)
                THEN 'source_old' ELSE 'fresh' END;
END $$;
COMMENT ON FUNCTION pricing.verdict_on(text, text) IS
    'What all reports say about a pair: stale (to be fetched), unjudged (its staleness function fails, and it was '
    'fetched within its TTL), source_old (confirmed, but nothing as new as there should be) or fresh.';


CREATE OR REPLACE FUNCTION pricing.look_again(wanted_type text, only_symbol text DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.demand d
    SET due_at = CASE WHEN d.became_due_at IS NULL THEN least(d.due_at, pricing.clock()) ELSE pricing.clock() END,
        became_due_at = NULL
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE x.data_type = wanted_type AND (only_symbol IS NULL OR x.symbol = only_symbol)
            AND (x.backoff_until IS NULL OR x.backoff_until <= pricing.clock())
            AND (x.became_due_at IS NULL OR NOT EXISTS (
                SELECT FROM pricing.api_call_queue_live q
                WHERE (q.data_type, q.symbol) = (x.data_type, x.symbol)
                  AND (q.window_start, q.window_end) = ('-infinity', 'infinity')))
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol)
$$;
COMMENT ON FUNCTION pricing.look_again(text, text) IS
    'Makes the next staleness check judge the pairs of a data type, or of one symbol, unless they back off or are '
    'queued.';


CREATE OR REPLACE FUNCTION pricing.reconcile_demand() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    moved integer;
    total integer := 0;
BEGIN
    PERFORM pricing.stop_paused();
    total := pricing.judge_stretched();
    FOR kind IN
        SELECT r.*, r.table_name <> 'latest_price_' || r.data_type AS is_own FROM pricing.data_type_registry r
        WHERE r.is_active ORDER BY r.data_type
    LOOP
        BEGIN
            -- Other programs write to a user's own table. Rows that they made older, gave a shorter TTL or removed
            -- may be due earlier than was known. In our own table only TTLs of single pairs can be unnoticed.
            EXECUTE pg_catalog.format($query$
                UPDATE pricing.demand d SET due_at = greatest(early.stale_at, $2) FROM (
                    SELECT x.data_type, x.symbol, stale.at AS stale_at
                    FROM pricing.demand x JOIN pricing.data_type_registry r USING (data_type)
                    LEFT JOIN pricing.own_ttls(ARRAY[$1]) o ON o.symbol = x.symbol
                    LEFT JOIN pricing.%1$I v ON v.%2$I = x.symbol
                    -- A pair still counts as requested if its answer could not be written there, or had no value.
                    LEFT JOIN LATERAL (SELECT a.fetched_at FROM pricing.latest_answers a
                                       WHERE $3 AND (a.data_type, a.symbol) = (x.data_type, x.symbol)
                                       OFFSET 0) answer ON true
                    CROSS JOIN LATERAL (
                        SELECT coalesce(due.at, $2) AS at
                        FROM pricing.stale_at(r, x.symbol, greatest(v.%3$I, answer.fetched_at),
                                              pricing.ttl_of(r, o.ttl_minutes)) due) stale
                    WHERE x.data_type = $1
                      AND x.due_at > $2 + interval '1 minute'
                      AND x.became_due_at IS NULL
                      AND stale.at < coalesce(x.stretched_from, x.due_at)
                      AND (x.backoff_until IS NULL OR x.backoff_until <= $2)
                      AND ($3 OR o.ttl_minutes IS NOT NULL)
                      AND EXISTS (SELECT FROM pricing.active_subscriptions a
                                  WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol))
                    ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x SKIP LOCKED) early
                WHERE (d.data_type, d.symbol) = (early.data_type, early.symbol)
                $query$, kind.table_name, kind.symbol_column, kind.timestamp_column)
            USING kind.data_type, now_, kind.is_own;
            GET DIAGNOSTICS moved = ROW_COUNT;
            total := total + moved;
            IF kind.is_own THEN
                PERFORM pricing.warn_ttls(kind.data_type, kind.table_name, kind.symbol_column);
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                RAISE; -- the other types would wait for a lock, too
            WHEN OTHERS THEN -- one bad table must not stop the others
                PERFORM pricing.warn('reconcile_demand', kind.data_type, SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.reconcile_demand() IS
    'Makes pairs due whose own tables, TTLs, stretches or pauses changed unnoticed; returns how many are due earlier.';


CREATE OR REPLACE FUNCTION pricing.warn_ttls(wanted_type text, own_table text, symbol_column text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wrong record;
BEGIN
    IF EXISTS (SELECT FROM pricing.warnings w
               WHERE w.source = 'warn_ttls' AND w.subject = wanted_type
                 AND w.at > pricing.clock() - interval '1 hour' AND w.at <= pricing.clock()) THEN
        RETURN;
    END IF;
    EXECUTE pg_catalog.format(
        'SELECT count(*) AS pairs, min(x.%I::text) AS example FROM pricing.%I x WHERE x.cache_ttl_minutes <= 0',
        symbol_column, own_table) INTO wrong;
    IF wrong.pairs > 0 THEN
        PERFORM pricing.warn('warn_ttls', wanted_type, pg_catalog.format(
            'cache_ttl_minutes of pricing.%s is not positive for %s symbol(s), such as %s; they have the TTL of the '
            'type. Set it to NULL, or to minutes above 0',
            own_table, wrong.pairs, wrong.example), '22023');
    END IF;
END $$;
COMMENT ON FUNCTION pricing.warn_ttls(text, text, text) IS
    'Warns, once an hour, of rows with a TTL that is not positive in a user''s own table, which count as rows without '
    'one.';


CREATE OR REPLACE FUNCTION pricing.repair_demand(data_types text[] DEFAULT NULL, symbols text[] DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    repaired integer;
BEGIN
    UPDATE pricing.demand d
    SET due_at = pricing.clock(), became_due_at = NULL, owed_since = least(d.owed_since, d.became_due_at, d.due_at)
    FROM (
        SELECT x.data_type, x.symbol FROM pricing.demand x
        WHERE x.became_due_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM pricing.api_call_queue_live q
            WHERE (q.data_type, q.symbol) = (x.data_type, x.symbol)
              AND (q.window_start, q.window_end) = ('-infinity', 'infinity'))
          AND (symbols IS NULL OR (x.data_type = ANY (data_types) AND x.symbol = ANY (symbols)))
        ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE SKIP LOCKED) lost
    WHERE (d.data_type, d.symbol) = (lost.data_type, lost.symbol);
    GET DIAGNOSTICS repaired = ROW_COUNT;
    RETURN repaired;
END $$;
COMMENT ON FUNCTION pricing.repair_demand(text[], text[]) IS
    'Makes pairs due again that wait for a task that does not exist: all pairs, or those in the lists.';


CREATE OR REPLACE FUNCTION pricing.lift_marks() RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    lifted integer;
BEGIN
    -- Of the types that are checked: the others would be found each time.
    DELETE FROM pricing.check_marks m USING (
        SELECT x.data_type FROM pricing.check_marks x
        WHERE EXISTS (SELECT FROM pricing.data_type_registry r WHERE r.data_type = x.data_type AND r.is_active)
          AND (SELECT d.due_at FROM pricing.demand d
               WHERE d.data_type = x.data_type AND d.due_at < x.queued_until AND d.became_due_at IS NULL
               ORDER BY d.due_at LIMIT 1) IS NOT NULL
        FOR UPDATE SKIP LOCKED) passed
    WHERE m.data_type = passed.data_type;
    GET DIAGNOSTICS lifted = ROW_COUNT;
    RETURN lifted;
END $$;
COMMENT ON FUNCTION pricing.lift_marks() IS
    'Makes the next check of a data type start from the beginning if a due pair was skipped; returns how many types.';


CREATE OR REPLACE FUNCTION pricing.own_ttl_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Without waiting: a worker that stores this very price has locked its demand and waits for us. reconcile_demand
    -- finds what this misses.
    UPDATE pricing.demand d SET due_at = pricing.clock()
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE (x.data_type, x.symbol) = (NEW.data_type, NEW.symbol) AND x.became_due_at IS NULL
            AND (x.backoff_until IS NULL OR x.backoff_until <= pricing.clock())
          FOR NO KEY UPDATE SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.own_ttl_changed() IS 'Makes a pair''s own TTL take effect at the next staleness check.';

CREATE TRIGGER own_ttl_changed
    AFTER UPDATE OF cache_ttl_minutes ON pricing.confirmed_pairs
    FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();

CREATE TRIGGER own_ttl_changed
    AFTER UPDATE OF cache_ttl_minutes ON pricing.latest_prices
    FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();


CREATE OR REPLACE FUNCTION pricing.ttl_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Locked first and changed by a separate statement, which sees what a worker has just set by the old TTL.
    PERFORM FROM pricing.demand d WHERE d.data_type = NEW.data_type ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE;
    PERFORM pricing.look_again(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.ttl_changed() IS
    'Makes a new TTL or staleness function take effect at the next staleness check, and restarts what is wanted of a '
    'revived type.';

CREATE TRIGGER ttl_changed
    AFTER UPDATE OF default_ttl_minutes, background_ttl_minutes, staleness_function, table_name, symbol_column,
        timestamp_column, is_active ON pricing.data_type_registry
    FOR EACH ROW WHEN (
        OLD.default_ttl_minutes IS DISTINCT FROM NEW.default_ttl_minutes
        OR OLD.background_ttl_minutes IS DISTINCT FROM NEW.background_ttl_minutes
        OR OLD.staleness_function IS DISTINCT FROM NEW.staleness_function
        OR OLD.table_name IS DISTINCT FROM NEW.table_name
        OR OLD.symbol_column IS DISTINCT FROM NEW.symbol_column
        OR OLD.timestamp_column IS DISTINCT FROM NEW.timestamp_column
        OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.ttl_changed();
