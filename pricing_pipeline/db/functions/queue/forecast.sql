-- How long a provider's quota of bytes lasts, and by how much TTLs are stretched so that it does. Which pairs wait
-- because of that is decided in demand/staleness.sql; how much is used, and what the hard steps are, in quota.sql.
--
-- Bytes leave the quota 720 hours after they came. So whether it lasts can be computed hour by hour: used bytes, minus
-- those that have left by then, plus those that come until then. TTLs are stretched to the highest rate that stays two
-- percent below the step at which schedules stop, so that nothing stops. The two percent cover what comes and goes
-- within half a day.

CREATE OR REPLACE FUNCTION pricing.most_stretched() RETURNS float8
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    -- A quota that is met in a tenth of its window stands still for 27 days without a stretch. Ten times the demand
    -- must still be served evenly; more than sixteen times is no peak, but a plan or a TTL that is wrong.
    RETURN 16;
END $$;
COMMENT ON FUNCTION pricing.most_stretched() IS
    'How many TTLs old a price may get at most before its pair is queued, because TTLs are stretched.';


CREATE OR REPLACE FUNCTION pricing.leaving_bytes(wanted_provider text, now_ timestamptz) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH left_in AS (
        SELECT greatest(ceil(721 - extract(epoch FROM now_ - u.hour) / 3600), 1)::integer AS hours,
               sum(u.bytes) AS bytes
        FROM pricing.api_data_usage u
        WHERE u.provider = wanted_provider AND u.hour > now_ - make_interval(hours => 721)
        GROUP BY 1)
    SELECT array_agg(s.bytes ORDER BY s.hours) FROM (
        SELECT h.hours, coalesce(sum(l.bytes) OVER (ORDER BY h.hours), 0)::bigint AS bytes
        FROM generate_series(1, 721) AS h (hours) LEFT JOIN left_in l USING (hours)) s
$$;
COMMENT ON FUNCTION pricing.leaving_bytes(text, timestamptz) IS
    'How many of a provider''s used bytes will have left the quota in 1, 2, ... 721 hours.';


