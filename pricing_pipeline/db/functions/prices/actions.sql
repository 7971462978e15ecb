-- Storing splits and dividends. They are written in the transaction that stores the prices they came with.

CREATE OR REPLACE FUNCTION pricing.actions_of_answer(actions jsonb)
RETURNS TABLE (symbol text, ex_on date, kind text, new_shares numeric, old_shares numeric, amount bigint, scale smallint, currency text)
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT a.symbol, a.ex_on, a.kind, a.new_shares, a.old_shares, (a.cash * ('1e' || scale(trim_scale(a.cash)))::numeric)::bigint,
           scale(trim_scale(a.cash))::smallint, a.currency
    FROM jsonb_to_recordset(actions)
        AS a (symbol text, ex_on date, kind text, new_shares numeric, old_shares numeric, cash numeric, currency text)
$$;
COMMENT ON FUNCTION pricing.actions_of_answer(jsonb) IS 'The splits and dividends of an answer as they would be stored.';


CREATE OR REPLACE FUNCTION pricing.believable_actions(wanted_class text, from_provider text, actions jsonb)
RETURNS TABLE (symbol text, ex_on date, kind text, new_shares numeric, old_shares numeric, amount bigint, scale smallint, currency text)
LANGUAGE sql STABLE AS $$
    SELECT a.* FROM pricing.actions_of_answer(actions) a
    WHERE NOT pricing.is_refuted(wanted_class, a.symbol, a.ex_on, a.kind, from_provider, a.new_shares, a.old_shares, a.amount, a.scale)
$$;
COMMENT ON FUNCTION pricing.believable_actions(text, text, jsonb) IS
    'Those of an answer''s splits and dividends that no person has taken back: they do not come back by themselves.';


