-- Values that are not believed. They are written in the transaction that finishes their tasks, behind the fence, after
-- prices and before the call is settled.

CREATE OR REPLACE FUNCTION pricing.known_values(
    wanted_type text, from_provider text, symbols text[], first_times timestamptz[], last_times timestamptz[],
    is_latest boolean)
RETURNS TABLE (symbol text, scale smallint, currency text, adjustment text, lowest numeric, highest numeric,
               jumps_are_trusted boolean, newest_at timestamptz, newest_amount bigint, newest_scale smallint,
               earlier_at timestamptz, earlier_amount bigint, earlier_scale smallint,
               later_at timestamptz, later_amount bigint, later_scale smallint,
               kin_at timestamptz, kin_amount bigint, kin_scale smallint,
               same_times timestamptz[], same_amounts bigint[], same_scales smallint[],
               other_times timestamptz[], other_values numeric[], other_providers text[])
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    kind pricing.data_type_registry;
    alike text[];
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    alike := pricing.types_alike(wanted_type);
    RETURN QUERY
    SELECT w.symbol, i.scale, coalesce(i.currency, l.currency),
           coalesce(l.adjustment, earlier.adjustment, later.adjustment),
           bound.lowest, bound.highest, coalesce(bound.jumps_trusted_until > now_, false),
           l.observed_at, l.amount, l.scale, earlier.observed_at, earlier.amount, earlier.scale,
           later.observed_at, later.amount, later.scale, kin.observed_at, kin.amount, kin.scale,
           same.times, same.amounts, same.scales, other.times, other.given, other.providers
    FROM unnest(symbols, first_times, last_times) AS w (symbol, first_at, last_at)
    -- OFFSET 0 keeps these looks into an index for each symbol: as a join, all latest prices of the type were read.
    LEFT JOIN LATERAL (
        SELECT x.scale, x.currency FROM pricing.instruments x
        WHERE x.asset_class = kind.asset_class AND x.symbol = w.symbol OFFSET 0) i ON true
    LEFT JOIN LATERAL (
        SELECT x.symbol, x.observed_at, x.amount, x.scale, x.currency, x.adjustment FROM pricing.latest_prices x
        WHERE x.data_type = wanted_type AND x.symbol = w.symbol OFFSET 0) l ON true
    LEFT JOIN LATERAL (
        SELECT b.lowest, b.highest, b.jumps_trusted_until FROM pricing.plausibility_bounds b
        WHERE b.data_type = wanted_type AND (b.symbol = w.symbol OR b.symbol IS NULL)
        ORDER BY b.symbol NULLS LAST LIMIT 1) bound ON true
    -- A quote is compared with the newest one; values of days, with those around them.
    LEFT JOIN LATERAL (
        SELECT h.observed_at, h.amount, h.scale, h.adjustment FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at < w.first_at
          AND (NOT is_latest OR kind.fetcher <> 'quote')
        ORDER BY h.observed_at DESC LIMIT 1) earlier ON true
    LEFT JOIN LATERAL (
        SELECT h.observed_at, h.amount, h.scale, h.adjustment FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at > w.last_at AND NOT is_latest
        ORDER BY h.observed_at LIMIT 1) later ON true
    -- A pair's first price is compared with that of the same instrument in another data type.
    LEFT JOIN LATERAL (
        SELECT o.observed_at, o.amount, o.scale FROM pricing.data_type_registry t
        JOIN pricing.latest_prices o ON o.data_type = t.data_type AND o.symbol = w.symbol
        WHERE l.symbol IS NULL AND is_latest AND t.asset_class = kind.asset_class AND t.data_type <> wanted_type
        ORDER BY o.observed_at DESC LIMIT 1) kin ON true
    -- Days that come again: the stored values that would be revised.
    LEFT JOIN LATERAL (
        SELECT array_agg(h.observed_at) AS times, array_agg(h.amount) AS amounts, array_agg(h.scale) AS scales,
               coalesce(bool_or(h.provider <> from_provider), false) AS is_of_others
        FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at BETWEEN w.first_at AND w.last_at
          AND kind.fetcher <> 'quote') same ON true
    -- Other providers' values for the same times: of the pair, or of the instrument in a similar data type.
    LEFT JOIN LATERAL (
        SELECT array_agg(o.at) AS times, array_agg(o.given) AS given, array_agg(o.provider) AS providers
        FROM (SELECT h.observed_at AS at, h.amount * ('1e-' || h.scale)::numeric AS given, h.provider, h.currency
              FROM pricing.price_history h
              WHERE h.data_type = ANY (alike || wanted_type) AND h.symbol = w.symbol AND h.provider <> from_provider
                AND h.observed_at BETWEEN w.first_at AND w.last_at
                AND kind.fetcher <> 'quote'
                AND (alike IS NOT NULL OR same.is_of_others)
              UNION ALL
              SELECT p.observed_at, p.amount * ('1e-' || p.scale)::numeric, p.provider, p.currency
              FROM pricing.latest_prices p
              WHERE p.data_type = ANY (alike) AND p.symbol = w.symbol AND p.provider <> from_provider
                AND kind.fetcher = 'quote'
                AND p.observed_at BETWEEN w.first_at - interval '15 minutes' AND w.last_at + interval '15 minutes') o
        WHERE (o.currency = coalesce(i.currency, l.currency)) IS NOT FALSE
          -- Days before a split are left out, for two sources may have divided by it or not.
          AND (kind.fetcher <> 'daily_bars' OR NOT EXISTS (
              SELECT FROM pricing.corporate_actions a
              WHERE a.asset_class = kind.asset_class AND a.symbol = w.symbol AND a.new_shares IS NOT NULL
                AND a.ex_on > (o.at AT TIME ZONE 'UTC')::date))) other ON true;
