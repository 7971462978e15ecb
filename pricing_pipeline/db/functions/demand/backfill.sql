-- Planning, costing, cancelling and following backfills.

CREATE OR REPLACE FUNCTION pricing.backfill_span(wanted_type text, INOUT from_day date, INOUT to_day date)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    today date := (pricing.clock() AT TIME ZONE 'UTC')::date;
    kind pricing.data_type_registry;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind IS NULL OR NOT kind.is_active THEN
        RAISE EXCEPTION 'unknown data type %', wanted_type
            USING HINT = 'pricing-pipeline type list shows the active ones.', ERRCODE = 'invalid_parameter_value';
    ELSIF kind.history_from IS NULL THEN
        RAISE EXCEPTION 'data type % keeps no history that could be backfilled', wanted_type
            USING HINT = CASE kind.fetcher
                    WHEN 'quote' THEN 'A quote is the current price. Ask for a data type of daily bars.'
                    ELSE 'If its provider has history: pricing-pipeline type change ' || wanted_type
                        || ' --history-from 2000-01-01' END,
                ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pricing.instruments i WHERE i.asset_class = kind.asset_class) THEN
        RAISE EXCEPTION 'there is no instrument of the asset class %, so there is nothing of % to backfill',
            kind.asset_class, wanted_type
            USING HINT = 'Watching a symbol makes one; docs/adding-a-data-type.md says how to add many.',
                ERRCODE = 'invalid_parameter_value';
    ELSIF from_day > to_day THEN
        RAISE EXCEPTION 'the range % to % ends before it begins', from_day, to_day
            USING HINT = 'Give the earlier day first.', ERRCODE = 'invalid_parameter_value';
    END IF;
    from_day := greatest(from_day, kind.history_from);
    to_day := least(to_day, today);
    IF from_day > to_day THEN
        RAISE EXCEPTION 'there is no history of % to fetch before % or after %', wanted_type, kind.history_from, today
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.backfill_span(text, date, date) IS
    'Cuts a backfill to the days that can have history; refuses impossible spans with a sentence.';


CREATE OR REPLACE FUNCTION pricing.backfilled(wanted_type text, only_symbols text[])
RETURNS TABLE (symbol text, calendar text)
LANGUAGE sql STABLE AS $$
    SELECT u.symbol, u.calendar FROM pricing.universe u
    WHERE u.data_type = wanted_type
      -- A request that names a symbol asks for it again.
      AND CASE WHEN only_symbols IS NULL THEN u.left_out IS NULL
               ELSE u.symbol = ANY (only_symbols) AND u.left_out IS DISTINCT FROM 'paused' END
$$;
COMMENT ON FUNCTION pricing.backfilled(text, text[]) IS
    'The instruments that a backfill of the whole type (NULL), or of these symbols, covers.';


CREATE OR REPLACE FUNCTION pricing.longest_window(wanted_type text, wanted_symbol text, wanted_fetcher text)
RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
    SELECT min(c.max_window_days)
    FROM pricing.provider_routing r JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
    JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = wanted_fetcher
    WHERE r.data_type = wanted_type AND (r.symbol = wanted_symbol OR r.symbol IS NULL) AND r.is_active
$$;
COMMENT ON FUNCTION pricing.longest_window(text, text, text) IS
    'How many days a task of a pair may span so that each of its providers can fetch it in one call; NULL = any '
    'number, or no provider.';


CREATE OR REPLACE FUNCTION pricing.sessions_to_ask(
    wanted_type text, wanted_symbol text, wanted_calendar text, from_day date, to_day date, at timestamptz)
