-- Versions of what is stored. Whoever stores notes what has changed, in the same transaction and in rows of its own, so
-- that no two wait for each other. The changes get their numbers later, behind one lock: the order of the numbers is the
-- order of the commits, and a reader who has seen a number has missed nothing before it.

CREATE OR REPLACE FUNCTION pricing.utc_month(at timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date $$;
COMMENT ON FUNCTION pricing.utc_month(timestamptz) IS 'The first day of the UTC month of a time.';


CREATE OR REPLACE FUNCTION pricing.note_changes(changed_type text, times timestamptz[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.data_changes (data_type, month, changes)
    SELECT changed_type, pricing.utc_month(t), count(*) FROM unnest(times) AS t GROUP BY 2
$$;
COMMENT ON FUNCTION pricing.note_changes(text, timestamptz[]) IS
    'Notes that the values of these times have changed in the history of a type.';


CREATE OR REPLACE FUNCTION pricing.note_latest_changes(changed_type text, changes bigint) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.data_changes (data_type, month, changes)
    SELECT changed_type, '-infinity', note_latest_changes.changes WHERE note_latest_changes.changes > 0
$$;
COMMENT ON FUNCTION pricing.note_latest_changes(text, bigint) IS
    'Notes that so much of what is latest of a type has changed.';


CREATE OR REPLACE FUNCTION pricing.number_changes() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    numbered integer;
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.data_changes) OR NOT pricing.take_turn('number_changes') THEN
        RETURN 0;
    END IF;
    WITH taken AS (
        DELETE FROM pricing.data_changes RETURNING data_type, month, changes),
    summed AS (
        SELECT t.data_type, t.month, sum(t.changes) AS changes FROM taken t
        JOIN pricing.data_type_registry USING (data_type)
        GROUP BY 1, 2 ORDER BY 1, 2)
    INSERT INTO pricing.data_versions AS v (data_type, month, version, changes)
    SELECT s.data_type, s.month, nextval('pricing.data_version_seq'), s.changes FROM summed s
    ON CONFLICT (data_type, month) DO UPDATE
        SET version = excluded.version, changes = v.changes + excluded.changes;
    GET DIAGNOSTICS numbered = ROW_COUNT;
    RETURN numbered;
END $$;
COMMENT ON FUNCTION pricing.number_changes() IS
    'Gives what has changed since the last time its numbers, one process at a time. Returns of how many types and '
    'months there are new versions.';
