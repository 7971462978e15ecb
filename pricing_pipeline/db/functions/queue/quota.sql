-- The quota of bytes: how much work fits into it, and what a backfill or a day costs.

CREATE OR REPLACE FUNCTION pricing.bytes_used(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT used.bytes FROM pricing.provider_state s CROSS JOIN pricing.provider_use(s, now_) used
            WHERE s.provider = wanted_provider);
END $$;
COMMENT ON FUNCTION pricing.bytes_used(text, timestamptz) IS
    'Bytes of the last 720 hours (partial hours count whole), including the estimates of calls in flight.';


CREATE OR REPLACE FUNCTION pricing.quota_for(quota bigint, priority integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    SELECT quota / 100 * CASE priority WHEN -2 THEN 75 WHEN -1 THEN 90 ELSE 95 END
$$;
COMMENT ON FUNCTION pricing.quota_for(bigint, integer) IS
    'The share of a quota that work of this priority may use: backfills 75 %, schedules 90 %, the rest 95 %.';


CREATE OR REPLACE FUNCTION pricing.queue_room(
    wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    room bigint;
BEGIN
    SELECT pricing.quota_for(p.quota_bytes, least_priority) - pricing.bytes_used(p.provider, pricing.clock()) INTO room
    FROM pricing.data_collectors p WHERE p.provider = wanted_provider;
    -- Mostly the quota is far away: no more tasks fit into the pages of the table (100 bytes are the least that one
    -- takes), and none is twice as large as the largest of today. Where that is not enough to know, those that wait are
    -- counted.
    IF more_bytes + pg_catalog.pg_relation_size('pricing.api_call_queue_live') / 100 * (
            SELECT 2 * greatest(max(r.estimated_data_size_bytes),
                                (SELECT ceil(max(s.bytes)) FROM pricing.size_estimates s WHERE s.per = 'symbol'))
            FROM pricing.data_type_registry r) <= room THEN
        RETURN NULL;
    END IF;
    -- Claimed tasks have their bytes reserved.
    room := room - (SELECT coalesce(sum(q.est_bytes), 0) FROM pricing.api_call_queue_live q
                    WHERE q.provider = wanted_provider
                      AND q.run_after IS NULL
                      AND (-q.priority) <= -least_priority
                      AND q.status = 'pending')
                 - (SELECT coalesce(sum(q.est_bytes), 0) FROM pricing.api_call_queue_live q
                    WHERE q.provider = wanted_provider
                      AND q.run_after IS NOT NULL
                      AND q.priority >= least_priority);
    RETURN CASE WHEN room < more_bytes THEN greatest(room, 0) END;
END $$;
COMMENT ON FUNCTION pricing.queue_room(text, integer, bigint) IS
    'The bytes that may still be queued for a provider at this priority beside what waits; NULL = this many more '
    'bytes fit.';


CREATE OR REPLACE FUNCTION pricing.producers_beside_each_other() RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    RETURN 16;
END $$;
COMMENT ON FUNCTION pricing.producers_beside_each_other() IS
    'How many sessions that each queue as much as one must fit into a quota together, so that one need not look at '
    'the others.';


CREATE OR REPLACE FUNCTION pricing.take_room(
    wanted_provider text, least_priority integer, more_bytes bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    many bigint := pricing.producers_beside_each_other();
BEGIN
    -- Sessions do not see what others are queueing, and need not while that many fit beside each other.
    IF pricing.queue_room(wanted_provider, least_priority, many * more_bytes) IS NULL THEN
        RETURN NULL;
    ELSIF NOT pricing.take_turn('queue_room ' || wanted_provider) THEN
        -- A session may keep the turn for long: the others continue more slowly. A claim never exceeds the quota.
        RETURN pricing.queue_room(wanted_provider, least_priority, many * more_bytes) / many;
    END IF;
    RETURN pricing.queue_room(wanted_provider, least_priority, many * more_bytes); -- the last turn may have filled it
END $$;
COMMENT ON FUNCTION pricing.take_room(text, integer, bigint) IS
    'The bytes of room that a producer may fill: all for one session at a time, a sixteenth for each other; NULL = '
    'enough for sixteen.';


CREATE OR REPLACE FUNCTION pricing.may_fit(wanted_provider text, priority integer, bytes bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT bytes <= pricing.quota_for(p.quota_bytes, priority) FROM pricing.data_collectors p
            WHERE p.provider = wanted_provider);
END $$;
COMMENT ON FUNCTION pricing.may_fit(text, integer, bigint) IS 'Whether one such task fits a provider''s empty quota.';


CREATE OR REPLACE FUNCTION pricing.within_quota(
    wanted_type text, symbols text[], priorities integer[],
    OUT fitting text[], OUT fitting_priorities integer[], OUT left_out text[])
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    least_priority integer := (SELECT least(min(p), 0) FROM unnest(priorities) AS p);
BEGIN
    fitting := symbols;
    fitting_priorities := priorities;
    IF NOT EXISTS (
        SELECT FROM pricing.provider_routing r JOIN pricing.data_type_registry k USING (data_type)
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (r.provider, r.data_type, 'symbol')
        WHERE r.data_type = wanted_type
          AND pricing.queue_room(
                  r.provider, least_priority,
                  pricing.producers_beside_each_other() * cardinality(symbols)
                  * ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint) IS NOT NULL) THEN
        RETURN;
    END IF;
    WITH asked AS MATERIALIZED (
        SELECT u.symbol, u.priority, (pricing.route(wanted_type, u.symbol)).provider
        FROM unnest(symbols, priorities) AS u (symbol, priority)),
    sized AS (
        SELECT a.provider, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint AS bytes,
               array_agg(a.symbol) AS symbols, array_agg(a.priority) AS priorities
        FROM asked a JOIN pricing.data_type_registry k ON k.data_type = wanted_type
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (a.provider, wanted_type, 'symbol')
        WHERE a.provider IS NOT NULL
          AND pricing.may_fit(
                  a.provider, least_priority, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint)
        GROUP BY 1, 2),
    rooms AS MATERIALIZED (
        SELECT z.*, pricing.take_room(z.provider, least_priority, cardinality(z.symbols) * z.bytes) AS room
        FROM sized z),
    without_room AS MATERIALIZED (
        SELECT r.provider, unnest(r.symbols) AS symbol FROM rooms r WHERE r.room IS NOT NULL
        EXCEPT
        SELECT r.provider, unnest(pricing.share_of(r.provider, r.room, wanted_type, r.symbols, r.priorities))
        FROM rooms r WHERE r.room IS NOT NULL)
    SELECT array_agg(a.symbol ORDER BY a.symbol) FILTER (WHERE f.symbol IS NULL),
           array_agg(a.priority ORDER BY a.symbol) FILTER (WHERE f.symbol IS NULL),
           array_agg(a.symbol ORDER BY a.symbol) FILTER (WHERE f.symbol IS NOT NULL)
    INTO fitting, fitting_priorities, left_out
    FROM asked a LEFT JOIN without_room f USING (symbol);
END $$;
COMMENT ON FUNCTION pricing.within_quota(text, text[], integer[]) IS
    'Splits latest prices to be queued into those that fit their providers'' quotas, by priority, and the others.';


CREATE OR REPLACE FUNCTION pricing.share_of(
    wanted_provider text, room bigint, wanted_type text, symbols text[], viewers integer[]) RETURNS text[]
LANGUAGE sql SET search_path = '' AS $$
    WITH mine AS MATERIALIZED (SELECT u.symbol, u.viewers FROM unnest(symbols, viewers) AS u (symbol, viewers)),
    kinds AS MATERIALIZED (
        SELECT k.data_type, coalesce(s.bytes, k.estimated_data_size_bytes) AS bytes,
               (pricing.common_route(k.data_type)).provider AS common
        FROM pricing.data_type_registry k
        LEFT JOIN pricing.size_estimates s
            ON (s.provider, s.data_type, s.per) = (wanted_provider, k.data_type, 'symbol')
        WHERE k.is_active
          AND pricing.may_fit(wanted_provider, 0, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))::bigint)
          AND EXISTS (SELECT FROM pricing.provider_routing r
                      WHERE (r.data_type, r.provider) = (k.data_type, wanted_provider) AND r.is_active)),
    wanted AS (
        SELECT true AS is_mine, wanted_type AS data_type, m.symbol, m.viewers,
               coalesce(d.due_at, pricing.clock()) AS due_at
        FROM mine m LEFT JOIN pricing.demand d ON (d.data_type, d.symbol) = (wanted_type, m.symbol)
        UNION ALL
        SELECT false, d.data_type, d.symbol,
               greatest((SELECT count(*)::integer FROM pricing.active_subscriptions a
                         WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)),
                        (d.read_at IS NOT NULL)::integer),
               d.due_at
        FROM kinds k JOIN pricing.demand d USING (data_type)
        WHERE d.due_at <= pricing.clock() AND d.became_due_at IS NULL
          AND NOT (d.data_type = wanted_type AND EXISTS (SELECT FROM mine m WHERE m.symbol = d.symbol))
          AND coalesce(k.common, (pricing.route(d.data_type, d.symbol)).provider) = wanted_provider),
    ranked AS (
        -- One order for all types: otherwise each might leave the room to another.
        SELECT w.*, sum(k.bytes) OVER (ORDER BY w.viewers DESC, w.due_at, w.data_type, w.symbol) AS bytes
        FROM wanted w JOIN kinds k USING (data_type))
    SELECT array_agg(r.symbol ORDER BY r.bytes) FROM ranked r WHERE r.is_mine AND r.bytes <= room
