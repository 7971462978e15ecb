-- Trouble: which faults are the symbol's own, how long a pair backs off, and what an outage of a provider does to those
-- who wait for it. Lock order: see queue.sql; what tend_outages takes after outages it takes only if it is free.

CREATE OR REPLACE FUNCTION pricing.is_symbol_fault(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT coalesce(kind IN ('unknown_symbol', 'plan_restricted', 'request_refused'), false)
$$;
COMMENT ON FUNCTION pricing.is_symbol_fault(text) IS
    'Whether a task that failed so has its symbol to blame. All other kinds are trouble of the provider, its key or ours: the pair stays late.';


CREATE OR REPLACE FUNCTION pricing.is_outage(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT coalesce(kind IN ('provider_down', 'schema_drift', 'key_refused'), false)
$$;
COMMENT ON FUNCTION pricing.is_outage(text) IS
    'Whether a failed call says that its provider, or its key, serves nobody now. Not throttled: its pauses have rules of their own.';


CREATE OR REPLACE FUNCTION pricing.back_off_for(kind text, failures integer) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN pricing.is_symbol_fault(kind) THEN least(interval '1 hour' * 2 ^ least(failures, 5), interval '24 hours')
                ELSE least(interval '1 minute' * 2 ^ least(failures, 4), interval '10 minutes') END
$$;
COMMENT ON FUNCTION pricing.back_off_for(text, integer) IS
    'How long a pair backs off whose task died so, after so many deaths before: 1 min doubling to 10 min after trouble, 1 h doubling to 24 h after a fault of its symbol.';


CREATE OR REPLACE FUNCTION pricing.failing_since(errors jsonb) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- What failed at another provider, or before a person tried again, is another story.
    SELECT min((e.entry ->> 'at')::timestamptz) FROM jsonb_array_elements(errors) WITH ORDINALITY AS e (entry, place)
    WHERE pricing.is_outage(e.entry ->> 'kind')
      AND e.place > coalesce((SELECT max(x.place) FROM jsonb_array_elements(errors) WITH ORDINALITY AS x (entry, place)
                              WHERE x.entry ->> 'kind' IN ('retried', 'passed_over')), 0)
$$;
COMMENT ON FUNCTION pricing.failing_since(jsonb) IS
    'When a task with this history first failed by a fault of its provider or key. NULL = it did not.';


CREATE OR REPLACE FUNCTION pricing.note_outage(judged bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    call record;
    is_fault boolean;
BEGIN
    SELECT c.provider, c.data_type, c.started_at, c.outcome, c.failure_kind, o.outage_id, o.since INTO call
    FROM pricing.collector_call_log c
    LEFT JOIN pricing.outages o ON (o.provider, o.data_type) = (c.provider, c.data_type) AND o.answered_at IS NULL
    WHERE c.call_id = judged;
    is_fault := pricing.is_outage(call.failure_kind);
    IF is_fault AND call.outage_id IS NULL THEN
        INSERT INTO pricing.outages (provider, data_type, since, last_fault_at)
        VALUES (call.provider, call.data_type, call.started_at, now_)
        ON CONFLICT (provider, data_type) WHERE answered_at IS NULL DO NOTHING;
    -- Whoever holds the row writes the same. An answer to a call that was made before it all began says nothing.
    ELSIF is_fault OR (call.outcome = 'ok' AND call.started_at >= call.since) THEN
        UPDATE pricing.outages o
        SET last_fault_at = CASE WHEN is_fault THEN now_ ELSE o.last_fault_at END, answered_at = CASE WHEN NOT is_fault THEN now_ END
        FROM (SELECT x.outage_id FROM pricing.outages x
              WHERE x.outage_id = call.outage_id AND x.answered_at IS NULL FOR UPDATE SKIP LOCKED) mine
        WHERE o.outage_id = mine.outage_id;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_outage(bigint) IS
    'What a settled call says about an outage: a fault of the provider or its key begins one, or prolongs it; an answer ends it.';


CREATE OR REPLACE FUNCTION pricing.pairs_waiting_for(wanted_provider text, wanted_type text)
RETURNS TABLE (symbol text, failing_since timestamptz, asked_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    SELECT d.symbol, pricing.failing_since(died.errors), died.claimed_at
    FROM pricing.demand d
    CROSS JOIN LATERAL (
        SELECT q.provider, q.failure_kind, q.claimed_at, q.errors FROM pricing.api_call_queue_dead q
        WHERE (q.data_type, q.symbol) = (d.data_type, d.symbol) AND q.window_end = 'infinity'
        ORDER BY q.id DESC LIMIT 1) died
    WHERE d.data_type = wanted_type AND d.owed_since IS NOT NULL AND d.due_at > now_ AND d.became_due_at IS NULL
      AND died.provider = wanted_provider AND pricing.is_outage(died.failure_kind);
END $$;
COMMENT ON FUNCTION pricing.pairs_waiting_for(text, text) IS
    'Pairs of a data type that back off because a provider, or its key, served nobody: when their last task failed first, and when it was asked for last.';


CREATE OR REPLACE FUNCTION pricing.return_waiting(over pricing.outages) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pairs integer;
    tasks integer;
BEGIN
    -- Not what the provider has failed while it answered others: one bad symbol would be asked for with each good answer.
    -- But what it was asked for before it came back may fail later, at the call's deadline.
    UPDATE pricing.demand d SET due_at = now_, held_until = NULL
    FROM (SELECT x.data_type, x.symbol
          FROM pricing.pairs_waiting_for(over.provider, over.data_type) w
          JOIN pricing.demand x ON (x.data_type, x.symbol) = (over.data_type, w.symbol)
          WHERE w.failing_since >= over.since AND w.asked_at < over.answered_at AND x.became_due_at IS NULL
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x SKIP LOCKED) mine
    WHERE (d.data_type, d.symbol) = (mine.data_type, mine.symbol);
    GET DIAGNOSTICS pairs = ROW_COUNT;
    UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.provider = over.provider AND x.data_type = over.data_type AND x.status = 'scheduled' AND x.run_after > now_
            AND pricing.is_outage(x.errors -> -1 ->> 'kind') AND pricing.failing_since(x.errors) >= over.since
            AND x.claimed_at < over.answered_at
          ORDER BY x.id FOR UPDATE SKIP LOCKED) mine
    WHERE q.id = mine.id;
    GET DIAGNOSTICS tasks = ROW_COUNT;
    RETURN pairs + tasks;
END $$;
COMMENT ON FUNCTION pricing.return_waiting(pricing.outages) IS
    'The provider answers again: what has failed since the outage began, and waits, is due now. Returns how many pairs and tasks.';


CREATE OR REPLACE FUNCTION pricing.probe_outage(down pricing.outages) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF EXISTS (SELECT FROM pricing.collector_call_log c
               WHERE c.provider = down.provider AND c.data_type = down.data_type AND c.finished_at IS NULL)
       OR EXISTS (SELECT FROM pricing.api_call_queue_live q
                  WHERE q.provider = down.provider AND q.data_type = down.data_type AND q.run_after IS NULL AND q.status = 'pending'
                    AND q.priority > 0) THEN
        RETURN; -- it is being asked
    END IF;
    -- As with the return: what failed while others were answered says nothing about the provider.
    UPDATE pricing.api_call_queue_live q SET status = 'pending', run_after = NULL
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.provider = down.provider AND x.data_type = down.data_type AND x.run_after IS NOT NULL AND x.status = 'scheduled' AND x.priority > 0
            AND pricing.is_outage(x.errors -> -1 ->> 'kind') AND pricing.failing_since(x.errors) >= down.since
          ORDER BY x.priority DESC, x.id LIMIT 1 FOR UPDATE SKIP LOCKED) chosen
    WHERE q.id = chosen.id;
    IF NOT FOUND THEN
        UPDATE pricing.demand d SET due_at = now_, held_until = NULL
        FROM (SELECT x.data_type, x.symbol
              FROM pricing.pairs_waiting_for(down.provider, down.data_type) w
              JOIN pricing.demand x ON (x.data_type, x.symbol) = (down.data_type, w.symbol)
              CROSS JOIN LATERAL (SELECT count(*) AS viewers FROM pricing.active_subscriptions a
                                  WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol)) v
              WHERE w.failing_since >= down.since AND x.became_due_at IS NULL AND v.viewers > 0
              ORDER BY v.viewers DESC, x.symbol LIMIT 1 FOR NO KEY UPDATE OF x SKIP LOCKED) chosen
        WHERE (d.data_type, d.symbol) = (chosen.data_type, chosen.symbol);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.probe_outage(pricing.outages) IS
    'Has one task, or one pair, that a viewer waits for asked for ahead of its pause, unless one is about to be.';


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
        -- It stays for as long as calls may be under way that fail with the others, and somebody may hold a row. What
        -- nobody asks for any more is forgotten.
        DELETE FROM pricing.outages o
        WHERE o.outage_id = one.outage_id
          AND (o.answered_at < now_ - interval '15 seconds' OR o.last_fault_at < now_ - interval '24 hours');
    END LOOP;
    RETURN returned;
END $$;
COMMENT ON FUNCTION pricing.tend_outages() IS
    'While viewers wait for a provider in an outage, has it asked about once a minute, ahead of the pauses of tasks and pairs; once it has answered, brings back at once all that waits for it. Returns how many pairs and tasks came back.';
