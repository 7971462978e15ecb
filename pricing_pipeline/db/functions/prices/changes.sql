-- Versions of what is stored. Each transaction that stores something also notes what it changed, in rows of its own, so
-- that no transaction waits for another. The changes are numbered later, under one lock, in the order of their commits:
-- a reader that has seen a number has missed no lower one.

CREATE OR REPLACE FUNCTION pricing.utc_month(at timestamptz) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date $$;
COMMENT ON FUNCTION pricing.utc_month(timestamptz) IS 'The first day of the UTC month of a time.';


CREATE OR REPLACE FUNCTION pricing.note_changes(changed_type text, times timestamptz[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.data_changes (data_type, month, changes)
    SELECT changed_type, pricing.utc_month(t), count(*) FROM unnest(times) AS t GROUP BY 2
$$;
COMMENT ON FUNCTION pricing.note_changes(text, timestamptz[]) IS
    'Records that a type''s history has changed at these times.';


CREATE OR REPLACE FUNCTION pricing.note_latest_changes(changed_type text, changes bigint) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.data_changes (data_type, month, changes)
    SELECT changed_type, '-infinity', note_latest_changes.changes WHERE note_latest_changes.changes > 0
$$;
COMMENT ON FUNCTION pricing.note_latest_changes(text, bigint) IS
    'Records how many latest values of a type have changed.';


CREATE OR REPLACE FUNCTION pricing.note_shared_changes(wanted_symbol text, of_fetcher text, changes bigint) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.note_latest_changes(r.data_type, note_shared_changes.changes)
    FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
    WHERE r.fetcher = of_fetcher AND i.symbol = wanted_symbol
$$;
COMMENT ON FUNCTION pricing.note_shared_changes(text, text, bigint) IS
    'Records how much has changed of what all types of a fetcher share, such as slots.';


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
        GROUP BY 1, 2),
    -- By the clock, so that after the restore of a backup no number comes again, for other data.
    newest AS (
        SELECT greatest(max(v.version), (extract(epoch FROM pricing.clock()) * 1000)::bigint) AS version
        FROM pricing.data_versions v)
    INSERT INTO pricing.data_versions AS v (data_type, month, version, changes)
    SELECT s.data_type, s.month, n.version + row_number() OVER (ORDER BY s.data_type, s.month), s.changes
    FROM summed s CROSS JOIN newest n
    ON CONFLICT (data_type, month) DO UPDATE
        SET version = excluded.version, changes = v.changes + excluded.changes;
    GET DIAGNOSTICS numbered = ROW_COUNT;
    RETURN numbered;
END $$;
COMMENT ON FUNCTION pricing.number_changes() IS
    'Numbers new changes, one process at a time; returns how many types and months have new versions.';
