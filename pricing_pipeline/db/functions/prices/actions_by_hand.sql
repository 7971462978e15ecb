-- Splits, spin-offs and payments that no source reports, or that one reports wrongly, entered by people. Only the
-- owner can remove them.

CREATE OR REPLACE FUNCTION pricing.enter_action(
    wanted_class text, wanted_symbol text, day date, wanted_kind text, new_ numeric, old_ numeric, cash numeric,
    cash_currency text, by_whom text, why text DEFAULT NULL, is_further boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz;
    entered pricing.corporate_actions;
    was pricing.corporate_actions;
    others integer;
BEGIN
    IF coalesce(btrim(by_whom), '') = '' THEN
        RAISE EXCEPTION 'a % of % needs the name of the person who enters it', wanted_kind,
            wanted_symbol USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pricing.instruments i
                      WHERE (i.asset_class, i.symbol) = (wanted_class, wanted_symbol)) THEN
        RAISE EXCEPTION 'no % instrument is called %; %', wanted_class, left(wanted_symbol, 60),
            coalesce(pricing.describe_misfit(wanted_symbol, NULL, wanted_class), 'watching it adds it')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    entered.asset_class := wanted_class;
    entered.symbol := wanted_symbol;
    entered.ex_on := day;
    entered.kind := wanted_kind;
    entered.new_shares := new_;
    entered.old_shares := old_;
    entered.amount := (cash * ('1e' || scale(trim_scale(cash)))::numeric)::bigint;
    entered.scale := scale(trim_scale(cash));
    entered.currency := CASE WHEN cash IS NOT NULL THEN coalesce(cash_currency, (
        SELECT i.currency FROM pricing.instruments i
        WHERE (i.asset_class, i.symbol) = (wanted_class, wanted_symbol))) END;
    LOOP
        IF EXISTS (SELECT FROM pricing.corporate_actions a
                   WHERE (a.asset_class, a.symbol, a.ex_on) = (wanted_class, wanted_symbol, day)
                     AND pricing.same_action(a, entered)) THEN
            RETURN 'known_already';
        END IF;
        -- A day has one ratio, and a payment takes the place of the one in its currency, unless it is a further one.
        SELECT count(*) INTO others FROM pricing.corporate_actions a
        WHERE pricing.is_replaced_by(a, entered) AND NOT is_further;
        IF others > 1 THEN
            RAISE EXCEPTION '% has % payments in % on %', wanted_symbol, others,
                coalesce(entered.currency, 'the currency of its prices'), day
                USING HINT = 'Take them back first (action remove), and enter each that was '
                             'paid.', ERRCODE = 'invalid_parameter_value';
        ELSIF others = 0 THEN
            INSERT INTO pricing.corporate_actions
                (asset_class, symbol, ex_on, kind, part, new_shares, old_shares, amount, scale, currency, provider,
                 call_id, recorded_at, entered_by, reason, judged_at)
            VALUES (wanted_class, wanted_symbol, day, wanted_kind,
                    pricing.next_part(wanted_class, wanted_symbol, day, wanted_kind),
                    new_, old_, entered.amount, entered.scale, entered.currency, 'by hand', 0,
                    pricing.clock(), left(btrim(by_whom), 200), left(why, 500),
                    CASE WHEN NOT pricing.is_to_judge(wanted_class, wanted_symbol, wanted_kind)
                         THEN pricing.clock() END)
            ON CONFLICT DO NOTHING;
            IF FOUND THEN
                RETURN 'added';
            END IF;
            CONTINUE; -- another session was quicker
        END IF;
        -- The previous action stays as a revision.
        SELECT * INTO was FROM pricing.corporate_actions a WHERE pricing.is_replaced_by(a, entered) FOR UPDATE;
        CONTINUE WHEN NOT FOUND OR pricing.same_action(was, entered); -- it has just been removed, or entered
        now_ := pricing.clock(); -- after the wait for the lock
        PERFORM pricing.keep_actions(ARRAY[was], now_, 0, by_whom, why);
        UPDATE pricing.corporate_actions a
        SET kind = wanted_kind, new_shares = new_, old_shares = old_, amount = entered.amount, scale = entered.scale,
            currency = entered.currency, provider = 'by hand', call_id = 0, recorded_at = now_,
            entered_by = left(btrim(by_whom), 200), reason = left(why, 500),
            judged_at = CASE WHEN NOT pricing.is_to_judge(wanted_class, wanted_symbol, wanted_kind) THEN now_ END
        WHERE (a.asset_class, a.symbol, a.ex_on, a.kind, a.part) = (was.asset_class, was.symbol, was.ex_on, was.kind,
            was.part);
        RETURN 'replaced';
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.enter_action(text, text, date, text, numeric, numeric, numeric, text, text, text,
                                         boolean) IS
    'Adds a split, spin-off, dividend or capital gain by hand; returns added, replaced or known_already.';


CREATE OR REPLACE FUNCTION pricing.is_replaced_by(believed pricing.corporate_actions, entered pricing.corporate_actions)
RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT (believed.asset_class, believed.symbol, believed.ex_on) = (entered.asset_class, entered.symbol,
        entered.ex_on)
       AND pricing.action_set(believed.kind) = pricing.action_set(entered.kind)
       AND (believed.currency = entered.currency) IS NOT FALSE
