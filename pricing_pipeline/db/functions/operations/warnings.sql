-- Warnings: noted in the caller's transaction, and counted, despite a rollback, by the program that hears them.

CREATE OR REPLACE FUNCTION pricing.warn(from_source text, about text, message text, state text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- Programs recognise it by the name of the schema, and find its parts in the other fields (db/notices.py).
    -- A notice, because the server logs each warning: one that repeated wrote 200 MB a day.
    RAISE NOTICE '% of %: % (%)', from_source, about, message, state
        USING SCHEMA = 'pricing.warn', TABLE = coalesce(from_source, ''), COLUMN = coalesce(about, ''),
              DATATYPE = coalesce(state, ''), CONSTRAINT = coalesce(left(message, 1000), '');
    -- Rows are only added, never changed: two sessions with the same warning must not wait for each other.
    INSERT INTO pricing.warnings (at, source, subject, sqlstate, message)
    SELECT now_, from_source, about, state, left(warn.message, 1000)
    WHERE NOT EXISTS (
        SELECT FROM pricing.warnings w
        WHERE w.source = from_source AND w.subject = about AND w.at > now_ - interval '1 minute' AND w.at <= now_
          AND w.message = left(warn.message, 1000));
END $$;
COMMENT ON FUNCTION pricing.warn(text, text, text, text) IS
    'Records trouble that stopped nothing else, in the table and as a notice, which is counted even after a rollback.';


CREATE OR REPLACE FUNCTION pricing.count_warnings(heard jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    INSERT INTO pricing.warning_counts AS w (since, source, subject, sqlstate, times, last_at, last_message)
    SELECT date_bin('10 minutes', now_, '2000-01-01 00:00+00'), left(h.source, 200), left(h.subject, 200),
           left(h.sqlstate, 5), sum(h.times),
           now_ - make_interval(secs => greatest(min(h.seconds_ago), 0)),
           left((array_agg(h.message ORDER BY h.seconds_ago))[1], 1000)
    FROM jsonb_to_recordset(heard)
        AS h (source text, subject text, sqlstate text, times bigint, seconds_ago float8, message text)
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (since, source, subject, sqlstate)
        DO UPDATE SET times = w.times + excluded.times, last_at = greatest(w.last_at, excluded.last_at),
                      last_message = excluded.last_message;
END $$;
COMMENT ON FUNCTION pricing.count_warnings(jsonb) IS
    'Adds the warnings that a program has received; waits at most a second for a locked row.';


CREATE OR REPLACE FUNCTION pricing.recent_warnings(back interval)
RETURNS TABLE (source text, subject text, times bigint, last_at timestamptz, sqlstate text, message text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH n AS (SELECT pricing.clock() AS at),
    kept AS (
        SELECT w.source, w.subject, count(*) AS times, max(w.at) AS last_at,
               (array_agg(w.sqlstate ORDER BY w.at DESC))[1] AS sqlstate,
               (array_agg(w.message ORDER BY w.at DESC))[1] AS message
        FROM n JOIN pricing.warnings w ON w.at > n.at - back AND w.at <= n.at
        GROUP BY 1, 2),
    counted AS (
        SELECT c.source, c.subject, sum(c.times)::bigint AS times, max(c.last_at) AS last_at,
               nullif((array_agg(c.sqlstate ORDER BY c.last_at DESC))[1], '') AS sqlstate,
               (array_agg(c.last_message ORDER BY c.last_at DESC))[1] AS message
        FROM n
        JOIN pricing.warning_counts c ON c.last_at > n.at - back AND c.last_at <= n.at AND c.since > n.at - back
        WHERE NOT (c.source = 'postgresql' AND c.subject = 'NOTICE')
        GROUP BY 1, 2)
    -- The same warning is in both if its transaction was committed and a program of ours heard it: the larger counts.
    SELECT source, subject, greatest(k.times, c.times), greatest(k.last_at, c.last_at),
           CASE WHEN c.last_at > k.last_at OR k.last_at IS NULL THEN c.sqlstate ELSE k.sqlstate END,
           CASE WHEN c.last_at > k.last_at OR k.last_at IS NULL THEN c.message ELSE k.message END
    FROM kept k FULL JOIN counted c USING (source, subject)
$$;
COMMENT ON FUNCTION pricing.recent_warnings(interval) IS
    'Recent warnings by source and subject: minimum number, last time and last message.';
