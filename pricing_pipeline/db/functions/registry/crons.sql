-- Cron expressions of schedules. An expression that is refused here reaches neither the registry nor Dagster, which
-- would load no schedule for it, or choose other times.

CREATE OR REPLACE FUNCTION pricing.cron_values(field text, lowest integer, highest integer, names text[] DEFAULT '{}')
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = '' AS $$
DECLARE
    item text;
    parts text[];
    bounds integer[];
    found integer[];
BEGIN
    FOREACH item IN ARRAY pg_catalog.string_to_array(pg_catalog.lower(field), ',') LOOP
        parts := pg_catalog.regexp_match(
            item, '^(\*|(?:[0-9]{1,2}|[a-z]{3})(?:-(?:[0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$');
        SELECT pg_catalog.array_agg(CASE WHEN v.word ~ '^[0-9]+$' THEN v.word::integer
                                         ELSE pg_catalog.array_position(names, v.word) - 1 + lowest END
                                    ORDER BY v.place)
        INTO bounds
        FROM pg_catalog.unnest(pg_catalog.string_to_array(nullif(parts[1], '*'), '-'))
            WITH ORDINALITY AS v (word, place);
        IF parts[1] = '*' THEN
            bounds := ARRAY[lowest, highest];
        ELSIF pg_catalog.cardinality(bounds) = 1 THEN
            bounds := bounds || CASE WHEN parts[2] IS NULL THEN bounds[1] ELSE highest END;
        END IF;
        IF (lowest <= bounds[1] AND bounds[1] <= bounds[2] AND bounds[2] <= highest
            AND coalesce(parts[2]::integer, 1) BETWEEN 1 AND greatest(bounds[2] - bounds[1], 1)) IS NOT TRUE THEN
            RETURN NULL;
        END IF;
        found := found || ARRAY(
            SELECT pg_catalog.generate_series(bounds[1], bounds[2], coalesce(parts[2]::integer, 1)));
    END LOOP;
    RETURN found;
END $$;
COMMENT ON FUNCTION pricing.cron_values(text, integer, integer, text[]) IS
    'The values that a field of a cron expression means; NULL unless it has only numbers, names, *, ranges, steps and '
    'lists.';


CREATE OR REPLACE FUNCTION pricing.cron_fault(schedule text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = '' AS $$
DECLARE
    fields text[] := pg_catalog.string_to_array(schedule, ' ');
    days integer[] := pricing.cron_values(fields[3], 1, 31);
    months integer[] := pricing.cron_values(fields[4], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
BEGIN
    IF pg_catalog.cardinality(fields) <> 5 OR pricing.cron_values(fields[1], 0, 59) IS NULL
       OR pricing.cron_values(fields[2], 0, 23) IS NULL OR days IS NULL OR months IS NULL
       OR pricing.cron_values(fields[5], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}') IS NULL THEN
        RETURN 'is not a cron expression. Write it like 30 23 * * *: minute, hour, day, month, weekday, with one space '
               'between them. Each is a number, a name such as mon, a *, or a range, a step or a list of these';
    ELSIF (SELECT min(d) FROM pg_catalog.unnest(days) d) > (
        SELECT max(CASE WHEN m = 2 THEN 29 WHEN m IN (4, 6, 9, 11) THEN 30 ELSE 31 END)
        FROM pg_catalog.unnest(months) m) THEN
        -- With a weekday it would have a slot, but not on the day that its author meant.
        RETURN 'names a day that never comes. Give one that its months have';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.cron_fault(text) IS
    'What is wrong with a cron expression, for its author; NULL = it has a next time.';
