-- Second opinions: another provider is asked about quarantined values, within all limits, quota and breaker. Lock
-- order: quarantined values, then provider_state, as where answers are settled.

CREATE OR REPLACE FUNCTION pricing.second_provider(wanted_type text, wanted_symbol text, besides text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN (
        SELECT r.provider FROM pricing.provider_routing r
        JOIN pricing.data_type_registry k ON k.data_type = r.data_type AND k.is_active
        JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
        JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
        WHERE r.data_type = wanted_type AND (r.symbol = wanted_symbol OR r.symbol IS NULL)
          AND r.is_active AND r.provider <> besides
          AND NOT EXISTS (SELECT FROM pricing.route_refusals f
                          WHERE (f.data_type, f.symbol, f.provider) = (wanted_type, wanted_symbol, r.provider)
                            AND f.refused_until > now_)
        ORDER BY r.symbol IS NULL, r.rank LIMIT 1);
END $$;
COMMENT ON FUNCTION pricing.second_provider(text, text, text) IS
    'The next provider of a pair''s routes that serves a value, other than its sender; NULL = none.';


CREATE OR REPLACE FUNCTION pricing.opinions_due() RETURNS TABLE (provider text)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.quarantined_values q WHERE q.ask_at <= now_ AND q.status = 'quarantined') THEN
        RETURN; -- as nearly always
    END IF;
    UPDATE pricing.quarantined_values q SET ask_at = NULL
    FROM (SELECT x.value_id FROM pricing.quarantined_values x
          WHERE x.ask_at <= now_ AND x.status = 'quarantined'
            AND pricing.second_provider(x.data_type, x.symbol, x.provider) IS NULL
          ORDER BY x.value_id LIMIT 1000 FOR UPDATE SKIP LOCKED) none
    WHERE q.value_id = none.value_id;
    RETURN QUERY
    SELECT DISTINCT pricing.second_provider(d.data_type, d.symbol, d.provider) AS asked
    FROM (SELECT q.data_type, q.symbol, q.provider FROM pricing.quarantined_values q
          WHERE q.ask_at <= now_ AND q.status = 'quarantined'
          ORDER BY q.ask_at LIMIT 200) d
    ORDER BY asked;
END $$;
COMMENT ON FUNCTION pricing.opinions_due() IS 'Providers to be asked about quarantined values now.';


CREATE OR REPLACE FUNCTION pricing.next_to_ask(
    wanted_provider text, only_value bigint, OUT chosen pricing.quarantined_values, OUT refusal text)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF only_value IS NULL THEN
        SELECT * INTO chosen FROM pricing.quarantined_values q
        WHERE q.ask_at <= now_ AND q.status = 'quarantined'
          AND pricing.second_provider(q.data_type, q.symbol, q.provider) = wanted_provider
          AND NOT pricing.is_in_work(q.symbol)
        ORDER BY q.ask_at, q.value_id LIMIT 1 FOR UPDATE SKIP LOCKED;
        -- Waiting tasks go first, for ten minutes: a storm of bad values must not cost viewers their prices.
        IF chosen.ask_at > now_ - interval '10 minutes' AND EXISTS (
               SELECT FROM pricing.api_call_queue_live t
               WHERE t.provider = wanted_provider AND t.run_after IS NULL AND t.status = 'pending') THEN
            refusal := 'other work of the provider goes first';
            RETURN;
        END IF;
    ELSE
        SELECT * INTO chosen FROM pricing.quarantined_values q WHERE q.value_id = only_value FOR UPDATE;
    END IF;
    IF chosen.value_id IS NULL THEN
        refusal := 'no quarantined value waits for an opinion';
    ELSIF chosen.observed_at IS NULL
          AND (SELECT r.fetcher FROM pricing.data_type_registry r
               WHERE r.data_type = chosen.data_type) <> 'quote' THEN
        refusal := 'the value names no day that another provider could be asked about';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.next_to_ask(text, bigint) IS
    'Locks the next quarantined value to ask a provider about, or the named one, or says why not.';


CREATE OR REPLACE FUNCTION pricing.key_to_ask(
    wanted_provider text, keys text[], needed integer, last_call timestamptz, at timestamptz)