RETURNS SETOF date
LANGUAGE sql STABLE AS $$
    SELECT s.session FROM pricing.calendar_sessions s
    WHERE s.calendar = wanted_calendar AND s.session BETWEEN from_day AND to_day AND s.closes_at <= at
      AND NOT EXISTS (SELECT FROM pricing.price_history v
                      WHERE v.data_type = wanted_type AND v.symbol = wanted_symbol
                        AND v.observed_at = s.session::timestamp AT TIME ZONE 'UTC' AND v.fetched_at >= s.closes_at)
      AND NOT pricing.has_moved(wanted_type, wanted_symbol, s.session)
$$;
COMMENT ON FUNCTION pricing.sessions_to_ask(text, text, text, date, date, timestamptz) IS
    'Sessions between two days that had ended by a time and have no final value of a pair.';


CREATE OR REPLACE FUNCTION pricing.missing_windows(wanted_type text, from_day date, to_day date,
                                                   only_symbols text[] DEFAULT NULL)
RETURNS TABLE (symbol text, first_day date, last_day date)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT u.symbol, u.calendar, greatest(from_day, pricing.listed_from(wanted_type, u.symbol)) AS first_day,
               -- Without a provider it is one task, which enqueue turns into a dead one that says so.
               coalesce(longest.days, 1000000) AS days
        FROM pricing.backfilled(wanted_type, only_symbols) u
        LEFT JOIN LATERAL pricing.longest_window(wanted_type, u.symbol, kind.fetcher) AS longest (days) ON true),
    unanswered AS MATERIALIZED (
        SELECT w.symbol, w.calendar, w.days, lower(gap) AS first_day, upper(gap) - 1 AS last_day
        FROM wanted w
        LEFT JOIN pricing.history_coverage h ON (h.data_type, h.symbol) = (wanted_type, w.symbol)
        CROSS JOIN LATERAL (
            SELECT range_agg(daterange(q.window_start, q.window_end, '[]')) AS days FROM pricing.api_call_queue_live q
            WHERE (q.data_type, q.symbol) = (wanted_type, w.symbol) AND q.window_end <> 'infinity') coming
        CROSS JOIN LATERAL unnest(
            datemultirange(daterange(w.first_day, to_day, '[]')) - coalesce(h.covered, '{}'::datemultirange)
            - coalesce(coming.days, '{}'::datemultirange)) AS gap
        WHERE w.first_day <= to_day),
    -- Each gap shrinks to the sessions at its ends that lack a final value, or disappears without any. Where the
    -- calendar is not known, every day may be a session.
    trading AS MATERIALIZED (
        SELECT u.symbol, u.days, c.calendar,
               CASE WHEN c.calendar IS NULL THEN u.first_day ELSE one.session END AS first_day,
               CASE WHEN c.calendar IS NULL THEN u.last_day ELSE other.session END AS last_day
        FROM unanswered u
        LEFT JOIN pricing.calendars c ON c.calendar = u.calendar AND kind.fetcher <> 'quote'
                                     AND u.first_day >= c.sessions_from AND u.last_day <= c.sessions_to
        LEFT JOIN LATERAL (
            SELECT s.session
            FROM pricing.sessions_to_ask(wanted_type, u.symbol, c.calendar, u.first_day,
                                         u.last_day, now_) AS s (session)
            ORDER BY 1 LIMIT 1) one ON true
        LEFT JOIN LATERAL (
            SELECT s.session
            FROM pricing.sessions_to_ask(wanted_type, u.symbol, c.calendar, u.first_day,
                                         u.last_day, now_) AS s (session)
            ORDER BY 1 DESC LIMIT 1) other ON true
        WHERE c.calendar IS NULL OR one.session IS NOT NULL),
    -- Two gaps with no session between them are asked for together.
    neighbours AS (
        SELECT t.*, lag(t.last_day) OVER (PARTITION BY t.symbol ORDER BY t.first_day) AS ended FROM trading t),
    islands AS (
        SELECT n.*, count(*) FILTER (WHERE n.ended IS NULL OR n.calendar IS NULL OR EXISTS (
                        SELECT FROM pricing.calendar_sessions s
                        WHERE s.calendar = n.calendar AND s.session > n.ended AND s.session < n.first_day))
                    OVER (PARTITION BY n.symbol ORDER BY n.first_day) AS island
        FROM neighbours n),
    joined AS (
        SELECT i.symbol, i.days, min(i.first_day) AS first_day, max(i.last_day) AS last_day FROM islands i
        GROUP BY i.symbol, i.days, i.island)
    -- As timestamps without zone: the days of a session's zone do not all begin at midnight.
    SELECT j.symbol, piece.day::date, least(piece.day::date + j.days - 1, j.last_day)
    FROM joined j
    CROSS JOIN LATERAL generate_series(j.first_day::timestamp, j.last_day::timestamp,
                                       make_interval(days => j.days)) AS piece (day)
    ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.missing_windows(text, date, date, text[]) IS
    'The fewest spans of days that a backfill must request: sessions without a final value, answer or task, each span '
    'within what one call may ask.';


