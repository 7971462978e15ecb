-- name: to_extend
-- Calendars in use whose sessions are not known far enough, and the days they are wanted for.
SELECT calendar, from_day, to_day FROM pricing.calendars_to_extend(:again);

-- name: store
-- Write the sessions of an exchange between two days.
SELECT pricing.store_sessions(:calendar, CAST(:from_day AS date), CAST(:to_day AS date), CAST(:days AS date[]),
                              CAST(:opens AS timestamptz[]), CAST(:closes AS timestamptz[]));

-- name: store_own
-- Write the sessions of a calendar of our own between two days.
SELECT pricing.store_own_sessions(:calendar, CAST(:from_day AS date), CAST(:to_day AS date));

-- name: unknown
-- An exchange that the library does not know: say so, and ask again in a week.
SELECT pricing.warn('extend_calendars', :calendar, :message, 'P0002'),
       pricing.note_unknown_calendar(:calendar);

-- name: known_to
-- The calendar of an instrument, and up to which day its sessions are known.
SELECT c.calendar, c.sessions_to FROM pricing.data_type_registry r
JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, :symbol) JOIN pricing.calendars c USING (calendar)
WHERE r.data_type = :data_type AND c.sessions_to IS NOT NULL;

-- name: gaps
-- Sessions of a pair without a value between two days, joined to gaps with their kinds.
SELECT first_day, last_day, sessions, kind, detail
FROM pricing.gaps(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date));

-- name: closed_days
-- Holidays of a pair between two days, with the calendar that says so.
SELECT i.calendar, h.day FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
CROSS JOIN LATERAL pricing.closed_days(i.calendar, greatest(CAST(:first_day AS date), pricing.listed_from(r.data_type, i.symbol)),
                                       CAST(:last_day AS date)) AS h (day)
WHERE r.data_type = :data_type AND i.symbol = :symbol ORDER BY 2;

-- name: never_traded
-- Of symbols and days, those on whose weekday the exchange has no session within a year of it, where it is known so far.
SELECT d.symbol, d.day, c.calendar
FROM unnest(CAST(:symbols AS text[]), CAST(:days AS date[])) AS d (symbol, day)
JOIN pricing.data_type_registry r ON r.data_type = :data_type
JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, d.symbol) JOIN pricing.calendars c USING (calendar)
WHERE d.day BETWEEN c.sessions_from AND c.sessions_to AND c.calendar <> 'FX'
  AND NOT EXISTS (SELECT FROM pricing.calendar_sessions s
                  WHERE s.calendar = c.calendar AND s.session = ANY (ARRAY(SELECT d.day + 7 * n FROM generate_series(-52, 52) AS n)));

-- name: daily_types
-- Data types of daily values that apply to a symbol.
SELECT r.data_type, r.history_from FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
WHERE i.symbol = :symbol AND r.is_active AND r.fetcher IN ('daily_bars', 'nav') ORDER BY 1;

-- name: today
-- The current day in UTC, by the database's clock.
SELECT (pricing.clock() AT TIME ZONE 'UTC')::date;
