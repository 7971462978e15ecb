-- The life of an alert: seen, raised, told and repeated, over. Which alerts there are is in operations/alert_rules.py.

CREATE OR REPLACE FUNCTION pricing.repeat_after(severity text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE severity WHEN 'P0' THEN interval '1 hour' ELSE interval '1 day' END
$$;
COMMENT ON FUNCTION pricing.repeat_after(text) IS 'How long after recipients were told of an alert that lasts they are told again.';


CREATE OR REPLACE FUNCTION pricing.note_alerts(looked_for text[], seen jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    INSERT INTO pricing.alerts AS a (rule, subject, severity, says, since, last_seen_at)
    SELECT DISTINCT ON (s.rule, s.subject) s.rule, left(s.subject, 200), s.severity, left(s.says, 2000), now_, now_
    FROM jsonb_to_recordset(seen) AS s (rule text, subject text, severity text, says text, lasts float8) ORDER BY s.rule, s.subject
    ON CONFLICT (rule, subject) WHERE resolved_at IS NULL
        DO UPDATE SET last_seen_at = now_, says = excluded.says, severity = excluded.severity;
    UPDATE pricing.alerts a SET raised_at = now_
    FROM jsonb_to_recordset(seen) AS s (rule text, subject text, lasts float8)
    WHERE (a.rule, a.subject) = (s.rule, left(s.subject, 200)) AND a.resolved_at IS NULL AND a.raised_at IS NULL
      AND a.since <= now_ - make_interval(secs => s.lasts);
    -- What was not seen again is over. What never was raised leaves no trace.
    DELETE FROM pricing.alerts a WHERE a.rule = ANY (looked_for) AND a.raised_at IS NULL AND a.last_seen_at < now_;
    UPDATE pricing.alerts a SET resolved_at = now_
    WHERE a.rule = ANY (looked_for) AND a.resolved_at IS NULL AND a.last_seen_at < now_;
END $$;
COMMENT ON FUNCTION pricing.note_alerts(text[], jsonb) IS
    'Notes what rules have seen: rows with rule, subject, severity, says, and for how many seconds it must last before it is raised. Open alerts of these rules that were not seen again are over.';


CREATE OR REPLACE FUNCTION pricing.alerts_to_tell()
RETURNS TABLE (alert_id bigint, rule text, subject text, severity text, says text, since timestamptz, is_over boolean, is_repeated boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    is_digest_due boolean := NOT EXISTS (
        SELECT FROM pricing.alerts a WHERE a.severity = 'P2' AND a.told_at > now_ - pricing.repeat_after('P2') AND a.told_at <= now_);
BEGIN
    RETURN QUERY
    WITH chosen AS (
        SELECT a.alert_id, a.told_at IS NOT NULL AND a.resolved_at IS NULL AS is_repeated FROM pricing.alerts a
        WHERE a.raised_at IS NOT NULL
          AND NOT EXISTS (SELECT FROM pricing.alert_silences s
                          WHERE s.rule = a.rule AND coalesce(s.subject = a.subject, true) AND s.until > now_)
          AND CASE WHEN a.resolved_at IS NOT NULL THEN a.told_at <= a.resolved_at AND a.severity <> 'P2'
                   WHEN a.severity = 'P2' THEN is_digest_due AND a.acknowledged_at IS NULL
                   ELSE a.told_at IS NULL
                     OR (a.acknowledged_at IS NULL AND (a.told_at <= now_ - pricing.repeat_after(a.severity) OR a.told_at > now_ + interval '1 minute')) END)
    UPDATE pricing.alerts a SET told_at = greatest(now_, a.resolved_at + interval '1 microsecond') FROM chosen c WHERE a.alert_id = c.alert_id
    RETURNING a.alert_id, a.rule, a.subject, a.severity, a.says, a.since, a.resolved_at IS NOT NULL, c.is_repeated;
END $$;
COMMENT ON FUNCTION pricing.alerts_to_tell() IS
    'Alerts that recipients are to be told of now: new ones, those whose repetition is due, those that are over; notes them as told. The less urgent (P2) come together once a day.';