CREATE OR REPLACE FUNCTION pricing.is_one_action(
    believed pricing.corporate_actions, day date, stated_kind text, new_ numeric, old_ numeric, stated_amount bigint, stated_scale smallint,
    stated_currency text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    -- Some funds pay the same cash every week.
    SELECT believed.kind = stated_kind AND abs(believed.ex_on - day) <= CASE stated_kind WHEN 'split' THEN 7 ELSE 6 END
       AND CASE stated_kind WHEN 'split' THEN believed.new_shares * old_ = new_ * believed.old_shares
                ELSE pricing.same_amount(believed.amount, believed.scale, stated_amount, stated_scale)
                     AND (believed.currency = stated_currency) IS NOT FALSE END
$$;
COMMENT ON FUNCTION pricing.is_one_action(pricing.corporate_actions, date, text, numeric, numeric, bigint, smallint, text) IS
    'Whether what is said of one day may be what is believed of another: a split of the same ratio within 7 days, or a dividend of the same cash within 6. Sources differ about the first day without it.';


CREATE OR REPLACE FUNCTION pricing.keep_actions(were pricing.corporate_actions[], until timestamptz, by_call bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.corporate_action_revisions
        (asset_class, symbol, ex_on, kind, new_shares, old_shares, amount, scale, currency, provider, call_id, recorded_at,
         revised_at, revised_by)
    SELECT w.asset_class, w.symbol, w.ex_on, w.kind, w.new_shares, w.old_shares, w.amount, w.scale, w.currency, w.provider,
           w.call_id, w.recorded_at, until, by_call
    FROM unnest(were) w ORDER BY w.symbol, w.ex_on, w.kind;
END $$;
COMMENT ON FUNCTION pricing.keep_actions(pricing.corporate_actions[], timestamptz, bigint) IS
    'Keeps actions that a call of their own provider has replaced.';


CREATE OR REPLACE FUNCTION pricing.move_actions(
    wanted_class text, from_provider text, from_call bigint, actions jsonb, told_symbols text[], told_since date[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    one record;
    moved integer := 0;
BEGIN
    FOR one IN
        SELECT c AS was, s.ex_on AS day
        FROM pricing.believable_actions(wanted_class, from_provider, actions) s
        JOIN unnest(told_symbols, told_since) AS t (symbol, since) ON t.symbol = s.symbol
        JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol, c.provider) = (wanted_class, s.symbol, from_provider)
             AND c.ex_on > t.since AND c.ex_on <= (now_ AT TIME ZONE 'UTC')::date
        WHERE pricing.is_one_action(c, s.ex_on, s.kind, s.new_shares, s.old_shares, s.amount, s.scale, s.currency)
          AND NOT EXISTS (SELECT FROM pricing.actions_of_answer(actions) x WHERE (x.symbol, x.ex_on, x.kind) = (c.symbol, c.ex_on, c.kind))
        ORDER BY s.symbol, s.kind, abs(c.ex_on - s.ex_on), s.ex_on, c.ex_on
    LOOP
        BEGIN
            UPDATE pricing.corporate_actions c
            SET ex_on = one.day, call_id = from_call, recorded_at = now_,
                judged_at = CASE WHEN NOT pricing.is_to_judge(wanted_class, c.symbol, c.kind) THEN now_ END
            WHERE (c.asset_class, c.symbol, c.ex_on, c.kind) = (wanted_class, (one.was).symbol, (one.was).ex_on, (one.was).kind)
              AND c.recorded_at = (one.was).recorded_at;
            IF FOUND THEN
                PERFORM pricing.keep_actions(ARRAY[one.was], now_, from_call);
                moved := moved + 1;
            END IF;
        EXCEPTION
            WHEN unique_violation THEN -- something is known of the new day already
                CONTINUE;
        END;
    END LOOP;
    RETURN moved;
END $$;
COMMENT ON FUNCTION pricing.move_actions(text, text, bigint, jsonb, text[], date[]) IS
    'Moves what a provider has said of one day, and now says of another one near it, to that day: where it tells all actions since before the old day, and no longer names it. The old one becomes a revision. Returns how many were moved.';


CREATE OR REPLACE FUNCTION pricing.cover_actions(
    wanted_class text, from_provider text, from_call bigint, told_symbols text[], told_since date[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    today date := (now_ AT TIME ZONE 'UTC')::date;
BEGIN
    INSERT INTO pricing.corporate_action_pairs AS p (asset_class, symbol, covered, fetched_at, provider, call_id)
    SELECT wanted_class, t.symbol, datemultirange(daterange(least(t.since, today), today, '[]')), now_, from_provider, from_call
    FROM unnest(told_symbols, told_since) AS t (symbol, since)
    WHERE NOT EXISTS (SELECT FROM pricing.corporate_action_pairs o
                      WHERE (o.asset_class, o.symbol) = (wanted_class, t.symbol)
                        AND o.covered @> daterange(least(t.since, today), today, '[]'))
    ORDER BY t.symbol
    ON CONFLICT (asset_class, symbol) DO UPDATE
        SET covered = p.covered + excluded.covered, fetched_at = excluded.fetched_at, provider = excluded.provider,
            call_id = excluded.call_id;
END $$;
COMMENT ON FUNCTION pricing.cover_actions(text, text, bigint, text[], date[]) IS
    'Remembers that a provider has told all splits and dividends of these symbols, each since its day.';


CREATE OR REPLACE FUNCTION pricing.merge_actions(
    wanted_type text, from_provider text, from_call bigint, actions jsonb, told_symbols text[], told_since date[])
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    stored integer := pricing.move_actions(wanted_class, from_provider, from_call, actions, told_symbols, told_since);
    pass record;
BEGIN
    FOR passes IN 1..10 LOOP
        WITH moment AS MATERIALIZED (SELECT pricing.clock() AS at), -- later than whatever this statement sees
        said AS MATERIALIZED (
            SELECT a.* FROM pricing.believable_actions(wanted_class, from_provider, actions) a),
        fresh AS MATERIALIZED (
            SELECT s.* FROM said s
            WHERE NOT EXISTS (SELECT FROM pricing.corporate_actions o
                              WHERE (o.asset_class, o.symbol, o.ex_on, o.kind) = (wanted_class, s.symbol, s.ex_on, s.kind))
              -- One that is believed of a day near it, and not named beside it, is the same one. A provider may pay twice a week.
              AND NOT EXISTS (SELECT FROM pricing.corporate_actions o
                              WHERE (o.asset_class, o.symbol, o.kind) = (wanted_class, s.symbol, s.kind)
                                AND (o.kind = 'split' OR o.provider <> from_provider)
                                AND pricing.is_one_action(o, s.ex_on, s.kind, s.new_shares, s.old_shares, s.amount, s.scale, s.currency)
                                AND NOT EXISTS (SELECT FROM said x WHERE (x.symbol, x.ex_on, x.kind) = (o.symbol, o.ex_on, o.kind)))),
        -- Only who said it first may say it otherwise: providers round dividends differently, and none is the judge.
        differing AS MATERIALIZED (
            SELECT s.symbol, s.ex_on, s.kind, s.new_shares AS new_, s.old_shares AS old_, s.amount AS amount_, s.scale AS scale_,
                   s.currency AS currency_, c AS was, c.ctid AS place FROM said s
            JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol, c.ex_on, c.kind) = (wanted_class, s.symbol, s.ex_on, s.kind)
            WHERE c.provider = from_provider
              AND (s.new_shares * c.old_shares IS DISTINCT FROM c.new_shares * s.old_shares
                   OR NOT pricing.same_amount(c.amount, c.scale, s.amount, s.scale) OR c.currency IS DISTINCT FROM s.currency)),
        written AS (
            INSERT INTO pricing.corporate_actions AS x
                (asset_class, symbol, ex_on, kind, new_shares, old_shares, amount, scale, currency, provider, call_id, recorded_at, judged_at)
            SELECT wanted_class, s.symbol, s.ex_on, s.kind, s.new_shares, s.old_shares, s.amount, s.scale, s.currency,
                   from_provider, from_call, m.at, CASE WHEN NOT pricing.is_to_judge(wanted_class, s.symbol, s.kind) THEN m.at END
            FROM fresh s CROSS JOIN moment m
            ORDER BY s.symbol, s.ex_on, s.kind
            ON CONFLICT (asset_class, symbol, ex_on, kind) DO NOTHING
            RETURNING x.symbol, x.ex_on, x.kind),
        -- By its place: what another session has changed in this moment lies elsewhere, and is looked at once more.
        changed AS (
            UPDATE pricing.corporate_actions x
            SET new_shares = d.new_, old_shares = d.old_, amount = d.amount_, scale = d.scale_, currency = d.currency_,
                provider = from_provider, call_id = from_call, recorded_at = m.at,
                judged_at = CASE WHEN NOT pricing.is_to_judge(wanted_class, d.symbol, d.kind) THEN m.at END
            FROM differing d CROSS JOIN moment m WHERE x.ctid = d.place
            RETURNING d.was)
        SELECT (SELECT count(*) FROM written) + (SELECT count(*) FROM changed) AS stored,
               (SELECT count(*) FROM written) < (SELECT count(*) FROM fresh)
               OR (SELECT count(*) FROM changed) < (SELECT count(*) FROM differing) AS is_overtaken,
               (SELECT array_agg(c.was) FROM changed c) AS replaced, (SELECT m.at FROM moment m) AS at INTO pass;
        stored := stored + pass.stored;
        PERFORM pricing.keep_actions(pass.replaced, pass.at, from_call) WHERE pass.replaced IS NOT NULL;
        -- Another session has stored actions of the same days in this moment: what is said here is compared with those.
        EXIT WHEN NOT pass.is_overtaken;
    END LOOP;
    PERFORM pricing.cover_actions(wanted_class, from_provider, from_call, told_symbols, told_since);
    RETURN stored;
END $$;
COMMENT ON FUNCTION pricing.merge_actions(text, text, bigint, jsonb, text[], date[]) IS
    'Stores splits and dividends that one call brought. What its own provider corrects leaves a revision, what another one says otherwise, or of a day near it, changes nothing, nothing is ever withdrawn but moved to a day near it, and what a person has taken back stays so. Of told symbols all actions since their day are known now. Returns how many were written.';


CREATE OR REPLACE FUNCTION pricing.doubted_dividends(wanted_type text, actions jsonb)
RETURNS TABLE (symbol text, ex_on date, cash numeric, reason text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH said AS MATERIALIZED (
        SELECT a.*, r.asset_class FROM jsonb_to_recordset(actions) AS a (symbol text, ex_on date, kind text, cash numeric, currency text)
        CROSS JOIN pricing.data_type_registry r WHERE r.data_type = wanted_type AND a.kind = 'dividend'),
    paid AS (
        SELECT s.symbol, s.ex_on, s.cash, s.currency, s.asset_class, true AS is_said FROM said s
        UNION ALL
        SELECT c.symbol, c.ex_on, c.amount * ('1e-' || c.scale)::numeric, c.currency, c.asset_class, false
        FROM (SELECT DISTINCT s.asset_class, s.symbol FROM said s) p
        JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol, c.kind) = (p.asset_class, p.symbol, 'dividend')
        WHERE NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.ex_on) = (c.symbol, c.ex_on))),
    compared AS (
        SELECT p.*, max(p.cash) OVER (PARTITION BY p.symbol, coalesce(p.currency, '') ORDER BY p.ex_on ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING)
                        AS before
        FROM paid p)
    SELECT d.symbol, d.ex_on, d.cash,
           CASE WHEN d.cash > 100 * d.before THEN pg_catalog.format('the dividend of %s is more than 100 times each of the last ones before it, which were up to %s',
                                                                    d.ex_on, trim_scale(d.before))
                WHEN price.close IS NULL THEN 'the dividend is more than any share has paid, and no price before it is known'
                ELSE pg_catalog.format('the dividend of %s is more than a fifth of the last price before it, %s on %s',
                                       d.ex_on, price.close, (price.observed_at AT TIME ZONE 'UTC')::date) END
    FROM compared d
    LEFT JOIN LATERAL (
        SELECT h.observed_at, h.amount * ('1e-' || h.scale)::numeric AS close, h.adjustment
        FROM pricing.data_type_registry t
        JOIN pricing.price_history h ON h.data_type = t.data_type AND h.symbol = d.symbol
             AND h.observed_at >= (d.ex_on - 14)::timestamp AT TIME ZONE 'UTC' AND h.observed_at < d.ex_on::timestamp AT TIME ZONE 'UTC'
        WHERE t.asset_class = d.asset_class AND (h.currency = d.currency) IS NOT FALSE
        ORDER BY h.observed_at DESC LIMIT 1) price ON true
    -- Splits that nobody has told may lie between a price that is divided by all of them and a dividend that is not.
    WHERE d.is_said
      AND (d.cash > 100 * d.before OR d.cash > coalesce(price.close * CASE price.adjustment WHEN 'raw' THEN 0.2 ELSE 1000 END, 999999999))
      AND NOT EXISTS (SELECT FROM pricing.corporate_actions c
                      WHERE (c.asset_class, c.symbol, c.ex_on, c.kind) = (d.asset_class, d.symbol, d.ex_on, 'dividend')
                        AND c.amount * ('1e-' || c.scale)::numeric = d.cash)
$$;
COMMENT ON FUNCTION pricing.doubted_dividends(text, jsonb) IS
    'Of the actions of an answer, the dividends that are more than a fifth of the last price of the two weeks before them, or 100 times each of the last four before them, and why each is not believed. What is stored already is not doubted.';


CREATE OR REPLACE FUNCTION pricing.is_to_judge(wanted_class text, wanted_symbol text, wanted_kind text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN wanted_kind = 'split' AND EXISTS (
        SELECT FROM pricing.data_type_registry r
        WHERE r.asset_class = wanted_class AND r.fetcher IN ('daily_bars', 'nav')
          AND (EXISTS (SELECT FROM pricing.quarantined_values q
                       WHERE q.data_type = r.data_type AND q.symbol = wanted_symbol AND q.status = 'quarantined' AND pricing.is_of_level(q.kind))
               OR EXISTS (SELECT FROM pricing.restatements x
                          WHERE x.data_type = r.data_type AND x.symbol = wanted_symbol AND x.ratio IS NOT NULL)));
END $$;
COMMENT ON FUNCTION pricing.is_to_judge(text, text, text) IS
    'Whether values of an instrument are quarantined, or its history came divided by one ratio, so that a new split may explain it.';


CREATE OR REPLACE FUNCTION pricing.note_judged(wanted_class text, wanted_symbol text, until timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- A history that came divided by one ratio is fetched again: only some of its values are quarantined.
    UPDATE pricing.restatements x SET backfill_id = NULL, reopened_at = now_
    FROM pricing.data_type_registry r
    WHERE r.data_type = x.data_type AND r.asset_class = wanted_class AND x.symbol = wanted_symbol AND x.ratio IS NOT NULL
      AND EXISTS (SELECT FROM pricing.corporate_actions a
                  WHERE (a.asset_class, a.symbol, a.kind) = (wanted_class, wanted_symbol, 'split')
                    AND a.judged_at IS NULL AND a.recorded_at <= until);
    UPDATE pricing.corporate_actions a SET judged_at = now_
    WHERE (a.asset_class, a.symbol) = (wanted_class, wanted_symbol) AND a.judged_at IS NULL AND a.recorded_at <= until;
END $$;
COMMENT ON FUNCTION pricing.note_judged(text, text, timestamptz) IS
    'Quarantined values of an instrument were judged anew with the actions that were recorded until then. What came by one ratio is asked for once more.';


CREATE OR REPLACE FUNCTION pricing.has_splits(asset_class text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT asset_class <> ALL (ARRAY['commodity', 'crypto', 'currency', 'future', 'fx', 'index', 'inventory'])
$$;
COMMENT ON FUNCTION pricing.has_splits(text) IS
    'Whether instruments of a class may be split. Of others a step of any size is a true move or a mistake, unless a split of one is known.';


CREATE OR REPLACE FUNCTION pricing.known_basis(wanted_type text, symbols text[], first_times timestamptz[], last_times timestamptz[])
RETURNS TABLE (symbol text, adjustment text, split_days date[], split_ratios numeric[], newest_recorded timestamptz, earlier_recorded timestamptz,
               same_times timestamptz[], same_recorded timestamptz[])
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
BEGIN
    RETURN QUERY
    SELECT w.symbol, newest.adjustment, splits.days, splits.ratios, newest.recorded_at, earlier.recorded_at, same.times, same.recorded
    FROM unnest(symbols, first_times, last_times) AS w (symbol, first_at, last_at)
    LEFT JOIN LATERAL (
        SELECT array_agg(a.ex_on) AS days, array_agg(a.new_shares / a.old_shares) AS ratios FROM pricing.corporate_actions a
        WHERE a.asset_class = wanted_class AND a.symbol = w.symbol AND a.kind = 'split') splits ON true
    LEFT JOIN LATERAL (
        SELECT h.fetched_at AS recorded_at, h.adjustment FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol ORDER BY h.observed_at DESC LIMIT 1) newest ON true
    LEFT JOIN LATERAL (
        SELECT h.fetched_at AS recorded_at FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at < w.first_at
        ORDER BY h.observed_at DESC LIMIT 1) earlier ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(h.observed_at) AS times, array_agg(h.fetched_at) AS recorded FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at BETWEEN w.first_at AND w.last_at
          AND (h.fetched_at < h.observed_at + interval '25 hours' OR (newest.adjustment = 'splits' AND splits.days IS NOT NULL))) same ON true;
END $$;
COMMENT ON FUNCTION pricing.known_basis(text, text[], timestamptz[], timestamptz[]) IS
    'What tells a restated bar from a corrected one, for each symbol with the first and last time that an answer has of it: its basis, splits, and when stored values were recorded: all of a history that splits have divided, else those before their day was over.';


CREATE OR REPLACE FUNCTION pricing.note_overlap(
    wanted_type text, from_provider text, from_call bigint, restated jsonb, symbols text[], times timestamptz[])
RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    found_ record;
BEGIN
    FOR found_ IN
        SELECT r.* FROM jsonb_to_recordset(restated)
            AS r (symbol text, kind text, ratio numeric, days integer, largest numeric, first_on date, last_on date)
        ORDER BY r.symbol
    LOOP
        -- The same ratio again, but for rounding, is the same restatement, as long as it keeps coming.
        UPDATE pricing.restatements x
        SET times = x.times + 1, last_seen_at = now_, days = greatest(x.days, found_.days),
            first_on = least(x.first_on, found_.first_on), last_on = greatest(x.last_on, found_.last_on),
            -- Days on another basis are asked for with the whole history each time: no answer is kept out for good.
            reopened_at = CASE WHEN x.kind = 'basis' AND x.backfill_id IS NOT NULL THEN now_ ELSE x.reopened_at END,
            backfill_id = CASE WHEN x.kind = 'basis' THEN NULL ELSE x.backfill_id END
        WHERE (x.data_type, x.symbol, x.provider, x.kind) = (wanted_type, found_.symbol, from_provider, found_.kind)
          AND abs(x.ratio / found_.ratio - 1) < 0.005 AND x.last_seen_at > now_ - interval '30 days';
        IF NOT FOUND THEN
            INSERT INTO pricing.restatements
                (data_type, symbol, provider, kind, ratio, days, largest, first_on, last_on, call_id, recorded_at, last_seen_at)
            VALUES (wanted_type, found_.symbol, from_provider, found_.kind, found_.ratio, found_.days, round(found_.largest, 6),
                    found_.first_on, found_.last_on, from_call, now_, now_);
        END IF;
    END LOOP;
    DELETE FROM pricing.provisional_bars p
    WHERE (p.data_type, p.symbol, p.observed_at) IN (
        SELECT wanted_type, u.symbol, u.at FROM unnest(symbols, times) AS u (symbol, at) WHERE now_ - u.at >= interval '25 hours');
    INSERT INTO pricing.provisional_bars (data_type, symbol, observed_at, noted_at, ask_at)
    SELECT wanted_type, u.symbol, u.at, now_, u.at + interval '26 hours' FROM unnest(symbols, times) AS u (symbol, at)
    WHERE now_ - u.at < interval '25 hours' ORDER BY u.symbol, u.at
    ON CONFLICT DO NOTHING;
END $$;
COMMENT ON FUNCTION pricing.note_overlap(text, text, bigint, jsonb, text[], timestamptz[]) IS
    'Records what one call said of days that are stored already, and which of the bars it brought are not final or are so now.';
