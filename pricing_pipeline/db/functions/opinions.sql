-- Asking another provider about a held value: one call, within the same limits, quota and breaker as every other.

CREATE OR REPLACE FUNCTION pricing.claim_opinion(
    wanted bigint, worker_name text, keys text[], OUT refusal text, OUT provider text, OUT key_name text, OUT call_id bigint,
    OUT data_type text, OUT symbol text, OUT fetcher text, OUT day date, OUT claimed_at timestamptz)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz;
    held pricing.quarantined_values;
    kind pricing.data_type_registry;
    collector pricing.data_collectors;
    last_call timestamptz;
    units_ integer;
BEGIN
    SELECT * INTO held FROM pricing.quarantined_values q WHERE q.value_id = wanted;
    SELECT * INTO kind FROM pricing.data_type_registry r WHERE r.data_type = held.data_type AND r.is_active;
    SELECT r.provider, c.units_per_call + c.units_per_symbol INTO provider, units_
    FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider)
    JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = kind.fetcher
    WHERE r.data_type = held.data_type AND (r.symbol = held.symbol OR r.symbol IS NULL) AND r.is_active AND p.is_active
      AND r.provider <> held.provider
    ORDER BY r.symbol IS NULL, r.rank LIMIT 1;
    IF provider IS NULL THEN
        refusal := pg_catalog.format('no other provider than %s is routed to %s; add one to pricing.provider_routing with a higher rank',
                                     held.provider, held.data_type);
        RETURN;
    ELSIF held.observed_at IS NULL AND kind.fetcher <> 'quote' THEN
        refusal := 'the value names no day that another provider could be asked about';
        RETURN;
    END IF;
    -- The lock makes looking at the allowance and taking from it one step, as for claims.
    SELECT s.last_call_at INTO last_call FROM pricing.provider_state s WHERE s.provider = claim_opinion.provider FOR UPDATE;
    now_ := pricing.clock();
    SELECT * INTO collector FROM pricing.data_collectors p WHERE p.provider = claim_opinion.provider;
    -- No more urgent than a backfill: it stops at the same part of the quota.
    SELECT w.sentence INTO refusal FROM pricing.why_not_called(provider, -2, kind.estimated_data_size_bytes) w;
    IF refusal IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT r.key_name INTO key_name FROM pricing.key_room(provider, now_) r
    WHERE r.is_usable AND r.units_left >= units_ AND (keys IS NULL OR r.key_name = ANY (keys))
      AND NOT coalesce(last_call > now_ - make_interval(
            secs => collector.request_delay_ms / 1000.0 * CASE WHEN r.is_pressed THEN 2 ELSE 1 END), false)
    ORDER BY r.units_left DESC, r.key_name LIMIT 1;
    IF key_name IS NULL THEN
        refusal := pg_catalog.format('%s may not be asked at this moment: its limits leave no room. Try again in a minute', provider);
        RETURN;
    END IF;
    data_type := held.data_type;
    symbol := held.symbol;
    fetcher := kind.fetcher;
    day := CASE WHEN kind.fetcher <> 'quote' THEN (held.observed_at AT TIME ZONE 'UTC')::date END;
    claimed_at := now_;
    INSERT INTO pricing.collector_call_log AS c
        (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, worker, started_at)
    VALUES (claim_opinion.provider, claim_opinion.key_name, held.data_type, ARRAY[held.symbol], coalesce(day, '-infinity'), coalesce(day, 'infinity'),
            units_, kind.estimated_data_size_bytes, worker_name, now_)
    RETURNING c.call_id INTO claim_opinion.call_id;
    UPDATE pricing.provider_state s SET claims = s.claims + 1, last_call_at = now_ WHERE s.provider = claim_opinion.provider;
    INSERT INTO pricing.second_opinions AS o (value_id, provider, call_id, asked_at)
    VALUES (wanted, claim_opinion.provider, claim_opinion.call_id, now_)
    ON CONFLICT ON CONSTRAINT second_opinions_pkey DO UPDATE
        SET call_id = excluded.call_id, asked_at = excluded.asked_at, answered_at = NULL, observed_at = NULL, value = NULL, currency = NULL, failure = NULL;
END $$;
COMMENT ON FUNCTION pricing.claim_opinion(bigint, text, text[]) IS
    'Takes one call of the next provider that is routed to a held value''s pair, within its limits and what its quota leaves for backfills, and logs it as open: commit before making it. Or says in a sentence why nobody may be asked now.';


CREATE OR REPLACE FUNCTION pricing.note_opinion(
    wanted bigint, from_call bigint, at timestamptz, said numeric, said_currency text, why text) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.second_opinions o
    SET answered_at = pricing.clock(), observed_at = at, value = said, currency = said_currency, failure = left(why, 500)
    WHERE o.value_id = wanted AND o.call_id = from_call
$$;
COMMENT ON FUNCTION pricing.note_opinion(bigint, bigint, timestamptz, numeric, text, text) IS
    'Keeps what another provider said about a held value, or why it said nothing; a call that was overtaken by a later one says nothing.';
