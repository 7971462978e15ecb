-- Requests of clients, and how workers serve them. A client's call keeps no lock that others need: it adds to an inbox,
-- from which workers take what is committed. Who wants what: demand.sql.

CREATE OR REPLACE FUNCTION pricing.request_pairs(wanted_kind text, data_types text[], symbols text[],
                                                 user_id text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    are_first boolean := NOT EXISTS (SELECT FROM pricing.pair_requests);
BEGIN
    -- Looking first: of a hundred reads a second of one price one writes.
    INSERT INTO pricing.pair_requests (data_type, symbol, kind, user_id)
    SELECT DISTINCT u.data_type, u.symbol, wanted_kind, request_pairs.user_id
    FROM unnest(data_types, symbols) AS u (data_type, symbol)
    WHERE wanted_kind IN ('watched', 'held')
       OR NOT EXISTS (SELECT FROM pricing.pair_requests x WHERE (x.data_type, x.symbol) = (u.data_type, u.symbol)
                                                            AND x.kind = wanted_kind OFFSET 0)
    ORDER BY 1, 2;
    -- Only a wake-up: workers look each second anyway, which is soon enough for schedules.
    IF FOUND AND are_first AND wanted_kind <> 'scheduled' THEN
        PERFORM pricing.wake_workers();
    END IF;
END $$;
COMMENT ON FUNCTION pricing.request_pairs(text, text[], text[], text) IS
    'Asks workers to serve pairs once this transaction commits, without a lock that anybody waits for.';


CREATE OR REPLACE FUNCTION pricing.request_reads(user_id text, data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    missing record := pricing.missing_prices(data_types, symbols);
    unnoted record := pricing.unnoted_reads(data_types, symbols);
    news record;
    admitted integer;
BEGIN
    -- Pairs that were requested and are not served yet are not new.
    SELECT array_agg(u.data_type) AS data_types, array_agg(u.symbol) AS symbols, count(*)::integer AS pairs INTO news
    FROM unnest(missing.data_types, missing.symbols) AS u (data_type, symbol)
    WHERE NOT EXISTS (SELECT FROM pricing.pair_requests x
                      WHERE (x.data_type, x.symbol) = (u.data_type, u.symbol) AND x.kind = 'read' OFFSET 0);
    IF news.pairs > 0 THEN
        -- Concurrent requests of the user's other sessions are not seen; workers serve no more than the caps allow
        -- (admitted_reads).
        admitted := least(news.pairs, pricing.room_for_reads(user_id, (
            SELECT count(*) FROM pricing.pair_requests x WHERE x.kind = 'read' AND x.user_id = request_reads.user_id)));
        PERFORM pricing.request_pairs('read', news.data_types[:admitted], news.symbols[:admitted], user_id)
        WHERE admitted > 0;
        IF admitted < news.pairs THEN
            RAISE NOTICE 'user % asks for too many prices in a minute, so % of % is not fetched now', left(user_id, 60),
                news.data_types[admitted + 1], news.symbols[admitted + 1]
                USING HINT = 'Read it again a little later, or raise the caps with `pricing-pipeline limit set-caps`.';
        END IF;
    END IF;
    -- Others want them already, so they cost nothing and no cap refuses them.
    PERFORM pricing.request_pairs('read', unnoted.data_types, unnoted.symbols) WHERE unnoted.symbols IS NOT NULL;
    PERFORM pricing.request_views(data_types, symbols);
EXCEPTION WHEN lock_not_available THEN
    -- The answer matters more than its request.
    RAISE NOTICE 'nothing newer is asked for now: another session has locked pricing.pair_requests'
        USING HINT = 'Read it again a little later.';
END $$;
COMMENT ON FUNCTION pricing.request_reads(text, text[], text[]) IS
    'Asks workers to serve a client''s read within its user''s caps; a notice says what was left out.';


CREATE OR REPLACE FUNCTION pricing.request_views(data_types text[], symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.request_pairs('seen', array_agg(n.data_type), array_agg(n.symbol))
    FROM pricing.unnoted_views(data_types, symbols) n JOIN pricing.data_type_registry r USING (data_type)
    WHERE EXISTS (SELECT FROM pricing.instruments i
                  WHERE (i.asset_class, i.symbol) = (r.asset_class, n.symbol) OFFSET 0) HAVING count(*) > 0
$$;
COMMENT ON FUNCTION pricing.request_views(text[], text[]) IS 'Does what note_views does, by request.';


CREATE OR REPLACE FUNCTION pricing.admitted_reads() RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- One worker at a time, so that the caps hold for all of them together.
    IF NOT EXISTS (SELECT FROM pricing.pair_requests x WHERE x.kind = 'read')
        OR NOT pricing.take_turn('serve_reads') THEN
        RETURN '{}';
    END IF;
    DELETE FROM pricing.read_charges s WHERE s.charged_at <= now_ - interval '1 minute' OR s.charged_at > now_;
    RETURN (
        WITH reads AS MATERIALIZED (
            SELECT x.request_id, x.user_id, row_number() OVER (PARTITION BY x.user_id ORDER BY x.request_id) AS nth
            FROM pricing.pair_requests x WHERE x.kind = 'read'),
        rooms AS MATERIALIZED (
            SELECT u.user_id, pricing.room_for_reads(u.user_id, 0) AS room
            FROM (SELECT DISTINCT r.user_id FROM reads r WHERE r.user_id IS NOT NULL) u)
        SELECT array_agg(r.request_id) FROM reads r LEFT JOIN rooms m USING (user_id)
        WHERE r.user_id IS NULL OR r.nth <= m.room);
END $$;
COMMENT ON FUNCTION pricing.admitted_reads() IS
    'The reads that may be served now within each user''s caps; only one session serves reads until its transaction '
    'ends.';


CREATE OR REPLACE FUNCTION pricing.serve_requests(at_most integer DEFAULT 5000) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    asked record;
    pair record;
    queued integer := 0;
    reads bigint[] := pricing.admitted_reads();
BEGIN
    LOCK TABLE pricing.symbol_aliases IN ACCESS SHARE MODE; -- as begin_pairs
    FOR asked IN
        WITH served AS (
            DELETE FROM pricing.pair_requests r USING (
                SELECT x.request_id FROM pricing.pair_requests x
                WHERE x.kind NOT IN ('scheduled', 'read') OR x.request_id = ANY (reads)
                -- A flood of reads does not delay viewers.
                ORDER BY x.kind IN ('watched', 'held') DESC, x.request_id LIMIT at_most FOR UPDATE SKIP LOCKED) mine
            WHERE r.request_id = mine.request_id RETURNING r.data_type, r.symbol, r.kind, r.user_id),
        charged AS (
            INSERT INTO pricing.read_charges AS s (user_id, charged_at, pairs)
            SELECT t.user_id, pricing.clock(), count(*) FROM served t WHERE t.user_id IS NOT NULL GROUP BY 1 ORDER BY 1
            ON CONFLICT ON CONSTRAINT read_charges_pkey DO UPDATE SET pairs = s.pairs + excluded.pairs)
        SELECT t.kind, array_agg(t.data_type) AS data_types, array_agg(t.symbol) AS symbols
        FROM served t JOIN pricing.data_type_registry k USING (data_type) WHERE k.is_active
        GROUP BY 1 ORDER BY array_position(ARRAY['watched', 'held', 'read', 'seen'], t.kind)
    LOOP
        BEGIN
            queued := queued + pricing.serve_pairs(asked.kind, asked.data_types, asked.symbols);
        EXCEPTION WHEN OTHERS THEN -- one bad request must not cost the others: one by one
            FOR pair IN
                SELECT u.data_type, u.symbol
                FROM unnest(asked.data_types, asked.symbols) AS u (data_type, symbol) ORDER BY 1, 2
            LOOP
                BEGIN
                    queued := queued + pricing.serve_pairs(asked.kind, ARRAY[pair.data_type], ARRAY[pair.symbol]);
                EXCEPTION WHEN OTHERS THEN
                    PERFORM pricing.warn('serve_requests', pair.data_type, SQLERRM, SQLSTATE);
                END;
            END LOOP;
        END;
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.serve_requests(integer) IS
    'Serves at most this many client requests, reads within their user''s caps, and skips those that another session '
    'is serving; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.serve_pairs(kind text, data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted record;
    queued integer := 0;
BEGIN
    IF kind IN ('watched', 'held') THEN
        PERFORM pricing.add_demand(data_types, symbols);
    ELSIF kind = 'read' THEN
        SELECT r.data_types, r.symbols INTO data_types, symbols FROM pricing.note_reads(data_types, symbols) r;
    ELSE
        PERFORM pricing.note_views(data_types, symbols);
        RETURN 0;
    END IF;
    FOR wanted IN
        SELECT u.data_type, array_agg(DISTINCT u.symbol) AS symbols
        FROM unnest(data_types, symbols) AS u (data_type, symbol) GROUP BY 1 ORDER BY 1
    LOOP
        queued := queued + pricing.check_type(wanted.data_type, NULL, wanted.symbols);
    END LOOP;
    IF kind <> 'read' THEN
        PERFORM pricing.raise_tasks(data_types, symbols);
    END IF;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.serve_pairs(text, text[], text[]) IS
    'Serves requests of one kind: adds demand, queues what is missing or stale, records views, skips locked pairs; '
    'returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.request_prices(data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    unknown text;
BEGIN
    PERFORM pricing.check_lists(data_types, symbols);
    SELECT string_agg(DISTINCT left(coalesce(u.data_type, 'NULL'), 60), ', ') INTO unknown
    FROM unnest(data_types) AS u (data_type) LEFT JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.data_type IS NULL;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'unknown data type(s): %', left(unknown, 400)
            USING HINT = 'pricing-pipeline type list shows the active ones.', ERRCODE = 'invalid_parameter_value';
    ELSIF cardinality(data_types) > 0 AND NOT EXISTS (
        SELECT FROM pricing.data_type_registry a WHERE a.is_active AND a.data_type = ANY (data_types)) THEN
        RAISE EXCEPTION '%', pricing.why_sentence('retired', (SELECT min(d) FROM unnest(data_types) AS d))
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pricing.note_views(data_types, symbols);
    RETURN pricing.serve_pairs('read', data_types, symbols);
END $$;
COMMENT ON FUNCTION pricing.request_prices(text[], text[]) IS
    'Queues, for a worker''s read, the pairs that are missing or stale, as for one viewer, and refuses what names no '
    'active pairs; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.note_reads(INOUT data_types text[], INOUT symbols text[])
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    missing record := pricing.missing_prices(data_types, symbols);
    unnoted record := pricing.unnoted_reads(data_types, symbols);
BEGIN
    IF missing.symbols IS NULL AND unnoted.symbols IS NULL THEN
        data_types := NULL;
        symbols := NULL;
        RETURN;
    END IF;
    PERFORM pricing.add_demand(missing.data_types, missing.symbols) WHERE missing.symbols IS NOT NULL;
    missing.data_types := missing.data_types || unnoted.data_types;
    missing.symbols := missing.symbols || unnoted.symbols;
    WITH noted_pairs AS (
        UPDATE pricing.demand d SET read_at = now_, due_at = least(d.due_at, now_)
        FROM (SELECT pair.* FROM unnest(missing.data_types, missing.symbols) AS u (data_type, symbol)
              CROSS JOIN LATERAL (
                  SELECT x.ctid AS place FROM pricing.demand x
                  WHERE x.data_type = u.data_type AND x.symbol BETWEEN u.symbol AND u.symbol
                  ORDER BY x.symbol FOR NO KEY UPDATE SKIP LOCKED) pair
              ORDER BY u.data_type, u.symbol) free
        WHERE d.ctid = free.place RETURNING d.data_type, d.symbol)
    SELECT array_agg(n.data_type), array_agg(n.symbol) INTO data_types, symbols FROM noted_pairs n;
    -- Locked pairs are requested again later.
    PERFORM pricing.request_pairs('read', array_agg(u.data_type), array_agg(u.symbol))
    FROM (SELECT * FROM unnest(missing.data_types, missing.symbols)
          EXCEPT SELECT * FROM unnest(data_types, symbols)) u (data_type, symbol)
    HAVING count(*) > 0;
END $$;
COMMENT ON FUNCTION pricing.note_reads(text[], text[]) IS
    'Counts the reader of pairs whose prices are missing or stale as a viewer until the read is served, and makes them '
    'due; returns those pairs.';


CREATE OR REPLACE FUNCTION pricing.unnoted_reads(INOUT data_types text[], INOUT symbols text[])
LANGUAGE sql STABLE SET search_path = '' SET enable_seqscan = off AS $$
    SELECT array_agg(u.data_type), array_agg(u.symbol)
    FROM (SELECT DISTINCT x.* FROM unnest(data_types, symbols) AS x (data_type, symbol)) u
    WHERE EXISTS (SELECT FROM pricing.demand d
                  WHERE d.data_type = u.data_type AND d.symbol BETWEEN u.symbol AND u.symbol
                    AND d.became_due_at IS NOT NULL AND d.read_at IS NULL
                  ORDER BY d.symbol OFFSET 0)
$$;
COMMENT ON FUNCTION pricing.unnoted_reads(text[], text[]) IS
    'Which of these pairs have a task but no recorded reader, so that their tasks would be cancelled when the last '
    'viewer leaves.';


CREATE OR REPLACE FUNCTION pricing.missing_prices(INOUT data_types text[], INOUT symbols text[])
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- Looking first: a hundred reads a second of a price that is on its way must neither write nor lock.
    SELECT array_agg(p.data_type), array_agg(p.symbol) INTO data_types, symbols
    FROM (SELECT DISTINCT r.data_type, u.symbol
          FROM unnest(data_types, symbols) AS u (data_type, symbol)
          JOIN pricing.data_type_registry r USING (data_type)
          WHERE r.is_active
            -- OFFSET: looked up one by one, never joined, however few there were when this was planned.
            AND EXISTS (SELECT FROM pricing.instruments i
                        WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol)
                          AND i.is_active AND i.update_mode = 'api' OFFSET 0)
            AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live q
                            WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                                  = (u.data_type, u.symbol, '-infinity', 'infinity') OFFSET 0)
            AND NOT EXISTS (SELECT FROM pricing.demand d
                            -- By a range of one value, in the order that only the right index has.
                            WHERE d.data_type = u.data_type AND d.symbol BETWEEN u.symbol AND u.symbol
                              AND (d.backoff_until > now_
                                   OR (d.stretched_from IS NOT NULL AND d.due_at > now_ AND d.read_at IS NOT NULL))
                            ORDER BY d.symbol OFFSET 0)
          OFFSET 0) p
    WHERE pricing.is_pair_stale(p.data_type, p.symbol)
      -- A pair that a user's own function or table calls stale even after a fetch is requested at most once per TTL.
      AND NOT EXISTS (
          SELECT FROM pricing.data_type_registry r JOIN pricing.latest_answers l USING (data_type)
          WHERE r.data_type = p.data_type AND l.symbol = p.symbol
            AND (r.table_name <> 'latest_price_' || r.data_type
                 OR r.staleness_function NOT IN ('is_data_stale', 'is_market_stale'))
            AND NOT pricing.is_data_stale(l.fetched_at, pricing.pair_ttl(l.data_type, l.symbol)));
END $$;
COMMENT ON FUNCTION pricing.missing_prices(text[], text[]) IS
    'Which of these pairs a read finds missing or stale and not queued, without unknown, paused and refused ones.';


CREATE OR REPLACE FUNCTION pricing.adopt_pairs() RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    orphans record;
BEGIN
    LOCK TABLE pricing.symbol_aliases IN ACCESS SHARE MODE; -- as begin_pairs
    SELECT array_agg(o.data_type) AS data_types, array_agg(o.symbol) AS symbols INTO orphans FROM (
        SELECT w.data_type, w.symbol
        FROM (SELECT a.data_type, a.symbol, true AS is_watched FROM pricing.active_subscriptions a
              UNION SELECT h.data_type, h.symbol, false FROM pricing.holdings h WHERE h.active_symbol IS NOT NULL) w
        JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.is_active AND NOT EXISTS (
            -- By a look into the right index for each pair, also where a session planned this when there were none.
            SELECT FROM pricing.demand d WHERE d.data_type = w.data_type AND d.symbol BETWEEN w.symbol AND w.symbol
                                           AND (NOT w.is_watched OR NOT d.is_background OR d.became_due_at IS NOT NULL
                                                OR d.backoff_until > now_)
            ORDER BY d.symbol OFFSET 0)
        LIMIT 5000) o;
    IF orphans.symbols IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pricing.serve_pairs('watched', orphans.data_types, orphans.symbols);
    RETURN cardinality(orphans.symbols);
END $$;
COMMENT ON FUNCTION pricing.adopt_pairs() IS
    'Serves watched or held pairs without demand, or last judged without a viewer, because a lock delayed their '
    'request; returns how many.';