END $$;
COMMENT ON FUNCTION pricing.known_values(text, text, text[], timestamptz[], timestamptz[], boolean) IS
    'What an answer is judged by, for each symbol and span: scale, currency, basis, bounds, neighbouring and stored '
    'values, and what other providers say.';


CREATE OR REPLACE FUNCTION pricing.peers(
    wanted_type text, symbols text[], first_times timestamptz[], last_times timestamptz[])
RETURNS TABLE (peer_symbol text, peer_at timestamptz, peer_value numeric, peer_low numeric, peer_high numeric,
               peer_currency text, peer_type text, peer_is_bar boolean, peer_splits float8[])
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    kind pricing.data_type_registry;
    types text[];
BEGIN
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    types := (SELECT array_agg(t.data_type) FROM pricing.data_type_registry t
              WHERE t.asset_class = kind.asset_class AND t.is_active
                AND (kind.fetcher, t.fetcher) IN (('quote', 'daily_bars'), ('daily_bars', 'quote')));
    IF types IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT w.symbol, o.at, o.given, bar.low, bar.high, o.currency, o.data_type, kind.fetcher = 'quote', split.ratios
    FROM unnest(symbols, first_times, last_times) AS w (symbol, first_at, last_at)
    CROSS JOIN LATERAL (
        SELECT l.data_type, l.observed_at AS at, l.amount * ('1e-' || l.scale)::numeric AS given, l.currency,
               (l.observed_at AT TIME ZONE 'UTC')::date AS day
        FROM pricing.latest_prices l
        WHERE l.data_type = ANY (types) AND l.symbol = w.symbol AND l.amount > 0
          AND (l.observed_at AT TIME ZONE 'UTC')::date
              BETWEEN (w.first_at AT TIME ZONE 'UTC')::date AND (w.last_at AT TIME ZONE 'UTC')::date
        ORDER BY l.observed_at DESC LIMIT 1) o
    -- A quote has no low and high of its own.
    LEFT JOIN LATERAL (
        SELECT h.low_amount * ('1e-' || h.scale)::numeric AS low, h.high_amount * ('1e-' || h.scale)::numeric AS high
        FROM pricing.price_history h
        WHERE h.data_type = o.data_type AND h.symbol = w.symbol AND h.observed_at = o.at OFFSET 0) bar ON true
    -- A quote from before the session of a split's day is of the old shares.
    LEFT JOIN LATERAL (
        SELECT array_agg((a.new_shares / a.old_shares)::float8) AS ratios FROM pricing.corporate_actions a
        WHERE a.asset_class = kind.asset_class
          AND a.symbol = w.symbol
          AND a.new_shares IS NOT NULL
          AND a.ex_on BETWEEN o.day - 1 AND o.day + 1) split ON true;
END $$;
COMMENT ON FUNCTION pricing.peers(text, text[], timestamptz[], timestamptz[]) IS
    'For quotes the believed daily bars of the same UTC days, for daily bars the believed quotes, with the ratios of '
    'splits around them.';