CREATE OR REPLACE FUNCTION pricing.reached_at(
    leaving bigint[], used bigint, per_hour float8, step bigint, now_ timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN used >= step THEN now_ ELSE (
        SELECT now_ + make_interval(hours => min(l.hours)::integer)
        FROM unnest(leaving) WITH ORDINALITY AS l (bytes, hours)
        WHERE used - l.bytes + per_hour * l.hours >= step) END
$$;
COMMENT ON FUNCTION pricing.reached_at(bigint[], bigint, float8, bigint, timestamptz) IS
    'When used bytes reach a step of a quota at this hourly rate, to the hour; NULL = never, because what is used now '
    'has left after 721 hours.';


CREATE OR REPLACE FUNCTION pricing.sustained_rate(leaving bigint[], used bigint, target bigint) RETURNS float8
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    -- By days: demand varies within a day, which the two percent below the step cover.
    SELECT greatest(min((target - used + leaving[24 * d]) / (24.0 * d)), 0)::float8 FROM generate_series(1, 30) AS d
$$;
COMMENT ON FUNCTION pricing.sustained_rate(bigint[], bigint, bigint) IS
    'The most bytes an hour that keep used bytes below a target at the end of each of the next 30 days.';


CREATE OR REPLACE FUNCTION pricing.stretch_factors(
    watched float8, background float8, sustained float8, OUT watched_factor float8, OUT background_factor float8)
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
DECLARE
    most float8 := pricing.most_stretched();
    room float8 := sustained - watched;
BEGIN
    -- Unwatched demand is stretched to the limit first, and only then watched demand.
    background_factor := CASE WHEN background <= room THEN 1
                              WHEN room * most <= background THEN most
                              ELSE background / room END;
    room := sustained - background / background_factor;
    watched_factor := CASE WHEN watched <= room THEN 1
                           WHEN room * most <= watched THEN most
                           ELSE watched / room END;
END $$;
COMMENT ON FUNCTION pricing.stretch_factors(float8, float8, float8) IS
    'By how much to stretch TTLs, given the bytes an hour that watched pairs and the background need at their TTLs, '
    'and that can be sustained in all.';


CREATE OR REPLACE FUNCTION pricing.trading_ahead(now_ timestamptz)
RETURNS TABLE (calendar text, sessions numeric, share numeric)
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- The closing price is there a quarter of an hour after the close.
    SELECT s.calendar,
           count(*) / 168.0,
           least(sum(extract(epoch FROM least(s.closes_at + interval '15 minutes', week.until)
                                        - greatest(s.opens_at, now_))) / 604800, 1)
    FROM pricing.calendar_sessions s
    CROSS JOIN (SELECT now_ + interval '7 days' AS until) week
    WHERE s.closes_at > now_ AND s.opens_at < week.until
    GROUP BY 1
$$;
COMMENT ON FUNCTION pricing.trading_ahead(timestamptz) IS
    'How much each market trades in the following week: sessions an hour, and the share of the time with new prices.';


CREATE OR REPLACE FUNCTION pricing.needs()
RETURNS TABLE (provider text, pairs bigint, units float8, bytes float8, watched_bytes float8, background_bytes float8,
               is_measured boolean)
-- With the owner's rights: a reader sees its own subscriptions only, and the figures are of everybody's.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH wanted AS (
        SELECT d.data_type, d.symbol, i.calendar, 1::bigint AS pairs, watched.is_true AS is_watched,
               false AS is_scheduled,
               pricing.ttl_of(r, o.ttl_minutes, watched.is_true) AS ttl,
               -- Held pairs that nobody has viewed for two days are not fetched.
               NOT watched.is_true
                   AND EXISTS (SELECT FROM pricing.pair_views v
                               WHERE (v.data_type, v.symbol) = (d.data_type, d.symbol)
                                 AND v.viewed_at > now_ - interval '48 hours') AS is_background
        FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
        LEFT JOIN pricing.own_ttls() o USING (data_type, symbol)
        LEFT JOIN pricing.instruments i USING (asset_class, symbol)
        CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pricing.active_subscriptions a
                                           WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol)) AS is_true) watched
        WHERE r.is_active AND coalesce(i.is_active AND i.update_mode = 'api', true)
          -- A symbol that nobody knows is asked for once a day.
          AND (d.failures = 0 OR d.owed_since IS NOT NULL)
          AND (watched.is_true
               OR EXISTS (SELECT FROM pricing.holdings h
                          WHERE (h.data_type, h.active_symbol) = (d.data_type, d.symbol)))
        UNION ALL
        -- SQL cannot read a schedule, so one slot per TTL is assumed.
        SELECT r.data_type, NULL, i.calendar, count(*), false, true, r.default_ttl_minutes, true
        FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
        WHERE r.is_active
          AND r.refresh_strategy = 'scheduled'
          AND i.is_active
          AND i.update_mode = 'api'
        GROUP BY 1, 3, 7),
    trading AS MATERIALIZED (SELECT t.* FROM pricing.trading_ahead(now_) t),
    able AS MATERIALIZED (SELECT c.*, pricing.batch_of(c, '-infinity', 'infinity') AS size
                          FROM pricing.provider_capabilities c),
    broad AS MATERIALIZED (SELECT r.data_type, (pricing.route(r.data_type, NULL)).provider
                           FROM pricing.data_type_registry r
                           WHERE r.is_active),
    routed AS (
        SELECT p.provider, w.*, coalesce(s.bytes, r.estimated_data_size_bytes) AS size,
               s.bytes IS NOT NULL AS is_measured,
               c.units_per_symbol, c.units_per_call, c.size AS batch_size, c.batch_from,
               count(*) FILTER (WHERE NOT w.is_scheduled) OVER (PARTITION BY p.provider, w.data_type) AS alike,
               CASE WHEN r.staleness_function <> 'is_market_stale' OR t.calendar IS NULL THEN 60.0 / w.ttl
                    WHEN r.fetcher = 'quote' THEN 60.0 / w.ttl * t.share
                    WHEN pricing.is_daily(r.fetcher) THEN t.sessions ELSE 60.0 / w.ttl END AS per_hour
        FROM wanted w JOIN pricing.data_type_registry r USING (data_type)
        LEFT JOIN trading t USING (calendar)
        JOIN broad USING (data_type)
        -- The provider that is asked now, which may be the second of a route: the first one then needs nothing.
        JOIN pricing.data_collectors p ON p.provider = CASE
            WHEN EXISTS (SELECT FROM pricing.provider_routing x WHERE (x.data_type, x.symbol) = (w.data_type, w.symbol))
                 OR EXISTS (SELECT FROM pricing.route_refusals f
                            WHERE (f.data_type, f.symbol) = (w.data_type, w.symbol))
            THEN (pricing.route(w.data_type, w.symbol)).provider ELSE broad.provider END
        JOIN able c ON c.provider = p.provider AND c.fetcher = r.fetcher
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (p.provider, w.data_type, 'symbol'))
    SELECT r.provider, count(*) FILTER (WHERE NOT r.is_scheduled),
           -- Calls of many symbols share the price of the call; those of too few to share one do not.
           coalesce(sum((r.units_per_symbol + r.units_per_call::float8 / CASE
                         WHEN r.alike >= r.batch_from THEN least(r.alike, r.batch_size)
                         ELSE 1 END) / r.ttl)
                    FILTER (WHERE NOT r.is_scheduled), 0),
           coalesce(sum(r.size / r.ttl) FILTER (WHERE NOT r.is_scheduled), 0)::float8,
           coalesce(sum(r.size * r.per_hour) FILTER (WHERE r.is_watched), 0)::float8,
           coalesce(sum(r.size * r.per_hour * r.pairs) FILTER (WHERE r.is_background), 0)::float8,
           bool_and(r.is_measured)
    FROM routed r GROUP BY 1;