$$;
COMMENT ON FUNCTION pricing.is_replaced_by(pricing.corporate_actions, pricing.corporate_actions) IS
    'Whether an action entered by hand replaces this one: the same day''s ratio, or a payment of the same kind and '
    'currency.';


CREATE OR REPLACE FUNCTION pricing.remove_action(
    wanted_class text, wanted_symbol text, day date, wanted_kind text, by_whom text, why text DEFAULT NULL,
    of_currency text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    was pricing.corporate_actions;
    outcome text := 'unknown';
BEGIN
    IF coalesce(btrim(by_whom), '') = '' THEN
        RAISE EXCEPTION 'a removal needs the name of the person who makes it' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR was IN
        DELETE FROM pricing.corporate_actions a
        WHERE (a.asset_class, a.symbol, a.ex_on, a.kind) = (wanted_class, wanted_symbol, day, wanted_kind)
          AND (of_currency IS NULL OR (a.currency = of_currency) IS NOT FALSE)
        RETURNING *
    LOOP
        PERFORM pricing.keep_actions(ARRAY[was], pricing.clock(), 0, by_whom, why);
        PERFORM pricing.quarantine_face_value(was) WHERE was.entered_by = pricing.face_value_rule();
        outcome := 'removed';
    END LOOP;
    RETURN outcome;
END $$;
COMMENT ON FUNCTION pricing.remove_action(text, text, date, text, text, text, text) IS
    'Removes the split or spin-off of a day, or its payments of one kind, and refuses the provider''s next report of '
    'it; returns removed or unknown.';


CREATE OR REPLACE FUNCTION pricing.is_refuted(said pricing.corporate_actions) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pricing.revisions r CROSS JOIN jsonb_populate_record(NULL::pricing.corporate_actions, r.old) a
        WHERE (r.kind, r.key) = ('corporate_actions', ARRAY[said.asset_class, said.symbol])
          AND r.removed_by IS NOT NULL
          AND (a.ex_on, a.provider) = (said.ex_on, said.provider) AND pricing.same_action(a, said));
END $$;
COMMENT ON FUNCTION pricing.is_refuted(pricing.corporate_actions) IS
    'Whether a person has removed or replaced exactly this action of this provider.';


CREATE OR REPLACE FUNCTION pricing.unreported_splits(
    wanted_type text, wanted_symbol text, first_day date, last_day date)
RETURNS TABLE (ex_on date, new_shares integer, old_shares integer)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH steps AS (
        SELECT (h.observed_at AT TIME ZONE 'UTC')::date AS day, h.volume,
               h.volume * (h.amount / 10::float8 ^ h.scale) AS money,
               (lag(h.observed_at) OVER w AT TIME ZONE 'UTC')::date AS day_before,
               ln(h.amount / 10::float8 ^ h.scale) - lag(ln(h.amount / 10::float8 ^ h.scale)) OVER w AS step,
               nullif(avg(h.volume) OVER before, 0) AS usual_volume,
               nullif(avg(h.volume * (h.amount / 10::float8 ^ h.scale)) OVER before, 0) AS usual_money
        FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.amount > 0 AND h.adjustment = 'raw'
          AND h.observed_at >= first_day::timestamp AT TIME ZONE 'UTC'
          AND h.observed_at < (last_day + 1)::timestamp AT TIME ZONE 'UTC'
        WINDOW w AS (ORDER BY h.observed_at),
               before AS (ORDER BY h.observed_at ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING))
    SELECT s.day, CASE WHEN s.step < 0 THEN f.factor ELSE 1 END, CASE WHEN s.step < 0 THEN 1 ELSE f.factor END
    FROM steps s
    CROSS JOIN LATERAL (SELECT x.factor FROM unnest(ARRAY[2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18]) AS x (factor)
                        ORDER BY abs(abs(s.step) - ln(x.factor)) LIMIT 1) f
    -- As values are judged (steps.py): a tenth around a whole factor, over a week or less, and no day whose trading,
    -- in shares and in money, proves a true move.
    WHERE abs(abs(s.step) - ln(f.factor)) <= 0.1 AND s.day - s.day_before <= 7
      AND (least(s.volume / s.usual_volume, s.money / s.usual_money) > greatest(2.5, exp(abs(s.step)) / 2)
           AND s.volume < 10000 * s.usual_volume) IS NOT TRUE
      AND (SELECT pricing.has_splits(r.asset_class) FROM pricing.data_type_registry r WHERE r.data_type = wanted_type)
      AND NOT EXISTS (SELECT FROM pricing.data_type_registry r
                      JOIN pricing.corporate_actions a ON a.asset_class = r.asset_class
                          AND a.symbol = wanted_symbol
                          AND a.new_shares IS NOT NULL
                      WHERE r.data_type = wanted_type AND a.ex_on > s.day_before AND a.ex_on <= s.day)
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.unreported_splits(text, text, date, date) IS
    'Steps of raw prices between two days that look like an unreported split, with their ratio.';
