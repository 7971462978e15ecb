-- Reads history as believed now or at a time, and as traded or adjusted. Nothing here writes.

CREATE OR REPLACE FUNCTION pricing.moved_as_of(
    wanted_type text, wanted_symbol text, since timestamptz, before timestamptz, as_of timestamptz,
    moved pricing.price_revisions[])
RETURNS SETOF pricing.price_revisions
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- If the database has a value of the same time, the value in the file is no longer believed, or is the same one.
    SELECT a.* FROM unnest(moved) a
    WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol) AND a.observed_at >= since AND a.observed_at < before
      AND CASE WHEN as_of IS NULL THEN a.revised_at = 'infinity'
               ELSE a.recorded_at <= as_of AND a.revised_at > as_of END
      AND NOT EXISTS (SELECT FROM pricing.price_history h
                      WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.observed_at = a.observed_at
                        AND (as_of IS NULL OR h.fetched_at <= as_of))
      AND NOT EXISTS (SELECT FROM pricing.price_revisions r
                      WHERE r.data_type = wanted_type AND r.symbol = wanted_symbol AND r.observed_at = a.observed_at
                        AND (as_of IS NULL OR r.recorded_at <= as_of))
$$;
COMMENT ON FUNCTION pricing.moved_as_of(
    text, text, timestamptz, timestamptz, timestamptz, pricing.price_revisions[]) IS
    'Moved values as believed at a time (NULL = now), unless stored ones had replaced them by then.';


