-- The life of an alert: seen, raised, told and repeated, over. Which alerts there are is in operations/alert_rules.py.

CREATE OR REPLACE FUNCTION pricing.note_alerts(failed text[], seen jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    -- A locked alert stays as it is, and does not delay the others.
    mine bigint[] := ARRAY(SELECT a.alert_id FROM pricing.alerts a
                           WHERE a.resolved_at IS NULL
                           ORDER BY 1 FOR UPDATE SKIP LOCKED);
BEGIN
    -- An alert ends after five minutes without a sighting, so trouble that comes and goes is one alert. An alert that
    -- was never raised is deleted.
    WITH gone AS (
        SELECT a.alert_id, a.raised_at FROM pricing.alerts a
        WHERE a.alert_id = ANY (mine) AND a.rule <> ALL (failed)
          AND (a.raised_at IS NULL OR a.last_seen_at <= now_ - interval '5 minutes')
          AND NOT EXISTS (SELECT FROM jsonb_to_recordset(seen) AS s (rule text, subject text)
                          WHERE (s.rule, left(s.subject, 200)) = (a.rule, a.subject))),
    forgotten AS (
        DELETE FROM pricing.alerts a USING gone g
        WHERE a.alert_id = g.alert_id AND g.raised_at IS NULL)
    UPDATE pricing.alerts a SET resolved_at = now_
    FROM gone g
    WHERE a.alert_id = g.alert_id AND g.raised_at IS NOT NULL;
    WITH found AS MATERIALIZED (
        SELECT DISTINCT ON (s.rule, left(s.subject, 200))
               s.rule, left(s.subject, 200) AS subject, s.severity, left(s.says, 2000) AS says,
               coalesce(s.is_repeated, true) AS is_repeated, s.newest_at
        FROM jsonb_to_recordset(seen)
            AS s (rule text, subject text, severity text, says text, is_repeated boolean, newest_at timestamptz)
        ORDER BY s.rule, left(s.subject, 200), s.severity),
    known AS (
        UPDATE pricing.alerts a
        SET last_seen_at = now_, says = f.says, severity = f.severity, is_repeated = f.is_repeated,
            newest_at = f.newest_at,
            -- Time without looks, because the machine slept or nothing ran, does not count towards how long trouble
            -- lasts.
            since = CASE WHEN a.raised_at IS NULL AND a.last_seen_at <= now_ - interval '5 minutes' THEN now_
                         ELSE a.since END
        FROM found f
        WHERE a.alert_id = ANY (mine) AND (a.rule, a.subject) = (f.rule, f.subject)),
    added AS (
        INSERT INTO pricing.alerts (rule, subject, severity, says, is_repeated, newest_at, since, last_seen_at)
        SELECT f.rule, f.subject, f.severity, f.says, f.is_repeated, f.newest_at, now_, now_
        FROM found f
        WHERE NOT EXISTS (SELECT FROM pricing.alerts a
                          WHERE (a.rule, a.subject) = (f.rule, f.subject) AND a.resolved_at IS NULL)
        RETURNING alert_id)
    SELECT mine || array_agg(a.alert_id) INTO mine FROM added a;
    UPDATE pricing.alerts a SET raised_at = now_
    FROM jsonb_to_recordset(seen) AS s (rule text, subject text, lasts float8)
    WHERE a.alert_id = ANY (mine)
      AND (a.rule, a.subject) = (s.rule, left(s.subject, 200))
      AND a.resolved_at IS NULL
      AND a.raised_at IS NULL
      AND a.since <= now_ - make_interval(secs => s.lasts);
END $$;
COMMENT ON FUNCTION pricing.note_alerts(text[], jsonb) IS
    'Records what rules have found, and ends alerts not seen for five minutes, unless their rule failed.';


CREATE OR REPLACE FUNCTION pricing.alerts_to_tell()
RETURNS TABLE (alert_id bigint, rule text, subject text, severity text, says text, since timestamptz,
               is_over boolean, is_repeated boolean, has_news boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    is_digest_due boolean := NOT EXISTS (
        SELECT FROM pricing.alerts a
        WHERE a.severity = 'P2' AND a.told_at > now_ - interval '1 day' AND a.told_at <= now_);
BEGIN
    RETURN QUERY
    WITH chosen AS (
        SELECT a.alert_id, a.told_at IS NOT NULL AND a.resolved_at IS NULL AS is_repeated,
               coalesce(a.resolved_at IS NULL AND a.newest_at > a.told_newest_at, false) AS has_news
        FROM pricing.alerts a
        WHERE a.raised_at IS NOT NULL
          -- An alert that no recipient takes, or that cannot be sent, waits until a recipient can be reached.
          AND a.severity <= (SELECT max(r.least_severity)
                             FROM pricing.recipients r
                             JOIN pricing.operation_types t ON t.operation_type = r.channel
                             WHERE r.is_active AND t.is_active)
          AND NOT EXISTS (SELECT FROM pricing.alert_silences s
                          WHERE s.rule = a.rule AND coalesce(s.subject = a.subject, true) AND s.until > now_)
          AND CASE WHEN a.severity = 'P2' THEN is_digest_due
                        AND a.acknowledged_at IS NULL
                        AND (a.resolved_at IS NULL OR a.told_at IS NULL)
                   WHEN a.resolved_at IS NOT NULL THEN a.told_at IS NOT NULL AND a.end_told_at IS NULL
                   ELSE a.told_at IS NULL
                     OR (a.acknowledged_at IS NULL
                         AND ((a.is_repeated
                               AND a.told_at <= now_ - CASE a.severity WHEN 'P0' THEN interval '1 hour'
                                                            ELSE interval '1 day' END)
                              -- Not at once: the message about it may be the next one to die.
                              OR (a.newest_at > a.told_newest_at AND a.told_at <= now_ - interval '1 hour'))) END
        ORDER BY a.alert_id FOR UPDATE OF a SKIP LOCKED)
    UPDATE pricing.alerts a
    SET told_at = CASE WHEN a.resolved_at IS NULL OR a.told_at IS NULL THEN now_ ELSE a.told_at END,
        told_newest_at = a.newest_at, end_told_at = CASE WHEN a.resolved_at IS NOT NULL THEN now_ END
    FROM chosen c
    WHERE a.alert_id = c.alert_id
    RETURNING a.alert_id, a.rule, a.subject, a.severity, a.says, a.since, a.resolved_at IS NOT NULL, c.is_repeated,
              c.has_news;
END $$;
COMMENT ON FUNCTION pricing.alerts_to_tell() IS
    'Takes the alerts to tell now: new ones, repetitions, news and ended ones; P2 together once a day.';
