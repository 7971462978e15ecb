-- Trouble: which faults are the symbol's own, how long a pair backs off, and who waits for an outage to end. Lock
-- order: see queue.sql; after outages, tend_outages takes only rows that are free.

CREATE OR REPLACE FUNCTION pricing.is_symbol_fault(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT coalesce(kind IN ('unknown_symbol', 'plan_restricted'), false)
$$;
COMMENT ON FUNCTION pricing.is_symbol_fault(text) IS
    'Whether a kind of failure is a fault of the symbol; all others are trouble, and the pair stays late.';


CREATE OR REPLACE FUNCTION pricing.is_outage(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT coalesce(kind IN ('provider_down', 'schema_drift', 'key_refused', 'request_refused', 'endpoint_restricted',
                             'misconfigured', 'client_fault'), false)
$$;
COMMENT ON FUNCTION pricing.is_outage(text) IS
    'Whether a kind of failure may mean that the provider serves nobody; throttled has its own pauses.';


CREATE OR REPLACE FUNCTION pricing.backoff_interval(kind text, failures integer) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN pricing.is_symbol_fault(kind)
                THEN least(interval '1 hour' * 2 ^ least(failures, 5), interval '24 hours')
                ELSE least(interval '1 minute' * 2 ^ least(failures, 4), interval '10 minutes') END
$$;
COMMENT ON FUNCTION pricing.backoff_interval(text, integer) IS
    'How long a pair backs off after this many deaths: 1 min doubling to 10 min after trouble, 1 h doubling to 24 h '
    'after a fault of its symbol.';


CREATE OR REPLACE FUNCTION pricing.failing_since(errors jsonb) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Failures at another provider, or before a person retried the task, do not count.
    SELECT min((e.entry ->> 'at')::timestamptz) FROM jsonb_array_elements(errors) WITH ORDINALITY AS e (entry, place)
    WHERE pricing.is_outage(e.entry ->> 'kind')
      AND e.place > coalesce((SELECT max(x.place) FROM jsonb_array_elements(errors) WITH ORDINALITY AS x (entry, place)
                              WHERE x.entry ->> 'kind' IN ('retried', 'passed_over')), 0)
$$;
COMMENT ON FUNCTION pricing.failing_since(jsonb) IS
    'When a task with this history first failed of trouble that others may share; NULL = never.';


CREATE OR REPLACE FUNCTION pricing.others_were_answered(ids bigint[]) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- The outage that goes on began after it had failed first: between the two the provider has answered.
    SELECT coalesce(bool_and(o.since > pricing.failing_since(q.errors)), false)
    FROM pricing.api_call_queue_live q
    LEFT JOIN pricing.outages o ON (o.provider, o.data_type) = (q.provider, q.data_type) AND o.answered_at IS NULL
    WHERE q.id = ANY (ids)
$$;
COMMENT ON FUNCTION pricing.others_were_answered(bigint[]) IS
    'Whether each task of a failed call had failed before while the provider answered others of the data type, so '
    'that the fault is its own.';


CREATE OR REPLACE FUNCTION pricing.note_outage(call pricing.collector_call_log, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    is_fault boolean := pricing.is_outage(call.failure_kind);
    known record;
BEGIN
    SELECT o.outage_id, o.since INTO known FROM pricing.outages o
    WHERE (o.provider, o.data_type) = (call.provider, call.data_type) AND o.answered_at IS NULL;
    IF is_fault AND known.outage_id IS NULL THEN
        INSERT INTO pricing.outages (provider, data_type, since, last_fault_at)
        VALUES (call.provider, call.data_type, call.started_at, now_)
        ON CONFLICT (provider, data_type) WHERE answered_at IS NULL DO NOTHING;
    -- A session that holds the row writes the same. An answer to a call from before the outage says nothing.
    ELSIF is_fault OR (call.outcome = 'ok' AND call.started_at >= known.since) THEN
        UPDATE pricing.outages o
        SET last_fault_at = CASE WHEN is_fault THEN now_ ELSE o.last_fault_at END,
            answered_at = CASE WHEN NOT is_fault THEN now_ END
        FROM (SELECT x.outage_id FROM pricing.outages x
              WHERE x.outage_id = known.outage_id AND x.answered_at IS NULL FOR UPDATE SKIP LOCKED) mine
        WHERE o.outage_id = mine.outage_id;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_outage(pricing.collector_call_log, timestamptz) IS
    'Begins or prolongs an outage after trouble that others may share, or ends it after an answer.';


CREATE OR REPLACE FUNCTION pricing.pairs_waiting_for(wanted_provider text, wanted_type text)
RETURNS TABLE (symbol text, failure_kind text, failing_since timestamptz, asked_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    SELECT d.symbol, died.failure_kind, pricing.failing_since(died.errors), coalesce(died.claimed_at, died.finished_at)
    FROM pricing.demand d
    CROSS JOIN LATERAL (
        SELECT q.provider, q.failure_kind, q.claimed_at, q.finished_at, q.errors FROM pricing.api_call_queue_dead q
        WHERE (q.data_type, q.symbol) = (d.data_type, d.symbol) AND q.window_end = 'infinity'
        ORDER BY q.id DESC LIMIT 1) died
    WHERE d.data_type = wanted_type
      AND d.owed_since IS NOT NULL
      AND d.due_at > now_
      AND d.became_due_at IS NULL
      AND died.provider = wanted_provider
      AND pricing.is_outage(died.failure_kind);
END $$;
COMMENT ON FUNCTION pricing.pairs_waiting_for(text, text) IS
    'Pairs of a data type that back off because of a provider''s trouble that others may share: the kind, the first '
    'failure, and the last request.';


CREATE OR REPLACE FUNCTION pricing.return_waiting(over pricing.outages) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pairs integer;
    tasks integer;
BEGIN
    -- Not what the provider has failed while it answered others: one bad symbol would be asked for with each good
    -- answer. But what it was asked for before it came back may fail later, at the call's deadline.
    UPDATE pricing.demand d SET due_at = now_, backoff_until = NULL
    FROM (SELECT x.data_type, x.symbol
          FROM pricing.pairs_waiting_for(over.provider, over.data_type) w
          JOIN pricing.demand x ON (x.data_type, x.symbol) = (over.data_type, w.symbol)
          WHERE w.failing_since >= over.since
            AND w.asked_at < over.answered_at
            AND x.became_due_at IS NULL
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x SKIP LOCKED) mine
    WHERE (d.data_type, d.symbol) = (mine.data_type, mine.symbol);
    GET DIAGNOSTICS pairs = ROW_COUNT;
    UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.provider = over.provider
            AND x.data_type = over.data_type
            AND x.status = 'scheduled'
            AND x.run_after > now_
            AND pricing.is_outage(x.errors -> -1 ->> 'kind')
            AND pricing.failing_since(x.errors) >= over.since
            AND x.claimed_at < over.answered_at
          ORDER BY x.id FOR UPDATE SKIP LOCKED) mine
    WHERE q.id = mine.id;
    GET DIAGNOSTICS tasks = ROW_COUNT;
    RETURN pairs + tasks;
END $$;
COMMENT ON FUNCTION pricing.return_waiting(pricing.outages) IS
    'Makes everything due that has failed since an outage began, because the provider answers again; returns how many '
    'pairs and tasks.';


CREATE OR REPLACE FUNCTION pricing.probe_outage(down pricing.outages) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    waiting record;
BEGIN
    IF EXISTS (SELECT FROM pricing.collector_call_log c
               WHERE c.provider = down.provider
                 AND c.data_type = down.data_type
                 AND c.finished_at IS NULL)
       OR EXISTS (SELECT FROM pricing.api_call_queue_live q
                  WHERE q.provider = down.provider
                    AND q.data_type = down.data_type
                    AND q.run_after IS NULL
                    AND q.status = 'pending'
                    AND q.priority > 0) THEN
        RETURN; -- it is being asked
    END IF;
    -- As in return_waiting: a failure while other symbols were answered says nothing about the provider.
    FOR waiting IN
        SELECT w.* FROM (
            SELECT x.id, x.symbol, x.errors -> -1 ->> 'kind' AS kind, x.claimed_at AS asked_at,
                   pricing.failing_since(x.errors) AS failing_since
            FROM pricing.api_call_queue_live x
            WHERE x.provider = down.provider
              AND x.data_type = down.data_type
              AND x.run_after IS NOT NULL
              AND x.status = 'scheduled'
              AND x.priority > 0
            UNION ALL
            SELECT NULL, p.symbol, p.failure_kind, p.asked_at, p.failing_since
            FROM pricing.pairs_waiting_for(down.provider, down.data_type) p
            WHERE EXISTS (SELECT FROM pricing.active_subscriptions a
                          WHERE (a.data_type, a.symbol) = (down.data_type, p.symbol))) w
        -- Each refusal of a plan counts against the plan: it is asked for by the pauses alone.
        WHERE pricing.is_outage(w.kind)
          AND w.kind <> 'endpoint_restricted'
          AND w.failing_since >= down.since
        ORDER BY w.asked_at, pg_catalog.md5(w.symbol)
    LOOP
        UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
        FROM (SELECT x.id FROM pricing.api_call_queue_live x
              WHERE x.id = waiting.id AND x.status = 'scheduled' FOR UPDATE SKIP LOCKED) mine
        WHERE q.id = mine.id;
        EXIT WHEN FOUND;
        UPDATE pricing.demand d SET due_at = now_, backoff_until = NULL
        FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
              WHERE (x.data_type, x.symbol) = (down.data_type, waiting.symbol)
                AND waiting.id IS NULL
                AND x.became_due_at IS NULL
              FOR NO KEY UPDATE SKIP LOCKED) mine
        WHERE (d.data_type, d.symbol) = (mine.data_type, mine.symbol);
        EXIT WHEN FOUND;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.probe_outage(pricing.outages) IS
    'Requests one task or pair that a viewer waits for ahead of its pause, the one requested longest ago (by chance '
    'among equals), unless one is about to be requested.';


CREATE OR REPLACE FUNCTION pricing.pick_probe(wanted_provider text, allowed pricing.call_allowance)
RETURNS pricing.picked_task[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted record;
    picked pricing.picked_task[];
BEGIN
    SELECT (-q.priority) AS urgency, q.cadence_minutes, q.id INTO wanted
    FROM pricing.api_call_queue_live q
    LEFT JOIN pricing.outages o ON (o.provider, o.data_type) = (q.provider, q.data_type) AND o.answered_at IS NULL
    WHERE q.provider = wanted_provider AND q.run_after IS NULL AND q.status = 'pending'
    ORDER BY q.priority > 0 DESC, o.last_fault_at NULLS FIRST, coalesce(q.claimed_at, q.enqueued_at),
             pg_catalog.md5(q.symbol)
    LIMIT 1;
    picked := pricing.pick_tasks(wanted_provider, allowed, 1, wanted.urgency, wanted.cadence_minutes, wanted.id - 1);
    IF cardinality(picked) = 0 THEN
        picked := pricing.pick_tasks(wanted_provider, allowed, 1, -2147483648, 0, 0);
    END IF;
    RETURN picked;
END $$;
COMMENT ON FUNCTION pricing.pick_probe(text, pricing.call_allowance) IS
    'Locks and returns the task that probes a provider: tried longest ago, a viewer''s first, of the data type that '
    'failed longest ago.';


CREATE OR REPLACE FUNCTION pricing.describe_outages(wanted_provider text, only_type text DEFAULT NULL) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pg_catalog.format('no answer for %s, asked about once a minute', string_agg(
        pg_catalog.format('%s since %s', o.data_type, pricing.format_time(o.since)), ', ' ORDER BY o.data_type))
    FROM pricing.outages o
    -- Without viewers there are no calls, so it is unknown whether the provider would answer.
    WHERE o.provider = wanted_provider
      AND (only_type IS NULL OR o.data_type = only_type)
      AND o.answered_at IS NULL
      AND o.last_fault_at > pricing.clock() - interval '2 minutes'
    HAVING count(*) > 0
$$;
COMMENT ON FUNCTION pricing.describe_outages(text, text) IS
    'The data types for which a provider does not answer, in words; NULL = it answers, or was not asked for two '
    'minutes.';


CREATE OR REPLACE FUNCTION pricing.tend_outages() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    one pricing.outages;
    returned integer := 0;
BEGIN
    FOR one IN
        SELECT * FROM pricing.outages o
        WHERE o.answered_at IS NOT NULL OR greatest(o.last_fault_at, o.probed_at) < now_ - interval '50 seconds'
        ORDER BY o.outage_id FOR UPDATE SKIP LOCKED
    LOOP
        IF one.answered_at IS NULL THEN
            PERFORM pricing.probe_outage(one);
            UPDATE pricing.outages o SET probed_at = now_ WHERE o.outage_id = one.outage_id;
        ELSE
            returned := returned + pricing.return_waiting(one);
        END IF;
        -- It stays for as long as calls may be in flight that fail with the others, and somebody may hold a row.
        -- Outages of types that are no longer requested are deleted.
        DELETE FROM pricing.outages o
        WHERE o.outage_id = one.outage_id
          AND (o.answered_at < now_ - interval '15 seconds' OR o.last_fault_at < now_ - interval '24 hours');
    END LOOP;
    RETURN returned;
END $$;
COMMENT ON FUNCTION pricing.tend_outages() IS
    'Probes providers in an outage about once a minute while viewers wait, and makes everything due once they answer; '
    'returns how many pairs and tasks.';