RETURNS TABLE (key_name text, units_left bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT r.key_name, r.units_left
    FROM pricing.key_allowances(wanted_provider, at) r
    JOIN pricing.data_collectors p ON p.provider = wanted_provider
    JOIN pricing.provider_state s ON s.provider = wanted_provider
    WHERE r.is_usable AND r.units_left >= needed AND (keys IS NULL OR r.key_name = ANY (keys))
      AND NOT pricing.is_kept_for_page(s, r.key_name, at)
      AND p.max_in_flight > (SELECT used.calls FROM pricing.provider_use(s, at) used)
      AND NOT coalesce(
          last_call > at - make_interval(
              secs => p.request_delay_ms / 1000.0 * CASE WHEN r.is_nearly_used_up THEN 2 ELSE 1 END), false)
    ORDER BY r.units_left DESC, r.key_name LIMIT 1
$$;
COMMENT ON FUNCTION pricing.key_to_ask(text, text[], integer, timestamptz, timestamptz) IS
    'Of these keys of a provider (NULL = all), the one with the most units left, at least as many as needed; no row = '
    'none.';


CREATE OR REPLACE FUNCTION pricing.claim_opinions(
    wanted_provider text, worker_name text, keys text[], run text DEFAULT NULL, only_value bigint DEFAULT NULL,
    OUT refusal text, OUT key_name text, OUT call_id bigint, OUT data_type text, OUT fetcher text, OUT day date,
    OUT claimed_at timestamptz, OUT value_ids bigint[], OUT symbols text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    picked record;
    first_ pricing.quarantined_values;
    kind pricing.data_type_registry;
    able pricing.provider_capabilities;
    last_call timestamptz;
    allowed record;
    bytes_ bigint;
BEGIN
    picked := pricing.next_to_ask(wanted_provider, only_value);
    first_ := picked.chosen;
    refusal := picked.refusal;
    IF refusal IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = first_.data_type;
    SELECT * INTO able FROM pricing.provider_capabilities c
    WHERE c.provider = wanted_provider AND c.fetcher = kind.fetcher;
    day := CASE WHEN kind.fetcher <> 'quote' THEN (first_.observed_at AT TIME ZONE 'UTC')::date END;
    now_ := pricing.clock();
    -- Other values of its data type and day share the call. Quotes share it whatever their times, because the newest
    -- one is requested.
    SELECT array_agg(s.value_id ORDER BY s.value_id), array_agg(DISTINCT s.symbol) INTO value_ids, symbols
    FROM (SELECT q.value_id, q.symbol FROM pricing.quarantined_values q
          WHERE q.value_id = first_.value_id
             OR (q.data_type = first_.data_type AND q.ask_at <= now_ AND q.status = 'quarantined'
                 AND (day IS NULL OR q.observed_at = first_.observed_at)
                 AND pricing.second_provider(q.data_type, q.symbol, q.provider) = wanted_provider
                 AND NOT pricing.is_in_work(q.symbol))
          ORDER BY q.value_id = first_.value_id DESC, q.ask_at, q.value_id
          -- A list of all symbols is too much for an opinion.
          LIMIT CASE WHEN only_value IS NOT NULL OR (day IS NULL AND able.batch_from > 1) THEN 1
                     ELSE pricing.batch_of(able, coalesce(day, '-infinity'), coalesce(day, 'infinity')) END
          FOR UPDATE SKIP LOCKED) s;
    -- The lock makes looking at the allowance and taking from it one step, as for claims.
    SELECT s.last_call_at INTO last_call FROM pricing.provider_state s WHERE s.provider = wanted_provider FOR UPDATE;
    now_ := pricing.clock();
    bytes_ := kind.estimated_data_size_bytes * cardinality(symbols);
    -- No more urgent than a backfill: it stops at the same part of the quota.
    SELECT w.sentence INTO refusal FROM pricing.why_not_called(wanted_provider, -2, bytes_) w;
    IF refusal IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pricing.await_claims();
    IF EXISTS (SELECT FROM unnest(symbols) AS s (symbol) WHERE pricing.is_in_work(s.symbol)) THEN
        refusal := pg_catalog.format('%s is being requested by another call. Try again in some seconds', first_.symbol);
        RETURN;
    END IF;
    SELECT * INTO allowed
    FROM pricing.key_to_ask(
        wanted_provider, keys, able.units_per_call + able.units_per_symbol, last_call, now_);
    IF allowed.key_name IS NULL THEN
        refusal := pg_catalog.format(
            '%s cannot be called right now: its limits leave no room, a call that has begun needs it, or all '
            'calls that it may have are in flight. Try again in a minute', wanted_provider);
        RETURN;
    END IF;
    -- No more symbols than the units suffice for.
    IF able.units_per_symbol * cardinality(symbols) > allowed.units_left - able.units_per_call THEN
        symbols := (SELECT array_agg(u.symbol ORDER BY u.symbol)
                    FROM (SELECT x.symbol FROM unnest(symbols) AS x (symbol)
                          ORDER BY x.symbol <> first_.symbol, 1
                          LIMIT (allowed.units_left - able.units_per_call) / able.units_per_symbol) u);
        value_ids := (SELECT array_agg(q.value_id ORDER BY q.value_id) FROM pricing.quarantined_values q
                      WHERE q.value_id = ANY (value_ids) AND q.symbol = ANY (symbols));
    END IF;
    key_name := allowed.key_name;
    data_type := first_.data_type;
    fetcher := kind.fetcher;
    claimed_at := now_;
    INSERT INTO pricing.collector_call_log AS c
        (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, run_id, worker,
         started_at)
    VALUES (wanted_provider, key_name, data_type, symbols, coalesce(day, '-infinity'), coalesce(day, 'infinity'),
            able.units_per_call + able.units_per_symbol * cardinality(symbols), bytes_, run, worker_name, now_)
    RETURNING c.call_id INTO call_id;
    UPDATE pricing.provider_state s SET claims = s.claims + 1, last_call_at = now_ WHERE s.provider = wanted_provider;
    -- The worker may be lost before the answer comes: until then the question is repeated, ever more rarely.
    UPDATE pricing.quarantined_values q
    SET asked = least(q.asked + 1, 100),
        ask_at = CASE WHEN q.asked < 3 AND q.status = 'quarantined'
                      THEN now_ + interval '15 minutes' * 2 ^ q.asked END
    WHERE q.value_id = ANY (value_ids);
    INSERT INTO pricing.second_opinions AS o (value_id, provider, call_id, asked_at)
    SELECT v.value_id, wanted_provider, claim_opinions.call_id, now_
    FROM unnest(value_ids) AS v (value_id)
    ORDER BY 1
    ON CONFLICT ON CONSTRAINT second_opinions_pkey DO UPDATE
        SET call_id = excluded.call_id, asked_at = excluded.asked_at, answered_at = NULL, observed_at = NULL,
            value = NULL, currency = NULL, adjustment = NULL, ratio = NULL, failure = NULL;
END $$;
COMMENT ON FUNCTION pricing.claim_opinions(text, text, text[], text, bigint) IS
    'Logs a call of a provider about quarantined values as open, within all limits and behind its waiting tasks '
    '(commit before making it), or says why not now.';


CREATE OR REPLACE FUNCTION pricing.note_opinions(
    from_call bigint, asked_symbols text[], times timestamptz[], amounts numeric[], currencies text[],
    adjustments text[], failures text[])
RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    -- It has answered: nobody needs to ask again.
    UPDATE pricing.quarantined_values q SET ask_at = NULL
    FROM (SELECT x.value_id FROM pricing.quarantined_values x JOIN pricing.second_opinions o USING (value_id)
          WHERE o.call_id = from_call ORDER BY 1 FOR UPDATE OF x) mine
    WHERE q.value_id = mine.value_id;
    UPDATE pricing.second_opinions o
    SET answered_at = now_, observed_at = s.at, value = s.amount, currency = s.currency, adjustment = s.adjustment,
        failure = left(s.failure, 500),
        ratio = CASE WHEN (q.bar ->> 'close')::numeric > 0 AND s.amount > 0
                          AND coalesce(q.bar ->> 'currency' = s.currency, true)
                          AND q.observed_at BETWEEN s.at - interval '36 hours' AND s.at + interval '36 hours'
                          AND coalesce(split.shares, 1) < 'Infinity'
                     -- On one basis: prices as traded are a multiple of prices divided by splits.
                     THEN round((q.bar ->> 'close')::numeric / s.amount
                          * CASE WHEN q.bar ->> 'adjustment' = s.adjustment THEN 1
                                 WHEN s.adjustment = 'splits' THEN 1 / split.shares ELSE split.shares END, 12) END
    FROM unnest(asked_symbols, times, amounts, currencies, adjustments, failures)
             AS s (symbol, at, amount, currency, adjustment, failure)
    JOIN pricing.quarantined_values q ON q.symbol = s.symbol
    JOIN pricing.data_type_registry r ON r.data_type = q.data_type
    CROSS JOIN LATERAL (
        SELECT coalesce(exp(sum(ln(a.new_shares / a.old_shares))), 1) AS shares
        FROM pricing.corporate_actions a
        WHERE a.asset_class = r.asset_class AND a.symbol = q.symbol AND a.new_shares IS NOT NULL
          AND a.ex_on > (q.observed_at AT TIME ZONE 'UTC')::date AND a.ex_on <= (now_ AT TIME ZONE 'UTC')::date) split
    WHERE o.call_id = from_call AND o.value_id = q.value_id;
    -- If two providers have a bar of a day without a session, the day was a session.
    PERFORM pricing.weigh_closed_days(t.data_type, t.symbols)
    FROM (SELECT q.data_type, array_agg(DISTINCT q.symbol) AS symbols
          FROM pricing.second_opinions o JOIN pricing.quarantined_values q USING (value_id)
          WHERE o.call_id = from_call AND q.kind = 'closed_day' AND q.status = 'quarantined'
          GROUP BY 1) t;
END $$;
COMMENT ON FUNCTION pricing.note_opinions(bigint, text[], timestamptz[], numeric[], text[], text[], text[]) IS
    'Stores what another provider says about quarantined values, by symbol, or why it has none; ignores a call that a '
    'later one has overtaken.';


CREATE OR REPLACE FUNCTION pricing.agreement(ratio numeric) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN ratio BETWEEN 0.909 AND 1.1 THEN 'agrees' WHEN ratio IS NOT NULL THEN 'disagrees' END
$$;
COMMENT ON FUNCTION pricing.agreement(numeric) IS
    'Whether two providers'' values agree (within a tenth) or disagree, by their ratio; NULL = unknown.';
