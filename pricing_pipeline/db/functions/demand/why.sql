-- Why a price is as old as it is: one answer for a pair, the most specific cause first. It only reads.

CREATE OR REPLACE FUNCTION pricing.has_answered(wanted_provider text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pricing.collector_call_log c WHERE c.provider = wanted_provider AND c.outcome = 'ok')
$$;
COMMENT ON FUNCTION pricing.has_answered(text) IS
    'Whether a provider has ever answered a call, as far as the call log goes back.';


CREATE OR REPLACE FUNCTION pricing.why_no_key(wanted_provider text, OUT state text, OUT sentence text,
                                              OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    keys record;
    refusal record;
BEGIN
    SELECT bool_or(k.is_active) AS some_active, min(k.blocked_until) FILTER (WHERE k.is_active) AS free_at,
           bool_and(coalesce(k.blocked_until > now_, false)) FILTER (WHERE k.is_active) AS all_blocked,
           (array_agg(k.blocked_reason ORDER BY k.blocked_until DESC)
                FILTER (WHERE k.is_active AND k.blocked_until > now_))[1] AS reason
    INTO keys FROM pricing.provider_keys k WHERE k.provider = wanted_provider;
    IF NOT keys.some_active THEN
        state := 'key_refused';
        sentence := pricing.why_sentence('no_key', wanted_provider);
    ELSIF keys.all_blocked THEN
        SELECT c.failure_kind, logged.http_status INTO refusal
        FROM pricing.counted_calls c JOIN pricing.collector_call_log logged USING (call_id)
        WHERE c.provider = wanted_provider AND c.counted_at > now_ - interval '2 hours'
          AND c.failure_kind IN ('key_refused', 'throttled')
        ORDER BY c.counted_at DESC LIMIT 1;
        state := 'throttled';
        IF refusal.failure_kind = 'key_refused' THEN
            state := 'key_refused';
        END IF;
        next_at := keys.free_at;
        sentence := pricing.why_sentence(state, wanted_provider, pricing.without_full_stop(keys.reason),
                                         pricing.format_time(next_at));
        -- 401 is about the key, whether or not another one was accepted before.
        IF refusal.http_status IN (403, 429) AND NOT pricing.has_answered(wanted_provider) THEN
            sentence := pricing.why_sentence(
                'refused_always', wanted_provider, pricing.without_full_stop(keys.reason),
                pricing.format_time(next_at));
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_no_key(text) IS
    'Why no key of a provider can be used now: key_refused or throttled, with a sentence and the end; NULL = one can.';


CREATE OR REPLACE FUNCTION pricing.limit_in_force(wanted_provider text, OUT sentence text, OUT next_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH used_up AS (
        SELECT k.key_name, l.window_seconds, plan.units, plan.paced,
               plan.units || CASE plan.units WHEN 1 THEN ' unit' ELSE ' units' END AS allowed, used.units AS used,
               CASE WHEN l.window_seconds IS NULL THEN pricing.paced_at(l, k.key_name, plan.units, n.at)
                    ELSE used.oldest_at + pricing.limit_window(l.window_seconds) END AS next_at
        FROM (SELECT pricing.clock() AS at OFFSET 0) n
        CROSS JOIN pricing.provider_limits l
        CROSS JOIN (SELECT 'default' AS key_name
                    WHERE NOT EXISTS (SELECT FROM pricing.provider_keys x WHERE x.provider = wanted_provider)
                    UNION ALL SELECT x.key_name FROM pricing.provider_keys x
                        WHERE x.provider = wanted_provider AND x.is_active) k
        CROSS JOIN LATERAL (SELECT pricing.units_in_force(l, k.key_name, n.at)::bigint AS units OFFSET 0) force
        CROSS JOIN LATERAL (SELECT force.units, pricing.paced_units(l, k.key_name, force.units, n.at) AS paced) plan
        CROSS JOIN LATERAL (SELECT coalesce(sum(c.units), 0)::bigint AS units, min(c.counted_at) AS oldest_at
                            FROM pricing.counted_calls c
                            WHERE c.provider = wanted_provider AND c.key_name = k.key_name
                              AND c.counted_at > pricing.limit_start(l, n.at)) used
        WHERE l.provider = wanted_provider AND used.units >= plan.paced),
    -- For one key, the limit that lasts longest counts; among several keys, the one that is free first.
    of_keys AS (SELECT DISTINCT ON (u.key_name) u.* FROM used_up u ORDER BY u.key_name, u.next_at DESC)
    SELECT CASE WHEN k.window_seconds IS NOT NULL THEN pricing.why_sentence(
                    'window_used', wanted_provider, k.allowed,
                    pricing.format_span(make_interval(secs => k.window_seconds)),
                    k.used::text, pricing.format_time_ahead(k.next_at))
                WHEN k.used >= k.units THEN pricing.why_sentence(
                    'day_used', wanted_provider, k.allowed, k.used::text, pricing.format_time_ahead(k.next_at))
                ELSE pricing.why_sentence(
                    'day_paced', wanted_provider, k.allowed, k.used::text, pricing.format_time_ahead(k.next_at)) END,
           k.next_at
    FROM of_keys k ORDER BY k.next_at LIMIT 1
$$;
COMMENT ON FUNCTION pricing.limit_in_force(text) IS
    'The limit that blocks a provider now, how much of it is used, and when the next unit is free; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.why_no_units(wanted_provider text, OUT sentence text, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    SELECT l.sentence, l.next_at INTO sentence, next_at FROM pricing.limit_in_force(wanted_provider) l;
    IF sentence IS NULL AND EXISTS (
        SELECT FROM pricing.provider_keys k
        WHERE k.provider = wanted_provider AND (k.foreign_until > pricing.clock() OR k.reported_left = 0)) THEN
        sentence := pricing.why_sentence('units_reported_used', wanted_provider);
    END IF;
    sentence := coalesce(sentence, pricing.why_sentence('units_used', wanted_provider));
END $$;
COMMENT ON FUNCTION pricing.why_no_units(text) IS
    'Why a provider has no unit left now: which limit is used up, or that others use the key, and when the next unit '
    'is free, if known.';


CREATE OR REPLACE FUNCTION pricing.correction_of(wanted pricing.provider_limits, key text, shown integer) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    is_one_of_several boolean := (SELECT count(*) > 1 FROM pricing.provider_keys k
                                  WHERE k.provider = wanted.provider AND k.is_active)
        OR EXISTS (SELECT FROM pricing.provider_key_limits o
                   WHERE (o.provider, o.name, o.key_name) = (wanted.provider, wanted.name, key));
    command text;
BEGIN
    -- With the other limit, which the plan may leave to people.
    SELECT pg_catalog.format('pricing-pipeline provider use %s --plan %s --symbols %s', p.provider, p.plan, p.symbols)
           || string_agg(pg_catalog.format(' --%s %s', l.name, pricing.units_in_force(l, key, pricing.clock())), ''
                         ORDER BY l.name DESC)
    INTO command FROM pricing.provider_plans p JOIN pricing.provider_limits l USING (provider)
    WHERE p.provider = wanted.provider AND NOT is_one_of_several
      AND ((l.name = 'minute' AND l.window_seconds = 60) OR (l.name = 'day' AND l.day_timezone = 'UTC'))
    GROUP BY p.provider, p.plan, p.symbols HAVING bool_or(l.name = wanted.name);
    RETURN coalesce(command,
                    pg_catalog.format('pricing-pipeline limit set %s %s %s', wanted.provider, wanted.name, shown)
                             || CASE WHEN is_one_of_several THEN ' --key ' || key ELSE '' END);
END $$;
COMMENT ON FUNCTION pricing.correction_of(pricing.provider_limits, text, integer) IS
    'The command that writes down a limit that the provider has shown: `provider use` if a plan is in use, otherwise '
    '`limit set`.';


CREATE OR REPLACE FUNCTION pricing.limits_shown(only_provider text DEFAULT NULL)
RETURNS TABLE (provider text, key_name text, name text, units integer, shown_units integer, shown_at timestamptz,
               sentence text, correction text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT s.provider, s.key_name, s.name, w.units, s.shown_units, s.shown_at,
           pricing.why_sentence('limit_shown', s.provider,
                                s.shown_units || CASE s.shown_units WHEN 1 THEN ' unit' ELSE ' units' END,
                                CASE WHEN l.window_seconds IS NULL THEN 'a day'
                                     ELSE pricing.format_span(make_interval(secs => l.window_seconds)) END, s.key_name,
                                pricing.format_time(s.shown_at), s.name, w.units::text, w.correction),
           w.correction
    FROM pricing.shown_limits s JOIN pricing.provider_limits l USING (provider, name)
    CROSS JOIN LATERAL (SELECT pricing.units_written(l, s.key_name) AS units,
                        pricing.correction_of(l, s.key_name, s.shown_units) AS correction) w
    WHERE (only_provider IS NULL OR s.provider = only_provider)
      AND pricing.shown_units(l, s.key_name, pricing.clock()) < w.units
    ORDER BY 1, 2, 3
$$;
COMMENT ON FUNCTION pricing.limits_shown(text) IS
    'The limits that providers, or one, have shown to be lower than written: a sentence about each, and the command '
    'that corrects it.';


CREATE OR REPLACE FUNCTION pricing.why_no_client(wanted_provider text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- A drain without a list may ask all providers.
    IF NOT EXISTS (SELECT FROM pricing.drains d WHERE d.finished_at IS NULL AND d.lease_until > now_)
       OR EXISTS (SELECT FROM pricing.drains d
                  WHERE d.finished_at IS NULL AND d.lease_until > now_
                    AND (d.providers IS NULL OR wanted_provider = ANY (d.providers))) THEN
        RETURN NULL;
    ELSIF (SELECT s.prices_from = 'sandbox' FROM pricing.registry_state s) THEN
        RETURN pricing.why_sentence('no_client_in_sandbox', wanted_provider);
    END IF;
    RETURN pricing.why_sentence('no_client', wanted_provider);
END $$;
COMMENT ON FUNCTION pricing.why_no_client(text) IS
    'Why no worker can ask a provider: the sandbox does not imitate it, or its client cannot be made; NULL = some '
    'worker can, or none is at work.';


CREATE OR REPLACE FUNCTION pricing.stop_of(wanted_provider text) RETURNS pricing.provider_stop
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    collector pricing.data_collectors;
    provider_ pricing.provider_state;
    stop pricing.provider_stop;
    shown text := (SELECT coalesce(string_agg('. ' || l.sentence, ''), '')
                   FROM pricing.limits_shown(wanted_provider) l);
BEGIN
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = wanted_provider;
    SELECT * INTO provider_ FROM pricing.provider_state s WHERE s.provider = wanted_provider;
    stop.provider := wanted_provider;
    IF NOT coalesce(collector.is_active, false) THEN
        stop.state := 'provider_off';
        stop.sentence := pricing.why_sentence('provider_off', wanted_provider);
        RETURN stop;
    END IF;
    stop.sentence := pricing.why_no_client(wanted_provider);
    IF stop.sentence IS NOT NULL THEN
        stop.state := 'no_client';
        RETURN stop;
    ELSIF provider_.breaker <> 'closed' THEN
        stop.state := 'breaker_open';
        stop.next_at := greatest(pricing.next_probe_at(provider_), now_);
        stop.sentence := pricing.why_sentence(
            'breaker_open', wanted_provider, CASE provider_.breaker WHEN 'open' THEN 'open' ELSE 'half open' END,
            pricing.format_time(provider_.breaker_since), pricing.without_full_stop(provider_.breaker_reason),
            CASE WHEN provider_.breaker = 'half_open' THEN 'a probe is under way'
                 WHEN stop.next_at > now_
                     THEN 'the next probe is made at ' || pricing.format_time(stop.next_at) || ' at the latest'
                 ELSE 'the next task is the probe' END);
        RETURN stop;
    END IF;
    SELECT w.state, w.sentence, w.next_at INTO stop.state, stop.sentence, stop.next_at
    FROM pricing.why_no_key(wanted_provider) w;
    IF stop.state IS NOT NULL THEN
        stop.sentence := stop.sentence || CASE stop.state WHEN 'throttled' THEN shown ELSE '' END;
        RETURN stop;
    END IF;
    stop.quota_bytes := collector.quota_bytes;
    stop.used_bytes := pricing.bytes_used(wanted_provider, now_);
    IF pricing.units_available(wanted_provider, now_) <= 0 THEN
        stop.state := 'rate_limited';
        SELECT w.sentence || shown, w.next_at INTO stop.sentence, stop.next_at
        FROM pricing.why_no_units(wanted_provider) w;
    END IF;
    RETURN stop;
END $$;
COMMENT ON FUNCTION pricing.stop_of(text) IS
    'Why a provider may not be asked for anything now: provider_off, no_client, breaker_open, key_refused, throttled '
    'or rate_limited, with a sentence, the end, and the used share of its quota.';


CREATE OR REPLACE FUNCTION pricing.why_stopped(
    stop pricing.provider_stop, priority integer, needed bigint, OUT state text, OUT sentence text,
    OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    allowed bigint := pricing.quota_for(stop.quota_bytes, priority);
BEGIN
    IF stop.used_bytes + needed > allowed THEN
        state := 'quota_spent';
        sentence := pricing.why_sentence('no_quota', stop.provider, stop.used_bytes::text, allowed::text, needed::text);
    ELSE
        state := stop.state;
        sentence := stop.sentence;
        next_at := stop.next_at;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_stopped(pricing.provider_stop, integer, bigint) IS
    'What keeps work of this priority and size from a provider, given its stop: quota_spent if the quota has no room, '
    'otherwise the stop; NULL = nothing.';


CREATE OR REPLACE FUNCTION pricing.why_not_called(
    wanted_provider text, priority integer, needed bigint, OUT state text, OUT sentence text, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    SELECT w.* INTO state, sentence, next_at
    FROM pricing.why_stopped(pricing.stop_of(wanted_provider), priority, needed) w;
END $$;
COMMENT ON FUNCTION pricing.why_not_called(text, integer, bigint) IS
    'Why a provider may not be asked now for work of this priority and size: a state, a sentence and the end; NULL = '
    'it may.';


CREATE OR REPLACE FUNCTION pricing.known_stop(wanted_provider text, stops pricing.provider_stop[])
RETURNS pricing.provider_stop
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    stop pricing.provider_stop;
BEGIN
    FOREACH stop IN ARRAY coalesce(stops, '{}') LOOP
        IF stop.provider = wanted_provider THEN
            RETURN stop;
        END IF;
    END LOOP;
    RETURN pricing.stop_of(wanted_provider);
END $$;
COMMENT ON FUNCTION pricing.known_stop(text, pricing.provider_stop[]) IS
    'What stops a provider, taken from the given stops if it is there, so that explaining many pairs checks each '
    'provider once.';


CREATE OR REPLACE FUNCTION pricing.why_backing_off(
    pair pricing.demand, dead pricing.api_call_queue_dead, stops pricing.provider_stop[], OUT state text,
    OUT sentence text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    stop record;
    failed text := pg_catalog.format('its task failed at %s as %s (%s)',
                                     coalesce(pricing.format_time(dead.finished_at), 'some time'),
                                     coalesce(dead.failure_kind, 'unknown'),
                                     coalesce(pricing.without_full_stop(pair.last_failure), 'no reason was recorded'));
    at_once text := coalesce(pg_catalog.format('To try at once: pricing-pipeline task retry %s', dead.id),
                             'It is tried again then');
BEGIN
    IF pair.owed_since IS NULL THEN
        state := CASE WHEN dead.failure_kind IN ('unknown_symbol', 'plan_restricted', 'cancelled')
            THEN dead.failure_kind ELSE 'failed' END;
        sentence := pricing.why_sentence(
            'left_alone',
            CASE state WHEN 'cancelled'
                THEN 'its task was cancelled by hand at ' || pricing.format_time(dead.finished_at) ELSE failed END,
            pricing.format_time(pair.backoff_until),
            CASE WHEN state IN ('unknown_symbol', 'plan_restricted')
                 THEN pg_catalog.format(
                          'Another provider is asked after: pricing-pipeline route add PROVIDER %s --type %s',
                          pair.symbol, pair.data_type)
                 ELSE at_once END);
        RETURN;
    END IF;
    -- Trouble: its viewers stay owed a price.
    state := CASE WHEN dead.failure_kind IN ('endpoint_restricted', 'misconfigured') THEN dead.failure_kind
        ELSE 'backing_off' END;
    SELECT w.* INTO stop
    FROM pricing.why_stopped(pricing.known_stop(dead.provider, stops), 1, coalesce(dead.est_bytes, 0)) w
    WHERE dead.provider IS NOT NULL;
    IF state = 'backing_off' AND stop.state <> 'rate_limited' THEN
        state := stop.state;
        sentence := pricing.why_sentence('owed_and_stopped', pricing.format_time(pair.owed_since),
                                         pricing.format_time(pair.backoff_until), failed, stop.sentence);
        RETURN;
    END IF;
    sentence := pricing.why_sentence(
        'owed', pricing.format_time(pair.owed_since), pricing.format_time(pair.backoff_until),
        CASE WHEN pricing.is_outage(dead.failure_kind) AND dead.provider IS NOT NULL
             THEN pg_catalog.format(', or at once when %s answers', dead.provider) ELSE '' END, failed,
        coalesce('; ' || dead.provider || ': ' || pricing.describe_outages(dead.provider, pair.data_type), ''),
        CASE state WHEN 'endpoint_restricted' THEN 'Change the plan or the key, or route the data type elsewhere'
                   WHEN 'misconfigured' THEN CASE WHEN pricing.describe_no_provider() IS NOT NULL THEN at_once
                       ELSE 'Add a route with `pricing-pipeline route add`, or correct what the message names' END
                   ELSE at_once END);
END $$;
COMMENT ON FUNCTION pricing.why_backing_off(pricing.demand, pricing.api_call_queue_dead, pricing.provider_stop[]) IS
    'Why a pair backs off, by its last dead task: a fault of its symbol, or trouble, which makes it late; a state and '
    'a sentence.';


CREATE OR REPLACE FUNCTION pricing.market_at(wanted_calendar text, at timestamptz, OUT closed_at timestamptz,
                                             OUT opens_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (SELECT s.closes_at FROM pricing.calendar_sessions s
            WHERE s.calendar = wanted_calendar AND s.closes_at <= at ORDER BY s.closes_at DESC LIMIT 1),
           (SELECT s.opens_at FROM pricing.calendar_sessions s
            WHERE s.calendar = wanted_calendar AND s.closes_at > at ORDER BY s.closes_at LIMIT 1)
$$;
COMMENT ON FUNCTION pricing.market_at(text, timestamptz) IS
    'When a calendar''s last session ended, and when the next begins or the current one began; NULL = sessions are '
    'not known.';


CREATE OR REPLACE FUNCTION pricing.why_judged_fresh(
    kind pricing.data_type_registry, thing pricing.instruments, price pricing.latest_prices, pair pricing.demand,
    fetched_at timestamptz, ttl interval, verdict text, OUT state text, OUT sentence text, OUT since timestamptz,
    OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    market record;
BEGIN
    SELECT * INTO market FROM pricing.market_at(thing.calendar, now_);
    since := fetched_at;
    next_at := (SELECT due.at FROM pricing.stale_at(kind, thing.symbol, fetched_at,
                                                    (extract(epoch FROM ttl) / 60)::integer) due);
    IF verdict = 'unjudged' THEN
        state := 'unjudged';
        sentence := pricing.why_sentence('unjudged', kind.staleness_function, pricing.format_time(next_at));
    ELSIF price IS NULL AND kind.contents = 'prices' THEN
        state := 'provider_has_none';
        sentence := pricing.why_sentence('provider_has_none', thing.symbol, pricing.format_time(next_at));
    ELSIF verdict = 'source_old' THEN
        state := 'source_old';
        since := price.observed_at;
        sentence := pricing.why_sentence('source_old', price.provider, pricing.format_time(since),
                                         pricing.format_time(next_at), thing.symbol);
    ELSIF price.observed_at - price.changed_at > pricing.frozen_after(kind.fetcher) THEN
        state := 'source_frozen';
        since := price.changed_at;
        sentence := pricing.why_sentence('source_frozen', price.provider, pricing.format_time(since), thing.symbol);
    ELSIF market.opens_at > now_ AND kind.fetcher = 'quote'
          AND (fetched_at + ttl <= now_ OR price.observed_at <= market.closed_at + interval '20 minutes') THEN
        state := 'market_closed';
        since := market.closed_at;
        next_at := market.opens_at;
        sentence := pricing.why_sentence('market_closed', thing.calendar, pricing.format_time(since),
                                         pricing.format_time(next_at));
    ELSIF fetched_at + ttl <= now_ AND next_at > now_ THEN
        state := 'market_closed';
        since := market.closed_at;
        sentence := pricing.why_sentence('no_trading_day', pricing.format_time(next_at), thing.calendar);
    ELSIF next_at <= now_ THEN
        state := 'not_due';
        next_at := CASE WHEN pair.became_due_at IS NULL THEN pair.due_at END;
        sentence := pricing.why_sentence('not_due', kind.staleness_function,
                                         coalesce(pricing.format_time(next_at), 'the next look'));
    ELSE
        state := 'fresh';
        sentence := pricing.why_sentence('fresh', pricing.format_span(next_at - fetched_at),
                                         pricing.format_time(next_at));
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_judged_fresh(pricing.data_type_registry, pricing.instruments, pricing.latest_prices,
                                             pricing.demand, timestamptz, interval, text) IS
    'Why a fresh pair is as old as it is: its TTL, market, source or staleness function.';


CREATE OR REPLACE FUNCTION pricing.why_not_believed(
    wanted_type text, wanted_symbol text, failure text, fetched_at timestamptz, OUT sentence text,
    OUT since timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    doubt pricing.quarantined_values;
BEGIN
    -- Values sent since the last good answer.
    SELECT * INTO doubt FROM pricing.quarantined_values q
    WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol AND q.status <> 'released'
      AND q.last_seen_at > coalesce(fetched_at, '-infinity') AND (failure = 'implausible' OR q.status = 'quarantined')
    ORDER BY q.status = 'quarantined' DESC, q.last_seen_at DESC, q.value_id DESC LIMIT 1;
    IF doubt.value_id IS NOT NULL THEN
        since := doubt.last_seen_at;
        sentence := pricing.why_sentence(
            'quarantined', doubt.provider, pricing.format_time(since),
            coalesce(nullif(doubt.value, ''), 'no value'), pricing.without_full_stop(doubt.reason),
            CASE doubt.status
                WHEN 'quarantined'
                    THEN pg_catalog.format('Decide on it: pricing-pipeline quarantine show %s', doubt.value_id)
                ELSE pg_catalog.format('%s has rejected it; route %s elsewhere if that goes on', doubt.resolved_by,
                                       wanted_symbol) END);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_believed(text, text, text, timestamptz) IS
    'A sentence about the quarantined value that came since the pair''s last good answer; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.why_queued(
    task pricing.api_call_queue_live, stops pricing.provider_stop[], OUT state text, OUT sentence text,
    OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    stop record;
BEGIN
    since := task.enqueued_at;
    IF task.status = 'processing' THEN
        state := 'asking';
        sentence := pricing.why_sentence('asking', task.provider, pricing.format_time(task.claimed_at));
        RETURN;
    END IF;
    SELECT w.* INTO stop
    FROM pricing.why_stopped(pricing.known_stop(task.provider, stops), task.priority, task.est_bytes) w;
    IF stop.state IS NOT NULL AND NOT (stop.state = 'rate_limited' AND task.status = 'scheduled') THEN
        state := stop.state;
        next_at := stop.next_at;
        sentence := pricing.why_sentence('stopped', pricing.format_time(since), stop.sentence);
    ELSIF (task.run_after > now_ IS NOT TRUE)
          AND NOT EXISTS (SELECT FROM pricing.drains d WHERE d.finished_at IS NULL AND d.lease_until > now_) THEN
        state := 'no_worker';
        sentence := pricing.why_sentence('no_worker', pricing.format_time(since));
    ELSIF task.status = 'scheduled' THEN
        state := 'retrying';
        next_at := task.run_after;
        sentence := pricing.why_sentence(
            'retrying', task.errors -> -1 ->> 'kind', pricing.without_full_stop(task.errors -> -1 ->> 'message'),
            coalesce('; ' || task.provider || ': ' || pricing.describe_outages(task.provider, task.data_type), ''),
            pricing.format_time(next_at), pricing.format_ordinal(task.attempt + 1), task.max_attempts::text,
            task.id::text);
    ELSE
        state := 'queued';
        sentence := pricing.why_sentence(
            'queued', pricing.format_time(since),
            (SELECT (count(*) + 1)::text FROM (SELECT FROM pricing.api_call_queue_live q
                                   WHERE q.provider = task.provider AND q.status = 'pending'
                                     AND (-q.priority, q.cadence_minutes, q.id)
                                         < (-task.priority, task.cadence_minutes, task.id)
                                   LIMIT 100000) ahead), task.provider);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_queued(pricing.api_call_queue_live, pricing.provider_stop[]) IS
    'Why a live task has brought no price yet; queued only if a worker will take it in turn.';


CREATE OR REPLACE FUNCTION pricing.describe_quota_end(wanted_provider text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT coalesce((SELECT CASE WHEN s.ends_at > pricing.clock()
                     THEN 'would end at ' || pricing.format_time(s.ends_at) END
                     FROM pricing.ttl_stretches s WHERE s.provider = wanted_provider), 'is nearly used')
$$;
COMMENT ON FUNCTION pricing.describe_quota_end(text) IS
    'When a provider''s quota would end without stretching, as the end of a sentence.';


CREATE OR REPLACE FUNCTION pricing.why_not_scheduled(
    kind pricing.data_type_registry, wanted_symbol text, wanted_provider text, needed bigint, fetched_at timestamptz,
    OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    is_forgotten boolean := pricing.is_forgotten(kind.data_type, wanted_symbol);
    served_at timestamptz := (SELECT w.served_slot FROM pricing.schedule_walks w WHERE w.data_type = kind.data_type);
    slot text;
    stop record;
BEGIN
    since := fetched_at;
    IF is_forgotten
       OR 'unknown_symbol' = (SELECT u.left_out FROM pricing.universe u
                              WHERE (u.data_type, u.symbol) = (kind.data_type, wanted_symbol)) THEN
        state := 'unknown_symbol';
        sentence := pricing.why_sentence(
            'forgotten', wanted_provider,
            CASE WHEN is_forgotten THEN 'asks for it once a week' ELSE 'leaves it out' END);
    ELSIF pricing.walk_waits(kind.data_type, wanted_symbol) THEN
        SELECT w.* INTO stop FROM pricing.why_not_called(wanted_provider, -1, needed) w;
        state := CASE WHEN stop.state <> 'rate_limited' THEN stop.state ELSE 'scheduled' END;
        since := served_at;
        next_at := stop.next_at;
        sentence := pricing.why_sentence(
            'walk_waits', pricing.format_time(since),
            coalesce(CASE WHEN state <> 'scheduled' THEN stop.sentence END,
                     (SELECT r.reason FROM pricing.schedule_rooms(kind.data_type) r WHERE r.provider = wanted_provider),
                     'it goes over the instruments bit by bit'));
    ELSE
        state := 'scheduled';
        next_at := (SELECT w.next_slot FROM pricing.schedule_walks w
                    WHERE w.data_type = kind.data_type AND w.next_slot > w.served_slot);
        -- The time of the last served slot shows nothing: a new type begins as if one were served, and instruments may
        -- be added after a slot.
        slot := coalesce(CASE WHEN next_at > pricing.clock() THEN ', next at ' ELSE ', due since ' END
                         || pricing.format_time(next_at), '');
        sentence := pricing.why_sentence('scheduled', kind.refresh_schedule, kind.schedule_timezone, slot,
                                         kind.data_type);
        IF (pricing.stretch_of(kind.data_type, wanted_symbol, pricing.clock()))[2] > 1 THEN
            sentence := pricing.why_sentence('scheduled_less', kind.refresh_schedule, kind.schedule_timezone, slot,
                                             wanted_provider, pricing.describe_quota_end(wanted_provider));
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_scheduled(pricing.data_type_registry, text, text, bigint, timestamptz) IS
    'Why a stale pair that only a schedule refreshes has no task: it is left out, not reached yet, or waits for the '
    'next slot.';


CREATE OR REPLACE FUNCTION pricing.describe_no_provider() RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pricing.why_sentence('no_provider')
    WHERE NOT EXISTS (SELECT FROM pricing.data_collectors p WHERE p.is_active)
$$;
COMMENT ON FUNCTION pricing.describe_no_provider() IS
    'Says that no provider is in use, and how to choose one; NULL = one is.';


CREATE OR REPLACE FUNCTION pricing.describe_no_route(data_type text, symbol text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pricing.why_sentence('no_route', data_type, symbol,
                                coalesce(pricing.describe_no_provider(),
                                         'add a route with `pricing-pipeline route add`'))
$$;
COMMENT ON FUNCTION pricing.describe_no_route(text, text) IS
    'Says that no active provider serves a pair, and what to do.';


CREATE OR REPLACE FUNCTION pricing.why_not_queued(
    kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand, fetched_at timestamptz,
    OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    provider_ text := (SELECT r.provider FROM pricing.route(kind.data_type, thing.symbol) r);
    background interval := make_interval(mins => kind.background_ttl_minutes);
    is_watched boolean := pair.read_at IS NOT NULL OR EXISTS (
        SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (kind.data_type, thing.symbol))
        -- Somebody has asked for it, and no worker has taken that up yet.
        OR EXISTS (SELECT FROM pricing.pair_requests x
                   WHERE (x.data_type, x.symbol) = (kind.data_type, thing.symbol) AND x.kind IN ('read', 'watched'));
    is_held boolean := EXISTS (SELECT FROM pricing.holdings h
                               WHERE (h.data_type, h.active_symbol) = (kind.data_type, thing.symbol));
    ttl interval := make_interval(mins => pricing.pair_ttl(kind.data_type, thing.symbol, is_watched));
BEGIN
    since := fetched_at;
    next_at := CASE WHEN pair.became_due_at IS NULL THEN pair.due_at END;
    IF provider_ IS NULL THEN
        state := 'misconfigured';
        sentence := pricing.describe_no_route(kind.data_type, thing.symbol);
    ELSIF NOT is_watched AND NOT is_held AND kind.refresh_strategy = 'scheduled' THEN
        SELECT w.state, w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
        FROM pricing.why_not_scheduled(kind, thing.symbol, provider_, coalesce(
            (SELECT ceil(s.bytes)::bigint FROM pricing.size_estimates s
             WHERE (s.provider, s.data_type, s.per) = (provider_, kind.data_type, 'symbol')),
            kind.estimated_data_size_bytes), fetched_at) w;
    ELSIF NOT is_watched AND NOT is_held THEN
        state := 'unwatched';
        next_at := NULL;
        sentence := pricing.why_sentence('unwatched', kind.data_type, thing.symbol);
    ELSIF pair.stretched_from IS NOT NULL AND pair.became_due_at IS NULL AND pair.due_at > now_ THEN
        state := 'stretched';
        since := pair.stretched_from;
        sentence := pricing.why_sentence('stretched', pricing.format_span(ttl + (pair.due_at - pair.stretched_from)),
                                         pricing.format_span(ttl), pricing.format_time(next_at), provider_,
                                         pricing.describe_quota_end(provider_));
    ELSIF NOT is_watched AND fetched_at BETWEEN now_ - background AND now_ + interval '1 minute' THEN
        state := 'background';
        next_at := fetched_at + background;
        sentence := pricing.why_sentence('background', pricing.format_span(background), pricing.format_time(next_at),
                                         kind.data_type, thing.symbol);
    ELSIF NOT is_watched AND fetched_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM pricing.pair_views v
            WHERE (v.data_type, v.symbol) = (kind.data_type, thing.symbol)
              AND v.viewed_at > now_ - interval '48 hours') THEN
        state := 'unseen';
        sentence := pricing.why_sentence('unseen', thing.symbol);
    ELSIF pair.became_due_at IS NULL AND (pair.due_at <= now_ OR pair.owed_since <= now_)
          AND EXISTS (SELECT FROM pricing.unqueued_pairs() u
                      WHERE (u.provider, u.data_type) = (provider_, kind.data_type)) THEN
        state := 'quota_spent';
        since := least(pair.owed_since, pair.due_at);
        sentence := pricing.why_sentence('no_room', pricing.format_time(since), provider_);
    ELSIF pair.due_at > now_ AND NOT (pair.is_background AND is_watched) THEN
        state := 'not_due';
        sentence := pricing.why_sentence('not_due', kind.staleness_function, pricing.format_time(next_at));
    ELSE
        state := 'due';
        since := CASE WHEN pair.due_at <= now_ THEN pair.due_at END;
        next_at := NULL;
        sentence := pricing.why_sentence('due', coalesce('since ' || pricing.format_time(since), 'now'));
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_queued(
    pricing.data_type_registry, pricing.instruments, pricing.demand, timestamptz) IS
    'Why a stale pair has no task: unwanted, stretched, not reached by its schedule, without room, or left to the '
    'next check.';


CREATE OR REPLACE FUNCTION pricing.why_stale(
    kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand, fetched_at timestamptz,
    ttl interval, stops pricing.provider_stop[],
    OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    task pricing.api_call_queue_live;
    dead pricing.api_call_queue_dead;
    failure text;
    market record;
BEGIN
    SELECT * INTO task FROM pricing.api_call_queue_live q
    WHERE (q.data_type, q.symbol) = (kind.data_type, thing.symbol)
      AND (q.window_start, q.window_end) = ('-infinity', 'infinity');
    IF pair.backoff_until > now_ THEN
        SELECT * INTO dead FROM pricing.api_call_queue_dead q
        WHERE q.data_type = kind.data_type AND q.symbol = thing.symbol AND q.window_end = 'infinity'
        ORDER BY q.finished_at DESC LIMIT 1;
    END IF;
    failure := coalesce(task.errors -> -1 ->> 'kind', dead.failure_kind);
    IF failure = 'implausible' OR (failure IS NULL AND task.id IS NULL) THEN
        SELECT w.sentence, w.since INTO sentence, since
        FROM pricing.why_not_believed(kind.data_type, thing.symbol, failure, fetched_at) w;
        IF sentence IS NOT NULL THEN
            state := 'quarantined';
            next_at := coalesce(task.run_after, pair.backoff_until);
            RETURN;
        END IF;
    END IF;
    IF task.id IS NOT NULL THEN
        SELECT w.state, w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
        FROM pricing.why_queued(task, stops) w;
        RETURN;
    ELSIF pair.backoff_until > now_ THEN
        SELECT w.state, w.sentence, dead.finished_at, pair.backoff_until INTO state, sentence, since, next_at
        FROM pricing.why_backing_off(pair, dead, stops) w;
        RETURN;
    END IF;
    SELECT * INTO market FROM pricing.market_at(thing.calendar, now_);
    -- Where the TTL alone decides, the pair is requested even while its market is closed.
    IF kind.staleness_function = 'is_market_stale' AND market.opens_at IS NOT NULL AND fetched_at IS NOT NULL THEN
        next_at := (SELECT v.at FROM pricing.next_value_at(kind, thing.symbol, fetched_at, ttl) v);
        IF next_at > now_ THEN
            state := 'market_closed';
            since := market.closed_at;
            sentence := pricing.why_sentence(
                'no_newer_value', thing.calendar,
                CASE WHEN market.opens_at > now_ THEN 'is closed since ' || pricing.format_time(market.closed_at)
                    ELSE 'has not closed yet' END,
                pricing.format_time(next_at));
            RETURN;
        END IF;
    END IF;
    SELECT w.state, w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
    FROM pricing.why_not_queued(kind, thing, pair, fetched_at) w;
END $$;
COMMENT ON FUNCTION pricing.why_stale(
    pricing.data_type_registry, pricing.instruments, pricing.demand, timestamptz, interval,
    pricing.provider_stop[]) IS
    'Why a stale pair has no newer value: its answer is not believed, its task is unfinished, it backs off, its '
    'market is closed, or it has no task.';


CREATE OR REPLACE FUNCTION pricing.describe_confirmation(wanted_type text, wanted_symbol text, fetched_at timestamptz,
                                                         quality text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF fetched_at > now_ + interval '1 minute' THEN
        RETURN pg_catalog.format('last confirmed at %s, by a clock that was set back since: ',
                                 pricing.format_time(fetched_at));
    ELSIF fetched_at IS NOT NULL THEN
        RETURN pg_catalog.format('last confirmed %s ago%s: ', pricing.format_span(now_ - fetched_at),
                                 coalesce(' without parts of its bar (' || quality || ')', ''));
    ELSIF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol) THEN
        RETURN 'its history is stored, but no latest price: ';
    END IF;
    RETURN 'nothing was ever fetched: ';
END $$;
COMMENT ON FUNCTION pricing.describe_confirmation(text, text, timestamptz, text) IS
    'The beginning of a sentence about a pair: when it was last confirmed, or that it never was.';


CREATE OR REPLACE FUNCTION pricing.why_old(
    wanted_type text, wanted_symbol text, stops pricing.provider_stop[] DEFAULT '{}',
    OUT state text, OUT sentence text, OUT observed_at timestamptz, OUT fetched_at timestamptz, OUT since timestamptz,
    OUT next_at timestamptz)
-- With the owner's rights: a reader does not see who watches, and is to be told that somebody does.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    kind pricing.data_type_registry;
    thing pricing.instruments;
    price pricing.latest_prices;
    pair pricing.demand;
    ttl interval;
    verdict text;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind IS NULL THEN
        state := 'unknown_type';
        sentence := pricing.why_sentence('unknown_type', left(wanted_type, 60));
        RETURN;
    END IF;
    SELECT * INTO thing FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (kind.asset_class, wanted_symbol);
    IF thing IS NULL THEN
        state := 'unknown_symbol';
        sentence := pricing.why_sentence('unknown_symbol', kind.asset_class, left(wanted_symbol, 60), coalesce(
            pricing.describe_misfit(wanted_symbol, wanted_type),
            pg_catalog.format('watching it adds it: pricing-pipeline subscription watch %s --type %s',
                              wanted_symbol, wanted_type)));
        RETURN;
    END IF;
    SELECT * INTO price FROM pricing.latest_prices l WHERE (l.data_type, l.symbol) = (wanted_type, wanted_symbol);
    ttl := make_interval(mins => pricing.pair_ttl(wanted_type, wanted_symbol));
    verdict := pricing.verdict_on(wanted_type, wanted_symbol);
    SELECT a.fetched_at INTO fetched_at
    FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    observed_at := price.observed_at;
    SELECT * INTO pair FROM pricing.demand d WHERE (d.data_type, d.symbol) = (wanted_type, wanted_symbol);
    IF NOT kind.is_active THEN
        state := 'retired';
        sentence := pricing.why_sentence('retired', wanted_type);
    ELSIF thing.update_mode <> 'api' OR NOT thing.is_active THEN
        state := 'paused';
        sentence := pricing.why_sentence('paused', wanted_symbol,
                                         CASE WHEN thing.is_active THEN 'is paused'
                                             ELSE 'is retired: it was removed, and its history stays' END);
    ELSIF fetched_at IS NOT NULL AND verdict <> 'stale' THEN
        SELECT w.state, w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
        FROM pricing.why_judged_fresh(kind, thing, price, pair, fetched_at, ttl, verdict) w;
    ELSE
        SELECT w.state, w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
        FROM pricing.why_stale(kind, thing, pair, fetched_at, ttl, stops) w;
    END IF;
    sentence := pricing.describe_confirmation(wanted_type, wanted_symbol, fetched_at, price.quality) || sentence;
END $$;
COMMENT ON FUNCTION pricing.why_old(text, text, pricing.provider_stop[]) IS
    'Why a pair''s price is as old as it is: a state of docs/operations.md, a sentence with what to do, since when, '
    'and when that may change.';
