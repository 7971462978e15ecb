-- Storing what providers answered. Values arrive as one array for each column: a staging table would be emptied at each
-- commit, and each statement on it was planned again, which took longer than the statement.

CREATE OR REPLACE FUNCTION pricing.same_amount(a bigint, a_scale smallint, b bigint, b_scale smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN a_scale = b_scale THEN a IS NOT DISTINCT FROM b
                ELSE (a * 10::numeric ^ b_scale::integer) IS NOT DISTINCT FROM (b * 10::numeric ^ a_scale::integer) END
$$;
COMMENT ON FUNCTION pricing.same_amount(bigint, smallint, bigint, smallint) IS 'Compares by value: 12.30 is 12.300.';


CREATE OR REPLACE FUNCTION pricing.same_part(
    old bigint, old_scale smallint, given bigint, given_scale smallint, quality text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (given IS NULL AND quality IS NOT NULL) OR pricing.same_amount(old, old_scale, given, given_scale)
$$;
COMMENT ON FUNCTION pricing.same_part(bigint, smallint, bigint, smallint, text) IS
    'Whether a part of a bar equals the stored one; a dropped part counts as equal.';


CREATE OR REPLACE FUNCTION pricing.kept_text(source_text text, amount bigint, scale smallint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    -- `'1e-' || scale` would be STABLE, and PostgreSQL would call this function for each value that is stored.
    SELECT nullif(source_text, (amount * ('1e-' || scale::text)::numeric)::text)
$$;
COMMENT ON FUNCTION pricing.kept_text(text, bigint, smallint) IS
    'The source''s spelling of a price if it differs from the amount with this many decimals; NULL = it does not.';


CREATE OR REPLACE FUNCTION pricing.same_bar(
    old pricing.price_history, amount bigint, open_amount bigint, high_amount bigint, low_amount bigint,
    scale smallint, volume numeric, currency text, quality text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pricing.same_amount((old).amount, (old).scale, amount, scale)
       AND pricing.same_part((old).open_amount, (old).scale, open_amount, scale, quality)
       AND pricing.same_part((old).high_amount, (old).scale, high_amount, scale, quality)
       AND pricing.same_part((old).low_amount, (old).scale, low_amount, scale, quality)
       AND ((old).volume IS NOT DISTINCT FROM volume OR (volume IS NULL AND quality IS NOT NULL))
       AND (old).currency IS NOT DISTINCT FROM currency
$$;
COMMENT ON FUNCTION pricing.same_bar(
    pricing.price_history, bigint, bigint, bigint, bigint, smallint, numeric, text, text) IS
    'Whether a value equals the stored one in all parts.';


CREATE OR REPLACE FUNCTION pricing.keep_revisions(
    were pricing.price_history[], until timestamptz, by_call bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.price_revisions
        (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,
         provider, call_id, recorded_at, revised_at, revised_by, adjustment, source_text, quality)
    SELECT w.data_type, w.symbol, w.observed_at, w.amount, w.open_amount, w.high_amount, w.low_amount, w.scale,
           w.currency, w.volume, w.provider, w.call_id, w.fetched_at, until, by_call, w.adjustment, w.source_text,
           w.quality
    FROM unnest(were) w
    ORDER BY w.symbol, w.observed_at;
    PERFORM pricing.note_changes(w.data_type, array_agg(w.observed_at))
    FROM unnest(were) w
    GROUP BY w.data_type;
END $$;
COMMENT ON FUNCTION pricing.keep_revisions(pricing.price_history[], timestamptz, bigint) IS
    'Stores values that a call has changed or removed as revisions, and records the change.';


CREATE OR REPLACE FUNCTION pricing.store_rows(
    wanted_type text, from_call bigint, given pricing.price_history[],
    OUT stored_at timestamptz, OUT added text[], OUT revised text[], OUT is_overtaken boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    were pricing.price_history[];
BEGIN
    WITH moment AS MATERIALIZED (SELECT pricing.clock() AS at), -- later than all that this statement sees
    -- OFFSET 0 keeps this an index lookup for each value. The planner does not know how many there are, and a join read
    -- the whole history of a type for every call: a hundred prices took 8 ms among 15,000.
    looked AS MATERIALIZED (
        SELECT s.*, h.old, h.place FROM unnest(given) s
        LEFT JOIN LATERAL (
            SELECT x AS old, x.ctid AS place FROM pricing.price_history x
            WHERE x.data_type = wanted_type AND x.symbol = s.symbol AND x.observed_at = s.observed_at OFFSET 0) h
            ON true),
    staged AS MATERIALIZED (
        SELECT k.*, pricing.kept_text(k.source_text, k.amount, k.scale) AS kept_text, k.place IS NULL AS is_new,
               k.place IS NOT NULL AND NOT pricing.same_bar(
                   k.old, k.amount, k.open_amount, k.high_amount, k.low_amount, k.scale, k.volume, k.currency,
                   k.quality) AS is_changed
        FROM looked k),
    written AS (
        INSERT INTO pricing.price_history AS h
            (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,
             provider, call_id, fetched_at, adjustment, source_text, quality)
        SELECT wanted_type, s.symbol, s.observed_at, s.amount, s.open_amount, s.high_amount, s.low_amount, s.scale,
               s.currency, s.volume, s.provider, from_call, m.at, s.adjustment, s.kept_text, s.quality
        FROM staged s CROSS JOIN moment m WHERE s.is_new
        ORDER BY s.symbol, s.observed_at
        ON CONFLICT (data_type, symbol, observed_at) DO NOTHING
        RETURNING h.symbol, h.observed_at),
    noted AS (
        INSERT INTO pricing.data_changes (data_type, month, changes)
        SELECT wanted_type, pricing.utc_month(w.observed_at), count(*) FROM written w GROUP BY 2),
    -- By its place: a row that another session has just changed lies elsewhere, and is looked at again.
    changed AS (
        UPDATE pricing.price_history h
        SET amount = s.amount, open_amount = s.open_amount, high_amount = s.high_amount, low_amount = s.low_amount,
            scale = s.scale, currency = s.currency, volume = s.volume, provider = s.provider, call_id = from_call,
            fetched_at = m.at, adjustment = s.adjustment, source_text = s.kept_text, quality = s.quality
        FROM staged s CROSS JOIN moment m
        WHERE s.is_changed AND h.data_type = wanted_type AND h.ctid = s.place
        RETURNING s.old)
    SELECT m.at, (SELECT array_agg(w.symbol) FROM written w), (SELECT array_agg((c.old).symbol) FROM changed c),
           (SELECT count(*) FROM written) + (SELECT count(*) FROM changed)
               < (SELECT count(*) FROM staged s WHERE s.is_new OR s.is_changed),
           (SELECT array_agg(c.old) FROM changed c)
    INTO stored_at, added, revised, is_overtaken, were
    FROM moment m;
    PERFORM pricing.keep_revisions(were, stored_at, from_call) WHERE were IS NOT NULL;
END $$;
COMMENT ON FUNCTION pricing.store_rows(text, bigint, pricing.price_history[]) IS
    'Moves one call''s values into history and old ones into price_revisions; returns the rows added and revised, and '
    'whether another session changed some meanwhile.';


CREATE OR REPLACE FUNCTION pricing.show_latest(given pricing.price_history[], confirmed_at timestamptz) RETURNS text[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    shown text[];
    -- Without a price alert for this type, alerts cost only this lookup.
    is_awaited boolean := EXISTS (SELECT FROM pricing.price_alerts a WHERE a.data_type = (given[1]).data_type);
    were pricing.latest_prices[];
BEGIN
    IF is_awaited THEN
        were := ARRAY(
            SELECT l FROM pricing.latest_prices l
            WHERE l.data_type = (given[1]).data_type AND l.symbol IN (SELECT g.symbol FROM unnest(given) g)
            ORDER BY l.symbol FOR NO KEY UPDATE); -- in the order in which storing locks them
    END IF;
    WITH latest AS (
        INSERT INTO pricing.latest_prices AS l
            (data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider, call_id, source_text,
             adjustment, changed_at, quality, valued_by)
        SELECT DISTINCT ON (g.symbol) g.data_type, g.symbol, g.amount, g.scale, g.currency, g.observed_at, confirmed_at,
               g.provider, g.call_id, g.source_text, g.adjustment, g.observed_at, g.quality, g.call_id
        FROM unnest(given) g
        ORDER BY g.symbol, g.observed_at DESC
        ON CONFLICT (data_type, symbol) DO UPDATE
            SET amount = excluded.amount, scale = excluded.scale, currency = excluded.currency,
                observed_at = excluded.observed_at, fetched_at = excluded.fetched_at, provider = excluded.provider,
                call_id = excluded.call_id, source_text = excluded.source_text, adjustment = excluded.adjustment,
                quality = excluded.quality,
                changed_at = CASE WHEN pricing.same_amount(l.amount, l.scale, excluded.amount, excluded.scale)
                                  THEN coalesce(l.changed_at, l.observed_at) ELSE excluded.changed_at END,
                valued_by = CASE WHEN pricing.same_amount(l.amount, l.scale, excluded.amount, excluded.scale)
                                      AND l.currency IS NOT DISTINCT FROM excluded.currency
                                 THEN l.valued_by ELSE excluded.valued_by END
            WHERE l.observed_at <= excluded.observed_at
        RETURNING l.symbol, l.valued_by = l.call_id AS is_new_value),
    noted AS (
        INSERT INTO pricing.data_changes (data_type, month, changes)
        SELECT (given[1]).data_type, '-infinity', count(*)
        FROM latest l
        WHERE l.is_new_value
        HAVING count(*) > 0)
    SELECT array_agg(l.symbol) INTO shown FROM latest l;
    IF is_awaited AND shown IS NOT NULL THEN
        -- Latest prices with a later time or another value, for the alerts that want them.
        INSERT INTO pricing.price_events
            (price_alert_id, symbol, amount, scale, currency, observed_at, provider, call_id, stored_at)
        SELECT asking.price_alert_id, n.symbol, n.amount, n.scale, n.currency, n.observed_at, n.provider, n.call_id,
               pricing.clock()
        FROM (SELECT DISTINCT ON (g.symbol) g.* FROM unnest(given) g ORDER BY g.symbol, g.observed_at DESC) n
        LEFT JOIN unnest(were) w ON w.symbol = n.symbol
        CROSS JOIN LATERAL (
            SELECT a.price_alert_id FROM pricing.price_alerts a
            WHERE a.data_type = n.data_type AND a.symbol = n.symbol AND a.condition <> 'stale'
            UNION ALL
            SELECT a.price_alert_id FROM pricing.price_alerts a
            WHERE a.data_type = n.data_type AND a.symbol IS NULL) asking
        WHERE n.symbol = ANY (shown)
          AND (w.symbol IS NULL
               OR w.observed_at < n.observed_at
               OR NOT pricing.same_amount(w.amount, w.scale, n.amount, n.scale));
    END IF;
    PERFORM pricing.fill_own_table(r.data_type, shown) FROM pricing.data_type_registry r
    WHERE r.data_type = (given[1]).data_type AND r.has_own_table AND shown IS NOT NULL;
    RETURN shown;
END $$;
COMMENT ON FUNCTION pricing.show_latest(pricing.price_history[], timestamptz) IS
    'Makes each symbol''s newest value its latest price unless a newer one is stored, records it for price alerts, '
    'and returns these symbols.';


CREATE OR REPLACE FUNCTION pricing.merge_prices(
    wanted_type text, from_provider text, from_call bigint, is_latest boolean,
    symbols text[], times timestamptz[], amounts bigint[], open_amounts bigint[], high_amounts bigint[],
    low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[], adjustments text[],
    qualities text[] DEFAULT NULL)
RETURNS TABLE (symbol text, added bigint, revised bigint, outcome text)
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    given pricing.price_history[];
    pass record;
    added_ text[];
    revised_ text[];
    shown text[];
BEGIN
    PERFORM pricing.verify_instruments(wanted_type, symbols, currencies);
    FOR passes IN 1..10 LOOP
        -- An answer whose newest stamp is older than the stored one comes from a source that fell behind: none of it is
        -- believed. An equal stamp with the same value confirms, with another value revises.
        SELECT array_agg(ROW(
                   wanted_type, s.symbol, s.observed_at, s.amount, s.open_amount, s.high_amount, s.low_amount, s.scale,
                   s.currency, s.volume, from_provider, from_call, NULL, s.adjustment, s.quality,
                   s.source_text)::pricing.price_history)
        INTO given
        FROM unnest(symbols, times, amounts, open_amounts, high_amounts, low_amounts, scales, currencies, volumes,
                    texts, adjustments, qualities)
            AS s (symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,
                  source_text, adjustment, quality)
        WHERE NOT is_latest OR s.symbol NOT IN (
            SELECT n.symbol
            FROM (SELECT x.symbol, max(x.at) AS at FROM unnest(symbols, times) AS x (symbol, at) GROUP BY 1) n
            WHERE n.at < (SELECT l.observed_at FROM pricing.latest_prices l
                          WHERE l.data_type = wanted_type AND l.symbol = n.symbol));
        SELECT * INTO pass FROM pricing.store_rows(wanted_type, from_call, given);
        added_ := added_ || pass.added;
        revised_ := revised_ || pass.revised;
        -- Another session has just stored values of the same times: these are revisions of those.
        IF NOT pass.is_overtaken THEN
            IF is_latest THEN
                shown := pricing.show_latest(given, pass.stored_at);
            END IF;
            RETURN QUERY
            SELECT a.symbol, coalesce(w.rows, 0), coalesce(c.rows, 0),
                   CASE WHEN NOT is_latest OR a.symbol = ANY (shown) THEN 'stored' ELSE 'stale_source' END
            FROM (SELECT DISTINCT s.symbol FROM unnest(symbols) AS s (symbol)) a
            LEFT JOIN (SELECT x.symbol, count(*) AS rows FROM unnest(added_) AS x (symbol) GROUP BY 1) w
                USING (symbol)
            LEFT JOIN (SELECT x.symbol, count(*) AS rows FROM unnest(revised_) AS x (symbol) GROUP BY 1) c
                USING (symbol)
            ORDER BY 1;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'values of % (%) change as fast as they are stored', wanted_type, symbols[1]
        USING HINT = 'Store them again.', ERRCODE = 'serialization_failure';
END $$;
COMMENT ON FUNCTION pricing.merge_prices(
    text, text, bigint, boolean, text[], timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], text[],
    numeric[], text[], text[], text[]) IS
    'Stores one call''s values in history and, for latest prices, in latest_prices, keeps old values as revisions, '
    'and returns each symbol''s outcome.';


CREATE OR REPLACE FUNCTION pricing.revise_bars(
    wanted_type text, from_provider text, from_call bigint, wanted_symbol text, named_currency text, basis text,
    times timestamptz[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[],
    scales smallint[], volumes numeric[], texts text[], qualities text[], OUT added bigint, OUT revised bigint)
-- By one pass over given and stored bars, never by an index lookup for each of thousands.
LANGUAGE plpgsql SET search_path = '' SET enable_nestloop = off AS $$
#variable_conflict use_column
DECLARE
    first_at timestamptz := times[1];
    last_at timestamptz := times[cardinality(times)];
    pass record;
BEGIN
    added := 0;
    revised := 0;
    FOR passes IN 1..10 LOOP
        WITH moment AS MATERIALIZED (SELECT pricing.clock() AS at), -- later than all that this statement sees
        differing AS MATERIALIZED (
            SELECT v.*, m.at, h AS old, h.data_type IS NULL AS is_new
            FROM unnest(times, amounts, open_amounts, high_amounts, low_amounts, scales, volumes, texts, qualities)
                AS v (observed_at, amount, open_amount, high_amount, low_amount, scale, volume, source_text, quality)
            CROSS JOIN moment m
            LEFT JOIN pricing.price_history h
                ON h.data_type = wanted_type AND h.symbol = wanted_symbol
                   AND h.observed_at BETWEEN first_at AND last_at AND h.observed_at = v.observed_at
            WHERE h.data_type IS NULL
               OR NOT (pricing.same_bar(h, v.amount, v.open_amount, v.high_amount, v.low_amount, v.scale, v.volume,
                                        named_currency, v.quality)
                       AND h.adjustment = basis)),
        written AS (
            INSERT INTO pricing.price_history AS h
                (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,
                 provider, call_id, fetched_at, adjustment, source_text, quality)
            SELECT wanted_type, wanted_symbol, d.observed_at, d.amount, d.open_amount, d.high_amount, d.low_amount,
                   d.scale, named_currency, d.volume, from_provider, from_call, d.at, basis,
                   pricing.kept_text(d.source_text, d.amount, d.scale), d.quality
            FROM differing d
            WHERE d.is_new
            ORDER BY d.observed_at
            ON CONFLICT (data_type, symbol, observed_at) DO NOTHING
            RETURNING h.observed_at),
        noted AS (
            INSERT INTO pricing.data_changes (data_type, month, changes)
            SELECT wanted_type, pricing.utc_month(w.observed_at), count(*) FROM written w GROUP BY 2),
        -- Only rows that have not changed since: a row that another session has just changed is looked at again.
        changed AS (
            UPDATE pricing.price_history h
            SET amount = d.amount, open_amount = d.open_amount, high_amount = d.high_amount, low_amount = d.low_amount,
                scale = d.scale, currency = named_currency, volume = d.volume, provider = from_provider,
                call_id = from_call, fetched_at = d.at, adjustment = basis,
                source_text = pricing.kept_text(d.source_text, d.amount, d.scale), quality = d.quality
            FROM differing d
            WHERE NOT d.is_new AND h.data_type = wanted_type AND h.symbol = wanted_symbol
              AND h.observed_at BETWEEN first_at AND last_at AND h.observed_at = d.observed_at
              AND h.fetched_at = (d.old).fetched_at AND h.call_id = (d.old).call_id
            RETURNING d.old)
        SELECT (SELECT count(*) FROM written) AS added, (SELECT count(*) FROM changed) AS revised,
               (SELECT count(*) FROM differing) AS wanted, (SELECT array_agg(c.old) FROM changed c) AS were, m.at
        INTO pass
        FROM moment m;
        PERFORM pricing.keep_revisions(pass.were, pass.at, from_call) WHERE pass.revised > 0;
        added := added + pass.added;
        revised := revised + pass.revised;
        IF pass.added + pass.revised = pass.wanted THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'values of % % change as fast as they are stored', wanted_type, wanted_symbol
        USING HINT = 'Store them again.', ERRCODE = 'serialization_failure';
END $$;
COMMENT ON FUNCTION pricing.revise_bars(
    text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[],
    numeric[], text[], text[]) IS
    'Does merge_bars''s work where bars of these days are stored: keeps changed values as revisions, and adds new '
    'ones.';


CREATE OR REPLACE FUNCTION pricing.merge_bars(
    wanted_type text, from_provider text, from_call bigint, wanted_symbol text, named_currency text, basis text,
    times timestamptz[], amounts bigint[], open_amounts bigint[], high_amounts bigint[], low_amounts bigint[],
    scales smallint[], volumes numeric[], texts text[], qualities text[], OUT added bigint, OUT revised bigint)
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    first_at timestamptz := times[1];
    last_at timestamptz := times[cardinality(times)];
BEGIN
    PERFORM pricing.verify_instruments(wanted_type, ARRAY[wanted_symbol], ARRAY[named_currency]);
    -- A span that a backfill requests usually has no stored values, so there is nothing to compare.
    IF NOT EXISTS (SELECT FROM pricing.price_history h
                   WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
                     AND h.observed_at BETWEEN first_at AND last_at) THEN
        -- ON CONFLICT would look into the index twice and write twice as much into the log.
        BEGIN
            INSERT INTO pricing.price_history
                (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,
                 provider, call_id, fetched_at, adjustment, source_text, quality)
            SELECT wanted_type, wanted_symbol, v.observed_at, v.amount, v.open_amount, v.high_amount, v.low_amount,
                   v.scale, named_currency, v.volume, from_provider, from_call, now_, basis,
                   pricing.kept_text(v.source_text, v.amount, v.scale), v.quality
            FROM unnest(times, amounts, open_amounts, high_amounts, low_amounts, scales, volumes, texts, qualities)
                AS v (observed_at, amount, open_amount, high_amount, low_amount, scale, volume, source_text, quality);
            GET DIAGNOSTICS added = ROW_COUNT;
            revised := 0;
            PERFORM pricing.note_changes(wanted_type, times);
            RETURN;
        EXCEPTION WHEN unique_violation THEN
            NULL; -- another session has just stored values of these days: these are revisions of those
        END;
    END IF;
    SELECT r.added, r.revised INTO added, revised
    FROM pricing.revise_bars(wanted_type, from_provider, from_call, wanted_symbol, named_currency, basis, times,
                             amounts, open_amounts, high_amounts, low_amounts, scales, volumes, texts, qualities) r;
END $$;
COMMENT ON FUNCTION pricing.merge_bars(
    text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[],
    numeric[], text[], text[]) IS
    'Stores the bars of one symbol, given in the order of their days, as merge_prices does; returns how many were '
    'added and revised.';


CREATE OR REPLACE FUNCTION pricing.verify_instruments(wanted_type text, symbols text[], currencies text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- The first answer that names a currency settles which one is right from then on.
    UPDATE pricing.instruments i
    SET verified_at = coalesce(i.verified_at, pricing.clock()), currency = coalesce(i.currency, first.currency)
    FROM (SELECT x.asset_class, x.symbol, given.currency
          FROM pricing.data_type_registry r
          CROSS JOIN (SELECT s.symbol, min(s.currency) AS currency
                      FROM unnest(symbols, currencies) AS s (symbol, currency)
                      GROUP BY 1) given
          JOIN pricing.instruments x ON x.asset_class = r.asset_class AND x.symbol = given.symbol
          WHERE r.data_type = wanted_type
            AND (x.verified_at IS NULL OR (x.currency IS NULL AND given.currency IS NOT NULL))
          ORDER BY 1, 2 FOR NO KEY UPDATE OF x SKIP LOCKED) first
    WHERE (i.asset_class, i.symbol) = (first.asset_class, first.symbol)
$$;
COMMENT ON FUNCTION pricing.verify_instruments(text, text[], text[]) IS
    'Records that a provider had values of these symbols, and their currency; skips locked rows, which the next '
    'answer fills.';


CREATE OR REPLACE FUNCTION pricing.settle_prices(
    ids bigint[], token uuid, http_status integer, wire_bytes bigint, stated_left integer, shown_units integer,
    shown_seconds integer, without_length boolean, wanted_type text, from_provider text, from_call bigint,
    symbols text[], times timestamptz[], amounts bigint[], open_amounts bigint[], high_amounts bigint[],
    low_amounts bigint[], scales smallint[], currencies text[], volumes numeric[], texts text[], adjustments text[])
RETURNS TABLE (added bigint, revised bigint)
-- Planned once, like all functions that it calls: otherwise a session plans the first five calls of a dozen statements.
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET lock_timeout = '500ms' AS $$
DECLARE
    owned bigint[] := pricing.lock_tasks(ids, token, from_call);
    late text;
BEGIN
    IF cardinality(owned) < cardinality(ids) THEN
        RETURN;
    END IF;
    SELECT sum(m.added), sum(m.revised), min(m.symbol) FILTER (WHERE m.outcome <> 'stored')
    INTO added, revised, late
    FROM pricing.merge_prices(wanted_type, from_provider, from_call, true, symbols, times, amounts, open_amounts,
                              high_amounts, low_amounts, scales, currencies, volumes, texts, adjustments) m;
    IF late IS NOT NULL THEN
        RAISE EXCEPTION 'the price of % is older than the one that is stored', late
            USING HINT = 'Store the others without it.', ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM pricing.finish_call(from_call, owned, token, http_status, wire_bytes, NULL, stated_left, true, shown_units,
                                shown_seconds, without_length);
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION pricing.settle_prices(
    bigint[], uuid, integer, bigint, integer, integer, integer, boolean, text, text, bigint, text[], timestamptz[],
    bigint[], bigint[], bigint[], bigint[], smallint[], text[], numeric[], text[], text[]) IS
    'Stores a call''s latest prices, all believed, finishes its tasks and settles it; returns how many were added and '
    'revised, no row if the claim has lost a task.';


CREATE OR REPLACE FUNCTION pricing.confirm_prices(wanted_type text, symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    WITH confirmed AS (
        UPDATE pricing.latest_prices l SET fetched_at = pricing.clock()
        FROM (SELECT x.data_type, x.symbol FROM pricing.latest_prices x
              WHERE x.data_type = wanted_type AND x.symbol = ANY (symbols)
              ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE) same
        WHERE (l.data_type, l.symbol) = (same.data_type, same.symbol)
        RETURNING l.symbol)
    INSERT INTO pricing.empty_answers (data_type, symbol, fetched_at)
    SELECT DISTINCT wanted_type, s, pricing.clock()
    FROM unnest(symbols) AS s
    WHERE s NOT IN (SELECT c.symbol FROM confirmed c)
    ORDER BY 2
    ON CONFLICT (data_type, symbol) DO UPDATE SET fetched_at = excluded.fetched_at;
    SELECT pricing.fill_own_table(r.data_type, confirm_prices.symbols)
    FROM pricing.data_type_registry r
    WHERE r.data_type = wanted_type AND r.has_own_table
$$;
COMMENT ON FUNCTION pricing.confirm_prices(text, text[]) IS
    'Confirms stored values after a valid but empty answer, also where there is none; erases nothing.';
