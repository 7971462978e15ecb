-- Who wants what: heartbeats, holdings, leaving. staleness.sql judges what is due. A call locks only rows of its user,
-- in this order: known subscriptions, the allowance, holdings and new subscriptions. What it changes for everybody is
-- done at once for a worker, and requested for a client (requests.sql).

CREATE OR REPLACE FUNCTION pricing.heartbeat(
    user_id text, data_types text[], symbols text[], at_once boolean DEFAULT true)
RETURNS jsonb
-- Plan once: a session keeps its plan as demand grows, and planning costs three times as much as running.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    is_first boolean := pg_current_xact_id_if_assigned() IS NULL;
    kept integer := 0;
BEGIN
    -- Nearly every heartbeat is for known pairs only, and ends here: an upsert of the same rows takes half as long
    -- again. (Sizes: a sane name of 48 bytes takes 52 in an array.)
    IF cardinality(symbols) <= 10000 AND cardinality(data_types) = cardinality(symbols)
       AND pg_column_size(symbols) + pg_column_size(data_types) <= 200 + 104 * cardinality(symbols) THEN
        UPDATE pricing.active_subscriptions a SET last_seen_at = now_
        -- Rows that another session of the user has locked are being renewed or left there. Waiting could deadlock.
        WHERE a.ctid = ANY (ARRAY(
                  SELECT mine.place FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
                      -- By a range of one value, in the order that only the right index has: those of an empty table
                      -- look alike.
                      SELECT x.ctid AS place FROM pricing.active_subscriptions x
                      WHERE x.user_id BETWEEN heartbeat.user_id AND heartbeat.user_id
                        AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
                      ORDER BY x.user_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) mine))
          -- A few rows on one page: reading them is faster than any index.
          AND NOT EXISTS (SELECT FROM pricing.data_type_registry r
                          WHERE NOT r.is_active AND r.data_type || '' = ANY (data_types));
        GET DIAGNOSTICS kept = ROW_COUNT;
        IF kept = cardinality(symbols) THEN
            IF is_first THEN
                -- The next heartbeat restores what a crash undoes, so the commit need not wait for the disk.
                PERFORM set_config('synchronous_commit', 'off', true);
            END IF;
            -- As answer_pairs does, whose call would take a noticeable part of this one.
            RETURN '{"changed": 0, "accepted": ' || kept || ', "doubtful": 0, "refused": 0, "pairs": [], "faults": []}';
        END IF;
    END IF;
    RETURN pricing.begin_pairs('watched', user_id, data_types, symbols, at_once, kept > 0);
END $$;
COMMENT ON FUNCTION pricing.heartbeat(text, text[], text[], boolean) IS
    'Says that a user is looking at these pairs: creates missing instruments, queues what is missing or stale '
    '(at_once or by request), and answers each pair (see answer_pairs).';


CREATE OR REPLACE FUNCTION pricing.pairs_of_user(kind text, user_id text, data_types text[], symbols text[])
RETURNS TABLE (data_type text, symbol text)
LANGUAGE plpgsql STABLE SET search_path = '' SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    IF kind = 'watched' THEN
        RETURN QUERY
        SELECT DISTINCT u.data_type, u.symbol FROM unnest(data_types, symbols) AS u (data_type, symbol)
        -- By a range of one value, in the order that only the right index has.
        WHERE (SELECT x.symbol FROM pricing.active_subscriptions x
               WHERE x.user_id BETWEEN pairs_of_user.user_id AND pairs_of_user.user_id
                 AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
               ORDER BY x.user_id LIMIT 1) IS NOT NULL;
    ELSE
        RETURN QUERY
        SELECT DISTINCT u.data_type, u.symbol FROM unnest(data_types, symbols) AS u (data_type, symbol)
        WHERE EXISTS (SELECT FROM pricing.holdings h
                      WHERE (h.user_id, h.data_type, h.symbol) = (pairs_of_user.user_id, u.data_type, u.symbol)
                        AND h.status = 'active' OFFSET 0);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.pairs_of_user(text, text, text[], text[]) IS
    'Which of these pairs the user already watches or holds.';


