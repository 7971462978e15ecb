-- Reading history: as it is or was believed, and as traded or adjusted. Nothing here writes.

CREATE OR REPLACE FUNCTION pricing.archived_as_of(
    wanted_type text, wanted_symbol text, since timestamptz, before timestamptz, as_of timestamptz, archived pricing.price_revisions[])
RETURNS SETOF pricing.price_revisions
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- Since the database has a value of the same time, what the file has of it is no longer believed, or is that very value.
    SELECT a.* FROM unnest(archived) a
    WHERE a.observed_at >= since AND a.observed_at < before
      AND CASE WHEN as_of IS NULL THEN a.revised_at = 'infinity' ELSE a.recorded_at <= as_of AND a.revised_at > as_of END
      AND NOT EXISTS (SELECT FROM pricing.price_history h
                      WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.observed_at = a.observed_at
                        AND (as_of IS NULL OR h.fetched_at <= as_of))
      AND NOT EXISTS (SELECT FROM pricing.price_revisions r
                      WHERE r.data_type = wanted_type AND r.symbol = wanted_symbol AND r.observed_at = a.observed_at
                        AND (as_of IS NULL OR r.recorded_at <= as_of))
$$;
COMMENT ON FUNCTION pricing.archived_as_of(text, text, timestamptz, timestamptz, timestamptz, pricing.price_revisions[]) IS
    'The moved values that were believed at a time (NULL = now), unless what is stored has taken their place by then.';


