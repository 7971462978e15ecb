-- Documents: stored, and read as believed now or at a time.

CREATE OR REPLACE FUNCTION pricing.merge_documents(
    wanted_type text, from_provider text, from_call bigint, answered text[], whole text[],
    symbols text[], periods date[], bodies jsonb[])
RETURNS TABLE (symbol text, added bigint, revised bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH said AS MATERIALIZED (
        SELECT u.symbol, coalesce(u.period, '-infinity') AS period, u.body
        FROM unnest(symbols, periods, bodies) AS u (symbol, period, body)),
    -- Withdraw documents that the provider no longer lists although its answer goes back that far, such as after a
    -- moved date. Older periods are merely out of its reach.
    withdrawn AS MATERIALIZED (
        SELECT d.symbol, d.period, NULL::jsonb AS body FROM pricing.documents d
        JOIN (SELECT s.symbol, min(s.period) AS since FROM said s WHERE s.symbol = ANY (whole) GROUP BY 1) reach
            ON reach.symbol = d.symbol AND d.period >= reach.since
        WHERE d.data_type = wanted_type AND d.body IS NOT NULL
          AND NOT EXISTS (SELECT FROM said s WHERE (s.symbol, s.period) = (d.symbol, d.period))),
    news AS MATERIALIZED (
        SELECT * FROM said UNION ALL SELECT * FROM withdrawn),
    -- jsonb compares numbers by value: 1.50 is 1.5.
    changed AS MATERIALIZED (
        SELECT d.symbol, d.period FROM news n
        JOIN pricing.documents d ON d.data_type = wanted_type AND d.symbol = n.symbol AND d.period = n.period
        WHERE d.body IS DISTINCT FROM n.body),
    written AS (
        INSERT INTO pricing.documents AS d (data_type, symbol, period, body, provider, call_id, recorded_at)
        SELECT wanted_type, n.symbol, n.period, n.body, from_provider, from_call, now_
        FROM news n
        WHERE NOT EXISTS (SELECT FROM pricing.documents x
                          WHERE x.data_type = wanted_type AND x.symbol = n.symbol AND x.period = n.period)
           OR EXISTS (SELECT FROM changed c WHERE c.symbol = n.symbol AND c.period = n.period)
        ORDER BY n.symbol, n.period
        ON CONFLICT (data_type, symbol, period) DO UPDATE
            SET body = excluded.body, provider = excluded.provider, call_id = excluded.call_id,
                recorded_at = excluded.recorded_at
        RETURNING d.symbol)
    SELECT a.symbol,
           (SELECT count(*) FROM written w WHERE w.symbol = a.symbol)
             - (SELECT count(*) FROM changed c WHERE c.symbol = a.symbol),
           (SELECT count(*) FROM changed c WHERE c.symbol = a.symbol)
    FROM (SELECT DISTINCT u.symbol FROM unnest(answered) AS u (symbol)) a ORDER BY a.symbol;
    PERFORM pricing.confirm_pairs(wanted_type, answered, from_provider, from_call);
    PERFORM pricing.verify_instruments(wanted_type, symbols, NULL);
END $$;
COMMENT ON FUNCTION pricing.merge_documents(text, text, bigint, text[], text[], text[], date[], jsonb[]) IS
    'Stores one call''s documents, keeps changed bodies as revisions, withdraws what a complete answer omits, and '
    'returns for each symbol how many were added and revised.';


CREATE OR REPLACE FUNCTION pricing.documents_as_of(wanted_type text, wanted_symbol text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (period date, body jsonb, recorded_at timestamptz, provider text, call_id bigint)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT nullif(b.period, '-infinity'), b.body, b.recorded_at, b.provider, b.call_id
    FROM (SELECT d.period, d.body, d.recorded_at, d.provider, d.call_id FROM pricing.documents d
          WHERE (d.data_type, d.symbol) = (wanted_type, wanted_symbol) AND (as_of IS NULL OR d.recorded_at <= as_of)
          UNION ALL
          SELECT d.period, d.body, d.recorded_at, d.provider, d.call_id
          FROM pricing.revisions_as_of('documents', ARRAY[wanted_type, wanted_symbol],
                                       ARRAY[wanted_type, wanted_symbol], as_of) r
          CROSS JOIN jsonb_populate_record(NULL::pricing.documents, r) d) b
    WHERE b.body IS NOT NULL
    ORDER BY b.period DESC
$$;
COMMENT ON FUNCTION pricing.documents_as_of(text, text, timestamptz) IS
    'A pair''s documents, newest period first, as believed at a time (NULL = now).';
