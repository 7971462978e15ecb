-- Live streams: what changed about the pairs that they show. Storing a price does nothing for them. A look compares
-- what is stored with what was last sent, and notes the difference in a log, in one transaction and behind one lock.
-- So no order of commits and no open transaction can hide a change: the next look finds it.

CREATE OR REPLACE FUNCTION pricing.look_for_streams(
    opened_types text[], opened_symbols text[], OUT head_position bigint, OUT kept_from bigint)
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    head pricing.stream_head;
    now_ timestamptz;
    noted bigint;
BEGIN
    IF cardinality(opened_symbols) > 0 THEN
        SELECT h.* INTO STRICT head FROM pricing.stream_head h FOR UPDATE;
        INSERT INTO pricing.streamed_pairs AS s (data_type, symbol, since_position, wanted_until, judge_at)
        SELECT DISTINCT u.data_type, u.symbol, head.position, pricing.clock() + interval '15 minutes',
               timestamptz '-infinity'
        FROM unnest(opened_types, opened_symbols) AS u (data_type, symbol) ORDER BY 1, 2
        ON CONFLICT (data_type, symbol) DO UPDATE SET wanted_until = excluded.wanted_until;
    ELSE
        SELECT h.* INTO head FROM pricing.stream_head h FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            -- Another process is looking right now.
            SELECT h.position, h.kept_from INTO STRICT head_position, kept_from FROM pricing.stream_head h;
            RETURN;
        END IF;
        -- If nothing has changed, there is nothing to lose in a crash, and the commit need not wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    now_ := pricing.clock();
    noted := pricing.note_stream_events(head.position, now_);
    IF noted > 0 THEN
        PERFORM set_config('synchronous_commit', 'on', true);
        UPDATE pricing.stream_head h SET position = h.position + noted;
    END IF;
    PERFORM pricing.forget_stream_events(now_);
    SELECT h.position, h.kept_from INTO STRICT head_position, kept_from FROM pricing.stream_head h;
END $$;
COMMENT ON FUNCTION pricing.look_for_streams(text[], text[]) IS
    'Logs changes of streamed pairs since the last look, deletes old events, starts streaming opened pairs, and '
    'returns where the log begins and ends.';


CREATE OR REPLACE FUNCTION pricing.streams_to_judge(now_ timestamptz, at_most interval)
RETURNS TABLE (told pricing.streamed_pairs, price pricing.latest_prices, ttl interval, is_by_ttl boolean,
               is_source_old boolean, is_first boolean, is_judged boolean, is_new_price boolean)
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s AS told, l AS price,
           make_interval(mins => known.ttl_minutes) AS ttl,
           r.staleness_function IN ('is_data_stale', 'is_market_stale') AND NOT r.has_own_table AS is_by_ttl,
           pricing.is_source_old(r, s.symbol, l.observed_at, l.fetched_at, known.ttl_minutes) AS is_source_old,
           s.judge_at = '-infinity' AS is_first,
           s.judge_at > now_ AND s.judge_at <= now_ + at_most AS is_judged,
           (l.observed_at, l.amount, l.scale, l.currency)
               IS DISTINCT FROM (s.observed_at, s.amount, s.scale, s.currency) AS is_new_price
    FROM pricing.streamed_pairs s JOIN pricing.data_type_registry r USING (data_type)
    LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
    CROSS JOIN LATERAL (
        SELECT pricing.ttl_beside(r, s.symbol, l.cache_ttl_minutes) AS ttl_minutes) known
    WHERE l.fetched_at IS DISTINCT FROM s.fetched_at OR l.observed_at IS DISTINCT FROM s.observed_at
       OR l.amount IS DISTINCT FROM s.amount
       OR l.scale IS DISTINCT FROM s.scale
       OR l.currency IS DISTINCT FROM s.currency
       OR NOT (s.judge_at > now_ AND s.judge_at <= now_ + at_most);
END $$;
COMMENT ON FUNCTION pricing.streams_to_judge(timestamptz, interval) IS
    'The streamed pairs whose price differs from the last event, or whose freshness is due for judgement, with what '
    'judging needs.';


