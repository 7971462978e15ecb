-- Months of history as files: which are due, and which move out of the database. prices/exporting.py writes the files,
-- and prices/moved_values.py reads them.

CREATE OR REPLACE FUNCTION pricing.start_of(day date) RETURNS timestamptz
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$ SELECT day::timestamp AT TIME ZONE 'UTC' $$;
COMMENT ON FUNCTION pricing.start_of(date) IS 'Midnight UTC of a day.';


CREATE OR REPLACE FUNCTION pricing.month_changes(wanted_type text, first_month date, last_month date)
RETURNS TABLE (month date, changes bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT c.month, sum(c.changes)::bigint
    FROM (SELECT v.data_type, v.month, v.changes FROM pricing.data_versions v
          UNION ALL
          SELECT n.data_type, n.month, n.changes FROM pricing.data_changes n) c
    WHERE c.data_type = wanted_type AND c.month BETWEEN first_month AND last_month
    GROUP BY 1
$$;
COMMENT ON FUNCTION pricing.month_changes(text, date, date) IS
    'How often values of some months of a type were ever added, changed or taken out, except by a move to a file.';


CREATE OR REPLACE FUNCTION pricing.file_digits(whole integer, decimals integer) RETURNS integer
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$ SELECT CASE WHEN whole + decimals <= 18 THEN 18 ELSE 38 END $$;
COMMENT ON FUNCTION pricing.file_digits(integer, integer) IS
    'Digits of a file''s decimals: 18 are a number of 64 bits, with which every program computes.';


CREATE OR REPLACE FUNCTION pricing.exports(wanted_type text, first_month date, last_month date)
RETURNS TABLE (month date, changes bigint, is_due boolean, versions bigint, exported_at timestamptz,
               moved_at timestamptz)
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- All files of a type have the same decimals: if a later file needs more, the earlier ones are written again.
    SELECT coalesce(c.month, e.month), coalesce(c.changes, 0),
           coalesce(c.changes, 0) IS DISTINCT FROM e.changes OR NOT coalesce(e.is_wide_enough, false),
           e.versions, e.exported_at, e.moved_at
    FROM pricing.month_changes(wanted_type, first_month, last_month) c
    FULL JOIN (SELECT x.*,
                      (x.price_decimals, pricing.file_digits(x.price_whole, x.price_decimals),
                       x.volume_decimals, pricing.file_digits(x.volume_whole, x.volume_decimals))
                      = (most.price_decimals, pricing.file_digits(most.price_whole, most.price_decimals),
                         most.volume_decimals, pricing.file_digits(most.volume_whole, most.volume_decimals))
                          AS is_wide_enough
               FROM pricing.exported_months x
               CROSS JOIN (SELECT max(m.price_whole) AS price_whole, max(m.price_decimals) AS price_decimals,
                                  max(m.volume_whole) AS volume_whole, max(m.volume_decimals) AS volume_decimals
                           FROM pricing.exported_months m
                           WHERE m.data_type = wanted_type) most
               WHERE x.data_type = wanted_type AND x.month BETWEEN first_month AND last_month) e ON e.month = c.month
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.exports(text, date, date) IS
    'Months of a type that have ever changed or have a file, with how many values the file has, and whether it is '
    'missing or old.';


CREATE OR REPLACE FUNCTION pricing.month_versions(wanted_type text, wanted_month date)
RETURNS SETOF pricing.price_revisions
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Symbol by symbol, by the primary key: a month is a small part of each symbol's rows.
    WITH RECURSIVE symbols (symbol) AS (
        (SELECT h.symbol FROM pricing.price_history h WHERE h.data_type = wanted_type ORDER BY h.symbol LIMIT 1)
        UNION ALL
        SELECT (SELECT h.symbol FROM pricing.price_history h
                WHERE h.data_type = wanted_type AND h.symbol > s.symbol
                ORDER BY h.symbol LIMIT 1)
        FROM symbols s
        WHERE s.symbol IS NOT NULL),
    span (since, before) AS (
        SELECT pricing.start_of(wanted_month), pricing.start_of((wanted_month + interval '1 month')::date))
    SELECT v.data_type, v.symbol, v.observed_at, v.amount, v.open_amount, v.high_amount, v.low_amount, v.scale,
           v.currency, v.volume, v.provider, v.call_id, v.recorded_at, v.revised_at, v.revised_by, v.adjustment,
           v.quality, v.source_text
    FROM (SELECT h.data_type, h.symbol, h.observed_at, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale,
                 h.currency, h.volume, h.provider, h.call_id, h.fetched_at AS recorded_at,
                 'infinity'::timestamptz AS revised_at,
                 NULL::bigint AS revised_by, h.adjustment, h.quality, h.source_text
          FROM span CROSS JOIN symbols s
          CROSS JOIN LATERAL (SELECT x.* FROM pricing.price_history x
                              WHERE x.data_type = wanted_type AND x.symbol = s.symbol
                                AND x.observed_at >= span.since AND x.observed_at < span.before) h
          UNION ALL
          SELECT r.data_type, r.symbol, r.observed_at, r.amount, r.open_amount, r.high_amount, r.low_amount, r.scale,
                 r.currency, r.volume, r.provider, r.call_id, r.recorded_at, r.revised_at, r.revised_by, r.adjustment,
                 r.quality, r.source_text
          FROM span JOIN pricing.price_revisions r
               ON r.data_type = wanted_type AND r.observed_at >= span.since AND r.observed_at < span.before) v
    ORDER BY v.symbol COLLATE "C", v.observed_at, v.revised_at
$$;
COMMENT ON FUNCTION pricing.month_versions(text, date) IS
    'All of a month''s values of a type in the database, believed ones (until infinity) and revisions, by symbol and '
    'time.';


CREATE OR REPLACE FUNCTION pricing.note_export(
    wanted_type text, wanted_month date, in_file bigint, changes bigint, bytes bigint, digest text,
    price_whole integer, price_decimals integer, volume_whole integer, volume_decimals integer) RETURNS void
-- With the owner's rights: no worker may say which months have moved.
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    INSERT INTO pricing.exported_months AS e (
        data_type, month, versions, changes, file_bytes, sha256, exported_at,
        price_whole, price_decimals, volume_whole, volume_decimals)
    VALUES (wanted_type, wanted_month, in_file, note_export.changes, bytes, digest, pricing.clock(),
            note_export.price_whole, note_export.price_decimals, note_export.volume_whole, note_export.volume_decimals)
    ON CONFLICT ON CONSTRAINT exported_months_pkey DO UPDATE
        SET versions = excluded.versions, changes = excluded.changes, file_bytes = excluded.file_bytes,
            sha256 = excluded.sha256, exported_at = excluded.exported_at, coming = '{}',
            price_whole = excluded.price_whole, price_decimals = excluded.price_decimals,
            volume_whole = excluded.volume_whole, volume_decimals = excluded.volume_decimals
$$;
COMMENT ON FUNCTION
    pricing.note_export(text, date, bigint, bigint, bigint, text, integer, integer, integer, integer) IS
    'Records that a month''s file has been written, and with how many digits.';


CREATE OR REPLACE FUNCTION pricing.announce_export(wanted_type text, wanted_month date, bytes bigint, digest text)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    UPDATE pricing.exported_months e SET coming = e.coming || jsonb_build_object(digest, bytes)
    WHERE (e.data_type, e.month) = (wanted_type, wanted_month)
$$;
COMMENT ON FUNCTION pricing.announce_export(text, date, bigint, text) IS
    'Records a file that is about to replace a month''s file: reads accept both until note_export.';


CREATE OR REPLACE FUNCTION pricing.lock_export(wanted_type text, wanted_month date)
RETURNS TABLE (exported_at timestamptz, moved_at timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT e.exported_at, e.moved_at FROM pricing.exported_months e
    WHERE (e.data_type, e.month) = (wanted_type, wanted_month) FOR UPDATE
$$;
COMMENT ON FUNCTION pricing.lock_export(text, date) IS
    'Locks a month against other exports until the transaction ends, and returns when it was exported and when it '
    'moved.';


CREATE OR REPLACE FUNCTION pricing.months_to_move(only_type text DEFAULT NULL)
RETURNS TABLE (data_type text, month date, versions bigint, keeps text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT e.data_type, e.month, e.versions,
           CASE WHEN EXISTS (SELECT FROM pricing.api_call_queue_live q
                             WHERE q.data_type = e.data_type AND q.window_end <> 'infinity'
                               AND q.window_start < upper(days.of_month) AND q.window_end >= lower(days.of_month))
                THEN 'being_fetched'
                WHEN EXISTS (SELECT FROM pricing.quarantined_values q
                             WHERE q.data_type = e.data_type AND q.status = 'quarantined'
                               AND q.observed_at >= pricing.start_of(lower(days.of_month))
                               AND q.observed_at < pricing.start_of(upper(days.of_month)))
                THEN 'quarantined'
                WHEN r.thin_after_days IS NOT NULL AND EXISTS (
                         SELECT FROM pricing.latest_prices l
                         LEFT JOIN pricing.thinned t ON (t.data_type, t.symbol) = (l.data_type, l.symbol)
                         WHERE l.data_type = e.data_type
                           AND coalesce(t.until, '-infinity') < pricing.start_of(upper(days.of_month)))
                THEN 'not_thinned' END
    FROM pricing.exported_months e
    JOIN pricing.data_type_registry r USING (data_type)
    CROSS JOIN LATERAL (SELECT daterange(e.month, (e.month + interval '1 month')::date) AS of_month) days
    WHERE (only_type IS NULL OR e.data_type = only_type) AND e.moved_at IS NULL
      AND pricing.start_of(e.month)
          < date_trunc('month', pricing.clock(), 'UTC') - make_interval(months => r.keep_months)
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pricing.months_to_move(text) IS
    'Exported months older than their type keeps, and what keeps a month in the database: being_fetched, quarantined '
    '(a person has to decide), or not_thinned.';


CREATE OR REPLACE FUNCTION pricing.move_month(wanted_type text, wanted_month date, verified bigint) RETURNS bigint
-- With the owner's rights: no worker may delete prices but by the policy that only the owner sets.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    start_at timestamptz := pricing.start_of(wanted_month);
    before timestamptz := pricing.start_of((wanted_month + interval '1 month')::date);
    found bigint;
    deleted bigint;
BEGIN
    IF pg_catalog.current_setting('transaction_isolation') = 'read committed' THEN
        RAISE EXCEPTION 'what is deleted must be what was compared with the file'
            USING HINT = 'Compare and move in one transaction that is REPEATABLE READ.',
                  ERRCODE = 'invalid_transaction_state';
    ELSIF NOT EXISTS (SELECT FROM pricing.months_to_move(wanted_type) m
                      WHERE m.month = wanted_month AND m.keeps IS NULL) THEN
        RAISE EXCEPTION 'the month % of % must not move', wanted_month, wanted_type
            USING HINT = 'pricing.months_to_move() lists the months that are.',
                  ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT count(*) INTO found FROM pricing.month_versions(wanted_type, wanted_month);
    IF found IS DISTINCT FROM verified THEN
        RAISE EXCEPTION '% values of % in % were compared with the file, and there are %',
            verified, wanted_type, wanted_month, found
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    WITH revised AS (
        DELETE FROM pricing.price_revisions r
        WHERE r.data_type = wanted_type AND r.observed_at >= start_at AND r.observed_at < before
        RETURNING r.symbol, r.observed_at, false AS is_believed),
    -- New values are judged by the newest stored ones, however old those are.
    kept AS (
        SELECT v.symbol, (SELECT x.observed_at FROM pricing.price_history x
                          WHERE x.data_type = wanted_type AND x.symbol = v.symbol
                          ORDER BY x.observed_at DESC OFFSET 29 LIMIT 1) AS since
        FROM (SELECT DISTINCT m.symbol FROM pricing.month_versions(wanted_type, wanted_month) m) v),
    believed AS (
        DELETE FROM pricing.price_history h USING kept k
        WHERE h.data_type = wanted_type AND h.symbol = k.symbol
          AND h.observed_at >= start_at AND h.observed_at < before AND h.observed_at < k.since
        RETURNING h.symbol, h.observed_at, true AS is_believed),
    gone AS MATERIALIZED (
        SELECT g.symbol, (g.observed_at AT TIME ZONE 'UTC')::date AS day, bool_or(g.is_believed) AS is_believed,
               count(*) AS versions
        FROM (SELECT * FROM revised UNION ALL SELECT * FROM believed) g
        GROUP BY 1, 2),
    noted AS (
        INSERT INTO pricing.moved_days AS m (data_type, symbol, days, noted_days)
        SELECT wanted_type, g.symbol,
               coalesce(range_agg(daterange(g.day, g.day, '[]')) FILTER (WHERE g.is_believed), '{}'),
               range_agg(daterange(g.day, g.day, '[]'))
        FROM gone g
        GROUP BY g.symbol
        ON CONFLICT ON CONSTRAINT moved_days_pkey DO UPDATE
            SET days = m.days + excluded.days, noted_days = m.noted_days + excluded.noted_days)
    SELECT coalesce(sum(g.versions), 0) INTO deleted FROM gone g;
    -- An unfinished export may have announced a file without some of these values.
    UPDATE pricing.exported_months e
    SET moved_at = pricing.clock(), coming = '{}',
        changes = coalesce((SELECT m.changes FROM pricing.month_changes(wanted_type, wanted_month, wanted_month) m), 0)
    WHERE (e.data_type, e.month) = (wanted_type, wanted_month);
    RETURN deleted;
END $$;
COMMENT ON FUNCTION pricing.move_month(text, date, bigint) IS
    'Deletes the values of a month that the caller has compared with its file in this transaction, except the thirty '
    'newest of each pair; returns how many.';


CREATE OR REPLACE FUNCTION pricing.has_moved(wanted_type text, wanted_symbol text, day date) RETURNS boolean
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT EXISTS (SELECT FROM pricing.moved_days m
                   WHERE (m.data_type, m.symbol) = (wanted_type, wanted_symbol) AND m.days @> day)
$$;
COMMENT ON FUNCTION pricing.has_moved(text, text, date) IS
    'Whether a pair has a believed value of that day that moved to a file.';


CREATE OR REPLACE FUNCTION pricing.moved_spans(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz, adjust text)
RETURNS TABLE (first_day date, last_day date)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT lower(s.span), upper(s.span) - 1
    FROM pricing.moved_days m
    JOIN pricing.data_type_registry r USING (data_type)
    CROSS JOIN LATERAL (
        -- The effect of a payment follows from the price before it, within two weeks: pricing.close_before.
        SELECT range_agg(daterange(a.ex_on - 14, a.ex_on)) AS days
        FROM pricing.actions_as_of(r.asset_class, wanted_symbol, as_of) a
        WHERE adjust = 'total' AND a.amount IS NOT NULL AND a.ex_on > moved_spans.first_day) d
    CROSS JOIN LATERAL unnest(
        m.noted_days * (datemultirange(daterange(moved_spans.first_day, moved_spans.last_day, '[]'))
                        + coalesce(d.days, '{}'))) AS s (span)
    WHERE (m.data_type, m.symbol) = (wanted_type, wanted_symbol)
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.moved_spans(text, text, date, date, timestamptz, text) IS
    'Days between two days for which a read needs a pair''s moved values.';


CREATE OR REPLACE FUNCTION pricing.read_moved(found jsonb) RETURNS pricing.price_revisions[]
LANGUAGE sql STABLE STRICT SET search_path = '' AS $$
    SELECT coalesce(array_agg(ROW(
        p.data_type, p.symbol, v.observed_at, v.close * unit.one, v.open * unit.one, v.high * unit.one,
        v.low * unit.one, v.scale, v.currency, round(v.volume, v.volume_scale), v.provider, v.call_id, v.recorded_at,
        coalesce(v.revised_at, 'infinity'), v.revised_by, v.adjustment, v.quality,
        v.source_text)::pricing.price_revisions), '{}')
    FROM jsonb_to_recordset(found) AS p (data_type text, symbol text, rows jsonb)
    CROSS JOIN LATERAL jsonb_to_recordset(p.rows) AS v (
        observed_at timestamptz, open numeric, high numeric, low numeric, close numeric, scale smallint, volume numeric,
        volume_scale integer, currency text, adjustment text, quality text, source_text text, provider text,
        call_id bigint, recorded_at timestamptz, revised_at timestamptz, revised_by bigint)
    CROSS JOIN LATERAL (SELECT ('1e' || v.scale)::numeric AS one) unit
$$;
COMMENT ON FUNCTION pricing.read_moved(jsonb) IS
    'Values of some pairs from files, as revisions; a value that is still believed has no end.';


CREATE OR REPLACE FUNCTION pricing.require_moved(
    wanted_type text, wanted_symbol text, first_day date, last_day date, moved pricing.price_revisions[])
RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF moved IS NULL AND EXISTS (
            SELECT FROM pricing.moved_days m
            WHERE (m.data_type, m.symbol) = (wanted_type, wanted_symbol)
              AND m.noted_days && daterange(first_day, last_day, '[]')) THEN
        RAISE EXCEPTION 'some values of % % between % and % have moved to files',
            wanted_symbol, wanted_type, first_day, last_day
            USING HINT = 'pricing-pipeline price history, /v1/history and prices.history in Python read them, too. '
                         'SQL alone cannot.',
                  ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.require_moved(text, text, date, date, pricing.price_revisions[]) IS
    'Refuses a read of days with moved values if the caller did not supply these.';
