-- How long tasks take from queueing to stored, as a histogram that only grows. Nothing is written when a task ends: a
-- duty reads what has ended since.

CREATE OR REPLACE FUNCTION pricing.task_time_bounds() RETURNS float8[]
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT '{1,2,5,10,20,30,60,120,300,600,1800,3600,21600,86400}'::float8[]
$$;
COMMENT ON FUNCTION pricing.task_time_bounds() IS
    'The upper bounds in seconds of task_times.buckets; add more only at the end.';


CREATE OR REPLACE FUNCTION pricing.count_task_times() RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    -- A task is seen when its transaction has ended, and the server ends those that idle for 30 s.
    until timestamptz := pricing.clock() - interval '1 minute';
    -- A time ahead of the clock dates from before it was set back.
    counted timestamptz := least(
        coalesce((SELECT max(t.counted_until) FROM pricing.task_times t), until - interval '1 hour'), until);
    week bigint := floor(extract(epoch FROM until) / 604800)::bigint;
    total bigint := 0;
BEGIN
    FOR back IN 0..1 LOOP
        CONTINUE WHEN back = 1 AND counted >= to_timestamp(week * 604800);
        total := total + pricing.count_leaf_times(((week - back) % 8)::text, counted, until);
    END LOOP;
    total := total + pricing.count_leaf_times('rest', counted, until);
    UPDATE pricing.task_times t SET counted_until = until
    WHERE (t.data_type, t.wanted_by) = (SELECT x.data_type, x.wanted_by FROM pricing.task_times x
                                        ORDER BY x.counted_until DESC, 1, 2 LIMIT 1);
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.count_task_times() IS
    'Adds tasks completed since the last call, up to a minute ago, to task_times; returns how many.';


CREATE OR REPLACE FUNCTION pricing.count_leaf_times(leaf text, counted timestamptz, until timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    name text := 'pricing.api_call_queue_completed_' || leaf;
    to_page bigint;
    from_page bigint;
    looked bigint;
    newer bigint;
    total bigint := 0;
BEGIN
    IF NOT pricing.is_leaf(leaf) THEN
        RETURN 0;
    END IF;
    to_page := pg_relation_size(name::regclass) / current_setting('block_size')::bigint;
    -- Newer tasks are at the end, so the rest of a leaf of millions is not read. The few that fill a gap further up are
    -- not counted.
    WHILE to_page > 0 LOOP
        from_page := greatest(to_page - 512, 0);
        EXECUTE pg_catalog.format($query$
            WITH done AS (
                SELECT c.data_type,
                       CASE WHEN c.priority > 0 THEN 'viewers'
                            WHEN c.priority = 0 THEN 'holdings'
                            WHEN c.priority = -1 THEN 'schedules'
                            ELSE 'backfills' END AS wanted_by,
                       greatest(extract(epoch FROM c.finished_at - c.enqueued_at), 0)::float8 AS seconds,
                       c.finished_at > $1 AS is_newer,
                       c.finished_at > $1 AND c.finished_at <= $2 AS is_over
                FROM %s c
                WHERE c.ctid >= $3 AND c.ctid < $4 OFFSET 0),
            added AS (
                SELECT d.data_type, d.wanted_by, count(*) AS times, sum(d.seconds) AS total_seconds,
                       ARRAY(SELECT count(*) FILTER (WHERE s <= b)
                             FROM unnest(pricing.task_time_bounds()) WITH ORDINALITY AS u (b, place)
                             CROSS JOIN unnest(array_agg(d.seconds)) AS s
                             GROUP BY u.place ORDER BY u.place) AS buckets
                FROM done d WHERE d.is_over GROUP BY 1, 2),
            stored AS (
                INSERT INTO pricing.task_times AS t (data_type, wanted_by, buckets, times, total_seconds, counted_until)
                SELECT a.data_type, a.wanted_by, a.buckets, a.times, a.total_seconds, $1 FROM added a ORDER BY 1, 2
                ON CONFLICT (data_type, wanted_by) DO UPDATE
                SET times = t.times + excluded.times, total_seconds = t.total_seconds + excluded.total_seconds,
                    buckets = ARRAY(SELECT coalesce(o.n, 0) + e.n
                                    FROM unnest(excluded.buckets) WITH ORDINALITY AS e (n, place)
                                    LEFT JOIN unnest(t.buckets) WITH ORDINALITY AS o (n, place) USING (place)
                                    ORDER BY place)
                RETURNING 1)
            SELECT (SELECT count(*) FROM done),
                   (SELECT count(*) FROM done d WHERE d.is_newer),
                   total + coalesce((SELECT sum(a.times) FROM added a), 0)
            FROM (SELECT $5 AS total) t
            $query$, name)
        INTO looked, newer, total
        USING counted, until, pg_catalog.format('(%s,0)', from_page)::tid,
              pg_catalog.format('(%s,0)', to_page)::tid, total;
        -- Pages at the end may be empty still: the server adds several at once.
        EXIT WHEN looked > 0 AND newer = 0;
        to_page := from_page;
    END LOOP;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.count_leaf_times(text, timestamptz, timestamptz) IS
    'Adds tasks completed in a leaf between two times to task_times; returns how many.';
