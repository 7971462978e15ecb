-- Storing splits and dividends. They are written in the transaction that stores the prices they came with.

CREATE OR REPLACE FUNCTION pricing.merge_actions(
    wanted_type text, from_provider text, from_call bigint, actions jsonb, told_symbols text[], told_since date[])
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    today date := (now_ AT TIME ZONE 'UTC')::date;
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    stored integer;
BEGIN
    WITH said AS MATERIALIZED (
        SELECT a.symbol, a.ex_on, a.kind, a.new_shares, a.old_shares, (a.cash * ('1e' || scale(trim_scale(a.cash)))::numeric)::bigint AS amount,
               scale(trim_scale(a.cash))::smallint AS scale, a.currency
        FROM jsonb_to_recordset(actions)
            AS a (symbol text, ex_on date, kind text, new_shares numeric, old_shares numeric, cash numeric, currency text)),
    -- Only who said it first may say it otherwise: providers round dividends differently, and none is the judge.
    changed AS MATERIALIZED (
        SELECT c.* FROM said s
        JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol, c.ex_on, c.kind) = (wanted_class, s.symbol, s.ex_on, s.kind)
        WHERE c.provider = from_provider
          AND (s.new_shares * c.old_shares IS DISTINCT FROM c.new_shares * s.old_shares
               OR NOT pricing.same_amount(c.amount, c.scale, s.amount, s.scale) OR c.currency IS DISTINCT FROM s.currency)),
    kept AS (
        INSERT INTO pricing.corporate_action_revisions
            (asset_class, symbol, ex_on, kind, new_shares, old_shares, amount, scale, currency, provider, call_id, recorded_at,
             revised_at, revised_by)
        SELECT c.asset_class, c.symbol, c.ex_on, c.kind, c.new_shares, c.old_shares, c.amount, c.scale, c.currency, c.provider,
               c.call_id, c.recorded_at, now_, from_call
        FROM changed c ORDER BY c.symbol, c.ex_on, c.kind),
    written AS (
        INSERT INTO pricing.corporate_actions AS x
            (asset_class, symbol, ex_on, kind, new_shares, old_shares, amount, scale, currency, provider, call_id, recorded_at)
        SELECT wanted_class, s.symbol, s.ex_on, s.kind, s.new_shares, s.old_shares, s.amount, s.scale, s.currency,
               from_provider, from_call, now_
        FROM said s
        WHERE NOT EXISTS (SELECT FROM pricing.corporate_actions o
                          WHERE (o.asset_class, o.symbol, o.ex_on, o.kind) = (wanted_class, s.symbol, s.ex_on, s.kind))
           OR EXISTS (SELECT FROM changed c WHERE (c.symbol, c.ex_on, c.kind) = (s.symbol, s.ex_on, s.kind))
        ORDER BY s.symbol, s.ex_on, s.kind
        ON CONFLICT (asset_class, symbol, ex_on, kind) DO UPDATE
            SET new_shares = excluded.new_shares, old_shares = excluded.old_shares, amount = excluded.amount,
                scale = excluded.scale, currency = excluded.currency, provider = excluded.provider,
                call_id = excluded.call_id, recorded_at = excluded.recorded_at
        RETURNING x.symbol),
    covered AS (
        INSERT INTO pricing.corporate_action_pairs AS p (asset_class, symbol, covered, fetched_at, provider, call_id)
        SELECT wanted_class, t.symbol, datemultirange(daterange(least(t.since, today), today, '[]')), now_, from_provider, from_call
        FROM unnest(told_symbols, told_since) AS t (symbol, since)
        WHERE NOT EXISTS (SELECT FROM pricing.corporate_action_pairs o
                          WHERE (o.asset_class, o.symbol) = (wanted_class, t.symbol)
                            AND o.covered @> daterange(least(t.since, today), today, '[]'))
        ORDER BY t.symbol
        ON CONFLICT (asset_class, symbol) DO UPDATE
            SET covered = p.covered + excluded.covered, fetched_at = excluded.fetched_at, provider = excluded.provider,
                call_id = excluded.call_id)
    SELECT count(*) INTO stored FROM written;
    RETURN stored;
END $$;
COMMENT ON FUNCTION pricing.merge_actions(text, text, bigint, jsonb, text[], date[]) IS
    'Stores splits and dividends that one call brought. What its own provider corrects leaves a revision, what another one says otherwise changes nothing, and nothing is ever withdrawn. Of told symbols all actions since their day are known now. Returns how many were written.';


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
        WHERE h.data_type = wanted_type AND h.symbol = w.symbol AND h.observed_at BETWEEN w.first_at AND w.last_at) same ON true;
END $$;
COMMENT ON FUNCTION pricing.known_basis(text, text[], timestamptz[], timestamptz[]) IS
    'What tells a restated bar from a corrected one, for each symbol with the first and last time that an answer has of it: its basis, splits, and when the stored values were recorded.';
