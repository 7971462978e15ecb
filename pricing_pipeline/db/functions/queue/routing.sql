-- Which provider is asked for a pair, and who is asked instead when that one cannot serve. Lock order: see queue.sql.

CREATE OR REPLACE FUNCTION pricing.route(wanted_type text, wanted_symbol text, OUT provider text, OUT passed_over jsonb)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH candidates AS (
        SELECT r.provider, row_number() OVER (ORDER BY r.symbol IS NULL, r.rank) AS place,
               coalesce(p.is_active, false) AND c.provider IS NOT NULL AS is_able,
               CASE WHEN NOT p.is_active THEN 'it is switched off' WHEN c.provider IS NULL THEN 'it cannot fetch this'
                    ELSE coalesce(s.trouble, f.kind || ': ' || f.reason) END AS why
        FROM pricing.provider_routing r
        JOIN pricing.data_type_registry k ON k.data_type = r.data_type
        JOIN pricing.data_collectors p ON p.provider = r.provider
        JOIN pricing.provider_state s ON s.provider = r.provider
        LEFT JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
        LEFT JOIN pricing.route_refusals f ON (f.data_type, f.symbol, f.provider) = (r.data_type, wanted_symbol, r.provider)
            AND f.refused_until > pricing.clock()
        WHERE r.data_type = wanted_type AND (r.symbol = wanted_symbol OR r.symbol IS NULL) AND r.is_active),
    best AS (
        SELECT c.provider, c.place FROM candidates c WHERE c.is_able ORDER BY c.why IS NOT NULL, c.place LIMIT 1)
    SELECT best.provider,
           (SELECT jsonb_agg(jsonb_build_object('at', pricing.clock(), 'attempt', 0, 'kind', 'passed_over', 'message',
                                                left(c.provider || ' was passed over: ' || c.why, 500)) ORDER BY c.place)
            FROM candidates c WHERE c.place < best.place)
    FROM best
$$;
COMMENT ON FUNCTION pricing.route(text, text) IS
    'The provider to be asked for a pair: by the symbol''s own rules, then the type''s, in their order, but first one that is not in trouble and has not refused the pair. With why those before it were passed over, as entries of a task''s history. NULL = no active provider serves it.';


CREATE OR REPLACE FUNCTION pricing.has_detours(wanted_type text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pricing.provider_routing r JOIN pricing.provider_state s USING (provider)
                   JOIN pricing.data_collectors p USING (provider)
                   WHERE r.data_type = wanted_type AND r.is_active AND (s.trouble IS NOT NULL OR NOT p.is_active))
        OR EXISTS (SELECT FROM pricing.route_refusals f WHERE f.data_type = wanted_type);
END $$;
COMMENT ON FUNCTION pricing.has_detours(text) IS 'Whether some pair of a data type may have to be asked for elsewhere than its first rule says.';


