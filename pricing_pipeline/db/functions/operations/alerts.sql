-- The life of an alert: seen, raised, told and repeated, over. Which alerts there are is in operations/alert_rules.py.

CREATE OR REPLACE FUNCTION pricing.repeat_after(severity text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE severity WHEN 'P0' THEN interval '1 hour' ELSE interval '1 day' END
$$;
COMMENT ON FUNCTION pricing.repeat_after(text) IS 'How long after recipients were told of an alert that lasts they are told again.';


CREATE OR REPLACE FUNCTION pricing.note_alerts(failed text[], seen jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    -- One that somebody has locked stays as it is, and keeps no other from being told.
    mine bigint[] := ARRAY(SELECT a.alert_id FROM pricing.alerts a WHERE a.resolved_at IS NULL ORDER BY 1 FOR UPDATE SKIP LOCKED);
BEGIN
    -- What is not seen for five minutes is over: what comes and goes is one alert. What was never raised leaves no trace.
    WITH gone AS (
        SELECT a.alert_id, a.raised_at FROM pricing.alerts a
        WHERE a.alert_id = ANY (mine) AND a.rule <> ALL (failed)
          AND (a.raised_at IS NULL OR a.last_seen_at <= now_ - interval '5 minutes') AND NOT EXISTS (
            SELECT FROM jsonb_to_recordset(seen) AS s (rule text, subject text) WHERE (s.rule, left(s.subject, 200)) = (a.rule, a.subject))),
    forgotten AS (DELETE FROM pricing.alerts a USING gone g WHERE a.alert_id = g.alert_id AND g.raised_at IS NULL)
    UPDATE pricing.alerts a SET resolved_at = now_ FROM gone g WHERE a.alert_id = g.alert_id AND g.raised_at IS NOT NULL;
    WITH found AS MATERIALIZED (
        SELECT DISTINCT ON (s.rule, left(s.subject, 200)) s.rule, left(s.subject, 200) AS subject, s.severity, left(s.says, 2000) AS says,
               coalesce(s.is_repeated, true) AS is_repeated, s.newest_at
        FROM jsonb_to_recordset(seen) AS s (rule text, subject text, severity text, says text, is_repeated boolean, newest_at timestamptz)
        ORDER BY s.rule, left(s.subject, 200), s.severity),
    known AS (
        UPDATE pricing.alerts a
        SET last_seen_at = now_, says = f.says, severity = f.severity, is_repeated = f.is_repeated, newest_at = f.newest_at,
            -- While nobody looked, because the machine slept or nothing ran, nothing has been seen to last.
            since = CASE WHEN a.raised_at IS NULL AND a.last_seen_at <= now_ - interval '5 minutes' THEN now_ ELSE a.since END
        FROM found f WHERE a.alert_id = ANY (mine) AND (a.rule, a.subject) = (f.rule, f.subject)),
    added AS (
        INSERT INTO pricing.alerts (rule, subject, severity, says, is_repeated, newest_at, since, last_seen_at)
        SELECT f.rule, f.subject, f.severity, f.says, f.is_repeated, f.newest_at, now_, now_ FROM found f
        WHERE NOT EXISTS (SELECT FROM pricing.alerts a WHERE (a.rule, a.subject) = (f.rule, f.subject) AND a.resolved_at IS NULL)
        RETURNING alert_id)
    SELECT mine || array_agg(a.alert_id) INTO mine FROM added a;
    UPDATE pricing.alerts a SET raised_at = now_
    FROM jsonb_to_recordset(seen) AS s (rule text, subject text, lasts float8)
    WHERE a.alert_id = ANY (mine) AND (a.rule, a.subject) = (s.rule, left(s.subject, 200)) AND a.resolved_at IS NULL AND a.raised_at IS NULL
      AND a.since <= now_ - make_interval(secs => s.lasts);
END $$;
COMMENT ON FUNCTION pricing.note_alerts(text[], jsonb) IS
    'Notes what rules have seen: rows with rule, subject, severity, says, is_repeated, newest_at, and for how many seconds (lasts) it must last before it is raised. An alert that is not seen for five minutes is over, unless its rule is among those that failed. What another session has locked is left to the next look.';


CREATE OR REPLACE FUNCTION pricing.alerts_to_tell()
RETURNS TABLE (alert_id bigint, rule text, subject text, severity text, says text, since timestamptz, is_over boolean, is_repeated boolean, has_news boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    is_digest_due boolean := NOT EXISTS (
        SELECT FROM pricing.alerts a WHERE a.severity = 'P2' AND a.told_at > now_ - pricing.repeat_after('P2') AND a.told_at <= now_);
BEGIN
    RETURN QUERY
    WITH chosen AS (
        SELECT a.alert_id, a.told_at IS NOT NULL AND a.resolved_at IS NULL AS is_repeated,
               coalesce(a.resolved_at IS NULL AND a.newest_at > a.told_newest_at, false) AS has_news FROM pricing.alerts a
        WHERE a.raised_at IS NOT NULL
          -- What nobody is to be told of, or nobody can be told of, waits until somebody can.
          AND a.severity <= (SELECT max(r.least_severity) FROM pricing.recipients r JOIN pricing.operation_types t ON t.operation_type = r.channel
                             WHERE r.is_active AND t.is_active)
          AND NOT EXISTS (SELECT FROM pricing.alert_silences s
                          WHERE s.rule = a.rule AND coalesce(s.subject = a.subject, true) AND s.until > now_)
          AND CASE WHEN a.severity = 'P2' THEN is_digest_due AND a.acknowledged_at IS NULL AND (a.resolved_at IS NULL OR a.told_at IS NULL)
                   WHEN a.resolved_at IS NOT NULL THEN a.told_at IS NOT NULL AND a.end_told_at IS NULL
                   ELSE a.told_at IS NULL
                     OR (a.acknowledged_at IS NULL
                         AND ((a.is_repeated AND a.told_at <= now_ - pricing.repeat_after(a.severity))
                              -- The message about it may itself be the next that dies, so not at once.
                              OR (a.newest_at > a.told_newest_at AND a.told_at <= now_ - interval '1 hour'))) END
        ORDER BY a.alert_id FOR UPDATE OF a SKIP LOCKED)
    UPDATE pricing.alerts a
    SET told_at = CASE WHEN a.resolved_at IS NULL OR a.told_at IS NULL THEN now_ ELSE a.told_at END,
        told_newest_at = a.newest_at, end_told_at = CASE WHEN a.resolved_at IS NOT NULL THEN now_ END
    FROM chosen c WHERE a.alert_id = c.alert_id
    RETURNING a.alert_id, a.rule, a.subject, a.severity, a.says, a.since, a.resolved_at IS NOT NULL, c.is_repeated, c.has_news;
END $$;
COMMENT ON FUNCTION pricing.alerts_to_tell() IS
    'Alerts that recipients are to be told of now: new ones, those whose repetition is due, those of which more has happened (an hour later at the earliest), those that are over; notes them as told. The less urgent (P2) come together once a day.';


CREATE OR REPLACE FUNCTION pricing.prune_alerts(now_ timestamptz) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    total integer;
    pruned integer;
BEGIN
    DELETE FROM pricing.alerts a WHERE a.alert_id IN (
        SELECT x.alert_id FROM pricing.alerts x WHERE x.resolved_at < now_ - interval '90 days' FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS total = ROW_COUNT;
    DELETE FROM pricing.alert_silences s WHERE s.silence_id IN (
        SELECT x.silence_id FROM pricing.alert_silences x WHERE x.until < now_ - interval '90 days' FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN total + pruned;
END $$;
COMMENT ON FUNCTION pricing.prune_alerts(timestamptz) IS 'Deletes alerts and silences that have been over for 90 days. Returns how many.';


CREATE OR REPLACE FUNCTION pricing.move_alerts(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    UPDATE pricing.alerts a SET since = least(a.since, now_), last_seen_at = least(a.last_seen_at, now_), told_at = least(a.told_at, now_),
        newest_at = least(a.newest_at, now_), told_newest_at = least(a.told_newest_at, now_)
    FROM (SELECT x.alert_id FROM pricing.alerts x WHERE greatest(x.since, x.last_seen_at, x.told_at, x.newest_at, x.told_newest_at) > now_ ORDER BY 1 FOR UPDATE) mine
    WHERE a.alert_id = mine.alert_id;
    UPDATE pricing.alert_silences s SET until = pricing.moved_back(s.until, now_, step)
    FROM (SELECT x.silence_id FROM pricing.alert_silences x WHERE x.until > now_ ORDER BY 1 FOR UPDATE) mine
    WHERE s.silence_id = mine.silence_id;
END $$;
COMMENT ON FUNCTION pricing.move_alerts(timestamptz, interval) IS
    'The clock was set back: alerts began and were told now at the latest, and silences end when they would have.';
