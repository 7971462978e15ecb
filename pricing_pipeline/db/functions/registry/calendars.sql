-- When markets trade, when a newer value should exist, and where calendars come from.

CREATE OR REPLACE FUNCTION pricing.known_time_zones(names text[]) RETURNS text[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- The server reads all its zones for this, 600 files in 20 ms: ask for many names at once.
    SELECT coalesce(array_agg(z.name), '{}') FROM pg_catalog.pg_timezone_names z
    WHERE cardinality(names) > 0 AND z.name = ANY (names)
$$;
COMMENT ON FUNCTION pricing.known_time_zones(text[]) IS 'The time zones among these names that this server knows.';


CREATE OR REPLACE FUNCTION pricing.is_time_zone(name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE name WHEN 'UTC' THEN true ELSE name = ANY (pricing.known_time_zones(ARRAY[name])) END
$$;
COMMENT ON FUNCTION pricing.is_time_zone(text) IS 'Whether this server knows a time zone.';


CREATE OR REPLACE FUNCTION pricing.exchange_of(of_class text, of_symbol text, in_currency text) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN count(*) = 1 THEN min(e.mic)
                -- Several exchanges share this ending: the currency may tell which.
                WHEN count(*) FILTER (WHERE e.currency = in_currency)
                    = 1 THEN min(e.mic) FILTER (WHERE e.currency = in_currency) END
    FROM pricing.exchanges e
    WHERE of_class IN ('equity', 'etf')
      AND pg_catalog.upper(pg_catalog.substring(of_symbol, '[.:][^.:]+$')) = ANY (e.endings)
$$;
COMMENT ON FUNCTION pricing.exchange_of(text, text, text) IS
    'The MIC of the exchange that a symbol''s ending names, such as VOD.L or VOD:LSE; NULL = none, or several that '
    'the currency does not distinguish.';


CREATE OR REPLACE FUNCTION pricing.choose_calendar() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    at_exchange text := coalesce(NEW.exchange, pricing.exchange_of(NEW.asset_class, NEW.symbol, NEW.currency));
BEGIN
    -- An unknown ending such as .XY names an exchange outside the United States, whose days we do not know. A single
    -- letter is a class of shares, as in BRK.B.
    NEW.calendar := (
        SELECT c.calendar
        FROM (SELECT r.calendar, r.asset_class, length(r.ending) AS precision, r.currency FROM pricing.calendar_rules r
              WHERE r.asset_class IN (NEW.asset_class, CASE NEW.asset_class WHEN 'etf' THEN 'equity' END)
                AND NEW.symbol LIKE '%' || r.ending AND r.currency IN ('', NEW.currency)
                AND (r.ending <> ''
                     OR NEW.asset_class NOT IN ('equity', 'etf')
                     OR NEW.symbol !~ '(\.[A-Z]{2,}|:[^:]+)$')
              UNION ALL
              SELECT e.calendar, CASE WHEN NEW.exchange IS NULL THEN 'equity' ELSE NEW.asset_class END, 1000, ''
              FROM pricing.exchanges e
              WHERE e.mic = at_exchange) c
        ORDER BY c.asset_class = NEW.asset_class DESC, c.precision DESC, c.currency DESC LIMIT 1);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.choose_calendar() IS
    'Gives an instrument without a calendar that of its exchange, or the one that the rules name; an ETF without a '
    'rule follows equities.';

CREATE TRIGGER choose_calendar
    BEFORE INSERT OR UPDATE OF currency, exchange ON pricing.instruments
    FOR EACH ROW WHEN (NEW.calendar IS NULL)
    EXECUTE FUNCTION pricing.choose_calendar();


CREATE OR REPLACE FUNCTION pricing.load_exchanges(given jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.calendars AS c (calendar, description, time_zone, known_to)
    SELECT DISTINCT ON (t.calendar) t.calendar, t.name, t.zone, t.known_to
    FROM jsonb_to_recordset(given) AS t (mic text, name text, calendar text, zone text, known_to date)
    WHERE t.calendar IS NOT NULL ORDER BY t.calendar, t.mic <> t.calendar
    ON CONFLICT (calendar) DO UPDATE SET time_zone = excluded.time_zone, known_to = excluded.known_to
        WHERE (c.time_zone, c.known_to) IS DISTINCT FROM (excluded.time_zone, excluded.known_to);
    INSERT INTO pricing.exchanges AS e (mic, name, calendar, currency, minor_unit, endings)
    SELECT t.mic, t.name, t.calendar, t.currency, t.minor_unit, t.endings
    FROM jsonb_populate_recordset(NULL::pricing.exchanges, given) t
    ORDER BY t.mic
    ON CONFLICT (mic) DO UPDATE SET name = excluded.name, calendar = excluded.calendar, currency = excluded.currency,
        minor_unit = excluded.minor_unit, endings = excluded.endings
        WHERE (e.name, e.calendar, e.currency, e.minor_unit, e.endings) IS DISTINCT FROM
              (excluded.name, excluded.calendar, excluded.currency, excluded.minor_unit, excluded.endings);
    -- An exchange that is no longer in the file stays while an instrument refers to it, and no symbol names it.
    UPDATE pricing.exchanges e SET endings = '{}'
    WHERE e.endings <> '{}' AND NOT EXISTS (SELECT FROM jsonb_array_elements(given) t WHERE t ->> 'mic' = e.mic);
    DELETE FROM pricing.exchanges e
    WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(given) t WHERE t ->> 'mic' = e.mic)
      AND NOT EXISTS (SELECT FROM pricing.instruments i WHERE i.exchange = e.mic);
    -- The trigger gives instruments without a calendar that of their exchange, if it is known now.
    UPDATE pricing.instruments i SET currency = i.currency
    WHERE i.calendar IS NULL AND pricing.exchange_of(i.asset_class, i.symbol, i.currency) IS NOT NULL;
END $$;
COMMENT ON FUNCTION pricing.load_exchanges(jsonb) IS
    'Stores the exchanges of domain/exchanges.toml, their symbols'' endings and their calendars, also for instruments '
    'without one.';


CREATE OR REPLACE FUNCTION pricing.load_corrections(given jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    DELETE FROM pricing.calendar_corrections c
    WHERE c.origin = 'shipped' AND NOT EXISTS (
        SELECT FROM jsonb_to_recordset(given) AS x (calendar text, day date)
        WHERE (x.calendar, x.day) = (c.calendar, c.day));
    INSERT INTO pricing.calendar_corrections AS c (calendar, day, origin, is_open, opens_at, closes_at, reason, source)
    SELECT x.calendar, x.day, 'shipped', x.is_open, x.opens_at, x.closes_at, x.reason, x.source
    FROM jsonb_to_recordset(given) AS x (calendar text, day date, is_open boolean, opens_at time, closes_at time,
                                         reason text, source text)
    ORDER BY 1, 2
    ON CONFLICT (calendar, day, origin) DO UPDATE
        SET is_open = excluded.is_open, opens_at = excluded.opens_at, closes_at = excluded.closes_at,
            reason = excluded.reason, source = excluded.source
        WHERE (c.is_open, c.opens_at, c.closes_at, c.reason, c.source)
              IS DISTINCT FROM (excluded.is_open, excluded.opens_at, excluded.closes_at, excluded.reason,
                                excluded.source);
END $$;
COMMENT ON FUNCTION pricing.load_corrections(jsonb) IS
    'Replaces the corrections of trading days that come with the pipeline; those of people stay.';


CREATE OR REPLACE FUNCTION pricing.store_sessions(
    wanted_calendar text, from_day date, to_day date, days date[], opens timestamptz[],
    closes timestamptz[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    UPDATE pricing.calendars c
    SET filled_at = now_, failure = NULL, sessions_from = least(c.sessions_from, from_day),
        -- The library may know fewer days than before: then its horizon has come nearer.
        sessions_to = CASE WHEN c.known_to IS NULL THEN greatest(c.sessions_to, to_day) ELSE to_day END
    WHERE c.calendar = wanted_calendar;
    IF to_day < (now_ AT TIME ZONE 'UTC')::date + 14 THEN
        PERFORM pricing.warn('extend_calendars', wanted_calendar, pg_catalog.format(
            'trading days of %s are known to %s only: after that its instruments go by their TTL, and their gaps are '
            'not known. A newer exchange-calendars may know more',
            wanted_calendar, to_day), '01000');
    END IF;
    -- A day of mourning is announced days before: a session is deleted then. Beyond the horizon nothing is known.
    DELETE FROM pricing.calendar_sessions s
    WHERE s.calendar = wanted_calendar
      AND ((s.session BETWEEN from_day AND to_day AND NOT s.session = ANY (days))
           OR s.session > (SELECT c.sessions_to FROM pricing.calendars c WHERE c.calendar = wanted_calendar));
    INSERT INTO pricing.calendar_sessions AS s (calendar, session, opens_at, closes_at)
    SELECT wanted_calendar, u.day, u.opens_at, u.closes_at
    FROM unnest(days, opens, closes) AS u (day, opens_at, closes_at)
    WHERE u.day BETWEEN from_day AND to_day ORDER BY 2
    ON CONFLICT ON CONSTRAINT calendar_sessions_pkey DO UPDATE SET opens_at = excluded.opens_at,
        closes_at = excluded.closes_at
        WHERE (s.opens_at, s.closes_at) IS DISTINCT FROM (excluded.opens_at, excluded.closes_at);
    PERFORM pricing.apply_corrections(wanted_calendar, from_day, to_day);
    PERFORM pricing.note_opened_days(wanted_calendar, from_day, to_day,
                                     wanted_calendar || ' is known to have a session on that day');
    RETURN (SELECT count(*) FROM pricing.calendar_sessions s
            WHERE s.calendar = wanted_calendar AND s.session BETWEEN from_day AND to_day);
END $$;
COMMENT ON FUNCTION pricing.store_sessions(text, date, date, date[], timestamptz[], timestamptz[]) IS
    'Replaces a calendar''s sessions between two days by corrected ones, and warns if they end within a fortnight; '
    'returns how many.';


CREATE OR REPLACE FUNCTION pricing.apply_corrections(wanted_calendar text, from_day date, to_day date) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    one record;
    opened timestamptz;
    closed timestamptz;
    changed integer := 0;
BEGIN
    FOR one IN
        SELECT DISTINCT ON (c.day) c.*, k.time_zone
        FROM pricing.calendar_corrections c
        JOIN pricing.calendars k USING (calendar)
        WHERE c.calendar = wanted_calendar
          AND c.day BETWEEN greatest(from_day, k.sessions_from) AND least(to_day, k.sessions_to)
        ORDER BY c.day, array_position(ARRAY['operator', 'evidence'], c.origin)
    LOOP
        IF NOT one.is_open THEN
            DELETE FROM pricing.calendar_sessions s WHERE s.calendar = wanted_calendar AND s.session = one.day;
        ELSE
            IF one.opens_at IS NOT NULL THEN
                opened := (one.day + one.opens_at) AT TIME ZONE one.time_zone;
                closed := (one.day + one.closes_at) AT TIME ZONE one.time_zone;
            ELSE
                -- The hours of the longest of the ten sessions before, or else after, so that half days do not count.
                -- The zone handles summer time.
                SELECT (one.day + (s.opens_at AT TIME ZONE k.zone - s.session)) AT TIME ZONE k.zone,
                       (one.day + (s.closes_at AT TIME ZONE k.zone - s.session)) AT TIME ZONE k.zone
                INTO opened, closed
                FROM (SELECT coalesce(one.time_zone, 'UTC') AS zone) k
                CROSS JOIN (
                    (SELECT x.* FROM pricing.calendar_sessions x
                     WHERE x.calendar = wanted_calendar AND x.session < one.day ORDER BY x.session DESC LIMIT 10)
                    UNION ALL
                    (SELECT x.* FROM pricing.calendar_sessions x
                     WHERE x.calendar = wanted_calendar AND x.session > one.day ORDER BY x.session LIMIT 10)) s
                ORDER BY s.session < one.day DESC, s.closes_at - s.opens_at DESC, s.session DESC LIMIT 1;
            END IF;
            CONTINUE WHEN opened IS NULL;
            INSERT INTO pricing.calendar_sessions AS s (calendar, session, opens_at, closes_at)
            VALUES (wanted_calendar, one.day, opened, closed)
            ON CONFLICT ON CONSTRAINT calendar_sessions_pkey DO UPDATE SET opens_at = excluded.opens_at,
                closes_at = excluded.closes_at
                WHERE (s.opens_at, s.closes_at) IS DISTINCT FROM (excluded.opens_at, excluded.closes_at)
                  AND one.opens_at IS NOT NULL;
        END IF;
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END $$;
COMMENT ON FUNCTION pricing.apply_corrections(text, date, date) IS
    'Applies a calendar''s corrections to its sessions between two days; returns how many days.';


CREATE OR REPLACE FUNCTION pricing.correct_calendar(
    wanted_calendar text, on_day date, open_ boolean, opens time, closes time, why text, said_at text,
    by_ text) RETURNS text
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    known pricing.calendars;
    before pricing.calendar_corrections;
BEGIN
    SELECT * INTO known FROM pricing.calendars c WHERE c.calendar = wanted_calendar FOR UPDATE;
    IF known.calendar IS NULL THEN
        RAISE EXCEPTION 'no trading calendar is called %', wanted_calendar
            USING HINT = 'Name one of `pricing-pipeline calendar list`.', ERRCODE = 'invalid_parameter_value';
    ELSIF opens IS NOT NULL AND known.time_zone IS NULL THEN
        RAISE EXCEPTION 'the time zone of % is not known, so hours cannot be given', wanted_calendar
            USING HINT = 'Leave the hours out: then those of the days before count.',
                ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO before FROM pricing.calendar_corrections c
    WHERE (c.calendar, c.day, c.origin) = (wanted_calendar, on_day, 'operator');
    INSERT INTO pricing.calendar_corrections AS c (calendar, day, origin, is_open, opens_at, closes_at, reason, source,
                                                   by_whom)
    VALUES (wanted_calendar, on_day, 'operator', open_, opens, closes, why, said_at, by_)
    ON CONFLICT (calendar, day, origin) DO UPDATE
        SET is_open = excluded.is_open, opens_at = excluded.opens_at, closes_at = excluded.closes_at,
            reason = excluded.reason, source = excluded.source, by_whom = excluded.by_whom,
            recorded_at = excluded.recorded_at;
    PERFORM pricing.after_correction(wanted_calendar, on_day,
                                     pg_catalog.format('%s has a session on %s: %s', wanted_calendar, on_day, why));
    RETURN CASE WHEN before.day IS NULL THEN 'added' ELSE 'replaced' END;
END $$;
COMMENT ON FUNCTION pricing.correct_calendar(text, date, boolean, time, time, text, text, text) IS
    'Enters a person''s correction of a day, a session or a closed day, which counts at once; returns added or '
    'replaced.';


CREATE OR REPLACE FUNCTION pricing.after_correction(wanted_calendar text, on_day date, why text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    PERFORM pricing.apply_corrections(wanted_calendar, on_day, on_day);
    DELETE FROM pricing.calendar_disagreements d WHERE d.calendar = wanted_calendar AND d.day = on_day;
    PERFORM pricing.note_opened_days(wanted_calendar, on_day, on_day, why);
    -- Pairs that waited for the next opening are judged now; the staleness check postpones those that are not due.
    IF on_day BETWEEN (now_ AT TIME ZONE 'UTC')::date - 1 AND (now_ AT TIME ZONE 'UTC')::date + 1 THEN
        UPDATE pricing.demand d SET due_at = now_
        FROM (SELECT x.data_type, x.symbol FROM pricing.demand x JOIN pricing.data_type_registry r USING (data_type)
              JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, x.symbol)
              WHERE i.calendar = wanted_calendar AND x.due_at > now_ AND r.staleness_function = 'is_market_stale'
              ORDER BY 1, 2 FOR UPDATE OF x SKIP LOCKED) waiting
        WHERE (d.data_type, d.symbol) = (waiting.data_type, waiting.symbol);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.after_correction(text, date, text) IS
    'Applies a corrected day: adds or deletes its session, marks its quarantined bars for release, and judges pairs '
    'that wait for an opening.';


CREATE OR REPLACE FUNCTION pricing.note_opened_days(wanted_calendar text, from_day date, to_day date, why text)
RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.opened_days AS opened_days (calendar, day, reason)
    SELECT DISTINCT s.calendar, s.session, why
    FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
    JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
    JOIN pricing.calendar_sessions s ON s.calendar = i.calendar AND s.session = (q.observed_at AT TIME ZONE 'UTC')::date
    WHERE q.kind = 'closed_day' AND q.status = 'quarantined' AND i.calendar = wanted_calendar
      AND q.observed_at BETWEEN (from_day::timestamp AT TIME ZONE 'UTC') AND (to_day::timestamp AT TIME ZONE 'UTC')
    -- A worker that has not seen these bars when it releases the day's waits here, and does not forget the day.
    ORDER BY 2 ON CONFLICT (calendar, day) DO UPDATE SET notes = opened_days.notes + 1
$$;
COMMENT ON FUNCTION pricing.note_opened_days(text, date, date, text) IS
    'Records sessions between two days with bars quarantined as closed_day, so that workers release these.';


CREATE OR REPLACE FUNCTION pricing.weigh_closed_days(wanted_type text, symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    proved record;
    opened integer := 0;
BEGIN
    -- If two answers come at once, the second one sees the bars of the first.
    PERFORM FROM pricing.calendars c
    WHERE c.calendar IN (SELECT i.calendar
                         FROM pricing.data_type_registry r
                         JOIN pricing.instruments i USING (asset_class)
                         WHERE r.data_type = wanted_type AND i.symbol = ANY (symbols))
    ORDER BY c.calendar FOR NO KEY UPDATE;
    FOR proved IN
        WITH days AS (
            SELECT DISTINCT i.calendar, q.observed_at
            FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
            JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
            WHERE q.data_type = wanted_type
              AND q.symbol = ANY (symbols)
              AND q.kind = 'closed_day'
              AND q.status = 'quarantined'
              AND i.calendar IS NOT NULL),
        witnesses AS (
            SELECT d.calendar, d.observed_at, i.symbol, q.provider
            FROM days d
            JOIN pricing.instruments i ON i.calendar = d.calendar
            JOIN pricing.data_type_registry r ON r.asset_class = i.asset_class
            JOIN pricing.quarantined_values q ON q.data_type = r.data_type
                AND q.symbol = i.symbol
                AND q.observed_at = d.observed_at
            WHERE q.kind = 'closed_day' AND q.status <> 'rejected'
              -- A source that repeats the last close on a holiday reports a volume of 0: nothing was traded.
              AND coalesce((q.bar ->> 'volume')::numeric > 0, true)
            UNION
            SELECT d.calendar, d.observed_at, q.symbol, o.provider
            FROM days d
            JOIN pricing.instruments i ON i.calendar = d.calendar
            JOIN pricing.data_type_registry r ON r.asset_class = i.asset_class
            JOIN pricing.quarantined_values q ON q.data_type = r.data_type
                AND q.symbol = i.symbol
                AND q.observed_at = d.observed_at
            JOIN pricing.second_opinions o ON o.value_id = q.value_id
            WHERE q.kind = 'closed_day' AND q.status <> 'rejected' AND coalesce((q.bar ->> 'volume')::numeric > 0, true)
              AND pricing.agreement(o.ratio) = 'agrees' AND o.observed_at = q.observed_at)
        SELECT w.calendar, (w.observed_at AT TIME ZONE 'UTC')::date AS day,
               (array_agg(DISTINCT w.symbol))[:3] AS some_symbols, count(DISTINCT w.symbol) AS symbols_,
               array_agg(DISTINCT w.provider) AS providers
        FROM witnesses w GROUP BY 1, 2 HAVING count(DISTINCT w.symbol) > 1 OR count(DISTINCT w.provider) > 1
    LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pricing.calendar_corrections c
                              WHERE (c.calendar, c.day, c.origin) = (proved.calendar, proved.day, 'operator')
                                AND NOT c.is_open);
        INSERT INTO pricing.calendar_corrections (calendar, day, origin, is_open, reason)
        VALUES (proved.calendar, proved.day, 'evidence', true, pg_catalog.format(
                    'bars of %s%s, from %s', pg_catalog.array_to_string(proved.some_symbols, ', '),
                    CASE WHEN proved.symbols_ > 3 THEN pg_catalog.format(' and %s more', proved.symbols_ - 3)
                        ELSE '' END,
                    pg_catalog.array_to_string(proved.providers, ' and ')))
        ON CONFLICT DO NOTHING;
        PERFORM pricing.after_correction(proved.calendar, proved.day, pg_catalog.format(
            'bars of several instruments or providers show that %s traded on %s', proved.calendar, proved.day));
        opened := opened + 1;
    END LOOP;
    -- A person, or the library, may have opened a day while this answer was judged.
    PERFORM pricing.note_opened_days(w.calendar, w.first_day, w.last_day, w.calendar || ' has a session on that day')
    FROM (SELECT i.calendar, min((q.observed_at AT TIME ZONE 'UTC')::date) AS first_day,
          max((q.observed_at AT TIME ZONE 'UTC')::date) AS last_day
          FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
          JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
          WHERE q.data_type = wanted_type
            AND q.symbol = ANY (symbols)
            AND q.kind = 'closed_day'
            AND q.status = 'quarantined'
            AND i.calendar IS NOT NULL
          GROUP BY 1 ORDER BY 1) w;
    RETURN opened;
END $$;
COMMENT ON FUNCTION pricing.weigh_closed_days(text, text[]) IS
    'Makes days sessions if two instruments of a calendar, or two providers, have quarantined bars of them; returns '
    'how many.';


CREATE OR REPLACE FUNCTION pricing.store_disagreements(wanted_calendar text, days date[], are_open boolean[],
                                                       reasons text[])
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    today date := (pricing.clock() AT TIME ZONE 'UTC')::date;
    left_ integer;
    ahead record;
BEGIN
    -- No instrument has a bar of the day, and at least two have bars before and after it: it was closed, as the second
    -- source says.
    INSERT INTO pricing.calendar_corrections (calendar, day, origin, is_open, reason)
    SELECT wanted_calendar, u.day, 'evidence', false,
           pg_catalog.format('%s, and no instrument has a bar of it', u.reason)
    FROM unnest(days, are_open, reasons) AS u (day, is_open, reason)
    WHERE NOT u.is_open AND u.day < today - 7 AND pricing.instruments_traded(wanted_calendar, u.day, u.day) = 0
      AND pricing.instruments_traded(wanted_calendar, u.day - 7, u.day - 1) > 1
      AND pricing.instruments_traded(wanted_calendar, u.day + 1, u.day + 7) > 1
    ORDER BY u.day ON CONFLICT DO NOTHING;
    PERFORM pricing.apply_corrections(wanted_calendar, today - 400, today);
    DELETE FROM pricing.calendar_disagreements d WHERE d.calendar = wanted_calendar AND NOT d.day = ANY (days);
    INSERT INTO pricing.calendar_disagreements AS d (calendar, day, is_open, reason)
    SELECT wanted_calendar, u.day, u.is_open, u.reason FROM unnest(days, are_open, reasons) AS u (day, is_open, reason)
    ORDER BY u.day ON CONFLICT (calendar, day) DO UPDATE SET is_open = excluded.is_open, reason = excluded.reason;
    -- A correction has decided, and so has a bar of the day.
    DELETE FROM pricing.calendar_disagreements d
    WHERE d.calendar = wanted_calendar
      AND (EXISTS (SELECT FROM pricing.calendar_corrections c WHERE c.calendar = d.calendar AND c.day = d.day)
           OR (NOT d.is_open AND pricing.instruments_traded(wanted_calendar, d.day, d.day) > 0)
           OR (d.is_open AND d.day < today - 7 AND pricing.instruments_traded(wanted_calendar, d.day, d.day) = 0
               AND pricing.instruments_traded(wanted_calendar, d.day - 7, d.day - 1) > 1
               AND pricing.instruments_traded(wanted_calendar, d.day + 1, d.day + 7) > 1));
    SELECT count(*) AS days_, min(d.day) AS next_ INTO ahead
    FROM pricing.calendar_disagreements d WHERE d.calendar = wanted_calendar AND d.day >= today;
    IF ahead.days_ > 0 THEN
        PERFORM pricing.warn('extend_calendars', wanted_calendar, pg_catalog.format(
            'two sources disagree about %s coming day(s) of %s, the first of them %s. Until bars show which is right, '
            'the first source counts; `pricing-pipeline calendar list %s` shows the days, and `calendar '
            'add-session|close-day` decides',
            ahead.days_, wanted_calendar, ahead.next_, wanted_calendar), '01000');
    END IF;
    SELECT count(*) INTO left_ FROM pricing.calendar_disagreements d WHERE d.calendar = wanted_calendar;
    RETURN left_;
END $$;
COMMENT ON FUNCTION pricing.store_disagreements(text, date[], boolean[], text[]) IS
    'Stores the days on which the second source disagrees with a calendar, unless bars or corrections decide them; '
    'returns how many.';


CREATE OR REPLACE FUNCTION pricing.instruments_traded(wanted_calendar text, from_day date, to_day date) RETURNS bigint
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT count(*) FROM pricing.instruments i
    WHERE i.calendar = wanted_calendar AND EXISTS (
        SELECT FROM pricing.data_type_registry r
        JOIN pricing.price_history h ON h.data_type = r.data_type AND h.symbol = i.symbol
            AND h.observed_at BETWEEN (
                from_day::timestamp AT TIME ZONE 'UTC') AND (to_day::timestamp AT TIME ZONE 'UTC')
        WHERE r.asset_class = i.asset_class AND r.fetcher = 'daily_bars')
$$;
COMMENT ON FUNCTION pricing.instruments_traded(text, date, date) IS
    'How many instruments of a calendar have a daily bar between two days.';


CREATE OR REPLACE FUNCTION pricing.store_own_sessions(wanted_calendar text, from_day date, to_day date) RETURNS integer
LANGUAGE sql SET search_path = '' AS $$
    SELECT pricing.store_sessions(
        wanted_calendar, from_day, to_day, array_agg(d.day), array_agg(d.opens_at), array_agg(d.closes_at))
    FROM (SELECT g.day::date AS day,
                 CASE wanted_calendar WHEN 'FX' THEN (g.day - interval '7 hours') AT TIME ZONE 'America/New_York'
                                      ELSE g.day AT TIME ZONE 'UTC' END AS opens_at,
                 CASE wanted_calendar WHEN 'FX' THEN (g.day + interval '17 hours') AT TIME ZONE 'America/New_York'
                                      ELSE (g.day + interval '1 day') AT TIME ZONE 'UTC' END AS closes_at
          FROM generate_series(from_day::timestamp, to_day::timestamp, interval '1 day') AS g (day)
          WHERE wanted_calendar <> 'FX' OR extract(isodow FROM g.day) < 6) d
$$;
COMMENT ON FUNCTION pricing.store_own_sessions(text, date, date) IS
    'Writes the sessions of FX (Monday to Friday, from 17:00 in New York the day before) or of 24/7; returns how '
    'many.';


CREATE OR REPLACE FUNCTION pricing.publish_lag(wanted_type text, wanted_symbol text, fetcher text)
RETURNS TABLE (lag interval)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT coalesce(
        (SELECT p.lag FROM pricing.publish_lags p WHERE (p.data_type, p.symbol) = (wanted_type, wanted_symbol)),
        pricing.usual_publish_lag(fetcher))
$$;
COMMENT ON FUNCTION pricing.publish_lag(text, text, text) IS
    'How long after the close a pair''s daily value should be there: as learned, or as usual.';


CREATE OR REPLACE FUNCTION pricing.next_value_at(
    kind pricing.data_type_registry, wanted_symbol text, confirmed_at timestamptz, ttl interval)
RETURNS TABLE (at timestamptz)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE
        -- The closing price is there a quarter of an hour after the close, even from a delayed source.
        WHEN kind.fetcher = 'quote' THEN greatest(confirmed_at + ttl, (
            SELECT s.opens_at FROM pricing.calendar_sessions s
            WHERE s.calendar = market.calendar AND s.closes_at > confirmed_at - interval '15 minutes'
            ORDER BY s.closes_at LIMIT 1))
        WHEN expected.at > confirmed_at THEN expected.at
        -- A request brought nothing: try again after a quarter of an hour, then ever more rarely, at least once in a
        -- TTL.
        ELSE confirmed_at + least(ttl, greatest(interval '15 minutes',
                                                coalesce((confirmed_at - expected.at) / 2, ttl))) END
    -- OFFSET: looked up once.
    FROM (SELECT (SELECT i.calendar FROM pricing.instruments i
                  WHERE (i.asset_class, i.symbol) = (kind.asset_class, wanted_symbol)) AS calendar OFFSET 0) market
    LEFT JOIN LATERAL (
        -- The first session without a value, or without one that was read after it had become final.
        SELECT least((SELECT s.closes_at FROM pricing.calendar_sessions s
                      WHERE s.calendar = market.calendar
                        AND s.session > (SELECT (l.observed_at AT TIME ZONE 'UTC')::pg_catalog.date
                                         FROM pricing.latest_prices l
                                         WHERE (l.data_type, l.symbol) = (kind.data_type, wanted_symbol))
                      ORDER BY s.session LIMIT 1),
                     (SELECT s.closes_at FROM pricing.calendar_sessions s
                      WHERE s.calendar = market.calendar AND s.closes_at > confirmed_at - p.lag
                      ORDER BY s.closes_at LIMIT 1)) + p.lag AS at
        FROM (SELECT x.lag FROM pricing.publish_lag(kind.data_type, wanted_symbol, kind.fetcher) x OFFSET 0) p
        WHERE pricing.is_daily(kind.fetcher) OFFSET 0) expected ON true
$$;
COMMENT ON FUNCTION pricing.next_value_at(pricing.data_type_registry, text, timestamptz, interval) IS
    'When a value newer than the confirmed one should exist: a TTL later while the market is open, or when the next '
    'daily value is published.';


CREATE OR REPLACE FUNCTION pricing.newest_expected(
    kind pricing.data_type_registry, wanted_symbol text, asked_at timestamptz, ttl_minutes integer) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    market record;
    expected timestamptz;
BEGIN
    SELECT i.calendar, m.closed_at, m.opens_at INTO market
    FROM pricing.instruments i CROSS JOIN LATERAL (
        SELECT (SELECT s.closes_at FROM pricing.calendar_sessions s
                WHERE s.calendar = i.calendar AND s.closes_at <= asked_at
                ORDER BY s.closes_at DESC
                LIMIT 1) AS closed_at,
               (SELECT s.opens_at FROM pricing.calendar_sessions s
                WHERE s.calendar = i.calendar AND s.closes_at > asked_at ORDER BY s.closes_at LIMIT 1) AS opens_at) m
    WHERE (i.asset_class, i.symbol) = (kind.asset_class, wanted_symbol);
    IF market.calendar IS NULL OR (market.closed_at IS NOT NULL AND market.opens_at IS NULL) THEN
        -- Nobody knows when it trades, or only until an earlier day: five days are longer than most holidays.
        RETURN asked_at - greatest(make_interval(mins => ttl_minutes), interval '5 days');
    ELSIF kind.fetcher = 'quote' THEN
        -- Exchanges give their quotes away only when they are 15 to 20 minutes old, and some pause at noon, which
        -- calendar_sessions says nothing: Jakarta for two and a half hours on Fridays.
        expected := asked_at - greatest(
            make_interval(mins => ttl_minutes),
            CASE WHEN market.calendar IN ('XBKK', 'XHKG', 'XIDX', 'XKLS', 'XSHG', 'XTKS') THEN interval '3 hours'
                 ELSE interval '30 minutes' END);
        -- While the market is closed the quotes of its close are the newest.
        RETURN CASE WHEN expected < market.opens_at THEN least(expected, market.closed_at - interval '20 minutes')
            ELSE expected END;
    ELSIF market.closed_at IS NULL THEN
        RETURN asked_at - greatest(make_interval(mins => ttl_minutes), interval '5 days');
    END IF;
    RETURN (SELECT s.session::timestamp AT TIME ZONE 'UTC' FROM pricing.calendar_sessions s
            WHERE s.calendar = market.calendar
              AND s.closes_at <= asked_at - (
                  SELECT p.lag FROM pricing.publish_lag(kind.data_type, wanted_symbol, kind.fetcher) p)
            ORDER BY s.closes_at DESC LIMIT 1);
END $$;
COMMENT ON FUNCTION pricing.newest_expected(pricing.data_type_registry, text, timestamptz, integer) IS
    'The oldest acceptable time of an up-to-date source''s newest value when it was asked; NULL = no session is '
    'known.';


CREATE OR REPLACE FUNCTION pricing.is_usual_pause(wanted_type text, wanted_symbol text, newest timestamptz,
                                                  asked_at timestamptz)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT count(g.gap) >= 3
        AND min(g.gap) > interval '4 days'
        AND asked_at - newest <= 1.25 * max(g.gap) + interval '3 days'
    FROM (SELECT h.observed_at - lag(h.observed_at) OVER (ORDER BY h.observed_at) AS gap
          FROM (SELECT x.observed_at FROM pricing.price_history x
                WHERE x.data_type = wanted_type AND x.symbol = wanted_symbol AND x.observed_at <= newest
                ORDER BY x.observed_at DESC LIMIT 6) h) g
$$;
COMMENT ON FUNCTION pricing.is_usual_pause(text, text, timestamptz, timestamptz) IS
    'Whether a pair''s last values came so rarely, as of a fund valued each week or month, that the next need not be '
    'there yet.';


CREATE OR REPLACE FUNCTION pricing.is_source_old(
    kind pricing.data_type_registry, symbol text, observed_at timestamptz, asked_at timestamptz,
    ttl_minutes integer) RETURNS boolean
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE
        WHEN observed_at IS NULL THEN false
        -- Most values are this new: no calendar expects more.
        WHEN observed_at >= asked_at - CASE kind.fetcher
                                           WHEN 'quote'
                                           THEN pg_catalog.make_interval(mins => greatest(ttl_minutes, 30))
                                           ELSE interval '1 day' END
        THEN false
        WHEN coalesce(observed_at >= pricing.newest_expected(kind, symbol, asked_at, ttl_minutes), true) THEN false
        ELSE kind.fetcher = 'quote' OR NOT pricing.is_usual_pause(kind.data_type, symbol, observed_at, asked_at) END
$$;
COMMENT ON FUNCTION pricing.is_source_old(pricing.data_type_registry, text, timestamptz, timestamptz, integer) IS
    'Whether a source that was asked at a time had nothing as new as it should have.';


CREATE OR REPLACE FUNCTION pricing.is_market_stale(
    data_type text, symbol text, stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    IF ttl_minutes IS NULL OR ttl_minutes <= 0 THEN
        RETURN pricing.is_data_stale(stamp, ttl_minutes); -- which refuses it
    END IF;
    RETURN coalesce(
        (SELECT v.at FROM pricing.data_type_registry r
         CROSS JOIN LATERAL pricing.next_value_at(r, symbol, stamp, pg_catalog.make_interval(mins => ttl_minutes)) v
         WHERE r.data_type = is_market_stale.data_type) <= pricing.clock()
        OR stamp > pricing.clock() + interval '1 minute', true);
END $$;
COMMENT ON FUNCTION pricing.is_market_stale(text, text, timestamptz, integer) IS
    'Stale when a newer value should exist by the instrument''s calendar and by the TTL, or when there is no time at '
    'all, or one more than a minute ahead.';


CREATE OR REPLACE FUNCTION pricing.is_market_stale(stamp timestamptz, ttl_minutes integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
BEGIN
    RETURN pricing.is_data_stale(stamp, ttl_minutes);
END $$;
COMMENT ON FUNCTION pricing.is_market_stale(timestamptz, integer) IS
    'The staleness function that data types name to follow calendars; without a symbol the TTL decides.';


CREATE OR REPLACE FUNCTION pricing.learn_publish_lag() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    closed timestamptz;
    usual interval;
    known interval;
    seen interval;
BEGIN
    SELECT s.closes_at, pricing.usual_publish_lag(r.fetcher) INTO closed, usual
    FROM pricing.data_type_registry r
    JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, NEW.symbol)
    JOIN pricing.calendar_sessions s
        ON (s.calendar, s.session) = (i.calendar, (NEW.observed_at AT TIME ZONE 'UTC')::date)
    WHERE r.data_type = NEW.data_type AND r.fetcher <> 'quote';
    -- An answer before the close has a bar that is still growing.
    IF closed IS NULL OR NEW.fetched_at <= closed THEN
        RETURN NULL;
    END IF;
    SELECT p.lag INTO known FROM pricing.publish_lags p WHERE (p.data_type, p.symbol) = (NEW.data_type, NEW.symbol);
    seen := least(NEW.fetched_at - closed, interval '24 hours');
    IF OLD.fetched_at > closed THEN
        -- It was asked for after the close and was not there yet.
        known := CASE WHEN known IS NULL THEN seen ELSE (known + seen) / 2 END;
    ELSIF seen <= coalesce(known, usual) * 1.25 + interval '10 minutes' THEN
        -- It was there at the first look: next time a little earlier.
        known := coalesce(known, usual) * 0.95;
    ELSE
        RETURN NULL; -- the first look was long after
    END IF;
    INSERT INTO pricing.publish_lags (data_type, symbol, lag) VALUES (NEW.data_type, NEW.symbol, known)
    ON CONFLICT ON CONSTRAINT publish_lags_pkey DO UPDATE SET lag = excluded.lag;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.learn_publish_lag() IS
    'Learns from a daily value''s first appearance how long after the close to look for it.';

CREATE TRIGGER learn_publish_lag
    AFTER UPDATE OF observed_at ON pricing.latest_prices
    FOR EACH ROW WHEN (
        OLD.observed_at < NEW.observed_at
        AND NEW.observed_at = date_trunc('day', NEW.observed_at, 'UTC'))
    EXECUTE FUNCTION pricing.learn_publish_lag();


CREATE OR REPLACE FUNCTION pricing.usual_publish_lag(fetcher text) RETURNS interval
LANGUAGE sql IMMUTABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT CASE fetcher WHEN 'nav' THEN interval '6 hours' ELSE interval '15 minutes' END
$$;
COMMENT ON FUNCTION pricing.usual_publish_lag(text) IS
    'How long after the close to look for a daily value before anything was learned.';