END $$;
COMMENT ON FUNCTION pricing.needs() IS
    'What each provider is asked for at TTLs: watched or held pairs, units and bytes a minute while markets trade; '
    'bytes an hour over the next week for what is watched and for the rest; and whether all sizes are measured.';


CREATE OR REPLACE FUNCTION pricing.units_a_minute(wanted_provider text, now_ timestamptz) RETURNS float8
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT sum(each.units)
    FROM (VALUES (wanted_provider)) AS x (provider) LEFT JOIN pricing.provider_keys k USING (provider)
    CROSS JOIN LATERAL (
        SELECT min(pricing.paced_rate(
                   l, pricing.units_in_force(l, coalesce(k.key_name, 'default'), now_), now_)) AS units
        FROM pricing.provider_limits l
        WHERE l.provider = wanted_provider
          -- Until the sessions of a new calendar are known, nobody can say what a day's units allow in a minute.
          AND NOT (l.day_timezone IS NOT NULL AND EXISTS (
              SELECT FROM pricing.watched_calendars_of(wanted_provider) AS w (calendar)
              JOIN pricing.calendars c USING (calendar)
              WHERE c.filled_at IS NULL))) each
    WHERE coalesce(k.is_active, true)
$$;
COMMENT ON FUNCTION pricing.units_a_minute(text, timestamptz) IS
    'Units a minute that a provider''s keys allow while watched pairs trade; NULL = no known limit.';


CREATE OR REPLACE FUNCTION pricing.measured_rate(
    wanted_provider text, now_ timestamptz, OUT day_bytes bigint, OUT week_bytes bigint, OUT per_hour float8)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    hours float8;
BEGIN
    SELECT coalesce(sum(u.bytes) FILTER (WHERE u.hour > now_ - interval '24 hours'), 0), coalesce(sum(u.bytes), 0),
           extract(epoch FROM now_ - min(u.hour)) / 3600 INTO day_bytes, week_bytes, hours
    FROM pricing.api_data_usage u WHERE u.provider = wanted_provider AND u.hour > now_ - interval '168 hours';
    IF hours >= 24 THEN
        -- The lower rate, because a backfill of one day is no habit: what comes every day is in both.
        per_hour := least(day_bytes / 24.0, week_bytes / hours);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.measured_rate(text, timestamptz) IS
    'Bytes that a provider sent in the last 24 and 168 hours, and the lower rate in bytes an hour; NULL = less than a '
    'day was measured.';


