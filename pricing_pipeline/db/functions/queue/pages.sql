-- Pages: the requests of a call after its first. Each is a call of its own, with the symbols, window, key and units of
-- the first, so that limits, quota and metrics count it as ever. The outcome of all requests is stored with the first
-- call, whose tasks stay in work meanwhile; breakers and outages depend on it alone. Lock order: see queue.sql (the
-- call, then provider_state).
--
-- A call that has begun goes before new calls, because its units are lost if it does not end. So while a page waits, no
-- new call is made with its key, and no page of a younger call. It waits as long as its call may last; if it cannot be
-- made within that time, the call ends as unfinished. The units that such a call used are remembered: the next one for
-- its symbols makes no second request unless it can make more than that one, and some time has passed, twice as long
-- after each.

CREATE OR REPLACE FUNCTION pricing.claim_page(
    first_call bigint, ids bigint[], token uuid, first_bytes bigint, page_bytes bigint,
    most_seconds float8, most_requests integer,
    OUT call_id bigint, OUT wait_seconds float8, OUT refusal text, OUT retry_after float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '500ms' SET enable_seqscan = off
SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    call pricing.collector_call_log;
    state pricing.provider_state;
    obstacle record;
    until timestamptz;
BEGIN
    -- A session that settles the call waits for this; if it is settled already, no page is opened.
    SELECT * INTO call FROM pricing.collector_call_log c
    WHERE c.call_id = first_call AND c.finished_at IS NULL AND c.page_of IS NULL
    FOR SHARE;
    IF NOT FOUND OR NOT pricing.is_still_claimed(first_call, ids, token) THEN
        refusal := 'its tasks were given to others or taken back';
        RETURN;
    END IF;
    -- The lock makes looking at the allowance and taking from it one step, as for claims.
    SELECT * INTO state FROM pricing.provider_state s WHERE s.provider = call.provider FOR UPDATE;
    now_ := pricing.clock();
    until := greatest(coalesce(call.moved_to, call.started_at) + make_interval(secs => most_seconds), now_);
    SELECT * INTO obstacle
    FROM pricing.page_obstacle(call, state, ids, first_bytes, page_bytes, most_requests, until, now_) o;
    IF obstacle.refusal IS NULL THEN
        call_id := pricing.open_page(call, greatest(page_bytes, 1), now_);
    ELSIF obstacle.next_at < until THEN
        -- Within a second, not at exactly that time: other calls may end sooner.
        wait_seconds := least(greatest(extract(epoch FROM obstacle.next_at - now_), 0.05), 1);
        UPDATE pricing.provider_state s
        SET page_call = first_call, page_key = call.key_name, page_until = now_ + interval '5 seconds'
        WHERE s.provider = call.provider
          AND NOT (s.page_call < first_call AND pricing.is_kept_for_page(s, s.page_key, now_));
        UPDATE pricing.provider_state s SET breaker_until = greatest(s.breaker_until, now_ + interval '60 seconds')
        WHERE s.provider = call.provider AND s.probe_call = first_call;
    ELSE
        refusal := obstacle.refusal;
        retry_after := least(
            extract(epoch FROM greatest(nullif(obstacle.next_at, 'infinity'), obstacle.again_at,
                                        now_ + interval '1 minute') - now_),
            86400);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.claim_page(bigint, bigint[], uuid, bigint, bigint, float8, integer) IS
    'Opens a call''s next request (page) within its provider''s limits (commit before making it), or says when to ask '
    'again (wait_seconds), or why the call ends (refusal).';


CREATE OR REPLACE FUNCTION pricing.is_still_claimed(of_call bigint, ids bigint[], token uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN ids IS NULL OR EXISTS (
        SELECT FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (ids)
          AND q.status = 'processing'
          AND q.claim_token = token
          AND q.call_id = of_call);
END $$;
COMMENT ON FUNCTION pricing.is_still_claimed(bigint, bigint[], uuid) IS
    'Whether a claim still owns a task of a call (NULL = a call without tasks, which is its own claim); locks '
    'nothing.';


CREATE OR REPLACE FUNCTION pricing.is_kept_for_page(
    state pricing.provider_state, wanted_key text, now_ timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    -- A time further ahead dates from before the clock was set back.
    SELECT coalesce(state.page_key = wanted_key AND state.page_until > now_
                    AND state.page_until <= now_ + interval '5 seconds', false)
$$;
COMMENT ON FUNCTION pricing.is_kept_for_page(pricing.provider_state, text, timestamptz) IS
    'Whether a waiting page has the next call with a key.';


CREATE OR REPLACE FUNCTION pricing.open_page(
    call pricing.collector_call_log, bytes bigint, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    opened bigint;
BEGIN
    INSERT INTO pricing.collector_call_log AS c
        (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes,
         run_id, worker, started_at, page_of)
    VALUES (call.provider, call.key_name, call.data_type, call.symbols, call.window_start, call.window_end,
            call.units, bytes, call.run_id, call.worker, now_, call.call_id)
    RETURNING c.call_id INTO opened;
    UPDATE pricing.provider_state s
    SET last_call_at = now_,
        page_until = CASE WHEN s.page_call <> call.call_id THEN s.page_until END,
        -- The pages of a probe are part of it.
        breaker_until = CASE WHEN s.probe_call = call.call_id THEN now_ + interval '60 seconds' ELSE s.breaker_until END
    WHERE s.provider = call.provider;
    RETURN opened;
END $$;
COMMENT ON FUNCTION pricing.open_page(pricing.collector_call_log, bigint, timestamptz) IS
    'Logs a call''s next request as open, charged like its first; only under the lock of provider_state.';


CREATE OR REPLACE FUNCTION pricing.page_obstacle(
    call pricing.collector_call_log, state pricing.provider_state, ids bigint[], first_bytes bigint,
    page_bytes bigint, most_requests integer, until timestamptz, now_ timestamptz,
    OUT refusal text, OUT next_at timestamptz, OUT again_at timestamptz)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    before record;
    reach record;
    needed bigint;
    used bigint;
    quota bigint;
BEGIN
    SELECT * INTO before FROM pricing.used_in_vain(call, now_);
    -- If it ends now, one more call was wasted.
    again_at := CASE WHEN before.own > call.units THEN now_ + pricing.pause_after(before.tries + 1)
                     ELSE before.again_at END;
    IF until <= now_ THEN
        refusal := pg_catalog.format(
            'it has lasted for %s, as long as a call may',
            pricing.format_span(date_trunc('second', now_ - call.started_at)));
        next_at := now_ + interval '1 hour';
        RETURN;
    END IF;
    SELECT o.refusal, o.next_at INTO refusal, next_at FROM pricing.provider_obstacle(call, state, now_) o;
    IF refusal IS NOT NULL THEN
        RETURN;
    END IF;
    -- Its own reservation does not count, because its first answer has come.
    used := pricing.bytes_used(call.provider, now_) - call.reserved_bytes + first_bytes;
    SELECT pricing.quota_for(
               p.quota_bytes,
               coalesce((SELECT max(q.priority) FROM pricing.api_call_queue_live q WHERE q.id = ANY (ids)), 1))
    INTO quota
    FROM pricing.data_collectors p
    WHERE p.provider = call.provider;
    IF used + page_bytes > quota THEN
        refusal := pg_catalog.format('the quota of %s has no room for about %s bytes more', call.provider, page_bytes);
        next_at := now_ + interval '1 hour';
        RETURN;
    END IF;
    needed := greatest(before.units, before.own) + call.units;
    SELECT * INTO reach FROM pricing.units_within_reach(call, until, now_);
    IF before.requests >= most_requests THEN
        refusal := pg_catalog.format(
            'a call for the same has made %s requests, as many as one may, and was not done', before.requests);
        next_at := now_ + interval '1 hour';
    ELSIF before.own = call.units AND before.again_at > now_ THEN
        refusal := pg_catalog.format('a call for the same symbols used %s requests without success; '
                                     'the next one is made at %s', before.requests,
                                     pricing.format_time(before.again_at));
        next_at := 'infinity';
    ELSIF reach.units < needed - before.own THEN
        refusal := pg_catalog.format(
            'it needs at least %s units of %s, has used %s, and the limit "%s" brings %s more at most while it lasts',
            needed, call.provider, before.own, reach.name, greatest(reach.units, 0));
        next_at := greatest(reach.renewed_at, until);
    ELSIF reach.units_left < call.units THEN
        refusal := pg_catalog.format('the limits of %s leave no room for its next request', call.provider);
        next_at := now_ + interval '1 second';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.page_obstacle(
    pricing.collector_call_log, pricing.provider_state, bigint[], bigint, bigint, integer, timestamptz,
    timestamptz) IS
    'Why a call''s next request may not be made now, when to ask again, and when it is too late; NULL = it may be '
    'made.';


CREATE OR REPLACE FUNCTION pricing.pause_after(tries bigint) RETURNS interval
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN CASE WHEN tries > 0 THEN least(interval '5 minutes' * 2 ^ least(tries - 1, 10), interval '24 hours') END;
END $$;
COMMENT ON FUNCTION pricing.pause_after(bigint) IS
    'How long after this many unfinished calls within a week the next may make pages: 5 min, doubling to a day; NULL '
    '= at once.';


CREATE OR REPLACE FUNCTION pricing.provider_obstacle(
    call pricing.collector_call_log, state pricing.provider_state, now_ timestamptz,
    OUT refusal text, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    collector pricing.data_collectors;
    key_ pricing.provider_keys;
    delay interval;
BEGIN
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = call.provider;
    SELECT * INTO key_ FROM pricing.provider_keys k WHERE (k.provider, k.key_name) = (call.provider, call.key_name);
    delay := make_interval(secs => collector.request_delay_ms / 1000.0
                                   * CASE WHEN key_.reported_left <= 5
                                               AND key_.reported_at > now_ - interval '60 seconds'
                                          THEN 2
                                          ELSE 1 END);
    IF NOT collector.is_active OR NOT coalesce(key_.is_active, true) THEN
        refusal := pg_catalog.format('%s, or its key, was switched off meanwhile', call.provider);
        next_at := 'infinity';
    ELSIF state.breaker <> 'closed' AND state.probe_call IS DISTINCT FROM call.call_id THEN
        refusal := pg_catalog.format('the breaker of %s has opened meanwhile', call.provider);
        next_at := state.breaker_until;
    ELSIF key_.blocked_until > now_ THEN
        refusal := pg_catalog.format(
            '%s has refused the key meanwhile: %s',
            call.provider, pricing.without_full_stop(key_.blocked_reason));
        next_at := key_.blocked_until;
    ELSIF key_.throttles > 0 AND pricing.is_before_page(call, now_) THEN
        refusal := pg_catalog.format('%s has refused the key, and is asked by one request at a time', call.provider);
        next_at := now_ + interval '1 second';
    ELSIF (SELECT used.calls FROM pricing.provider_use(state, now_, call.call_id) used) >= collector.max_in_flight THEN
        refusal := pg_catalog.format('as many calls to %s are in flight as it may have', call.provider);
        next_at := now_ + interval '1 second';
    ELSIF state.page_call < call.call_id AND pricing.is_kept_for_page(state, call.key_name, now_) THEN
        refusal := pg_catalog.format('an older call to %s needs its units', call.provider);
        next_at := now_ + interval '1 second';
    ELSIF delay > interval '0' AND state.last_call_at > now_ - delay THEN
        refusal := pg_catalog.format('%s is asked after a pause', call.provider);
        next_at := state.last_call_at + delay;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.provider_obstacle(pricing.collector_call_log, pricing.provider_state, timestamptz) IS
    'Why a provider may not be asked for a call''s next request now, apart from its limits, and when that ends; NULL '
    '= it may.';


CREATE OR REPLACE FUNCTION pricing.is_before_page(call pricing.collector_call_log, now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    -- Of calls that all wait for their next request the oldest goes first: none waits for one that waits for it.
    RETURN EXISTS (
        SELECT FROM pricing.collector_call_log c
        WHERE c.provider = call.provider
          AND c.finished_at IS NULL
          AND c.key_name = call.key_name
          AND coalesce(c.page_of, c.call_id) <> call.call_id
          AND coalesce(c.moved_to, c.started_at) > now_ - interval '60 seconds'
          AND (c.page_of IS NOT NULL OR c.call_id < call.call_id));
END $$;
COMMENT ON FUNCTION pricing.is_before_page(pricing.collector_call_log, timestamptz) IS
    'Whether another open call with the same key goes before a call''s next request: an older one, or one with a '
    'request in flight.';


CREATE OR REPLACE FUNCTION pricing.used_in_vain(call pricing.collector_call_log, now_ timestamptz,
    OUT requests bigint, OUT units bigint, OUT tries bigint, OUT again_at timestamptz, OUT own bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    -- A call for more symbols needs no less.
    SELECT coalesce(max(c.requests), 0), coalesce(max(c.units), 0),
           count(*) FILTER (WHERE c.requests > 1),
           max(c.finished_at) FILTER (WHERE c.requests > 1)
               + pricing.pause_after(count(*) FILTER (WHERE c.requests > 1))
    INTO requests, units, tries, again_at
    FROM (SELECT f.units + coalesce(sum(p.units), 0) AS units, 1 + count(p.call_id) AS requests, f.finished_at
          FROM pricing.collector_call_log f LEFT JOIN pricing.collector_call_log p ON p.page_of = f.call_id
          WHERE f.provider = call.provider
            AND f.failure_kind IS NOT NULL
            AND f.started_at > now_ - interval '7 days'
            AND f.failure_kind = 'unfinished'
            AND f.data_type = call.data_type
            AND (f.window_start, f.window_end) = (call.window_start, call.window_end)
            AND f.symbols <@ call.symbols
          GROUP BY f.call_id, f.units, f.finished_at) c;
    own := call.units
           + coalesce((SELECT sum(p.units) FROM pricing.collector_call_log p WHERE p.page_of = call.call_id), 0);
END $$;
COMMENT ON FUNCTION pricing.used_in_vain(pricing.collector_call_log, timestamptz) IS
    'The most requests and units that unfinished calls for any of these symbols used within a week, how many made '
    'pages (tries), when the next may (again_at), and this call''s own units (own).';


CREATE OR REPLACE FUNCTION pricing.units_within_reach(
    call pricing.collector_call_log, until timestamptz, now_ timestamptz,
    OUT name text, OUT units bigint, OUT units_left bigint, OUT renewed_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    units_left := (SELECT k.units_left FROM pricing.key_allowances(call.provider, now_) k
                   WHERE k.key_name = call.key_name);
    -- The full limit for each whole window; for the rest of the time, the units that are free now or come free in it.
    SELECT l.name,
           l.allowed - coalesce(sum(c.units), 0) + l.windows * l.allowed
           + coalesce(sum(c.units) FILTER (WHERE c.counted_at <= until - (l.windows + 1) * l.span), 0),
           l.renewed_at
    INTO name, units, renewed_at
    FROM (SELECT x.name,
                 pricing.units_in_force(x, call.key_name, now_)::bigint AS allowed,
                 pricing.limit_start(x, now_) AS since,
                 CASE WHEN w.span IS NULL THEN (w.ends_at < until)::integer
                      ELSE floor(extract(epoch FROM until - now_) / extract(epoch FROM w.span))::bigint END AS windows,
                 -- What was used today comes free with the next day alone.
                 coalesce(w.span, interval '1000 years') AS span, coalesce(w.ends_at, now_ + w.span) AS renewed_at
          FROM pricing.provider_limits x
          CROSS JOIN LATERAL (SELECT make_interval(secs => x.window_seconds) AS span,
                                     pricing.next_day(now_, x.day_timezone) AS ends_at) w
          WHERE x.provider = call.provider) l
    LEFT JOIN pricing.counted_calls c
        ON c.provider = call.provider AND c.key_name = call.key_name AND c.counted_at > l.since
    GROUP BY l.name, l.allowed, l.windows, l.span, l.renewed_at
    ORDER BY 2, 1 LIMIT 1;
    units_left := coalesce(units_left, 1000000000);
    units := coalesce(units, 1000000000); -- no limit
END $$;
COMMENT ON FUNCTION pricing.units_within_reach(pricing.collector_call_log, timestamptz, timestamptz) IS
    'The units that a call may be charged now (units_left) and until a time if nobody else uses any (units), with the '
    'tightest limit and when it is renewed.';


CREATE OR REPLACE FUNCTION pricing.settle_pages(of_call bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    page pricing.collector_call_log;
BEGIN
    FOR page IN
        SELECT c.* FROM pricing.collector_call_log c
        WHERE c.page_of = of_call AND c.finished_at IS NULL
        ORDER BY c.call_id FOR UPDATE
    LOOP
        PERFORM pricing.settle_call(
            page.call_id, 'unknown', NULL, page.reserved_bytes,
            'its call ended before it; its estimate is booked');
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.settle_pages(bigint) IS
    'Closes a call''s open pages and books their estimate, so that none outlasts its call.';
