-- Retention: which past rows are kept, and for how long.

CREATE OR REPLACE FUNCTION pricing.resolve_tasks() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    today date := (now_ AT TIME ZONE 'UTC')::date;
    resolved integer;
BEGIN
    UPDATE pricing.api_call_queue_dead d
    SET resolved_at = now_
    FROM (
        SELECT q.id FROM pricing.api_call_queue_dead q
        LEFT JOIN pricing.latest_answers l USING (data_type, symbol)
        LEFT JOIN pricing.history_coverage h USING (data_type, symbol)
        WHERE q.resolved_at IS NULL AND (
            NOT EXISTS (SELECT FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
                        WHERE r.data_type = q.data_type
                          AND i.symbol = q.symbol
                          AND i.is_active)
            -- Only the last one is kept: it shows as much as all.
            OR EXISTS (SELECT FROM pricing.api_call_queue_dead x
                       WHERE x.data_type = q.data_type
                         AND x.symbol = q.symbol
                         AND x.id > q.id
                         AND x.resolved_at IS NULL
                         AND (x.window_start, x.window_end, x.status, x.failure_kind)
                           = (q.window_start, q.window_end, q.status, q.failure_kind))
            OR (q.window_end = 'infinity' AND l.fetched_at > q.finished_at)
            -- Today is never covered, so it is not waited for.
            OR (q.window_start < today AND q.window_end <> 'infinity'
                -- Days with only an unreadable value were answered, and are not covered.
                AND datemultirange(daterange(q.window_start, least(q.window_end, today - 1), '[]')) - h.covered
                    <@ coalesce((
                        SELECT range_agg(daterange(u.day, u.day, '[]'))
                        FROM (SELECT (v.observed_at AT TIME ZONE 'UTC')::date AS day
                              FROM pricing.quarantined_values v
                              WHERE (v.data_type, v.symbol) = (q.data_type, q.symbol)
                                AND pricing.is_unreadable(v.kind, v.bar)) u), '{}')))
        ORDER BY q.id FOR UPDATE OF q SKIP LOCKED) done
    WHERE d.id = done.id;
    GET DIAGNOSTICS resolved = ROW_COUNT;
    RETURN resolved;
END $$;
COMMENT ON FUNCTION pricing.resolve_tasks() IS
    'Marks dead tasks as resolved: of removed instruments, or followed by a success or the same failure; returns how '
    'many.';


CREATE OR REPLACE FUNCTION pricing.is_leaf(leaf text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits i
                   WHERE i.inhparent = 'pricing.api_call_queue_completed'::pg_catalog.regclass
                     AND i.inhrelid = pg_catalog.to_regclass('pricing.api_call_queue_completed_' || leaf))
$$;
COMMENT ON FUNCTION pricing.is_leaf(text) IS
    'Whether a leaf still belongs to the finished tasks, and was not dropped or detached.';