CREATE OR REPLACE FUNCTION pricing.types_alike(wanted_type text) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN (SELECT array_agg(t.data_type) FROM pricing.data_type_registry w
            JOIN pricing.data_type_registry t
                ON t.asset_class = w.asset_class AND t.fetcher = w.fetcher AND t.data_type <> w.data_type
            WHERE w.data_type = wanted_type AND t.is_active AND w.contents = 'prices');
END $$;
COMMENT ON FUNCTION pricing.types_alike(text) IS
    'Other data types with the same values of the same instruments, perhaps of other providers; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.quarantine(
    wanted_type text, from_provider text, from_call bigint, doubted jsonb, packed bytea, body_size integer,
    status_code integer)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    is_quote boolean := (SELECT r.fetcher = 'quote' FROM pricing.data_type_registry r
                         WHERE r.data_type = wanted_type);
    added integer;
BEGIN
    WITH sent AS MATERIALIZED (
        SELECT DISTINCT ON (h.symbol, h.observed_at, h.kind, h.value) h.*
        FROM jsonb_to_recordset(doubted)
            AS h (symbol text, observed_at timestamptz, kind text, value text, reason text, bar jsonb)
        ORDER BY h.symbol, h.observed_at, h.kind, h.value),
    -- A rejected value is never shown again, even if it fails another check, or as a quote under a newer time.
    judged AS MATERIALIZED (
        SELECT s.*, (
            SELECT q.value_id FROM pricing.quarantined_values q
            WHERE q.data_type = wanted_type AND q.symbol = s.symbol AND q.provider = from_provider
              -- 250 is 250.00.
              AND (q.value = s.value OR (q.bar ->> 'close')::numeric = (s.bar ->> 'close')::numeric)
              AND q.status = 'rejected'
              AND (q.observed_at IS NOT DISTINCT FROM s.observed_at OR (s.value <> '' AND is_quote))
            ORDER BY q.last_seen_at DESC, q.value_id DESC LIMIT 1) AS rejected_id
        FROM sent s),
    counted AS (
        UPDATE pricing.quarantined_values q
        SET times = q.times + again.times, last_seen_at = now_, last_call_id = from_call
        FROM (SELECT x.value_id, j.times
              FROM (SELECT rejected_id, count(*) AS times FROM judged
                    WHERE rejected_id IS NOT NULL
                    GROUP BY 1) j
              JOIN pricing.quarantined_values x ON x.value_id = j.rejected_id
              ORDER BY x.value_id FOR UPDATE OF x) again
        WHERE q.value_id = again.value_id),
    written AS (
        INSERT INTO pricing.quarantined_values AS q
            (data_type, symbol, provider, observed_at, kind, value, reason, bar, call_id, recorded_at, last_seen_at,
             last_call_id, ask_at)
        SELECT wanted_type, j.symbol, from_provider, j.observed_at, j.kind, j.value, left(j.reason, 500), j.bar,
               from_call, now_, now_, from_call,
               -- A second provider is asked about it, once, by the workers.
               CASE WHEN (is_quote OR j.observed_at IS NOT NULL)
                         AND pricing.second_provider(wanted_type, j.symbol, from_provider) IS NOT NULL THEN now_ END
        FROM judged j
        WHERE j.rejected_id IS NULL
        ORDER BY j.symbol, j.observed_at, j.kind, j.value
        ON CONFLICT ON CONSTRAINT same_value_is_one_row DO UPDATE
            SET times = q.times + 1, last_seen_at = excluded.last_seen_at, last_call_id = excluded.last_call_id
        RETURNING q.call_id = from_call AS is_new)
    SELECT count(*) FILTER (WHERE w.is_new) INTO added FROM written w;
    IF added > 0 AND packed IS NOT NULL THEN
        INSERT INTO pricing.quarantined_bodies (call_id, body, size, http_status, recorded_at)
        VALUES (from_call, packed, body_size, status_code, now_) ON CONFLICT DO NOTHING;
    END IF;
    RETURN added;
END $$;
COMMENT ON FUNCTION pricing.quarantine(text, text, bigint, jsonb, bytea, integer, integer) IS
    'Stores one call''s values that are not believed, and its body if one of them is new; returns how many are new.';