CREATE OR REPLACE FUNCTION pricing.quota_forecasts(only_providers text[] DEFAULT NULL)
RETURNS TABLE (provider text, quota_bytes bigint, used_bytes bigint, day_bytes bigint, week_bytes bigint,
               pairs bigint, watched_bytes float8, background_bytes float8, basis text, bytes_an_hour float8,
               outlook text, backfills_stop_at timestamptz, schedules_stop_at timestamptz, ends_at timestamptz,
               sustained_bytes float8)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT n.provider, n.pairs, n.is_measured,
               -- Calls beyond the limits are not made.
               n.watched_bytes * least(
                   1, coalesce(pricing.units_a_minute(n.provider, now_) / nullif(n.units, 0), 1)) AS watched_bytes,
               n.background_bytes
        FROM pricing.needs() n
        WHERE only_providers IS NULL OR n.provider = ANY (only_providers)),
    known AS MATERIALIZED (
        SELECT p.provider, p.quota_bytes,
               pricing.bytes_used(p.provider, now_) AS used,
               pricing.leaving_bytes(p.provider, now_) AS leaving,
               m.day_bytes, m.week_bytes, m.per_hour AS measured,
               coalesce(a.pairs, 0) AS pairs,
               coalesce(a.watched_bytes, 0) AS watched,
               coalesce(a.background_bytes, 0) AS background,
               coalesce(a.is_measured, false) AS is_measured
        FROM pricing.data_collectors p
        LEFT JOIN asked a USING (provider)
        CROSS JOIN LATERAL pricing.measured_rate(p.provider, now_) m
        WHERE p.is_active AND (only_providers IS NULL OR p.provider = ANY (only_providers))),
    chosen AS (
        SELECT k.*,
               k.watched + k.background > coalesce(k.measured, 0) AS is_by_need,
               greatest(k.watched + k.background, k.measured) AS per_hour,
               k.measured IS NULL AND NOT k.is_measured AS is_unknown
        FROM known k),
    ahead AS (
        SELECT c.*,
               CASE WHEN c.is_unknown AND c.used < s.bytes THEN NULL
                    ELSE pricing.reached_at(c.leaving, c.used, c.per_hour, s.bytes, now_) END AS at,
               s.priority
        FROM chosen c
        CROSS JOIN LATERAL (
            SELECT v.priority, pricing.quota_for(c.quota_bytes, v.priority) AS bytes
            FROM (VALUES (-2), (-1), (0)) AS v (priority)) s)
    SELECT a.provider, a.quota_bytes, a.used, a.day_bytes, a.week_bytes, a.pairs, a.watched, a.background,
           CASE WHEN a.is_unknown THEN NULL
                WHEN a.is_by_need THEN 'wanted'
                ELSE 'measured' END,
           CASE WHEN NOT a.is_unknown THEN a.per_hour END,
           CASE WHEN min(a.at) FILTER (WHERE a.priority = 0) IS NOT NULL THEN 'ends'
                WHEN a.is_unknown THEN 'unknown'
                ELSE 'lasts' END,
           min(a.at) FILTER (WHERE a.priority = -2),
           min(a.at) FILTER (WHERE a.priority = -1),
           min(a.at) FILTER (WHERE a.priority = 0),
           pricing.sustained_rate(a.leaving, a.used, pricing.quota_for(a.quota_bytes, -1) - a.quota_bytes / 50)
    FROM ahead a
    GROUP BY a.provider, a.quota_bytes, a.used, a.day_bytes, a.week_bytes, a.pairs, a.watched, a.background,
             a.is_unknown, a.is_by_need, a.per_hour, a.leaving
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.quota_forecasts(text[]) IS
    'When each active provider''s quota reaches the steps of backfills, schedules and viewers without stretching, by '
    'the larger of what is wanted and measured (basis); outlook: ends, lasts or unknown.';