CREATE OR REPLACE FUNCTION pricing.left_out(wanted_type text, only_symbols text[] DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT coalesce(jsonb_object_agg(w.reason, w.symbols), '{}') FROM (
        SELECT x.reason, count(*) AS symbols FROM (
            SELECT u.left_out AS reason FROM pricing.universe u WHERE only_symbols IS NULL AND u.data_type = wanted_type
            UNION ALL
            SELECT CASE WHEN u.symbol IS NULL THEN 'no_instrument' ELSE nullif(u.left_out, 'unknown_symbol') END
            FROM (SELECT DISTINCT unnest(only_symbols) AS symbol) s
            LEFT JOIN pricing.universe u ON u.data_type = wanted_type AND u.symbol = s.symbol) x
        WHERE x.reason IS NOT NULL GROUP BY 1) w
$$;
COMMENT ON FUNCTION pricing.left_out(text, text[]) IS
    'How many instruments a backfill of the whole type, or of these symbols, leaves out, by reason.';


CREATE OR REPLACE FUNCTION pricing.history_standing(wanted_type text, from_day date, to_day date,
                                                    only_symbols text[] DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT coalesce(jsonb_object_agg(n.standing, n.symbols), '{}') FROM (
        SELECT CASE WHEN EXISTS (SELECT FROM pricing.api_call_queue_live q
                                 WHERE (q.data_type, q.symbol) = (wanted_type, u.symbol) AND q.window_end <> 'infinity'
                                   AND q.window_start <= to_day AND q.window_end >= from_day) THEN 'queued'
                    WHEN EXISTS (SELECT FROM pricing.price_history h
                                 WHERE h.data_type = wanted_type AND h.symbol = u.symbol
                                   AND h.observed_at >= from_day::timestamp AT TIME ZONE 'UTC'
                                   AND h.observed_at < (to_day + 1)::timestamp AT TIME ZONE 'UTC')
                      OR EXISTS (SELECT FROM pricing.moved_days m
                                 WHERE (m.data_type, m.symbol) = (wanted_type, u.symbol)
                                   AND m.days && daterange(from_day, to_day, '[]')) THEN 'stored'
                    WHEN pricing.listed_from(wanted_type, u.symbol) > to_day THEN 'not_listed'
                    WHEN EXISTS (SELECT FROM pricing.history_coverage c
                                 WHERE (c.data_type, c.symbol) = (wanted_type, u.symbol)
                                   AND c.covered && datemultirange(daterange(from_day, to_day, '[]'))) THEN 'empty'
                    ELSE 'nothing_yet' END AS standing, count(*) AS symbols
        FROM pricing.backfilled(wanted_type, only_symbols) u
        GROUP BY 1) n
$$;
COMMENT ON FUNCTION pricing.history_standing(text, date, date, text[]) IS
    'Counts a backfill''s instruments by their history between two days: queued, stored (some value), not_listed '
    '(yet), empty (the provider has none), or nothing_yet.';


CREATE OR REPLACE FUNCTION pricing.cost_backfill(wanted_type text, from_day date, to_day date,
                                                 only_symbols text[] DEFAULT NULL)
RETURNS TABLE (provider text, symbols bigint, tasks bigint, calls bigint, units bigint, wire_bytes bigint,
               seconds float8, quota_bytes bigint, used_bytes bigint, left_bytes bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
BEGIN
    SELECT s.from_day, s.to_day INTO from_day, to_day FROM pricing.backfill_span(wanted_type, from_day, to_day) s;
    IF only_symbols IS NOT NULL THEN
        only_symbols := ARRAY(SELECT k.symbol FROM pricing.symbols_by_type(ARRAY[wanted_type], only_symbols) k);
    END IF;
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    RETURN QUERY
    WITH windows AS MATERIALIZED (
        SELECT m.symbol, m.first_day, m.last_day, coalesce(own.provider, broad.provider) AS provider
        FROM pricing.missing_windows(wanted_type, from_day, to_day, only_symbols) m
        LEFT JOIN pricing.chosen_routes own ON (own.data_type, own.symbol) = (wanted_type, m.symbol)
        LEFT JOIN pricing.chosen_routes broad ON broad.data_type = wanted_type AND broad.symbol IS NULL),
    alike AS (
        SELECT w.provider, w.first_day, w.last_day, count(*) AS tasks FROM windows w GROUP BY 1, 2, 3),
    asked AS (
        SELECT a.provider, sum(a.tasks)::bigint AS tasks,
               sum(ceil(a.tasks::numeric / coalesce(pricing.batch_of(c, a.first_day, a.last_day), 1)))::bigint AS calls,
               sum(a.tasks * (1000 + ceil((a.last_day - a.first_day + 1) *
                                    coalesce(z.bytes, c.bytes_per_day, 0))))::bigint AS wire_bytes
        FROM alike a
        LEFT JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (a.provider, kind.fetcher)
        LEFT JOIN pricing.size_estimates z ON (z.provider, z.data_type, z.per) = (a.provider, wanted_type, 'day')
        GROUP BY 1)
    SELECT a.provider,
           (SELECT count(DISTINCT w.symbol) FROM windows w WHERE w.provider IS NOT DISTINCT FROM a.provider), a.tasks,
           CASE WHEN p.provider IS NULL THEN 0 ELSE a.calls END, spent.units,
           CASE WHEN p.provider IS NULL THEN 0 ELSE a.wire_bytes END,
           greatest(a.calls * took.seconds / p.max_in_flight, a.calls * p.request_delay_ms / 1000.0,
                    waits.seconds, 0)::float8,
           p.quota_bytes, CASE WHEN p.provider IS NOT NULL THEN used.bytes END,
           CASE WHEN p.provider IS NOT NULL
                THEN greatest(pricing.quota_for(p.quota_bytes, -2) - used.bytes - queued.bytes, 0)::bigint END
    FROM asked a
    LEFT JOIN pricing.data_collectors p ON p.provider = a.provider
    LEFT JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (a.provider, kind.fetcher)
    CROSS JOIN LATERAL (
        SELECT coalesce(a.calls * c.units_per_call + a.tasks * c.units_per_symbol, 0)::bigint AS units) spent
    CROSS JOIN LATERAL (SELECT pricing.bytes_used(a.provider, now_) AS bytes) used
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(q.est_bytes), 0) AS bytes FROM pricing.api_call_queue_live q
        WHERE q.provider = a.provider AND q.status <> 'processing') queued
    -- How long its recent calls took; half a second while that is unknown.
    CROSS JOIN LATERAL (
        SELECT coalesce(avg(extract(epoch FROM l.finished_at - l.started_at)), 0.5) AS seconds
        FROM (SELECT x.started_at, x.finished_at FROM pricing.collector_call_log x
              WHERE x.provider = a.provider AND x.started_at > now_ - interval '7 days' AND x.outcome = 'ok'
              ORDER BY x.started_at DESC LIMIT 100) l) took
    -- The first windows' units can be spent at once; each further one waits for its window.
    CROSS JOIN LATERAL (
        SELECT max(greatest(ceil(spent.units::numeric / greatest(room.units, 1)) - 1, 0)
                   * coalesce(l.window_seconds, 86400)) AS seconds
        FROM pricing.provider_limits l
        CROSS JOIN LATERAL (
            SELECT sum(pricing.units_in_force(l, coalesce(k.key_name, 'default'), now_)) AS units
            FROM (VALUES (a.provider)) AS x (provider)
            LEFT JOIN pricing.provider_keys k ON k.provider = x.provider AND k.is_active
        ) room
        WHERE l.provider = a.provider) waits
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.cost_backfill(text, date, date, text[]) IS
    'What a backfill would cost at each provider (NULL = no route), without queueing it: calls, units, estimated '
    'bytes, seconds, and the quota left for backfills.';


CREATE OR REPLACE FUNCTION pricing.plan_backfill(
    wanted_type text, from_day date, to_day date, only_symbols text[] DEFAULT NULL, run text DEFAULT NULL,
    OUT backfill_id uuid, OUT tasks integer, OUT left_out jsonb)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    plan record;
BEGIN
    SELECT s.from_day, s.to_day INTO from_day, to_day FROM pricing.backfill_span(wanted_type, from_day, to_day) s;
    IF only_symbols IS NOT NULL THEN
        only_symbols := ARRAY(SELECT k.symbol FROM pricing.symbols_by_type(ARRAY[wanted_type], only_symbols) k);
    END IF;
    -- Two plans at once would both find the same gaps.
    PERFORM pricing.await_turn('plan_backfill ' || wanted_type);
    left_out := pricing.left_out(wanted_type, only_symbols);
    INSERT INTO pricing.backfills AS b (data_type, window_start, window_end, symbols, run_id, left_out)
    VALUES (wanted_type, from_day, to_day, only_symbols, run, plan_backfill.left_out)
        RETURNING b.backfill_id INTO backfill_id;

    SELECT array_agg(w.symbol) AS symbols, array_agg(-2) AS priorities,
           array_agg(w.first_day) AS starts, array_agg(w.last_day) AS ends INTO plan
    FROM pricing.missing_windows(wanted_type, from_day, to_day, only_symbols) w;
    IF plan.symbols IS NOT NULL THEN
        PERFORM pricing.enqueue(wanted_type, plan.symbols, plan.priorities, plan.starts, plan.ends,
                                plan_backfill.backfill_id);
        PERFORM pricing.check_backfill_quota(plan_backfill.backfill_id);
    END IF;
    SELECT p.open + p.failed INTO tasks FROM pricing.backfill_progress(plan_backfill.backfill_id) p;
    UPDATE pricing.backfills b SET tasks = plan_backfill.tasks WHERE b.backfill_id = plan_backfill.backfill_id;
END $$;
COMMENT ON FUNCTION pricing.plan_backfill(text, date, date, text[], text) IS
    'Queues one task for each instrument and gap that is neither covered nor queued; counts these, those already '
    'queued, and the instruments left out.';


CREATE OR REPLACE FUNCTION pricing.note_absent_days(wanted_type text, wanted_symbol text, from_day date, to_day date)
RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.absent_days (data_type, symbol, day, ask_at)
    SELECT wanted_type, wanted_symbol, s.session, pricing.clock() + interval '1 day'
    FROM pricing.data_type_registry r
    JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, wanted_symbol)
    JOIN pricing.calendar_sessions s ON s.calendar = i.calendar
    CROSS JOIN LATERAL (
        SELECT (min(h.observed_at) AT TIME ZONE 'UTC')::date AS first_day,
               (max(h.observed_at) AT TIME ZONE 'UTC')::date AS last_day
        FROM pricing.price_history h WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol) stored
    WHERE r.data_type = wanted_type
      AND r.fetcher <> 'quote'
      AND s.session BETWEEN greatest(from_day, i.listed_on) AND to_day
      -- An older day outside the stored span was before the listing, or after the end.
      AND (s.session >= (pricing.clock() AT TIME ZONE 'UTC')::date - 30
           OR s.session BETWEEN stored.first_day AND stored.last_day)
      AND NOT EXISTS (SELECT FROM pricing.price_history h
                      WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
                        AND h.observed_at = s.session::timestamp AT TIME ZONE 'UTC')
      AND NOT EXISTS (SELECT FROM pricing.quarantined_values v
                      WHERE v.data_type = wanted_type AND v.symbol = wanted_symbol
                        AND v.observed_at = s.session::timestamp AT TIME ZONE 'UTC')
      AND NOT pricing.has_moved(wanted_type, wanted_symbol, s.session)
    ORDER BY s.session
    ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION pricing.note_absent_days(text, text, date, date) IS
    'Stores which trading days an answer for these days lacked, so that they are requested again: those of the last 30 '
    'days, and those between the first and the last stored value.';


