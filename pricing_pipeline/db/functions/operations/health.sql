-- Whether every part of the pipeline does its work: the one rule for /healthz, `status`, the alert unhealthy and the
-- metrics, and the signs of life that it reads. pricing.health() says after how long a part is late.

CREATE OR REPLACE FUNCTION pricing.note_life(of_part text, took float8 DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.signs_of_life s WHERE s.part = of_part) THEN
        INSERT INTO pricing.signs_of_life (part, began_at) VALUES (of_part, now_) ON CONFLICT (part) DO NOTHING;
    END IF;
    UPDATE pricing.signs_of_life s
    SET began_at = CASE WHEN took IS NULL THEN now_ ELSE s.began_at END,
        ended_at = CASE WHEN took IS NULL THEN s.ended_at ELSE now_ END,
        seconds = coalesce(took, s.seconds),
        times = s.times + (took IS NOT NULL)::integer,
        total_seconds = s.total_seconds + coalesce(took, 0)
    FROM (SELECT x.part FROM pricing.signs_of_life x WHERE x.part = of_part FOR UPDATE SKIP LOCKED) mine
    WHERE s.part = mine.part;
EXCEPTION WHEN lock_not_available THEN
    NULL; -- The next time notes it.
END $$;
COMMENT ON FUNCTION pricing.note_life(text, float8) IS
    'Records that a part of the pipeline has started its work, or finished it in this many seconds; skips a locked '
    'row.';


CREATE OR REPLACE FUNCTION pricing.note_start() RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    given_at timestamptz := (SELECT s.began_at FROM pricing.signs_of_life s
                             WHERE s.part = 'start'
                               AND s.began_at <= now_
                               AND s.ended_at BETWEEN now_ - interval '5 minutes' AND now_);
BEGIN
    -- Otherwise a pipeline that restarts every two minutes would always count as healthy without working.
    IF given_at IS NULL OR (
        (SELECT count(*) = 4 FROM pricing.signs_of_life s
         WHERE s.part IN ('refresh_watched', 'enqueue_due', 'look_for_alerts', 'send_messages')
           AND s.ended_at > given_at)
        AND EXISTS (SELECT FROM pricing.drains d WHERE d.started_at > given_at)) THEN
        PERFORM pricing.note_life('start');
    END IF;
    PERFORM pricing.note_life('start', 0);
    -- The daemon that starts now looks itself.
    DELETE FROM pricing.dagster_failures d
    WHERE (d.kind, d.name) IN (SELECT x.kind, x.name FROM pricing.dagster_failures x
                               WHERE x.kind IN ('location', 'sensor') FOR UPDATE SKIP LOCKED);
END $$;
COMMENT ON FUNCTION pricing.note_start() IS
    'Records a start of the pipeline or a step of the clock, after which each part gets time to begin, but only once '
    'while it keeps restarting without working.';


CREATE OR REPLACE FUNCTION pricing.wanted_since(now_ timestamptz, started timestamptz, with_background boolean)
RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Any old row shows as much as the oldest, and is found without reading all.
    SELECT CASE WHEN w.since > now_ THEN started ELSE w.since END
    FROM (SELECT least(
        coalesce((SELECT a.subscribed_at FROM pricing.active_subscriptions a
                  WHERE a.subscribed_at <= now_ - interval '10 minutes' LIMIT 1),
                 (SELECT min(a.subscribed_at) FROM pricing.active_subscriptions a)),
        coalesce((SELECT q.enqueued_at FROM pricing.api_call_queue_live q
                  WHERE q.enqueued_at <= now_ - interval '10 minutes' LIMIT 1),
                 (SELECT min(q.enqueued_at) FROM pricing.api_call_queue_live q)),
        coalesce((SELECT p.requested_at FROM pricing.pair_requests p
                  WHERE p.requested_at <= now_ - interval '10 minutes' LIMIT 1),
                 (SELECT min(p.requested_at) FROM pricing.pair_requests p)),
        (SELECT min(w.walk_slot) FROM pricing.schedule_walks w),
        CASE WHEN with_background THEN least(
            coalesce((SELECT h.since FROM pricing.holdings h
                      WHERE h.active_symbol IS NOT NULL AND h.since <= now_ - interval '10 minutes' LIMIT 1),
                     (SELECT min(h.since) FROM pricing.holdings h WHERE h.active_symbol IS NOT NULL)),
            (SELECT min(r.created_at) FROM pricing.data_type_registry r
             WHERE r.is_active AND r.refresh_strategy = 'scheduled'
               AND EXISTS (SELECT FROM pricing.instruments i
                           WHERE i.asset_class = r.asset_class AND i.is_active AND i.update_mode = 'api')))
        END) AS since) w
