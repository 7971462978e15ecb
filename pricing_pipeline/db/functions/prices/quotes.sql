-- The way of nearly every answer about latest quotes: stored without a question. All other answers, and other values,
-- take the long way, on which plausibility.py judges them and prices.sql stores them.

CREATE OR REPLACE FUNCTION pricing.settle_quotes(
    ids bigint[], token uuid, http_status integer, wire_bytes bigint, said_left integer,
    wanted_type text, from_provider text, from_call bigint, basis text,
    symbols text[], times timestamptz[], closes numeric[], currencies text[], texts text[])
RETURNS TABLE (added bigint)
-- Planned once, with all that it calls: a session would plan the first five of each of a dozen statements anew.
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET lock_timeout = '500ms' AS $$
DECLARE
    held bigint[] := pricing.hold_call(from_call, ids, token);
    now_ timestamptz := pricing.clock();
    class text := (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.data_type = wanted_type);
    alike text[] := pricing.types_alike(wanted_type);
    dailies text[] := pricing.types_of_a_day(wanted_type);
    are_bounded boolean := EXISTS (SELECT FROM pricing.plausibility_bounds b WHERE b.data_type = wanted_type);
    seen record;
BEGIN
    IF cardinality(held) < cardinality(ids) THEN
        RETURN;
    END IF;
    BEGIN
        WITH given AS MATERIALIZED (
            SELECT k.*, CASE WHEN k.units < 1e18 THEN k.units::bigint END AS amount,
                   -- Never true of a value that plausibility.py would hold; where it is not true, that one is asked. The
                   -- stretch that is believed at once is a whisker shorter here, for doubles differ in their last digits.
                   coalesce(
                       k.close > 0 AND k.units < 1e18
                       AND coalesce(k.currency = k.known_currency, true)
                       AND CASE WHEN k.old_amount IS NULL
                           THEN NOT EXISTS (
                               -- The first price of a pair is compared with what another data type knows.
                               SELECT FROM pricing.data_type_registry t
                               JOIN pricing.latest_prices o ON (o.data_type, o.symbol) = (t.data_type, k.symbol)
                               WHERE t.asset_class = class AND t.data_type <> wanted_type)
                           ELSE k.old_amount > 0 AND k.old_adjustment = basis
                               AND k.close::float8 * 10::float8 ^ k.old_scale / k.old_amount BETWEEN 0.771 AND 1.299
                               AND (k.observed_at > k.old_at
                                    OR (k.observed_at = k.old_at AND k.currency IS NOT DISTINCT FROM k.old_currency
                                        AND k.close = k.old_amount * ('1e-' || k.old_scale)::numeric)) END
                       AND (NOT are_bounded OR NOT EXISTS (
                           SELECT FROM pricing.plausibility_bounds b
                           WHERE b.data_type = wanted_type AND (b.symbol = k.symbol OR b.symbol IS NULL)
                             AND (k.close < b.lowest OR k.close > b.highest)))
                       AND NOT EXISTS (
                           SELECT FROM pricing.quarantined_values q
                           WHERE q.data_type = wanted_type AND q.symbol = k.symbol AND q.observed_at = k.observed_at
                             AND q.provider = from_provider AND q.status = 'rejected' AND (q.bar ->> 'close')::numeric = k.close)
                       -- A quote that may contradict the bar of its day is looked at on the long way.
                       AND (dailies IS NULL OR NOT EXISTS (
                           SELECT FROM pricing.latest_prices o
                           WHERE o.data_type = ANY (dailies) AND o.symbol = k.symbol AND o.amount > 0
                             AND (o.observed_at AT TIME ZONE 'UTC')::date = (k.observed_at AT TIME ZONE 'UTC')::date
                             AND k.close::float8 * 10::float8 ^ o.scale / o.amount NOT BETWEEN 0.34 AND 2.99))
                       -- What another provider says of the same moment is compared on the long way.
                       AND (alike IS NULL OR NOT EXISTS (
                           SELECT FROM pricing.latest_prices o
                           WHERE o.data_type = ANY (alike) AND o.symbol = k.symbol AND o.provider <> from_provider
                             AND o.observed_at BETWEEN k.observed_at - interval '15 minutes' AND k.observed_at + interval '15 minutes')),
                       false) AS is_calm,
                   k.old_at IS NULL OR k.observed_at > k.old_at AS is_new
            FROM (SELECT v.symbol, v.observed_at, v.close, v.currency, v.source_text, i.is_unverified,
                         greatest(coalesce(i.scale, 2), min_scale(v.close))::smallint AS scale,
                         v.close * ('1e' || greatest(coalesce(i.scale, 2), min_scale(v.close)))::numeric AS units,
                         coalesce(i.currency, l.currency) AS known_currency, l.amount AS old_amount, l.scale AS old_scale,
                         l.observed_at AS old_at, l.adjustment AS old_adjustment, l.currency AS old_currency
                  FROM unnest(symbols, times, closes, currencies, texts) AS v (symbol, observed_at, close, currency, source_text)
                  -- OFFSET 0 keeps these looks into an index for each symbol: as a join, all prices of the type were read.
                  LEFT JOIN LATERAL (
                      SELECT x.scale, x.currency,
                             x.verified_at IS NULL OR (x.currency IS NULL AND v.currency IS NOT NULL) AS is_unverified
                      FROM pricing.instruments x WHERE x.asset_class = class AND x.symbol = v.symbol OFFSET 0) i ON true
                  LEFT JOIN LATERAL (
                      SELECT x.amount, x.scale, x.observed_at, x.adjustment, x.currency FROM pricing.latest_prices x
                      WHERE x.data_type = wanted_type AND x.symbol = v.symbol OFFSET 0) l ON true) k),
        verdict AS MATERIALIZED (SELECT bool_and(g.is_calm) AS are_calm FROM given g),
        written AS (
            INSERT INTO pricing.price_history
                (data_type, symbol, observed_at, amount, scale, currency, provider, call_id, fetched_at, adjustment, source_text)
            SELECT wanted_type, g.symbol, g.observed_at, g.amount, g.scale, g.currency, from_provider, from_call, now_, basis,
                   pricing.kept_text(g.source_text, g.amount, g.scale)
            FROM given g WHERE g.is_new AND (SELECT v.are_calm FROM verdict v) ORDER BY g.symbol),
        latest AS (
            INSERT INTO pricing.latest_prices AS l
                (data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider, call_id, source_text,
                 adjustment, changed_at)
            SELECT wanted_type, g.symbol, g.amount, g.scale, g.currency, g.observed_at, now_, from_provider, from_call,
                   g.source_text, basis, g.observed_at
            FROM given g WHERE (SELECT v.are_calm FROM verdict v) ORDER BY g.symbol
            ON CONFLICT (data_type, symbol) DO UPDATE
                SET amount = excluded.amount, scale = excluded.scale, currency = excluded.currency,
                    observed_at = excluded.observed_at, fetched_at = excluded.fetched_at, provider = excluded.provider,
                    call_id = excluded.call_id, source_text = excluded.source_text, adjustment = excluded.adjustment,
                    changed_at = CASE WHEN pricing.same_amount(l.amount, l.scale, excluded.amount, excluded.scale)
                                      THEN coalesce(l.changed_at, l.observed_at) ELSE excluded.changed_at END
                WHERE l.observed_at <= excluded.observed_at
            RETURNING 1)
        SELECT (SELECT v.are_calm FROM verdict v) AS are_calm, (SELECT count(*) FROM latest) AS stored,
               count(*) FILTER (WHERE g.is_new) AS added, bool_or(g.is_unverified) AS are_unverified
        INTO seen FROM given g;
        IF NOT seen.are_calm THEN
            RETURN;
        END IF;
        IF seen.stored < cardinality(symbols) THEN
            RAISE EXCEPTION 'a newer price than one of call % was stored in this moment', from_call
                USING HINT = 'Judge them again.', ERRCODE = 'unique_violation';
        END IF;
    EXCEPTION WHEN unique_violation THEN
        -- Somebody else has stored, or stores, a value of the same moment: what that means is judged on the long way.
        RETURN;
    END;
    IF seen.are_unverified THEN
        PERFORM pricing.verify_instruments(wanted_type, symbols, currencies);
    END IF;
    PERFORM pricing.finish_held(held);
    PERFORM pricing.settle_call(from_call, 'ok', http_status, wire_bytes);
    PERFORM pricing.judge_call(from_call, said_left);
    added := seen.added;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION pricing.settle_quotes(bigint[], uuid, integer, bigint, integer, text, text, bigint, text, text[], timestamptz[], numeric[], text[], text[]) IS
    'All that becomes of a call for quotes, one of each symbol, when every one is newer than the last, near to it, within its bounds and in its currency: stored, its tasks finished, the call settled. Returns how many were added to history; no row, with nothing changed, when any of that is not so, or the claim has lost any task.';
