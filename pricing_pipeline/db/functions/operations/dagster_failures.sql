-- Current failures in Dagster. A Dagster sensor writes them; the notifier, which does not know Dagster, reads them.

CREATE OR REPLACE FUNCTION pricing.note_dagster_runs(runs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    DELETE FROM pricing.dagster_failures d
    WHERE d.kind = 'run'
      AND d.name IN (SELECT r.name FROM jsonb_to_recordset(runs) AS r (name text, reason text)
                     WHERE r.reason IS NULL);
    INSERT INTO pricing.dagster_failures AS d (kind, name, run_id, reason, failed_at)
    SELECT 'run', r.name, r.run_id, left(r.reason, 500),
           pricing.clock() - make_interval(secs => greatest(r.seconds_ago, 0))
    FROM jsonb_to_recordset(runs) AS r (name text, run_id text, reason text, seconds_ago float8)
    WHERE r.reason IS NOT NULL
    ORDER BY 2
    ON CONFLICT (kind, name) DO UPDATE
        SET run_id = excluded.run_id, reason = excluded.reason, failed_at = excluded.failed_at;
END $$;
COMMENT ON FUNCTION pricing.note_dagster_runs(jsonb) IS
    'Records how the newest run of each name ended (reason NULL = it succeeded); waits at most a second for a locked '
    'row.';


CREATE OR REPLACE FUNCTION pricing.note_dagster_failures(failing jsonb, of_kind text DEFAULT 'tick') RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    DELETE FROM pricing.dagster_failures d WHERE d.kind = of_kind AND NOT failing ? d.name;
    INSERT INTO pricing.dagster_failures AS d (kind, name, reason, failed_at)
    SELECT of_kind, f.key, left(f.value, 500), pricing.clock()
    FROM jsonb_each_text(failing) f
    ORDER BY 2
    ON CONFLICT (kind, name) DO UPDATE SET reason = excluded.reason WHERE d.reason <> excluded.reason;
END $$;
COMMENT ON FUNCTION pricing.note_dagster_failures(jsonb, text) IS
    'Records everything of one kind that fails now, such as sensors; what is not named works again.';


CREATE OR REPLACE FUNCTION pricing.alert_place(rule text, subject text, says text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE
        WHEN alert_place.rule = 'run_fails' THEN 'runs/' || substring(alert_place.says FROM '^Run ([0-9a-f-]{36}) ')
        WHEN alert_place.rule = 'tick_fails' THEN 'automation'
        ELSE coalesce(
            (SELECT 'assets/latest_price/' || t.data_type FROM pricing.data_type_registry t
             WHERE t.is_active AND t.data_type = substring(alert_place.subject FROM '[^ ]+$')),
            (SELECT 'assets/provider/' || p.provider FROM pricing.data_collectors p
             WHERE p.is_active AND p.provider = alert_place.subject))
    END
$$;
COMMENT ON FUNCTION pricing.alert_place(text, text, text) IS
    'The path in the Dagster UI of the run or asset that an alert is about; NULL = none.';
