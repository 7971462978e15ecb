-- name: to_extend
-- Calendars in use, or again all, whose sessions are not known to the end of next year, the days wanted, and how far
-- their holidays are announced.
SELECT c.calendar, date '2000-01-01' AS from_day, year.ends AS to_day, c.known_to
FROM (SELECT pricing.clock() AS at) n
CROSS JOIN LATERAL (
    SELECT make_date(extract(year FROM n.at AT TIME ZONE 'UTC')::integer + 1, 12, 31) AS ends) year
CROSS JOIN pricing.calendars c
WHERE EXISTS (SELECT FROM pricing.instruments i WHERE i.calendar = c.calendar)
  -- An exchange that has not told next year's holidays is asked about once a week.
  AND (:again OR c.filled_at IS NULL OR (c.filled_at < n.at - interval '7 days' AND (
           coalesce(c.sessions_to < year.ends, true) OR c.failure IS NOT NULL
           -- By now bars may have shown which source was right.
           OR EXISTS (SELECT FROM pricing.calendar_disagreements d
                      WHERE d.calendar = c.calendar AND d.day < (n.at AT TIME ZONE 'UTC')::date - 7))))
ORDER BY 1;

-- name: undo
-- Remove a day's corrections by a person or from evidence; their origins, NULL = none. The library's own session of the
-- day is not stored: all days of the calendar are written again within a minute.
WITH deleted AS (
    DELETE FROM pricing.calendar_corrections
    WHERE calendar = :calendar AND day = CAST(:day AS date) AND origin <> 'shipped' RETURNING origin),
anew AS (
    UPDATE pricing.calendars SET filled_at = NULL WHERE calendar = :calendar AND EXISTS (SELECT FROM deleted))
SELECT array_agg(origin ORDER BY origin) FROM deleted;

-- name: note_failed
-- Store why the sessions of a calendar cannot be worked out; they are tried again in a week.
UPDATE pricing.calendars SET filled_at = pricing.clock(), failure = left(:message, 500) WHERE calendar = :calendar
RETURNING pricing.warn('extend_calendars', calendar, :message, 'P0002');

-- name: listed
-- Calendars: what is known of each, who uses it, and what is wrong with it.
SELECT c.calendar, c.description, c.time_zone, c.sessions_from, c.sessions_to, c.failure,
       (SELECT count(*) FROM pricing.instruments i WHERE i.calendar = c.calendar) AS instruments,
       (SELECT count(*) FROM pricing.calendar_corrections x WHERE x.calendar = c.calendar) AS corrections,
       (SELECT count(*) FROM pricing.calendar_disagreements d WHERE d.calendar = c.calendar) AS disagreements
FROM pricing.calendars c ORDER BY 1;

-- name: corrections
-- The corrections of a calendar between two days, and days about which its two sources disagree.
SELECT x.day, x.origin, x.is_open, x.opens_at, x.closes_at, x.reason, x.source, x.by_whom, x.recorded_at,
       row_number() OVER (PARTITION BY x.day
                          ORDER BY array_position(ARRAY['operator', 'evidence'], x.origin)) > 1 AS is_overruled
FROM pricing.calendar_corrections x
WHERE x.calendar = :calendar AND x.day BETWEEN CAST(:first_day AS date) AND CAST(:last_day AS date)
UNION ALL
SELECT d.day, 'undecided', d.is_open, NULL, NULL, d.reason, NULL, NULL, d.found_at, true
FROM pricing.calendar_disagreements d
WHERE d.calendar = :calendar AND d.day BETWEEN CAST(:first_day AS date) AND CAST(:last_day AS date)
ORDER BY 1, 2;

-- name: find
-- The calendar of this name, or that of the exchange with this MIC.
SELECT coalesce((SELECT c.calendar FROM pricing.calendars c WHERE c.calendar = upper(:name)),
                (SELECT e.calendar FROM pricing.exchanges e WHERE e.mic = upper(:name)));

