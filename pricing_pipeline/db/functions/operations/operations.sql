-- The life of a side effect: enqueue, claim, complete, fail, return, recover; by hand: cancel, retry.
-- Lock order: live operations in the order of their ids. A fence waits a second at most.

CREATE OR REPLACE FUNCTION pricing.payload_fault(fields jsonb, payload jsonb) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE
        WHEN coalesce(jsonb_typeof(payload), 'null') <> 'object' THEN 'a payload is a JSON object'
        ELSE (
            SELECT min(fault.words) FROM (
                SELECT pg_catalog.format('%s is missing', f.key) AS words FROM jsonb_each_text(fields) f
                WHERE right(f.value, 1) <> '?' AND coalesce(jsonb_typeof(payload -> f.key), 'null') = 'null'
                UNION ALL
                SELECT pg_catalog.format('%s is not a %s', p.key, rtrim(f.value, '?'))
                FROM jsonb_each(payload) p JOIN jsonb_each_text(fields) f USING (key)
                WHERE jsonb_typeof(p.value) NOT IN (
                          'null', CASE rtrim(f.value, '?') WHEN 'url' THEN 'string' ELSE rtrim(f.value, '?') END)
                   OR (rtrim(f.value, '?') = 'url' AND (p.value #>> '{}') !~ '^https?://[^\s/?#@]+([/?#][^\s]*)?$')
                UNION ALL
                SELECT pg_catalog.format('%s is not known; it has %s', p.key,
                                         coalesce(string_agg(f.key, ', ' ORDER BY f.key), 'no fields'))
                FROM jsonb_each(payload) p LEFT JOIN jsonb_each_text(fields) f ON true
                WHERE fields -> p.key IS NULL
                GROUP BY p.key) fault) END
$$;
COMMENT ON FUNCTION pricing.payload_fault(jsonb, jsonb) IS
    'What is wrong with a payload by its type''s fields; NULL = nothing.';


CREATE OR REPLACE FUNCTION pricing.queue_operation(
    kind pricing.operation_types, payload jsonb, due_at timestamptz, priority integer) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    fault text := pricing.payload_fault(kind.payload_fields, payload);
    new_id bigint;
BEGIN
    IF fault IS NULL AND octet_length(payload::text) > 65536 THEN
        fault := 'it is longer than 64 kB';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'the payload of a % cannot be used: %', kind.operation_type, left(fault, 300)
            USING ERRCODE = 'check_violation';
    END IF;
    IF queue_operation.due_at > now_ + interval '1 year' THEN
        RAISE EXCEPTION 'an operation is due within a year, not at %', queue_operation.due_at
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO pricing.async_operations_live
        (operation_type, payload, status, due_at, priority, max_attempts, enqueued_at)
    VALUES (kind.operation_type, payload, 'pending', greatest(queue_operation.due_at, now_), queue_operation.priority,
            kind.max_attempts, now_)
    RETURNING id INTO new_id;
    RETURN new_id;
END $$;
COMMENT ON FUNCTION pricing.queue_operation(pricing.operation_types, jsonb, timestamptz, integer) IS
    'Queues a side effect of an active or inactive type; refuses a payload that does not fit or exceeds 64 kB, and a '
    'time more than a year ahead.';


CREATE OR REPLACE FUNCTION pricing.enqueue_operation(
    wanted_type text, payload jsonb, due_at timestamptz DEFAULT NULL, is_urgent boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind pricing.operation_types;
BEGIN
    SELECT * INTO kind FROM pricing.operation_types t WHERE t.operation_type = wanted_type AND t.is_active;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no operation is called %', left(wanted_type, 60)
            USING HINT = 'There are: ' || coalesce((SELECT string_agg(t.operation_type, ', ' ORDER BY 1)
                                                    FROM pricing.operation_types t WHERE t.is_active), 'none yet'),
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN pricing.queue_operation(kind, payload, enqueue_operation.due_at,
                                   CASE WHEN enqueue_operation.is_urgent THEN 0 ELSE 2 END);
END $$;
COMMENT ON FUNCTION pricing.enqueue_operation(text, jsonb, timestamptz, boolean) IS
    'Queues a side effect of an active type in the caller''s transaction, and returns its id; an urgent one goes '
    'first, even in quiet hours.';


CREATE OR REPLACE FUNCTION pricing.why_waiting(
    of_type text, to_recipient text, with_priority integer, limit_seconds integer, now_ timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE
        WHEN with_priority = 0 OR to_recipient = '' THEN NULL
        WHEN EXISTS (SELECT FROM pricing.failing_recipients f
                     WHERE f.operation_type = of_type
                       AND f.recipient = to_recipient
                       AND f.breaker_until > now_) THEN 'failing'
        -- An attempt that begins just before the quiet hours would end within them, unless there is never more time.
        WHEN EXISTS (SELECT FROM pricing.recipients r
                     WHERE r.recipient = to_recipient AND r.channel = of_type
                       AND (pricing.quiet_end(r, now_) IS NOT NULL
                            OR (pricing.quiet_end(r, now_ + make_interval(secs => limit_seconds)) IS NOT NULL
                                AND mod(86400 + extract(epoch FROM r.quiet_from - r.quiet_until)::integer,
                                        86400) > 2 * limit_seconds))) THEN 'quiet' END
$$;
COMMENT ON FUNCTION pricing.why_waiting(text, text, integer, integer, timestamptz) IS
    'Why messages of a priority to a recipient wait: quiet (hours) or failing (open breaker); NULL = they may be '
    'sent.';


CREATE OR REPLACE FUNCTION pricing.describe_wait(operation pricing.async_operations) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.operation_types;
    failing pricing.failing_recipients;
    quiet_until timestamptz;
    why text;
BEGIN
    IF operation.status <> 'pending' THEN
        RETURN NULL;
    END IF;
    SELECT * INTO kind FROM pricing.operation_types t WHERE t.operation_type = operation.operation_type;
    why := pricing.why_waiting(operation.operation_type, operation.recipient, operation.priority,
                               kind.time_limit_seconds, now_);
    IF NOT kind.is_active THEN
        RETURN pg_catalog.format(
            'the operation type %1$s is switched off. '
            'This switches it on: pricing-pipeline operation-type change %1$s --active',
            kind.operation_type);
    ELSIF NOT EXISTS (SELECT FROM pricing.signs_of_life s
                      WHERE s.part = 'send_messages' AND s.ended_at > now_ - interval '2 minutes') THEN
        RETURN 'messages are not sent now. The notifier sends them while the pipeline runs; to check: '
               'pricing-pipeline status';
    ELSIF why = 'failing' THEN
        SELECT * INTO failing FROM pricing.failing_recipients f
        WHERE (f.operation_type, f.recipient) = (operation.operation_type, operation.recipient);
        RETURN pg_catalog.format(
            'the breaker of %s is open until %s, because %s attempts in a row have failed (%s)', operation.recipient,
            pricing.format_time(greatest(failing.breaker_until, operation.due_at)), failing.failures,
            pricing.without_full_stop(failing.last_error));
    ELSIF why = 'quiet' THEN
        SELECT coalesce(pricing.quiet_end(r, now_),
                        pricing.quiet_end(r, now_ + make_interval(secs => kind.time_limit_seconds))) INTO quiet_until
        FROM pricing.recipients r WHERE r.recipient = operation.recipient;
        RETURN pg_catalog.format(
            '%s has quiet hours until %s', operation.recipient,
            pricing.format_time(greatest(quiet_until, operation.due_at)));
    ELSIF operation.due_at > now_ THEN
        RETURN pg_catalog.format(
            'it is %s at %s', CASE WHEN operation.attempt > 0 THEN 'tried again' ELSE 'due' END,
            pricing.format_time(operation.due_at));
    ELSIF operation.due_at <= now_ - interval '1 minute' AND NOT kind.is_built_in THEN
        RETURN pg_catalog.format(
            'it has been due since %s, and no notifier has taken it. Does one have a handler for %s?',
            pricing.format_time(operation.due_at), kind.operation_type);
    END IF;
    RETURN pg_catalog.format(
        'it waits for its turn, as number %s in the queue',
        (SELECT count(*) + 1 FROM (SELECT FROM pricing.async_operations_live o
                               WHERE o.status = 'pending' AND o.due_at <= now_
                                 AND (o.priority, o.due_at, o.id) < (operation.priority, operation.due_at, operation.id)
                               LIMIT 100000) ahead));
END $$;
COMMENT ON FUNCTION pricing.describe_wait(pricing.async_operations) IS
    'A sentence that says why a pending operation has not been attempted; NULL = it is not pending.';


CREATE OR REPLACE FUNCTION pricing.claim_operations(types text[], most integer, by_worker text)
RETURNS TABLE (id bigint, operation_type text, payload jsonb, idempotency_key uuid, attempt smallint,
               max_attempts smallint, time_limit_seconds smallint, enqueued_at timestamptz, claim_token uuid)
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    token uuid := gen_random_uuid();
BEGIN
    PERFORM pricing.require_primary();
    RETURN QUERY
    -- One look into the index for each line, independent of the messages in it.
    WITH RECURSIVE lines AS (
        SELECT first.operation_type, first.recipient, first.priority
        FROM pricing.operation_types t CROSS JOIN LATERAL (
            SELECT o.operation_type, o.recipient, o.priority FROM pricing.async_operations_live o
            WHERE o.status = 'pending' AND o.operation_type = t.operation_type
            ORDER BY o.recipient, o.priority LIMIT 1) first
        WHERE t.operation_type = ANY (types) AND t.is_active
        UNION ALL
        SELECT next.operation_type, next.recipient, next.priority
        FROM lines l CROSS JOIN LATERAL (
            SELECT o.operation_type, o.recipient, o.priority FROM pricing.async_operations_live o
            WHERE o.status = 'pending'
              AND o.operation_type = l.operation_type
              AND (o.recipient, o.priority) > (l.recipient, l.priority)
            ORDER BY o.recipient, o.priority LIMIT 1) next),
    under_way AS MATERIALIZED (
        -- An attempt past its time limit has ended, even if nobody noted how: it takes no place.
        SELECT o.operation_type, o.recipient, o.priority
        FROM pricing.async_operations_live o JOIN pricing.operation_types t USING (operation_type)
        WHERE o.status = 'processing' AND o.claimed_at > now_ - make_interval(secs => t.time_limit_seconds + 5)),
    room AS MATERIALIZED (
        SELECT l.operation_type, l.recipient, l.priority, u.busy,
               CASE WHEN l.recipient = '' THEN most
                    -- A recipient with a recent failure gets one attempt at a time.
                    WHEN f.recipient IS NOT NULL THEN 1 - u.busy
                    -- No recipient gets more than half of the free places, so that the next one finds some.
                    ELSE greatest(least(8, most / 2), 1) - u.busy END::integer AS places
        FROM lines l JOIN pricing.operation_types t USING (operation_type)
        LEFT JOIN pricing.failing_recipients f USING (operation_type, recipient)
        CROSS JOIN LATERAL (
            -- Less urgent attempts take no places from more urgent messages.
            SELECT count(*) AS busy FROM under_way u
            WHERE (u.operation_type, u.recipient) = (l.operation_type, l.recipient) AND u.priority <= l.priority) u
        WHERE pricing.why_waiting(l.operation_type, l.recipient, l.priority, t.time_limit_seconds, now_) IS NULL),
    candidates AS (
        SELECT r.operation_type, r.recipient, r.priority, r.busy, r.places, c.id, c.due_at,
               row_number() OVER (PARTITION BY r.operation_type, r.recipient
                                  ORDER BY r.priority, c.due_at, c.id) AS place
        FROM room r CROSS JOIN LATERAL (
            SELECT o.id, o.due_at FROM pricing.async_operations_live o
            WHERE o.status = 'pending'
              AND (o.operation_type, o.recipient, o.priority) = (r.operation_type, r.recipient, r.priority)
              AND o.due_at <= now_
            ORDER BY o.due_at, o.id LIMIT greatest(r.places, 0)) c),
    shares AS MATERIALIZED (
        SELECT c.operation_type, c.recipient, c.priority, count(*) AS share
        FROM (SELECT * FROM candidates x WHERE x.place <= x.places
              ORDER BY x.priority, CASE WHEN x.recipient <> '' THEN x.busy + x.place END NULLS FIRST, x.due_at, x.id
              LIMIT most) c
        GROUP BY 1, 2, 3),
    due AS MATERIALIZED (
        SELECT d.id FROM shares s CROSS JOIN LATERAL (
            SELECT o.id FROM pricing.async_operations_live o
            WHERE o.status = 'pending'
              AND (o.operation_type, o.recipient, o.priority) = (s.operation_type, s.recipient, s.priority)
              AND o.due_at <= now_
            ORDER BY o.due_at, o.id LIMIT s.share FOR UPDATE SKIP LOCKED) d),
    claimed AS (
        UPDATE pricing.async_operations_live o
        SET status = 'processing', attempt = o.attempt + 1, claim_token = token, claimed_at = now_,
            lease_until = now_ + interval '5 minutes', worker = by_worker
        -- As an array: a join might read all waiting operations.
        WHERE o.id = ANY (ARRAY(SELECT due.id FROM due))
        RETURNING o.*)
    SELECT c.id, c.operation_type, c.payload, c.idempotency_key, c.attempt, c.max_attempts, t.time_limit_seconds,
           c.enqueued_at, token
    FROM claimed c JOIN pricing.operation_types t USING (operation_type)
    ORDER BY c.priority, c.due_at, c.id;
END $$;
COMMENT ON FUNCTION pricing.claim_operations(text[], integer, text) IS
    'Claims due operations for five minutes and counts the attempt: urgent ones first, then each recipient in turn, '
    'at most eight at once or half of what is free.';


CREATE OR REPLACE FUNCTION pricing.complete_operations(
    ids bigint[], token uuid, results jsonb, at_attempt integer DEFAULT NULL) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET lock_timeout = '1s' AS $$
DECLARE
    mine bigint[] := ARRAY(
        SELECT o.id FROM pricing.async_operations_live o
        WHERE o.id = ANY (ids)
          AND CASE WHEN at_attempt IS NULL THEN o.status = 'processing' AND o.claim_token = token
                   ELSE o.status = 'pending' AND o.attempt = at_attempt END
        ORDER BY o.id FOR UPDATE);
    finished bigint[];
BEGIN
    WITH gone AS (DELETE FROM pricing.async_operations_live o WHERE o.id = ANY (mine) RETURNING o.*),
    kept AS (
        INSERT INTO pricing.async_operations_completed
            (id, operation_type, payload, idempotency_key, status, due_at, priority, attempt, max_attempts, claimed_at,
             worker, enqueued_at, finished_at, errors, result)
        SELECT g.id, g.operation_type, g.payload, g.idempotency_key, 'completed', g.due_at, g.priority, g.attempt,
               g.max_attempts, g.claimed_at, g.worker, g.enqueued_at, pricing.clock(), g.errors,
               results -> g.id::text
        FROM gone g),
    reached AS (
        SELECT f.operation_type, f.recipient FROM pricing.failing_recipients f
        WHERE (f.operation_type, f.recipient) IN (SELECT g.operation_type, g.recipient FROM gone g)
        FOR UPDATE SKIP LOCKED),
    healed AS (
        DELETE FROM pricing.failing_recipients f USING reached r
        WHERE (f.operation_type, f.recipient) = (r.operation_type, r.recipient))
    SELECT array_agg(g.id ORDER BY g.id) INTO finished FROM gone g;
    RETURN coalesce(finished, '{}');
END $$;
COMMENT ON FUNCTION pricing.complete_operations(bigint[], uuid, jsonb, integer) IS
    'Completes operations with their results, and closes their recipients'' breakers: those that the claim still owns, '
    'or that were taken from it and wait since this attempt; returns their ids.';


CREATE OR REPLACE FUNCTION pricing.bury_operations(ids bigint[], as_status text, message text) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    buried bigint[];
BEGIN
    WITH gone AS (DELETE FROM pricing.async_operations_live o WHERE o.id = ANY (ids) RETURNING o.*),
    kept AS (
        INSERT INTO pricing.async_operations_dead
            (id, operation_type, payload, idempotency_key, status, due_at, priority, attempt, max_attempts, claimed_at,
             worker, enqueued_at, finished_at, errors)
        SELECT g.id, g.operation_type, g.payload, g.idempotency_key, as_status, g.due_at, g.priority, g.attempt,
               g.max_attempts, g.claimed_at, g.worker, g.enqueued_at, now_,
               pricing.append_errors(g.errors, jsonb_build_object(
                   'at', now_, 'attempt', g.attempt, 'message', left(message, 500)))
        FROM gone g)
    SELECT array_agg(g.id ORDER BY g.id) INTO buried FROM gone g;
    RETURN coalesce(buried, '{}');
END $$;
COMMENT ON FUNCTION pricing.bury_operations(bigint[], text, text) IS
    'Moves locked operations to the dead ones, failed or cancelled, with a last error; returns their ids.';


CREATE OR REPLACE FUNCTION pricing.note_failing(
    of_type text, to_recipient text, message text, is_given_up boolean, opens_breaker boolean,
    retry_after interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF to_recipient = '' THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM pricing.failing_recipients f
                   WHERE f.operation_type = of_type AND f.recipient = to_recipient) THEN
        INSERT INTO pricing.failing_recipients (operation_type, recipient, since, failed_at)
        VALUES (of_type, to_recipient, now_, now_)
        ON CONFLICT (operation_type, recipient) DO NOTHING;
    END IF;
    UPDATE pricing.failing_recipients f
    SET failures = f.failures + 1, failed_at = now_, last_error = left(message, 500),
        is_dead = f.is_dead OR is_given_up OR f.failures >= 2,
        breaker_openings = f.breaker_openings + b.opens::integer,
        breaker_until = CASE
            WHEN b.opens THEN now_ + greatest(interval '1 minute' * 2 ^ least(f.breaker_openings, 4), retry_after)
            ELSE f.breaker_until END
    FROM (SELECT x.operation_type, x.recipient,
                 opens_breaker AND x.failures >= 2 AND coalesce(x.breaker_until <= now_, true) AS opens
          FROM pricing.failing_recipients x
          WHERE x.operation_type = of_type AND x.recipient = to_recipient FOR UPDATE SKIP LOCKED) b
    WHERE (f.operation_type, f.recipient) = (b.operation_type, b.recipient);
END $$;
COMMENT ON FUNCTION pricing.note_failing(text, text, text, boolean, boolean, interval) IS
    'Records a failed attempt to reach a recipient: the third in a row opens its breaker for a minute, each failed '
    'probe for twice as long, up to 16 minutes.';


CREATE OR REPLACE FUNCTION pricing.fail_operation(
    failed bigint, token uuid, message text, is_permanent boolean DEFAULT false,
    retry_after interval DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    mine pricing.async_operations_live;
    pause interval;
BEGIN
    SELECT * INTO mine FROM pricing.async_operations_live o
    WHERE o.id = failed AND o.status = 'processing' AND o.claim_token = token FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM pricing.note_failing(mine.operation_type, mine.recipient, message,
                                 is_permanent OR mine.attempt >= mine.max_attempts,
                                 NOT is_permanent, retry_after);
    IF is_permanent OR mine.attempt >= mine.max_attempts THEN
        PERFORM pricing.bury_operations(ARRAY[failed], 'failed', message);
        RETURN 'failed';
    END IF;
    SELECT t.first_pause * 2 ^ (mine.attempt - 1) INTO pause FROM pricing.operation_types t
    WHERE t.operation_type = mine.operation_type;
    UPDATE pricing.async_operations_live o
    SET status = 'pending', claim_token = NULL, lease_until = NULL, due_at = now_ + greatest(pause, retry_after),
        errors = pricing.append_errors(o.errors, jsonb_build_object(
            'at', now_, 'attempt', o.attempt, 'message', left(message, 500)))
    WHERE o.id = failed;
    RETURN 'pending';
END $$;
COMMENT ON FUNCTION pricing.fail_operation(bigint, uuid, text, boolean, interval) IS
    'Records a failed attempt, to be repeated after a growing pause or dead; returns the new status, NULL if the '
    'claim was lost.';


CREATE OR REPLACE FUNCTION pricing.recover_operations(known bigint[] DEFAULT '{}') RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    lost record;
BEGIN
    SELECT array_agg(o.id) FILTER (WHERE o.attempt < o.max_attempts) AS again,
           array_agg(o.id) FILTER (WHERE o.attempt >= o.max_attempts) AS last,
           count(*)::integer AS number INTO lost
    FROM (SELECT x.id, x.attempt, x.max_attempts FROM pricing.async_operations_live x
          WHERE x.status = 'processing' AND x.lease_until <= now_ AND x.id <> ALL (known)
          ORDER BY x.id
          FOR UPDATE SKIP LOCKED) o;
    UPDATE pricing.async_operations_live o
    SET status = 'pending', claim_token = NULL, lease_until = NULL, due_at = now_,
        errors = pricing.append_errors(o.errors, jsonb_build_object(
            'at', now_, 'attempt', o.attempt,
            'message', 'its worker did not say within five minutes how it ended'))
    WHERE o.id = ANY (lost.again);
    PERFORM pricing.bury_operations(
        lost.last, 'failed', 'its worker did not say within five minutes how its last attempt ended');
    RETURN lost.number;
END $$;
COMMENT ON FUNCTION pricing.recover_operations(bigint[]) IS
    'Takes back operations whose worker has been silent for five minutes, except the caller''s own; returns how many.';


CREATE OR REPLACE FUNCTION pricing.return_operations(ids bigint[], token uuid) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    returned bigint[];
BEGIN
    WITH mine AS MATERIALIZED (
        SELECT o.id FROM pricing.async_operations_live o
        WHERE o.id = ANY (ids) AND o.status = 'processing' AND o.claim_token = token
        ORDER BY o.id FOR UPDATE SKIP LOCKED),
    freed AS (
        UPDATE pricing.async_operations_live o
        SET status = 'pending', claim_token = NULL, lease_until = NULL, due_at = now_, attempt = o.attempt - 1,
            errors = pricing.append_errors(o.errors, jsonb_build_object(
                'at', now_, 'attempt', o.attempt,
                'message', 'its worker was stopped meanwhile; it may have happened'))
        FROM mine
        WHERE o.id = mine.id
        RETURNING o.id)
    SELECT array_agg(f.id ORDER BY f.id) INTO returned FROM freed f;
    RETURN coalesce(returned, '{}');
END $$;
COMMENT ON FUNCTION pricing.return_operations(bigint[], uuid) IS
    'Returns a stopping worker''s operations, due at once and without counting the attempt; returns the ids that the '
    'claim still owned.';


CREATE OR REPLACE FUNCTION pricing.cancel_operations(ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    PERFORM FROM pricing.async_operations_live o WHERE o.id = ANY (ids) ORDER BY o.id FOR UPDATE;
    RETURN pricing.bury_operations(ids, 'cancelled', 'cancelled by hand');
END $$;
COMMENT ON FUNCTION pricing.cancel_operations(bigint[]) IS
    'Cancels waiting and running operations, though a running one may still happen; returns their ids.';


CREATE OR REPLACE FUNCTION pricing.retry_operations(ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    retried bigint[];
BEGIN
    PERFORM FROM pricing.async_operations_dead o WHERE o.id = ANY (ids) ORDER BY o.id FOR UPDATE;
    WITH gone AS (DELETE FROM pricing.async_operations_dead o WHERE o.id = ANY (ids) RETURNING o.*),
    live AS (
        INSERT INTO pricing.async_operations_live
            (id, operation_type, payload, idempotency_key, status, due_at, priority, attempt, max_attempts, enqueued_at,
             errors)
        SELECT g.id, g.operation_type, g.payload, g.idempotency_key, 'pending', now_, g.priority, 0,
               coalesce(t.max_attempts, g.max_attempts), g.enqueued_at, g.errors
        FROM gone g LEFT JOIN pricing.operation_types t USING (operation_type)),
    hopeful AS (
        SELECT f.operation_type, f.recipient FROM pricing.failing_recipients f
        WHERE (f.operation_type, f.recipient) IN (SELECT g.operation_type, g.recipient FROM gone g)
        FOR UPDATE SKIP LOCKED),
    tried_anew AS (
        UPDATE pricing.failing_recipients f SET breaker_until = NULL, breaker_openings = 0 FROM hopeful h
        WHERE (f.operation_type, f.recipient) = (h.operation_type, h.recipient))
    SELECT array_agg(g.id ORDER BY g.id) INTO retried FROM gone g;
    RETURN coalesce(retried, '{}');
END $$;
COMMENT ON FUNCTION pricing.retry_operations(bigint[]) IS
    'Queues dead operations again with all attempts and the same idempotency key, and closes their recipients'' '
    'breakers; returns their ids.';
