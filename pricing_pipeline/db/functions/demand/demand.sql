-- Who wants what: heartbeats, holdings, leaving. What of it is due is judged in staleness.sql.
-- A user's call locks rows of that user alone, in this order: known subscriptions, the allowance, holdings and new
-- subscriptions. What it means to all is served at once for a worker, and requested for a client: see requests.sql.

CREATE OR REPLACE FUNCTION pricing.heartbeat(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true)
RETURNS integer
-- Plans that a session made while few watched must serve when many do, and making them takes three times as long as the rest.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    kept integer;
BEGIN
    -- Nearly every heartbeat is for pairs that are known already, and ends here: an upsert of the same rows takes
    -- half as long again. (Sizes: a sane name of 48 bytes takes 52 in an array.)
    IF cardinality(symbols) <= 10000 AND cardinality(data_types) = cardinality(symbols)
       AND pg_column_size(symbols) + pg_column_size(data_types) <= 200 + 104 * cardinality(symbols) THEN
        UPDATE pricing.active_subscriptions a SET last_seen_at = now_
        -- What another session of the user has locked is being renewed or left there. To wait for it would be a deadlock now and then.
        WHERE a.ctid = ANY (ARRAY(SELECT mine.place FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
                  -- By a range of one value, in the order that only the right index has: those of an empty table look alike.
                  SELECT x.ctid AS place FROM pricing.active_subscriptions x
                  WHERE x.user_id BETWEEN heartbeat.user_id AND heartbeat.user_id AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
                  ORDER BY x.user_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) mine))
          -- A few rows of one page: to read them takes less than to look them up, so no index fits this.
          AND NOT EXISTS (SELECT FROM pricing.data_type_registry r WHERE NOT r.is_active AND r.data_type || '' = ANY (data_types));
        GET DIAGNOSTICS kept = ROW_COUNT;
        IF kept = cardinality(symbols) THEN
            RETURN 0;
        END IF;
    END IF;
    RETURN pricing.begin_watching(user_id, data_types, symbols, at_once);
END $$;
COMMENT ON FUNCTION pricing.heartbeat(text, text[], text[], boolean) IS
    'Says that a user looks at these pairs now. Creates missing instruments (unverified) and queues what is missing or stale: at_once, or as soon as a worker serves the request. Returns the number of new pairs.';


CREATE OR REPLACE FUNCTION pricing.begin_watching(user_id text, data_types text[], symbols text[], at_once boolean) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET lock_timeout = '2s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    new_types text[];
    new_symbols text[];
BEGIN
    PERFORM pricing.check_user(user_id);
    PERFORM pricing.check_pairs(data_types, symbols);
    IF symbols <> pricing.spelled(data_types, symbols) THEN
        RETURN pricing.heartbeat(user_id, data_types, pricing.spelled(data_types, symbols), at_once);
    END IF;
    IF EXISTS (SELECT FROM pricing.data_type_registry r WHERE NOT r.is_active AND r.data_type = ANY (data_types)) THEN
        -- A type that was retired must not end what its viewers see of the others.
        SELECT array_agg(u.data_type), array_agg(u.symbol) INTO data_types, symbols
        FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.is_active;
        RETURN pricing.heartbeat(user_id, data_types, symbols, at_once);
    END IF;
    -- From here on the sessions of one user take turns, so that its caps hold for all of them together. What is known is
    -- looked for, not run into: whoever waits for the turn may have it locked.
    PERFORM pricing.lock_allowance(user_id);
    WITH entered AS (
        INSERT INTO pricing.active_subscriptions AS a (user_id, data_type, symbol, subscribed_at, last_seen_at)
        SELECT DISTINCT begin_watching.user_id, u.data_type, u.symbol, now_, now_
        FROM unnest(data_types, symbols) AS u (data_type, symbol)
        WHERE (SELECT x.symbol FROM pricing.active_subscriptions x
               WHERE x.user_id BETWEEN begin_watching.user_id AND begin_watching.user_id AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
               ORDER BY x.user_id LIMIT 1) IS NULL
        ORDER BY 2, 3 ON CONFLICT ON CONSTRAINT active_subscriptions_pkey DO NOTHING
        RETURNING a.data_type, a.symbol)
    SELECT array_agg(e.data_type), array_agg(e.symbol) INTO new_types, new_symbols FROM entered e;
    IF new_types IS NULL THEN
        RETURN 0;
    END IF;

    PERFORM pricing.check_shapes(new_types, new_symbols);
    PERFORM pricing.admit_pairs(user_id, cardinality(new_types),
        (SELECT count(*) FROM pricing.active_subscriptions a WHERE a.user_id = begin_watching.user_id));
    -- The first look queues what is missing or stale; later looks write nothing but the heartbeat.
    IF at_once THEN
        PERFORM pricing.serve_pairs('watched', new_types, new_symbols);
    ELSE
        PERFORM pricing.request_pairs('watched', new_types, new_symbols);
    END IF;
    RETURN cardinality(new_types);
