-- Which provider is asked for a pair, and who is asked instead when that one cannot serve. Lock order: see queue.sql.

CREATE OR REPLACE FUNCTION pricing.route(wanted_type text, wanted_symbol text, OUT provider text, OUT passed_over jsonb)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH candidates AS (
        SELECT r.provider, row_number() OVER (ORDER BY r.symbol IS NULL, r.rank) AS place,
               coalesce(p.is_active, false) AND c.provider IS NOT NULL AS is_able,
               CASE WHEN NOT p.is_active THEN 'it is switched off'
                    WHEN c.provider IS NULL THEN 'it cannot fetch this'
                    ELSE coalesce(s.trouble, f.kind || ': ' || f.reason) END AS why
        FROM pricing.provider_routing r
        JOIN pricing.data_type_registry k ON k.data_type = r.data_type
        JOIN pricing.data_collectors p ON p.provider = r.provider
        JOIN pricing.provider_state s ON s.provider = r.provider
        LEFT JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
        LEFT JOIN pricing.route_refusals f
            ON (f.data_type, f.symbol, f.provider) = (r.data_type, wanted_symbol, r.provider)
            AND f.refused_until > pricing.clock()
        WHERE r.data_type = wanted_type
          AND (r.symbol = wanted_symbol OR r.symbol IS NULL)
          AND r.is_active),
    best AS (
        SELECT c.provider, c.place FROM candidates c
        WHERE c.is_able
        ORDER BY c.why IS NOT NULL, c.place LIMIT 1)
    SELECT best.provider,
           (SELECT jsonb_agg(jsonb_build_object('at', pricing.clock(), 'attempt', 0, 'kind', 'passed_over',
                                                'message', left(c.provider || ' was passed over: ' || c.why, 500))
                             ORDER BY c.place)
            FROM candidates c WHERE c.place < best.place)
    FROM best
$$;
COMMENT ON FUNCTION pricing.route(text, text) IS
    'The provider to ask for a pair, by the symbol''s rules and then the type''s, first one that is not in trouble '
    'and has not refused it, with why earlier ones were skipped; NULL = no active provider serves it.';


CREATE OR REPLACE FUNCTION pricing.has_detours(wanted_type text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pricing.provider_routing r JOIN pricing.provider_state s USING (provider)
                   JOIN pricing.data_collectors p USING (provider)
                   WHERE r.data_type = wanted_type
                     AND r.is_active
                     AND (s.trouble IS NOT NULL OR NOT p.is_active))
        OR EXISTS (SELECT FROM pricing.route_refusals f WHERE f.data_type = wanted_type);
END $$;
COMMENT ON FUNCTION pricing.has_detours(text) IS
    'Whether some pair of a data type may have to be fetched elsewhere than by its first rule.';


CREATE OR REPLACE FUNCTION pricing.common_route(wanted_type text, OUT provider text, OUT est_bytes bigint)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    IF NOT pricing.has_detours(wanted_type)
       AND NOT EXISTS (SELECT FROM pricing.provider_routing x
                       WHERE x.data_type = wanted_type AND x.symbol IS NOT NULL) THEN
        SELECT r.provider, ceil(coalesce(s.bytes, k.estimated_data_size_bytes))
        INTO common_route.provider, common_route.est_bytes
        FROM pricing.data_type_registry k
        JOIN pricing.chosen_routes r ON r.data_type = k.data_type AND r.symbol IS NULL
        LEFT JOIN pricing.size_estimates s ON (s.provider, s.data_type, s.per) = (r.provider, k.data_type, 'symbol')
        WHERE k.data_type = wanted_type AND k.is_active;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.common_route(text) IS
    'The one provider for all symbols of a data type, and the bytes of a latest price from it; NULL = some may need '
    'another.';