-- name: bars_of_opened_days
-- Quarantined bars of days that have become sessions, and why.
SELECT o.calendar, o.day, o.reason, o.notes, coalesce(v.value_ids, '{}') AS value_ids
FROM (SELECT x.* FROM pricing.opened_days x ORDER BY x.day, x.calendar LIMIT 100) o
CROSS JOIN LATERAL (
    -- Of each pair, the value that came last.
    SELECT array_agg(n.value_id ORDER BY n.value_id) AS value_ids
    FROM (SELECT DISTINCT ON (q.data_type, q.symbol) q.value_id
          FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
          JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
          WHERE q.kind = 'closed_day'
            AND q.status = 'quarantined'
            AND q.observed_at = CAST(o.day AS timestamp) AT TIME ZONE 'UTC'
            AND i.calendar = o.calendar
            -- Where a session has no trading, a repeated close is not a price of it.
            AND coalesce(CAST(q.bar ->> 'volume' AS numeric) > 0, true)
            AND NOT EXISTS (SELECT FROM pricing.quarantined_values newer
                            WHERE newer.kind = 'closed_day'
                              AND newer.status = 'released'
                              AND newer.last_seen_at >= q.last_seen_at
                              AND (newer.data_type, newer.symbol, newer.observed_at)
                                  = (q.data_type, q.symbol, q.observed_at))
          ORDER BY q.data_type, q.symbol, q.last_seen_at DESC, q.value_id DESC) n) v
WHERE EXISTS (SELECT FROM pricing.calendar_sessions s WHERE s.calendar = o.calendar AND s.session = o.day);

-- name: forget_opened_day
-- Forget a day that has become a session once its bars were released, unless more were noted meanwhile.
DELETE FROM pricing.opened_days o WHERE o.calendar = :calendar AND o.day = :day AND o.notes = :notes;

-- name: known_to
-- The calendar of an instrument, and up to which day its sessions are known.
SELECT c.calendar, c.sessions_to
FROM pricing.data_type_registry r
JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, :symbol)
JOIN pricing.calendars c USING (calendar)
WHERE r.data_type = :data_type AND c.sessions_to IS NOT NULL;

-- name: closed_days
-- Holidays of a pair between two days, with the calendar that says so.
SELECT i.calendar, h.day
FROM pricing.data_type_registry r
JOIN pricing.instruments i USING (asset_class)
CROSS JOIN LATERAL pricing.closed_days(
    i.calendar, greatest(CAST(:first_day AS date), pricing.listed_from(r.data_type, i.symbol)),
    CAST(:last_day AS date)) AS h (day)
WHERE r.data_type = :data_type AND i.symbol = :symbol
ORDER BY 2;

-- name: sessions
-- For each symbol whose exchange's sessions are known, the days from which and to which they are, and those within a
-- span of times, all as numbers (1 = 0001-01-01): whole numbers are read in a fraction of the time of dates.
SELECT w.symbol, c.calendar, c.sessions_from - z.before, c.sessions_to - z.before,
       ARRAY(SELECT s.session - z.before FROM pricing.calendar_sessions s
             WHERE s.calendar = c.calendar AND s.session BETWEEN (w.first_at AT TIME ZONE 'UTC')::date
                                                             AND (w.last_at AT TIME ZONE 'UTC')::date)
FROM (VALUES (date '0001-01-01' - 1)) AS z (before)
CROSS JOIN unnest(CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]), CAST(:last_times AS timestamptz[]))
    AS w (symbol, first_at, last_at)
JOIN pricing.data_type_registry r ON r.data_type = :data_type
JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, w.symbol)
JOIN pricing.calendars c ON c.calendar = i.calendar
WHERE c.calendar <> 'FX' AND c.sessions_from IS NOT NULL;

-- name: daily_types
-- Data types of daily values that apply to a symbol.
SELECT r.data_type, r.history_from FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
WHERE i.symbol = :symbol AND r.is_active AND pricing.is_daily(r.fetcher) ORDER BY 1;

-- name: time_zones
-- The time zone in which the days of each instrument count, if its calendar has one.
SELECT i.symbol, c.time_zone
FROM pricing.data_type_registry r
JOIN pricing.instruments i USING (asset_class)
JOIN pricing.calendars c USING (calendar)
WHERE r.data_type = :data_type AND i.symbol = ANY (CAST(:symbols AS text[])) AND c.time_zone IS NOT NULL;

-- name: today
-- The current day in UTC, by the database's clock.
SELECT (pricing.clock() AT TIME ZONE 'UTC')::date;