END $$;
COMMENT ON FUNCTION pricing.begin_watching(text, text[], text[], boolean) IS
    'What a heartbeat does about pairs that its user does not watch yet: enters those of active types and asks for their prices, within the user''s caps. Returns how many were new.';


CREATE OR REPLACE FUNCTION pricing.check_lengths(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF cardinality(data_types) IS DISTINCT FROM cardinality(symbols) OR array_ndims(data_types) > 1 THEN
        RAISE EXCEPTION 'two lists of one length are needed, not % data types and % symbols',
            coalesce(cardinality(data_types), 0), coalesce(cardinality(symbols), 0)
            USING HINT = 'Each pair is a data type and, at the same place, a symbol.', ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_lengths(text[], text[]) IS 'Refuses two lists that do not make pairs.';


CREATE OR REPLACE FUNCTION pricing.check_active(data_types text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    retired text := (SELECT min(r.data_type) FROM pricing.data_type_registry r WHERE r.data_type = ANY (data_types) AND NOT r.is_active);
BEGIN
    IF retired IS NOT NULL THEN
        RAISE EXCEPTION '%', pricing.why_sentence('retired', retired) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_active(text[]) IS 'Refuses data types that are retired, and says how to revive them.';


CREATE OR REPLACE FUNCTION pricing.check_pairs(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    unknown text;
BEGIN
    PERFORM pricing.check_lengths(data_types, symbols);
    IF cardinality(symbols) > 10000 THEN
        RAISE EXCEPTION 'a call may name 10000 pairs, not %', cardinality(symbols)
            USING HINT = 'Say the rest in further calls.', ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (SELECT FROM unnest(data_types, symbols) AS u (data_type, symbol) WHERE u.data_type IS NULL OR u.symbol IS NULL) THEN
        RAISE EXCEPTION 'a pair is a data type and a symbol, and one of them is NULL'
            USING HINT = 'Leave out pairs whose data type or symbol is not known.', ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (SELECT FROM unnest(symbols) AS s WHERE length(s) > 40) THEN
        RAISE EXCEPTION 'a symbol has at most 40 characters' USING ERRCODE = 'check_violation', CONSTRAINT = 'symbol_is_sane';
    END IF;
    SELECT string_agg(DISTINCT left(coalesce(u.data_type, 'NULL'), 60), ', ') INTO unknown
    FROM unnest(data_types) AS u (data_type) LEFT JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.data_type IS NULL;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'unknown data type(s): %', left(unknown, 400)
            USING HINT = 'pricing-pipeline type list shows the active ones.', ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM pricing.data_type_registry a WHERE a.is_active AND a.data_type = ANY (data_types)) THEN
        PERFORM pricing.check_active(data_types);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_pairs(text[], text[]) IS
    'Refuses lists that are no pairs, more than 10,000 of them, names that are no data type, and nothing but retired types.';


CREATE OR REPLACE FUNCTION pricing.taken_symbols(data_types text[], symbols text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken text[];
BEGIN
    SELECT array_agg(DISTINCT u.symbol) INTO taken
    FROM pricing.provider_symbols s JOIN pricing.data_type_registry r USING (asset_class)
    JOIN unnest(data_types, symbols) AS u (data_type, symbol) ON u.data_type = r.data_type AND u.symbol = s.spelling
    WHERE s.symbol <> s.spelling AND NOT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (s.asset_class, s.spelling));
    IF taken IS NOT NULL THEN
        PERFORM pricing.warn('add_demand', taken[1], pg_catalog.format(
            '%s is no instrument: a provider is asked for another one under this name, so nothing is fetched for it. `pricing-pipeline instrument spell` gives and takes back such spellings',
            array_to_string(taken[:5], ', ')), '01000');
    END IF;
    RETURN coalesce(taken, '{}');
END $$;
COMMENT ON FUNCTION pricing.taken_symbols(text[], text[]) IS
    'Symbols of no instrument under which some provider is asked for another one: two would get one answer. Warns of them.';


CREATE OR REPLACE FUNCTION pricing.add_demand(data_types text[], symbols text[], until timestamptz DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '100ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    middle integer := cardinality(symbols) / 2;
    taken text[] := pricing.taken_symbols(data_types, symbols);
BEGIN
    IF taken <> '{}' THEN
        SELECT coalesce(array_agg(u.data_type ORDER BY u.place), '{}'), coalesce(array_agg(u.symbol ORDER BY u.place), '{}') INTO data_types, symbols
        FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place) WHERE u.symbol <> ALL (taken);
    END IF;
    -- What is new is written in key order. OFFSET: looked up one by one, never joined, however few there were when this was planned.
    INSERT INTO pricing.instruments (asset_class, symbol)
    SELECT DISTINCT r.asset_class, u.symbol
    FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
    WHERE NOT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    -- What is known is kept from being taken away. Of a pair that the clean-up is taking away the insert waits to see what
    -- becomes of it.
    WITH wanted AS MATERIALIZED (SELECT DISTINCT u.data_type, u.symbol FROM unnest(data_types, symbols) AS u (data_type, symbol)),
    known AS MATERIALIZED (
        SELECT k.* FROM wanted w CROSS JOIN LATERAL (
            SELECT d.data_type, d.symbol FROM pricing.demand d
            WHERE d.data_type = w.data_type AND d.symbol BETWEEN w.symbol AND w.symbol
            ORDER BY d.symbol FOR KEY SHARE SKIP LOCKED) k)
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT w.data_type, w.symbol, now_ FROM wanted w
    WHERE NOT EXISTS (SELECT FROM known k WHERE (k.data_type, k.symbol) = (w.data_type, w.symbol))
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    -- Another session has not committed one of them: by halves, so that the others need not wait for it.
    until := coalesce(until, clock_timestamp() + interval '1 second');
    IF middle = 0 OR clock_timestamp() > until THEN
        PERFORM pricing.pass_over('add_demand', data_types[1], symbols);
    ELSE
        PERFORM pricing.add_demand(data_types[:middle], symbols[:middle], until);
        PERFORM pricing.add_demand(data_types[middle + 1:], symbols[middle + 1:], until);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.add_demand(text[], text[], timestamptz) IS
    'Makes the instruments (unverified) and the demand of pairs that have none, due at once. What another session holds is passed over, and found by adopt_pairs; symbols that are another instrument''s spelling are left out.';


CREATE OR REPLACE FUNCTION pricing.lock_allowance(user_id pricing.user_name) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    LOOP
        PERFORM FROM pricing.user_allowances a WHERE a.user_id = lock_allowance.user_id FOR UPDATE;
        EXIT WHEN FOUND;
        -- Its allowance may have come and gone since its snapshot, and so may pairs of its other sessions have come.
        IF current_setting('transaction_isolation') <> 'read committed' AND transaction_timestamp() < pricing.clock() - interval '1 hour' THEN
            RAISE EXCEPTION 'this transaction sees pairs as they were an hour ago, so the caps of user % cannot be judged', left(user_id, 60)
                USING HINT = 'Begin a new transaction, or use READ COMMITTED.', ERRCODE = 'serialization_failure';
        END IF;
        INSERT INTO pricing.user_allowances (user_id, spent_until) VALUES (lock_allowance.user_id, pricing.clock())
        ON CONFLICT ON CONSTRAINT user_allowances_pkey DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.lock_allowance(pricing.user_name) IS
    'Lets one session of a user at a time begin new pairs, until the transaction ends. Nobody else waits for it.';


CREATE OR REPLACE FUNCTION pricing.present_caps() RETURNS pricing.user_caps
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    caps pricing.user_caps;
BEGIN
    SELECT * INTO caps FROM pricing.user_caps;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'pricing.user_caps has no row, so nobody can be told what one user may ask for'
            USING HINT = 'Put it back: INSERT INTO pricing.user_caps DEFAULT VALUES.', ERRCODE = 'no_data_found';
    END IF;
    RETURN caps;
END $$;
COMMENT ON FUNCTION pricing.present_caps() IS 'What one user may ask for.';


CREATE OR REPLACE FUNCTION pricing.admit_pairs(user_id text, new_pairs integer, total bigint) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz;
    caps pricing.user_caps;
    spent interval;
BEGIN
    caps := pricing.present_caps();
    IF total > caps.pairs_per_user THEN
        RAISE EXCEPTION 'user % may watch or hold % pairs at once, and would have %', left(user_id, 60), caps.pairs_per_user, total
            USING HINT = 'Leave some first, or raise the cap with `pricing-pipeline limit set-caps`.',
                  DETAIL = json_build_object('room', greatest(0, caps.pairs_per_user - (total - new_pairs))),
                  CONSTRAINT = 'pairs_per_user', ERRCODE = 'configuration_limit_exceeded';
    END IF;
    now_ := pricing.clock();
    INSERT INTO pricing.user_allowances AS a (user_id, spent_until)
    VALUES (admit_pairs.user_id, now_ + interval '1 minute' / caps.new_pairs_per_minute * new_pairs)
    ON CONFLICT ON CONSTRAINT user_allowances_pkey DO UPDATE
        SET spent_until = greatest(now_, a.spent_until) + interval '1 minute' / caps.new_pairs_per_minute * new_pairs
    RETURNING a.spent_until - now_ INTO spent;
    spent := spent + pricing.spent_by_reads(user_id, (
        SELECT count(*) FROM pricing.pair_requests r WHERE r.kind = 'read' AND r.user_id = admit_pairs.user_id));
    IF spent > interval '1 minute' THEN
        -- What would have fitted, and when the rest will.
        spent := spent - interval '1 minute' / caps.new_pairs_per_minute * new_pairs;
        RAISE EXCEPTION 'user % may begin % new pairs a minute, and asks for % more', left(user_id, 60), caps.new_pairs_per_minute, new_pairs
            USING HINT = 'Say the rest a little later, or raise the cap with `pricing-pipeline limit set-caps`.',
                  DETAIL = json_build_object(
                      'room', floor(caps.new_pairs_per_minute * (1 - extract(epoch FROM spent) / 60))::integer,
                      'retry_after', ceil(least(60, extract(epoch FROM spent)
                                                    + 60.0 * new_pairs / caps.new_pairs_per_minute - 60))::integer),
                  CONSTRAINT = 'new_pairs_per_minute', ERRCODE = 'configuration_limit_exceeded';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.admit_pairs(text, integer, bigint) IS
    'Refuses (53400) what goes past a user''s caps. Its detail is JSON: room, how many of the new pairs would be admitted now, and retry_after in seconds where waiting helps.';


CREATE OR REPLACE FUNCTION pricing.spent_by_reads(user_id text, pairs bigint) RETURNS interval
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT interval '1 minute' / least(c.new_pairs_per_minute, c.pairs_per_user) * (pairs + coalesce((
               SELECT sum(s.pairs) FROM pricing.read_charges s, pricing.clock() AS now_
               WHERE s.user_id = spent_by_reads.user_id AND s.charged_at > now_ - interval '1 minute' AND s.charged_at <= now_), 0))
    FROM pricing.user_caps c
$$;
COMMENT ON FUNCTION pricing.spent_by_reads(text, bigint) IS
    'How much of a user''s allowance its reads of the last minute have used up, and so many pairs beside them. In a minute they have as many fetched as the user may begin to watch, and no more than it may watch at once.';


CREATE OR REPLACE FUNCTION pricing.room_for_reads(user_id text, waiting bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    -- Looked at, never locked: a session that begins pairs may keep it locked for as long as its transaction is open.
    spent interval := (SELECT greatest(a.spent_until - pricing.clock(), interval '0') FROM pricing.user_allowances a
                       WHERE a.user_id = room_for_reads.user_id);
BEGIN
    spent := coalesce(spent, interval '0') + pricing.spent_by_reads(user_id, waiting);
    RETURN greatest(0, floor((60 - extract(epoch FROM spent)) / extract(epoch FROM interval '1 minute' / least(c.new_pairs_per_minute, c.pairs_per_user))))
    FROM pricing.user_caps c;
END $$;
COMMENT ON FUNCTION pricing.room_for_reads(text, bigint) IS
    'How many pairs the reads of a user may still have fetched now, beside so many that wait to be.';


CREATE OR REPLACE FUNCTION pricing.raise_tasks(data_types text[], symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- Whoever holds the row is claiming it or raising it, so there is nothing to wait for.
    UPDATE pricing.api_call_queue_live q SET priority = grown.viewers
    FROM (SELECT x.id, v.viewers
          FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.api_call_queue_live x USING (data_type, symbol)
          CROSS JOIN LATERAL (SELECT count(*)::integer AS viewers FROM pricing.active_subscriptions a
                              WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol)) v
          WHERE x.window_start = '-infinity' AND x.window_end = 'infinity'
            AND x.status IN ('pending', 'scheduled') AND x.priority < v.viewers
          ORDER BY x.id FOR UPDATE OF x SKIP LOCKED) grown
    WHERE q.id = grown.id
$$;
COMMENT ON FUNCTION pricing.raise_tasks(text[], text[]) IS 'Gives waiting tasks the priority of their viewers, when it has grown.';


CREATE OR REPLACE FUNCTION pricing.unsubscribe(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true)
RETURNS integer
-- A session that planned this while nobody watched took 40 s to leave 10,000 pairs; clients are gone by then, and their rows locked.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    gone_types text[];
    gone_symbols text[];
BEGIN
    PERFORM pricing.check_user(user_id);
    PERFORM pricing.check_lengths(data_types, symbols);
    symbols := pricing.spelled(data_types, symbols);
    -- A heartbeat of the same pairs in another session of the user waits for the end of this transaction, and then enters
    -- them anew: it found them locked, and would else take them for known.
    PERFORM pricing.lock_allowance(user_id);
    WITH gone AS (
        -- What another session of the user is looking at in this moment stays: it has not left.
        DELETE FROM pricing.active_subscriptions a
        USING (SELECT mine.place FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
                   SELECT x.ctid AS place FROM pricing.active_subscriptions x
                   WHERE x.user_id BETWEEN unsubscribe.user_id AND unsubscribe.user_id AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
                   ORDER BY x.user_id LIMIT 1 FOR UPDATE SKIP LOCKED) mine) left_
        WHERE a.ctid = left_.place
        RETURNING a.data_type, a.symbol)
    SELECT array_agg(g.data_type), array_agg(g.symbol) INTO gone_types, gone_symbols FROM gone g;
    IF gone_types IS NULL THEN
        RETURN 0;
    END IF;
    IF at_once THEN
        PERFORM pricing.note_views(gone_types, gone_symbols);
    ELSE
        PERFORM pricing.request_views(gone_types, gone_symbols);
    END IF;
    RETURN cardinality(gone_types);
END $$;
COMMENT ON FUNCTION pricing.unsubscribe(text, text[], text[], boolean) IS
    'Removes subscriptions on leave, and notes the views: at_once, or by a request. Returns how many there were.';


CREATE OR REPLACE FUNCTION pricing.unnoted_views(data_types text[], symbols text[]) RETURNS TABLE (data_type text, symbol text)
LANGUAGE sql SET search_path = '' SET enable_seqscan = off AS $$
    -- Looking first: of a hundred viewers in ten minutes one writes, and the others lock nothing.
    SELECT DISTINCT u.data_type, u.symbol
    FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN (SELECT pricing.clock() AS at OFFSET 0) now_
    WHERE NOT EXISTS (SELECT FROM pricing.pair_views v WHERE (v.data_type, v.symbol) = (u.data_type, u.symbol)
                                                         AND v.viewed_at > now_.at - interval '10 minutes' OFFSET 0)
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pricing.unnoted_views(text[], text[]) IS 'Those of the pairs of which no view was noted in the last ten minutes.';


CREATE OR REPLACE FUNCTION pricing.note_views(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '100ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    INSERT INTO pricing.pair_views AS p (data_type, symbol, viewed_at)
    SELECT n.data_type, n.symbol, now_ FROM pricing.unnoted_views(data_types, symbols) n
    ON CONFLICT (data_type, symbol) DO UPDATE SET viewed_at = excluded.viewed_at WHERE p.viewed_at < excluded.viewed_at;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL; -- another session notes views of the same pairs in this moment
END $$;
COMMENT ON FUNCTION pricing.note_views(text[], text[]) IS
    'Remembers that pairs were looked at, at most once in ten minutes for each; not, if another session has locked one of them.';


CREATE OR REPLACE FUNCTION pricing.forget_views() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    forgotten integer;
BEGIN
    DELETE FROM pricing.pair_views v USING (
        SELECT x.data_type, x.symbol FROM pricing.pair_views x WHERE x.viewed_at < now_ - interval '48 hours' FOR UPDATE SKIP LOCKED) old
    WHERE (v.data_type, v.symbol) = (old.data_type, old.symbol);
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    DELETE FROM pricing.user_allowances a USING (
        -- An hour later: what an older snapshot does not see would not be counted (lock_allowance).
        SELECT x.user_id FROM pricing.user_allowances x WHERE x.spent_until < now_ - interval '1 hour' FOR UPDATE SKIP LOCKED) whole
    WHERE a.user_id = whole.user_id;
    RETURN forgotten;
END $$;
COMMENT ON FUNCTION pricing.forget_views() IS 'Forgets views of more than 48 hours ago, and allowances that have been whole for an hour. Returns how many views.';


CREATE OR REPLACE FUNCTION pricing.clean_subscriptions() RETURNS integer
-- By looks into indexes, one for each pair: a session may have planned this when there were none.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    removed integer;
    gone_types text[];
    gone_symbols text[];
    idle record;
    waiting bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM pricing.active_subscriptions a USING (
            SELECT s.ctid AS place FROM pricing.active_subscriptions s
            WHERE s.last_seen_at < now_ - interval '5 minutes' FOR UPDATE SKIP LOCKED) silent
        WHERE a.ctid = silent.place
        RETURNING a.data_type, a.symbol)
    SELECT count(*), array_agg(g.data_type), array_agg(g.symbol) INTO removed, gone_types, gone_symbols FROM gone g;
    IF removed > 0 THEN
        PERFORM pricing.note_views(gone_types, gone_symbols);
    END IF;
    -- A pair that is backing off stays, so that leaving and coming back does not start it again.
    WITH removed_pairs AS (
        DELETE FROM pricing.demand d USING (
            SELECT x.ctid AS place FROM pricing.demand x
            WHERE x.created_at < now_ - interval '1 minute' AND (x.backoff_until IS NULL OR x.backoff_until <= now_)
              AND x.read_at IS NULL
              AND NOT EXISTS (SELECT FROM pricing.active_subscriptions a
                              WHERE a.data_type = x.data_type AND a.symbol BETWEEN x.symbol AND x.symbol ORDER BY a.symbol OFFSET 0)
              AND NOT EXISTS (SELECT FROM pricing.holdings h
                              WHERE h.data_type = x.data_type AND h.active_symbol BETWEEN x.symbol AND x.symbol ORDER BY h.active_symbol OFFSET 0)
            FOR UPDATE SKIP LOCKED) unwanted
        WHERE d.ctid = unwanted.place
        RETURNING d.data_type, d.symbol)
    SELECT array_agg(t.data_type) AS types, array_agg(t.symbol) AS symbols INTO idle FROM removed_pairs t;
    -- Whoever came before that is seen by this statement, and has the pair back. Whoever comes after it waits a tenth of a
    -- second in add_demand; what that passes over, adopt_pairs finds.
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT u.data_type, u.symbol, now_ FROM unnest(idle.types, idle.symbols) AS u (data_type, symbol)
    WHERE EXISTS (SELECT FROM pricing.active_subscriptions a
                  WHERE a.data_type = u.data_type AND a.symbol BETWEEN u.symbol AND u.symbol ORDER BY a.symbol OFFSET 0)
       OR EXISTS (SELECT FROM pricing.holdings h
                  WHERE h.data_type = u.data_type AND h.active_symbol BETWEEN u.symbol AND u.symbol ORDER BY h.active_symbol OFFSET 0)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    -- What still waits for such a pair is cancelled: nobody wants it, so nobody shall fetch it. Of scheduled
    -- types it stays: a viewer may only have raised what the schedule had queued.
    SELECT array_agg(q.id) INTO waiting
    FROM unnest(idle.types, idle.symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
        SELECT x.id FROM pricing.api_call_queue_live x
        WHERE (x.data_type, x.symbol, x.window_start, x.window_end) = (u.data_type, u.symbol, '-infinity', 'infinity')
          AND x.status IN ('pending', 'scheduled') AND x.priority >= 0 OFFSET 0) q
    WHERE EXISTS (SELECT FROM pricing.data_type_registry r WHERE r.data_type = u.data_type AND r.refresh_strategy = 'on-demand')
      AND NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (u.data_type, u.symbol) OFFSET 0);
    PERFORM pricing.stop_tasks(waiting, 'unwatched', 'nobody watches or holds the pair any more');
    RETURN removed;
END $$;
COMMENT ON FUNCTION pricing.clean_subscriptions() IS 'Forgets viewers silent for 5 minutes, demand nobody has (unless it is backing off), and tasks that wait for it. Never touches last_seen_at.';


CREATE OR REPLACE FUNCTION pricing.hold(user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '2s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    new_types text[];
    new_symbols text[];
BEGIN
    PERFORM pricing.check_user(user_id);
    PERFORM pricing.check_pairs(data_types, symbols);
    symbols := pricing.spelled(data_types, symbols);
    PERFORM pricing.check_active(data_types);
    PERFORM pricing.lock_allowance(user_id);
    WITH opened AS (
        INSERT INTO pricing.holdings AS h (user_id, data_type, symbol, since)
        SELECT DISTINCT hold.user_id, u.data_type, u.symbol, now_
        FROM unnest(data_types, symbols) AS u (data_type, symbol) ORDER BY 2, 3
        ON CONFLICT ON CONSTRAINT holdings_pkey DO UPDATE SET since = excluded.since, status = 'active', closed_at = NULL
            WHERE h.status = 'closed'
        RETURNING h.data_type, h.symbol)
    SELECT array_agg(o.data_type), array_agg(o.symbol) INTO new_types, new_symbols FROM opened o;
    IF new_types IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM pricing.check_shapes(new_types, new_symbols);
    PERFORM pricing.admit_pairs(user_id, cardinality(new_types),
        (SELECT count(*) FROM pricing.holdings h WHERE h.user_id = hold.user_id AND h.status = 'active'));
    IF at_once THEN
        PERFORM pricing.serve_pairs('held', new_types, new_symbols);
    ELSE
        PERFORM pricing.request_pairs('held', new_types, new_symbols);
    END IF;
    RETURN cardinality(new_types);
END $$;
COMMENT ON FUNCTION pricing.hold(text, text[], text[], boolean) IS
    'Says that a user holds these pairs from now on, until they are released. Creates missing instruments (unverified) and queues what has no price: at_once, or as soon as a worker serves the request. Returns how many holdings are new.';


CREATE OR REPLACE FUNCTION pricing.release(user_id text, data_types text[], symbols text[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '2s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    closed integer;
BEGIN
    PERFORM pricing.check_lengths(data_types, symbols);
    symbols := pricing.spelled(data_types, symbols);
    UPDATE pricing.holdings h SET closed_at = now_, status = 'closed'
    FROM (SELECT x.user_id, x.data_type, x.symbol
          FROM pricing.holdings x JOIN unnest(data_types, symbols) AS u (data_type, symbol) USING (data_type, symbol)
          WHERE x.user_id = release.user_id AND x.status = 'active'
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x) mine
    WHERE (h.user_id, h.data_type, h.symbol) = (mine.user_id, mine.data_type, mine.symbol);
    GET DIAGNOSTICS closed = ROW_COUNT;
    RETURN closed;
END $$;
COMMENT ON FUNCTION pricing.release(text, text[], text[]) IS 'Closes holdings; returns how many were open. What nobody else wants is no longer fetched.';
