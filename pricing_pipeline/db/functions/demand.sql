-- Who wants what, and what of it is due.

CREATE OR REPLACE FUNCTION pricing.heartbeat(user_id text, data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    new_pairs integer := 0;
    wanted record;
    unknown text;
BEGIN
    -- A type that was retired must not end what its viewers see of the others; a name nobody knows is an error.
    SELECT string_agg(DISTINCT u.data_type, ', ') INTO unknown
    FROM unnest(data_types) AS u (data_type) LEFT JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.data_type IS NULL
       OR NOT EXISTS (SELECT FROM pricing.data_type_registry a WHERE a.is_active AND a.data_type = ANY (data_types));
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'unknown data type(s): %', unknown
            USING HINT = 'pricing-pipeline registry list shows the active ones.', ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(u.data_type), array_agg(u.symbol) INTO data_types, symbols
    FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.is_active;

    -- What is new is written in key order, and demand before the subscriptions that refer to it.
    INSERT INTO pricing.instruments (asset_class, symbol)
    SELECT DISTINCT r.asset_class, u.symbol
    FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
    WHERE NOT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol))
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;

    LOOP
        BEGIN
            INSERT INTO pricing.demand (data_type, symbol, due_at)
            SELECT DISTINCT u.data_type, u.symbol, now_ FROM unnest(data_types, symbols) AS u (data_type, symbol)
            WHERE NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (u.data_type, u.symbol))
            ORDER BY 1, 2 ON CONFLICT DO NOTHING;

            -- The first look queues what is missing or stale at once; later looks write nothing but the heartbeat.
            FOR wanted IN
                WITH seen AS (
                    INSERT INTO pricing.active_subscriptions AS a (user_id, data_type, symbol, subscribed_at, last_seen_at)
                    SELECT DISTINCT heartbeat.user_id, u.data_type, u.symbol, now_, now_
                    FROM unnest(data_types, symbols) AS u (data_type, symbol) ORDER BY 2, 3
                    ON CONFLICT ON CONSTRAINT active_subscriptions_pkey DO UPDATE SET last_seen_at = excluded.last_seen_at
                    RETURNING a.data_type, a.symbol, a.subscribed_at = now_ AS is_new)
                SELECT seen.data_type, array_agg(seen.symbol ORDER BY seen.symbol) AS symbols
                FROM seen WHERE seen.is_new GROUP BY 1 ORDER BY 1
            LOOP
                PERFORM pricing.enqueue_due_of_type(wanted.data_type, wanted.symbols, cardinality(wanted.symbols));
                PERFORM pricing.raise_tasks(wanted.data_type, wanted.symbols);
                new_pairs := new_pairs + cardinality(wanted.symbols);
            END LOOP;
            RETURN new_pairs;
        EXCEPTION WHEN foreign_key_violation THEN
            new_pairs := 0; -- the clean-up took the pair away in this moment; it is put back
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.heartbeat(text, text[], text[]) IS
    'Says that a user looks at these pairs now. Creates missing instruments (unverified) and queues what is missing or stale. Returns the number of new pairs.';


CREATE OR REPLACE FUNCTION pricing.raise_tasks(wanted_type text, wanted_symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- Whoever holds the row is claiming it or raising it, so there is nothing to wait for.
    UPDATE pricing.api_call_queue_live q SET priority = grown.viewers
    FROM (SELECT x.id, v.viewers
          FROM pricing.api_call_queue_live x
          CROSS JOIN LATERAL (SELECT count(*)::integer AS viewers FROM pricing.active_subscriptions a
                              WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol)) v
          WHERE x.data_type = wanted_type AND x.symbol = ANY (wanted_symbols)
            AND x.window_start = '-infinity' AND x.window_end = 'infinity'
            AND x.status IN ('pending', 'scheduled') AND x.priority < v.viewers
          ORDER BY x.id FOR UPDATE OF x SKIP LOCKED) grown
    WHERE q.id = grown.id
$$;
COMMENT ON FUNCTION pricing.raise_tasks(text, text[]) IS 'Gives waiting tasks the priority of their viewers, when it has grown.';


