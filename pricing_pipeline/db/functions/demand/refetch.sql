-- Repeated requests: for bars stored before their day was over, trading days that an answer lacked, and histories that
-- came divided by another ratio. Each is kept until it has been requested, with what it waits for.

CREATE OR REPLACE FUNCTION pricing.is_traded_by_others(wanted_type text, wanted_symbol text, day date) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pricing.data_type_registry r
        JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, wanted_symbol)
        JOIN pricing.instruments o ON o.asset_class = i.asset_class AND o.calendar = i.calendar AND o.symbol <> i.symbol
        JOIN pricing.price_history h ON h.data_type = wanted_type AND h.symbol = o.symbol
                                        AND h.observed_at = day::timestamp AT TIME ZONE 'UTC'
        WHERE r.data_type = wanted_type)
$$;
COMMENT ON FUNCTION pricing.is_traded_by_others(text, text, date) IS
    'Whether another instrument of the same exchange has a value for a day.';


CREATE OR REPLACE FUNCTION pricing.absent_spans()
RETURNS TABLE (data_type text, symbol text, first_day date, last_day date, since timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT a.data_type, a.symbol, a.day, a.ask_at, longest.days AS longest
        FROM pricing.absent_days a
        JOIN pricing.data_type_registry r ON r.data_type = a.data_type AND r.is_active
        CROSS JOIN LATERAL (
            SELECT u.left_out FROM pricing.universe u WHERE (u.data_type, u.symbol) = (a.data_type, a.symbol)) about
        LEFT JOIN LATERAL pricing.longest_window(a.data_type, a.symbol, r.fetcher) AS longest (days) ON true
        WHERE a.ask_at <= pricing.clock() AND about.left_out IS NULL
          AND (a.asked < 3 OR pricing.is_traded_by_others(a.data_type, a.symbol, a.day))
          AND NOT EXISTS (SELECT FROM pricing.price_history h
                          WHERE h.data_type = a.data_type AND h.symbol = a.symbol
                            AND h.observed_at = a.day::timestamp AT TIME ZONE 'UTC')
          -- What is on its way is not asked for again.
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live q
                          WHERE (q.data_type, q.symbol) = (a.data_type, a.symbol) AND q.window_end <> 'infinity'
                            AND a.day BETWEEN q.window_start AND q.window_end)),
    steps AS (
        SELECT d.*, d.day - lag(d.day) OVER (PARTITION BY d.data_type, d.symbol ORDER BY d.day) AS step FROM due d),
    -- Days within a month of each other are one call.
    islands AS (
        SELECT s.*, count(*) FILTER (WHERE s.step IS NULL OR s.step > 30)
                        OVER (PARTITION BY s.data_type, s.symbol ORDER BY s.day) AS island
        FROM steps s),
    pieces AS (
        SELECT i.*, (i.day - min(i.day) OVER (PARTITION BY i.data_type, i.symbol, i.island)) / coalesce(i.longest,
            1000000) AS piece
        FROM islands i)
    SELECT p.data_type, p.symbol, min(p.day), max(p.day), min(p.ask_at)
    FROM pieces p GROUP BY p.data_type, p.symbol, p.island, p.piece;
END $$;
COMMENT ON FUNCTION pricing.absent_spans() IS
    'Spans of trading days that answers lacked and that are due to be requested again; after three times only while '
    'another instrument of the exchange has a value.';


