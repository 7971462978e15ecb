-- Thins old quotes, and keeps samples of freshness for charts. prune.sql deletes rows that are too old.

CREATE OR REPLACE FUNCTION pricing.thin_history(at_most integer DEFAULT 20000) RETURNS integer
-- With the owner's rights: no worker may delete prices but by this policy, which only the owner sets.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pair record;
    up_to timestamptz;
    deleted integer;
    total integer := 0;
BEGIN
    FOR pair IN
        SELECT l.data_type, l.symbol, coalesce(t.until, '-infinity') AS since, due.until,
               make_interval(mins => r.thin_to_minutes) AS span
        FROM pricing.data_type_registry r
        CROSS JOIN LATERAL (
            SELECT pg_catalog.date_trunc('day', now_ - make_interval(days => r.thin_after_days), 'UTC') AS until) due
        JOIN pricing.latest_prices l USING (data_type)
        LEFT JOIN pricing.thinned t ON (t.data_type, t.symbol) = (l.data_type, l.symbol)
        WHERE r.thin_after_days IS NOT NULL AND r.fetcher = 'quote' AND coalesce(t.until < due.until, true)
        ORDER BY t.until NULLS FIRST, 1, 2 LIMIT 500
    LOOP
        -- Whole days, and of a long history no more rows at once than requested.
        SELECT least(pair.until, pg_catalog.date_trunc('day', max(h.observed_at), 'UTC') + interval '24 hours')
        INTO up_to
        FROM (SELECT x.observed_at FROM pricing.price_history x
              WHERE x.data_type = pair.data_type AND x.symbol = pair.symbol
                AND x.observed_at >= pair.since AND x.observed_at < pair.until
              ORDER BY x.observed_at LIMIT greatest(at_most - total, 1)) h;
        WITH kept AS (
            SELECT h.observed_at, pg_catalog.lead(h.observed_at) OVER (ORDER BY h.observed_at) AS next_at
            FROM pricing.price_history h
            WHERE h.data_type = pair.data_type AND h.symbol = pair.symbol
              AND h.observed_at >= pair.since AND h.observed_at < up_to),
        gone AS (
            DELETE FROM pricing.price_history h USING kept k
            WHERE h.data_type = pair.data_type AND h.symbol = pair.symbol AND h.observed_at = k.observed_at
              AND pg_catalog.date_bin(pair.span, k.next_at, '2000-01-01 00:00:00+00')
                  = pg_catalog.date_bin(pair.span, k.observed_at, '2000-01-01 00:00:00+00')
            RETURNING h.observed_at),
        noted AS (
            INSERT INTO pricing.data_changes (data_type, month, changes)
            SELECT pair.data_type, pricing.utc_month(g.observed_at), count(*)
            FROM gone g
            GROUP BY 2)
        SELECT count(*) INTO deleted FROM gone;
        INSERT INTO pricing.thinned AS t (data_type, symbol, until)
        VALUES (pair.data_type, pair.symbol, coalesce(up_to, pair.until))
        ON CONFLICT ON CONSTRAINT thinned_pkey DO UPDATE SET until = excluded.until;
        total := total + deleted;
        EXIT WHEN total >= at_most;
    END LOOP;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.thin_history(integer) IS
    'Thins quotes older than their type''s thin_after_days to the last one of every thin_to_minutes, up to this many '
    'rows; returns how many were deleted.';


CREATE OR REPLACE FUNCTION pricing.sample_freshness() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    samples integer;
BEGIN
    -- It does not wait for locks: the next sample is only five minutes away.
    PERFORM pg_catalog.set_config('lock_timeout', '100ms', true);
    INSERT INTO pricing.freshness_samples (data_type, at, watched, fresh, late, oldest_age)
    SELECT w.data_type, now_, count(*), count(*) FILTER (WHERE w.state = 'fresh'),
           count(*) FILTER (WHERE w.state = 'late'), now_ - min(w.fetched_at)
    FROM pricing.watched_pairs() w
    GROUP BY 1
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS samples = ROW_COUNT;
    RETURN samples;
END $$;
COMMENT ON FUNCTION pricing.sample_freshness() IS
    'Records how each watched type serves its viewers now; returns how many types.';