$$;
COMMENT ON FUNCTION pricing.wanted_since(timestamptz, timestamptz, boolean) IS
    'Since when drains have had work, with_background also held or scheduled work; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.stalled_providers(started timestamptz DEFAULT '-infinity')
RETURNS TABLE (provider text, tasks bigint, since timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH n AS MATERIALIZED (SELECT pricing.clock() AS at),
    q AS (
        SELECT l.provider, count(*) AS tasks, min(greatest(l.enqueued_at, l.run_after)) AS since
        FROM pricing.api_call_queue_live l
        WHERE l.status = 'pending' AND l.priority > 0
        GROUP BY 1)
    SELECT q.provider, q.tasks, q.since
    FROM n
    CROSS JOIN q
    JOIN pricing.provider_state s USING (provider)
    JOIN pricing.data_collectors p USING (provider)
    WHERE greatest(q.since, started) < n.at - interval '10 minutes'
      AND s.breaker = 'closed'
      AND pricing.bytes_used(q.provider, n.at) < pricing.quota_for(p.quota_bytes, 0)
      AND EXISTS (SELECT FROM pricing.key_allowances(q.provider, n.at) k WHERE k.is_usable AND k.units_left > 0)
      AND NOT EXISTS (SELECT FROM pricing.collector_call_log c
                      WHERE c.provider = q.provider AND c.moved_to IS NULL
                        AND c.started_at > n.at - interval '15 minutes'
                        AND c.finished_at > n.at - interval '10 minutes' AND c.outcome = 'ok' AND c.page_of IS NULL)
$$;
COMMENT ON FUNCTION pricing.stalled_providers(timestamptz) IS
    'Providers that may be called and completed nothing for ten minutes while watched pairs were due: how many tasks '
    'wait, and since when.';


CREATE OR REPLACE FUNCTION pricing.late_duties(started timestamptz)
RETURNS TABLE (duty text, since timestamptz, last_error text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT v.name, CASE WHEN d.last_success_at <= n.at THEN d.last_success_at END,
           CASE WHEN d.last_failure_at > coalesce(d.last_success_at, '-infinity') THEN d.last_error END
    FROM (SELECT pricing.clock() AS at) n
    CROSS JOIN pricing.duty_intervals() v
    LEFT JOIN pricing.duties d ON d.duty = v.name
    -- A duty that runs every hour is late ten minutes after the hour.
    WHERE greatest(CASE WHEN d.last_success_at <= n.at THEN d.last_success_at END, d.not_before, started)
          <= n.at - interval '10 minutes' - CASE WHEN v.every >= interval '10 minutes' THEN v.every ELSE '0' END
    ORDER BY 2 NULLS FIRST, 1
$$;
COMMENT ON FUNCTION pricing.late_duties(timestamptz) IS
    'Duties that have not run for ten minutes beyond their interval: when they last did (NULL = never), and why they '
    'fail, if so.';


CREATE OR REPLACE FUNCTION pricing.idle_duties(started timestamptz)
RETURNS TABLE (duty text, since timestamptz, last_error text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT v.name, NULL::timestamptz, d.last_error
    FROM (SELECT pricing.clock() AS at) n
    CROSS JOIN pricing.duty_intervals() v
    LEFT JOIN pricing.duties d ON d.duty = v.name
    WHERE d.last_success_at IS NULL AND coalesce(d.not_before <= n.at, true)
      AND (d.last_error IS NOT NULL
           OR started <= n.at - interval '20 seconds' AND EXISTS (
               SELECT FROM pricing.duties x JOIN pricing.duty_intervals() y ON y.name = x.duty
               WHERE x.last_success_at > started))
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.idle_duties(timestamptz) IS
    'Duties that have never succeeded, and either failed or have not run although others have since the start, at '
    'least twenty seconds ago.';


CREATE OR REPLACE FUNCTION pricing.late_types(started timestamptz)
RETURNS TABLE (data_type text, watched bigint, late bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Samples are taken every five minutes: three cover ten.
    SELECT f.data_type, max(f.watched), (array_agg(f.late ORDER BY f.at DESC))[1]
    FROM (SELECT pricing.clock() AS at) n
    CROSS JOIN LATERAL (
        SELECT s.data_type, s.at, s.watched::bigint AS watched, s.late::bigint AS late
        FROM pricing.freshness_samples s
        WHERE s.at > greatest(started, n.at - interval '16 minutes') AND s.at <= n.at
        UNION ALL
        SELECT NULL, s.at, sum(s.watched), sum(s.late)
        FROM pricing.freshness_samples s
        WHERE s.at > greatest(started, n.at - interval '16 minutes') AND s.at <= n.at
        GROUP BY s.at) f
    GROUP BY f.data_type
    HAVING count(*) >= 3
       AND min(f.late) > 0
       AND (f.data_type IS NOT NULL OR bool_and(f.late > 0.05 * f.watched))
$$;
COMMENT ON FUNCTION pricing.late_types(timestamptz) IS
    'Data types with late pairs in all samples of the last ten minutes, and a row without a type if more than 5 % of '
    'all watched pairs were late.';


CREATE OR REPLACE FUNCTION pricing.late_signs(now_ timestamptz, started timestamptz)
RETURNS TABLE (part text, is_late boolean, since timestamptz, says text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT v.part, late.is_late OR broken.says IS NOT NULL, v.last_at,
           nullif(concat_ws('; ', broken.says,
                            CASE WHEN late.is_late THEN pg_catalog.format(
                                     v.says, coalesce('since ' || pricing.format_time(v.last_at), 'yet')) END), '')
    FROM (
        SELECT 1 AS place, 'daemon' AS part, interval '2 minutes' AS late_after, true AS with_background,
               (SELECT max(s.began_at) FROM pricing.signs_of_life s
                WHERE s.part IN ('refresh_watched', 'report_prices') AND s.began_at <= now_) AS last_at,
               'Dagster''s daemon has ticked no sensor %s' AS says
        UNION ALL
        SELECT 2, 'sensor', interval '2 minutes', true,
               (SELECT s.ended_at FROM pricing.signs_of_life s WHERE s.part = 'refresh_watched' AND s.ended_at <= now_),
               'the sensor refresh_watched has not succeeded %s'
        UNION ALL
        SELECT 3, 'drain', interval '2 minutes', false,
               (SELECT max(CASE WHEN d.finished_at IS NULL THEN least(d.lease_until, now_) ELSE d.finished_at END)
                FROM pricing.drains d
                WHERE d.started_at <= now_ AND d.finished_at <= now_ IS NOT FALSE),
               'there is work, but no drain has worked %s'
        UNION ALL
        SELECT 4, 'staleness_check', interval '3 minutes', true,
               (SELECT s.ended_at FROM pricing.signs_of_life s WHERE s.part = 'enqueue_due' AND s.ended_at <= now_),
               'no staleness check has run %s') v
    -- Demand is read only for parts without a sign of life, because that may read many rows.
    CROSS JOIN LATERAL (
        SELECT CASE WHEN greatest(v.last_at, started) > now_ - v.late_after THEN false
                    ELSE coalesce(pricing.wanted_since(now_, started, v.with_background) <= now_ - v.late_after,
                                  false) END AS is_late OFFSET 0) late
    LEFT JOIN LATERAL (
        SELECT string_agg(pg_catalog.format('the sensor %s %s', f.name, f.reason), '; ' ORDER BY f.name) AS says
        FROM pricing.dagster_failures f WHERE f.kind = 'sensor') broken ON v.part = 'sensor'
    ORDER BY v.place
$$;
COMMENT ON FUNCTION pricing.late_signs(timestamptz, timestamptz) IS
    'Parts without a sign of life for too long, and sensors that fail, in the form of pricing.health().';


CREATE OR REPLACE FUNCTION pricing.health() RETURNS TABLE (part text, is_late boolean, since timestamptz, says text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    -- A start in the future dates from before the clock was set back.
    started timestamptz := least(now_, coalesce((SELECT s.began_at FROM pricing.signs_of_life s WHERE s.part = 'start'),
                                                (SELECT min(r.created_at) FROM pricing.data_type_registry r)));
    wanted timestamptz;
BEGIN
    part := 'database';
    is_late := pg_is_in_recovery();
    since := NULL;
    says := CASE WHEN is_late THEN 'this server is a read replica, and the pipeline works on the primary only' END;
    RETURN NEXT;
    RETURN QUERY
    SELECT 'code_location', count(*) > 0, NULL::timestamptz,
           'Dagster cannot load the definitions, so nothing is refreshed: ' || string_agg(f.reason, '; ')
    FROM pricing.dagster_failures f
    -- A sensor that has succeeded since must be loaded: another Dagster has taken over, or the failure is outdated.
    WHERE f.kind = 'location'
      AND NOT EXISTS (SELECT FROM pricing.signs_of_life s
                      WHERE s.part = 'refresh_watched' AND s.ended_at > f.failed_at AND s.ended_at <= now_);
    RETURN QUERY SELECT * FROM pricing.late_signs(now_, started);
    RETURN QUERY
    SELECT 'schedules', count(*) > 0, min(w.served_slot),
           string_agg(CASE WHEN w.next_slot IS NULL
                           THEN pg_catalog.format('the schedule of %s could not be read', w.data_type)
                           ELSE pg_catalog.format('the slot %s of %s was not served',
                                                  pricing.format_time(w.next_slot), w.data_type) END, '; '
                      ORDER BY w.data_type)
    FROM pricing.schedule_walks w JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.is_active AND r.refresh_strategy = 'scheduled' AND started <= now_ - interval '5 minutes'
      AND EXISTS (SELECT FROM pricing.instruments i
                  WHERE i.asset_class = r.asset_class AND i.is_active AND i.update_mode = 'api')
      AND CASE WHEN w.next_slot IS NULL THEN r.created_at <= now_ - interval '5 minutes'
               ELSE w.next_slot > w.served_slot AND w.next_slot <= now_ - interval '5 minutes' END;
    IF EXISTS (SELECT FROM pricing.late_duties(started)) THEN
        wanted := pricing.wanted_since(now_, started, with_background => true);
    END IF;
    RETURN QUERY
    SELECT 'duties', count(*) > 0, min(d.since),
           string_agg(pg_catalog.format('the duty %s has not run %s%s', d.duty,
                                        coalesce('since ' || pricing.format_time(d.since), 'yet'),
                                        coalesce(': ' || d.last_error, '')), '; '
                      ORDER BY d.duty)
    FROM (SELECT x.* FROM pricing.late_duties(greatest(wanted, started)) x WHERE wanted IS NOT NULL
          UNION
          SELECT y.* FROM pricing.idle_duties(started) y) d;
    RETURN QUERY
    SELECT 'notifier', l.words IS NOT NULL, CASE WHEN l.words IS NOT NULL THEN least(s.looked_at, s.ran_at) END,
           CASE WHEN l.words IS NULL THEN NULL
                WHEN s.looked_at IS NULL AND s.ran_at IS NULL
                THEN 'no recipient is notified: no notifier has ever run. `pricing-pipeline up` starts one'
                ELSE pg_catalog.format('no recipient is notified: no notifier has %s. `pricing-pipeline up` keeps one '
                                       'running; its log says what it waits for', l.words) END
    FROM (SELECT max(x.ended_at) FILTER (WHERE x.part = 'look_for_alerts') AS looked_at,
                 max(x.ended_at) FILTER (WHERE x.part = 'send_messages') AS ran_at
          FROM pricing.signs_of_life x WHERE x.ended_at <= now_) s
    CROSS JOIN LATERAL (
        SELECT string_agg(v.what || coalesce(' since ' || pricing.format_time(v.at), ' yet'), ' or '
                          ORDER BY v.place) AS words
        FROM (VALUES (1, 'looked for alerts', s.looked_at), (2, 'sent messages', s.ran_at)) AS v (place, what, at)
        WHERE greatest(v.at, started) <= now_ - interval '2 minutes') l;
    RETURN QUERY
    SELECT 'queue', count(*) > 0, min(q.since),
           string_agg(pg_catalog.format('nothing was completed at %s for ten minutes, though it may be called and '
                                        'tasks are due there: %s', q.provider, q.tasks), '; '
                      ORDER BY q.provider)
    FROM pricing.stalled_providers(started) q;
    RETURN QUERY
    WITH late AS MATERIALIZED (SELECT * FROM pricing.late_types(started)),
    -- Providers of late types that are not called now or do not answer, whatever their rate limits allow.
    stopped AS (
        SELECT p.provider, coalesce(w.sentence, pricing.describe_outages(p.provider)) AS says
        FROM pricing.data_collectors p
        CROSS JOIN LATERAL pricing.why_not_called(p.provider, 1, 0) w
        WHERE EXISTS (SELECT FROM pricing.provider_routing x JOIN late l USING (data_type)
                      WHERE x.provider = p.provider AND x.is_active)
          AND (w.state <> 'rate_limited'
               OR EXISTS (SELECT FROM pricing.outages o WHERE o.provider = p.provider AND o.answered_at IS NULL)))
    SELECT 'providers', count(*) > 0, NULL::timestamptz,
           string_agg(pg_catalog.format('prices have been late for ten minutes, and of their providers %s: %s',
                                        p.provider, p.says), '; '
                      ORDER BY p.provider)
    FROM stopped p
    UNION ALL
    SELECT 'freshness', count(*) > 0, NULL,
           string_agg(pg_catalog.format('more than 5 %% of the watched pairs have been late for ten minutes: '
                                        '%s of %s pairs now', l.late, l.watched), '')
    FROM late l
    WHERE l.data_type IS NULL;
END $$;
COMMENT ON FUNCTION pricing.health() IS
    'Each part of the pipeline, causes first: whether it is late, when it last was not, and what that means.';