CREATE OR REPLACE FUNCTION pricing.refetches()
RETURNS TABLE (data_type text, symbol text, from_day date, to_day date, is_history boolean, since timestamptz,
               provider text, est_bytes bigint, waits_for text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    today date := (now_ AT TIME ZONE 'UTC')::date;
BEGIN
    RETURN QUERY
    WITH noted AS (
        SELECT b.data_type, b.symbol, b.day AS from_day, b.day AS to_day, false AS is_history, b.ask_at AS since
        FROM (SELECT p.*, (p.observed_at AT TIME ZONE 'UTC')::date AS day FROM pricing.provisional_bars p
              WHERE p.ask_at <= now_ AND p.asked < 6) b
        -- What is on its way is not asked for again.
        WHERE NOT EXISTS (SELECT FROM pricing.api_call_queue_live q
                          WHERE (q.data_type, q.symbol) = (b.data_type, b.symbol) AND q.window_end <> 'infinity'
                            AND b.day BETWEEN q.window_start AND q.window_end)
        UNION ALL
        SELECT s.data_type, s.symbol, s.first_day, s.last_day, false, s.since FROM pricing.absent_spans() s
        UNION ALL
        SELECT x.data_type, x.symbol,
               greatest(r.history_from, least(x.first_on, (
                   SELECT (min(h.observed_at) AT TIME ZONE 'UTC')::date FROM pricing.price_history h
                   WHERE h.data_type = x.data_type AND h.symbol = x.symbol))), today, true, x.since
        FROM (SELECT y.data_type, y.symbol, min(greatest(y.recorded_at, y.reopened_at)) AS since,
                     min(y.first_on) FILTER (WHERE y.kind = 'basis') AS first_on FROM pricing.restatements y
              WHERE y.ratio IS NOT NULL AND y.backfill_id IS NULL GROUP BY 1, 2) x
        JOIN pricing.data_type_registry r USING (data_type))
    SELECT n.data_type, n.symbol, n.from_day, n.to_day, n.is_history, n.since, chosen.provider,
           (1000 + ceil((n.to_day - n.from_day + 1) * coalesce(z.bytes, c.bytes_per_day, 0)))::bigint,
           CASE WHEN NOT r.is_active THEN 'retired'
                WHEN n.is_history AND r.history_from IS NULL THEN 'no_history'
                WHEN NOT i.is_active OR i.update_mode <> 'api' THEN 'paused'
                WHEN chosen.provider IS NULL THEN 'no_provider' END
    FROM noted n
    JOIN pricing.data_type_registry r USING (data_type)
    LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, n.symbol)
    LEFT JOIN pricing.chosen_routes own ON (own.data_type, own.symbol) = (n.data_type, n.symbol)
    LEFT JOIN pricing.chosen_routes broad ON broad.data_type = n.data_type AND broad.symbol IS NULL
    CROSS JOIN LATERAL (SELECT coalesce(own.provider, broad.provider) AS provider) chosen
    LEFT JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (chosen.provider, r.fetcher)
    LEFT JOIN pricing.size_estimates z ON (z.provider, z.data_type, z.per) = (chosen.provider, n.data_type, 'day');
END $$;
COMMENT ON FUNCTION pricing.refetches() IS
    'What refetch_history has to request, with provider and bytes, and what prevents it: retired, no_history, paused '
    'or no_provider.';