CREATE OR REPLACE FUNCTION pricing.prices_as_of(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL,
    moved pricing.price_revisions[] DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, amount bigint, open_amount bigint, high_amount bigint, low_amount bigint,
               scale smallint, currency text, volume numeric, adjustment text, provider text, call_id bigint,
               recorded_at timestamptz, quality text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    since timestamptz := first_day::timestamp AT TIME ZONE 'UTC';
    before timestamptz := (last_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    PERFORM pricing.require_moved(wanted_type, wanted_symbol, first_day, last_day, moved);
    IF as_of IS NULL AND coalesce(cardinality(moved), 0) = 0 THEN
        RETURN QUERY
        SELECT h.observed_at, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale, h.currency,
               h.volume, h.adjustment, h.provider, h.call_id, h.fetched_at, h.quality
        FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
          AND h.observed_at >= since AND h.observed_at < before
        ORDER BY h.observed_at;
        RETURN;
    END IF;
    -- A value is believed from recorded_at until revised_at, so each moment finds one value of a time, or none.
    RETURN QUERY
    SELECT h.observed_at, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale, h.currency,
           h.volume, h.adjustment, h.provider, h.call_id, h.fetched_at, h.quality
    FROM pricing.price_history h
    WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol AND h.observed_at >= since AND h.observed_at < before
      AND (as_of IS NULL OR h.fetched_at <= as_of)
    UNION ALL
    SELECT r.observed_at, r.amount, r.open_amount, r.high_amount, r.low_amount, r.scale, r.currency,
           r.volume, r.adjustment, r.provider, r.call_id, r.recorded_at, r.quality
    FROM pricing.price_revisions r
    WHERE r.data_type = wanted_type AND r.symbol = wanted_symbol AND r.observed_at >= since AND r.observed_at < before
      AND r.recorded_at <= as_of AND r.revised_at > as_of
    UNION ALL
    SELECT a.observed_at, a.amount, a.open_amount, a.high_amount, a.low_amount, a.scale, a.currency,
           a.volume, a.adjustment, a.provider, a.call_id, a.recorded_at, a.quality
    FROM pricing.moved_as_of(wanted_type, wanted_symbol, since, before, as_of, moved) a
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION pricing.prices_as_of(text, text, date, date, timestamptz, pricing.price_revisions[]) IS
    'A pair''s values between two UTC days, both included, oldest first, with their lineage, as believed at a time '
    '(NULL = now); those of files are in moved.';


CREATE OR REPLACE FUNCTION pricing.actions_as_of(wanted_class text, wanted_symbol text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (ex_on date, kind text, new_shares numeric, old_shares numeric, amount bigint, scale smallint,
               currency text, provider text, call_id bigint, recorded_at timestamptz, entered_by text, reason text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT a.ex_on, a.kind, a.new_shares, a.old_shares, a.amount, a.scale, a.currency, a.provider, a.call_id,
           a.recorded_at, a.entered_by, a.reason
    FROM pricing.corporate_actions a
    WHERE (a.asset_class, a.symbol) = (wanted_class, wanted_symbol) AND (as_of IS NULL OR a.recorded_at <= as_of)
    UNION ALL
    SELECT a.ex_on, a.kind, a.new_shares, a.old_shares, a.amount, a.scale, a.currency, a.provider, a.call_id,
           a.recorded_at, a.entered_by, a.reason
    FROM pricing.revisions_as_of('corporate_actions', ARRAY[wanted_class, wanted_symbol],
                                 ARRAY[wanted_class, wanted_symbol], as_of) r
    CROSS JOIN jsonb_populate_record(NULL::pricing.corporate_actions, r) a
    ORDER BY 1 DESC, 3 NULLS LAST, 2 DESC, 7, 5
$$;
COMMENT ON FUNCTION pricing.actions_as_of(text, text, timestamptz) IS
    'An instrument''s corporate actions, newest first, a day''s split or spin-off before its payments, as believed at '
    'a time (NULL = now).';


CREATE OR REPLACE FUNCTION pricing.close_before(
    wanted_type text, wanted_symbol text, day date, as_of timestamptz, moved pricing.price_revisions[],
    OUT amount bigint, OUT scale smallint, OUT currency text, OUT basis_day date)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    before timestamptz := day::timestamp AT TIME ZONE 'UTC';
    since timestamptz := before - interval '14 days';
BEGIN
    PERFORM pricing.require_moved(wanted_type, wanted_symbol, day - 14, day - 1, moved);
    SELECT b.amount, b.scale, b.currency, pricing.basis_day(b.adjustment, b.observed_at, b.recorded_at)
    INTO amount, scale, currency, basis_day FROM (
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
         FROM pricing.moved_as_of(wanted_type, wanted_symbol, since, before, as_of, moved) a
         ORDER BY a.observed_at DESC LIMIT 1)) b
    ORDER BY b.observed_at DESC LIMIT 1;
END $$;
COMMENT ON FUNCTION pricing.close_before(text, text, date, timestamptz, pricing.price_revisions[]) IS
    'A pair''s last value in the two weeks before a day, as believed at a time (NULL = now), and the day of its '
    'shares; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.basis_day(adjustment text, observed_at timestamptz, recorded_at timestamptz)
RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE adjustment WHEN 'raw' THEN (observed_at AT TIME ZONE 'UTC')::date
                ELSE greatest((observed_at AT TIME ZONE 'UTC')::date, (recorded_at AT TIME ZONE 'UTC')::date) END
$$;
COMMENT ON FUNCTION pricing.basis_day(text, timestamptz, timestamptz) IS
    'The day whose shares a stored value refers to: its own if raw, or the day it was recorded if divided by the '
    'splits until then.';


CREATE OR REPLACE FUNCTION pricing.left_by_payments(
    wanted_type text, wanted_class text, wanted_symbol text, day date, as_of timestamptz,
    moved pricing.price_revisions[],
    OUT kept numeric, OUT lacks jsonb)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    -- The price just before the payments shows what they took off; a price from another year would not.
    last_close record := pricing.close_before(wanted_type, wanted_symbol, day, as_of, moved);
    last_price numeric := last_close.amount * ('1e-' || last_close.scale)::numeric;
    its_currency text := coalesce(last_close.currency, (
        SELECT i.currency FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (wanted_class, wanted_symbol)));
    cash numeric;
    ratio record;
BEGIN
    kept := 1;
    WITH paid AS (
        SELECT a.kind, a.currency, a.amount * ('1e-' || a.scale)::numeric AS cash,
               CASE WHEN (a.currency = its_currency) IS NOT FALSE
                         AND (a.currency IS NULL OR its_currency IS NOT NULL) THEN 1
                    ELSE pricing.rate_of_day(a.currency, its_currency, day, as_of, moved) END AS rate
        FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a WHERE a.ex_on = day AND a.amount IS NOT NULL)
    SELECT sum(p.cash * p.rate),
           jsonb_agg(jsonb_build_object(
               'ex_on', day, 'kind', p.kind, 'amount', trim_scale(p.cash)::text, 'currency', p.currency,
               'into', its_currency,
               'reason', CASE WHEN last_price IS NULL THEN 'no_close' ELSE 'no_rate' END)
                   ORDER BY p.kind DESC, p.currency, p.cash)
               FILTER (WHERE last_price IS NULL OR p.rate IS NULL)
    INTO cash, lacks FROM paid p;
    IF lacks IS NOT NULL THEN
        RETURN; -- counting only some payments would be as wrong as counting none
    END IF;
    -- Payments are for one share of their day. The close may be for shares of another day: the splits between them
    -- count.
    FOR ratio IN
        SELECT a.ex_on, a.new_shares, a.old_shares FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a
        WHERE a.new_shares IS NOT NULL
          AND a.ex_on > least(day, last_close.basis_day) AND a.ex_on <= greatest(day, last_close.basis_day)
    LOOP
        cash := CASE WHEN ratio.ex_on <= day THEN cash * ratio.new_shares / ratio.old_shares
                     ELSE cash * ratio.old_shares / ratio.new_shares END;
    END LOOP;
    IF cash >= last_price THEN
        lacks := jsonb_build_array(jsonb_build_object('ex_on', day, 'reason', 'not_below_close'));
    ELSE
        kept := 1 - cash / last_price;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.left_by_payments(text, text, text, date, timestamptz, pricing.price_revisions[]) IS
    'The part of a price left after a day''s dividends and capital gains, 1 if unknown, and why in lacks: no_close, '
    'no_rate or not_below_close.';


CREATE OR REPLACE FUNCTION pricing.in_words(lack jsonb) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE lack ->> 'reason'
        WHEN 'not_below_close' THEN pg_catalog.format('payments of %s that are not below the last price before '
                                                      'it', lack ->> 'ex_on')
        ELSE concat_ws(' ', replace((lack ->> 'kind'), '_', ' '), 'of', lack ->> 'amount', lack ->> 'currency', 'on',
                       lack ->> 'ex_on')
             || CASE lack ->> 'reason'
                WHEN 'no_close' THEN ': no price of the two weeks before it is stored'
                ELSE pg_catalog.format(': no rate %s/%s of that day is stored', lack ->> 'currency',
                                       coalesce(lack ->> 'into', '(the prices name no currency)')) END END
$$;
COMMENT ON FUNCTION pricing.in_words(jsonb) IS 'A payment that a total return cannot count, and why, for people.';


CREATE OR REPLACE FUNCTION pricing.require_payments(
    wanted_symbol text, first_day date, last_day date, lacks jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    inside jsonb := (SELECT jsonb_agg(l ORDER BY l ->> 'ex_on') FROM jsonb_array_elements(lacks) l
                     WHERE (l ->> 'ex_on')::date > first_day
                       AND (l ->> 'ex_on')::date <= last_day
                       AND l ->> 'reason' <> 'no_close');
    spelled text := (SELECT string_agg(pricing.in_words(l), '; ')
                     FROM (SELECT l FROM jsonb_array_elements(inside) l LIMIT 3) x (l))
        || CASE WHEN jsonb_array_length(inside) > 3
                THEN pg_catalog.format('; and %s more', jsonb_array_length(inside) - 3)
                ELSE '' END;
    first_pair record;
BEGIN
    IF inside IS NULL THEN
        RETURN;
    END IF;
    SELECT l ->> 'currency' || '/' || (l ->> 'into') AS symbol, min(l ->> 'ex_on') AS first_day,
           max(l ->> 'ex_on') AS last_day,
           (SELECT min(r.data_type) FROM pricing.data_type_registry r
            WHERE r.asset_class = 'fx' AND r.fetcher = 'daily_bars' AND r.is_active) AS data_type
    INTO first_pair
    FROM jsonb_array_elements(inside) l
    WHERE l ->> 'reason' = 'no_rate' AND l ->> 'into' IS NOT NULL
    GROUP BY 1
    ORDER BY 1 LIMIT 1;
    RAISE EXCEPTION 'its total return from % to % cannot count: %', first_day, last_day, spelled
        USING DETAIL = inside::text, ERRCODE = 'data_exception',
              HINT = CASE
                  WHEN first_pair.symbol IS NULL
                  THEN 'Compare it with another source, and correct it: pricing-pipeline action show '
                       || wanted_symbol || ' ' || (inside -> 0 ->> 'ex_on')
                  WHEN first_pair.data_type IS NULL
                  THEN 'Rates are those of a data type of the asset class fx with daily bars; none is active '
                       '(pricing-pipeline type add). Or read it adjusted for splits'
                  ELSE pg_catalog.format('This fetches rates: pricing-pipeline backfill start %s --type %s --from %s '
                                         '--to %s. Or read it adjusted for splits',
                                         first_pair.symbol, first_pair.data_type, first_pair.first_day,
                                         first_pair.last_day) END;
END $$;
COMMENT ON FUNCTION pricing.require_payments(text, date, date, jsonb) IS
    'Refuses a total return between two days if payments between them cannot be counted, and lists these.';


CREATE OR REPLACE FUNCTION pricing.adjustment_steps(
    wanted_type text, wanted_symbol text, with_payments boolean, first_day date, last_day date, as_of timestamptz,
    moved pricing.price_revisions[])
RETURNS TABLE (from_day date, until_day date, new_shares numeric, old_shares numeric, more_volume numeric,
               less_volume numeric, kept numeric, not_counted text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_variable
DECLARE
    today date := (coalesce(as_of, pricing.clock()) AT TIME ZONE 'UTC')::date;
    wanted_class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    happened record;
    paid record;
    lacks jsonb := '[]';
BEGIN
    until_day := 'infinity';
    new_shares := 1;
    old_shares := 1;
    more_volume := 1;
    less_volume := 1;
    kept := 1;
    -- Actions on or before the first day changed none of these values.
    FOR happened IN
        SELECT a.ex_on, a.kind, a.new_shares, a.old_shares
        FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a
        WHERE a.ex_on > first_day AND a.ex_on <= today AND a.new_shares IS NOT NULL
        UNION ALL
        SELECT DISTINCT a.ex_on, 'payments', NULL::numeric, NULL::numeric
        FROM pricing.actions_as_of(wanted_class, wanted_symbol, as_of) a
        WHERE a.ex_on > first_day AND a.ex_on <= today AND a.amount IS NOT NULL AND with_payments
        ORDER BY 1 DESC
    LOOP
        IF happened.ex_on < until_day THEN
            from_day := happened.ex_on;
            RETURN NEXT;
            until_day := happened.ex_on;
        END IF;
        IF happened.kind = 'payments' THEN
            paid := pricing.left_by_payments(wanted_type, wanted_class, wanted_symbol, happened.ex_on, as_of, moved);
            kept := round(kept * paid.kept, 20);
            lacks := lacks || coalesce(paid.lacks, '[]');
            not_counted := 'not counted: ' || (SELECT string_agg(pricing.in_words(l), '; ' ORDER BY n)
                                               FROM jsonb_array_elements(lacks) WITH ORDINALITY x (l, n) WHERE n <= 3)
                || CASE WHEN jsonb_array_length(lacks) > 3
                        THEN pg_catalog.format('; and %s more', jsonb_array_length(lacks) - 3)
                        ELSE '' END;
        ELSE
            new_shares := new_shares * happened.new_shares;
            old_shares := old_shares * happened.old_shares;
            IF happened.kind = 'split' THEN
                more_volume := more_volume * happened.new_shares;
                less_volume := less_volume * happened.old_shares;
            END IF;
        END IF;
    END LOOP;
    PERFORM pricing.require_payments(wanted_symbol, first_day, last_day, lacks);
    from_day := '-infinity';
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION pricing.adjustment_steps(text, text, boolean, date, date, timestamptz, pricing.price_revisions[]) IS
    'What divides and multiplies prices and volumes of each span of days because of later splits and payments, and '
    'which payments could not be counted.';


CREATE OR REPLACE FUNCTION pricing.adjusted_prices(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL,
    adjust text DEFAULT NULL, moved pricing.price_revisions[] DEFAULT NULL, read_until date DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, open numeric, high numeric, low numeric, close numeric, volume numeric,
               currency text, adjustment text, provider text, call_id bigint, recorded_at timestamptz, quality text)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    IF adjust NOT IN ('raw', 'splits', 'total') THEN
        RAISE EXCEPTION 'unknown adjustment %', left(adjust, 60)
            USING HINT = 'raw = as traded, splits = divided by later splits, total = also without later payments; NULL '
                         '= as stored.',
                  ERRCODE = 'invalid_parameter_value';
    ELSIF adjust IS NULL THEN
        RETURN QUERY
        -- Multiplied by a power of ten, not divided: a quotient is rounded to 16 digits.
        SELECT h.observed_at, h.open_amount * one.unit, h.high_amount * one.unit, h.low_amount * one.unit,
               h.amount * one.unit, h.volume, h.currency, h.adjustment, h.provider, h.call_id, h.recorded_at, h.quality
        FROM pricing.prices_as_of(wanted_type, wanted_symbol, first_day, last_day, as_of, moved) h
        CROSS JOIN LATERAL (SELECT ('1e-' || h.scale)::numeric AS unit) one
        ORDER BY h.observed_at;
        RETURN;
    END IF;
    RETURN QUERY
    WITH steps AS MATERIALIZED (
        SELECT s.*
        FROM pricing.adjustment_steps(wanted_type, wanted_symbol, adjust = 'total', first_day,
                                      coalesce(read_until, last_day),
                                      as_of, moved) s),
    stored AS (
        SELECT h.*, ('1e-' || h.scale)::numeric AS unit, (h.observed_at AT TIME ZONE 'UTC')::date AS day,
               pricing.basis_day(h.adjustment, h.observed_at, h.recorded_at) AS basis_day
        FROM pricing.prices_as_of(wanted_type, wanted_symbol, first_day, last_day, as_of, moved) h),
    factored AS (
        SELECT h.*,
               basis.old_shares * CASE adjust WHEN 'raw' THEN own.new_shares ELSE 1 END AS shares_up,
               basis.new_shares * CASE adjust WHEN 'raw' THEN own.old_shares ELSE 1 END AS shares_down,
               basis.less_volume * CASE adjust WHEN 'raw' THEN own.more_volume ELSE 1 END AS volume_down,
               basis.more_volume * CASE adjust WHEN 'raw' THEN own.less_volume ELSE 1 END AS volume_up,
               own.kept, own.not_counted
        FROM stored h
        JOIN steps own ON h.day >= own.from_day AND h.day < own.until_day
        JOIN steps basis ON h.basis_day >= basis.from_day AND h.basis_day < basis.until_day)
    SELECT f.observed_at,
           CASE WHEN f.is_as_stored THEN f.open_amount * f.unit
               ELSE trim_scale(round(f.open_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.high_amount * f.unit
               ELSE trim_scale(round(f.high_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.low_amount * f.unit
               ELSE trim_scale(round(f.low_amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.is_as_stored THEN f.amount * f.unit
               ELSE trim_scale(round(f.amount * f.unit * f.up / f.down, 10)) END,
           CASE WHEN f.volume_up = f.volume_down THEN f.volume ELSE round(f.volume * f.volume_up / f.volume_down) END,
           f.currency, adjust, f.provider, f.call_id, f.recorded_at,
           CASE WHEN f.not_counted IS NULL THEN f.quality ELSE concat_ws('; ', f.quality, f.not_counted) END
    FROM (SELECT x.*, x.shares_up * x.kept AS up, x.shares_down AS down,
          x.shares_up * x.kept = x.shares_down AS is_as_stored
          FROM factored x) f
    ORDER BY f.observed_at;
END $$;
COMMENT ON FUNCTION pricing.adjusted_prices(text, text, date, date, timestamptz, text, pricing.price_revisions[],
                                            date) IS
    'A pair''s values between two UTC days, oldest first, as believed at a time (NULL = now): raw, adjusted for '
    'splits or total return (rounded to 10 decimals), or as stored (NULL).';