CREATE OR REPLACE FUNCTION pricing.judge_pairs(data_types text[], symbols text[]) RETURNS SETOF pricing.pair_answer
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH given AS MATERIALIZED (
        SELECT u.place::integer, u.data_type, u.symbol, r.is_active
        FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place)
        LEFT JOIN pricing.data_type_registry r USING (data_type)),
    active AS (
        SELECT coalesce(array_agg(g.place ORDER BY g.place), '{}') AS places,
               coalesce(array_agg(g.data_type ORDER BY g.place), '{}') AS data_types,
               coalesce(array_agg(g.symbol ORDER BY g.place), '{}') AS symbols
        FROM given g WHERE g.is_active)
    SELECT a.places[j.place], j.data_type, j.given, j.symbol, j.outcome,
           CASE j.outcome WHEN 'refused' THEN 'symbol_refused' WHEN 'doubtful' THEN 'symbol_doubtful' END,
           j.reason, j.proposal, NULL::integer
    FROM active a CROSS JOIN LATERAL pricing.judge_symbols(a.data_types, a.symbols) j
    UNION ALL
    SELECT g.place, g.data_type, g.symbol, NULL, 'refused',
           CASE WHEN g.is_active IS NULL THEN 'unknown_type' ELSE 'retired_type' END,
           CASE WHEN g.is_active IS NULL
                THEN pg_catalog.format('no data type is called %s; `pricing-pipeline type list` lists them',
                                       left(g.data_type, 60))
                ELSE pricing.why_sentence('retired', g.data_type) END,
           NULL, NULL
    FROM given g WHERE g.is_active IS NOT TRUE
    ORDER BY 1
$$;
COMMENT ON FUNCTION pricing.judge_pairs(text[], text[]) IS
    'The answer to each pair of a request, before caps: its data type must be active, and its symbol must pass '
    'judge_symbols.';