$$;
COMMENT ON FUNCTION pricing.share_of(text, bigint, text, text[], integer[]) IS
    'Which of these pairs the room suffices for when everything due at a provider is served by the number of viewers; '
    'NULL = none.';


CREATE OR REPLACE FUNCTION pricing.unqueued_pairs() RETURNS TABLE (provider text, data_type text, pairs bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH kinds AS MATERIALIZED (
        SELECT k.data_type, k.estimated_data_size_bytes, (pricing.common_route(k.data_type)).provider AS common
        FROM pricing.data_type_registry k WHERE k.is_active),
    due AS MATERIALIZED (
        SELECT coalesce(k.common, (pricing.route(d.data_type, d.symbol)).provider) AS provider,
               d.data_type, count(*) AS pairs
        FROM kinds k JOIN pricing.demand d USING (data_type)
        WHERE d.became_due_at IS NULL
          AND (d.due_at <= now_ OR d.owed_since <= now_)
          AND coalesce(d.backoff_until, '-infinity') <= now_
        GROUP BY 1, 2),
    without_room AS (
        SELECT u.provider FROM due u JOIN kinds k USING (data_type)
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (u.provider, u.data_type, 'symbol')
        GROUP BY 1
        HAVING pricing.queue_room(
                   u.provider, 0,
                   ceil(sum(u.pairs * coalesce(s.bytes, k.estimated_data_size_bytes)))::bigint) IS NOT NULL)
    SELECT u.provider, u.data_type, u.pairs FROM due u JOIN without_room USING (provider) ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.unqueued_pairs() IS
    'How many pairs are due and not queued because their provider''s quota has no room for all.';


CREATE OR REPLACE FUNCTION pricing.check_backfill_quota(wanted uuid) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    short record;
BEGIN
    -- Plans of other types, which are not committed, are not seen: where it may matter, one plan at a time is checked.
    PERFORM pricing.await_turn('queue_room ' || b.provider)
    FROM (SELECT q.provider, sum(q.est_bytes)::bigint AS wanted_bytes FROM pricing.api_call_queue_live q
          WHERE q.backfill_id = wanted GROUP BY 1 ORDER BY 1) b
    WHERE pricing.queue_room(b.provider, -2, (pricing.producers_beside_each_other() - 1) * b.wanted_bytes) IS NOT NULL;
    SELECT p.provider, p.quota_bytes, b.wanted_bytes,
           greatest(pricing.quota_for(p.quota_bytes, -2) - pricing.bytes_used(p.provider, now_) - b.other_bytes, 0)
               AS left_bytes
    INTO short
    FROM (SELECT q.provider, sum(q.est_bytes) FILTER (WHERE q.backfill_id = wanted) AS wanted_bytes,
                 coalesce(sum(q.est_bytes) FILTER (
                     WHERE q.backfill_id IS DISTINCT FROM wanted AND q.status <> 'processing'), 0) AS other_bytes
          FROM pricing.api_call_queue_live q GROUP BY 1) b
    JOIN pricing.data_collectors p USING (provider)
    WHERE b.wanted_bytes > pricing.quota_for(p.quota_bytes, -2) - pricing.bytes_used(p.provider, now_) - b.other_bytes
    ORDER BY 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the backfill needs about % bytes from %, but % are left: backfills stop at 75 %% of its '
                        'quota of % bytes, and what waits in the queue needs its part',
            short.wanted_bytes, short.provider, short.left_bytes, short.quota_bytes
            USING HINT = 'Ask for fewer days or symbols, try again when bytes of the last 30 days have left the '
                         'window, or raise the quota with `pricing-pipeline provider change`.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_backfill_quota(uuid) IS
    'Refuses a backfill that has just been queued if it cannot fit what its providers'' quotas leave for backfills.';


CREATE OR REPLACE FUNCTION pricing.budget()
RETURNS TABLE (provider text, pairs bigint, units_needed float8, units_allowed float8,
               bytes_needed bigint, bytes_allowed bigint)
-- With the owner's rights: a reader sees its own subscriptions only, and the figure is of everybody's.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    SELECT p.provider, coalesce(n.pairs, 0), coalesce(n.units, 0), pricing.units_a_minute(p.provider, now_),
           (coalesce(n.bytes, 0) * 43200)::bigint, pricing.quota_for(p.quota_bytes, 0)
    FROM pricing.data_collectors p LEFT JOIN pricing.needs() n USING (provider)
    WHERE p.is_active ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.budget() IS
    'What watched or held pairs need, and what their providers allow (NULL = no limit): units a minute, and bytes in '
    '30 days.';