CREATE OR REPLACE FUNCTION pricing.cover(wanted_type text, symbols text[], from_day date, to_day date) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- Today's value may still change, so today is never covered; nor is a session whose value may be late by a day.
    WITH answered AS MATERIALIZED (
        SELECT s AS symbol, until.day AS last_day
        FROM (SELECT pricing.clock() AS at OFFSET 0) now_ CROSS JOIN unnest(symbols) AS s
        CROSS JOIN LATERAL (
            SELECT least(to_day, (now_.at AT TIME ZONE 'UTC')::date - 1, (
                SELECT x.session - 1 FROM pricing.data_type_registry r
                JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, s)
                JOIN pricing.calendar_sessions x ON x.calendar = i.calendar
                CROSS JOIN LATERAL pricing.publish_lag(wanted_type, s, r.fetcher) p
                WHERE r.data_type = wanted_type AND r.fetcher <> 'quote'
                  AND x.closes_at > now_.at - interval '1 day' - p.lag
                ORDER BY x.closes_at LIMIT 1)) AS day) until
        WHERE from_day <= until.day),
    covered AS (
        INSERT INTO pricing.history_coverage AS h (data_type, symbol, covered)
        SELECT wanted_type, a.symbol, datemultirange(daterange(from_day, a.last_day, '[]')) FROM answered a
        ORDER BY a.symbol
        ON CONFLICT (data_type, symbol) DO UPDATE SET covered = h.covered + excluded.covered)
    SELECT pricing.note_absent_days(wanted_type, a.symbol, from_day, a.last_day) FROM answered a ORDER BY a.symbol
