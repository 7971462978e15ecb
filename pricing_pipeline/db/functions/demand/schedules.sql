-- Scheduled data types: which slot of their schedule was served, and the walk over their instruments.
-- A cron expression says when a slot is due. Python reads it (defs/schedules.py).

CREATE OR REPLACE FUNCTION pricing.enqueue_scheduled(wanted_type text, slot timestamptz DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    -- Dagster's machine may be a little ahead. Far ahead is another clock: up to its time no slot would be served any
    -- more.
    served timestamptz := CASE WHEN slot <= now_ + interval '1 hour' THEN slot ELSE now_ END;
BEGIN
    PERFORM pricing.require_primary();
    -- A walk that is not finished continues for one more lap: otherwise a slow queue would never see the
    -- instruments at the end.
    UPDATE pricing.schedule_walks w
    SET served_slot = served, walk_slot = served, lap_start = w.walk_after, wrapped = false
    FROM pricing.data_type_registry r
    WHERE w.data_type = wanted_type AND r.data_type = w.data_type AND r.is_active AND r.refresh_strategy = 'scheduled'
      AND w.served_slot < served
      -- A walk that another session has locked is left for the next look: the slot stays owed.
      AND w.data_type = (SELECT x.data_type FROM pricing.schedule_walks x
                         WHERE x.data_type = wanted_type FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN pricing.walk_schedule(wanted_type);
END $$;
COMMENT ON FUNCTION pricing.enqueue_scheduled(text, timestamptz) IS
    'Serves a slot of a scheduled type (NULL = now) by starting to queue its instruments; returns how many so far, '
    'NULL if the slot was served already or the type has no schedule.';


CREATE OR REPLACE FUNCTION pricing.walk_schedules() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind record;
    queued integer := 0;
BEGIN
    -- Two sessions at once would each fill the remaining room in the queue.
    IF NOT pricing.take_turn('walk_schedules') THEN
        RETURN 0;
    END IF;
    queued := pricing.walk_requested();
    FOR kind IN SELECT w.data_type FROM pricing.schedule_walks w WHERE w.walk_slot IS NOT NULL
        ORDER BY w.walk_slot, 1 LOOP
        BEGIN
            queued := queued + pricing.walk_schedule(kind.data_type);
        EXCEPTION WHEN OTHERS THEN -- one bad type must not stop the others
            PERFORM pricing.warn('walk_schedules', kind.data_type, SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.walk_schedules() IS 'Continues every walk by one chunk; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.walk_schedule(wanted_type text) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    walk pricing.schedule_walks;
    known record;
    found_symbols text[];
BEGIN
    SELECT * INTO walk FROM pricing.schedule_walks w
    WHERE w.data_type = wanted_type AND w.walk_slot IS NOT NULL FOR UPDATE SKIP LOCKED;
    IF walk.data_type IS NULL THEN
        RETURN 0;
    END IF;
    known := pricing.schedule_stop(wanted_type);
    IF known.room = 0 THEN
        -- The walk stays where it is: the slot is postponed, not lost.
        IF known.is_trouble THEN
            PERFORM pricing.warn('walk_schedules', wanted_type, 'the slot waits: ' || known.reason, '53400');
        END IF;
        RETURN 0;
    END IF;
    SELECT array_agg(x.symbol ORDER BY x.symbol) INTO found_symbols FROM (
        -- By key: with the view alone, the whole class would be sorted.
        SELECT i.symbol FROM pricing.instruments i
        WHERE i.asset_class = (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type)
          AND i.symbol > walk.walk_after AND (NOT walk.wrapped OR i.symbol <= walk.lap_start)
          AND (SELECT u.left_out FROM pricing.universe u
               WHERE (u.data_type, u.symbol) = (wanted_type, i.symbol)) IS NULL
        ORDER BY i.symbol LIMIT known.room) x;
    IF cardinality(found_symbols) = known.room THEN
        walk.walk_after := found_symbols[known.room];
    ELSIF walk.lap_start > '' AND NOT walk.wrapped THEN
        walk.walk_after := '';
        walk.wrapped := true;
    ELSE
        walk.walk_slot := NULL;
        walk.walk_after := '';
        walk.lap_start := '';
        walk.wrapped := false;
    END IF;
    UPDATE pricing.schedule_walks w
    SET walk_slot = walk.walk_slot, walk_after = walk.walk_after, lap_start = walk.lap_start, wrapped = walk.wrapped
    WHERE w.data_type = wanted_type;
    RETURN pricing.enqueue_walked(wanted_type, found_symbols);
END $$;
COMMENT ON FUNCTION pricing.walk_schedule(text) IS
    'Queues the next 500 instruments of a walk, by key, or as many as a provider of the type can take; returns the '
    'number queued.';


CREATE OR REPLACE FUNCTION pricing.schedule_rooms(wanted_type text)
RETURNS TABLE (provider text, room integer, reason text, is_trouble boolean)
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT DISTINCT p.provider, p.is_active,
               ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint AS est_bytes
        FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
        JOIN pricing.data_collectors p ON p.provider = r.provider
        JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (r.provider, r.data_type, 'symbol')
        WHERE r.data_type = wanted_type AND r.is_active ORDER BY 1
    LOOP
        provider := one.provider;
        room := least(500, 1000 - pricing.queue_depth(one.provider, 1000));
        reason := NULL;
        is_trouble := false;
        IF NOT one.is_active THEN
            room := 0;
            reason := pg_catalog.format('%s is switched off (`pricing-pipeline provider change` switches it on)',
                                        one.provider);
            is_trouble := true;
        ELSIF room = 0 THEN
            is_trouble := coalesce(
                (SELECT s.breaker <> 'closed' FROM pricing.provider_state s WHERE s.provider = one.provider)
                OR (SELECT bool_and(NOT k.is_active OR k.blocked_until > pricing.clock()) FROM pricing.provider_keys k
                    WHERE k.provider = one.provider), false);
            reason := pg_catalog.format('1,000 tasks of %s are live already%s', one.provider,
                                        CASE WHEN is_trouble THEN ', and it cannot be called' ELSE '' END);
        ELSIF pricing.may_fit(one.provider, -1, one.est_bytes) THEN
            room := least(room, pricing.queue_room(one.provider, -1, room * one.est_bytes) / one.est_bytes);
            IF room = 0 THEN
                reason := pg_catalog.format(
                    'the quota of %s leaves nothing for schedules until bytes of the last 30 days have left the '
                    'window, or quota_bytes is raised', one.provider);
                is_trouble := true;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.schedule_rooms(text) IS
    'How many instruments of a data type a schedule may queue now at each provider (at most 500), and if none, why '
    'and whether that is trouble.';


CREATE OR REPLACE FUNCTION pricing.schedule_stop(wanted_type text, OUT room integer, OUT reason text,
                                                 OUT is_trouble boolean)
LANGUAGE sql VOLATILE SET search_path = '' AS $$
    SELECT coalesce(max(r.room), 0), CASE WHEN count(*) = 0
               THEN 'no rule names a provider; add a route with `pricing-pipeline route add`, or make one active'
               ELSE string_agg(r.reason, '; ' ORDER BY r.provider) END,
           coalesce(bool_or(r.is_trouble), true)
    FROM pricing.schedule_rooms(wanted_type) r
$$;
COMMENT ON FUNCTION pricing.schedule_stop(text) IS
    'The most instruments of a data type that a schedule may queue now at one provider, and why some or all of its '
    'providers can take none.';


CREATE OR REPLACE FUNCTION pricing.asked_by_schedule(wanted_type text, symbols text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
BEGIN
    SELECT r.staleness_function = 'is_market_stale' AS is_market, w.served_slot,
           make_interval(mins => r.default_ttl_minutes) AS ttl,
           pricing.are_ttls_stretched() AS is_stretched INTO kind
    FROM pricing.data_type_registry r JOIN pricing.schedule_walks w USING (data_type)
    WHERE r.data_type = wanted_type AND r.is_active AND r.refresh_strategy = 'scheduled';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT array_agg(DISTINCT s) FROM unnest(symbols) AS s
        WHERE (SELECT u.left_out FROM pricing.universe u WHERE (u.data_type, u.symbol) = (wanted_type, s)) IS NULL
          AND NOT pricing.is_forgotten(wanted_type, s)
          AND NOT EXISTS (SELECT FROM pricing.demand d
                          WHERE (d.data_type, d.symbol) = (wanted_type, s) AND d.backoff_until > now_)
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live q
                          WHERE (q.data_type, q.symbol, q.window_start, q.window_end)
                                = (wanted_type, s, '-infinity', 'infinity'))
          -- However many slots were missed, one answer since the last of them serves all.
          AND NOT EXISTS (
              SELECT FROM pricing.latest_answers a
              WHERE (a.data_type, a.symbol) = (wanted_type, s)
                AND a.fetched_at BETWEEN kind.served_slot - (
                        CASE WHEN kind.is_stretched THEN kind.ttl * ((pricing.stretch_of(wanted_type, s, now_))[2] - 1)
                             ELSE interval '0' END)
                    AND now_ + interval '1 minute')
          -- On a Sunday no fund has a newer value than on Saturday.
          AND NOT EXISTS (
              SELECT FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
              CROSS JOIN LATERAL pricing.next_value_at(r, s, l.fetched_at, interval '1 minute') v
              WHERE kind.is_market AND (l.data_type, l.symbol) = (wanted_type, s)
                AND l.fetched_at <= now_ + interval '1 minute' AND v.at > now_));
END $$;
COMMENT ON FUNCTION pricing.asked_by_schedule(text, text[]) IS
    'Which of the symbols (NULL = none) the last served slot still has to fetch: not left out, backing off, queued or '
    'fetched since.';


CREATE OR REPLACE FUNCTION pricing.is_forgotten(wanted_type text, wanted_symbol text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pricing.api_call_queue_dead d
                   WHERE d.data_type = wanted_type AND d.symbol = wanted_symbol AND d.window_end = 'infinity'
                     AND d.failure_kind = 'unknown_symbol' AND d.resolved_at IS NULL
                       AND d.finished_at > pricing.clock() - interval '7 days')
       AND NOT EXISTS (SELECT FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol)
                                                              AND a.fetched_at > pricing.clock() - interval '7 days')
       AND EXISTS (SELECT FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
                   WHERE r.data_type = wanted_type AND i.symbol = wanted_symbol
                     AND i.verified_at < pricing.clock() - interval '7 days')
$$;
COMMENT ON FUNCTION pricing.is_forgotten(text, text) IS
    'Whether a provider that once answered for a pair has not known it for a week, and was asked within that week.';


CREATE OR REPLACE FUNCTION pricing.enqueue_walked(wanted_type text, symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    common text := (pricing.common_route(wanted_type)).provider;
    near record;
    wanted record;
BEGIN
    symbols := pricing.asked_by_schedule(wanted_type, symbols);
    IF symbols IS NULL THEN
        RETURN 0;
    END IF;
    WITH routed AS MATERIALIZED (
        SELECT s AS symbol, coalesce(common, (pricing.route(wanted_type, s)).provider) AS provider
        FROM unnest(symbols) AS s),
    placed AS (
        SELECT a.symbol,
               coalesce(row_number() OVER (PARTITION BY a.provider ORDER BY a.symbol) <= r.room, false) AS is_near
        FROM routed a LEFT JOIN pricing.schedule_rooms(wanted_type) r USING (provider))
    SELECT array_agg(p.symbol) FILTER (WHERE p.is_near) AS symbols,
           array_agg(p.symbol) FILTER (WHERE NOT p.is_near) AS left_out INTO near FROM placed p;
    wanted := pricing.within_quota(wanted_type, near.symbols,
                                   array_fill(-1, ARRAY[coalesce(cardinality(near.symbols), 0)]));
    PERFORM pricing.ask_later(wanted_type, near.left_out || wanted.left_out);
    RETURN pricing.enqueue(wanted_type, wanted.fitting, wanted.fitting_priorities);
END $$;
COMMENT ON FUNCTION pricing.enqueue_walked(text, text[]) IS
    'Queues the pairs that a walk has reached, as far as their providers can take them, and leaves requests for the '
    'rest; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.ask_later(wanted_type text, symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- Only one request for each pair: slots keep coming while there is no room.
    INSERT INTO pricing.pair_requests (data_type, symbol, kind, requested_at)
    SELECT wanted_type, s, 'scheduled', pricing.clock() + interval '1 minute' FROM unnest(symbols) AS s
    WHERE NOT EXISTS (SELECT FROM pricing.pair_requests x
                      WHERE (x.data_type, x.symbol) = (wanted_type, s) AND x.kind = 'scheduled' OFFSET 0)
$$;
COMMENT ON FUNCTION pricing.ask_later(text, text[]) IS
    'Leaves requests for what a schedule could not queue, to be retried in a minute.';


CREATE OR REPLACE FUNCTION pricing.walk_requested() RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    queued integer := 0;
BEGIN
    FOR kind IN
        WITH served AS MATERIALIZED (
            -- Types that no provider can take are skipped; types without a schedule are forgotten.
            SELECT r.data_type FROM pricing.data_type_registry r
            WHERE EXISTS (SELECT FROM pricing.pair_requests x WHERE x.data_type = r.data_type AND x.kind = 'scheduled')
              AND CASE WHEN r.is_active AND r.refresh_strategy = 'scheduled'
                       THEN (pricing.schedule_stop(r.data_type)).room > 0 ELSE true END),
        taken AS (
            DELETE FROM pricing.pair_requests r USING (
                SELECT x.request_id FROM pricing.pair_requests x JOIN served USING (data_type)
                WHERE x.kind = 'scheduled' AND (x.requested_at <= now_ OR x.requested_at > now_ + interval '1 minute')
                ORDER BY x.requested_at, x.request_id LIMIT 500 FOR UPDATE OF x SKIP LOCKED) mine
            WHERE r.request_id = mine.request_id RETURNING r.data_type, r.symbol)
        SELECT t.data_type, array_agg(t.symbol) AS symbols FROM taken t GROUP BY 1 ORDER BY 1
    LOOP
        BEGIN
            queued := queued + pricing.enqueue_walked(kind.data_type, kind.symbols);
        EXCEPTION WHEN OTHERS THEN -- one bad type must not stop the others
            PERFORM pricing.ask_later(kind.data_type, kind.symbols);
            PERFORM pricing.warn('walk_schedules', kind.data_type, SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.walk_requested() IS
    'Queues what walks could not queue, at most 500 at a time; the rest waits a minute; returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.walk_waits(wanted_type text, wanted_symbol text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pricing.pair_requests x
                   WHERE (x.data_type, x.symbol) = (wanted_type, wanted_symbol) AND x.kind = 'scheduled')
        OR EXISTS (SELECT FROM pricing.schedule_walks w
                   WHERE w.data_type = wanted_type AND w.walk_slot IS NOT NULL
                     AND CASE WHEN w.wrapped THEN wanted_symbol > w.walk_after AND wanted_symbol <= w.lap_start
                              ELSE wanted_symbol > w.walk_after OR wanted_symbol <= w.lap_start END)
$$;
COMMENT ON FUNCTION pricing.walk_waits(text, text) IS
    'Whether a scheduled type''s walk has not reached a symbol yet, or could not queue it.';


CREATE OR REPLACE FUNCTION pricing.waiting_schedules()
RETURNS TABLE (data_type text, slot timestamptz, instruments bigint, reason text)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.data_type, w.served_slot, waiting.instruments,
           coalesce(known.reason, 'no active provider serves them, or another session was in the way')
    FROM pricing.schedule_walks w JOIN pricing.data_type_registry r USING (data_type)
    CROSS JOIN LATERAL pricing.schedule_stop(w.data_type) known
    CROSS JOIN LATERAL (
        SELECT count(*) AS instruments FROM pricing.instruments i
        WHERE i.asset_class = r.asset_class AND pricing.walk_waits(w.data_type, i.symbol)
          AND i.is_active AND i.update_mode = 'api') waiting
    WHERE r.is_active AND r.refresh_strategy = 'scheduled' AND waiting.instruments > 0
      AND ((w.walk_slot IS NOT NULL AND known.reason IS NOT NULL)
           OR EXISTS (SELECT FROM pricing.pair_requests x WHERE x.data_type = w.data_type AND x.kind = 'scheduled'))
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.waiting_schedules() IS
    'Scheduled types with a provider that can take no more: the last served slot, how many instruments it has still '
    'to queue, and why.';


CREATE OR REPLACE FUNCTION pricing.queue_depth(wanted_provider text, at_most integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT least(at_most,
        (SELECT count(*) FROM (SELECT FROM pricing.api_call_queue_live q
                               WHERE q.provider = wanted_provider AND q.run_after IS NULL
                                 AND q.priority > -2 LIMIT at_most) counted)
      + (SELECT count(*) FROM (SELECT FROM pricing.api_call_queue_live q
                               WHERE q.provider = wanted_provider AND q.run_after IS NOT NULL
                                 AND q.priority > -2 LIMIT at_most) counted))::integer
$$;
COMMENT ON FUNCTION pricing.queue_depth(text, integer) IS
    'A provider''s live tasks other than backfills, counted up to a limit.';


CREATE OR REPLACE FUNCTION pricing.schedule_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NEW.refresh_strategy <> 'scheduled' OR NOT NEW.is_active THEN
        UPDATE pricing.schedule_walks SET walk_slot = NULL, walk_after = '', lap_start = '', wrapped = false
        WHERE data_type = NEW.data_type;
    ELSE
        INSERT INTO pricing.schedule_walks AS w (data_type, served_slot) VALUES (NEW.data_type, pricing.clock())
        ON CONFLICT (data_type) DO UPDATE SET served_slot = greatest(w.served_slot, excluded.served_slot);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.schedule_changed() IS
    'Slots from before a type had this schedule, or while it was retired, are not owed.';

CREATE TRIGGER schedule_added
    AFTER INSERT ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.schedule_changed();

CREATE TRIGGER schedule_changed
    AFTER UPDATE OF refresh_strategy, refresh_schedule, schedule_timezone, is_active ON pricing.data_type_registry
    FOR EACH ROW WHEN (
        OLD.refresh_strategy IS DISTINCT FROM NEW.refresh_strategy
        OR OLD.refresh_schedule IS DISTINCT FROM NEW.refresh_schedule
        OR OLD.schedule_timezone IS DISTINCT FROM NEW.schedule_timezone
        OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.schedule_changed();
