-- How watched pairs are served: the one definition for freshness, checks, status and samples, and of late for why.

CREATE OR REPLACE FUNCTION pricing.watched_pairs(only_types text[] DEFAULT NULL)
RETURNS TABLE (data_type text, symbol text, state text, owed_since timestamptz, fetched_at timestamptz,
               is_outdated boolean)
-- Every table is read once. Looked up one by one, 80,000 pairs cost a million pages; planners expect a handful of
-- pairs.
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_nestloop = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH markets AS MATERIALIZED (
        SELECT c.calendar, past.session::timestamp AT TIME ZONE 'UTC' AS newest_session, past.closes_at AS closed_at,
               (SELECT s.opens_at FROM pricing.calendar_sessions s
                WHERE s.calendar = c.calendar AND s.closes_at > now_ ORDER BY s.closes_at LIMIT 1) AS opens_at
        FROM pricing.calendars c CROSS JOIN LATERAL (
            SELECT s.session, s.closes_at FROM pricing.calendar_sessions s
            WHERE s.calendar = c.calendar AND s.closes_at <= now_ ORDER BY s.closes_at DESC LIMIT 1) past)
    SELECT p.data_type, p.symbol,
           CASE WHEN p.update_mode <> 'api' OR NOT p.is_listed THEN 'paused'
                -- A viewer without a price, or with one of another day, waits for the first.
                WHEN owed.since <= now_ - CASE WHEN p.fetched_at IS NULL OR old.is_outdated THEN interval '30 seconds'
                                               ELSE owed.grace END
                THEN 'late'
                WHEN owed.since <= now_ THEN 'due'
                WHEN p.backoff_until > now_ THEN 'refused'
                -- A time ahead of the clock proves nothing: the clock was set back.
                WHEN p.fetched_at <= now_ + interval '1 minute' IS NOT TRUE THEN 'due'
                -- Mostly the newest session says enough, without a call for each pair.
                WHEN r.fetcher = 'quote' AND m.opens_at > now_ AND p.fetched_at >= m.closed_at
                     AND p.observed_at >= m.closed_at - interval '20 minutes' THEN 'fresh'
                WHEN r.fetcher <> 'quote' AND p.observed_at >= m.newest_session THEN 'fresh'
                WHEN pricing.is_source_old(r, p.symbol, p.observed_at, p.fetched_at, ttl.minutes) THEN 'source_old'
                ELSE 'fresh' END,
           CASE WHEN owed.since <= now_ THEN owed.since END, p.fetched_at, coalesce(old.is_outdated, false)
    FROM (
        -- The registry's wide rows are joined last. Joined before, they made each hash many times as large.
        SELECT d.*, watched.since, l.fetched_at, l.observed_at, o.ttl_minutes,
               i.update_mode, i.is_active AS is_listed, i.calendar
        -- A pair outlives its last viewer; without viewers, no price is owed.
        FROM (SELECT a.data_type, a.symbol, min(a.subscribed_at) AS since FROM pricing.active_subscriptions a
              WHERE only_types IS NULL OR a.data_type = ANY (only_types) GROUP BY 1, 2) watched
        JOIN pricing.demand d USING (data_type, symbol)
        JOIN (SELECT k.data_type, k.asset_class FROM pricing.data_type_registry k
              WHERE k.is_active) kind USING (data_type)
        LEFT JOIN pricing.latest_answers l USING (data_type, symbol)
        LEFT JOIN pricing.own_ttls(only_types) o USING (data_type, symbol)
        LEFT JOIN pricing.instruments i ON i.asset_class = kind.asset_class AND i.symbol = d.symbol OFFSET 0) p
    JOIN pricing.data_type_registry r ON r.data_type = p.data_type
    LEFT JOIN markets m ON m.calendar = p.calendar
    CROSS JOIN LATERAL (SELECT pricing.ttl_of(r, p.ttl_minutes) AS minutes OFFSET 0) ttl
    CROSS JOIN LATERAL (SELECT p.fetched_at + make_interval(mins => ttl.minutes) AS ends_at OFFSET 0) ends
    CROSS JOIN LATERAL (
        SELECT ends.ends_at,
               -- A TTL that was made longer since counts even before the next check has seen it.
               least(p.owed_since, p.became_due_at,
                     CASE WHEN p.became_due_at IS NULL AND r.staleness_function = 'is_data_stale'
                          THEN greatest(p.due_at, ends.ends_at)
                          WHEN p.became_due_at IS NULL THEN p.due_at END,
                     CASE WHEN coalesce(p.fetched_at < p.stretched_from, true) THEN p.stretched_from END) AS told,
               greatest(interval '30 seconds', make_interval(mins => ttl.minutes) / 4) AS grace OFFSET 0) known
    CROSS JOIN LATERAL (
        SELECT known.grace, CASE
            -- A pair that was not yet judged for a viewer, or is older than its TTL whatever its due_at says, is owed
            -- since its first viewer came.
            WHEN known.told > now_ AND coalesce(p.backoff_until <= now_, true)
                 AND CASE WHEN p.is_background THEN pricing.is_pair_stale(p.data_type, p.symbol)
                          ELSE known.ends_at <= now_
                              AND r.staleness_function = 'is_data_stale'
                              AND r.table_name = 'latest_price_' || r.data_type END
            THEN greatest(known.ends_at, p.since)
            ELSE known.told END AS since OFFSET 0) owed
    CROSS JOIN LATERAL (
        SELECT owed.since <= now_
            AND known.ends_at + owed.grace <= now_
            AND p.since >= owed.since AS is_outdated) old
    UNION ALL
    -- Pairs that a client has begun to watch, and that no worker has served yet.
    SELECT r.data_type, p.symbol, CASE
        WHEN min(p.requested_at) <= now_ - interval '30 seconds' THEN 'late'
        ELSE 'due' END,
           min(p.requested_at), NULL, false
    FROM pricing.pair_requests p JOIN pricing.data_type_registry r USING (data_type)
    WHERE p.kind = 'watched' AND r.is_active AND (only_types IS NULL OR r.data_type = ANY (only_types))
      AND NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (p.data_type, p.symbol) OFFSET 0)
    GROUP BY r.data_type, p.symbol;
END $$;
COMMENT ON FUNCTION pricing.watched_pairs(text[]) IS
    'The state of each watched pair of these (or all active) data types: paused, late, due, refused, source_old or '
    'fresh, and whether its price was outdated when its first viewer came.';
