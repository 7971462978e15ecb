-- Storing corporate actions. They are written in the transaction that stores the prices they came with.
--
-- What a provider reports for a day forms three sets: the ratio (a split or a spin-off), the dividends, the capital
-- gains. Only the provider that first reported a set may change it; the new set then replaces the old one.

CREATE OR REPLACE FUNCTION pricing.action_set(kind text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT CASE kind WHEN 'spin_off' THEN 'split' ELSE kind END
$$;
COMMENT ON FUNCTION pricing.action_set(text) IS
    'The set of a day''s action; splits and spin-offs share one, because a provider may report one as the other.';


CREATE OR REPLACE FUNCTION pricing.actions_of_answer(wanted_class text, from_provider text, from_call bigint,
                                                     actions jsonb)
RETURNS SETOF pricing.corporate_actions
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT wanted_class, a.symbol, a.ex_on, a.kind, a.new_shares, a.old_shares,
           (a.cash * ('1e' || scale(trim_scale(a.cash)))::numeric)::bigint, scale(trim_scale(a.cash))::smallint,
           a.currency,
           from_provider, from_call, NULL::timestamptz, NULL::text, NULL::text, NULL::timestamptz, 1::smallint
    FROM jsonb_to_recordset(actions)
        AS a (symbol text, ex_on date, kind text, new_shares numeric, old_shares numeric, cash numeric, currency text)
$$;
COMMENT ON FUNCTION pricing.actions_of_answer(text, text, bigint, jsonb) IS
    'The actions of an answer as stored, before payments of one day get their parts.';


CREATE OR REPLACE FUNCTION pricing.same_action(one pricing.corporate_actions, other pricing.corporate_actions)
RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT one.kind = other.kind
       AND CASE WHEN one.new_shares IS NOT NULL
            THEN one.new_shares * other.old_shares = other.new_shares * one.old_shares
                ELSE pricing.same_amount(one.amount, one.scale, other.amount, other.scale)
                     AND one.currency IS NOT DISTINCT FROM other.currency END
$$;
COMMENT ON FUNCTION pricing.same_action(pricing.corporate_actions, pricing.corporate_actions) IS
    'Whether two sources report the same action of a day, however they spell it.';


CREATE OR REPLACE FUNCTION pricing.is_one_action(believed pricing.corporate_actions, said pricing.corporate_actions)
RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    -- Some funds pay the same cash every week.
    SELECT pricing.action_set(believed.kind) = pricing.action_set(said.kind)
       AND abs(believed.ex_on - said.ex_on) <= CASE WHEN said.new_shares IS NULL THEN 6 ELSE 7 END
       AND CASE WHEN said.new_shares IS NOT NULL
            THEN believed.new_shares * said.old_shares = said.new_shares * believed.old_shares
                ELSE pricing.same_amount(believed.amount, believed.scale, said.amount, said.scale)
                     AND (believed.currency = said.currency) IS NOT FALSE END
$$;
COMMENT ON FUNCTION pricing.is_one_action(pricing.corporate_actions, pricing.corporate_actions) IS
    'Whether a reported action may be a believed one of another day, because sources differ about ex-days: the same '
    'ratio within 7 days, or the same amount within 6.';


CREATE OR REPLACE FUNCTION pricing.keep_actions(
    were pricing.corporate_actions[], until timestamptz, by_call bigint, by_whom text DEFAULT NULL,
    why text DEFAULT NULL) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.revisions
        (kind, key, recorded_at, revised_at, revised_by, removed_by, removed_because, old)
    SELECT 'corporate_actions', ARRAY[w.asset_class, w.symbol], w.recorded_at, until, by_call,
           left(btrim(by_whom), 200), left(why, 500), to_jsonb(w)
    FROM unnest(were) w
$$;
COMMENT ON FUNCTION pricing.keep_actions(pricing.corporate_actions[], timestamptz, bigint, text, text) IS
    'Stores actions as revisions that a later call of their provider has replaced, or a person (call 0), with a '
    'reason.';


CREATE OR REPLACE FUNCTION pricing.withdraw_payments(were pricing.corporate_actions[], until timestamptz,
                                                     by_call bigint)
RETURNS integer
-- With the owner's rights: no worker may delete actions. A withdrawn action stays as a revision.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    gone pricing.corporate_actions[];
BEGIN
    WITH withdrawn AS (
        DELETE FROM pricing.corporate_actions c USING unnest(were) w
        WHERE (c.asset_class, c.symbol, c.ex_on, c.kind, c.part) = (w.asset_class, w.symbol, w.ex_on, w.kind, w.part)
          AND c.recorded_at = w.recorded_at AND c.amount IS NOT NULL AND c.entered_by IS NULL
        RETURNING c AS was)
    SELECT array_agg(w.was) INTO gone FROM withdrawn w;
    PERFORM pricing.keep_actions(gone, until, by_call) WHERE gone IS NOT NULL;
    RETURN coalesce(cardinality(gone), 0);
END $$;
COMMENT ON FUNCTION pricing.withdraw_payments(pricing.corporate_actions[], timestamptz, bigint) IS
    'Withdraws payments that their provider omits from days that it reports again, as revisions; returns how many.';


CREATE OR REPLACE FUNCTION pricing.move_actions(
    wanted_class text, from_provider text, from_call bigint, actions jsonb, reported_symbols text[],
    reported_since date[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    one record;
    moved integer := 0;
BEGIN
    FOR one IN
        SELECT c AS was, s AS said
        FROM pricing.actions_of_answer(wanted_class, from_provider, from_call, actions) s
        JOIN unnest(reported_symbols, reported_since) AS t (symbol, since) ON t.symbol = s.symbol
        JOIN pricing.corporate_actions c
            ON (c.asset_class, c.symbol, c.provider) = (wanted_class, s.symbol, from_provider)
               AND c.ex_on > t.since AND c.ex_on <= (now_ AT TIME ZONE 'UTC')::date
        WHERE pricing.is_one_action(c, s) AND NOT pricing.is_refuted(s)
          AND NOT EXISTS (SELECT FROM pricing.actions_of_answer(wanted_class, from_provider, from_call, actions) x
                          WHERE (x.symbol, x.ex_on, pricing.action_set(x.kind))
                                = (c.symbol, c.ex_on, pricing.action_set(c.kind)))
        ORDER BY s.symbol, s.kind, abs(c.ex_on - s.ex_on), s.ex_on, c.ex_on
    LOOP
        BEGIN
            UPDATE pricing.corporate_actions c
            SET ex_on = (one.said).ex_on, call_id = from_call, recorded_at = now_,
                part = pricing.next_part(wanted_class, c.symbol, (one.said).ex_on, c.kind),
                judged_at = CASE WHEN NOT pricing.is_to_judge(wanted_class, c.symbol, c.kind) THEN now_ END
            WHERE (c.asset_class, c.symbol, c.ex_on, c.kind, c.part)
                = (wanted_class, (one.was).symbol, (one.was).ex_on, (one.was).kind, (one.was).part)
              AND c.recorded_at = (one.was).recorded_at
              -- An action that the new day already has is not moved there.
              AND NOT EXISTS (SELECT FROM pricing.corporate_actions x
                              WHERE (x.asset_class, x.symbol, x.ex_on) = (wanted_class, (one.said).symbol,
                                  (one.said).ex_on)
                                AND pricing.action_set(x.kind) = pricing.action_set((one.said).kind)
                                AND (x.provider <> from_provider OR pricing.same_action(x, one.said)));
            IF FOUND THEN
                PERFORM pricing.keep_actions(ARRAY[one.was], now_, from_call);
                moved := moved + 1;
            END IF;
        EXCEPTION
            WHEN unique_violation THEN -- another session has just stored an action of the new day
                CONTINUE;
        END;
    END LOOP;
    RETURN moved;
END $$;
COMMENT ON FUNCTION pricing.move_actions(text, text, bigint, jsonb, text[], date[]) IS
    'Moves actions to the nearby day that their provider now names, with revisions; returns how many.';


CREATE OR REPLACE FUNCTION pricing.next_part(wanted_class text, wanted_symbol text, day date, wanted_kind text)
RETURNS smallint
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (coalesce(max(c.part), 0) + 1)::smallint FROM pricing.corporate_actions c
    WHERE (c.asset_class, c.symbol, c.ex_on, c.kind) = (wanted_class, wanted_symbol, day, wanted_kind)
$$;
COMMENT ON FUNCTION pricing.next_part(text, text, date, text) IS 'The part number of one more payment of a day.';


CREATE OR REPLACE FUNCTION pricing.merge_actions(
    wanted_type text, from_provider text, from_call bigint, actions jsonb, reported_symbols text[],
    reported_since date[], gains_reported text[] DEFAULT '{}')
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    stored integer := pricing.move_actions(
        wanted_class, from_provider, from_call, actions, reported_symbols, reported_since);
    pass record;
    now_ timestamptz;
BEGIN
    FOR passes IN 1..10 LOOP
        WITH moment AS MATERIALIZED (SELECT pricing.clock() AS at), -- later than all that this statement sees
        said AS MATERIALIZED (
            SELECT DISTINCT a AS action, a.symbol, a.ex_on, a.kind, a.currency, pricing.action_set(a.kind) AS set
            FROM pricing.actions_of_answer(wanted_class, from_provider, from_call, actions) a
            WHERE NOT pricing.is_refuted(a)),
        known AS MATERIALIZED (
            SELECT c AS action, c.ctid AS place, c.symbol, c.ex_on, c.provider, c.currency,
                   pricing.action_set(c.kind) AS set
            FROM pricing.corporate_actions c
            WHERE c.asset_class = wanted_class AND (c.symbol, c.ex_on) IN (SELECT s.symbol, s.ex_on FROM said s)),
        -- Reported and not stored yet, in sets that are new or the provider's own.
        other AS MATERIALIZED (
            SELECT s.*, row_number() OVER (PARTITION BY s.symbol, s.ex_on, s.set
                                           ORDER BY s.currency, (s.action).amount, (s.action).scale) AS number
            FROM said s
            WHERE NOT EXISTS (
                SELECT FROM known k
                WHERE (k.symbol, k.ex_on, k.set) = (s.symbol, s.ex_on, s.set)
                  AND CASE k.provider
                      WHEN from_provider THEN pricing.same_action(k.action, s.action)
                      -- A person's payment takes the place of the provider's in its currency, and stands beside others.
                      WHEN 'by hand' THEN (k.currency = s.currency) IS NOT FALSE AND NOT EXISTS (
                          SELECT FROM known own
                          WHERE (own.symbol, own.ex_on, own.set, own.provider) = (s.symbol, s.ex_on, s.set,
                              from_provider)
                            AND own.currency IS NOT DISTINCT FROM s.currency)
                      ELSE true END)),
        -- Stored in such a set, and no longer reported.
        outdated AS MATERIALIZED (
            SELECT k.*, row_number() OVER (PARTITION BY k.symbol, k.ex_on, k.set
                                           ORDER BY k.currency, (k.action).amount, (k.action).scale) AS number
            FROM known k
            WHERE k.provider = from_provider
              AND EXISTS (SELECT FROM said s WHERE (s.symbol, s.ex_on, s.set) = (k.symbol, k.ex_on, k.set))
              AND NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.ex_on, s.set) = (k.symbol, k.ex_on, k.set)
                                                   AND pricing.same_action(k.action, s.action))),
        differing AS MATERIALIZED (
            SELECT s.action, d.action AS was, d.place FROM other s JOIN outdated d USING (symbol, ex_on, set, number)),
        fresh AS MATERIALIZED (
            SELECT s.* FROM other s
            WHERE NOT EXISTS (SELECT FROM outdated d
                              WHERE (d.symbol, d.ex_on, d.set, d.number) = (s.symbol, s.ex_on, s.set, s.number))
              -- A believed action of a nearby day that the answer does not name is the same action. Some funds pay
              -- twice a week.
              AND NOT EXISTS (SELECT FROM pricing.corporate_actions o
                              WHERE (o.asset_class, o.symbol) = (wanted_class, s.symbol)
                                AND (o.new_shares IS NOT NULL OR o.provider <> from_provider)
                                AND pricing.is_one_action(o, s.action)
                                AND NOT EXISTS (SELECT FROM said x
                                                WHERE (x.symbol, x.ex_on, x.set)
                                                      = (o.symbol, o.ex_on, pricing.action_set(o.kind))))),
        written AS (
            INSERT INTO pricing.corporate_actions AS x
                (asset_class, symbol, ex_on, kind, part, new_shares, old_shares, amount, scale, currency, provider,
                 call_id, recorded_at, judged_at)
            SELECT wanted_class, s.symbol, s.ex_on, s.kind,
                   pricing.next_part(wanted_class, s.symbol, s.ex_on, s.kind)
                       + row_number() OVER (PARTITION BY s.symbol, s.ex_on, s.kind ORDER BY s.number) - 1,
                   (s.action).new_shares, (s.action).old_shares, (s.action).amount, (s.action).scale, s.currency,
                   from_provider, from_call, m.at,
                   CASE WHEN NOT pricing.is_to_judge(wanted_class, s.symbol, s.kind) THEN m.at END
            FROM fresh s CROSS JOIN moment m
            ORDER BY s.symbol, s.ex_on, s.kind, s.number
            ON CONFLICT DO NOTHING
            RETURNING x.symbol),
        -- By its place: a row that another session has just changed lies elsewhere, and is looked at again.
        changed AS (
            UPDATE pricing.corporate_actions x
            SET kind = (d.action).kind, new_shares = (d.action).new_shares, old_shares = (d.action).old_shares,
                amount = (d.action).amount, scale = (d.action).scale, currency = (d.action).currency,
                call_id = from_call, recorded_at = m.at,
                judged_at = CASE WHEN NOT pricing.is_to_judge(wanted_class, (d.was).symbol, (d.action).kind)
                                 THEN m.at END
            FROM differing d CROSS JOIN moment m WHERE x.ctid = d.place
            RETURNING d.was)
        SELECT (SELECT count(*) FROM written) + (SELECT count(*) FROM changed) AS stored,
               (SELECT count(*) FROM written) < (SELECT count(*) FROM fresh)
               OR (SELECT count(*) FROM changed) < (SELECT count(*) FROM differing) AS is_overtaken,
               (SELECT array_agg(c.was) FROM changed c) AS replaced,
               (SELECT array_agg(o.action) FROM outdated o
                WHERE NOT EXISTS (SELECT FROM differing d WHERE d.place = o.place)) AS surplus,
               (SELECT m.at FROM moment m) AS at INTO pass;
        stored := stored + pass.stored;
        PERFORM pricing.keep_actions(pass.replaced, pass.at, from_call) WHERE pass.replaced IS NOT NULL;
        stored := stored + coalesce((SELECT pricing.withdraw_payments(pass.surplus, pass.at, from_call)
                                     WHERE pass.surplus IS NOT NULL), 0);
        -- Another session has just stored actions of the same days: compare with those.
        EXIT WHEN NOT pass.is_overtaken;
    END LOOP;
    -- All splits and dividends of these symbols since a day are known now, and for some also all capital gains.
    now_ := pricing.clock();
    INSERT INTO pricing.corporate_action_pairs AS p (asset_class, symbol, covered, gains_covered, fetched_at, provider,
                                                     call_id)
    SELECT wanted_class, t.symbol, t.days, CASE WHEN t.has_gains THEN t.days ELSE '{}' END, now_, from_provider,
           from_call
    FROM (SELECT u.symbol, datemultirange(daterange(least(u.since, d.today), d.today, '[]')) AS days,
                 u.symbol = ANY (gains_reported) AS has_gains
          FROM unnest(reported_symbols, reported_since) AS u (symbol, since)
          CROSS JOIN (SELECT (now_ AT TIME ZONE 'UTC')::date AS today) d) t
    WHERE NOT EXISTS (SELECT FROM pricing.corporate_action_pairs o
                      WHERE (o.asset_class, o.symbol) = (wanted_class, t.symbol)
                        AND o.covered @> t.days AND (o.gains_covered @> t.days OR NOT t.has_gains))
    ORDER BY t.symbol
    ON CONFLICT (asset_class, symbol) DO UPDATE
        SET covered = p.covered + excluded.covered, gains_covered = p.gains_covered + excluded.gains_covered,
            fetched_at = excluded.fetched_at, provider = excluded.provider, call_id = excluded.call_id;
    RETURN stored;
END $$;
COMMENT ON FUNCTION pricing.merge_actions(text, text, bigint, jsonb, text[], date[], text[]) IS
    'Stores the actions of one call, with revisions where their provider corrects a day; what a person has removed '
    'stays removed; returns how many rows changed.';


CREATE OR REPLACE FUNCTION pricing.doubted_payments(wanted_type text, actions jsonb)
RETURNS TABLE (symbol text, ex_on date, kind text, cash numeric, currency text, reason text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH said AS MATERIALIZED (
        SELECT a.*, r.asset_class
        FROM jsonb_to_recordset(actions) AS a (symbol text, ex_on date, kind text, cash numeric, currency text)
        CROSS JOIN pricing.data_type_registry r WHERE r.data_type = wanted_type AND a.cash IS NOT NULL),
    paid AS (
        SELECT s.symbol, s.ex_on, s.kind, s.cash, s.currency, s.asset_class, true AS is_said FROM said s
        UNION ALL
        SELECT c.symbol, c.ex_on, c.kind, c.amount * ('1e-' || c.scale)::numeric, c.currency, c.asset_class, false
        FROM (SELECT DISTINCT s.asset_class, s.symbol FROM said s) p
        JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol) = (p.asset_class, p.symbol)
            AND c.amount IS NOT NULL
        WHERE NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.ex_on, s.kind) = (c.symbol, c.ex_on, c.kind))),
    compared AS (
        SELECT p.*, max(p.cash) OVER (PARTITION BY p.symbol, p.kind, coalesce(p.currency, '') ORDER BY p.ex_on
                                      ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING) AS before,
               -- Funds hand out all gains of a year at once.
               CASE p.kind WHEN 'dividend' THEN 0.2 ELSE 0.5 END AS most,
               CASE p.kind WHEN 'dividend' THEN 'fifth' ELSE 'half' END AS part,
               replace(p.kind, '_', ' ') AS word
        FROM paid p)
    SELECT d.symbol, d.ex_on, d.kind, d.cash, d.currency,
           CASE WHEN d.kind = 'dividend' AND d.cash > 100 * d.before
                THEN pg_catalog.format('the dividend of %s is more than 100 times each of the last ones before it, '
                                       'which were up to %s',
                                       d.ex_on, trim_scale(d.before))
                WHEN price.close IS NULL THEN pg_catalog.format(
                    'the %s is more than any share has paid, and no price before it is known', d.word)
                ELSE pg_catalog.format('the %s of %s is more than a %s of the last price before it, %s on %s', d.word,
                                       d.ex_on, d.part, price.close, (price.observed_at AT TIME ZONE 'UTC')::date) END
    FROM compared d
    LEFT JOIN LATERAL (
        SELECT h.observed_at, h.amount * ('1e-' || h.scale)::numeric AS close, h.adjustment,
               CASE WHEN (h.currency = d.currency) IS NOT FALSE THEN 1
                   ELSE pricing.rate_of_day(d.currency, h.currency, d.ex_on) END AS rate
        FROM pricing.data_type_registry t
        JOIN pricing.price_history h ON h.data_type = t.data_type AND h.symbol = d.symbol
             AND h.observed_at >= (d.ex_on - 14)::timestamp AT TIME ZONE 'UTC'
             AND h.observed_at < d.ex_on::timestamp AT TIME ZONE 'UTC'
        WHERE t.asset_class = d.asset_class
        ORDER BY h.observed_at DESC LIMIT 1) price ON price.rate IS NOT NULL
    -- Unreported splits may lie between a price that is divided by all of them and a dividend that is not.
    WHERE d.is_said
      AND (d.kind = 'dividend' AND d.cash > 100 * d.before
           OR d.cash * coalesce(price.rate, 1)
              > coalesce(price.close * CASE price.adjustment WHEN 'raw' THEN d.most ELSE 1000 END, 999999999))
      AND NOT EXISTS (SELECT FROM pricing.corporate_actions c
                      WHERE (c.asset_class, c.symbol, c.ex_on, c.kind) = (d.asset_class, d.symbol, d.ex_on, d.kind)
                        AND c.amount * ('1e-' || c.scale)::numeric = d.cash AND (c.currency = d.currency) IS NOT FALSE)