CREATE OR REPLACE FUNCTION pricing.prune_leaf(leaf text, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NOT pricing.is_leaf(leaf) THEN
        RETURN; -- rows that belong there are in the leaf for the rest
    END IF;
    -- Those that finished first lie at the beginning, so a leaf without old tasks is not read through.
    EXECUTE pg_catalog.format($query$
        DELETE FROM pricing.api_call_queue_completed_%1$s c
        WHERE c.finished_at < $1 - interval '14 days' AND EXISTS (
            SELECT FROM pricing.api_call_queue_completed_%1$s x
            WHERE x.ctid < '(1000,0)' AND x.finished_at < $1 - interval '14 days')
        $query$, leaf) USING now_;
END $$;
COMMENT ON FUNCTION pricing.prune_leaf(text, timestamptz) IS
    'Deletes tasks that finished more than 14 days ago from a leaf in which others may be finishing now.';


CREATE OR REPLACE FUNCTION pricing.empty_leaf(leaf text, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    last_at timestamptz;
BEGIN
    IF NOT pricing.is_leaf(leaf) THEN
        RETURN;
    END IF;
    EXECUTE pg_catalog.format('SELECT max(c.finished_at) FROM pricing.api_call_queue_completed_%s c', leaf)
    INTO last_at;
    IF last_at < now_ - interval '7 days' THEN
        EXECUTE pg_catalog.format('TRUNCATE pricing.api_call_queue_completed_%s', leaf);
    ELSIF last_at IS NOT NULL THEN
        -- A clock that was set back may have written there just now.
        EXECUTE pg_catalog.format(
            'DELETE FROM pricing.api_call_queue_completed_%s c '
            'WHERE c.finished_at < $1 - interval ''14 days''', leaf)
        USING now_;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    RAISE NOTICE 'pricing.api_call_queue_completed_% is in use and is emptied later', leaf;
END $$;
COMMENT ON FUNCTION pricing.empty_leaf(text, timestamptz) IS
    'Empties the leaf of a past week, unless somebody reads it or tasks have finished in it since.';


CREATE OR REPLACE FUNCTION pricing.make_leaves() RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    leaf text;
BEGIN
    FOR number IN 0..7 LOOP
        leaf := 'api_call_queue_completed_' || number;
        CONTINUE WHEN pg_catalog.to_regclass('pricing.' || leaf) IS NOT NULL;
        BEGIN
            EXECUTE pg_catalog.format(
                'CREATE TABLE pricing.%I (LIKE pricing.api_call_queue_completed_rest INCLUDING ALL)', leaf);
            -- Where the rest has tasks of these weeks, no leaf for them can be joined.
            EXECUTE pg_catalog.format(
                'WITH moved AS ('
                'DELETE FROM pricing.api_call_queue_completed_rest r WHERE r.ring = %s RETURNING r.*) '
                'INSERT INTO pricing.%I SELECT * FROM moved', number, leaf);
            EXECUTE pg_catalog.format(
                'ALTER TABLE pricing.api_call_queue_completed ATTACH PARTITION pricing.%I FOR VALUES IN (%s)',
                leaf, number);
            EXECUTE pg_catalog.format(
                'COMMENT ON TABLE pricing.%I IS %L', leaf,
                pg_catalog.format('Tasks finished in weeks whose number since 1970 is %s modulo 8.', number));
        EXCEPTION WHEN invalid_object_definition THEN
            RAISE NOTICE 'pricing.% is not made: a leaf of another name has its weeks', leaf;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.make_leaves() IS 'Recreates dropped leaves of finished tasks, for the owner at an upgrade.';
SELECT pricing.make_leaves();


CREATE OR REPLACE FUNCTION pricing.prune_calls() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '100ms' SET enable_seqscan = off
SET enable_hashjoin = off AS $$
DECLARE
    before timestamptz := pricing.clock() - interval '35 days';
    pruned integer;
BEGIN
    -- Each provider has its calls in an index by time: where none is old, next to nothing is read.
    WITH RECURSIVE asked (provider) AS (
        SELECT min(c.provider) FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
        UNION ALL
        SELECT (SELECT min(c.provider) FROM pricing.collector_call_log c
                WHERE c.moved_to IS NULL AND c.provider > a.provider)
        FROM asked a
        WHERE a.provider IS NOT NULL),
    usual AS (
        SELECT x.call_id FROM asked a CROSS JOIN LATERAL (
            SELECT c.call_id FROM pricing.collector_call_log c
            WHERE c.provider = a.provider
              AND c.moved_to IS NULL
              AND c.started_at < before
              AND c.finished_at IS NOT NULL
            ORDER BY c.started_at LIMIT 50000 FOR UPDATE SKIP LOCKED) x),
    moved AS (
        SELECT c.call_id FROM pricing.collector_call_log c
        WHERE c.moved_to IS NOT NULL
          AND c.started_at < before
          AND c.finished_at IS NOT NULL
        LIMIT 50000 FOR UPDATE SKIP LOCKED),
    old AS (
        DELETE FROM pricing.collector_call_log c
        WHERE c.call_id IN (SELECT u.call_id FROM usual u UNION ALL SELECT m.call_id FROM moved m)
        RETURNING c.*),
    kept AS (
        -- Prices name the call that brought them as long as they exist.
        INSERT INTO pricing.past_calls
            (call_id, provider, key_name, data_type, window_start, window_end, symbols, run_id, worker, started_at,
             finished_at, http_status, wire_bytes)
        SELECT o.call_id, o.provider, o.key_name, o.data_type, nullif(o.window_start, '-infinity'),
               nullif(o.window_end, 'infinity'), cardinality(o.symbols), o.run_id, o.worker,
               o.started_at, o.finished_at, o.http_status, o.wire_bytes
        -- A call whose worker was lost may have stored parts.
        FROM old o WHERE o.outcome <> 'failed' ORDER BY o.call_id)
    SELECT count(*) INTO pruned FROM old;
    RETURN pruned;
END $$;
COMMENT ON FUNCTION pricing.prune_calls() IS
    'Deletes calls after 35 days, 50,000 of each provider at a time; past_calls keeps who made the answered ones; '
    'returns how many.';


CREATE OR REPLACE FUNCTION pricing.prune() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    week bigint := floor(extract(epoch FROM now_) / 604800)::bigint;
    past record;
    pruned integer;
    total integer;
BEGIN
    SET LOCAL lock_timeout = '100ms';
    -- A leaf holds one week. This week's and last week's stay, so a finished task is kept 7 to 14 days; emptying
    -- a leaf needs no DDL on the parent, and nobody writes to an old one. Readers have precedence: a leaf in use is
    -- emptied another time.
    FOR back IN 0..7 LOOP
        IF back < 2 THEN
            -- While nothing runs for months, nothing is emptied, and the ring comes round.
            PERFORM pricing.prune_leaf(((week - back) % 8)::text, now_);
        ELSE
            PERFORM pricing.empty_leaf(((week - back) % 8)::text, now_);
        END IF;
    END LOOP;
    PERFORM pricing.prune_leaf('rest', now_);
    total := pricing.prune_calls() + pricing.prune_quarantine();
    FOR past IN
        SELECT v.* FROM (VALUES
            ('alert_silences', 'x.until < $1 - interval ''90 days'''),
            ('alerts', 'x.resolved_at < $1 - interval ''90 days'''),
            ('api_call_queue_dead', 'x.resolved_at < $1 - interval ''90 days'''),
            ('api_data_usage', 'x.hour < $1 - interval ''400 days'''),
            ('async_operations_completed', 'x.finished_at < $1 - interval ''14 days'''),
            ('async_operations_dead', 'x.finished_at < $1 - interval ''90 days'''),
            ('dagster_failures', 'x.failed_at < $1 - interval ''7 days'''),
            ('drains', 'x.lease_until < $1 - interval ''7 days'''),
            ('failing_recipients', 'x.failed_at < $1 - interval ''90 days'''),
            ('freshness_samples', 'x.at < $1 - interval ''7 days'''),
            -- New prices that no alert has looked at, or whose alert is gone.
            ('price_events', 'x.stored_at < $1 - interval ''7 days'' OR NOT EXISTS ('
                             'SELECT FROM pricing.price_alerts a WHERE a.price_alert_id = x.price_alert_id)'),
            ('warning_counts', 'x.since < $1 - interval ''30 days'''),
            ('warnings', 'x.at < $1 - interval ''30 days''')) AS v (name, is_over)
    LOOP
        EXECUTE pg_catalog.format(
            'DELETE FROM pricing.%1$I WHERE ctid = ANY (ARRAY(SELECT x.ctid FROM pricing.%1$I x WHERE %2$s '
            'LIMIT 50000 FOR UPDATE SKIP LOCKED))', past.name, past.is_over)
        USING now_;
        GET DIAGNOSTICS pruned = ROW_COUNT;
        total := total + pruned;
    END LOOP;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.prune() IS
    'Deletes what is past its retention, and skips what is in use; returns how many rows outside leaves.';
