-- The gaps of a history, and their reasons.

CREATE OR REPLACE FUNCTION pricing.listed_from(wanted_type text, wanted_symbol text) RETURNS date
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN coalesce(
        (SELECT i.listed_on FROM pricing.data_type_registry r
         JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, wanted_symbol)
         WHERE r.data_type = wanted_type),
        -- The provider was asked for the fortnight before the first value, and had nothing.
        (SELECT f.day
         FROM (SELECT least((SELECT (min(h.observed_at) AT TIME ZONE 'UTC')::date FROM pricing.price_history h
                             WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol),
                            (SELECT lower(m.days) FROM pricing.moved_days m
                             WHERE (m.data_type, m.symbol) = (wanted_type, wanted_symbol))) AS day) f
         JOIN pricing.history_coverage c ON (c.data_type, c.symbol) = (wanted_type, wanted_symbol)
         WHERE c.covered @> daterange(f.day - 14, f.day)
           AND NOT EXISTS (SELECT FROM pricing.quarantined_values q
                           WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol AND q.status = 'quarantined'
                             AND q.observed_at < f.day::timestamp AT TIME ZONE 'UTC')));
END $$;
COMMENT ON FUNCTION pricing.listed_from(text, text) IS
    'The first day on which a pair can have values, set by a person, or the first value if the fortnight before was '
    'requested without result; NULL = unknown.';