CREATE OR REPLACE FUNCTION pricing.unsubscribe(user_id text, data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    removed integer;
BEGIN
    DELETE FROM pricing.active_subscriptions a
    USING unnest(data_types, symbols) AS u (data_type, symbol)
    WHERE a.user_id = unsubscribe.user_id AND (a.data_type, a.symbol) = (u.data_type, u.symbol);
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;
COMMENT ON FUNCTION pricing.unsubscribe(text, text[], text[]) IS 'Removes subscriptions on leave; returns how many there were.';


CREATE OR REPLACE FUNCTION pricing.clean_subscriptions() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    removed integer;
BEGIN
    DELETE FROM pricing.active_subscriptions a USING (
        SELECT s.user_id, s.data_type, s.symbol FROM pricing.active_subscriptions s
        WHERE s.last_seen_at < now_ - interval '5 minutes'
        ORDER BY s.data_type, s.symbol, s.user_id FOR UPDATE SKIP LOCKED) gone
    WHERE (a.user_id, a.data_type, a.symbol) = (gone.user_id, gone.data_type, gone.symbol);
    GET DIAGNOSTICS removed = ROW_COUNT;
    -- Grace and SKIP LOCKED: a heartbeat that is just arriving keeps its demand; the foreign key guards the rest.
    -- A pair that is held off stays, so that leaving and coming back does not start it again.
    -- What still waits for such a pair is cancelled: nobody watches it, so nobody shall fetch it. Of scheduled
    -- types it stays: a viewer may only have raised what the schedule had queued.
    BEGIN
        WITH idle AS (
            DELETE FROM pricing.demand d USING (
                SELECT x.data_type, x.symbol FROM pricing.demand x
                WHERE x.created_at < now_ - interval '1 minute' AND (x.held_until IS NULL OR x.held_until <= now_)
                  AND NOT EXISTS (SELECT FROM pricing.active_subscriptions a
                                  WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol))
                ORDER BY x.data_type, x.symbol FOR UPDATE SKIP LOCKED) unwatched
            WHERE (d.data_type, d.symbol) = (unwatched.data_type, unwatched.symbol)
            RETURNING d.data_type, d.symbol),
        dropped AS (
            DELETE FROM pricing.api_call_queue_live q USING idle JOIN pricing.data_type_registry r USING (data_type)
            WHERE r.refresh_strategy = 'on-demand'
              AND (q.data_type, q.symbol, q.window_start, q.window_end) = (idle.data_type, idle.symbol, '-infinity', 'infinity')
              AND q.status IN ('pending', 'scheduled') AND q.priority > 0
            RETURNING q.*)
        INSERT INTO pricing.api_call_queue_dead
            (id, data_type, symbol, window_start, window_end, provider, status, priority, cadence_minutes, est_bytes,
             enqueued_at, attempt, max_attempts, call_id, errors, finished_at, failure_kind)
        SELECT g.id, g.data_type, g.symbol, g.window_start, g.window_end, g.provider, 'cancelled', g.priority,
               g.cadence_minutes, g.est_bytes, g.enqueued_at, g.attempt, g.max_attempts, g.call_id, g.errors, now_, 'unwatched'
        FROM dropped g;
    EXCEPTION WHEN foreign_key_violation THEN
        NULL; -- someone subscribed meanwhile; the next round cleans the others
    END;
    RETURN removed;
END $$;
COMMENT ON FUNCTION pricing.clean_subscriptions() IS 'Forgets viewers silent for 5 minutes, demand nobody has (unless it is held off), and tasks that wait for it. Never touches last_seen_at.';


