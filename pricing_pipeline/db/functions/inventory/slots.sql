-- Stores what providers answer about slots. Reading them: availability.sql.

CREATE OR REPLACE FUNCTION pricing.said_slots(slots jsonb)
RETURNS TABLE (n integer, symbol text, option_id text, slot_id text, local_start timestamp, local_end timestamp,
               utc_offset integer, end_utc_offset integer, bookable_until timestamptz, status text,
               remaining integer, capacity integer, currency text, scale smallint)
LANGUAGE sql IMMUTABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT u.* FROM pg_catalog.jsonb_to_recordset(slots)
        AS u (n integer, symbol text, option_id text, slot_id text, local_start timestamp, local_end timestamp,
              utc_offset integer, end_utc_offset integer, bookable_until timestamptz, status text,
              remaining integer, capacity integer, currency text, scale smallint)
$$;
COMMENT ON FUNCTION pricing.said_slots(jsonb) IS 'The slots of an answer, numbered; offsets from UTC are in seconds.';


CREATE OR REPLACE FUNCTION pricing.said_days(from_call bigint, days jsonb)
RETURNS TABLE (symbol text, day date)
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    SELECT d.symbol, day.day
    FROM pg_catalog.jsonb_to_recordset(days) AS d (symbol text, first_day date, last_day date, unread date[])
    CROSS JOIN LATERAL (SELECT d.first_day + g.n AS day
                        FROM pg_catalog.generate_series(0, d.last_day - d.first_day) AS g (n)) day
    WHERE day.day <> ALL (coalesce(d.unread, '{}'))
      AND NOT EXISTS (SELECT FROM pricing.slot_windows w
                      WHERE w.symbol = d.symbol AND w.call_id > from_call AND day.day BETWEEN w.first_day AND w.last_day
                        AND day.day <> ALL (w.unread_days))
$$;
COMMENT ON FUNCTION pricing.said_days(bigint, jsonb) IS
    'The local days that an answer lists in full, except those that a later call has listed already.';