CREATE OR REPLACE FUNCTION pricing.is_of_level(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT kind IN ('unit', 'jump', 'spike', 'split')
$$;
COMMENT ON FUNCTION pricing.is_of_level(text) IS
    'Whether a value is quarantined because its level differs from its neighbours''.';


CREATE OR REPLACE FUNCTION pricing.is_unreadable(kind text, bar jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT kind = 'refused' AND bar IS NULL
$$;
COMMENT ON FUNCTION pricing.is_unreadable(text, jsonb) IS
    'Whether a quarantined value has nothing that could be stored: it is not a price, or two contradict each other.';


CREATE OR REPLACE FUNCTION pricing.level_of(wanted bigint) RETURNS bigint[]
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH one AS (SELECT q.* FROM pricing.quarantined_values q WHERE q.value_id = wanted),
    alike AS (
        SELECT q.value_id, q.observed_at, q.reason, (q.bar ->> 'close')::numeric AS close, q.data_type, q.symbol
        FROM one o JOIN pricing.quarantined_values q
            ON (q.data_type, q.symbol, q.provider, q.status) = (o.data_type, o.symbol, o.provider, o.status)
               AND (q.kind = o.kind OR (pricing.is_of_level(q.kind) AND pricing.is_of_level(o.kind)))
        WHERE q.bar IS NOT NULL AND q.observed_at IS NOT NULL),
    steps AS (
        SELECT a.*, lag(a.observed_at) OVER w AS at_before, lag(a.reason) OVER w AS reason_before,
               lag(a.close) OVER w AS close_before
        FROM alike a
        WINDOW w AS (ORDER BY a.observed_at, a.value_id)),
    parted AS (
        -- A level ends where the next value is far from it, or where one between the two is believed.
        SELECT s.value_id, count(*) FILTER (
                   WHERE s.at_before IS NULL
                      OR (s.reason <> s.reason_before
                          AND greatest(s.close / s.close_before, s.close_before / s.close) > 1.5)
                      OR EXISTS (SELECT FROM pricing.price_history h
                                 WHERE h.data_type = s.data_type AND h.symbol = s.symbol
                                   AND h.observed_at > s.at_before AND h.observed_at < s.observed_at))
               OVER (ORDER BY s.observed_at, s.value_id) AS level
        FROM steps s)
    SELECT coalesce(array_agg(p.value_id ORDER BY p.value_id), ARRAY[wanted])
    FROM parted p
    WHERE p.level = (SELECT x.level FROM parted x WHERE x.value_id = wanted)
$$;
COMMENT ON FUNCTION pricing.level_of(bigint) IS
    'The values quarantined with this one: consecutive, of one pair, provider, state and level, with no believed '
    'value between them.';


CREATE OR REPLACE FUNCTION pricing.store_released(ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    one record;
BEGIN
    FOR one IN
        WITH given AS (
            SELECT q.*, i.scale AS usual,
                   ARRAY[(q.bar ->> 'close')::numeric, (q.bar ->> 'open')::numeric, (q.bar ->> 'high')::numeric,
                         (q.bar ->> 'low')::numeric] AS prices,
                   -- The basis of the history, if there is one.
                   coalesce((SELECT h.adjustment FROM pricing.price_history h
                             WHERE h.data_type = q.data_type AND h.symbol = q.symbol
                             ORDER BY h.observed_at DESC LIMIT 1), q.bar ->> 'adjustment') AS basis
            FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
            LEFT JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
            WHERE q.value_id = ANY (ids)),
        scaled AS (
            -- As many decimals as the digits need, and at least the usual number, unless an amount would then be too
            -- long.
            SELECT g.*, greatest(fit.needed, least(coalesce(g.usual, 2), 18 - fit.whole))::smallint AS scale
            FROM given g
            CROSS JOIN LATERAL (
                SELECT max(min_scale(p)) AS needed, max(length(trunc(p)::text)) AS whole
                FROM unnest(g.prices) AS p) fit)
        SELECT s.data_type, s.symbol, s.provider, s.call_id,
               array_agg(s.symbol) AS symbols, array_agg(s.observed_at) AS times,
               array_agg((s.prices[1] * ('1e' || s.scale)::numeric)::bigint) AS closes,
               array_agg((s.prices[2] * ('1e' || s.scale)::numeric)::bigint) AS opens,
               array_agg((s.prices[3] * ('1e' || s.scale)::numeric)::bigint) AS highs,
               array_agg((s.prices[4] * ('1e' || s.scale)::numeric)::bigint) AS lows,
               array_agg(s.scale) AS scales, array_agg(s.bar ->> 'currency') AS currencies,
               array_agg((s.bar ->> 'volume')::numeric) AS volumes, array_agg(s.value) AS texts,
               array_agg(s.basis) AS bases, array_agg(s.bar ->> 'quality') AS qualities
        FROM (SELECT DISTINCT ON (x.data_type, x.symbol, x.observed_at) x.* FROM scaled x
              ORDER BY x.data_type, x.symbol, x.observed_at, x.last_seen_at DESC, x.value_id DESC) s
        GROUP BY s.data_type, s.symbol, s.provider, s.call_id
        ORDER BY s.data_type, s.symbol, max(s.observed_at)
    LOOP
        PERFORM pricing.merge_prices(
            one.data_type, one.provider, one.call_id, false, one.symbols, one.times, one.closes, one.opens,
            one.highs, one.lows, one.scales, one.currencies, one.volumes, one.texts, one.bases, one.qualities);
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.store_released(bigint[]) IS
    'Stores quarantined values in the history exactly as sent, with their provider and call; of several for one time '
    'the last one.';


CREATE OR REPLACE FUNCTION pricing.show_released(wanted_type text, wanted_symbol text, ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    newest pricing.price_history;
    released pricing.quarantined_values;
BEGIN
    SELECT * INTO newest
    FROM pricing.price_history h
    WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
    ORDER BY h.observed_at DESC LIMIT 1;
    SELECT * INTO released
    FROM pricing.quarantined_values q
    WHERE q.value_id = ANY (ids)
      AND (q.data_type, q.symbol, q.observed_at, q.call_id)
          = (wanted_type, wanted_symbol, newest.observed_at, newest.call_id)
    ORDER BY q.last_seen_at DESC, q.value_id DESC LIMIT 1;
    IF released.value_id IS NULL THEN
        RETURN NULL;
    END IF;
    -- It is the pair's newest value, so it becomes its latest price. Its age counts from its provider's last answer,
    -- not from the decision.
    newest.source_text := released.value;
    RETURN CASE WHEN pricing.show_latest(ARRAY[newest], released.last_seen_at) IS NOT NULL THEN released.value_id END;
END $$;
COMMENT ON FUNCTION pricing.show_released(text, text, bigint[]) IS
    'Makes the newest released value its pair''s latest price if no other is newer, and returns its id; NULL = it is '
    'not.';


CREATE OR REPLACE FUNCTION pricing.close_believed(only_ids bigint[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    closed integer;
BEGIN
    WITH believed AS MATERIALIZED (
        SELECT q.value_id, coalesce(price.call_id, action.call_id) AS call_id, action.entered_by
        FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
        LEFT JOIN LATERAL (
            SELECT h.call_id FROM pricing.price_history h
            WHERE (h.data_type, h.symbol, h.observed_at) = (q.data_type, q.symbol, q.observed_at)
              AND h.amount * ('1e-' || h.scale)::numeric = (q.bar ->> 'close')::numeric) price ON true
        LEFT JOIN LATERAL (
            SELECT a.call_id, a.entered_by FROM pricing.corporate_actions a
            WHERE pricing.is_unreadable(q.kind, q.bar) AND (a.asset_class, a.symbol) = (r.asset_class, q.symbol)
              AND a.ex_on = (q.observed_at AT TIME ZONE 'UTC')::date
              AND CASE WHEN a.amount IS NOT NULL AND q.value ~ '^[0-9]{1,18}([.][0-9]{1,18})?$'
                       THEN q.value::numeric = a.amount * ('1e-' || a.scale)::numeric
                       WHEN a.new_shares IS NOT NULL
                            AND q.value ~ '^[0-9]{1,9}([.][0-9]{1,9})?:[0-9]{1,9}([.][0-9]{1,9})?$'
                       THEN split_part(q.value, ':', 1)::numeric * a.old_shares
                            = split_part(q.value, ':', 2)::numeric * a.new_shares
                       ELSE false END) action ON true
        WHERE q.status = 'quarantined'
          AND q.observed_at IS NOT NULL
          AND (only_ids IS NULL OR q.value_id = ANY (only_ids))
          AND (price.call_id IS NOT NULL OR action.call_id IS NOT NULL)
        ORDER BY q.value_id FOR UPDATE OF q SKIP LOCKED)
    UPDATE pricing.quarantined_values q
    SET (status, resolved_at, resolved_by, resolution) = (
        'released', now_, coalesce(b.entered_by, 'call ' || b.call_id),
        CASE WHEN b.entered_by IS NULL THEN 'a later answer brought it, and was believed'
             ELSE 'it was entered by hand' END)
    FROM believed b WHERE q.value_id = b.value_id;
    GET DIAGNOSTICS closed = ROW_COUNT;
    RETURN closed;
END $$;
COMMENT ON FUNCTION pricing.close_believed(bigint[]) IS
    'Releases quarantined values that a later answer confirms or a known split or dividend explains; returns how '
    'many.';


CREATE OR REPLACE FUNCTION pricing.decide_quarantined(
    wanted bigint[], decision text, by_whom text, why text DEFAULT NULL)
RETURNS TABLE (value_id bigint, outcome text, is_latest boolean, revised boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    ids bigint[];
    in_the_way bigint[];
    shown bigint[];
    decided bigint[];
    pair record;
BEGIN
    IF decision IS NULL OR decision NOT IN ('released', 'rejected') THEN
        RAISE EXCEPTION 'a quarantined value is released or rejected, not %', decision
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF coalesce(btrim(by_whom), '') = '' THEN
        RAISE EXCEPTION 'a decision on a quarantined value needs the name of a person'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF decision = 'rejected' THEN
        -- A value that was confirmed a moment ago is a price already.
        PERFORM pricing.close_believed(wanted);
    END IF;
    SELECT array_agg(q.value_id) INTO ids
    FROM pricing.quarantined_values q JOIN pricing.data_type_registry r USING (data_type)
    WHERE q.value_id = ANY (wanted) AND q.status NOT IN ('released', decision)
      AND (decision = 'rejected' OR (r.is_active AND q.bar IS NOT NULL AND q.observed_at IS NOT NULL));
    IF decision = 'released' THEN
        -- Demand is locked before prices, and those before quarantined values: here as everywhere.
        FOR pair IN
            SELECT q.data_type, array_agg(DISTINCT q.symbol) AS symbols FROM pricing.quarantined_values q
            WHERE q.value_id = ANY (ids)
            GROUP BY 1
            ORDER BY 1
        LOOP
            PERFORM pricing.end_backoff(pair.data_type, pair.symbols);
            PERFORM pricing.end_waits(pair.data_type, pair.symbols);
        END LOOP;
        SELECT array_agg(q.value_id) INTO in_the_way
        FROM pricing.quarantined_values q
        WHERE q.value_id = ANY (ids) AND EXISTS (
            SELECT FROM pricing.price_history h
            WHERE (h.data_type, h.symbol, h.observed_at) = (q.data_type, q.symbol, q.observed_at)
              AND h.amount * ('1e-' || h.scale)::numeric <> (q.bar ->> 'close')::numeric);
        PERFORM pricing.store_released(ids);
        FOR pair IN
            SELECT DISTINCT q.data_type, q.symbol FROM pricing.quarantined_values q
            WHERE q.value_id = ANY (ids)
            ORDER BY 1, 2
        LOOP
            shown := shown || pricing.show_released(pair.data_type, pair.symbol, ids);
        END LOOP;
    END IF;
    WITH mine AS MATERIALIZED (
        SELECT q.value_id FROM pricing.quarantined_values q
        WHERE q.value_id = ANY (ids) AND q.status NOT IN ('released', decision)
        ORDER BY q.value_id FOR UPDATE),
    made AS (
        UPDATE pricing.quarantined_values q
        SET status = decision, resolved_at = now_, resolved_by = left(btrim(by_whom), 200), resolution = left(why, 500)
        FROM mine m
        WHERE q.value_id = m.value_id
        RETURNING q.value_id)
    SELECT array_agg(m.value_id) INTO decided FROM made m;
    -- A separate statement sees what others decided while the previous one waited for them.
    RETURN QUERY
    SELECT w.id, CASE WHEN w.id = ANY (decided) THEN decision
                      WHEN q.value_id IS NULL THEN 'unknown'
                      WHEN q.status IN ('released', decision) THEN q.status || '_already'
                      WHEN q.bar IS NULL OR q.observed_at IS NULL THEN 'unreadable'
                      ELSE 'retired' END,
           coalesce(w.id = ANY (shown), false), coalesce(w.id = ANY (in_the_way), false)
    FROM (SELECT x.id, min(x.place) AS place
          FROM unnest(wanted) WITH ORDINALITY AS x (id, place)
          GROUP BY 1) w
    LEFT JOIN pricing.quarantined_values q ON q.value_id = w.id
    ORDER BY w.place;
END $$;
COMMENT ON FUNCTION pricing.decide_quarantined(bigint[], text, text, text) IS
    'Releases or rejects quarantined values for a person, with level_of(id) a whole level, and returns each value''s '
    'outcome.';


CREATE OR REPLACE FUNCTION pricing.prune_quarantine() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    pruned integer;
BEGIN
    -- A source that is wrong in a new way at each refresh fills at most a thousand rows.
    DELETE FROM pricing.quarantined_values q
    WHERE q.value_id IN (
        SELECT x.value_id FROM pricing.quarantined_values x
        WHERE greatest(x.resolved_at, x.last_seen_at) < now_ - interval '90 days' AND x.status <> 'quarantined'
           OR (x.status = 'quarantined' AND x.last_seen_at < now_ - interval '400 days')
        UNION ALL
        SELECT ranked.value_id FROM (
            SELECT x.value_id,
                   row_number() OVER (PARTITION BY x.data_type, x.symbol, x.provider
                                      ORDER BY x.last_seen_at DESC, x.value_id DESC) AS place
            FROM pricing.quarantined_values x JOIN pricing.data_type_registry r USING (data_type)
            WHERE x.status = 'quarantined' AND r.fetcher = 'quote') ranked
        WHERE ranked.place > 1000
        LIMIT 50000);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    DELETE FROM pricing.quarantined_bodies b
    WHERE b.recorded_at < now_ - interval '90 days'
       OR NOT EXISTS (SELECT FROM pricing.quarantined_values q WHERE q.call_id = b.call_id)
       -- The newest hundred megabytes of each provider: a provider that sends junk with each wrong value must not fill
       -- the disk.
       OR b.call_id IN (
           SELECT sized.call_id FROM (
               SELECT x.call_id,
                      sum(octet_length(x.body)) OVER (PARTITION BY whose.provider
                                                      ORDER BY x.recorded_at DESC, x.call_id DESC) AS newer
               FROM pricing.quarantined_bodies x
               JOIN (SELECT q.call_id, min(q.provider) AS provider FROM pricing.quarantined_values q
                     GROUP BY q.call_id) whose
                   USING (call_id)) sized
           WHERE sized.newer > 100000000);
    RETURN pruned;
END $$;
COMMENT ON FUNCTION pricing.prune_quarantine() IS
    'Deletes decided values after 90 days, undecided ones after 400 or beyond 1,000 of a quoted pair, and bodies '
    'after 90 days or beyond 100 MB of a provider; returns how many values.';


CREATE OR REPLACE FUNCTION pricing.warn_frozen() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kind record;
    found_ integer := 0;
BEGIN
    FOR kind IN
        SELECT l.data_type, count(*) AS pairs,
               (array_agg(l.symbol ORDER BY l.changed_at, l.symbol))[1:5] AS examples
        FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
        -- A scheme that was written off stays at 0.
        WHERE r.is_active AND l.amount <> 0 AND l.fetched_at > now_ - interval '1 day'
          AND l.observed_at - l.changed_at > pricing.frozen_after(r.fetcher)
        GROUP BY 1 ORDER BY 1
    LOOP
        found_ := found_ + kind.pairs;
        PERFORM pricing.warn(
            'warn_frozen', kind.data_type,
            pg_catalog.format('%s price(s) do not change under newer times, such as %s', kind.pairs,
                              pg_catalog.array_to_string(kind.examples, ', ')), '01000');
    END LOOP;
    RETURN found_;
END $$;
COMMENT ON FUNCTION pricing.warn_frozen() IS
    'Warns of prices that never change under newer times, which one answer cannot tell from a quiet market; returns '
    'how many.';


CREATE OR REPLACE FUNCTION pricing.frozen_after(fetcher text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE fetcher WHEN 'quote' THEN interval '24 hours'
                        WHEN 'daily_bars' THEN interval '14 days'
                        ELSE interval '60 days' END
$$;
COMMENT ON FUNCTION pricing.frozen_after(text) IS
    'How long a value may stay the same, by its source''s times, before it is suspected to be frozen.';
