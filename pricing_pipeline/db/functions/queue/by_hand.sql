-- Changes to tasks by a person or by a change of the registry: retry, cancel, retire; and calls that a person makes.
-- Lock order: see queue.sql; dead tasks come after demand and before live ones.

CREATE OR REPLACE FUNCTION pricing.end_backoff(wanted_type text, symbols text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    ended integer;
BEGIN
    UPDATE pricing.demand d
    SET failures = 0, backoff_until = NULL, last_failure = NULL, due_at = least(d.due_at, now_)
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE x.data_type = wanted_type
            AND (symbols IS NULL OR x.symbol = ANY (symbols))
            AND x.backoff_until IS NOT NULL
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE) pairs
    WHERE (d.data_type, d.symbol) = (pairs.data_type, pairs.symbol);
    GET DIAGNOSTICS ended = ROW_COUNT;
    RETURN ended;
END $$;
COMMENT ON FUNCTION pricing.end_backoff(text, text[]) IS
    'Makes backing-off pairs due now because the cause has been corrected (NULL = all symbols of the type); returns '
    'how many.';


CREATE OR REPLACE FUNCTION pricing.end_waits(wanted_type text, symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.data_type = wanted_type
            AND x.symbol = ANY (symbols)
            AND x.window_end = 'infinity'
            AND x.status = 'scheduled'
            AND x.errors -> -1 ->> 'kind' = 'implausible'
          ORDER BY x.id FOR UPDATE SKIP LOCKED) waiting
    WHERE q.id = waiting.id
$$;
COMMENT ON FUNCTION pricing.end_waits(text, text[]) IS
    'Makes tasks due that wait because nothing was believed, after a value of their pair was released.';