CREATE OR REPLACE FUNCTION pricing.day_forecasts(only_providers text[] DEFAULT NULL)
RETURNS TABLE (provider text, units bigint, used bigint, hour_units bigint, basis text, outlook text,
               ends_at timestamptz, until timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH known AS MATERIALIZED (
        SELECT l.provider, allowed.units, spent.today, spent.last_hour, d.until,
               upper(pricing.trading_hours(l.provider, d.since, d.until)) AS paced_until
        FROM pricing.provider_limits l
        JOIN pricing.data_collectors p USING (provider)
        CROSS JOIN LATERAL (SELECT date_trunc('day', now_, l.day_timezone) AS since,
                                   pricing.next_day(now_, l.day_timezone) AS until) d
        CROSS JOIN LATERAL (SELECT sum(pricing.units_in_force(l, k.key_name, now_))::bigint AS units
                            FROM pricing.key_allowances(l.provider, now_) k WHERE k.is_active) allowed
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(c.units) FILTER (WHERE c.counted_at > pricing.limit_start(l, now_)), 0)::bigint
                       AS today,
                   coalesce(sum(c.units) FILTER (WHERE c.counted_at > now_ - interval '1 hour'), 0)::bigint
                       AS last_hour
            FROM pricing.counted_calls c
            WHERE c.provider = l.provider
              AND c.counted_at > least(pricing.limit_start(l, now_), now_ - interval '1 hour')) spent
        WHERE l.day_timezone IS NOT NULL
          AND p.is_active
          AND allowed.units > 0
          AND (only_providers IS NULL OR l.provider = ANY (only_providers))),
    ahead AS (
        SELECT k.*,
               CASE WHEN k.today >= k.units THEN now_
                    -- However much is wanted, they come evenly until trading is over.
                    WHEN k.paced_until > now_ THEN NULL
                    ELSE now_ + interval '1 hour' * ((k.units - k.today)::float8 / nullif(k.last_hour, 0)) END AS at
        FROM known k)
    SELECT DISTINCT ON (a.provider)
           a.provider, a.units, a.today, a.last_hour,
           CASE WHEN a.paced_until > now_ THEN 'paced' ELSE 'measured' END,
           CASE WHEN a.at < a.until THEN 'ends' ELSE 'lasts' END,
           CASE WHEN a.at < a.until THEN a.at END,
           a.until
    FROM ahead a
    ORDER BY a.provider, least(a.at, a.until), a.units - a.today;
END $$;
COMMENT ON FUNCTION pricing.day_forecasts(text[]) IS
    'When each active provider''s units of this calendar day are used up: after trading while they are spread over it '
    '(basis paced), then at the last hour''s pace (measured); of several limits, the first to end.';


CREATE OR REPLACE FUNCTION pricing.stretch_ttls() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    near text[];
    relaxed text[];
    seen record;
    known pricing.ttl_stretches;
BEGIN
    SELECT coalesce(array_agg(p.provider), '{}') INTO near
    FROM pricing.data_collectors p WHERE p.is_active AND pricing.bytes_used(p.provider, now_) >= p.quota_bytes / 20;
    WITH gone AS (
        DELETE FROM pricing.ttl_stretches s WHERE s.provider <> ALL (near) RETURNING s.provider)
    SELECT coalesce(array_agg(g.provider), '{}') INTO relaxed FROM gone g;
    IF near <> '{}' THEN
        FOR seen IN SELECT * FROM pricing.quota_forecasts(near) LOOP
            SELECT * INTO known FROM pricing.ttl_stretches s WHERE s.provider = seen.provider FOR UPDATE;
            IF pricing.note_stretch(
                   known, seen.provider, seen.watched_bytes, seen.background_bytes, seen.sustained_bytes,
                   seen.ends_at, now_) THEN
                relaxed := relaxed || seen.provider;
            END IF;
        END LOOP;
    END IF;
    IF relaxed = '{}' THEN
        RETURN 0;
    END IF;
    RETURN pricing.judge_stretched(relaxed);
END $$;
COMMENT ON FUNCTION pricing.stretch_ttls() IS
    'Computes by how much TTLs are stretched, of providers that have used a twentieth of their quota; returns how '
    'many pairs a smaller stretch makes due.';