CREATE OR REPLACE FUNCTION pricing.answer_pairs(
    changed integer, accepted integer, answers pricing.pair_answer[] DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    IF answers = '{}' THEN
        RETURN jsonb_build_object('changed', changed, 'accepted', accepted, 'doubtful', 0, 'refused', 0,
                                  'pairs', '[]'::jsonb, 'faults', '[]'::jsonb);
    END IF;
    RETURN (
        SELECT jsonb_build_object(
            'changed', changed,
            'accepted', accepted + count(*) FILTER (WHERE a.outcome = 'accepted'),
            'doubtful', count(*) FILTER (WHERE a.outcome = 'doubtful'),
            'refused', count(*) FILTER (WHERE a.outcome = 'refused'),
            'pairs', coalesce(
                jsonb_agg(to_jsonb(a) - 'place' || jsonb_build_object('reason', pricing.say_answer(a)) ORDER BY a.place)
                    FILTER (WHERE a.outcome <> 'accepted' OR a.symbol <> a.given), '[]'),
            'faults', pricing.faults_of(answers))
        FROM unnest(answers) AS a);
END $$;
COMMENT ON FUNCTION pricing.answer_pairs(integer, integer, pricing.pair_answer[]) IS
    'The answer to a request for pairs: how many are new, accepted, doubtful and refused, and the pairs not accepted '
    'as written with their faults; also the accepted pairs.';


CREATE OR REPLACE FUNCTION pricing.name_for_people(symbol text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN pricing.is_sane_symbol(symbol) THEN symbol ELSE quote_literal(left(symbol, 60)) END
$$;
COMMENT ON FUNCTION pricing.name_for_people(text) IS 'A symbol as somebody typed it, quoted if it cannot be one.';


CREATE OR REPLACE FUNCTION pricing.say_answer(answer pricing.pair_answer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT pg_catalog.format(
               CASE answer.code WHEN 'symbol_refused' THEN '%s is not a symbol of %s: %s.'
                                WHEN 'symbol_doubtful' THEN '%s of %s is accepted, but doubtful: %s.'
                                ELSE '%s of %s is refused: %s.' END,
               pricing.name_for_people(answer.given), left(answer.data_type, 60), answer.reason)
           || coalesce(' ' || pricing.say_meant(answer.proposal), '')
    WHERE answer.code IS NOT NULL
$$;
COMMENT ON FUNCTION pricing.say_answer(pricing.pair_answer) IS
    'A sentence that says why a pair is doubtful or refused; NULL = it is neither.';


CREATE OR REPLACE FUNCTION pricing.faults_of(answers pricing.pair_answer[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH kinds AS (
        -- Everything after the first sentence of a reason is about one pair only.
        SELECT a.outcome, a.code, split_part(a.reason, '. ', 1) AS reason, count(*) AS pairs, min(a.place) AS first,
               min(pricing.say_answer(a)) AS only_one,
               string_agg(DISTINCT left(a.data_type, 60), ' or ') AS data_types,
               array_agg(DISTINCT pricing.name_for_people(a.given)
                                  || coalesce(' (perhaps ' || a.proposal || ')', '')) AS names
        FROM unnest(answers) AS a WHERE a.outcome <> 'accepted' GROUP BY 1, 2, 3)
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'outcome', k.outcome, 'code', k.code, 'pairs', k.pairs,
        'sentence', CASE WHEN k.pairs = 1 THEN k.only_one ELSE pg_catalog.format(
            '%s pairs %s: %s (%s%s).', k.pairs,
            CASE k.code WHEN 'symbol_refused' THEN 'are no symbols of ' || k.data_types
                        WHEN 'symbol_doubtful' THEN 'of ' || k.data_types || ' are accepted, but doubtful'
                        ELSE 'are refused' END,
            k.reason, array_to_string(k.names[:5], ', '),
            CASE WHEN cardinality(k.names) > 5
                 THEN pg_catalog.format(' and %s more', cardinality(k.names) - 5)
                 ELSE '' END) END) ORDER BY k.first), '[]')
    FROM kinds k
$$;
COMMENT ON FUNCTION pricing.faults_of(pricing.pair_answer[]) IS
    'The doubts and refusals among answers, each kind once: a sentence with the number of pairs and a few names.';


CREATE OR REPLACE FUNCTION pricing.all_or_nothing(answer jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF (answer ->> 'refused')::integer > 0 THEN
        RAISE EXCEPTION 'nothing was changed: %', (
            SELECT string_agg(f.fault ->> 'sentence', ' ' ORDER BY f.place) FILTER (WHERE f.place <= 5)
                   || CASE WHEN count(*) > 5
                           THEN pg_catalog.format(' %s more kinds of faults are not listed.', count(*) - 5) ELSE '' END
            FROM jsonb_array_elements(answer -> 'faults') WITH ORDINALITY AS f (fault, place)
            WHERE f.fault ->> 'outcome' = 'refused')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN answer;
END $$;
COMMENT ON FUNCTION pricing.all_or_nothing(jsonb) IS
    'Returns the answer to a request for pairs, or raises an error if one is refused, so that the statement changes '
    'nothing: SELECT pricing.all_or_nothing(pricing.heartbeat(...)).';


CREATE OR REPLACE FUNCTION pricing.begin_pairs(
    kind text, user_id text, data_types text[], symbols text[], at_once boolean, are_renewed boolean DEFAULT false)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET lock_timeout = '2s' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    had record;
    answers pricing.pair_answer[];
    wanted record;
    room record;
BEGIN
    PERFORM pricing.check_user(user_id);
    PERFORM pricing.check_lists(data_types, symbols);
    IF symbols = '{}' THEN
        RETURN pricing.answer_pairs(0, 0);
    END IF;
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true); -- a heartbeat of this transaction may have renewed
    END IF;
    -- What symbols mean stays so until this transaction ends: merge_instruments waits for it.
    LOCK TABLE pricing.symbol_aliases IN ACCESS SHARE MODE;
    -- From here on the sessions of one user take turns: its caps hold for all of them together, and a pair that one of
    -- them is leaving does not count as watched.
    PERFORM pricing.lock_allowance(user_id);
    -- Pairs that the user already has are neither judged nor refused, unless their type was retired.
    SELECT coalesce(array_agg(g.data_type) FILTER (WHERE g.is_had), '{}') AS types,
           coalesce(array_agg(g.symbol) FILTER (WHERE g.is_had), '{}') AS symbols,
           coalesce(array_agg(g.data_type ORDER BY g.place) FILTER (WHERE NOT g.is_had), '{}') AS other_types,
           coalesce(array_agg(g.symbol ORDER BY g.place) FILTER (WHERE NOT g.is_had), '{}') AS other_symbols INTO had
    FROM (SELECT u.data_type, u.symbol, min(u.place) AS place, bool_or(k.symbol IS NOT NULL AND r.is_active) AS is_had
          FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place)
          LEFT JOIN pricing.data_type_registry r USING (data_type)
          LEFT JOIN pricing.pairs_of_user(kind, user_id, data_types, symbols) k USING (data_type, symbol)
          GROUP BY 1, 2) g;
    answers := ARRAY(SELECT j FROM pricing.judge_pairs(had.other_types, had.other_symbols) AS j ORDER BY j.place);
    IF kind = 'watched' THEN
        -- Renew pairs that are watched under another spelling than the given one, and those that locks kept the
        -- heartbeat from renewing.
        PERFORM pricing.heartbeat(user_id, array_agg(k.data_type), array_agg(k.symbol), at_once)
        FROM (SELECT p.data_type, p.symbol
              FROM (SELECT array_agg(a.data_type) AS types, array_agg(a.symbol) AS symbols
                    FROM unnest(answers) AS a WHERE a.symbol <> a.given) s
              CROSS JOIN LATERAL pricing.pairs_of_user(kind, user_id, s.types, s.symbols) p
              UNION
              SELECT h.data_type, h.symbol FROM unnest(had.types, had.symbols) AS h (data_type, symbol)
              WHERE NOT are_renewed AND answers <> '{}') k
        HAVING count(*) > 0;
    END IF;
    SELECT array_agg(g.data_type ORDER BY g.place) AS types, array_agg(g.symbol ORDER BY g.place) AS symbols INTO wanted
    FROM (SELECT a.data_type, a.symbol, min(a.place) AS place
          FROM unnest(answers) AS a WHERE a.outcome <> 'refused' GROUP BY 1, 2) g;
    SELECT array_agg(w.data_type ORDER BY w.place) AS types, array_agg(w.symbol ORDER BY w.place) AS symbols INTO wanted
    FROM unnest(wanted.types, wanted.symbols) WITH ORDINALITY AS w (data_type, symbol, place)
    LEFT JOIN pricing.pairs_of_user(kind, user_id, wanted.types, wanted.symbols) k USING (data_type, symbol)
    WHERE k.symbol IS NULL;
    IF wanted.types IS NULL THEN
        RETURN pricing.answer_pairs(0, cardinality(had.types), answers);
    END IF;

    SELECT * INTO room FROM pricing.admit_pairs(user_id, cardinality(wanted.types), CASE kind
        WHEN 'watched' THEN (SELECT count(*) FROM pricing.active_subscriptions a WHERE a.user_id = begin_pairs.user_id)
        ELSE (SELECT count(*) FROM pricing.holdings h
              WHERE h.user_id = begin_pairs.user_id AND h.status = 'active') END);
    IF room.admitted < cardinality(wanted.types) THEN
        answers := ARRAY(
            SELECT CASE WHEN w.place IS NULL OR w.place <= room.admitted THEN a
                        WHEN w.place > room.fitting
                            THEN ROW(a.place, a.data_type, a.given, NULL, 'refused', 'pairs_per_user', room.too_many,
                                     NULL, NULL)::pricing.pair_answer
                        ELSE ROW(a.place, a.data_type, a.given, NULL, 'refused', 'new_pairs_per_minute', room.too_fast,
                                 NULL, room.retry_after)::pricing.pair_answer END
            FROM unnest(answers) AS a
            LEFT JOIN unnest(wanted.types, wanted.symbols) WITH ORDINALITY AS w (data_type, symbol, place)
                USING (data_type, symbol)
            ORDER BY a.place);
        wanted.types := wanted.types[:room.admitted];
        wanted.symbols := wanted.symbols[:room.admitted];
    END IF;
    IF kind = 'watched' THEN
        INSERT INTO pricing.active_subscriptions AS a (user_id, data_type, symbol, subscribed_at, last_seen_at)
        SELECT begin_pairs.user_id, u.data_type, u.symbol, now_, now_
        FROM unnest(wanted.types, wanted.symbols) AS u (data_type, symbol)
        ORDER BY 2, 3 ON CONFLICT ON CONSTRAINT active_subscriptions_pkey DO NOTHING;
    ELSE
        INSERT INTO pricing.holdings AS h (user_id, data_type, symbol, since)
        SELECT begin_pairs.user_id, u.data_type, u.symbol, now_
        FROM unnest(wanted.types, wanted.symbols) AS u (data_type, symbol)
        ORDER BY 2, 3 ON CONFLICT ON CONSTRAINT holdings_pkey
            DO UPDATE SET since = excluded.since, status = 'active', closed_at = NULL, quantity = NULL
            WHERE h.status = 'closed';
    END IF;
    -- The first look queues what is missing or stale; later looks write nothing but the heartbeat.
    IF room.admitted = 0 THEN
        NULL;
    ELSIF at_once THEN
        PERFORM pricing.serve_pairs(kind, wanted.types, wanted.symbols);
    ELSE
        PERFORM pricing.request_pairs(kind, wanted.types, wanted.symbols);
    END IF;
    RETURN pricing.answer_pairs(room.admitted, cardinality(had.types), answers);
END $$;
COMMENT ON FUNCTION pricing.begin_pairs(text, text, text[], text[], boolean, boolean) IS
    'Adds the new pairs of a heartbeat or hold within the user''s caps, requests their prices, and answers each pair.';


CREATE OR REPLACE FUNCTION pricing.check_lengths(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    IF cardinality(data_types) IS DISTINCT FROM cardinality(symbols) OR array_ndims(data_types) > 1 THEN
        RAISE EXCEPTION 'two lists of one length are needed, not % data types and % symbols',
            coalesce(cardinality(data_types), 0), coalesce(cardinality(symbols), 0)
            USING HINT = 'Each pair is a data type and, at the same place, a symbol.',
                ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_lengths(text[], text[]) IS 'Refuses two lists of different length.';


CREATE OR REPLACE FUNCTION pricing.check_lists(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = '' AS $$
BEGIN
    PERFORM pricing.check_lengths(data_types, symbols);
    IF cardinality(symbols) > 10000 THEN
        RAISE EXCEPTION 'a call may name 10000 pairs, not %', cardinality(symbols)
            USING HINT = 'Send the rest in further calls.', ERRCODE = 'invalid_parameter_value';
    ELSIF array_position(data_types, NULL) IS NOT NULL OR array_position(symbols, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a pair is a data type and a symbol, and one of them is NULL'
            USING HINT = 'Leave out pairs whose data type or symbol is not known.', ERRCODE = 'invalid_parameter_value';
    ELSIF EXISTS (SELECT FROM unnest(data_types || symbols) AS s WHERE length(s) > 1000) THEN
        RAISE EXCEPTION 'a name of more than 1000 characters is neither a data type nor a symbol'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION pricing.check_lists(text[], text[]) IS
    'Refuses lists that do not form pairs, more than 10,000 pairs, and texts too long to repeat in an answer.';


CREATE OR REPLACE FUNCTION pricing.taken_symbols(data_types text[], symbols text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken text[];
BEGIN
    SELECT array_agg(DISTINCT u.symbol) INTO taken
    FROM pricing.provider_symbols s JOIN pricing.data_type_registry r USING (asset_class)
    JOIN unnest(data_types, symbols) AS u (data_type, symbol) ON u.data_type = r.data_type AND u.symbol = s.spelling
    WHERE s.symbol <> s.spelling
      AND NOT EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (s.asset_class, s.spelling));
    IF taken IS NOT NULL THEN
        PERFORM pricing.warn('add_demand', taken[1], pg_catalog.format(
            '%s is not an instrument: a provider is asked for another one under this name, so nothing is fetched. '
            '`pricing-pipeline instrument spell` gives and takes back such spellings',
            array_to_string(taken[:5], ', ')), '01000');
    END IF;
    RETURN coalesce(taken, '{}');
END $$;
COMMENT ON FUNCTION pricing.taken_symbols(text[], text[]) IS
    'Symbols without an instrument that are another instrument''s spelling at some provider, so that two would get '
    'one answer; warns of them.';


CREATE OR REPLACE FUNCTION pricing.add_demand(data_types text[], symbols text[], until timestamptz DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '100ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    middle integer := cardinality(symbols) / 2;
    taken text[] := pricing.taken_symbols(data_types, symbols);
BEGIN
    IF taken <> '{}' THEN
        SELECT coalesce(array_agg(u.data_type ORDER BY u.place), '{}'),
               coalesce(array_agg(u.symbol ORDER BY u.place), '{}') INTO data_types, symbols
        FROM unnest(data_types, symbols) WITH ORDINALITY AS u (data_type, symbol, place) WHERE u.symbol <> ALL (taken);
    END IF;
    -- What is new is written in key order. OFFSET: looked up one by one, never joined, however few there were when this
    -- was planned.
    INSERT INTO pricing.instruments (asset_class, symbol)
    SELECT DISTINCT r.asset_class, u.symbol
    FROM unnest(data_types, symbols) AS u (data_type, symbol) JOIN pricing.data_type_registry r USING (data_type)
    WHERE NOT EXISTS (SELECT FROM pricing.instruments i
                      WHERE (i.asset_class, i.symbol) = (r.asset_class, u.symbol) OFFSET 0)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    -- Known pairs are locked so that nothing removes them. For a pair that the clean-up is removing, the insert waits
    -- for its outcome.
    WITH wanted AS MATERIALIZED (SELECT DISTINCT u.data_type, u.symbol
                                 FROM unnest(data_types, symbols) AS u (data_type, symbol)),
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
    -- Another session has not committed one of them: try halves, so that the others need not wait for it.
    until := coalesce(until, clock_timestamp() + interval '1 second');
    IF middle = 0 OR clock_timestamp() > until THEN
        PERFORM pricing.pass_over('add_demand', data_types[1], symbols);
    ELSE
        PERFORM pricing.add_demand(data_types[:middle], symbols[:middle], until);
        PERFORM pricing.add_demand(data_types[middle + 1:], symbols[middle + 1:], until);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.add_demand(text[], text[], timestamptz) IS
    'Creates missing instruments and demand, due at once, except for locked ones, which adopt_pairs picks up, and '
    'other spellings of an instrument.';


CREATE OR REPLACE FUNCTION pricing.lock_allowance(user_id pricing.user_name) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    LOOP
        PERFORM FROM pricing.user_allowances a WHERE a.user_id = lock_allowance.user_id FOR UPDATE;
        EXIT WHEN FOUND;
        -- Since this snapshot, the allowance may have been added and deleted, and other sessions may have added pairs.
        IF current_setting('transaction_isolation') <> 'read committed'
            AND transaction_timestamp() < pricing.clock() - interval '1 hour' THEN
            RAISE EXCEPTION 'this transaction sees pairs as they were an hour ago, so the caps of user % cannot be '
                            'judged',
                left(user_id, 60)
                USING HINT = 'Begin a new transaction, or use READ COMMITTED.', ERRCODE = 'serialization_failure';
        END IF;
        INSERT INTO pricing.user_allowances (user_id, spent_until) VALUES (lock_allowance.user_id, pricing.clock())
        ON CONFLICT ON CONSTRAINT user_allowances_pkey DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.lock_allowance(pricing.user_name) IS
    'Lets only one session of a user begin new pairs until the transaction ends.';


CREATE OR REPLACE FUNCTION pricing.present_caps() RETURNS pricing.user_caps
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    caps pricing.user_caps;
BEGIN
    SELECT * INTO caps FROM pricing.user_caps;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'pricing.user_caps has no row, so the caps of users are unknown'
            USING HINT = 'Put it back: INSERT INTO pricing.user_caps DEFAULT VALUES.', ERRCODE = 'no_data_found';
    END IF;
    RETURN caps;
END $$;
COMMENT ON FUNCTION pricing.present_caps() IS 'The caps of one user.';


CREATE OR REPLACE FUNCTION pricing.admit_pairs(
    user_id text, new_pairs integer, had bigint,
    OUT admitted integer, OUT fitting integer, OUT retry_after integer, OUT too_many text, OUT too_fast text)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    caps pricing.user_caps := pricing.present_caps();
    spent numeric := extract(epoch FROM pricing.spent_by_reads(admit_pairs.user_id, (
                        SELECT count(*) FROM pricing.pair_requests r
                        WHERE r.kind = 'read' AND r.user_id = admit_pairs.user_id))
                    + greatest(interval '0', (SELECT a.spent_until - now_ FROM pricing.user_allowances a
                                              WHERE a.user_id = admit_pairs.user_id)));
BEGIN
    fitting := greatest(0, least(new_pairs, caps.pairs_per_user - had));
    -- Intervals are rounded to microseconds, which must cost nobody a pair.
    admitted := greatest(0, least(fitting, floor((60 - spent) * caps.new_pairs_per_minute / 60 + 0.0001)));
    retry_after := greatest(1, ceil(least(60, spent + 60.0 * fitting / caps.new_pairs_per_minute - 60)));
    too_many := pg_catalog.format(
        'user %s may watch or hold %s pairs at once; leave some first, or raise the cap with `pricing-pipeline limit '
        'set-caps`',
        left(user_id, 60), caps.pairs_per_user);
    too_fast := pg_catalog.format(
        'user %s may begin %s new pairs a minute; send the rest in %s s, or raise the cap with `pricing-pipeline '
        'limit set-caps`',
        left(user_id, 60), caps.new_pairs_per_minute, retry_after);
    IF admitted > 0 THEN
        INSERT INTO pricing.user_allowances AS a (user_id, spent_until)
        VALUES (admit_pairs.user_id, now_ + interval '1 minute' * admitted / caps.new_pairs_per_minute)
        ON CONFLICT ON CONSTRAINT user_allowances_pkey DO UPDATE
            SET spent_until = greatest(now_, a.spent_until)
                + interval '1 minute' * admitted / caps.new_pairs_per_minute;
    END IF;
END $$;
COMMENT ON FUNCTION pricing.admit_pairs(text, integer, bigint) IS
    'How many new pairs a user''s caps admit now (which is booked), how many would fit later and in how many seconds, '
    'and what to say about the rest.';


CREATE OR REPLACE FUNCTION pricing.spent_by_reads(user_id text, pairs bigint) RETURNS interval
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT interval '1 minute' / least(c.new_pairs_per_minute, c.pairs_per_user) * (pairs + coalesce((
               SELECT sum(s.pairs) FROM pricing.read_charges s, pricing.clock() AS now_
               WHERE s.user_id = spent_by_reads.user_id AND s.charged_at > now_ - interval '1 minute'
                 AND s.charged_at <= now_), 0))
    FROM pricing.user_caps c
$$;
COMMENT ON FUNCTION pricing.spent_by_reads(text, bigint) IS
    'How much of a user''s allowance the reads of the last minute, and this many more pairs, use.';


CREATE OR REPLACE FUNCTION pricing.room_for_reads(user_id text, waiting bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
DECLARE
    -- Looked at, never locked: a session that begins pairs may keep it locked for as long as its transaction is open.
    spent interval := (SELECT greatest(a.spent_until - pricing.clock(), interval '0') FROM pricing.user_allowances a
                       WHERE a.user_id = room_for_reads.user_id);
BEGIN
    spent := coalesce(spent, interval '0') + pricing.spent_by_reads(user_id, waiting);
    RETURN greatest(0, floor(
               (60 - extract(epoch FROM spent))
               / extract(epoch FROM interval '1 minute' / least(c.new_pairs_per_minute, c.pairs_per_user))))
    FROM pricing.user_caps c;
END $$;
COMMENT ON FUNCTION pricing.room_for_reads(text, bigint) IS
    'How many more pairs a user''s reads may have fetched now, given this many that already wait.';


CREATE OR REPLACE FUNCTION pricing.raise_tasks(data_types text[], symbols text[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    -- A session that holds the row is claiming or raising it, so there is nothing to wait for.
    UPDATE pricing.api_call_queue_live q SET priority = grown.viewers
    FROM (SELECT x.id, v.viewers
          FROM unnest(data_types, symbols) AS u (data_type, symbol)
          JOIN pricing.api_call_queue_live x USING (data_type, symbol)
          CROSS JOIN LATERAL (SELECT count(*)::integer AS viewers FROM pricing.active_subscriptions a
                              WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol)) v
          WHERE x.window_start = '-infinity' AND x.window_end = 'infinity'
            AND x.status IN ('pending', 'scheduled') AND x.priority < v.viewers
          ORDER BY x.id FOR UPDATE OF x SKIP LOCKED) grown
    WHERE q.id = grown.id
$$;
COMMENT ON FUNCTION pricing.raise_tasks(text[], text[]) IS 'Raises waiting tasks to the number of their viewers.';


CREATE OR REPLACE FUNCTION pricing.unsubscribe(user_id text, data_types text[], symbols text[],
                                               at_once boolean DEFAULT true)
RETURNS integer
-- Planned while nobody watched, this took 40 s for 10,000 pairs, with their rows locked long after the clients had
-- left.
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    gone_types text[];
    gone_symbols text[];
BEGIN
    PERFORM pricing.check_user(user_id);
    PERFORM pricing.check_lengths(data_types, symbols);
    symbols := pricing.spelled(data_types, symbols);
    -- A heartbeat of the same pairs in another session of the user waits for the end of this transaction, and then
    -- enters them again: it found them locked, and would otherwise take them for known.
    PERFORM pricing.lock_allowance(user_id);
    WITH gone AS (
        -- A pair that another session of the user looks at right now stays: the user has not left it.
        DELETE FROM pricing.active_subscriptions a
        USING (SELECT mine.place FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
                   SELECT x.ctid AS place FROM pricing.active_subscriptions x
                   WHERE x.user_id BETWEEN unsubscribe.user_id AND unsubscribe.user_id
                     AND (x.data_type, x.symbol) = (u.data_type, u.symbol)
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
    'Ends subscriptions when a viewer leaves, and records the views (at_once or by request); returns how many ended.';


CREATE OR REPLACE FUNCTION pricing.unnoted_views(data_types text[], symbols text[])
RETURNS TABLE (data_type text, symbol text)
LANGUAGE sql SET search_path = '' AS $$
    -- Looking first: of a hundred viewers in ten minutes one writes, and the others lock nothing.
    SELECT DISTINCT u.data_type, u.symbol
    FROM unnest(data_types, symbols) AS u (data_type, symbol) CROSS JOIN (SELECT pricing.clock() AS at OFFSET 0) now_
    WHERE NOT EXISTS (SELECT FROM pricing.pair_views v WHERE (v.data_type, v.symbol) = (u.data_type, u.symbol)
                                                         AND v.viewed_at > now_.at - interval '10 minutes' OFFSET 0)
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pricing.unnoted_views(text[], text[]) IS
    'Which of these pairs had no view recorded in the last ten minutes.';


CREATE OR REPLACE FUNCTION pricing.note_views(data_types text[], symbols text[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '100ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    INSERT INTO pricing.pair_views AS p (data_type, symbol, viewed_at)
    SELECT n.data_type, n.symbol, now_ FROM pricing.unnoted_views(data_types, symbols) n
    ON CONFLICT (data_type, symbol) DO UPDATE SET viewed_at = excluded.viewed_at WHERE p.viewed_at < excluded.viewed_at;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    NULL; -- another session is noting views of the same pairs
END $$;
COMMENT ON FUNCTION pricing.note_views(text[], text[]) IS
    'Records that pairs were viewed, at most every ten minutes for each; skips all if another session has locked one '
    'of them.';


CREATE OR REPLACE FUNCTION pricing.forget_views() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    forgotten integer;
BEGIN
    DELETE FROM pricing.pair_views v USING (
        SELECT x.data_type, x.symbol FROM pricing.pair_views x
        WHERE x.viewed_at < now_ - interval '48 hours' FOR UPDATE SKIP LOCKED) old
    WHERE (v.data_type, v.symbol) = (old.data_type, old.symbol);
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    DELETE FROM pricing.user_allowances a USING (
        -- After an hour, because lock_allowance would not count what an older snapshot does not see.
        SELECT x.user_id FROM pricing.user_allowances x
        WHERE x.spent_until < now_ - interval '1 hour' FOR UPDATE SKIP LOCKED) whole
    WHERE a.user_id = whole.user_id;
    RETURN forgotten;
END $$;
COMMENT ON FUNCTION pricing.forget_views() IS
    'Forgets views after 48 hours, and allowances that have been full for an hour; returns how many views.';


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
                              WHERE a.data_type = x.data_type AND a.symbol BETWEEN x.symbol AND x.symbol
                              ORDER BY a.symbol OFFSET 0)
              AND NOT EXISTS (SELECT FROM pricing.holdings h
                              WHERE h.data_type = x.data_type AND h.active_symbol BETWEEN x.symbol AND x.symbol
                              ORDER BY h.active_symbol OFFSET 0)
            FOR UPDATE SKIP LOCKED) unwanted
        WHERE d.ctid = unwanted.place
        RETURNING d.data_type, d.symbol)
    SELECT array_agg(t.data_type) AS types, array_agg(t.symbol) AS symbols INTO idle FROM removed_pairs t;
    -- This statement sees earlier viewers and restores their pairs. Later ones wait a tenth of a second in add_demand,
    -- and adopt_pairs finds what that skips.
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT u.data_type, u.symbol, now_ FROM unnest(idle.types, idle.symbols) AS u (data_type, symbol)
    WHERE EXISTS (SELECT FROM pricing.active_subscriptions a
                  WHERE a.data_type = u.data_type AND a.symbol BETWEEN u.symbol AND u.symbol ORDER BY a.symbol OFFSET 0)
       OR EXISTS (SELECT FROM pricing.holdings h
                  WHERE h.data_type = u.data_type AND h.active_symbol BETWEEN u.symbol AND u.symbol
                  ORDER BY h.active_symbol OFFSET 0)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    -- Waiting tasks of such a pair are cancelled, because nobody wants it. Those of scheduled types stay: a viewer may
    -- only have raised a task that the schedule had queued.
    SELECT array_agg(q.id) INTO waiting
    FROM unnest(idle.types, idle.symbols) AS u (data_type, symbol) CROSS JOIN LATERAL (
        SELECT x.id FROM pricing.api_call_queue_live x
        WHERE (x.data_type, x.symbol, x.window_start, x.window_end) = (u.data_type, u.symbol, '-infinity', 'infinity')
          AND x.status IN ('pending', 'scheduled') AND x.priority >= 0 OFFSET 0) q
    WHERE EXISTS (SELECT FROM pricing.data_type_registry r
                  WHERE r.data_type = u.data_type AND r.refresh_strategy = 'on-demand')
      AND NOT EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (u.data_type, u.symbol) OFFSET 0);
    PERFORM pricing.stop_tasks(waiting, 'unwatched', 'nobody watches or holds the pair any more');
    RETURN removed;
END $$;
COMMENT ON FUNCTION pricing.clean_subscriptions() IS
    'Ends subscriptions that are silent for 5 minutes, demand that nobody wants and that does not back off, and its '
    'waiting tasks.';


CREATE OR REPLACE FUNCTION pricing.hold(
    user_id text, data_types text[], symbols text[], quantities numeric[] DEFAULT NULL, at_once boolean DEFAULT true)
RETURNS jsonb
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '2s' AS $$
DECLARE
    answer jsonb := pricing.begin_pairs('held', user_id, data_types, symbols, at_once);
BEGIN
    IF quantities IS NULL THEN
        RETURN answer;
    ELSIF cardinality(quantities) <> cardinality(symbols) OR array_ndims(quantities) > 1 THEN
        RAISE EXCEPTION 'a quantity for each pair is needed, not % quantities for % pairs',
            cardinality(quantities), cardinality(symbols)
            USING HINT = 'The quantity of a pair that keeps its own is NULL.', ERRCODE = 'invalid_parameter_value';
    END IF;
    -- In the order in which `release` locks them, too: it does not take turns with the user's other sessions.
    UPDATE pricing.holdings h SET quantity = mine.quantity
    FROM (SELECT x.user_id, x.data_type, x.symbol, said.quantity
          FROM (SELECT u.data_type, u.symbol, sum(u.quantity) AS quantity
                FROM unnest(data_types, pricing.spelled(data_types, symbols), quantities)
                    AS u (data_type, symbol, quantity)
                WHERE u.quantity IS NOT NULL GROUP BY 1, 2) said
          JOIN pricing.holdings x USING (data_type, symbol)
          WHERE x.user_id = hold.user_id AND x.status = 'active' AND x.quantity IS DISTINCT FROM said.quantity
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE OF x) mine
    WHERE (h.user_id, h.data_type, h.symbol) = (mine.user_id, mine.data_type, mine.symbol);
    RETURN answer;
END $$;
COMMENT ON FUNCTION pricing.hold(text, text[], text[], numeric[], boolean) IS
    'Says that a user holds these pairs until released, queues those without a price (at_once or by request), and '
    'answers as heartbeat does. Quantities replace those of before; NULL leaves one as it is.';


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
COMMENT ON FUNCTION pricing.release(text, text[], text[]) IS
    'Closes holdings, so that pairs that nobody else wants are no longer fetched; returns how many were open.';