CREATE OR REPLACE FUNCTION pricing.missing_sessions(wanted_type text, wanted_symbol text, from_day date, to_day date)
RETURNS TABLE (session date, nth bigint, kind text, detail text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    about record;
BEGIN
    SELECT r.history_from, r.fetcher, i.symbol, i.calendar, c.sessions_from INTO about
    FROM pricing.data_type_registry r
    LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, wanted_symbol)
    LEFT JOIN pricing.calendars c USING (calendar)
    WHERE r.data_type = wanted_type;
    IF about.symbol IS NULL THEN
        RAISE EXCEPTION 'there is no % of %', wanted_type, wanted_symbol
            USING HINT = 'Name an instrument and a data type that applies to it.', ERRCODE = 'invalid_parameter_value';
    ELSIF NOT pricing.is_daily(about.fetcher) THEN
        RAISE EXCEPTION 'data type % has no gaps: only daily values are expected on known days', wanted_type
            USING HINT = 'Name a data type of daily bars or NAVs.', ERRCODE = 'invalid_parameter_value';
    ELSIF about.calendar IS NULL THEN
        RAISE EXCEPTION '% has no trading calendar', wanted_symbol
            USING HINT = 'Set pricing.instruments.calendar to one of pricing.calendars.',
                  ERRCODE = 'invalid_parameter_value';
    ELSIF about.sessions_from IS NULL THEN
        RAISE EXCEPTION 'the trading days of %, the calendar of %, are not known yet', about.calendar, wanted_symbol
            USING HINT = 'A running pipeline writes them within two minutes. So does pricing-pipeline db upgrade.',
                  ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN QUERY
    WITH known AS MATERIALIZED (
        SELECT pricing.listed_from(wanted_type, wanted_symbol) AS listed_from, p.lag,
               -- A task for the latest value requests only the newest session, wherever the wanted days end.
               (SELECT s.session FROM pricing.calendar_sessions s
                WHERE s.calendar = about.calendar AND s.closes_at <= now_ - p.lag
                ORDER BY s.closes_at DESC LIMIT 1) AS newest,
               (SELECT h.covered FROM pricing.history_coverage h
                WHERE (h.data_type, h.symbol) = (wanted_type, wanted_symbol)) AS covered
        FROM pricing.publish_lag(wanted_type, wanted_symbol, about.fetcher) p),
    expected AS MATERIALIZED (
        SELECT s.session, s.closes_at, row_number() OVER (ORDER BY s.session) AS nth,
               s.session = k.newest AS is_newest
        FROM pricing.calendar_sessions s CROSS JOIN known k
        WHERE s.calendar = about.calendar
          AND s.session BETWEEN greatest(from_day, about.history_from) AND to_day
          AND s.opens_at <= now_),
    missing AS MATERIALIZED (
        SELECT e.* FROM expected e
        WHERE NOT EXISTS (SELECT FROM pricing.price_history h
                          WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
                            AND h.observed_at = e.session::timestamp AT TIME ZONE 'UTC')
          AND NOT pricing.has_moved(wanted_type, wanted_symbol, e.session)),
    live AS MATERIALIZED (
        SELECT q.window_start, q.window_end FROM pricing.api_call_queue_live q
        WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol),
    dead AS MATERIALIZED (
        SELECT q.window_start, q.window_end, q.finished_at,
               q.failure_kind || ': ' || (q.errors -> -1 ->> 'message') AS why
        FROM pricing.api_call_queue_dead q
        WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol AND q.status = 'failed' AND q.resolved_at IS NULL)
    SELECT m.session, m.nth,
           CASE WHEN doubt.reason IS NOT NULL THEN 'quarantined'
                WHEN m.closes_at + k.lag > now_ THEN 'not_published'
                WHEN m.session < k.listed_from THEN 'not_listed'
                WHEN EXISTS (SELECT FROM live q WHERE m.session BETWEEN q.window_start AND q.window_end
                                                  AND (q.window_end <> 'infinity' OR m.is_newest)) THEN 'queued'
                WHEN failed.why IS NOT NULL THEN 'failed'
                WHEN k.covered @> m.session THEN 'provider_has_none'
                WHEN doubt.unread IS NOT NULL THEN 'unreadable'
                ELSE 'not_asked' END,
           coalesce(doubt.reason, failed.why, doubt.unread, absent.why)
    FROM missing m CROSS JOIN known k
    CROSS JOIN LATERAL (
        SELECT (array_agg(v.reason ORDER BY v.last_seen_at DESC)
                    FILTER (WHERE v.status = 'quarantined' AND NOT pricing.is_unreadable(v.kind, v.bar)))[1] AS reason,
               (array_agg(v.reason ORDER BY v.last_seen_at DESC)
                    FILTER (WHERE pricing.is_unreadable(v.kind, v.bar)))[1] AS unread
        FROM pricing.quarantined_values v
        WHERE v.data_type = wanted_type
          AND v.symbol = wanted_symbol
          AND v.observed_at = m.session::timestamp AT TIME ZONE 'UTC') doubt
    LEFT JOIN LATERAL (
        SELECT d.why FROM dead d
        WHERE m.session BETWEEN d.window_start AND d.window_end
          AND (d.window_end <> 'infinity' OR (m.is_newest AND d.finished_at > m.closes_at))
        ORDER BY d.finished_at DESC LIMIT 1) failed ON true
    LEFT JOIN LATERAL (
        SELECT 'it is asked for again from ' || to_char(a.ask_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') || ' on' AS why
        FROM pricing.absent_days a
        WHERE (a.data_type, a.symbol, a.day) = (wanted_type, wanted_symbol, m.session)
          AND (a.asked < 3 OR pricing.is_traded_by_others(wanted_type, wanted_symbol, m.session))) absent ON true;
END $$;
COMMENT ON FUNCTION pricing.missing_sessions(text, text, date, date) IS
    'A pair''s sessions without a value between two days, numbered among all its sessions, and why each has none.';


CREATE OR REPLACE FUNCTION pricing.gaps(wanted_type text, wanted_symbol text, from_day date, to_day date)
RETURNS TABLE (first_day date, last_day date, sessions bigint, kind text, detail text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Consecutive sessions that lack a value for the same reason are one gap; a weekend does not separate them.
    SELECT min(r.session), max(r.session), count(*), r.kind,
           (array_agg(r.detail ORDER BY r.nth DESC)
                FILTER (WHERE r.kind IN ('quarantined', 'failed', 'unreadable', 'provider_has_none')))[1]
    FROM (SELECT m.*, m.nth - row_number() OVER (PARTITION BY m.kind ORDER BY m.nth) AS run
          FROM pricing.missing_sessions(wanted_type, wanted_symbol, from_day, to_day) m) r
    GROUP BY r.kind, r.run
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.gaps(text, text, date, date) IS
    'A pair''s sessions without a value between two days, joined to gaps, each with its kind and whether a call is '
    'worthwhile.';


CREATE OR REPLACE FUNCTION pricing.closed_days(wanted_calendar text, from_day date, to_day date) RETURNS SETOF date
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT d.day::date
    FROM pricing.calendars c
    CROSS JOIN LATERAL generate_series(
        greatest(from_day, c.sessions_from)::timestamp, least(to_day, c.sessions_to)::timestamp, interval '1 day')
        AS d (day)
    WHERE c.calendar = wanted_calendar
      AND NOT EXISTS (SELECT FROM pricing.calendar_sessions s
                      WHERE s.calendar = wanted_calendar AND s.session = d.day::date)
      -- A Sunday is no holiday for an exchange that never trades on Sundays.
      AND EXISTS (SELECT FROM pricing.calendar_sessions s
                  WHERE s.calendar = wanted_calendar
                    AND s.session IN (d.day::date - 7, d.day::date + 7, d.day::date - 14, d.day::date + 14))
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.closed_days(text, date, date) IS
    'The holidays between two days: days on which a calendar is closed although it trades on that weekday.';