CREATE OR REPLACE FUNCTION pricing.prices_as_of(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL,
    archived pricing.price_revisions[] DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, amount bigint, open_amount bigint, high_amount bigint, low_amount bigint, scale smallint,
               currency text, volume numeric, adjustment text, provider text, call_id bigint, recorded_at timestamptz, quality text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    since timestamptz := first_day::timestamp AT TIME ZONE 'UTC';
    before timestamptz := (last_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    PERFORM pricing.require_archived(wanted_type, wanted_symbol, first_day, last_day, archived);
    IF as_of IS NULL AND coalesce(cardinality(archived), 0) = 0 THEN
        RETURN QUERY
        SELECT h.observed_at, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale, h.currency, h.volume, h.adjustment,
               h.provider, h.call_id, h.fetched_at, h.quality
        FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.observed_at >= since AND h.observed_at < before
        ORDER BY h.observed_at;
        RETURN;
    END IF;
    -- A value is believed from recorded_at until revised_at, so each moment finds one value of a time, or none.
    RETURN QUERY
    SELECT h.observed_at, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale, h.currency, h.volume, h.adjustment,
           h.provider, h.call_id, h.fetched_at, h.quality
    FROM pricing.price_history h
    WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.observed_at >= since AND h.observed_at < before
      AND (as_of IS NULL OR h.fetched_at <= as_of)
    UNION ALL
    SELECT r.observed_at, r.amount, r.open_amount, r.high_amount, r.low_amount, r.scale, r.currency, r.volume, r.adjustment,
           r.provider, r.call_id, r.recorded_at, r.quality
    FROM pricing.price_revisions r
    WHERE r.data_type = wanted_type AND r.symbol = wanted_symbol AND r.observed_at >= since AND r.observed_at < before
      AND r.recorded_at <= as_of AND r.revised_at > as_of
    UNION ALL
    SELECT a.observed_at, a.amount, a.open_amount, a.high_amount, a.low_amount, a.scale, a.currency, a.volume, a.adjustment,
           a.provider, a.call_id, a.recorded_at, a.quality
    FROM pricing.archived_as_of(wanted_type, wanted_symbol, since, before, as_of, archived) a
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.prices_as_of(text, text, date, date, timestamptz, pricing.price_revisions[]) IS
    'Stored values of a pair between two UTC days, both included, oldest first, with their lineage: as they were believed at a time; NULL = as they are now. archived has the moved ones.';


CREATE OR REPLACE FUNCTION pricing.actions_as_of(wanted_class text, wanted_symbol text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (ex_on date, kind text, new_shares numeric, old_shares numeric, amount bigint, scale smallint, currency text,
               provider text, call_id bigint, recorded_at timestamptz, entered_by text, reason text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT a.ex_on, a.kind, a.new_shares, a.old_shares, a.amount, a.scale, a.currency, a.provider, a.call_id, a.recorded_at,
           a.entered_by, a.reason
    FROM pricing.corporate_actions a
    WHERE (a.asset_class, a.symbol) = (wanted_class, wanted_symbol) AND (as_of IS NULL OR a.recorded_at <= as_of)
    UNION ALL
    SELECT r.ex_on, r.kind, r.new_shares, r.old_shares, r.amount, r.scale, r.currency, r.provider, r.call_id, r.recorded_at,
           r.entered_by, r.reason
    FROM pricing.corporate_action_revisions r
    WHERE (r.asset_class, r.symbol) = (wanted_class, wanted_symbol) AND r.recorded_at <= as_of AND r.revised_at > as_of
    ORDER BY 1 DESC, 2 DESC
$$;
COMMENT ON FUNCTION pricing.actions_as_of(text, text, timestamptz) IS
    'Splits and dividends of an instrument, the newest first, a day''s split before its dividend: as they were believed at a time; NULL = as they are now.';


CREATE OR REPLACE FUNCTION pricing.close_before(
    wanted_type text, wanted_symbol text, day date, as_of timestamptz, archived pricing.price_revisions[],
    OUT amount bigint, OUT scale smallint, OUT currency text, OUT adjustment text, OUT recorded_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    before timestamptz := day::timestamp AT TIME ZONE 'UTC';
    since timestamptz := before - interval '14 days';
BEGIN
    PERFORM pricing.require_archived(wanted_type, wanted_symbol, day - 14, day - 1, archived);
    SELECT b.amount, b.scale, b.currency, b.adjustment, b.recorded_at INTO amount, scale, currency, adjustment, recorded_at FROM (
        (SELECT h.observed_at, h.amount, h.scale, h.currency, h.adjustment, h.fetched_at AS recorded_at
         FROM pricing.price_history h
         WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
           AND h.observed_at >= since AND h.observed_at < before AND (as_of IS NULL OR h.fetched_at <= as_of)
         ORDER BY h.observed_at DESC LIMIT 1)
        UNION ALL
        (SELECT r.observed_at, r.amount, r.scale, r.currency, r.adjustment, r.recorded_at FROM pricing.price_revisions r
         WHERE r.data_type = wanted_type AND r.symbol = wanted_symbol
           AND r.observed_at >= since AND r.observed_at < before AND r.recorded_at <= as_of AND r.revised_at > as_of
         ORDER BY r.observed_at DESC LIMIT 1)
        UNION ALL
        (SELECT a.observed_at, a.amount, a.scale, a.currency, a.adjustment, a.recorded_at
         FROM pricing.archived_as_of(wanted_type, wanted_symbol, since, before, as_of, archived) a
         ORDER BY a.observed_at DESC LIMIT 1)) b
    ORDER BY b.observed_at DESC LIMIT 1;
END $$;
COMMENT ON FUNCTION pricing.close_before(text, text, date, timestamptz, pricing.price_revisions[]) IS
    'The last value of a pair in the two weeks before a day, as it was believed at a time (NULL = now), with its basis. NULL = there is none.';


CREATE OR REPLACE FUNCTION pricing.left_by_dividend(
    wanted_type text, wanted_class text, wanted_symbol text, ex_on date, cash numeric, cash_currency text, as_of timestamptz,
    archived pricing.price_revisions[])
RETURNS numeric
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    -- What a dividend took off is told by the price before it. One of another year would tell something else.
    last_close record := pricing.close_before(wanted_type, wanted_symbol, ex_on, as_of, archived);
    later record;
BEGIN
    IF last_close.amount IS NULL THEN
        RETURN NULL; -- no price is older, or the history has a hole before it
    ELSIF cash_currency <> last_close.currency THEN
        RAISE EXCEPTION 'the dividend of % on % is in %, its prices are in %', wanted_symbol, ex_on, cash_currency, last_close.currency
            USING HINT = 'Read it adjusted for splits: no rate of exchange is applied to dividends.', ERRCODE = 'data_exception';
    END IF;
    -- Both on the basis of the close: as traded on its day, or divided by the splits until it was recorded.
    FOR later IN
        SELECT a.new_shares, a.old_shares FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a
        WHERE a.kind = 'split' AND CASE last_close.adjustment WHEN 'raw' THEN a.ex_on = left_by_dividend.ex_on
            ELSE a.ex_on > left_by_dividend.ex_on AND a.ex_on <= (last_close.recorded_at AT TIME ZONE 'UTC')::date END
    LOOP
        -- On the day of a split the dividend is for new shares, the close before it is of old ones.
        cash := CASE last_close.adjustment WHEN 'raw' THEN cash * later.new_shares / later.old_shares
            ELSE cash * later.old_shares / later.new_shares END;
    END LOOP;
    IF cash * ('1e' || last_close.scale)::numeric >= last_close.amount THEN
        RAISE EXCEPTION 'the dividend of % on % is not below the last price before it', wanted_symbol, ex_on
            USING HINT = 'Compare it with another source, and correct pricing.corporate_actions.', ERRCODE = 'data_exception';
    END IF;
    RETURN 1 - cash * ('1e' || last_close.scale)::numeric / last_close.amount;
END $$;
COMMENT ON FUNCTION pricing.left_by_dividend(text, text, text, date, numeric, text, timestamptz, pricing.price_revisions[]) IS
    'The part of a price that a dividend left: 1 less its cash by the last price before it, on one basis. NULL = none is known.';


CREATE OR REPLACE FUNCTION pricing.adjustment_steps(
    wanted_type text, wanted_symbol text, with_dividends boolean, as_of timestamptz, archived pricing.price_revisions[])
RETURNS TABLE (from_day date, until_day date, new_shares numeric, old_shares numeric, kept numeric)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    today date := (coalesce(as_of, pricing.clock()) AT TIME ZONE 'UTC')::date;
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    happened record;
BEGIN
    until_day := 'infinity';
    new_shares := 1;
    old_shares := 1;
    kept := 1;
    FOR happened IN
        SELECT a.* FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a
        WHERE a.ex_on <= today AND (with_dividends OR a.kind = 'split') ORDER BY a.ex_on DESC, a.kind DESC
    LOOP
        IF happened.ex_on < until_day THEN
            from_day := happened.ex_on;
            RETURN NEXT;
            until_day := happened.ex_on;
        END IF;
        IF happened.kind = 'split' THEN
            new_shares := new_shares * happened.new_shares;
            old_shares := old_shares * happened.old_shares;
        ELSE
            kept := coalesce(round(kept * pricing.left_by_dividend(
                wanted_type, wanted_class, wanted_symbol, happened.ex_on, happened.amount * ('1e-' || happened.scale)::numeric,
                happened.currency, as_of, archived), 20), kept);
        END IF;
    END LOOP;
    from_day := '-infinity';
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION pricing.adjustment_steps(text, text, boolean, timestamptz, pricing.price_revisions[]) IS
    'What came after the days of each span (from_day included, until_day not): so many new shares for so many old ones, and the part of a price that dividends left. One row where nothing did.';


CREATE OR REPLACE FUNCTION pricing.adjusted_prices(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL, adjust text DEFAULT NULL,
    archived pricing.price_revisions[] DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, open numeric, high numeric, low numeric, close numeric, volume numeric, currency text,
               adjustment text, provider text, call_id bigint, recorded_at timestamptz, quality text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    IF adjust NOT IN ('raw', 'splits', 'total') THEN
        RAISE EXCEPTION 'unknown adjustment %', left(adjust, 60)
            USING HINT = 'raw = as traded, splits = divided by later splits, total = also without later dividends; NULL = as stored.',
                  ERRCODE = 'invalid_parameter_value';
    ELSIF adjust IS NULL THEN
        RETURN QUERY
        -- Multiplied by a power of ten, not divided: a quotient is rounded to 16 digits.
        SELECT h.observed_at, h.open_amount * one.unit, h.high_amount * one.unit, h.low_amount * one.unit, h.amount * one.unit,
               h.volume, h.currency, h.adjustment, h.provider, h.call_id, h.recorded_at, h.quality
        FROM pricing.prices_as_of(wanted_type, wanted_symbol, first_day, last_day, as_of, archived) h
        CROSS JOIN LATERAL (SELECT ('1e-' || h.scale)::numeric AS unit) one
        ORDER BY h.observed_at;
        RETURN;
    END IF;
    RETURN QUERY
    WITH steps AS MATERIALIZED (
        SELECT s.* FROM pricing.adjustment_steps(wanted_type, wanted_symbol, adjust = 'total', as_of, archived) s),
    stored AS (
        SELECT h.*, ('1e-' || h.scale)::numeric AS unit, (h.observed_at AT TIME ZONE 'UTC')::date AS day,
               -- Prices that were divided by the splits until they were recorded are as if traded on that day.
               CASE h.adjustment WHEN 'raw' THEN (h.observed_at AT TIME ZONE 'UTC')::date
                    ELSE greatest((h.observed_at AT TIME ZONE 'UTC')::date, (h.recorded_at AT TIME ZONE 'UTC')::date) END AS basis_day
        FROM pricing.prices_as_of(wanted_type, wanted_symbol, first_day, last_day, as_of, archived) h),
    factored AS (
        SELECT h.*,
               basis.old_shares * CASE adjust WHEN 'raw' THEN own.new_shares ELSE 1 END AS shares_up,
               basis.new_shares * CASE adjust WHEN 'raw' THEN own.old_shares ELSE 1 END AS shares_down,
               CASE adjust WHEN 'total' THEN own.kept ELSE 1 END AS kept
        FROM stored h
        JOIN steps own ON h.day >= own.from_day AND h.day < own.until_day
        JOIN steps basis ON h.basis_day >= basis.from_day AND h.basis_day < basis.until_day)
    SELECT f.observed_at,
           CASE WHEN f.is_as_stored THEN f.open_amount * f.unit ELSE trim_scale(round(f.open_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.high_amount * f.unit ELSE trim_scale(round(f.high_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.low_amount * f.unit ELSE trim_scale(round(f.low_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.amount * f.unit ELSE trim_scale(round(f.amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.shares_up = f.shares_down THEN f.volume ELSE round(f.volume * f.shares_down / f.shares_up) END,
           f.currency, adjust, f.provider, f.call_id, f.recorded_at, f.quality
    FROM (SELECT x.*, x.shares_up * x.kept AS up, x.shares_down AS down, x.shares_up * x.kept = x.shares_down AS is_as_stored
          FROM factored x) f
    ORDER BY f.observed_at;
END $$;
COMMENT ON FUNCTION pricing.adjusted_prices(text, text, date, date, timestamptz, text, pricing.price_revisions[]) IS
    'Values of a pair between two UTC days as decimals, oldest first: as believed at a time (NULL = now), and raw, adjusted for splits, or for total return by what was known then (NULL = as stored, exactly). What is adjusted is rounded to 10 decimals.';