CREATE OR REPLACE FUNCTION pricing.note_stream_events(head_position bigint, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    grace interval := interval '5 seconds'; -- a price that is refreshed on time is never told to be stale
    -- other changes of a judgement (a TTL, the clock) are noticed by then
    at_most interval := interval '1 minute';
    most CONSTANT integer := 1000; -- new prices of a pair, beside its newest one
    noted bigint;
BEGIN
    -- Finding a reason takes a millisecond for each pair, so pairs that only need a new reason are judged a few at a
    -- time.
    WITH ranked AS MATERIALIZED (
        SELECT k.*, row_number() OVER (PARTITION BY k.is_judged OR k.is_first OR k.is_new_price
                                       ORDER BY (k.told).judge_at) AS place
        FROM pricing.streams_to_judge(now_, at_most) k),
    judged AS MATERIALIZED (
        SELECT k.told, k.price, k.is_first, k.is_new_price AND NOT k.is_first AS is_new_price, f.verdict,
               CASE WHEN (k.price).fetched_at + k.ttl + grace > now_
                    THEN least((k.price).fetched_at + k.ttl + grace, now_ + at_most) ELSE now_ + at_most END AS judge_at
        FROM ranked k CROSS JOIN LATERAL (
            SELECT CASE
                WHEN (k.price).symbol IS NULL THEN NULL
                WHEN k.is_by_ttl
                    AND (k.price).fetched_at + k.ttl + grace > now_
                    AND (k.price).fetched_at <= now_ + interval '1 minute'
                THEN CASE WHEN k.is_source_old THEN 'source_old' ELSE 'fresh' END
                ELSE pricing.verdict_on((k.told).data_type, (k.told).symbol) END AS verdict OFFSET 0) f
        WHERE k.is_judged OR k.is_first OR k.is_new_price OR k.place <= 300),
    explained AS MATERIALIZED (
        SELECT j.*, (j.told).data_type, (j.told).symbol, w.state, w.sentence, w.since, w.next_at,
               NOT j.is_first
                   AND (j.is_new_price
                        OR j.verdict IS DISTINCT FROM (j.told).verdict
                        OR w.state IS DISTINCT FROM (j.told).state) AS is_event
        FROM judged j LEFT JOIN LATERAL (
            SELECT y.* FROM pricing.why_old((j.told).data_type, (j.told).symbol) y
            WHERE j.verdict IS DISTINCT FROM 'fresh' OFFSET 0) w ON true),
    -- Prices that were the newest between two looks, or while nobody looked, are told too.
    telling AS MATERIALIZED (
        SELECT e.data_type, e.symbol, true AS is_new_price, h.amount, h.scale, h.currency, h.observed_at, h.fetched_at,
               h.provider, e.verdict, e.state, e.sentence, e.since, e.next_at
        FROM explained e CROSS JOIN LATERAL (
            SELECT x.* FROM pricing.price_history x
            WHERE x.data_type = e.data_type
              AND x.symbol = e.symbol
              AND x.observed_at > (e.told).observed_at
              AND x.observed_at < (e.price).observed_at
            ORDER BY x.observed_at DESC LIMIT most) h
        WHERE e.is_event AND e.is_new_price
        UNION ALL
        SELECT e.data_type, e.symbol, e.is_new_price, (e.price).amount, (e.price).scale, (e.price).currency,
               (e.price).observed_at, (e.price).fetched_at, (e.price).provider, e.verdict, e.state, e.sentence,
               e.since, e.next_at
        FROM explained e WHERE e.is_event),
    remembered AS (
        UPDATE pricing.streamed_pairs s
        SET judge_at = e.judge_at, amount = (e.price).amount, scale = (e.price).scale, currency = (e.price).currency,
            observed_at = (e.price).observed_at, fetched_at = (e.price).fetched_at, provider = (e.price).provider,
            verdict = e.verdict, state = e.state, sentence = e.sentence, since = e.since, next_at = e.next_at,
            -- The log keeps only part of a flood. A client that resumes from before it is told that events are missing.
            since_position = CASE
                WHEN (SELECT count(*) FROM telling t WHERE (t.data_type, t.symbol) = (e.data_type, e.symbol)) > most
                THEN head_position + (SELECT count(*) FROM telling)
                ELSE s.since_position END
        FROM explained e WHERE (s.data_type, s.symbol) = (e.data_type, e.symbol)),
    written AS (
        INSERT INTO pricing.stream_events
            (position, noted_at, data_type, symbol, is_new_price, amount, scale, currency, observed_at, fetched_at,
             provider, verdict, state, sentence, since, next_at)
        SELECT head_position + row_number() OVER (ORDER BY t.observed_at, t.data_type, t.symbol), now_, t.*
        FROM telling t
        RETURNING 1)
    SELECT count(*) INTO noted FROM written;
    RETURN noted;
END $$;
COMMENT ON FUNCTION pricing.note_stream_events(bigint, timestamptz) IS
    'Logs, after the given position, each new price of the streamed pairs and each change of freshness or its reason; '
    'the caller has locked the head.';


CREATE OR REPLACE FUNCTION pricing.forget_stream_events(now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    gone_to bigint;
BEGIN
    WITH oldest AS MATERIALIZED (SELECT x.position, x.noted_at FROM pricing.stream_events x
                                 ORDER BY x.position LIMIT 5000),
    gone AS (
        DELETE FROM pricing.stream_events e USING oldest o
        WHERE e.position = o.position
          AND (o.noted_at < now_ - interval '10 minutes'
               OR o.position <= (SELECT h.position FROM pricing.stream_head h) - 100000)
        RETURNING e.position)
    SELECT max(g.position) INTO gone_to FROM gone g;
    UPDATE pricing.stream_head h SET kept_from = gone_to WHERE gone_to > h.kept_from;
    DELETE FROM pricing.streamed_pairs s WHERE s.wanted_until < now_;
    IF FOUND THEN
        -- A pair that is streamed again later begins after this position, so that no client resumes from before it. A
        -- position that was sent must outlive a crash: otherwise the next event gets it, and a client that has it
        -- misses that.
        PERFORM set_config('synchronous_commit', 'on', true);
        UPDATE pricing.stream_head h SET position = h.position + 1;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.forget_stream_events(timestamptz) IS
    'Deletes stream events older than ten minutes or beyond 100,000, and pairs not streamed for a quarter of an hour; '
    'the caller has locked the head.';