CREATE OR REPLACE FUNCTION pricing.note_stretch(
    known pricing.ttl_stretches, wanted_provider text, watched float8, background float8, sustained float8,
    projected_end timestamptz, now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    elapsed float8 := least(greatest(coalesce(extract(epoch FROM now_ - known.noted_at), 300), 0), 604800);
    gain float8 := 1 - exp(-greatest(elapsed, 1) / 86400);
    weight float8 := coalesce(known.need_weight, 0) * (1 - gain) + gain;
    need float8 := coalesce(known.watched_need, 0) + (watched - coalesce(known.watched_need, 0)) * gain / weight;
    before record;
    wanted record;
BEGIN
    need := CASE WHEN need < 1 THEN 0 ELSE need END; -- a float may not become ever smaller
    SELECT coalesce(known.watched_factor, 1) AS watched_factor,
           coalesce(known.background_factor, 1) AS background_factor
    INTO before;
    -- The average of a day, because people sleep, and current demand, because viewers who left need nothing.
    wanted := pricing.stretch_factors(least(watched, need), background, sustained);
    wanted.watched_factor := pricing.next_factor(before.watched_factor, wanted.watched_factor, elapsed);
    wanted.background_factor := pricing.next_factor(before.background_factor, wanted.background_factor, elapsed);
    INSERT INTO pricing.ttl_stretches AS s
        (provider, watched_factor, background_factor, watched_need, need_weight, ends_at, noted_at)
    VALUES (wanted_provider, wanted.watched_factor, wanted.background_factor, need, weight, projected_end, now_)
    ON CONFLICT ON CONSTRAINT ttl_stretches_pkey DO UPDATE
    SET watched_factor = excluded.watched_factor, background_factor = excluded.background_factor,
        watched_need = excluded.watched_need, need_weight = excluded.need_weight,
        ends_at = excluded.ends_at, noted_at = excluded.noted_at;
    RETURN wanted.watched_factor < before.watched_factor OR wanted.background_factor < before.background_factor;
END $$;
COMMENT ON FUNCTION pricing.note_stretch(
    pricing.ttl_stretches, text, float8, float8, float8, timestamptz, timestamptz) IS
    'Stores by how much a provider''s TTLs are stretched now, from the previous factor and what is needed and can be '
    'sustained; returns whether it is less than before.';


CREATE OR REPLACE FUNCTION pricing.next_factor(before float8, wanted float8, elapsed float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    -- A viewer who stays for some minutes must not slow down everyone else.
    wanted := least(wanted, before * 2 ^ (elapsed / 3600));
    -- Two percent are noise, and each decrease makes the waiting pairs be judged again.
    RETURN CASE WHEN wanted > 1 AND abs(wanted - before) <= 0.02 * before THEN before ELSE wanted END;
END $$;
COMMENT ON FUNCTION pricing.next_factor(float8, float8, float8) IS
    'The factor after this many seconds: it at most doubles in an hour, shrinks at once, and ignores changes of two '
    'percent or less.';


CREATE OR REPLACE FUNCTION pricing.judge_stretched(providers text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    judged integer;
BEGIN
    WITH kinds AS MATERIALIZED (
        SELECT r AS kind, pricing.stretch_of(r.data_type, NULL, now_) AS factors,
               NOT pricing.differs_by_symbol(r.data_type) AS are_alike
        FROM pricing.data_type_registry r
        WHERE EXISTS (SELECT FROM pricing.demand x WHERE x.data_type = r.data_type AND x.stretched_from IS NOT NULL)
          AND (providers IS NULL
               OR r.data_type IN (SELECT y.data_type FROM pricing.provider_routing y
                                  WHERE y.provider = ANY (providers)))),
    own AS MATERIALIZED (
        SELECT o.* FROM pricing.own_ttls(ARRAY(SELECT (k.kind).data_type FROM kinds k)) o)
    UPDATE pricing.demand d SET due_at = now_
    FROM (SELECT x.data_type, x.symbol FROM kinds k
          JOIN pricing.demand x ON x.data_type = (k.kind).data_type AND x.stretched_from IS NOT NULL
          LEFT JOIN own o ON (o.data_type, o.symbol) = (x.data_type, x.symbol)
          CROSS JOIN LATERAL (
              SELECT pricing.ttl_of(k.kind, o.ttl_minutes, NOT x.is_background) AS minutes,
                     (CASE WHEN k.are_alike THEN k.factors ELSE pricing.stretch_of(x.data_type, x.symbol, now_) END)
                     [CASE WHEN x.is_background THEN 2 ELSE 1 END] AS factor) ttl
          WHERE x.became_due_at IS NULL
            AND x.due_at > now_
            AND coalesce(x.backoff_until <= now_, true)
            AND x.due_at > x.stretched_from + make_interval(secs => ttl.minutes * 60 * (ttl.factor - 1) + 1)
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    GET DIAGNOSTICS judged = ROW_COUNT;
    RETURN judged;
END $$;
COMMENT ON FUNCTION pricing.judge_stretched(text[]) IS
    'Makes pairs due that wait longer than their TTL is stretched now, of the data types of some providers (NULL = '
    'all); returns how many pairs.';


CREATE OR REPLACE FUNCTION pricing.differs_by_symbol(wanted_type text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pricing.provider_routing r WHERE r.data_type = wanted_type AND r.symbol IS NOT NULL)
        OR EXISTS (SELECT FROM pricing.route_refusals f WHERE f.data_type = wanted_type);
END $$;
COMMENT ON FUNCTION pricing.differs_by_symbol(text) IS
    'Whether some symbol of a data type has its own providers, by a rule or because one has refused it.';


CREATE OR REPLACE FUNCTION pricing.are_ttls_stretched() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pricing.ttl_stretches s WHERE greatest(s.watched_factor, s.background_factor) > 1);
END $$;
COMMENT ON FUNCTION pricing.are_ttls_stretched() IS
    'Whether any provider''s TTLs are stretched; stretch_of says by how much.';


CREATE OR REPLACE FUNCTION pricing.stretches_in_force(now_ timestamptz) RETURNS SETOF pricing.ttl_stretches
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT s.* FROM pricing.ttl_stretches s
    WHERE s.noted_at BETWEEN now_ - interval '15 minutes' AND now_ + interval '15 minutes'
$$;
COMMENT ON FUNCTION pricing.stretches_in_force(timestamptz) IS
    'By how much TTLs are stretched at a time; a factor that was not updated for long counts as none.';


CREATE OR REPLACE FUNCTION pricing.stretch_of(wanted_type text, wanted_symbol text, now_ timestamptz) RETURNS float8[]
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
BEGIN
    RETURN (
        WITH able AS (
            SELECT coalesce(s.watched_factor, 1) AS watched, coalesce(s.background_factor, 1) AS background,
                   t.trouble IS NULL AND f.provider IS NULL AS is_well
            FROM pricing.provider_routing r JOIN pricing.data_type_registry k ON k.data_type = r.data_type
            JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
            JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
            JOIN pricing.provider_state t ON t.provider = r.provider
            LEFT JOIN pricing.stretches_in_force(now_) s ON s.provider = r.provider
            LEFT JOIN pricing.route_refusals f
                ON (f.data_type, f.symbol, f.provider) = (r.data_type, wanted_symbol, r.provider)
                AND f.refused_until > now_
            WHERE r.data_type = wanted_type
              AND r.is_active
              AND (r.symbol = wanted_symbol OR r.symbol IS NULL))
        -- Where a route names another provider with room, that one is asked as soon as the first has none: nothing has
        -- to wait.
        SELECT ARRAY[coalesce(min(a.watched) FILTER (WHERE a.is_well), min(a.watched), 1),
                     coalesce(min(a.background) FILTER (WHERE a.is_well), min(a.background), 1)] FROM able a);
END $$;
COMMENT ON FUNCTION pricing.stretch_of(text, text, timestamptz) IS
    'By how much a pair''s TTL is stretched now, while watched and while not: the least over its route''s providers '
    'that are not in trouble and have not refused it (no symbol = one without rules).';