CREATE OR REPLACE FUNCTION pricing.broad_route(wanted_type text, OUT provider text, OUT est_bytes bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    SELECT r.provider, ceil(coalesce(s.bytes, k.estimated_data_size_bytes)) INTO broad_route.provider, broad_route.est_bytes
    FROM pricing.data_type_registry k JOIN pricing.chosen_routes r ON r.data_type = k.data_type AND r.symbol IS NULL
    LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (r.provider, k.data_type, 'symbol')
    WHERE k.data_type = wanted_type AND k.is_active;
END $$;
COMMENT ON FUNCTION pricing.broad_route(text) IS
    'The provider that the symbols of a data type without rules of their own are asked of first, and the bytes of a latest price from it.';


CREATE OR REPLACE FUNCTION pricing.common_route(wanted_type text, OUT provider text, OUT est_bytes bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF NOT pricing.has_detours(wanted_type)
       AND NOT EXISTS (SELECT FROM pricing.provider_routing x WHERE x.data_type = wanted_type AND x.symbol IS NOT NULL) THEN
        SELECT r.provider, r.est_bytes INTO common_route.provider, common_route.est_bytes FROM pricing.broad_route(wanted_type) r;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.common_route(text) IS
    'The one provider that is asked for every symbol of a data type, and the bytes of a latest price from it. NULL when some may have to be asked for elsewhere, or nowhere.';


CREATE OR REPLACE FUNCTION pricing.reroute_tasks(wanted_type text, symbols text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    moved integer;
BEGIN
    -- What another session holds is being claimed in this moment, and goes to whom it was queued for.
    UPDATE pricing.api_call_queue_live q
    SET provider = w.provider, errors = pricing.append_errors(q.errors, coalesce(w.passed_over, '[]')),
        status = CASE WHEN w.provider = q.provider THEN q.status ELSE 'pending' END,
        run_after = CASE WHEN w.provider = q.provider THEN q.run_after END
    FROM (SELECT x.id, r.provider, r.passed_over
          FROM pricing.api_call_queue_live x CROSS JOIN LATERAL pricing.route(x.data_type, x.symbol) r
          WHERE x.data_type = wanted_type AND (symbols IS NULL OR x.symbol = ANY (symbols))
            AND x.status IN ('pending', 'scheduled')
            AND (r.provider <> x.provider OR (r.passed_over IS NOT NULL AND x.errors = '[]'))
          ORDER BY x.id FOR UPDATE OF x SKIP LOCKED) w
    WHERE q.id = w.id;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved > 0 THEN
        PERFORM pricing.wake_workers();
    END IF;
    RETURN moved;
END $$;
COMMENT ON FUNCTION pricing.reroute_tasks(text, text[]) IS
    'Gives waiting tasks of a data type to the provider that is to be asked now, and notes in their history who was passed over and why. Returns how many it has touched.';


CREATE OR REPLACE FUNCTION pricing.forget_route(wanted_type text, wanted_symbol text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    only_symbols text[] := CASE WHEN wanted_symbol IS NOT NULL THEN ARRAY[wanted_symbol] END;
BEGIN
    PERFORM pricing.end_backoff(wanted_type, only_symbols);
    DELETE FROM pricing.route_refusals f WHERE f.data_type = wanted_type AND (wanted_symbol IS NULL OR f.symbol = wanted_symbol);
    -- What the providers of the old rules did not know, those of the new ones may: schedules ask for it again.
    UPDATE pricing.api_call_queue_dead d SET resolved_at = pricing.clock()
    FROM (SELECT x.id FROM pricing.api_call_queue_dead x
          WHERE x.data_type = wanted_type AND (wanted_symbol IS NULL OR x.symbol = wanted_symbol)
            AND x.failure_kind = 'unknown_symbol' AND x.resolved_at IS NULL
          ORDER BY x.id FOR UPDATE SKIP LOCKED) settled
    WHERE d.id = settled.id;
    PERFORM pricing.reroute_tasks(wanted_type, only_symbols);
    PERFORM pricing.ask_about_quarantined(wanted_type, wanted_symbol);
END $$;
COMMENT ON FUNCTION pricing.forget_route(text, text) IS
    'A rule has changed: refusals are forgotten, back-offs end, unknown symbols are asked for again, waiting tasks go where they belong now, and a new second provider is asked about what is quarantined.';


CREATE OR REPLACE FUNCTION pricing.detour(ids bigint[], kind text, message text) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb := jsonb_build_object('at', now_, 'kind', kind, 'message', left(message, 500));
    moved bigint[];
BEGIN
    INSERT INTO pricing.route_refusals AS f (data_type, symbol, provider, kind, reason, refused_at, refused_until)
    SELECT DISTINCT q.data_type, q.symbol, q.provider, detour.kind, left(message, 500), now_, now_ + interval '7 days'
    FROM pricing.api_call_queue_live q
    WHERE q.id = ANY (ids) AND EXISTS (
        SELECT FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider)
        WHERE r.data_type = q.data_type AND (r.symbol = q.symbol OR r.symbol IS NULL) AND r.is_active AND p.is_active
          AND r.provider <> q.provider)
    ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT route_refusals_pkey DO UPDATE
        SET kind = excluded.kind, reason = excluded.reason, refused_at = excluded.refused_at, refused_until = excluded.refused_until;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    WITH elsewhere AS (
        UPDATE pricing.api_call_queue_live q
        SET provider = r.provider, status = 'pending', attempt = 0, claim_token = NULL, lease_until = NULL,
            errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
        FROM (SELECT x.id, w.provider FROM pricing.api_call_queue_live x
              CROSS JOIN LATERAL pricing.route(x.data_type, x.symbol) w
              WHERE x.id = ANY (ids) AND w.provider <> x.provider
                AND NOT EXISTS (SELECT FROM pricing.route_refusals f WHERE f.refused_until > now_
                                  AND (f.data_type, f.symbol, f.provider) = (x.data_type, x.symbol, w.provider))) r
        WHERE q.id = r.id
        RETURNING q.id)
    SELECT array_agg(e.id) INTO moved FROM elsewhere e;
    IF moved IS NOT NULL THEN
        PERFORM pricing.wake_workers();
    END IF;
    RETURN coalesce(moved, '{}');
END $$;
COMMENT ON FUNCTION pricing.detour(bigint[], text, text) IS
    'A provider does not serve these claimed tasks: remembers that for a week, and gives them, with all their attempts, to the next one of their rules that has not refused them. Returns which had one.';


CREATE OR REPLACE FUNCTION pricing.bury_by_trouble(ids bigint[], entry jsonb, message text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    other record;
    said text;
BEGIN
    FOR other IN
        SELECT c.provider, c.kind, c.reason, q.provider AS asked, array_agg(q.id) AS ids
        FROM pricing.api_call_queue_live q CROSS JOIN LATERAL (
            SELECT r.provider, coalesce(f.kind, 'provider_down') AS kind, coalesce(f.reason, s.trouble) AS reason
            FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider) JOIN pricing.provider_state s USING (provider)
            LEFT JOIN pricing.route_refusals f ON (f.data_type, f.symbol, f.provider) = (q.data_type, q.symbol, r.provider)
                AND f.refused_until > now_
            WHERE r.data_type = q.data_type AND (r.symbol = q.symbol OR r.symbol IS NULL) AND r.is_active AND p.is_active
              AND r.provider <> q.provider
              AND CASE WHEN f.kind IS NULL THEN s.trouble IS NOT NULL ELSE NOT pricing.is_symbol_fault(f.kind) END
            ORDER BY r.symbol IS NULL, r.rank LIMIT 1) c
        WHERE q.id = ANY (ids) AND q.status = 'processing' AND q.window_end = 'infinity'
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3
    LOOP
        said := pg_catalog.format('%s cannot be asked (%s), and %s does not serve it: %s', other.provider, rtrim(other.reason, '. '), other.asked, message);
        -- It is asked again with the next task: its trouble may be over by then.
        DELETE FROM pricing.route_refusals f USING pricing.api_call_queue_live q
        WHERE q.id = ANY (other.ids) AND (f.data_type, f.symbol, f.provider) = (q.data_type, q.symbol, other.provider);
        UPDATE pricing.api_call_queue_live q
        SET provider = other.provider, errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
        WHERE q.id = ANY (other.ids);
        PERFORM pricing.bury(other.ids, other.kind, jsonb_build_object('at', now_, 'kind', other.kind, 'message', left(said, 500)), said);
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.bury_by_trouble(bigint[], jsonb, text) IS
    'Of claimed tasks whose provider does not serve their symbol, fails those of which another provider of their route has not said so, because it is in trouble or refuses us: by its trouble, for a symbol is at fault only if nobody who could be asked serves it.';


CREATE OR REPLACE FUNCTION pricing.watch_providers() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    changed text[];
BEGIN
    DELETE FROM pricing.route_refusals f USING (
        SELECT x.data_type, x.symbol, x.provider FROM pricing.route_refusals x WHERE x.refused_until <= now_ FOR UPDATE SKIP LOCKED) old
    WHERE (f.data_type, f.symbol, f.provider) = (old.data_type, old.symbol, old.provider);
    WITH seen AS (
        SELECT s.provider, CASE
                   -- Shorter stops are waited for: what is queued elsewhere costs units there.
                   WHEN s.breaker <> 'closed' AND s.breaker_openings >= 3 THEN 'its breaker is open: ' || s.breaker_reason
                   WHEN pricing.bytes_used(s.provider, now_) >= pricing.quota_for(p.quota_bytes, 0) THEN 'its quota of bytes is spent'
                   ELSE (SELECT 'none of its keys may be used: ' || min(k.blocked_reason) FROM pricing.provider_keys k
                         WHERE k.provider = s.provider AND k.is_active
                         HAVING bool_and(k.blocked_until > now_ - interval '5 seconds' AND k.throttles >= 3)) END AS trouble
        FROM pricing.provider_state s JOIN pricing.data_collectors p USING (provider)
        WHERE EXISTS (SELECT FROM pricing.provider_routing r WHERE r.provider = s.provider)),
    noted AS (
        UPDATE pricing.provider_state s SET trouble = mine.trouble
        FROM (SELECT x.provider, seen.trouble FROM pricing.provider_state x JOIN seen USING (provider)
              WHERE x.trouble IS DISTINCT FROM seen.trouble ORDER BY x.provider FOR UPDATE OF x SKIP LOCKED) mine
        WHERE s.provider = mine.provider
        RETURNING s.provider)
    SELECT array_agg(n.provider) INTO changed FROM noted n;
    RETURN coalesce(cardinality(changed), 0);
END $$;
COMMENT ON FUNCTION pricing.watch_providers() IS
    'Notes which providers are in such trouble that others should be asked. Returns for how many that has changed; reroute_waiting moves what waits.';


CREATE OR REPLACE FUNCTION pricing.reroute_waiting() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind record;
    moved integer := 0;
BEGIN
    -- Only types with a choice. Tasks are locked before provider_state here as everywhere, so this is a duty of its own.
    FOR kind IN
        SELECT r.data_type FROM pricing.provider_routing r WHERE r.is_active
        GROUP BY 1 HAVING count(DISTINCT r.provider) > 1 ORDER BY 1
    LOOP
        moved := moved + pricing.reroute_tasks(kind.data_type);
    END LOOP;
    RETURN moved;
END $$;
COMMENT ON FUNCTION pricing.reroute_waiting() IS 'Gives what waits to the provider that is to be asked now. Returns how many tasks it has touched.';


CREATE OR REPLACE FUNCTION pricing.overrides_of(wanted_provider text, wanted_type text, symbols text[]) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = '' AS $$
    SELECT jsonb_object_agg(s.symbol, s.spelling) FROM pricing.provider_symbols s JOIN pricing.data_type_registry r USING (asset_class)
    WHERE s.provider = wanted_provider AND r.data_type = wanted_type AND s.symbol = ANY (overrides_of.symbols)
$$;
COMMENT ON FUNCTION pricing.overrides_of(text, text, text[]) IS
    'The spellings at a provider that people have given for symbols of a data type, by symbol; NULL = none.';
