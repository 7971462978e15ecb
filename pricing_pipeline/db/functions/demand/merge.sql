-- Makes one instrument of two, such as two spellings, or the old and the new ticker of a company.

CREATE OR REPLACE FUNCTION pricing.move_rows(
    from_tables text[], key text[], of_class text, old_symbol text, new_symbol text)
RETURNS TABLE (rows_of text, moved bigint, dropped bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    has_class boolean := EXISTS (
        SELECT FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = ('pricing.' || from_tables[1])::regclass
          AND a.attname = 'asset_class'
          AND NOT a.attisdropped);
    class_or_type text := CASE WHEN has_class THEN 'asset_class' ELSE 'data_type' END;
    mine text := CASE WHEN has_class THEN 't.asset_class = $1'
                      ELSE 't.data_type = ANY (ARRAY(SELECT d.data_type FROM pricing.data_type_registry d '
                           'WHERE d.asset_class = $1))' END;
    -- Former rows have the columns of the first table in their jsonb.
    former text := format('pricing.revisions r CROSS JOIN jsonb_populate_record(NULL::pricing.%I, r.old)',
                          from_tables[1]);
    of_kind text := format('r.kind = %L', from_tables[1]);
    -- Columns that cannot be NULL are looked up in an index.
    same text := (SELECT string_agg(format(CASE WHEN a.attnotnull THEN 'x.%1$I = t.%1$I'
                                                ELSE '(x.%1$I = t.%1$I OR x.%1$I IS NULL AND t.%1$I IS NULL)' END,
                                           a.attname), ' AND ')
                  FROM pg_catalog.pg_attribute a
                  WHERE a.attrelid = ('pricing.' || from_tables[1])::regclass
                    AND a.attname = ANY (key || class_or_type));
    -- A value in a file also counts as the new symbol's own.
    taken text := (SELECT string_agg(format(
                              'EXISTS (SELECT FROM %s x WHERE %s AND %s)',
                              CASE f WHEN 'revisions' THEN former ELSE 'pricing.' || f END,
                              CASE f WHEN 'revisions'
                                     THEN format('%s AND r.key = ARRAY[t.%I, $3]', of_kind, class_or_type)
                                     ELSE 'x.symbol = $3' END, same), ' OR ')
                   FROM unnest(from_tables) AS f)
                  || CASE WHEN 'price_history' = ANY (from_tables)
                          THEN ' OR EXISTS (SELECT FROM pricing.moved_days m WHERE m.symbol = $3'
                               ' AND m.data_type = t.data_type'
                               ' AND m.noted_days @> (t.observed_at AT TIME ZONE ''UTC'')::date)' ELSE '' END;
    drops bigint[] := '{}';
BEGIN
    FOREACH rows_of IN ARRAY from_tables LOOP
        EXECUTE CASE rows_of
            WHEN 'revisions'
            THEN format('DELETE FROM pricing.revisions WHERE ctid IN (SELECT r.ctid FROM %s t '
                        'WHERE %s AND t.symbol = $2 AND %s AND (%s))', former, of_kind, mine, taken)
            ELSE format('DELETE FROM pricing.%I t WHERE t.symbol = $2 AND %s AND (%s)', rows_of, mine, taken) END
        USING of_class, old_symbol, new_symbol;
        GET DIAGNOSTICS dropped = ROW_COUNT;
        drops := drops || dropped;
    END LOOP;
    FOR place IN 1 .. cardinality(from_tables) LOOP
        rows_of := from_tables[place];
        EXECUTE CASE rows_of
            WHEN 'revisions'
            THEN format('UPDATE pricing.revisions SET key = ARRAY[key[1], $3], '
                        'old = jsonb_set(old, ''{symbol}'', to_jsonb($3)) '
                        'WHERE ctid IN (SELECT r.ctid FROM %s t WHERE %s AND t.symbol = $2 AND %s)',
                        former, of_kind, mine)
            ELSE format('UPDATE pricing.%I t SET symbol = $3 WHERE t.symbol = $2 AND %s', rows_of, mine) END
        USING of_class, old_symbol, new_symbol;
        GET DIAGNOSTICS moved = ROW_COUNT;
        dropped := drops[place];
        IF moved + dropped > 0 THEN
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.move_rows(text[], text[], text, text, text) IS
    'Moves the rows of one symbol to another, drops those whose key exists there in any of the tables, and counts '
    'both.';


CREATE OR REPLACE FUNCTION pricing.merge_instruments(of_class text, old_symbol text, new_symbol text)
RETURNS TABLE (rows_of text, moved bigint, dropped bigint)
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '2s' AS $$
#variable_conflict use_column
DECLARE
    old_ pricing.instruments;
    new_ pricing.instruments;
    types text[] := ARRAY(SELECT r.data_type FROM pricing.data_type_registry r WHERE r.asset_class = of_class);
    is_new boolean := false;
    obstacle text;
BEGIN
    -- Waits for sessions that have read what a symbol means and enter it; later ones wait, and read it again.
    LOCK TABLE pricing.symbol_aliases IN ACCESS EXCLUSIVE MODE;
    -- In the order of their symbols, as everybody locks them.
    PERFORM FROM pricing.instruments i
    WHERE i.asset_class = of_class AND i.symbol IN (old_symbol, new_symbol)
    ORDER BY i.symbol FOR UPDATE;
    SELECT * INTO old_ FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (of_class, old_symbol);
    SELECT * INTO new_ FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (of_class, new_symbol);
    -- A new name, of no instrument yet.
    IF new_.symbol IS NULL AND old_.symbol IS NOT NULL THEN
        INSERT INTO pricing.instruments SELECT (jsonb_populate_record(old_, jsonb_build_object('symbol', new_symbol))).*
        RETURNING * INTO new_;
        is_new := true;
    END IF;
    -- Waiting tasks are cancelled.
    PERFORM pricing.pause_instruments(ARRAY[old_symbol], true, of_class);
    obstacle := CASE
        WHEN old_.symbol IS NULL THEN format('%s has no instrument %s', of_class, old_symbol)
        WHEN old_symbol = new_symbol THEN format('%s is one instrument already', new_symbol)
        WHEN old_.currency <> new_.currency
            THEN format('the prices of %s are in %s and those of %s in %s, so they are not of one instrument',
                                                        old_symbol, old_.currency, new_symbol, new_.currency)
        WHEN EXISTS (SELECT FROM pricing.data_type_registry r
                     WHERE r.asset_class = of_class AND r.contents NOT IN ('prices', 'documents'))
            THEN format('instruments of the class %s have more than prices and documents, which cannot be merged',
                        of_class)
        WHEN EXISTS (SELECT FROM pricing.moved_days m WHERE m.data_type = ANY (types) AND m.symbol = old_symbol)
            THEN format('a part of the history of %s is in files, which keep their symbols. ', old_symbol)
                 || CASE WHEN is_new THEN 'It has to keep its name'
                         WHEN EXISTS (SELECT FROM pricing.moved_days m
                                      WHERE m.data_type = ANY (types) AND m.symbol = new_symbol)
                         THEN format('So is one of %s, so they stay two: `pricing-pipeline instrument pause %s` '
                                     'stops fetching one of them', new_symbol, old_symbol)
                         ELSE format('Keep that name: `pricing-pipeline instrument merge %s %s`',
                                     new_symbol, old_symbol) END
        WHEN EXISTS (SELECT FROM pricing.price_history h
                     WHERE h.data_type = ANY (types) AND h.symbol IN (old_symbol, new_symbol)
                     GROUP BY h.data_type HAVING count(DISTINCT h.adjustment) > 1)
            THEN format('the history of one of %1$s and %2$s is as traded, that of the other is divided by splits, and '
                        'one history has one basis. `pricing-pipeline instrument pause %1$s` stops fetching one '
                        'of them', old_symbol, new_symbol)
        WHEN EXISTS (SELECT FROM pricing.api_call_queue_live q
                     WHERE q.data_type = ANY (types) AND q.symbol = old_symbol)
            THEN format('a call for %s is under way; try again in a minute', old_symbol) END;
    IF obstacle IS NOT NULL THEN
        RAISE EXCEPTION '%', obstacle USING HINT = 'Nothing has changed.', ERRCODE = 'invalid_parameter_value';
    END IF;

    -- A holder of either holds the one that remains. Both quantities may count the same shares, so they are not added.
    UPDATE pricing.holdings h
    SET since = CASE h.status WHEN 'closed' THEN o.since ELSE h.since END, closed_at = NULL, status = 'active',
        quantity = o.quantity
    FROM pricing.holdings o
    WHERE (o.user_id, o.data_type) = (h.user_id, h.data_type) AND h.data_type = ANY (types)
      AND o.symbol = old_symbol AND h.symbol = new_symbol AND o.status = 'active'
      AND (h.status = 'closed' OR h.quantity IS NULL);
    -- Days for which either has values, or is known to have none.
    UPDATE pricing.history_coverage c SET covered = c.covered + o.covered
    FROM pricing.history_coverage o
    WHERE o.data_type = c.data_type AND c.data_type = ANY (types) AND o.symbol = old_symbol AND c.symbol = new_symbol;
    UPDATE pricing.api_call_queue_dead q SET resolved_at = pricing.clock()
    WHERE q.data_type = ANY (types) AND q.symbol = old_symbol AND q.resolved_at IS NULL;
    -- Facts that are soon learned again.
    DELETE FROM pricing.pair_requests p WHERE p.data_type = ANY (types) AND p.symbol = old_symbol;
    DELETE FROM pricing.route_refusals p WHERE p.data_type = ANY (types) AND p.symbol = old_symbol;
    DELETE FROM pricing.streamed_pairs p WHERE p.data_type = ANY (types) AND p.symbol = old_symbol;
    DELETE FROM pricing.empty_answers p WHERE p.data_type = ANY (types) AND p.symbol = old_symbol;
    -- Existing files are written again, too, under the new symbol.
    PERFORM pricing.note_changes(v.data_type, array_agg(v.observed_at)), pricing.note_latest_changes(v.data_type, 1)
    FROM (SELECT h.data_type, h.symbol, h.observed_at FROM pricing.price_history h
          UNION ALL
          SELECT r.data_type, r.symbol, r.observed_at FROM pricing.price_revisions r) v
    WHERE v.data_type = ANY (types) AND v.symbol = old_symbol
    GROUP BY v.data_type;
    -- The newer of two latest prices counts, with the TTL that a person has set for the remaining symbol.
    UPDATE pricing.latest_prices o SET cache_ttl_minutes = coalesce(l.cache_ttl_minutes, o.cache_ttl_minutes)
    FROM pricing.latest_prices l
    WHERE l.data_type = o.data_type AND o.data_type = ANY (types) AND o.symbol = old_symbol AND l.symbol = new_symbol
      AND o.observed_at > l.observed_at;
    DELETE FROM pricing.latest_prices l USING pricing.latest_prices o
    WHERE l.data_type = o.data_type AND o.data_type = ANY (types) AND o.symbol = old_symbol AND l.symbol = new_symbol
      AND o.observed_at > l.observed_at;
    RETURN QUERY
    SELECT m.*
    FROM (VALUES ('{active_subscriptions}'::text[], '{user_id}'::text[]), ('{holdings}', '{user_id}'),
                 ('{demand}', '{}'),
                 ('{latest_prices}', '{}'),
                 ('{price_history,price_revisions}', '{observed_at}'),
                 ('{documents,revisions}', '{period}'),
                 ('{corporate_actions,revisions}', '{ex_on,kind,part}'),
                 ('{corporate_action_pairs}', '{}'),
                 ('{quarantined_values}', '{observed_at,kind,value,provider}'), ('{restatements}', '{restatement_id}'),
                 ('{price_alerts}', '{recipient,condition,threshold,lasts,user_id}'), ('{plausibility_bounds}', '{}'),
                 ('{provider_symbols}', '{provider}'), ('{provider_routing}', '{}'), ('{confirmed_pairs}', '{}'),
                 ('{history_coverage}', '{}'),
                 ('{absent_days}', '{day}'), ('{provisional_bars}', '{observed_at}'), ('{publish_lags}', '{}'),
                 ('{thinned}', '{}'), ('{pair_views}', '{}'), ('{feed_pairs}', '{token_id}'),
                 ('{listed_pairs}', '{user_id,list}'))
        AS t (names, key)
    CROSS JOIN LATERAL pricing.move_rows(t.names, t.key, of_class, old_symbol, new_symbol) m;
    -- Before the instrument goes, and they with it.
    UPDATE pricing.symbol_aliases a SET symbol = new_symbol WHERE (a.asset_class, a.symbol) = (of_class, old_symbol);
    DELETE FROM pricing.symbol_aliases a WHERE (a.asset_class, a.alias) = (of_class, new_symbol);
    DELETE FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (of_class, old_symbol);
    UPDATE pricing.instruments i
    SET name = coalesce(i.name, old_.name), currency = coalesce(i.currency, old_.currency),
        isin = coalesce(i.isin, old_.isin),
        figi = coalesce(i.figi, old_.figi), listed_on = coalesce(i.listed_on, old_.listed_on),
        verified_at = least(i.verified_at, old_.verified_at), scale = greatest(i.scale, old_.scale),
        -- Otherwise viewers of the old symbol would watch a retired one.
        is_active = i.is_active OR old_.is_active
    WHERE (i.asset_class, i.symbol) = (of_class, new_symbol);
    INSERT INTO pricing.symbol_aliases (asset_class, alias, symbol) VALUES (of_class, old_symbol, new_symbol);
    UPDATE pricing.demand d SET due_at = least(d.due_at, pricing.clock())
    WHERE d.data_type = ANY (types) AND d.symbol = new_symbol;
END $$;
COMMENT ON FUNCTION pricing.merge_instruments(text, text, text) IS
    'Merges one instrument into another of its class with everything stored, watched, held and set; where both have '
    'something, the target''s counts.';