$$;
COMMENT ON FUNCTION pricing.doubted_payments(text, jsonb) IS
    'New dividends and capital gains that are too large to believe beside the price or earlier payments, and why.';


CREATE OR REPLACE FUNCTION pricing.is_to_judge(wanted_class text, wanted_symbol text, wanted_kind text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN wanted_kind IN ('split', 'spin_off') AND EXISTS (
        SELECT FROM pricing.data_type_registry r
        WHERE r.asset_class = wanted_class AND pricing.is_daily(r.fetcher)
          AND (EXISTS (SELECT FROM pricing.quarantined_values q
                       WHERE q.data_type = r.data_type
                         AND q.symbol = wanted_symbol
                         AND q.status = 'quarantined'
                         AND pricing.is_of_level(q.kind))
               OR EXISTS (SELECT FROM pricing.restatements x
                          WHERE x.data_type = r.data_type AND x.symbol = wanted_symbol AND x.ratio IS NOT NULL)));
END $$;
COMMENT ON FUNCTION pricing.is_to_judge(text, text, text) IS
    'Whether an instrument has quarantined values, or its history came divided by one ratio, so that a new split may '
    'explain it.';


CREATE OR REPLACE FUNCTION pricing.note_judged(wanted_class text, wanted_symbol text, until timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- A history that came divided by one ratio is fetched again: only some of its values are quarantined.
    UPDATE pricing.restatements x SET backfill_id = NULL, reopened_at = now_
    FROM pricing.data_type_registry r
    WHERE r.data_type = x.data_type
      AND r.asset_class = wanted_class
      AND x.symbol = wanted_symbol
      AND x.ratio IS NOT NULL
      AND EXISTS (SELECT FROM pricing.corporate_actions a
                  WHERE (a.asset_class, a.symbol) = (wanted_class, wanted_symbol) AND a.new_shares IS NOT NULL
                    AND a.judged_at IS NULL AND a.recorded_at <= until);
    UPDATE pricing.corporate_actions a SET judged_at = now_
    WHERE (a.asset_class, a.symbol) = (wanted_class, wanted_symbol) AND a.judged_at IS NULL AND a.recorded_at <= until;
END $$;
COMMENT ON FUNCTION pricing.note_judged(text, text, timestamptz) IS
    'Records that an instrument''s quarantined values were judged again with all actions known then.';


CREATE OR REPLACE FUNCTION pricing.has_splits(asset_class text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT asset_class <> ALL (ARRAY['commodity', 'crypto', 'currency', 'future', 'fx', 'index', 'inventory'])
$$;
COMMENT ON FUNCTION pricing.has_splits(text) IS
    'Whether instruments of a class may split; otherwise a step of any size is a true move or a mistake.';


CREATE OR REPLACE FUNCTION pricing.known_basis(wanted_type text, symbols text[], first_times timestamptz[],
                                               last_times timestamptz[])
RETURNS TABLE (symbol text, adjustment text, split_days date[], split_ratios numeric[], newest_recorded timestamptz,
               earlier_recorded timestamptz, same_times timestamptz[], same_recorded timestamptz[])
LANGUAGE plpgsql STABLE SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
BEGIN
    RETURN QUERY
    SELECT w.symbol, newest.adjustment, splits.days, splits.ratios, newest.recorded_at, earlier.recorded_at, same.times,
           same.recorded
    FROM unnest(symbols, first_times, last_times) AS w (symbol, first_at, last_at)
    LEFT JOIN LATERAL (
        SELECT array_agg(a.ex_on) AS days, array_agg(a.new_shares / a.old_shares) AS ratios
        FROM pricing.corporate_actions a
        WHERE a.asset_class = wanted_class AND a.symbol = w.symbol AND a.new_shares IS NOT NULL) splits ON true
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
          AND (h.fetched_at < h.observed_at + interval '25 hours'
               OR (newest.adjustment = 'splits' AND splits.days IS NOT NULL))) same ON true;
END $$;
COMMENT ON FUNCTION pricing.known_basis(text, text[], timestamptz[], timestamptz[]) IS
    'What distinguishes a restated bar from a corrected one, for each symbol and span: basis, splits, and when stored '
    'values were recorded.';


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
        -- The same ratio again, except for rounding, is the same restatement, as long as it keeps coming.
        UPDATE pricing.restatements x
        SET times = x.times + 1, last_seen_at = now_, days = greatest(x.days, found_.days),
            first_on = least(x.first_on, found_.first_on), last_on = greatest(x.last_on, found_.last_on),
            -- Days on another basis make the whole history be requested each time, so no answer is refused for good.
            reopened_at = CASE WHEN x.kind = 'basis' AND x.backfill_id IS NOT NULL THEN now_ ELSE x.reopened_at END,
            backfill_id = CASE WHEN x.kind = 'basis' THEN NULL ELSE x.backfill_id END
        WHERE (x.data_type, x.symbol, x.provider, x.kind) = (wanted_type, found_.symbol, from_provider, found_.kind)
          AND abs(x.ratio / found_.ratio - 1) < 0.005 AND x.last_seen_at > now_ - interval '30 days';
        IF NOT FOUND THEN
            INSERT INTO pricing.restatements
                (data_type, symbol, provider, kind, ratio, days, largest, first_on, last_on, call_id, recorded_at,
                 last_seen_at)
            VALUES (wanted_type, found_.symbol, from_provider, found_.kind, found_.ratio, found_.days,
                    round(found_.largest, 6), found_.first_on, found_.last_on, from_call, now_, now_);
        END IF;
    END LOOP;
    DELETE FROM pricing.provisional_bars p
    WHERE (p.data_type, p.symbol, p.observed_at) IN (
        SELECT wanted_type, u.symbol, u.at
        FROM unnest(symbols, times) AS u (symbol, at)
        WHERE now_ - u.at >= interval '25 hours');
    INSERT INTO pricing.provisional_bars (data_type, symbol, observed_at, ask_at)
    SELECT wanted_type, u.symbol, u.at, u.at + interval '26 hours'
    FROM unnest(symbols, times) AS u (symbol, at)
    WHERE now_ - u.at < interval '25 hours'
    ORDER BY u.symbol, u.at
    ON CONFLICT DO NOTHING;
END $$;
COMMENT ON FUNCTION pricing.note_overlap(text, text, bigint, jsonb, text[], timestamptz[]) IS
    'Records what one call says about stored days, and which of its bars are not final or have become final.';
