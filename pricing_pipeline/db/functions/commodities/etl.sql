-- The ETL of commodities: its lists, its calls and its warnings.

CREATE OR REPLACE FUNCTION pricing.merge_terminals(
    from_call bigint, is_whole boolean, symbols text[], names text[], codes text[], systems text[], planets text[],
    moons text[], places text[], available boolean[], stamps timestamptz[],
    OUT added bigint, OUT revised bigint, OUT vanished bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    WITH said AS MATERIALIZED (
        SELECT * FROM unnest(symbols, names, codes, systems, planets, moons, places, available, stamps)
            AS u (symbol, name, code, system, planet, moon, place, is_available, modified_at)),
    changed AS MATERIALIZED (
        SELECT s.* FROM said s JOIN pricing.terminals t USING (symbol)
        WHERE (s.name, s.code, s.system, s.planet, s.moon, s.place, s.is_available, s.modified_at, NULL::timestamptz)
              IS DISTINCT FROM (t.name, t.code, t.system, t.planet, t.moon, t.place, t.is_available, t.modified_at,
                                t.vanished_at)
          -- An older list only shows that the terminal exists.
          AND (t.vanished_at IS NOT NULL OR coalesce(s.modified_at >= t.modified_at, true))),
    written AS (
        INSERT INTO pricing.terminals AS t
            (symbol, name, code, system, planet, moon, place, is_available, modified_at, recorded_at, call_id)
        SELECT s.symbol, s.name, s.code, s.system, s.planet, s.moon, s.place, s.is_available, s.modified_at, now_,
               from_call
        FROM said s
        WHERE NOT EXISTS (SELECT FROM pricing.terminals x WHERE x.symbol = s.symbol)
           OR EXISTS (SELECT FROM changed c WHERE c.symbol = s.symbol)
        ORDER BY s.symbol
        ON CONFLICT (symbol) DO UPDATE
            SET name = excluded.name, code = excluded.code, system = excluded.system, planet = excluded.planet,
                moon = excluded.moon, place = excluded.place, is_available = excluded.is_available,
                modified_at = excluded.modified_at, recorded_at = excluded.recorded_at, vanished_at = NULL,
                call_id = excluded.call_id
        RETURNING 1)
    SELECT (SELECT count(*) FROM written) - (SELECT count(*) FROM changed), (SELECT count(*) FROM changed)
    INTO added, revised;
    -- Each can be watched, held and found by its name.
    INSERT INTO pricing.instruments AS i (asset_class, symbol, name)
    SELECT 'commodity', t.symbol, t.name
    FROM pricing.terminals t
    WHERE t.symbol = ANY (symbols)
    ORDER BY t.symbol
    ON CONFLICT (asset_class, symbol) DO UPDATE SET name = excluded.name WHERE i.name IS DISTINCT FROM excluded.name;
    WITH gone AS (
        UPDATE pricing.terminals t SET vanished_at = now_, recorded_at = now_, call_id = from_call
        WHERE is_whole AND t.vanished_at IS NULL AND t.symbol <> ALL (symbols)
        RETURNING 1)
    SELECT count(*) INTO vanished FROM gone;
END $$;
COMMENT ON FUNCTION pricing.merge_terminals(
    bigint, boolean, text[], text[], text[], text[], text[], text[], text[], boolean[], timestamptz[]) IS
    'Stores the list of terminals, which become instruments, and marks terminals missing from a complete list as '
    'vanished.';


CREATE OR REPLACE FUNCTION pricing.merge_commodities(
    from_call bigint, is_whole boolean, ids bigint[], names text[], codes text[], slugs text[], kinds text[],
    available boolean[], OUT added bigint, OUT revised bigint, OUT vanished bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    WITH said AS MATERIALIZED (
        SELECT u.id, u.name, u.code, coalesce(u.slug, pricing.slug_of(u.name)) AS slug, u.kind, u.is_available
        FROM unnest(ids, names, codes, slugs, kinds, available) AS u (id, name, code, slug, kind, is_available)),
    changed AS MATERIALIZED (
        SELECT s.id FROM said s JOIN pricing.commodities c ON c.commodity_id = s.id
        WHERE (s.name, s.code, s.slug, s.kind, s.is_available, NULL::timestamptz)
              IS DISTINCT FROM (c.name, c.code, c.slug, c.kind, c.is_available, c.vanished_at)),
    written AS (
        INSERT INTO pricing.commodities AS c (commodity_id, name, code, slug, kind, is_available, recorded_at, call_id)
        SELECT s.id, s.name, s.code, s.slug, s.kind, s.is_available, now_, from_call
        FROM said s
        WHERE NOT EXISTS (SELECT FROM pricing.commodities x WHERE x.commodity_id = s.id)
           OR EXISTS (SELECT FROM changed c WHERE c.id = s.id)
        ORDER BY s.id
        ON CONFLICT (commodity_id) DO UPDATE
            SET name = excluded.name, code = excluded.code, slug = excluded.slug, kind = excluded.kind,
                is_available = excluded.is_available, recorded_at = excluded.recorded_at, vanished_at = NULL,
                call_id = excluded.call_id
        RETURNING 1)
    SELECT (SELECT count(*) FROM written) - (SELECT count(*) FROM changed), (SELECT count(*) FROM changed)
    INTO added, revised;
    WITH gone AS (
        UPDATE pricing.commodities c SET vanished_at = now_, recorded_at = now_, call_id = from_call
        WHERE is_whole AND c.vanished_at IS NULL AND c.commodity_id <> ALL (ids)
        RETURNING 1)
    SELECT count(*) INTO vanished FROM gone;
END $$;
COMMENT ON FUNCTION pricing.merge_commodities(bigint, boolean, bigint[], text[], text[], text[], text[], boolean[]) IS
    'Stores the list of commodities, and marks those missing from a complete list as vanished.';


CREATE OR REPLACE FUNCTION pricing.claim_etl_call(
    wanted_provider text, wanted_type text, keys text[], who text,
    OUT refusal text, OUT wait_seconds float8, OUT key_name text, OUT call_id bigint, OUT claimed_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    needed constant bigint := 3000000; -- the list of all prices has 2 MB
    allowed pricing.call_allowance;
    why text;
    until timestamptz;
BEGIN
    allowed := pricing.allowance_of(wanted_provider, keys, 1);
    claimed_at := coalesce(allowed.at, pricing.clock());
    IF allowed.key_name IS NOT NULL AND allowed.bytes_used + needed <= pricing.quota_for(allowed.quota_bytes, -1) THEN
        INSERT INTO pricing.collector_call_log AS c
            (provider, key_name, data_type, symbols, window_start, window_end, units, reserved_bytes, worker,
             started_at)
        -- Logged as a span of one day: the size of a list says nothing about the size of latest prices.
        VALUES (wanted_provider, allowed.key_name, wanted_type, '{}',
                (claimed_at AT TIME ZONE 'UTC')::date, (claimed_at AT TIME ZONE 'UTC')::date,
                1, needed, who, claimed_at)
        RETURNING c.call_id INTO call_id;
        key_name := allowed.key_name;
        PERFORM pricing.note_claim(wanted_provider, allowed, call_id);
        RETURN;
    END IF;
    SELECT w.state, w.sentence, w.next_at INTO why, refusal, until
    FROM pricing.why_not_called(wanted_provider, -1, needed) w;
    IF why IN ('key_refused', 'provider_off', 'quota_spent') THEN
        wait_seconds := 'infinity'; -- until somebody does something about it
        RETURN;
    ELSIF refusal IS NULL THEN
        refusal := pg_catalog.format(
            'the delay between two calls to %s is not over, or all that it may have are in flight', wanted_provider);
        SELECT min(s.last_call_at + make_interval(
                       secs => p.request_delay_ms / 1000.0 * CASE WHEN r.is_nearly_used_up THEN 2 ELSE 1 END))
        INTO until
        FROM pricing.data_collectors p JOIN pricing.provider_state s USING (provider)
        CROSS JOIN pricing.key_allowances(wanted_provider, claimed_at) r
        WHERE p.provider = wanted_provider AND r.is_usable AND (keys IS NULL OR r.key_name = ANY (keys));
    END IF;
    -- If that time has passed without freeing a unit, wait a moment more: units are counted with some slack.
    wait_seconds := CASE WHEN until > claimed_at THEN extract(epoch FROM until - claimed_at) ELSE 1 END;
END $$;
COMMENT ON FUNCTION pricing.claim_etl_call(text, text, text[], text) IS
    'Logs a call for a list as open if all limits allow it (commit before making it); otherwise says why not, and in '
    'how many seconds to ask again (infinity = never).';