$$;
COMMENT ON FUNCTION pricing.cover(text, text[], date, date) IS
    'Marks these days as answered, so that no backfill asks again, and stores which trading days the answer lacked, '
    'which are requested again.';


CREATE OR REPLACE FUNCTION pricing.ask_again(wanted_type text, from_day date, to_day date,
                                             only_symbols text[] DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    pairs bigint;
BEGIN
    UPDATE pricing.history_coverage h SET covered = h.covered - lacking.days
    FROM (SELECT c.data_type, c.symbol, datemultirange(daterange(from_day, to_day, '[]')) - coalesce((
              SELECT range_agg(daterange(v.day, v.day, '[]'))
              FROM (SELECT (p.observed_at AT TIME ZONE 'UTC')::date AS day FROM pricing.price_history p
                    WHERE p.data_type = c.data_type AND p.symbol = c.symbol
                      AND p.observed_at >= from_day::timestamp AT TIME ZONE 'UTC'
                      AND p.observed_at < (to_day + 1)::timestamp AT TIME ZONE 'UTC') v), '{}') AS days
          FROM pricing.history_coverage c
          WHERE c.data_type = wanted_type AND c.covered && daterange(from_day, to_day, '[]')
            AND (only_symbols IS NULL OR c.symbol = ANY (only_symbols))
          ORDER BY c.symbol FOR UPDATE) lacking
    WHERE (h.data_type, h.symbol) = (lacking.data_type, lacking.symbol) AND h.covered && lacking.days;
    GET DIAGNOSTICS pairs = ROW_COUNT;
    RETURN pairs;
END $$;
COMMENT ON FUNCTION pricing.ask_again(text, date, date, text[]) IS
    'Forgets answers without a value, so that the next backfill requests those days again; returns how many pairs are '
    'affected.';


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
        q.enqueued_at <= b.requested_at AND q.data_type = b.data_type
            AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start));
    SELECT count(*) INTO failed FROM pricing.api_call_queue_dead q
    WHERE q.backfill_id IS NOT NULL AND (q.backfill_id = wanted OR (
        q.enqueued_at <= b.requested_at AND q.finished_at >= b.requested_at
        AND q.data_type = b.data_type AND (b.symbols IS NULL OR q.symbol = ANY (b.symbols))
        AND q.window_start <= b.window_end AND q.window_end >= b.window_start));
    IF open = 0 THEN
        UPDATE pricing.backfills x SET finished_at = pricing.clock()
        WHERE x.backfill_id = wanted AND x.finished_at IS NULL;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.backfill_progress(uuid) IS
    'How many tasks a backfill waits for, how many are not finished, how many failed.';


