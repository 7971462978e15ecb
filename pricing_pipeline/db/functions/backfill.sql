-- Planning and following backfills.

CREATE OR REPLACE FUNCTION pricing.plan_backfill(
    wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL, run text DEFAULT NULL,
    OUT backfill_id uuid, OUT tasks integer)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    today date := (pricing.clock() AT TIME ZONE 'UTC')::date;
    kind pricing.data_type_registry;
    plan record;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind IS NULL OR NOT kind.is_active THEN
        RAISE EXCEPTION 'unknown data type %', wanted_type
            USING HINT = 'pricing-pipeline registry list shows the active ones.', ERRCODE = 'invalid_parameter_value';
    ELSIF kind.history_from IS NULL THEN
        RAISE EXCEPTION 'data type % keeps no history that could be backfilled', wanted_type
            USING HINT = 'Set history_from in the registry if its provider has history.', ERRCODE = 'invalid_parameter_value';
    ELSIF from_day > to_day THEN
        RAISE EXCEPTION 'the range % to % is upside down', from_day, to_day
            USING HINT = 'Give the earlier day first.', ERRCODE = 'invalid_parameter_value';
    END IF;
    from_day := greatest(from_day, kind.history_from);
    to_day := least(to_day, today);
    IF from_day > to_day THEN
        RAISE EXCEPTION 'there is no history of % to fetch before % or after %', wanted_type, kind.history_from, today
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Two plans at once would both find the same gaps.
    PERFORM pg_advisory_xact_lock(hashtextextended('pricing.plan_backfill ' || wanted_type, 0));
    INSERT INTO pricing.backfills AS b (data_type, window_start, window_end, symbols, run_id)
    VALUES (wanted_type, from_day, to_day, only_symbols, run) RETURNING b.backfill_id INTO backfill_id;

    SELECT array_agg(w.symbol) AS symbols, array_agg(-2) AS priorities,
           array_agg(w.first_day) AS starts, array_agg(least(w.first_day + w.days - 1, w.last_day)) AS ends INTO plan
    FROM (
        -- As timestamps without zone: the days of a session's zone do not all begin at midnight.
        SELECT i.symbol, cap.days, upper(gap) - 1 AS last_day,
               generate_series(lower(gap)::timestamp, (upper(gap) - 1)::timestamp, make_interval(days => cap.days))::date AS first_day
        FROM pricing.instruments i
        LEFT JOIN pricing.history_coverage h ON (h.data_type, h.symbol) = (wanted_type, i.symbol)
        -- The shortest span that any of its providers takes: it may be given to another one.
        LEFT JOIN LATERAL (
            SELECT min(x.max_window_days) AS max_window_days
            FROM pricing.provider_routing r JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
            JOIN pricing.provider_capabilities x ON x.provider = r.provider AND x.fetcher = kind.fetcher
            WHERE r.data_type = wanted_type AND (r.symbol = i.symbol OR r.symbol IS NULL) AND r.is_active) c ON true
        -- Without a provider it is one task, which enqueue turns into a dead one that says so.
        CROSS JOIN LATERAL (SELECT coalesce(c.max_window_days, 1000000) AS days) cap
        CROSS JOIN LATERAL (
            SELECT range_agg(daterange(q.window_start, q.window_end, '[]')) AS days FROM pricing.api_call_queue_live q
            WHERE (q.data_type, q.symbol) = (wanted_type, i.symbol) AND q.window_end <> 'infinity') coming
        CROSS JOIN LATERAL unnest(
            datemultirange(daterange(from_day, to_day, '[]')) - coalesce(h.covered, '{}'::datemultirange)
            - coalesce(coming.days, '{}'::datemultirange)) AS gap
        WHERE i.asset_class = kind.asset_class AND i.is_active AND i.update_mode = 'api'
          AND CASE WHEN only_symbols IS NULL THEN i.verified_at IS NOT NULL ELSE i.symbol = ANY (only_symbols) END) w;
    IF plan.symbols IS NOT NULL THEN
        PERFORM pricing.enqueue(wanted_type, plan.symbols, plan.priorities, plan.starts, plan.ends, plan_backfill.backfill_id);
        PERFORM pricing.check_backfill_quota(plan_backfill.backfill_id);
    END IF;
    SELECT p.open + p.failed INTO tasks FROM pricing.backfill_progress(plan_backfill.backfill_id) p;
    UPDATE pricing.backfills b SET tasks = plan_backfill.tasks WHERE b.backfill_id = plan_backfill.backfill_id;
END $$;
COMMENT ON FUNCTION pricing.plan_backfill(text, date, date, text[], text) IS
    'Queues one task per instrument and gap that is neither covered nor queued, each within what one call may ask. Without symbols: every instrument that a provider has confirmed. Counts what was queued already, too: zero tasks = everything is there.';


CREATE OR REPLACE FUNCTION pricing.cover(wanted_type text, symbols text[], from_day date, to_day date) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- Today's value may still change, so today is never covered.
    INSERT INTO pricing.history_coverage AS h (data_type, symbol, covered)
    SELECT wanted_type, s, datemultirange(daterange(from_day, least(to_day, (pricing.clock() AT TIME ZONE 'UTC')::date - 1), '[]'))
    FROM unnest(symbols) AS s
    WHERE from_day <= least(to_day, (pricing.clock() AT TIME ZONE 'UTC')::date - 1)
    ORDER BY s
    ON CONFLICT (data_type, symbol) DO UPDATE SET covered = h.covered + excluded.covered
$$;
COMMENT ON FUNCTION pricing.cover(text, text[], date, date) IS 'Remembers that the provider has answered for these days, so that no backfill asks again.';


CREATE OR REPLACE FUNCTION pricing.backfill_progress(
    wanted uuid, OUT tasks integer, OUT open integer, OUT failed integer)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    b pricing.backfills;
BEGIN
    SELECT * INTO b FROM pricing.backfills x WHERE x.backfill_id = wanted;
    tasks := b.tasks;
    -- Its own tasks, and those of earlier backfills that were under way to some of its days.
    SELECT count(*) INTO open FROM pricing.api_call_queue_live q
    WHERE q.backfill_id IS NOT NULL AND (q.backfill_id = wanted OR (
        q.enqueued_at <= b.requested_at AND q.data_type = b.data_type AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start));
    SELECT count(*) INTO failed FROM pricing.api_call_queue_dead q
    WHERE q.backfill_id IS NOT NULL AND (q.backfill_id = wanted OR (
        q.enqueued_at <= b.requested_at AND q.finished_at >= b.requested_at
        AND q.data_type = b.data_type AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start));
    IF open = 0 THEN
        UPDATE pricing.backfills x SET finished_at = pricing.clock() WHERE x.backfill_id = wanted AND x.finished_at IS NULL;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.backfill_progress(uuid) IS 'How many tasks a backfill waits for, how many are not finished, how many failed.';