CREATE OR REPLACE FUNCTION pricing.leave_previous_provider(
    answered text[], from_provider text, from_call bigint, now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    moved text[] := ARRAY(SELECT w.symbol FROM pricing.slot_windows w
                          WHERE w.symbol = ANY (answered) AND w.provider <> from_provider
                          GROUP BY w.symbol
                          HAVING max(w.call_id) < from_call);
BEGIN
    UPDATE pricing.slots s SET (status, call_id, recorded_at) = ('vanished', from_call, now_)
    WHERE s.symbol = ANY (moved) AND s.provider <> from_provider AND s.status <> 'vanished' AND s.ends_at > now_;
    UPDATE pricing.product_options o SET is_listed = false, call_id = from_call, recorded_at = now_
    WHERE o.symbol = ANY (moved) AND o.provider <> from_provider AND o.is_listed;
    UPDATE pricing.pax_categories c SET is_listed = false, call_id = from_call, recorded_at = now_
    WHERE c.symbol = ANY (moved) AND c.provider <> from_provider AND c.is_listed;
    -- Otherwise its days would count as fresh again after a request for some of them.
    DELETE FROM pricing.slot_windows w WHERE w.symbol = ANY (moved) AND w.provider <> from_provider;
    PERFORM pricing.doubt_slots(m.symbol, from_provider) FROM unnest(moved) AS m (symbol) ORDER BY m.symbol;
END $$;
COMMENT ON FUNCTION pricing.leave_previous_provider(text[], text, bigint, timestamptz) IS
    'Ends what a product''s previous provider listed: its coming slots have vanished, its options and categories are '
    'unlisted, and its days are requested again.';


CREATE OR REPLACE FUNCTION pricing.write_slots(
    from_provider text, from_call bigint, now_ timestamptz, days jsonb, slots jsonb, OUT added_slots bigint[],
    OUT changed_slots bigint[])
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    WITH said AS MATERIALIZED (
        -- OFFSET: looked up one by one, never joined.
        SELECT s.*, s.local_start::date AS local_day, x.slot_key, x.ctid AS place,
               -- Without an offset from UTC they are placed by the product's zone.
               CASE WHEN s.utc_offset IS NULL THEN p.zone END AS time_zone,
               CASE WHEN s.utc_offset IS NULL THEN pricing.instant_of(s.local_start, p.zone)
                    ELSE (s.local_start - make_interval(secs => s.utc_offset)) AT TIME ZONE 'UTC' END AS starts_at,
               CASE WHEN s.utc_offset IS NULL THEN pricing.instant_of(s.local_end, p.zone)
                    ELSE (s.local_end - make_interval(secs => coalesce(s.end_utc_offset, s.utc_offset)))
                         AT TIME ZONE 'UTC' END AS ends_at
        FROM pricing.said_slots(slots) s
        CROSS JOIN LATERAL (SELECT pricing.zone_of(y) AS zone FROM pricing.products y
                            WHERE y.symbol = s.symbol OFFSET 0) p
        LEFT JOIN LATERAL (SELECT y.slot_key, y.ctid FROM pricing.slots y
                           WHERE (y.symbol, y.provider, y.option_id, y.slot_id)
                                 = (s.symbol, from_provider, s.option_id, s.slot_id) OFFSET 0) x ON true),
    stored_days AS MATERIALIZED (
        SELECT d.* FROM pricing.said_days(from_call, days) d),
    -- Stored slots whose new values are not believed: they stay as they are.
    kept AS MATERIALIZED (
        SELECT x.slot_key FROM jsonb_to_recordset(days) AS d (symbol text, kept jsonb)
        CROSS JOIN LATERAL jsonb_to_recordset(coalesce(d.kept, '[]')) AS k (option_id text, slot_id text)
        CROSS JOIN LATERAL (SELECT y.slot_key FROM pricing.slots y
                            WHERE (y.symbol, y.provider, y.option_id, y.slot_id)
                                  = (d.symbol, from_provider, k.option_id, k.slot_id) OFFSET 0) x),
    wanted AS MATERIALIZED (
        SELECT s.slot_key, s.place, s.symbol, s.option_id, s.slot_id, s.local_start, s.local_end,
               make_interval(secs => s.utc_offset) AS utc_offset,
               s.time_zone, s.starts_at, greatest(s.starts_at, s.ends_at) AS ends_at, s.bookable_until, s.status,
               s.remaining, s.capacity
        FROM said s JOIN stored_days d ON (d.symbol, d.day) = (s.symbol, s.local_day)),
    vanished AS (
        SELECT x.* FROM stored_days d
        CROSS JOIN LATERAL (SELECT y.*, y.ctid AS place FROM pricing.slots y
                            WHERE (y.symbol, y.local_day) = (d.symbol, d.day) OFFSET 0) x
        WHERE x.status <> 'vanished'
          AND NOT EXISTS (SELECT FROM said s WHERE s.slot_key = x.slot_key)
          AND x.slot_key NOT IN (SELECT k.slot_key FROM kept k)),
    news AS MATERIALIZED (
        SELECT w.* FROM wanted w WHERE w.slot_key IS NOT NULL
        UNION ALL
        SELECT v.slot_key, v.place, v.symbol, v.option_id, v.slot_id, v.local_start, v.local_end, v.utc_offset,
               v.time_zone, v.starts_at, v.ends_at, v.bookable_until, 'vanished', v.remaining, v.capacity
        FROM vanished v),
    changed AS (
        UPDATE pricing.slots x
        SET local_start = n.local_start, local_end = n.local_end, utc_offset = n.utc_offset, time_zone = n.time_zone,
            starts_at = n.starts_at, ends_at = n.ends_at, bookable_until = n.bookable_until, status = n.status,
            remaining = n.remaining, capacity = n.capacity, call_id = from_call, recorded_at = now_
        FROM news n
        WHERE x.ctid = n.place
          AND (x.local_start, x.local_end, x.utc_offset, x.time_zone, x.starts_at, x.ends_at, x.bookable_until,
               x.status, x.remaining, x.capacity)
              IS DISTINCT FROM (n.local_start, n.local_end, n.utc_offset, n.time_zone, n.starts_at, n.ends_at,
                                n.bookable_until, n.status, n.remaining, n.capacity)
        RETURNING x.slot_key),
    added AS (
        INSERT INTO pricing.slots AS x
            (symbol, provider, option_id, slot_id, local_start, local_end, utc_offset, time_zone, starts_at, ends_at,
             bookable_until, status, remaining, capacity, call_id, recorded_at)
        SELECT w.symbol, from_provider, w.option_id, w.slot_id, w.local_start, w.local_end, w.utc_offset, w.time_zone,
               w.starts_at, w.ends_at, w.bookable_until, w.status, w.remaining, w.capacity, from_call, now_
        FROM wanted w
        WHERE w.slot_key IS NULL
        ORDER BY w.symbol, w.local_start, w.option_id, w.slot_id
        RETURNING x.slot_key)
    SELECT ARRAY(SELECT a.slot_key FROM added a), ARRAY(SELECT c.slot_key FROM changed c)
    INTO added_slots, changed_slots;
END $$;
COMMENT ON FUNCTION pricing.write_slots(text, bigint, timestamptz, jsonb, jsonb) IS
    'Writes new and changed slots of an answer, marks those missing from a listed day as vanished, and returns the '
    'keys of both.';


CREATE OR REPLACE FUNCTION pricing.merge_slots(
    wanted_type text, from_provider text, from_call bigint, days jsonb, slots jsonb, offers jsonb)
RETURNS TABLE (symbol text, added bigint, revised bigint)
LANGUAGE plpgsql SET search_path = ''
-- Planned once, by keys, with all that it calls, however few rows there were then.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    answered text[] := ARRAY(SELECT DISTINCT d->>'symbol' FROM jsonb_array_elements(days) d ORDER BY 1);
    lost text := (
        SELECT min(s.symbol) FROM pricing.said_slots(slots) s
        WHERE s.utc_offset IS NULL AND s.symbol = ANY (answered)
          AND NOT EXISTS (SELECT FROM pricing.products p
                          WHERE p.symbol = s.symbol AND pricing.zone_of(p) IS NOT NULL OFFSET 0));
    added_slots bigint[];
    changed_slots bigint[];
BEGIN
    IF lost IS NOT NULL THEN
        RAISE EXCEPTION 'the slots of % have no offset from UTC, and no time zone of the product is known', lost
            USING HINT = pg_catalog.format('`pricing-pipeline product set-zone %s ZONE` sets it.', lost),
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO pricing.products (symbol, provider, call_id, recorded_at)
    SELECT u.symbol, from_provider, from_call, pricing.clock() FROM unnest(answered) AS u (symbol)
    WHERE NOT EXISTS (SELECT FROM pricing.products x WHERE x.symbol = u.symbol)
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    -- Every writer of a product locks its row, so answers about it take turns.
    PERFORM FROM pricing.products p WHERE p.symbol = ANY (answered) ORDER BY p.symbol FOR NO KEY UPDATE;
    UPDATE pricing.products p
    SET is_listed = true, provider = from_provider, call_id = from_call, recorded_at = pricing.clock()
    WHERE p.symbol = ANY (answered) AND NOT p.is_listed AND coalesce(p.call_id < from_call, true);
    now_ := pricing.clock();
    IF EXISTS (SELECT FROM pricing.slot_windows w WHERE w.symbol = ANY (answered) AND w.provider <> from_provider) THEN
        PERFORM pricing.leave_previous_provider(answered, from_provider, from_call, now_);
    END IF;
    PERFORM pricing.name_by_slots(from_provider, from_call, now_, slots, offers);
    SELECT w.added_slots, w.changed_slots INTO added_slots, changed_slots
    FROM pricing.write_slots(from_provider, from_call, now_, days, slots) w;
    changed_slots := changed_slots || pricing.merge_offers(from_provider, from_call, now_, days, slots, offers);
    PERFORM pricing.note_slot_windows(wanted_type, from_provider, from_call, now_, days);
    PERFORM pricing.verify_instruments(wanted_type, answered, NULL);
    RETURN QUERY
    SELECT a.symbol, count(x.slot_key) FILTER (WHERE x.slot_key = ANY (added_slots)),
           count(x.slot_key) FILTER (WHERE x.slot_key <> ALL (added_slots))
    FROM unnest(answered) AS a (symbol)
    LEFT JOIN (SELECT s.symbol, s.slot_key FROM pricing.slots s
               WHERE s.slot_key = ANY (added_slots || changed_slots)) x ON x.symbol = a.symbol
    GROUP BY 1 ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.merge_slots(text, text, bigint, jsonb, jsonb, jsonb) IS
    'Stores one call''s slots of complete local days, keeps old values as revisions, marks missing ones as vanished, '
    'and returns added and changed slots for each symbol.';


CREATE OR REPLACE FUNCTION pricing.name_by_slots(
    from_provider text, from_call bigint, now_ timestamptz, slots jsonb, offers jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.product_options (symbol, provider, option_id, call_id, recorded_at)
    SELECT DISTINCT s.symbol, from_provider, s.option_id, from_call, now_ FROM pricing.said_slots(slots) s
    WHERE NOT EXISTS (SELECT FROM pricing.product_options o
                      WHERE (o.symbol, o.provider, o.option_id) = (s.symbol, from_provider, s.option_id) OFFSET 0)
    ORDER BY 1, 3;
    UPDATE pricing.product_options o SET is_listed = true, call_id = from_call, recorded_at = now_
    FROM (SELECT DISTINCT s.symbol, s.option_id FROM pricing.said_slots(slots) s) n
    WHERE (o.symbol, o.provider, o.option_id) = (n.symbol, from_provider, n.option_id)
      AND NOT o.is_listed AND o.call_id < from_call;
    WITH said AS MATERIALIZED (
        -- The widest of its ages; NULL = without a bound.
        SELECT s.symbol, u.category_id, min(u.name) AS name, max(u.pax_count) AS pax_count,
               CASE WHEN bool_and(u.age_from IS NOT NULL) THEN min(u.age_from) END AS age_from,
               CASE WHEN bool_and(u.age_to IS NOT NULL) THEN max(u.age_to) END AS age_to
        FROM jsonb_to_recordset(offers)
            AS u (n integer, category_id text, name text, pax_count integer, age_from integer, age_to integer)
        JOIN pricing.said_slots(slots) s USING (n)
        GROUP BY 1, 2),
    found AS MATERIALIZED (
        -- Where slots name a category by its id alone, what was known of it says more.
        SELECT s.symbol, s.category_id, coalesce(nullif(s.name, s.category_id), x.name, s.name) AS name,
               CASE WHEN s.name = s.category_id THEN coalesce(x.pax_count, s.pax_count)
                    ELSE s.pax_count END AS pax_count,
               CASE WHEN s.name = s.category_id AND num_nonnulls(s.age_from, s.age_to) = 0 THEN x.age_from
                    ELSE s.age_from END AS age_from,
               CASE WHEN s.name = s.category_id AND num_nonnulls(s.age_from, s.age_to) = 0 THEN x.age_to
                    ELSE s.age_to END AS age_to,
               x.place, x.is_described
        FROM said s
        LEFT JOIN LATERAL (SELECT c.ctid AS place, c.* FROM pricing.pax_categories c
                           WHERE (c.symbol, c.provider, c.category_id) = (s.symbol, from_provider, s.category_id)
                           OFFSET 0) x ON true),
    renamed AS (
        UPDATE pricing.pax_categories c
        SET name = f.name, pax_count = f.pax_count, age_from = f.age_from, age_to = f.age_to, call_id = from_call,
            recorded_at = now_
        FROM found f
        WHERE c.ctid = f.place AND NOT f.is_described
          AND (c.name, c.pax_count, c.age_from, c.age_to) IS DISTINCT FROM (f.name, f.pax_count, f.age_from, f.age_to))
    INSERT INTO pricing.pax_categories
        (symbol, provider, category_id, name, pax_count, age_from, age_to, is_described, call_id, recorded_at)
    SELECT f.symbol, from_provider, f.category_id, f.name, f.pax_count, f.age_from, f.age_to, false, from_call, now_
    FROM found f
    WHERE f.place IS NULL
    ORDER BY 1, 3;
END $$;
COMMENT ON FUNCTION pricing.name_by_slots(text, bigint, timestamptz, jsonb, jsonb) IS
    'Adds options and categories that only slots have named so far, corrects names and ages of such categories, and '
    'lists options again that have slots.';


CREATE OR REPLACE FUNCTION pricing.merge_offers(
    from_provider text, from_call bigint, now_ timestamptz, days jsonb, slots jsonb, offers jsonb) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    changed_slots bigint[];
BEGIN
    WITH said AS MATERIALIZED (
        -- A slot without offers has a row without a category. OFFSET: looked up one by one, never joined.
        SELECT x.slot_key, c.category_key, u.minimum, u.maximum, u.remaining, u.is_primary, u.final_price,
               u.original_price, s.currency, s.scale,
               c.category_key IS NOT NULL AND coalesce(u.final_price, u.original_price) IS NOT NULL AS has_price
        FROM pricing.said_slots(slots) s
        JOIN pricing.said_days(from_call, days) d ON (d.symbol, d.day) = (s.symbol, s.local_start::date)
        CROSS JOIN LATERAL (SELECT y.slot_key FROM pricing.slots y
                            WHERE (y.symbol, y.provider, y.option_id, y.slot_id)
                                  = (s.symbol, from_provider, s.option_id, s.slot_id) OFFSET 0) x
        LEFT JOIN jsonb_to_recordset(offers)
            AS u (n integer, category_id text, minimum integer, maximum integer, remaining integer, is_primary boolean,
                  final_price bigint, original_price bigint) USING (n)
        LEFT JOIN LATERAL (SELECT y.category_key FROM pricing.pax_categories y
                           WHERE (y.symbol, y.provider, y.category_id) = (s.symbol, from_provider, u.category_id)
                           OFFSET 0) c ON true),
    listed AS MATERIALIZED (
        SELECT DISTINCT s.slot_key FROM said s),
    places AS MATERIALIZED (
        SELECT x.* FROM listed l
        CROSS JOIN LATERAL (SELECT y.ctid AS place, y.* FROM pricing.pax_availability y
                            WHERE y.slot_key = l.slot_key OFFSET 0) x),
    prices AS MATERIALIZED (
        SELECT x.* FROM listed l
        CROSS JOIN LATERAL (SELECT y.ctid AS place, y.* FROM pricing.slot_prices y
                            WHERE y.slot_key = l.slot_key OFFSET 0) x),
    -- An offer that is gone keeps its last values, and is marked.
    changed_places AS (
        UPDATE pricing.pax_availability a
        SET minimum = n.minimum, maximum = n.maximum, remaining = n.remaining, is_primary = n.is_primary,
            is_offered = n.is_offered, call_id = from_call, recorded_at = now_
        FROM (SELECT p.place, s.minimum, s.maximum, s.remaining, s.is_primary, true AS is_offered
              FROM places p JOIN said s USING (slot_key, category_key)
              UNION ALL
              SELECT p.place, p.minimum, p.maximum, p.remaining, p.is_primary, false
              FROM places p
              WHERE NOT EXISTS (SELECT FROM said s
                                WHERE (s.slot_key, s.category_key) = (p.slot_key, p.category_key))) n
        WHERE a.ctid = n.place
          AND (a.minimum, a.maximum, a.remaining, a.is_primary, a.is_offered)
              IS DISTINCT FROM (n.minimum, n.maximum, n.remaining, n.is_primary, n.is_offered)
        RETURNING a.slot_key),
    added_places AS (
        INSERT INTO pricing.pax_availability AS a
            (slot_key, category_key, minimum, maximum, remaining, is_primary, call_id, recorded_at)
        SELECT s.slot_key, s.category_key, s.minimum, s.maximum, s.remaining, s.is_primary, from_call, now_
        FROM said s
        WHERE s.category_key IS NOT NULL
          AND NOT EXISTS (SELECT FROM places p WHERE (p.slot_key, p.category_key) = (s.slot_key, s.category_key))
        ORDER BY 1, 2
        RETURNING a.slot_key),
    changed_prices AS (
        UPDATE pricing.slot_prices a
        SET final_price = n.final_price, original_price = n.original_price, currency = n.currency, scale = n.scale,
            call_id = from_call, recorded_at = now_
        FROM (SELECT p.place, s.final_price, s.original_price, s.currency, s.scale
              FROM prices p JOIN said s USING (slot_key, category_key)
              WHERE s.has_price
              UNION ALL
              SELECT p.place, NULL, NULL, p.currency, p.scale
              FROM prices p
              WHERE NOT EXISTS (SELECT FROM said s
                                WHERE (s.slot_key, s.category_key) = (p.slot_key, p.category_key)
                                  AND s.has_price)) n
        WHERE a.ctid = n.place
          AND (a.final_price, a.original_price, a.currency, a.scale)
              IS DISTINCT FROM (n.final_price, n.original_price, n.currency, n.scale)
        RETURNING a.slot_key),
    added_prices AS (
        INSERT INTO pricing.slot_prices AS a
            (slot_key, category_key, final_price, original_price, currency, scale, call_id, recorded_at)
        SELECT s.slot_key, s.category_key, s.final_price, s.original_price, s.currency, s.scale, from_call, now_
        FROM said s
        WHERE s.has_price
          AND NOT EXISTS (SELECT FROM prices p WHERE (p.slot_key, p.category_key) = (s.slot_key, s.category_key))
        ORDER BY 1, 2
        RETURNING a.slot_key)
    SELECT coalesce(array_agg(w.slot_key), '{}') INTO changed_slots
    FROM (SELECT c.slot_key FROM changed_places c
          UNION
          SELECT a.slot_key FROM added_places a
          UNION
          SELECT c.slot_key FROM changed_prices c
          UNION
          SELECT a.slot_key FROM added_prices a) w;
    RETURN changed_slots;
END $$;
COMMENT ON FUNCTION pricing.merge_offers(text, bigint, timestamptz, jsonb, jsonb, jsonb) IS
    'Stores categories, places and prices of slots that are stored already, and returns the changed slots.';


CREATE OR REPLACE FUNCTION pricing.note_slot_windows(
    wanted_type text, from_provider text, from_call bigint, now_ timestamptz, days jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    covered record;
BEGIN
    INSERT INTO pricing.slot_windows AS w
        (data_type, symbol, first_day, last_day, unread_days, fetched_at, provider, call_id)
    SELECT wanted_type, d.symbol, d.first_day, d.last_day, coalesce(d.unread, '{}'), now_, from_provider, from_call
    FROM jsonb_to_recordset(days) AS d (symbol text, first_day date, last_day date, unread date[])
    ORDER BY 2
    ON CONFLICT (data_type, symbol) DO UPDATE
        SET first_day = excluded.first_day, last_day = excluded.last_day, unread_days = excluded.unread_days,
            fetched_at = excluded.fetched_at, provider = excluded.provider, call_id = excluded.call_id
        WHERE w.call_id < excluded.call_id;
    -- Days that a wider window has just brought are not requested again.
    FOR covered IN
        SELECT r.data_type, array_agg(d.symbol ORDER BY d.symbol) AS symbols
        FROM pricing.data_type_registry own
        JOIN pricing.data_type_registry r ON r.fetcher = own.fetcher AND r.asset_class = own.asset_class
        -- A day that has begun since it was asked for, or by another zone, is not in the answer: the pair is asked for
        -- again. OFFSET: looked up once.
        CROSS JOIN (SELECT u.*
                    FROM jsonb_to_recordset(days) AS u (symbol text, first_day date, last_day date, unread date[])
                    WHERE u.first_day = pricing.product_day(u.symbol) OFFSET 0) d
        WHERE own.data_type = wanted_type
          AND (r.data_type = wanted_type
               OR (r.is_active AND r.days_ahead <= d.last_day - d.first_day + 1
                   -- Types whose window includes an unreadable day request it again.
                   AND d.first_day + r.days_ahead <= ALL (coalesce(d.unread, '{}'))))
        GROUP BY 1 ORDER BY 1
    LOOP
        PERFORM pricing.confirm_pairs(covered.data_type, covered.symbols, from_provider, from_call);
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.note_slot_windows(text, text, bigint, timestamptz, jsonb) IS
    'Records which days an answer listed, and, if they begin today at the product, confirms its pairs and those of '
    'every slot type that asks for no more days.';