CREATE OR REPLACE FUNCTION pricing.cancel_backfill(wanted uuid, reason text DEFAULT 'its backfill was cancelled')
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    wanted_type text := (SELECT b.data_type FROM pricing.backfills b WHERE b.backfill_id = wanted);
    cancelled integer;
BEGIN
    IF wanted_type IS NULL THEN
        RAISE EXCEPTION 'there is no backfill %', wanted
            USING HINT = 'pricing-pipeline backfill list shows them.', ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A plan made meanwhile would count on tasks that are about to be cancelled.
    PERFORM pricing.await_turn('plan_backfill ' || wanted_type);
    -- A backfill that has ended is not cancelled, even if nobody has read its progress since.
    PERFORM pricing.backfill_progress(wanted);
    -- A task that a later backfill waits for, because it found those days queued, now belongs to that backfill.
    UPDATE pricing.api_call_queue_live q SET backfill_id = heir.backfill_id
    FROM (SELECT x.id, b.backfill_id
          FROM pricing.api_call_queue_live x
          CROSS JOIN LATERAL (
              SELECT o.backfill_id FROM pricing.backfills o
              WHERE o.backfill_id <> wanted AND o.finished_at IS NULL AND o.cancelled_at IS NULL
                AND x.enqueued_at <= o.requested_at AND x.data_type = o.data_type
                  AND (o.symbols IS NULL OR x.symbol = ANY (o.symbols))
                AND x.window_start <= o.window_end AND x.window_end >= o.window_start
              ORDER BY o.requested_at LIMIT 1) b
          WHERE x.backfill_id = wanted ORDER BY x.id FOR UPDATE OF x) heir
    WHERE q.id = heir.id;
    cancelled := cardinality(pricing.withdraw(
        (SELECT array_agg(q.id) FROM pricing.api_call_queue_live q WHERE q.backfill_id = wanted), 'cancelled', reason));
    UPDATE pricing.backfills b SET cancelled_at = now_, finished_at = coalesce(b.finished_at, now_)
    WHERE b.backfill_id = wanted AND (cancelled > 0 OR b.finished_at IS NULL);
    RETURN cancelled;
END $$;
COMMENT ON FUNCTION pricing.cancel_backfill(uuid, text) IS
    'Removes the waiting tasks of a backfill, except those that a later one waits for; returns how many.';