CREATE OR REPLACE FUNCTION pricing.reroute_tasks(wanted_type text, symbols text[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    moved integer;
BEGIN
    -- A task that another session has locked is being claimed now, and goes to its old provider.
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
    'Gives a data type''s waiting tasks to the provider that their route names now, with a note in their history; '
    'returns how many.';


CREATE OR REPLACE FUNCTION pricing.forget_route(wanted_type text, wanted_symbol text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    only_symbols text[] := CASE WHEN wanted_symbol IS NOT NULL THEN ARRAY[wanted_symbol] END;
BEGIN
    PERFORM pricing.end_backoff(wanted_type, only_symbols);
    DELETE FROM pricing.route_refusals f
    WHERE f.data_type = wanted_type AND (wanted_symbol IS NULL OR f.symbol = wanted_symbol);
    -- The providers of the new rules may know symbols that the old ones did not: schedules request them again.
    UPDATE pricing.api_call_queue_dead d SET resolved_at = pricing.clock()
    FROM (SELECT x.id FROM pricing.api_call_queue_dead x
          WHERE x.data_type = wanted_type AND (wanted_symbol IS NULL OR x.symbol = wanted_symbol)
            AND x.failure_kind = 'unknown_symbol' AND x.resolved_at IS NULL
          ORDER BY x.id FOR UPDATE SKIP LOCKED) settled
    WHERE d.id = settled.id;
    PERFORM pricing.reroute_tasks(wanted_type, only_symbols);
    UPDATE pricing.quarantined_values q SET ask_at = pricing.clock()
    FROM (SELECT x.value_id FROM pricing.quarantined_values x JOIN pricing.data_type_registry r USING (data_type)
          WHERE x.data_type = wanted_type AND (wanted_symbol IS NULL OR x.symbol = wanted_symbol)
            AND x.status = 'quarantined' AND x.ask_at IS NULL AND x.last_seen_at > pricing.clock() - interval '3 days'
            AND (x.observed_at IS NOT NULL OR r.fetcher = 'quote')
            AND NOT EXISTS (SELECT FROM pricing.second_opinions o
                            WHERE o.value_id = x.value_id AND o.failure IS NULL)
            AND pricing.second_provider(x.data_type, x.symbol, x.provider) IS NOT NULL
          ORDER BY x.value_id LIMIT 1000 FOR UPDATE OF x SKIP LOCKED) mine
    WHERE q.value_id = mine.value_id;
END $$;
COMMENT ON FUNCTION pricing.forget_route(text, text) IS
    'Applies a changed rule: forgets refusals, ends back-offs, retries unknown symbols, reroutes waiting tasks, and '
    'asks a new second provider about quarantined values of the last three days.';


CREATE OR REPLACE FUNCTION pricing.detour(ids bigint[], kind text, message text) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    entry jsonb := jsonb_build_object('at', now_, 'kind', kind, 'message', left(message, 500));
    moved bigint[];
BEGIN
    INSERT INTO pricing.route_refusals AS f (data_type, symbol, provider, kind, reason, refused_until)
    SELECT DISTINCT q.data_type, q.symbol, q.provider, detour.kind, left(message, 500), now_ + interval '7 days'
    FROM pricing.api_call_queue_live q
    WHERE q.id = ANY (ids) AND EXISTS (
        SELECT FROM pricing.provider_routing r JOIN pricing.data_collectors p USING (provider)
        WHERE r.data_type = q.data_type
          AND (r.symbol = q.symbol OR r.symbol IS NULL)
          AND r.is_active
          AND p.is_active
          AND r.provider <> q.provider)
    ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT route_refusals_pkey DO UPDATE
        SET kind = excluded.kind, reason = excluded.reason, refused_until = excluded.refused_until;
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
    'Remembers for a week that a provider does not serve these claimed tasks, and gives them to the next provider of '
    'their route; returns those that had one.';


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
            FROM pricing.provider_routing r
            JOIN pricing.data_collectors p USING (provider)
            JOIN pricing.provider_state s USING (provider)
            LEFT JOIN pricing.route_refusals f
                ON (f.data_type, f.symbol, f.provider) = (q.data_type, q.symbol, r.provider)
                AND f.refused_until > now_
            WHERE r.data_type = q.data_type
              AND (r.symbol = q.symbol OR r.symbol IS NULL)
              AND r.is_active
              AND p.is_active
              AND r.provider <> q.provider
              AND CASE WHEN f.kind IS NULL THEN s.trouble IS NOT NULL ELSE NOT pricing.is_symbol_fault(f.kind) END
            ORDER BY r.symbol IS NULL, r.rank LIMIT 1) c
        WHERE q.id = ANY (ids)
          AND q.status = 'processing'
          AND q.window_end = 'infinity'
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3
    LOOP
        said := pg_catalog.format(
            '%s cannot be asked (%s), and %s does not serve it: %s',
            other.provider, rtrim(other.reason, '. '), other.asked, message);
        -- It is asked again with the next task: its trouble may be over by then.
        DELETE FROM pricing.route_refusals f USING pricing.api_call_queue_live q
        WHERE q.id = ANY (other.ids) AND (f.data_type, f.symbol, f.provider) = (q.data_type, q.symbol, other.provider);
        UPDATE pricing.api_call_queue_live q
        SET provider = other.provider,
            errors = pricing.append_errors(q.errors, entry || jsonb_build_object('attempt', q.attempt))
        WHERE q.id = ANY (other.ids);
        PERFORM pricing.bury(
            other.ids, other.kind,
            jsonb_build_object('at', now_, 'kind', other.kind, 'message', left(said, 500)), said);
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.bury_by_trouble(bigint[], jsonb, text) IS
    'Fails claimed tasks whose symbol one provider does not serve while another of the route is in trouble or refuses '
    'us, as that one''s trouble: a symbol is at fault only if nobody serves it.';


CREATE OR REPLACE FUNCTION pricing.watch_providers() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    changed text[];
BEGIN
    DELETE FROM pricing.route_refusals f USING (
        SELECT x.data_type, x.symbol, x.provider FROM pricing.route_refusals x
        WHERE x.refused_until <= now_ FOR UPDATE SKIP LOCKED) old
    WHERE (f.data_type, f.symbol, f.provider) = (old.data_type, old.symbol, old.provider);
    WITH seen AS (
        SELECT s.provider,
               -- Shorter stops are waited out: a detour costs another provider units.
               CASE WHEN s.breaker <> 'closed' AND s.breaker_openings >= 3
                    THEN 'its breaker is open: ' || s.breaker_reason
                    WHEN pricing.bytes_used(s.provider, now_) >= pricing.quota_for(p.quota_bytes, 0)
                    THEN 'its quota of bytes is spent'
                    ELSE (SELECT 'none of its keys may be used: ' || min(k.blocked_reason)
                          FROM pricing.provider_keys k
                          WHERE k.provider = s.provider AND k.is_active
                          HAVING bool_and(k.blocked_until > now_ - interval '5 seconds' AND k.throttles >= 3))
                    END AS trouble
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
    'Records which providers are in such trouble that others should be asked; returns for how many that changed.';


CREATE OR REPLACE FUNCTION pricing.reroute_waiting() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    kind record;
    moved integer := 0;
BEGIN
    -- Only types with a choice. Tasks are locked before provider_state here as everywhere, so this is a duty of its
    -- own.
    FOR kind IN
        SELECT r.data_type FROM pricing.provider_routing r WHERE r.is_active
        GROUP BY 1 HAVING count(DISTINCT r.provider) > 1 ORDER BY 1
    LOOP
        moved := moved + pricing.reroute_tasks(kind.data_type);
    END LOOP;
    RETURN moved;
END $$;
COMMENT ON FUNCTION pricing.reroute_waiting() IS
    'Gives waiting tasks to the provider that their route names now; returns how many.';


CREATE OR REPLACE FUNCTION pricing.provider_switched() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    rule record;
BEGIN
    FOR rule IN
        SELECT r.data_type, r.symbol FROM pricing.provider_routing r WHERE r.provider = NEW.provider AND r.is_active
        ORDER BY 1, 2
    LOOP
        PERFORM pricing.forget_route(rule.data_type, rule.symbol);
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.provider_switched() IS
    'Forgets refusals for the pairs routed to a changed provider, ends their back-off, and reroutes waiting tasks.';

CREATE TRIGGER provider_switched
    AFTER UPDATE OF is_active, base_url, quota_bytes ON pricing.data_collectors
    FOR EACH ROW WHEN (
        OLD.is_active IS DISTINCT FROM NEW.is_active
        OR OLD.base_url IS DISTINCT FROM NEW.base_url
        OR OLD.quota_bytes IS DISTINCT FROM NEW.quota_bytes)
    EXECUTE FUNCTION pricing.provider_switched();

CREATE TRIGGER capability_changed
    AFTER INSERT OR UPDATE ON pricing.provider_capabilities
    FOR EACH ROW
    EXECUTE FUNCTION pricing.provider_switched();

CREATE TRIGGER limit_changed
    AFTER UPDATE ON pricing.provider_limits
    FOR EACH ROW WHEN (OLD.units <> NEW.units)
    EXECUTE FUNCTION pricing.provider_switched();


CREATE OR REPLACE FUNCTION pricing.route_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pricing.forget_route(OLD.data_type, OLD.symbol);
    END IF;
    IF TG_OP = 'INSERT'
       OR (TG_OP = 'UPDATE' AND (OLD.data_type, OLD.symbol) IS DISTINCT FROM (NEW.data_type, NEW.symbol)) THEN
        PERFORM pricing.forget_route(NEW.data_type, NEW.symbol);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.route_changed() IS
    'Ends the back-off of the pairs of a changed rule, and reroutes their waiting tasks.';

CREATE TRIGGER route_changed
    AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_routing
    FOR EACH ROW
    EXECUTE FUNCTION pricing.route_changed();