CREATE OR REPLACE FUNCTION pricing.enqueue_due(at_most integer DEFAULT 10000) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    queued integer := 0;
BEGIN
    PERFORM pricing.require_primary();
    -- Two checks at once would only do the same work twice.
    IF NOT pg_try_advisory_xact_lock(hashtextextended('pricing.enqueue_due', 0)) THEN
        RETURN 0;
    END IF;
    FOR kind IN
        SELECT r.data_type FROM pricing.data_type_registry r
        WHERE r.is_active
          AND EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = r.data_type AND d.due_at <= now_)
        ORDER BY 1
    LOOP
        BEGIN
            queued := queued + pricing.enqueue_due_of_type(kind.data_type, NULL, at_most);
        EXCEPTION WHEN OTHERS THEN -- one bad type must not stop the others
            PERFORM pricing.warn('enqueue_due', kind.data_type, 'the staleness check failed: ' || SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.enqueue_due(integer) IS 'The staleness check: queues what is due and stale, moves on what is still fresh. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.enqueue_due_of_type(wanted_type text, only_symbols text[], at_most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
    stale_symbols text[];
    viewers integer[];
BEGIN
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    -- NO KEY UPDATE, so that heartbeats (which take a key share through the foreign key) do not wait.
    -- Of the symbols a first look names, what nobody else watches is judged at once: its due_at may date from
    -- when it had no viewer.
    BEGIN
        EXECUTE pg_catalog.format($query$
            WITH due AS MATERIALIZED (
                SELECT d.symbol, d.due_at FROM pricing.demand d
                WHERE d.data_type = $1 AND CASE WHEN $3 IS NULL THEN d.due_at <= $2
                    ELSE d.symbol = ANY ($3) AND (d.due_at <= $2 OR (
                        d.due_at < 'infinity' AND coalesce(d.held_until, '-infinity') <= $2
                        AND 1 = (SELECT count(*) FROM pricing.active_subscriptions a
                                 WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)))) END
                ORDER BY d.data_type, d.due_at LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED),
            judged AS MATERIALIZED (
                SELECT due.symbol, due.due_at, make_interval(mins => ttl.minutes) AS ttl,
                       v.%1$I + make_interval(mins => ttl.minutes) AS stale_at, pricing.%2$I(v.%1$I, ttl.minutes) AS is_stale,
                       (SELECT count(DISTINCT a.user_id)::integer FROM pricing.active_subscriptions a
                        WHERE a.data_type = $1 AND a.symbol = due.symbol) AS viewers
                FROM due LEFT JOIN pricing.%3$I v ON v.%4$I = due.symbol
                CROSS JOIN LATERAL (SELECT coalesce(v.cache_ttl_minutes, $5) AS minutes) ttl),
            looked AS (
                -- Old, and yet judged fresh (a market is closed, say): nobody knows until when, so look again soon.
                UPDATE pricing.demand d
                SET due_at = CASE WHEN j.viewers = 0 THEN $2 + interval '1 minute'
                                  WHEN j.is_stale THEN 'infinity'
                                  WHEN j.stale_at > $2 THEN j.stale_at
                                  ELSE $2 + least(j.ttl / 4, interval '1 minute') END,
                    became_due_at = CASE WHEN j.is_stale AND j.viewers > 0 THEN j.due_at END
                FROM judged j WHERE d.data_type = $1 AND d.symbol = j.symbol
                RETURNING j.symbol, j.viewers, j.is_stale)
            SELECT array_agg(symbol), array_agg(viewers) FROM looked WHERE is_stale AND viewers > 0
            $query$, kind.timestamp_column, kind.staleness_function, kind.table_name, kind.symbol_column)
        INTO stale_symbols, viewers
        USING wanted_type, now_, only_symbols, at_most, kind.default_ttl_minutes;
    EXCEPTION WHEN OTHERS THEN
        -- What cannot be judged counts as stale, once per TTL: after a fetch the pair is due a TTL later.
        PERFORM pricing.warn('enqueue_due', wanted_type,
                             'staleness cannot be judged, and what is due counts as stale: ' || SQLERRM, SQLSTATE);
        WITH due AS MATERIALIZED (
            SELECT d.symbol, d.due_at, (SELECT count(DISTINCT a.user_id)::integer FROM pricing.active_subscriptions a
                                        WHERE a.data_type = wanted_type AND a.symbol = d.symbol) AS viewers
            FROM pricing.demand d
            WHERE d.data_type = wanted_type AND d.due_at <= now_ AND (only_symbols IS NULL OR d.symbol = ANY (only_symbols))
            ORDER BY d.data_type, d.due_at LIMIT at_most FOR NO KEY UPDATE OF d SKIP LOCKED),
        looked AS (
            UPDATE pricing.demand d
            SET due_at = CASE WHEN due.viewers = 0 THEN now_ + interval '1 minute' ELSE 'infinity' END,
                became_due_at = CASE WHEN due.viewers > 0 THEN due.due_at END
            FROM due WHERE d.data_type = wanted_type AND d.symbol = due.symbol
            RETURNING due.symbol, due.viewers)
        SELECT array_agg(l.symbol), array_agg(l.viewers) INTO stale_symbols, viewers FROM looked l WHERE l.viewers > 0;
    END;
    IF stale_symbols IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pricing.enqueue(wanted_type, stale_symbols, viewers);
    RETURN cardinality(stale_symbols);
END $$;
COMMENT ON FUNCTION pricing.enqueue_due_of_type(text, text[], integer) IS 'The staleness check of one data type, or of some symbols of it.';


CREATE OR REPLACE FUNCTION pricing.enqueue_scheduled(wanted_type text) RETURNS integer
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.enqueue(wanted_type, array_agg(i.symbol ORDER BY i.symbol), array_agg(-1))
    FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
    WHERE r.data_type = wanted_type AND r.is_active AND r.refresh_strategy = 'scheduled'
      AND i.is_active AND i.update_mode = 'api'
$$;
COMMENT ON FUNCTION pricing.enqueue_scheduled(text) IS 'Queues every active instrument of a scheduled type, behind all on-demand work.';


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
