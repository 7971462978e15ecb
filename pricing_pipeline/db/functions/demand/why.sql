-- Why a price is as old as it is: one answer for a pair, the most specific cause first. It only reads.

CREATE OR REPLACE FUNCTION pricing.said_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
$$;
COMMENT ON FUNCTION pricing.said_time(timestamptz) IS 'A time for people, in UTC, to the second.';


CREATE OR REPLACE FUNCTION pricing.said_span(span interval) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN s.seconds < 120 THEN s.seconds || ' s'
                WHEN s.seconds < 7200 THEN s.seconds / 60 || ' min'
                WHEN s.seconds < 172800 THEN s.seconds / 3600 || ' h'
                ELSE s.seconds / 86400 || ' days' END
    FROM (SELECT greatest(floor(extract(epoch FROM span)), 0)::bigint AS seconds) s
$$;
COMMENT ON FUNCTION pricing.said_span(interval) IS 'A span for people, in one unit, rounded down.';


CREATE OR REPLACE FUNCTION pricing.said_ordinal(place integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT place || CASE WHEN place % 100 BETWEEN 11 AND 13 THEN 'th'
                         ELSE coalesce((ARRAY['st', 'nd', 'rd'])[nullif(place % 10, 0)], 'th') END
$$;
COMMENT ON FUNCTION pricing.said_ordinal(integer) IS 'A place in a row for people: 1st, 2nd, 3rd, 4th.';


CREATE OR REPLACE FUNCTION pricing.said_within(message text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT nullif(pg_catalog.rtrim(message, '. '), '')
$$;
COMMENT ON FUNCTION pricing.said_within(text) IS 'A message as a part of another sentence: without its own full stop.';


CREATE OR REPLACE FUNCTION pricing.why_not_called(
    wanted_provider text, priority integer, needed bigint, OUT state text, OUT sentence text, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    collector pricing.data_collectors;
    provider_ pricing.provider_state;
    refused record;
    used bigint;
    allowed bigint;
BEGIN
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = wanted_provider;
    SELECT * INTO provider_ FROM pricing.provider_state s WHERE s.provider = wanted_provider;
    IF NOT coalesce(collector.is_active, false) THEN
        state := 'provider_off';
        sentence := pg_catalog.format('its provider %s is switched off, and no other serves it. Switch one on in pricing.data_collectors, or add a route', wanted_provider);
        RETURN;
    END IF;
    IF provider_.breaker <> 'closed' THEN
        state := 'breaker_open';
        next_at := greatest(pricing.next_probe_at(provider_), now_);
        sentence := pg_catalog.format(
            'the breaker of %s is %s since %s (%s); %s. It closes by itself when the provider is well',
            wanted_provider, CASE provider_.breaker WHEN 'open' THEN 'open' ELSE 'half open' END, pricing.said_time(provider_.breaker_since),
            pricing.said_within(provider_.breaker_reason),
            CASE WHEN provider_.breaker = 'half_open' THEN 'a probe is under way'
                 WHEN next_at > now_ THEN 'the next probe is made at ' || pricing.said_time(next_at) || ' at the latest'
                 ELSE 'the next task is the probe' END);
        RETURN;
    END IF;
    SELECT bool_or(k.is_active) AS some_active, min(k.blocked_until) FILTER (WHERE k.is_active) AS free_at,
           bool_and(coalesce(k.blocked_until > now_, false)) FILTER (WHERE k.is_active) AS all_blocked,
           (array_agg(k.blocked_reason ORDER BY k.blocked_until DESC) FILTER (WHERE k.is_active AND k.blocked_until > now_))[1] AS reason
    INTO refused FROM pricing.provider_keys k WHERE k.provider = wanted_provider;
    IF NOT refused.some_active THEN
        state := 'key_refused';
        sentence := pg_catalog.format('no key of %s is active. `pricing-pipeline key set %s` stores one', wanted_provider, wanted_provider);
        RETURN;
    ELSIF refused.all_blocked THEN
        next_at := refused.free_at;
        IF 'key_refused' = (SELECT c.failure_kind FROM pricing.counted_calls c
                            WHERE c.provider = wanted_provider AND c.counted_at > now_ - interval '2 hours'
                              AND c.failure_kind IN ('key_refused', 'throttled')
                            ORDER BY c.counted_at DESC LIMIT 1) THEN
            state := 'key_refused';
            sentence := pg_catalog.format(
                '%s does not accept the key (%s); it is asked again at %s. `pricing-pipeline key set %s` stores another one',
                wanted_provider, pricing.said_within(refused.reason), pricing.said_time(next_at), wanted_provider);
        ELSE
            state := 'throttled';
            sentence := pg_catalog.format(
                '%s has refused calls for speed (%s) and is left alone until %s. If that keeps coming back, lower its row in pricing.provider_limits',
                wanted_provider, pricing.said_within(refused.reason), pricing.said_time(next_at));
        END IF;
        RETURN;
    END IF;
    used := pricing.bytes_used(wanted_provider, now_);
    allowed := pricing.quota_for(collector.quota_bytes, priority);
    IF used + needed > allowed THEN
        state := 'quota_spent';
        sentence := pg_catalog.format(
            'the quota of %s is spent: %s of the %s bytes that such work may use in 30 days are used, and it needs %s. They come back hour by hour; raise quota_bytes if your plan allows it',
            wanted_provider, used, allowed, needed);
    ELSIF pricing.units_available(wanted_provider, now_) <= 0 THEN
        state := 'rate_limited';
        sentence := pg_catalog.format(
            'the rate limit of %s is used up for the moment (%s). Nothing is to be done, unless that is so all the time: `pricing-pipeline status` says whether what is watched fits',
            wanted_provider, (SELECT string_agg(pg_catalog.format('%s units in %s', l.units,
                                  coalesce(pricing.said_span(make_interval(secs => l.window_seconds)), 'a day')), ', ' ORDER BY l.name)
                              FROM pricing.provider_limits l WHERE l.provider = wanted_provider));
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_called(text, integer, bigint) IS
    'Why work of this priority that needs so many bytes may not be asked of a provider now: provider_off, breaker_open, key_refused, throttled, quota_spent or rate_limited, with a sentence and when that ends. NULL = it may.';


CREATE OR REPLACE FUNCTION pricing.why_backing_off(pair pricing.demand, dead pricing.api_call_queue_dead, OUT state text, OUT sentence text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    stop record;
    failed text := pg_catalog.format('its task failed at %s as %s (%s)', coalesce(pricing.said_time(dead.finished_at), 'some time'),
                                     coalesce(dead.failure_kind, 'unknown'), coalesce(pricing.said_within(pair.last_failure), 'no reason is kept'));
    at_once text := coalesce(pg_catalog.format('To try at once: pricing-pipeline task retry %s', dead.id), 'It is tried again then');
BEGIN
    IF pair.owed_since IS NULL THEN
        state := CASE WHEN dead.failure_kind IN ('unknown_symbol', 'plan_restricted', 'cancelled') THEN dead.failure_kind ELSE 'failed' END;
        sentence := pg_catalog.format(
            '%s, so it is left alone until %s. %s',
            CASE state WHEN 'cancelled' THEN 'its task was cancelled by hand at ' || pricing.said_time(dead.finished_at) ELSE failed END,
            pricing.said_time(pair.held_until),
            CASE state WHEN 'unknown_symbol' THEN 'Correct the symbol, or route it to a provider that knows it'
                       WHEN 'plan_restricted' THEN 'Change the plan, or route it elsewhere' ELSE at_once END);
        RETURN;
    END IF;
    -- Trouble: its viewers are owed a price all the while.
    state := CASE WHEN dead.failure_kind IN ('endpoint_restricted', 'misconfigured') THEN dead.failure_kind ELSE 'backing_off' END;
    SELECT w.* INTO stop FROM pricing.why_not_called(dead.provider, 1, coalesce(dead.est_bytes, 0)) w WHERE dead.provider IS NOT NULL;
    IF state = 'backing_off' AND stop.state <> 'rate_limited' THEN
        state := stop.state;
        sentence := pg_catalog.format('owed since %s, it is tried again at %s; %s, and %s', pricing.said_time(pair.owed_since),
                                      pricing.said_time(pair.held_until), failed, stop.sentence);
        RETURN;
    END IF;
    sentence := pg_catalog.format(
        'owed since %s, it is tried again at %s%s; %s%s. %s', pricing.said_time(pair.owed_since), pricing.said_time(pair.held_until),
        CASE WHEN pricing.is_outage(dead.failure_kind) AND dead.provider IS NOT NULL
             THEN pg_catalog.format(', or at once when %s answers', dead.provider) ELSE '' END, failed,
        coalesce('; ' || dead.provider || ': ' || pricing.said_outages(dead.provider, pair.data_type), ''),
        CASE state WHEN 'endpoint_restricted' THEN 'Change the plan or the key, or route the data type elsewhere'
                   WHEN 'misconfigured' THEN 'Add a route with `pricing-pipeline route add`, or mend what the message names' ELSE at_once END);
END $$;
COMMENT ON FUNCTION pricing.why_backing_off(pricing.demand, pricing.api_call_queue_dead) IS
    'Why a pair backs off, by its last dead task: a fault of its symbol, or trouble, of which it is late; a state in one word and a sentence.';


CREATE OR REPLACE FUNCTION pricing.market_at(wanted_calendar text, at timestamptz, OUT closed_at timestamptz, OUT opens_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (SELECT s.closes_at FROM pricing.calendar_sessions s
            WHERE s.calendar = wanted_calendar AND s.closes_at <= at ORDER BY s.closes_at DESC LIMIT 1),
           (SELECT s.opens_at FROM pricing.calendar_sessions s
            WHERE s.calendar = wanted_calendar AND s.closes_at > at ORDER BY s.closes_at LIMIT 1)
$$;
COMMENT ON FUNCTION pricing.market_at(text, timestamptz) IS
    'When the last session of a calendar ended, and when the next one begins or this one has; NULL where sessions are not known.';


CREATE OR REPLACE FUNCTION pricing.why_judged_fresh(
    kind pricing.data_type_registry, thing pricing.instruments, price pricing.latest_prices, pair pricing.demand, fetched_at timestamptz,
    ttl interval, OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    market record;
    limit_ timestamptz;
BEGIN
    SELECT * INTO market FROM pricing.market_at(thing.calendar, now_);
    since := fetched_at;
    next_at := CASE WHEN kind.staleness_function = 'is_market_stale'
                    THEN pricing.next_value_at(kind.data_type, thing.symbol, fetched_at, ttl) ELSE fetched_at + ttl END;
    IF kind.staleness_function NOT IN ('is_data_stale', 'is_market_stale') AND kind.table_name = 'latest_price_' || kind.data_type
            AND pricing.is_stale(kind.data_type, fetched_at, (extract(epoch FROM ttl) / 60)::integer) THEN
        state := 'unjudged';
        sentence := pg_catalog.format(
            'pricing.%s fails on it, so it counts as stale and is asked for once per TTL, next after %s. `pricing-pipeline status` shows why',
            kind.staleness_function, pricing.said_time(next_at));
        RETURN;
    END IF;
    IF price IS NULL AND NOT pricing.is_document(kind.fetcher) THEN
        state := 'provider_has_none';
        sentence := pg_catalog.format(
            'its provider answered that it has no price of %s. It is asked again at %s. Route %s elsewhere if another one knows better',
            thing.symbol, pricing.said_time(next_at), thing.symbol);
        RETURN;
    END IF;
    IF price.observed_at - price.changed_at > pricing.frozen_after(kind.fetcher) THEN
        state := 'source_frozen';
        since := price.changed_at;
        sentence := pg_catalog.format(
            '%s sends ever newer times with the same value since %s, so its source may stand still. Compare it with another, or route %s elsewhere',
            price.provider, pricing.said_time(since), thing.symbol);
        RETURN;
    END IF;
    -- Quotes may be a quarter of an hour behind, and while the market is closed those of its close are the newest.
    limit_ := fetched_at - greatest(ttl, CASE kind.fetcher WHEN 'quote' THEN interval '15 minutes' ELSE interval '5 days' END);
    IF kind.fetcher = 'quote' AND market.opens_at > limit_ THEN
        limit_ := least(limit_, market.closed_at - interval '20 minutes');
    ELSIF kind.fetcher <> 'quote' AND market.closed_at IS NOT NULL THEN
        SELECT max(s.session)::timestamp AT TIME ZONE 'UTC' INTO limit_ FROM pricing.calendar_sessions s
        WHERE s.calendar = thing.calendar AND s.closes_at <= why_judged_fresh.fetched_at - pricing.publish_lag(kind.data_type, thing.symbol, kind.fetcher);
    END IF;
    IF price.observed_at < limit_ THEN
        state := 'source_old';
        since := price.observed_at;
        sentence := pg_catalog.format(
            '%s has nothing newer than %s. It is asked again at %s. If it should know better, route %s elsewhere',
            price.provider, pricing.said_time(since), pricing.said_time(next_at), thing.symbol);
    ELSIF market.opens_at > now_ AND kind.fetcher = 'quote'
          AND (fetched_at + ttl <= now_ OR price.observed_at <= market.closed_at + interval '20 minutes') THEN
        state := 'market_closed';
        since := market.closed_at;
        next_at := market.opens_at;
        sentence := pg_catalog.format('its market (%s) is closed since %s and opens at %s. Nothing is to be done',
                                              thing.calendar, pricing.said_time(since), pricing.said_time(next_at));
    ELSIF fetched_at + ttl <= now_ AND next_at > now_ THEN
        state := 'market_closed';
        since := market.closed_at;
        sentence := pg_catalog.format(
            'there is nothing newer before %s, by the trading days of %s. It is asked for then', pricing.said_time(next_at), thing.calendar);
    ELSIF next_at <= now_ THEN
        state := 'not_due';
        next_at := CASE WHEN pair.became_due_at IS NULL THEN pair.due_at END;
        sentence := pg_catalog.format('pricing.%s judges it fresh enough; it is looked at again at %s. Nothing is to be done',
                                              kind.staleness_function, coalesce(pricing.said_time(next_at), 'the next look'));
    ELSE
        state := 'fresh';
        sentence := pg_catalog.format('it is fresh for %s, until %s', pricing.said_span(next_at - fetched_at), pricing.said_time(next_at));
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_judged_fresh(pricing.data_type_registry, pricing.instruments, pricing.latest_prices, pricing.demand, timestamptz, interval) IS
    'Why a pair that counts as fresh is as old as it is: by its TTL, its market, its source or its staleness function.';


CREATE OR REPLACE FUNCTION pricing.why_not_believed(
    wanted_type text, wanted_symbol text, failure text, fetched_at timestamptz, OUT sentence text, OUT since timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    doubt pricing.quarantined_values;
BEGIN
    -- What was sent since the last good answer.
    SELECT * INTO doubt FROM pricing.quarantined_values q
    WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol AND q.status <> 'released'
      AND q.last_seen_at > coalesce(fetched_at, '-infinity') AND (failure = 'implausible' OR q.status = 'held')
    ORDER BY q.status = 'held' DESC, q.last_seen_at DESC, q.value_id DESC LIMIT 1;
    IF doubt.value_id IS NOT NULL THEN
        since := doubt.last_seen_at;
        sentence := pg_catalog.format(
            'what %s sent at %s (%s) is not believed: %s. %s', doubt.provider, pricing.said_time(since),
            coalesce(nullif(doubt.value, ''), 'no value'), pricing.said_within(doubt.reason),
            CASE doubt.status
                WHEN 'held' THEN pg_catalog.format('Decide on it: pricing-pipeline quarantine show %s', doubt.value_id)
                ELSE pg_catalog.format('%s has rejected it; route %s elsewhere if that goes on', doubt.resolved_by, wanted_symbol) END);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_believed(text, text, text, timestamptz) IS
    'The value of a pair that was sent since its last good answer and is not believed, in a sentence; NULL = there is none.';


CREATE OR REPLACE FUNCTION pricing.why_queued(task pricing.api_call_queue_live, OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    stop record;
BEGIN
    since := task.enqueued_at;
    IF task.status = 'processing' THEN
        state := 'asking';
        sentence := pg_catalog.format('%s is being asked since %s. Look again in some seconds', task.provider, pricing.said_time(task.claimed_at));
        RETURN;
    END IF;
    SELECT w.* INTO stop FROM pricing.why_not_called(task.provider, task.priority, task.est_bytes) w;
    IF stop.state IS NOT NULL AND NOT (stop.state = 'rate_limited' AND task.status = 'scheduled') THEN
        state := stop.state;
        next_at := stop.next_at;
        sentence := pg_catalog.format('it waits since %s, and %s', pricing.said_time(since), stop.sentence);
    ELSIF task.status = 'scheduled' THEN
        state := 'retrying';
        next_at := task.run_after;
        sentence := pg_catalog.format(
            'its last attempt failed as %s (%s)%s; it is tried again at %s, for the %s time of %s. All failures: pricing-pipeline task show %s',
            task.errors -> -1 ->> 'kind', pricing.said_within(task.errors -> -1 ->> 'message'),
            coalesce('; ' || task.provider || ': ' || pricing.said_outages(task.provider, task.data_type), ''),
            pricing.said_time(next_at), pricing.said_ordinal(task.attempt + 1), task.max_attempts, task.id);
    ELSIF NOT EXISTS (SELECT FROM pricing.drains d WHERE d.finished_at IS NULL AND d.lease_until > now_) THEN
        state := 'no_worker';
        sentence := pg_catalog.format(
            'it waits since %s, and no worker is at the queue. One starts within seconds while the pipeline runs; does it? pricing-pipeline status',
            pricing.said_time(since));
    ELSE
        state := 'queued';
        sentence := pg_catalog.format(
            'it waits since %s, and %s tasks of %s go before it. The queue: pricing-pipeline task list', pricing.said_time(since),
            (SELECT count(*) FROM (SELECT FROM pricing.api_call_queue_live q
                                   WHERE q.provider = task.provider AND q.status = 'pending'
                                     AND (-q.priority, q.cadence_minutes, q.id) < (-task.priority, task.cadence_minutes, task.id)
                                   LIMIT 100000) ahead), task.provider);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_queued(pricing.api_call_queue_live) IS 'Why a live task has brought no price yet.';


CREATE OR REPLACE FUNCTION pricing.why_not_queued(
    kind pricing.data_type_registry, thing pricing.instruments, pair pricing.demand, fetched_at timestamptz,
    OUT state text, OUT sentence text, OUT since timestamptz, OUT next_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    now_ timestamptz := pricing.clock();
    provider_ text;
    viewers bigint;
    is_held boolean;
    size_ bigint;
    stop record;
BEGIN
    SELECT r.provider INTO provider_ FROM pricing.route(kind.data_type, thing.symbol) r;
    SELECT greatest(count(*), (pair.read_at IS NOT NULL)::integer) INTO viewers
    FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (kind.data_type, thing.symbol);
    is_held := EXISTS (SELECT FROM pricing.holdings h WHERE (h.data_type, h.active_symbol) = (kind.data_type, thing.symbol));
    size_ := coalesce((SELECT ceil(s.bytes) FROM pricing.size_estimates s WHERE (s.provider, s.data_type, s.per) = (provider_, kind.data_type, 'symbol')),
                      kind.estimated_data_size_bytes);
    since := fetched_at;
    next_at := CASE WHEN pair.became_due_at IS NULL THEN pair.due_at END;
    IF provider_ IS NULL THEN
        state := 'misconfigured';
        sentence := pg_catalog.format('no active provider serves %s %s. Add a route with `pricing-pipeline route add`', kind.data_type, thing.symbol);
    ELSIF viewers = 0 AND NOT is_held AND kind.refresh_strategy = 'scheduled'
          AND ('unknown_symbol' = (SELECT u.left_out FROM pricing.universe u WHERE (u.data_type, u.symbol) = (kind.data_type, thing.symbol))
               OR pricing.is_forgotten(kind.data_type, thing.symbol)) THEN
        state := 'unknown_symbol';
        next_at := NULL;
        sentence := pg_catalog.format(
            '%s does not know it, so the schedule %s. Correct the symbol, route it to a provider that knows it, or have it asked for once more: pricing-pipeline task list --status failed',
            provider_, CASE WHEN pricing.is_forgotten(kind.data_type, thing.symbol) THEN 'asks for it once a week' ELSE 'leaves it out' END);
    ELSIF viewers = 0 AND NOT is_held AND kind.refresh_strategy = 'scheduled' AND pricing.walk_waits(kind.data_type, thing.symbol) THEN
        SELECT w.* INTO stop FROM pricing.why_not_called(provider_, -1, size_) w;
        state := CASE WHEN stop.state <> 'rate_limited' THEN stop.state ELSE 'scheduled' END;
        SELECT w.served_slot INTO since FROM pricing.schedule_walks w WHERE w.data_type = kind.data_type;
        next_at := stop.next_at;
        sentence := pg_catalog.format(
            'nobody watches it, and the slot of its schedule at %s has not queued it yet: %s. It is queued as soon as there is room', pricing.said_time(since),
            coalesce(CASE WHEN state <> 'scheduled' THEN stop.sentence END,
                     (SELECT r.reason FROM pricing.schedule_rooms(kind.data_type) r WHERE r.provider = provider_),
                     'it goes over the instruments bit by bit'));
    ELSIF viewers = 0 AND NOT is_held AND kind.refresh_strategy = 'scheduled' THEN
        state := 'scheduled';
        next_at := NULL;
        sentence := pg_catalog.format(
            'nobody watches it, so it is refreshed by its schedule (%s, %s), which was last served at %s. To queue all now: SELECT pricing.enqueue_scheduled(%L)',
            kind.refresh_schedule, kind.schedule_timezone,
            coalesce((SELECT pricing.said_time(w.served_slot) FROM pricing.schedule_walks w WHERE w.data_type = kind.data_type), 'no time yet'), kind.data_type);
    ELSIF viewers = 0 AND NOT is_held THEN
        state := 'unwatched';
        next_at := NULL;
        sentence := pg_catalog.format('nobody watches or holds it, so it is not fetched. Watching does that: pricing-pipeline subscription watch %s --type %s',
                                              thing.symbol, kind.data_type);
    ELSIF viewers = 0 AND fetched_at BETWEEN now_ - make_interval(mins => kind.background_ttl_minutes) AND now_ + interval '1 minute' THEN
        state := 'background';
        next_at := fetched_at + make_interval(mins => kind.background_ttl_minutes);
        sentence := pg_catalog.format('it is held and nobody watches it, so it is refreshed every %s, next after %s. Watching is quicker: pricing-pipeline subscription watch %s --type %s',
            pricing.said_span(make_interval(mins => kind.background_ttl_minutes)), pricing.said_time(next_at), thing.symbol, kind.data_type);
    ELSIF viewers = 0 AND fetched_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM pricing.pair_views v WHERE (v.data_type, v.symbol) = (kind.data_type, thing.symbol) AND v.viewed_at > now_ - interval '48 hours') THEN
        state := 'unseen';
        sentence := pg_catalog.format('it is held, but nobody has looked at it for 48 hours. Reading it asks for it: pricing-pipeline price show %s', thing.symbol);
    ELSIF pair.became_due_at IS NULL AND (pair.due_at <= now_ OR pair.owed_since <= now_)
          AND EXISTS (SELECT FROM pricing.unqueued_pairs() u WHERE (u.provider, u.data_type) = (provider_, kind.data_type)) THEN
        state := 'quota_spent';
        since := least(pair.owed_since, pair.due_at);
        sentence := pg_catalog.format(
            'it is due since %s and not queued: what the quota of %s leaves viewers is used, or wanted by what waits. Bytes come back hour by hour; raise quota_bytes if your plan allows it',
            pricing.said_time(since), provider_);
    ELSIF pair.due_at > now_ AND NOT (pair.is_background AND viewers > 0) THEN
        state := 'not_due';
        sentence := pg_catalog.format('%s judges it fresh enough; it is looked at again at %s. Nothing is to be done', 'pricing.' || kind.staleness_function, pricing.said_time(next_at));
    ELSE
        state := 'due';
        since := CASE WHEN pair.due_at <= now_ THEN pair.due_at END;
        next_at := NULL;
        sentence := pg_catalog.format('it is due %s and not queued yet; the next staleness check does that, within seconds while the pipeline runs. Does it? pricing-pipeline status',
                                              coalesce('since ' || pricing.said_time(since), 'now'));
    END IF;
END $$;
COMMENT ON FUNCTION pricing.why_not_queued(pricing.data_type_registry, pricing.instruments, pricing.demand, timestamptz) IS
    'Why a stale pair has no task: nobody wants it, its schedule has not come to it, there is no room, or the next check will queue it.';


CREATE OR REPLACE FUNCTION pricing.why_old(
    wanted_type text, wanted_symbol text,
    OUT state text, OUT sentence text, OUT observed_at timestamptz, OUT fetched_at timestamptz, OUT since timestamptz, OUT next_at timestamptz)
-- With the owner's rights: a reader does not see who watches, and is to be told that somebody does.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
    thing pricing.instruments;
    price pricing.latest_prices;
    pair pricing.demand;
    task pricing.api_call_queue_live;
    dead pricing.api_call_queue_dead;
    ttl interval;
    failure text;
    said text;
    market record;
    expected timestamptz;
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    IF kind IS NULL THEN
        state := 'unknown_type';
        sentence := pg_catalog.format('there is no data type %s. `pricing-pipeline type list` shows those there are', left(wanted_type, 60));
        RETURN;
    END IF;
    SELECT * INTO thing FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (kind.asset_class, wanted_symbol);
    IF thing IS NULL THEN
        state := 'unknown_symbol';
        sentence := pg_catalog.format('no %s instrument is called %s. Watching it makes it known: pricing-pipeline subscription watch %s --type %s',
                                      kind.asset_class, left(wanted_symbol, 60), left(wanted_symbol, 60), wanted_type);
        RETURN;
    END IF;
    SELECT * INTO price FROM pricing.latest_prices l WHERE (l.data_type, l.symbol) = (wanted_type, wanted_symbol);
    SELECT a.fetched_at, make_interval(mins => coalesce(a.cache_ttl_minutes, kind.default_ttl_minutes)) INTO fetched_at, ttl
    FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    observed_at := price.observed_at;
    SELECT * INTO pair FROM pricing.demand d WHERE (d.data_type, d.symbol) = (wanted_type, wanted_symbol);
    SELECT * INTO task FROM pricing.api_call_queue_live q
    WHERE (q.data_type, q.symbol, q.window_start, q.window_end) = (wanted_type, wanted_symbol, '-infinity', 'infinity');
    said := CASE WHEN fetched_at IS NULL AND EXISTS (
                     SELECT FROM pricing.price_history h WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol)
                     THEN 'its past is stored, and no latest price is: '
                 WHEN fetched_at IS NULL THEN 'nothing was ever fetched: '
                 WHEN fetched_at > now_ + interval '1 minute'
                     THEN pg_catalog.format('last confirmed at %s, by a clock that was set back since: ', pricing.said_time(fetched_at))
                 ELSE pg_catalog.format('last confirmed %s ago%s: ', pricing.said_span(now_ - fetched_at),
                                         coalesce(' without parts of its bar (' || price.quality || ')', '')) END;

    IF NOT kind.is_active THEN
        state := 'retired';
        sentence := said || pg_catalog.format('the data type %s is retired (is_active is false in pricing.data_type_registry)', wanted_type);
        RETURN;
    ELSIF thing.update_mode <> 'api' OR NOT thing.is_active THEN
        state := 'paused';
        sentence := said || pg_catalog.format('%1$s %2$s. This resumes it: pricing-pipeline instrument resume %1$s', wanted_symbol,
                                              CASE WHEN thing.is_active THEN 'is paused' ELSE 'is retired: it was removed, and its history stays' END);
        RETURN;
    ELSIF fetched_at IS NOT NULL AND NOT pricing.is_pair_stale(wanted_type, wanted_symbol) THEN
        SELECT w.state, said || w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
        FROM pricing.why_judged_fresh(kind, thing, price, pair, fetched_at, ttl) w;
        RETURN;
    END IF;

    IF pair.held_until > now_ THEN
        SELECT * INTO dead FROM pricing.api_call_queue_dead q
        WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol AND q.window_end = 'infinity' ORDER BY q.finished_at DESC LIMIT 1;
    END IF;
    failure := coalesce(task.errors -> -1 ->> 'kind', dead.failure_kind);
    IF failure = 'implausible' OR (failure IS NULL AND task.id IS NULL) THEN
        SELECT said || w.sentence, w.since INTO sentence, since FROM pricing.why_not_believed(wanted_type, wanted_symbol, failure, fetched_at) w;
        IF sentence IS NOT NULL THEN
            state := 'quarantined';
            next_at := coalesce(task.run_after, pair.held_until);
            RETURN;
        END IF;
    END IF;
    IF task.id IS NOT NULL THEN
        SELECT w.state, said || w.sentence, w.since, w.next_at INTO state, sentence, since, next_at FROM pricing.why_queued(task) w;
        RETURN;
    ELSIF pair.held_until > now_ THEN
        SELECT w.state, said || w.sentence, dead.finished_at, pair.held_until INTO state, sentence, since, next_at
        FROM pricing.why_backing_off(pair, dead) w;
        RETURN;
    END IF;
    SELECT * INTO market FROM pricing.market_at(thing.calendar, now_);
    IF market.opens_at IS NOT NULL AND fetched_at IS NOT NULL THEN
        expected := pricing.next_value_at(wanted_type, wanted_symbol, fetched_at, ttl);
        IF expected > now_ THEN
            state := 'market_closed';
            since := market.closed_at;
            next_at := expected;
            sentence := said || pg_catalog.format('no newer value can exist: its market (%s) %s, and the next value should be there at %s. Nothing is to be done',
                thing.calendar, CASE WHEN market.opens_at > now_ THEN 'is closed since ' || pricing.said_time(market.closed_at)
                                     ELSE 'has not closed yet' END, pricing.said_time(expected));
            RETURN;
        END IF;
    END IF;
    SELECT w.state, said || w.sentence, w.since, w.next_at INTO state, sentence, since, next_at
    FROM pricing.why_not_queued(kind, thing, pair, fetched_at) w;
END $$;
COMMENT ON FUNCTION pricing.why_old(text, text) IS
    'Why a pair''s price is as old as it is: a state in one word, a sentence with times and what to do, when it was last confirmed, since when it is so and when that may change. docs/operations.md lists the states.';
