-- Scheduled data types: which slot of their schedule was served, and the walk over their instruments.
-- When a slot is due is said by a cron expression, which Python reads (defs/schedules.py).

CREATE OR REPLACE FUNCTION pricing.enqueue_scheduled(wanted_type text, slot timestamptz DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    -- Dagster's machine may be a little ahead. Far ahead is another clock: up to its time no slot would be served any more.
    served timestamptz := CASE WHEN slot <= now_ + interval '1 hour' THEN slot ELSE now_ END;
BEGIN
    PERFORM pricing.require_primary();
    -- A walk that is not finished goes on where it is, for one lap more: else a slow queue would never see the
    -- instruments at the end.
    UPDATE pricing.schedule_walks w
    SET served_slot = served, walk_slot = served, lap_start = w.walk_after, wrapped = false
    FROM pricing.data_type_registry r
    WHERE w.data_type = wanted_type AND r.data_type = w.data_type AND r.is_active AND r.refresh_strategy = 'scheduled'
      AND w.served_slot < served
      -- A walk that another session has locked is left for the next look: the slot stays owed.
      AND w.data_type = (SELECT x.data_type FROM pricing.schedule_walks x WHERE x.data_type = wanted_type FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN pricing.walk_schedule(wanted_type);
END $$;
COMMENT ON FUNCTION pricing.enqueue_scheduled(text, timestamptz) IS
    'Serves a slot of a scheduled type (without one, or with one more than an hour ahead: now): begins to queue its instruments, behind all on-demand work. Returns how many are queued so far; NULL when the slot was served before or the type has no schedule.';


CREATE OR REPLACE FUNCTION pricing.walk_schedules() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind record;
    queued integer := 0;
BEGIN
    -- Two at once would each fill the room that is left in the queue.
    IF NOT pricing.take_turn('walk_schedules') THEN
        RETURN 0;
    END IF;
    queued := pricing.walk_requested();
    FOR kind IN SELECT w.data_type FROM pricing.schedule_walks w WHERE w.walk_slot IS NOT NULL ORDER BY w.walk_slot, 1 LOOP
        BEGIN
            queued := queued + pricing.walk_schedule(kind.data_type);
        EXCEPTION WHEN OTHERS THEN -- one bad type must not stop the others
            PERFORM pricing.warn('walk_schedules', kind.data_type, SQLERRM, SQLSTATE);
        END;
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.walk_schedules() IS 'Goes on with every walk that is under way, by one chunk. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.walk_schedule(wanted_type text) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    walk pricing.schedule_walks;
    room integer;
    found_symbols text[];
    wanted record;
    -- Where symbols have routes of their own, each is looked at by itself, below.
    route record := pricing.common_route(wanted_type);
BEGIN
    SELECT * INTO walk FROM pricing.schedule_walks w
    WHERE w.data_type = wanted_type AND w.walk_slot IS NOT NULL FOR UPDATE SKIP LOCKED;
    room := least(500, 1000 - pricing.queue_depth(1000));
    IF walk IS NULL OR room <= 0 THEN
        RETURN 0;
    END IF;
    IF pricing.may_fit(route.provider, -1, route.est_bytes) THEN
        room := least(room, pricing.take_room(route.provider, -1, room * route.est_bytes) / route.est_bytes);
    END IF;
    IF room = 0 THEN
        -- The walk stays where it is: the slot is postponed, not lost.
        PERFORM pricing.warn('walk_schedules', wanted_type, pg_catalog.format(
            'the quota of %s leaves nothing for schedules; the slot waits until bytes of the last 30 days have left the window, or quota_bytes is raised',
            route.provider), '53400');
        RETURN 0;
    END IF;
    SELECT array_agg(x.symbol ORDER BY x.symbol) INTO found_symbols FROM (
        -- By key: of the view alone the whole class would be sorted.
        SELECT i.symbol FROM pricing.instruments i
        WHERE i.asset_class = (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type)
          AND i.symbol > walk.walk_after AND (NOT walk.wrapped OR i.symbol <= walk.lap_start)
          AND (SELECT u.left_out FROM pricing.universe u WHERE (u.data_type, u.symbol) = (wanted_type, i.symbol)) IS NULL
        ORDER BY i.symbol LIMIT room) x;
    IF cardinality(found_symbols) = room THEN
        walk.walk_after := found_symbols[room];
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
    SELECT array_agg(s) AS symbols INTO wanted FROM unnest(found_symbols) AS s
    WHERE NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (wanted_type, s) AND d.held_until > now_)
      -- On a Sunday no fund has a newer value than on Saturday.
      AND NOT EXISTS (
          SELECT FROM pricing.data_type_registry r JOIN pricing.latest_prices l USING (data_type)
          WHERE r.data_type = wanted_type AND r.staleness_function = 'is_market_stale' AND l.symbol = s
            AND l.fetched_at <= now_ + interval '1 minute'
            AND pricing.next_value_at(wanted_type, s, l.fetched_at, interval '1 minute') > now_);
    RETURN pricing.enqueue_walked(wanted_type, wanted.symbols);
END $$;
COMMENT ON FUNCTION pricing.walk_schedule(text) IS
    'Queues the next 500 instruments of a walk, by key, as far as the queue stays within 1,000 tasks (backfills not counted). Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.enqueue_walked(wanted_type text, symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted record;
BEGIN
    IF symbols IS NULL THEN
        RETURN 0;
    END IF;
    wanted := pricing.within_quota(wanted_type, symbols, array_fill(-1, ARRAY[cardinality(symbols)]));
    -- The walk has gone on; these have routes of their own, to a provider that has no room.
    IF wanted.left_out IS NOT NULL THEN
        PERFORM pricing.warn('walk_schedules', wanted_type,
            'the quotas of their providers leave nothing for schedules of some symbols that have routes of their own; they wait', '53400');
        PERFORM pricing.request_pairs('scheduled', array_fill(wanted_type, ARRAY[cardinality(wanted.left_out)]), wanted.left_out);
    END IF;
    RETURN pricing.enqueue(wanted_type, wanted.fitting, wanted.fitting_priorities);
END $$;
COMMENT ON FUNCTION pricing.enqueue_walked(text, text[]) IS
    'Queues what a walk has come by, as far as quotas have room for it; the rest is requested, and so asked for until they have. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.walk_requested() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    room integer;
    kind record;
    wanted record;
    queued integer := 0;
BEGIN
    IF EXISTS (SELECT FROM pricing.pair_requests x WHERE x.kind = 'scheduled') THEN
        room := least(500, 1000 - pricing.queue_depth(1000));
    END IF;
    IF coalesce(room, 0) <= 0 THEN
        RETURN 0;
    END IF;
    FOR kind IN
        WITH taken AS (
            DELETE FROM pricing.pair_requests r USING (
                SELECT x.request_id FROM pricing.pair_requests x
                WHERE x.kind = 'scheduled' AND (x.requested_at <= now_ OR x.requested_at > now_ + interval '1 minute') ORDER BY x.requested_at, x.request_id LIMIT room FOR UPDATE SKIP LOCKED) mine
            WHERE r.request_id = mine.request_id RETURNING r.data_type, r.symbol)
        SELECT t.data_type, array_agg(DISTINCT t.symbol) AS symbols FROM taken t JOIN pricing.data_type_registry k USING (data_type)
        WHERE k.is_active AND (SELECT u.left_out FROM pricing.universe u WHERE (u.data_type, u.symbol) = (t.data_type, t.symbol)) IS NULL
        GROUP BY 1 ORDER BY 1
    LOOP
        wanted := pricing.within_quota(kind.data_type, kind.symbols, array_fill(-1, ARRAY[cardinality(kind.symbols)]));
        -- In a minute they are looked at once more, and meanwhile those of other providers.
        INSERT INTO pricing.pair_requests (data_type, symbol, kind, requested_at)
        SELECT kind.data_type, s, 'scheduled', now_ + interval '1 minute' FROM unnest(wanted.left_out) AS s;
        queued := queued + pricing.enqueue(kind.data_type, wanted.fitting, wanted.fitting_priorities);
    END LOOP;
    RETURN queued;
END $$;
COMMENT ON FUNCTION pricing.walk_requested() IS
    'Queues what walks could not queue when they came by it, as far as the queue stays within 1,000 tasks and quotas have room; the rest waits a minute. Returns the number queued.';


CREATE OR REPLACE FUNCTION pricing.queue_depth(at_most integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT least(at_most, (
        SELECT coalesce(sum(w.tasks), 0) FROM pricing.data_collectors c CROSS JOIN LATERAL (
            SELECT count(*) AS tasks FROM (
                SELECT FROM pricing.api_call_queue_live q
                WHERE q.provider = c.provider AND q.run_after IS NULL AND q.priority > -2 LIMIT at_most) counted) w)
      + (SELECT count(*) FROM (SELECT FROM pricing.api_call_queue_live q
                               WHERE q.run_after IS NOT NULL AND q.priority > -2 LIMIT at_most) counted))::integer
$$;
COMMENT ON FUNCTION pricing.queue_depth(integer) IS 'Live tasks without those of backfills, counted up to a limit, by the index that claims use.';