CREATE OR REPLACE FUNCTION pricing.revive_tasks(wanted bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    revived bigint[];
BEGIN
    WITH routed AS MATERIALIZED (
        -- Routes may have changed since, and if the same work died several times, the last task is the one to retry.
        SELECT DISTINCT ON (q.data_type, q.symbol, q.window_start, q.window_end) q.*, c.provider AS new_provider,
               k.default_ttl_minutes
        FROM pricing.api_call_queue_dead q
        JOIN pricing.data_type_registry k ON k.data_type = q.data_type AND k.is_active
        JOIN pricing.instruments i
            ON (i.asset_class, i.symbol) = (k.asset_class, q.symbol) AND i.is_active AND i.update_mode = 'api'
        JOIN LATERAL pricing.route(q.data_type, q.symbol) c ON c.provider IS NOT NULL
        WHERE q.id = ANY (wanted)
        ORDER BY q.data_type, q.symbol, q.window_start, q.window_end, q.id DESC),
    live_again AS (
        INSERT INTO pricing.api_call_queue_live
            (id, data_type, symbol, window_start, window_end, provider, status, priority, cadence_minutes, est_bytes,
             enqueued_at, max_attempts, backfill_id, errors)
        SELECT r.id, r.data_type, r.symbol, r.window_start, r.window_end, r.new_provider, 'pending', r.priority,
               r.default_ttl_minutes, r.est_bytes, now_, r.max_attempts, r.backfill_id,
               pricing.append_errors(
                   r.errors,
                   jsonb_build_object('at', now_, 'kind', 'retried', 'attempt', r.attempt,
                                      'message', 'tried again by hand'))
        FROM routed r ORDER BY r.data_type, r.symbol, r.window_start, r.window_end
        ON CONFLICT ON CONSTRAINT live_task_is_unique DO NOTHING
        RETURNING id)
    SELECT array_agg(l.id) INTO revived FROM live_again l;
    DELETE FROM pricing.api_call_queue_dead q WHERE q.id = ANY (revived);
    IF revived IS NOT NULL THEN
        PERFORM pricing.wake_workers();
    END IF;
    RETURN revived;
END $$;
COMMENT ON FUNCTION pricing.revive_tasks(bigint[]) IS
    'Queues locked dead tasks again by their current route, the last of several for the same work; returns these, '
    'NULL = none.';


CREATE OR REPLACE FUNCTION pricing.retry_tasks(wanted bigint[])
RETURNS TABLE (task_id bigint, outcome text, live_id bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    revived bigint[];
    pair record;
BEGIN
    PERFORM FROM pricing.demand d JOIN pricing.api_call_queue_dead q USING (data_type, symbol)
    WHERE q.id = ANY (wanted)
      AND q.window_end = 'infinity'
    ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    PERFORM FROM pricing.api_call_queue_dead q WHERE q.id = ANY (wanted) ORDER BY q.id FOR UPDATE;
    -- A retry by hand asks the first provider again.
    DELETE FROM pricing.route_refusals f USING pricing.api_call_queue_dead q
    WHERE q.id = ANY (wanted) AND (f.data_type, f.symbol) = (q.data_type, q.symbol);

    revived := pricing.revive_tasks(wanted);
    FOR pair IN
        SELECT q.data_type, array_agg(q.symbol) AS symbols FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (revived) AND q.window_end = 'infinity' GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM pricing.end_backoff(pair.data_type, pair.symbols);
        UPDATE pricing.demand d SET became_due_at = now_
        WHERE d.data_type = pair.data_type AND d.symbol = ANY (pair.symbols); -- locked above
    END LOOP;
    -- It goes on, also if it was cancelled.
    UPDATE pricing.backfills b SET finished_at = NULL, cancelled_at = NULL
    WHERE b.backfill_id IN (SELECT q.backfill_id FROM pricing.api_call_queue_live q WHERE q.id = ANY (revived));

    RETURN QUERY
    SELECT w.id,
           CASE WHEN w.id = ANY (revived) THEN 'retried'
                WHEN same.id IS NOT NULL THEN 'live_already'
                WHEN dead.id IS NULL AND any_.id IS NULL THEN 'unknown'
                WHEN dead.id IS NULL THEN 'not_dead'
                WHEN NOT coalesce(k.is_active, false) THEN 'retired'
                WHEN NOT coalesce(i.is_active, false) THEN 'removed'
                WHEN i.update_mode <> 'api' THEN 'paused'
                ELSE 'misconfigured' END,
           CASE WHEN w.id = ANY (revived) THEN w.id ELSE same.id END
    FROM (SELECT DISTINCT u.id FROM unnest(wanted) AS u (id)) w
    LEFT JOIN pricing.api_call_queue any_ ON any_.id = w.id
    LEFT JOIN pricing.api_call_queue_dead dead ON dead.id = w.id
    LEFT JOIN pricing.api_call_queue_live same
        ON (same.data_type, same.symbol, same.window_start, same.window_end)
         = (dead.data_type, dead.symbol, dead.window_start, dead.window_end)
    LEFT JOIN pricing.data_type_registry k ON k.data_type = dead.data_type
    LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (k.asset_class, dead.symbol)
    ORDER BY w.id;
END $$;
COMMENT ON FUNCTION pricing.retry_tasks(bigint[]) IS
    'Queues dead tasks again by hand, by their current route, ends their pairs'' back-off, and returns each outcome.';


CREATE OR REPLACE FUNCTION pricing.withdraw(wanted bigint[], kind text, message text) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb := jsonb_build_object('at', now_, 'kind', kind, 'message', left(message, 500));
    withdrawn bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM pricing.api_call_queue_live q USING (
            SELECT x.id FROM pricing.api_call_queue_live x WHERE x.id = ANY (wanted) ORDER BY x.id FOR UPDATE) mine
        WHERE q.id = mine.id RETURNING q.*),
    kept AS (
        INSERT INTO pricing.api_call_queue_dead
            (id, data_type, symbol, window_start, window_end, provider, status, priority, cadence_minutes, est_bytes,
             enqueued_at, attempt, max_attempts, claimed_at, worker, call_id, backfill_id, errors, finished_at,
             failure_kind, resolved_at)
        SELECT g.id, g.data_type, g.symbol, g.window_start, g.window_end, g.provider, 'cancelled', g.priority,
               g.cadence_minutes, g.est_bytes, g.enqueued_at, g.attempt, g.max_attempts, g.claimed_at, g.worker,
               g.call_id, g.backfill_id,
               pricing.append_errors(g.errors, entry || jsonb_build_object('attempt', g.attempt)),
               now_, kind, now_
        FROM gone g)
    SELECT array_agg(g.id) INTO withdrawn FROM gone g;
    RETURN coalesce(withdrawn, '{}');
END $$;
COMMENT ON FUNCTION pricing.withdraw(bigint[], text, text) IS
    'Cancels live tasks, including claimed ones, whose finish is then refused; returns which were live.';


CREATE OR REPLACE FUNCTION pricing.cancel_tasks(wanted bigint[], reason text DEFAULT 'cancelled by hand')
RETURNS TABLE (task_id bigint, outcome text)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    withdrawn bigint[];
BEGIN
    PERFORM FROM pricing.demand d JOIN pricing.api_call_queue_live q USING (data_type, symbol)
    WHERE q.id = ANY (wanted)
      AND q.window_end = 'infinity'
    ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    withdrawn := pricing.withdraw(wanted, 'cancelled', reason);
    -- Without a pause the next staleness check would start the work again.
    UPDATE pricing.demand d
    SET due_at = now_ + interval '1 hour', backoff_until = now_ + interval '1 hour', became_due_at = NULL,
        stretched_from = NULL, owed_since = NULL, last_failure = left(reason, 500)
    FROM (SELECT x.data_type, x.symbol
          FROM pricing.demand x JOIN pricing.api_call_queue_dead q USING (data_type, symbol)
          WHERE q.id = ANY (withdrawn) AND q.window_end = 'infinity'
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x) pairs
    WHERE (d.data_type, d.symbol) = (pairs.data_type, pairs.symbol);

    RETURN QUERY
    SELECT w.id,
           CASE WHEN w.id = ANY (withdrawn) THEN 'cancelled'
                WHEN q.id IS NULL THEN 'unknown'
                ELSE 'finished' END
    FROM (SELECT DISTINCT u.id FROM unnest(wanted) AS u (id)) w LEFT JOIN pricing.api_call_queue q ON q.id = w.id
    ORDER BY w.id;
END $$;
COMMENT ON FUNCTION pricing.cancel_tasks(bigint[], text) IS
    'Cancels live tasks by hand, makes their pairs back off for an hour, and returns each outcome.';


CREATE OR REPLACE FUNCTION pricing.forget_tasks(wanted bigint[]) RETURNS TABLE (task_id bigint, outcome text)
LANGUAGE sql SET search_path = '' AS $$
    WITH forgotten AS (
        UPDATE pricing.api_call_queue_dead q SET resolved_at = pricing.clock()
        FROM (SELECT x.id FROM pricing.api_call_queue_dead x
              WHERE x.id = ANY (wanted)
                AND x.resolved_at IS NULL
              ORDER BY x.id FOR UPDATE) mine
        WHERE q.id = mine.id RETURNING q.id)
    SELECT w.id, CASE WHEN f.id IS NOT NULL THEN 'forgotten'
                      WHEN q.id IS NULL THEN 'unknown'
                      WHEN q.resolved_at IS NOT NULL THEN 'settled'
                      ELSE 'not_dead' END
    FROM (SELECT DISTINCT u.id FROM unnest(wanted) AS u (id)) w
    LEFT JOIN pricing.api_call_queue q USING (id)
    LEFT JOIN forgotten f USING (id)
    ORDER BY w.id
$$;
COMMENT ON FUNCTION pricing.forget_tasks(bigint[]) IS
    'Resolves dead tasks by hand without another attempt, and returns each outcome.';


CREATE OR REPLACE FUNCTION pricing.retire_tasks() RETURNS integer
LANGUAGE sql SET search_path = '' AS $$
    SELECT cardinality(pricing.withdraw(
        (SELECT array_agg(x.id) FROM (
            SELECT q.id FROM pricing.api_call_queue_live q
            WHERE NOT EXISTS (SELECT FROM pricing.data_type_registry r WHERE r.data_type = q.data_type AND r.is_active)
            ORDER BY q.id FOR UPDATE OF q SKIP LOCKED) x), 'retired', 'its data type was retired or deleted'))
$$;
COMMENT ON FUNCTION pricing.retire_tasks() IS
    'Cancels the tasks of data types that were retired or deleted, except for locked ones; returns how many.';


CREATE OR REPLACE FUNCTION pricing.fail_impossible_tasks() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    cause record;
    failed integer := 0;
BEGIN
    FOR cause IN
        SELECT DISTINCT t.data_type FROM pricing.impossible_tasks() t WHERE t.is_misrouted ORDER BY 1
    LOOP
        PERFORM pricing.reroute_tasks(cause.data_type);
    END LOOP;
    FOR cause IN
        SELECT t.message, array_agg(q.id) AS ids FROM pricing.impossible_tasks() t
        JOIN LATERAL (SELECT x.id FROM pricing.api_call_queue_live x WHERE x.id = t.id FOR UPDATE SKIP LOCKED) q ON true
        GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM pricing.bury(
            cause.ids, 'misconfigured',
            jsonb_build_object('at', pricing.clock(), 'kind', 'misconfigured', 'message', cause.message),
            cause.message);
        failed := failed + cardinality(cause.ids);
    END LOOP;
    RETURN failed;
END $$;
COMMENT ON FUNCTION pricing.fail_impossible_tasks() IS
    'Fails waiting tasks that can never be called as misconfigured, or gives them to a provider that can fetch them; '
    'returns how many failed.';


CREATE OR REPLACE FUNCTION pricing.impossible_tasks()
RETURNS TABLE (id bigint, data_type text, is_misrouted boolean, message text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH narrowest AS (
        SELECT DISTINCT ON (l.provider, k.key_name) l.provider, l.name, coalesce(own.units, l.units) AS units
        FROM pricing.provider_limits l LEFT JOIN pricing.provider_keys k ON k.provider = l.provider AND k.is_active
        LEFT JOIN pricing.provider_key_limits own
            ON (own.provider, own.name, own.key_name) = (l.provider, l.name, k.key_name)
        ORDER BY l.provider, k.key_name, coalesce(own.units, l.units)),
    -- A key with more room may afford a call that is too large for the others.
    widest AS (
        SELECT DISTINCT ON (n.provider) n.* FROM narrowest n ORDER BY n.provider, n.units DESC),
    judged AS (
        SELECT q.id, q.data_type, c.fetcher IS NULL OR NOT p.is_active AS is_misrouted, CASE
            WHEN NOT p.is_active THEN pg_catalog.format(
                '%s is switched off, and no other provider serves %s. Switch it on with `pricing-pipeline provider '
                'change`, or add a route with `pricing-pipeline route add`',
                q.provider, q.data_type)
            WHEN c.fetcher IS NULL THEN pg_catalog.format(
                '%s cannot fetch %s, which the data type %s is made of. Route it to another provider with '
                '`pricing-pipeline route add`',
                q.provider, r.fetcher, q.data_type)
            WHEN c.units_per_call + c.units_per_symbol > w.units THEN pg_catalog.format(
                'one symbol costs %s units of %s, and its limit "%s" allows %s. If your plan allows more, raise '
                'units in pricing.provider_limits; else route %s to another provider',
                c.units_per_call + c.units_per_symbol, q.provider, w.name, w.units, q.data_type)
            WHEN q.est_bytes > pricing.quota_for(p.quota_bytes, q.priority) THEN pg_catalog.format(
                'it needs about %s bytes, and the quota of %s allows such work %s in 30 days. Raise the quota with '
                '`pricing-pipeline provider change` if your plan allows more',
                q.est_bytes, q.provider, pricing.quota_for(p.quota_bytes, q.priority)) END AS message
        FROM pricing.api_call_queue_live q
        JOIN pricing.data_type_registry r ON r.data_type = q.data_type
        JOIN pricing.data_collectors p ON p.provider = q.provider
        LEFT JOIN pricing.provider_capabilities c ON (c.provider, c.fetcher) = (q.provider, r.fetcher)
        LEFT JOIN widest w ON w.provider = q.provider
        WHERE q.status IN ('pending', 'scheduled') AND r.is_active)
    SELECT j.id, j.data_type, j.is_misrouted, j.message FROM judged j WHERE j.message IS NOT NULL
$$;
COMMENT ON FUNCTION pricing.impossible_tasks() IS
    'Waiting tasks that can never be called, with the reason and what to do; is_misrouted if another provider may '
    'fetch it.';


CREATE OR REPLACE FUNCTION pricing.fetch_now(wanted_type text, only_symbols text[] DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    found record;
    wanted record;
BEGIN
    IF only_symbols IS NOT NULL THEN
        only_symbols := ARRAY(SELECT k.symbol FROM pricing.symbols_by_type(ARRAY[wanted_type], only_symbols) k);
    END IF;
    SELECT array_agg(d.symbol ORDER BY d.symbol) AS symbols, array_agg(seen.viewers ORDER BY d.symbol) AS viewers
    INTO found
    FROM pricing.demand d JOIN pricing.data_type_registry k ON k.data_type = d.data_type AND k.is_active
    CROSS JOIN LATERAL (SELECT count(*)::integer AS viewers FROM pricing.active_subscriptions a
                        WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)) seen
    WHERE d.data_type = wanted_type AND (only_symbols IS NULL OR d.symbol = ANY (only_symbols))
      AND coalesce(d.backoff_until <= now_, true)
      AND (seen.viewers > 0 OR EXISTS (SELECT FROM pricing.holdings h
                                       WHERE (h.data_type, h.active_symbol) = (d.data_type, d.symbol)))
      AND (SELECT u.left_out FROM pricing.universe u
           WHERE (u.data_type, u.symbol) = (d.data_type, d.symbol)) IS DISTINCT FROM 'paused';
    IF found.symbols IS NULL THEN
        RETURN '{}';
    END IF;
    wanted := pricing.within_quota(wanted_type, found.symbols, found.viewers);
    PERFORM pricing.enqueue(wanted_type, wanted.fitting, wanted.fitting_priorities);
    RETURN coalesce((SELECT array_agg(q.id) FROM pricing.api_call_queue_live q
                     WHERE q.data_type = wanted_type AND q.symbol = ANY (found.symbols)
                       AND q.window_start = '-infinity' AND q.window_end = 'infinity'), '{}');
END $$;
COMMENT ON FUNCTION pricing.fetch_now(text, text[]) IS
    'Queues watched or held pairs of a data type, or the named ones, even if fresh, except those that are paused, '
    'back off or have no quota; returns their tasks.';


CREATE OR REPLACE FUNCTION pricing.claim_by_hand(
    wanted_provider text, wanted_type text, wanted_fetcher text, wanted_symbols text[], keys text[], who text,
    OUT refusal text, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamptz)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    is_search constant boolean := wanted_fetcher IS NULL;
    priority_ constant integer := CASE WHEN is_search THEN 0 ELSE 1 END;
    last_call timestamptz;
    needed_units integer := 1;
    needed_bytes bigint := 100000; -- searches list at most some hundred instruments
BEGIN
    IF NOT is_search THEN
        SELECT c.units_per_call + c.units_per_symbol * cardinality(wanted_symbols) INTO needed_units
        FROM pricing.provider_capabilities c WHERE (c.provider, c.fetcher) = (wanted_provider, wanted_fetcher);
        needed_bytes := cardinality(wanted_symbols) * coalesce(
            (SELECT r.estimated_data_size_bytes FROM pricing.data_type_registry r WHERE r.data_type = wanted_type),
            50000);
    END IF;
    -- The lock makes looking at the allowance and taking from it one step, as for claims.
    SELECT s.last_call_at INTO last_call FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    claimed_at := pricing.clock();
    -- People try a provider before they switch it on, or while its breaker is open, and no worker needs to ask it.
    SELECT coalesce(k.sentence, CASE
        WHEN w.state = 'no_client' OR (NOT is_search AND w.state IN ('provider_off', 'breaker_open')) THEN NULL
        ELSE w.sentence END)
    INTO refusal
    FROM pricing.why_not_called(wanted_provider, priority_, needed_bytes) w
    CROSS JOIN pricing.why_no_key(wanted_provider) k;
    -- why_not_called names those stops before it checks the quota, so it is checked here.
    IF refusal IS NULL AND pricing.bytes_used(wanted_provider, claimed_at) + needed_bytes > (
           SELECT pricing.quota_for(p.quota_bytes, priority_) FROM pricing.data_collectors p
           WHERE p.provider = wanted_provider) THEN
        refusal := pg_catalog.format('the quota of %s has no room for about %s bytes', wanted_provider, needed_bytes);
    END IF;
    IF refusal IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT a.key_name INTO key_name
    FROM pricing.key_to_ask(wanted_provider, keys, needed_units, last_call, claimed_at) a;
    IF key_name IS NULL THEN
        refusal := pg_catalog.format(
            '%s cannot be called right now: its limits leave no room for %s units, a call that has begun needs '
            'them, or all calls that it may have are in flight. Try again in a minute',
            wanted_provider, needed_units);
        RETURN;
    END IF;
    INSERT INTO pricing.collector_call_log AS c
        (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, worker, started_at)
    VALUES (wanted_provider, claim_by_hand.key_name, wanted_type, wanted_symbols,
            -- A search is logged as a span of one day: its size says nothing about the size of latest prices.
            CASE WHEN is_search THEN (claimed_at AT TIME ZONE 'UTC')::date ELSE '-infinity' END,
            CASE WHEN is_search THEN (claimed_at AT TIME ZONE 'UTC')::date ELSE 'infinity' END,
            needed_units, needed_bytes, who, claimed_at)
    RETURNING c.call_id INTO call_id;
    UPDATE pricing.provider_state s SET claims = s.claims + 1, last_call_at = claim_by_hand.claimed_at
    WHERE s.provider = wanted_provider;
END $$;
COMMENT ON FUNCTION pricing.claim_by_hand(text, text, text, text[], text[], text) IS
    'Logs a call that a person makes for latest prices or a search as open, within all limits (commit before making '
    'it), or says why not now.';


CREATE OR REPLACE FUNCTION pricing.type_retired() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.retire_tasks();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.type_retired() IS 'Cancels the queued tasks of a data type that is retired or deleted.';

CREATE TRIGGER type_deleted
    AFTER DELETE ON pricing.data_type_registry
    FOR EACH ROW
    EXECUTE FUNCTION pricing.type_retired();

CREATE TRIGGER type_retired
    AFTER UPDATE OF is_active ON pricing.data_type_registry
    FOR EACH ROW WHEN (OLD.is_active AND NOT NEW.is_active)
    EXECUTE FUNCTION pricing.type_retired();