CREATE OR REPLACE FUNCTION pricing.waiting_refetches()
RETURNS TABLE (provider text, data_type text, waits_for text, histories bigint, bars bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH due AS MATERIALIZED (SELECT * FROM pricing.refetches()),
    short AS MATERIALIZED (
        SELECT w.provider
        FROM (SELECT d.provider, sum(d.est_bytes)::bigint AS bytes FROM due d WHERE d.waits_for IS NULL GROUP BY 1) w
        WHERE pricing.queue_room(w.provider, -2, w.bytes) IS NOT NULL)
    SELECT d.provider, d.data_type, coalesce(d.waits_for, 'room'), count(*) FILTER (WHERE d.is_history),
           count(*) FILTER (WHERE NOT d.is_history)
    FROM due d WHERE d.waits_for IS NOT NULL OR d.provider IN (SELECT s.provider FROM short s)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
END $$;
COMMENT ON FUNCTION pricing.waiting_refetches() IS
    'How many histories and bars wait to be requested again, and for what: a reason of refetches, or room in a quota.';


CREATE OR REPLACE FUNCTION pricing.fitting_refetches()
RETURNS TABLE (data_type text, symbol text, from_day date, to_day date, is_history boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    source record;
    room bigint;
BEGIN
    FOR source IN
        SELECT f.provider, sum(f.est_bytes)::bigint AS bytes FROM pricing.refetches() f
        WHERE f.waits_for IS NULL
        GROUP BY 1 ORDER BY 1
    LOOP
        room := pricing.take_room(source.provider, -2, source.bytes);
        RETURN QUERY
        -- The smallest first: one that never fits keeps no other waiting.
        SELECT f.data_type, f.symbol, f.from_day, f.to_day, f.is_history
        FROM (SELECT y.*, sum(y.est_bytes) OVER (ORDER BY y.est_bytes, y.nth) AS total
              FROM (SELECT x.*, row_number() OVER (PARTITION BY x.is_history
                                                   ORDER BY x.est_bytes, x.since, x.data_type, x.symbol,
                                                       x.from_day) AS nth
                    FROM pricing.refetches() x WHERE x.provider = source.provider AND x.waits_for IS NULL) y
              WHERE y.nth <= CASE WHEN y.is_history THEN 20 ELSE 500 END) f
        WHERE room IS NULL OR f.total <= room
        ORDER BY 1, 2, 3;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.fitting_refetches() IS
    'The rows of refetches that fit the providers'' quotas, at most 500 bars and 20 histories of each.';


CREATE OR REPLACE FUNCTION pricing.refetch_whole(wanted_type text, wanted_symbol text, from_day date) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    today date := (pricing.clock() AT TIME ZONE 'UTC')::date;
    planned uuid;
BEGIN
    -- Covered days would not be requested, and here all days of the symbol must be.
    UPDATE pricing.history_coverage h SET covered = '{}' WHERE (h.data_type, h.symbol) = (wanted_type, wanted_symbol);
    SELECT p.backfill_id INTO planned
    FROM pricing.plan_backfill(wanted_type, coalesce(from_day, today), today, ARRAY[wanted_symbol]) p;
    UPDATE pricing.restatements r SET backfill_id = planned
    WHERE (r.data_type, r.symbol) = (wanted_type, wanted_symbol) AND r.ratio IS NOT NULL AND r.backfill_id IS NULL;
    RETURN 1;
EXCEPTION
    WHEN lock_not_available THEN
        RAISE; -- who waits for one lock would wait for each
    WHEN OTHERS THEN -- one that cannot be planned must not cost the others their turn
        PERFORM pricing.warn('refetch_history', wanted_type, SQLERRM, SQLSTATE);
        RETURN 0;
END $$;
COMMENT ON FUNCTION pricing.refetch_whole(text, text, date) IS
    'Plans a backfill of all days of a pair since its first, covered or not; returns 1, or 0 with a warning.';


CREATE OR REPLACE FUNCTION pricing.refetch_history() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    one record;
    types text[] := '{}';
    symbols text[] := '{}';
    days date[] := '{}';
    ends date[] := '{}';
    asked_ integer := 0;
BEGIN
    DELETE FROM pricing.absent_days a WHERE (a.data_type, a.symbol, a.day) IN (
        SELECT x.data_type, x.symbol, x.day FROM pricing.absent_days x
        WHERE x.ask_at <= now_ AND EXISTS (
            SELECT FROM pricing.price_history h
            WHERE h.data_type = x.data_type
              AND h.symbol = x.symbol
              AND h.observed_at = x.day::timestamp AT TIME ZONE 'UTC')
        ORDER BY 1, 2, 3 FOR UPDATE);
    FOR one IN SELECT f.* FROM pricing.fitting_refetches() f LOOP
        IF one.is_history THEN
            asked_ := asked_ + pricing.refetch_whole(one.data_type, one.symbol, one.from_day);
        ELSE
            types := types || one.data_type;
            symbols := symbols || one.symbol;
            days := days || one.from_day;
            ends := ends || one.to_day;
        END IF;
    END LOOP;
    UPDATE pricing.provisional_bars p SET asked = p.asked + 1, ask_at = now_ + interval '1 hour' * 2 ^ p.asked
    FROM (SELECT x.data_type, x.symbol, x.observed_at
          FROM unnest(types, symbols, days) AS u (data_type, symbol, day)
          JOIN pricing.provisional_bars x
              ON (x.data_type, x.symbol, x.observed_at)
                 = (u.data_type, u.symbol, u.day::timestamp AT TIME ZONE 'UTC')
          ORDER BY 1, 2, 3 FOR UPDATE OF x) due
    WHERE (p.data_type, p.symbol, p.observed_at) = (due.data_type, due.symbol, due.observed_at);
    -- A day, three and nine days after the last request, then every month. For days that no other instrument has
    -- either, this is the next look.
    UPDATE pricing.absent_days a
    SET asked = a.asked + due.is_asked::integer,
        ask_at = now_ + interval '1 day' * CASE a.asked WHEN 0 THEN 3 WHEN 1 THEN 9 ELSE 30 END
    FROM (SELECT x.data_type, x.symbol, x.day, span.is_asked
          FROM pricing.absent_days x
          CROSS JOIN LATERAL (
              SELECT EXISTS (SELECT
                             FROM unnest(types, symbols, days, ends) AS u (data_type, symbol, first_day, last_day)
                             WHERE (u.data_type, u.symbol) = (x.data_type, x.symbol)
                               AND x.day BETWEEN u.first_day AND u.last_day) AS is_asked) span
          WHERE x.ask_at <= now_
            AND (span.is_asked OR x.asked >= 3 AND NOT pricing.is_traded_by_others(x.data_type, x.symbol, x.day))
          ORDER BY 1, 2, 3 FOR UPDATE OF x) due
    WHERE (a.data_type, a.symbol, a.day) = (due.data_type, due.symbol, due.day);
    IF cardinality(types) > 0 THEN
        asked_ := asked_ + pricing.enqueue_pairs(types, symbols, array_fill(-2, ARRAY[cardinality(types)]), days, ends);
    END IF;
    RETURN asked_;
END $$;
COMMENT ON FUNCTION pricing.refetch_history() IS
    'Requests again bars that were stored before their day was over, trading days that answers lacked, and restated '
    'histories; returns how many.';
