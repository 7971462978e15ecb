-- A history has one basis: as traded, or divided by splits. It changes as a whole. Sessions that store days share a
-- lock on the instrument, and a session that changes the basis holds it alone: otherwise another could store a day on
-- the old basis.

CREATE OR REPLACE FUNCTION pricing.lock_basis(wanted_type text, from_provider text, symbols text[])
RETURNS TABLE (symbol text, first_day date, last_day date, is_own boolean, is_asked boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    PERFORM FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
    WHERE r.data_type = wanted_type AND i.symbol = ANY (symbols) ORDER BY i.symbol FOR UPDATE OF i;
    RETURN QUERY
    SELECT w.symbol, (min(h.observed_at) AT TIME ZONE 'UTC')::date, (max(h.observed_at) AT TIME ZONE 'UTC')::date,
           count(*) FILTER (WHERE h.provider = from_provider) * 2 > count(*),
           -- A requested task may wait longer than a day for its turn.
           EXISTS (SELECT FROM pricing.restatements x LEFT JOIN pricing.backfills b USING (backfill_id)
                   WHERE (x.data_type, x.symbol, x.provider, x.kind) = (wanted_type, w.symbol, from_provider, 'basis')
                     AND (b.requested_at > now_ - interval '1 day' OR EXISTS (
                          SELECT FROM pricing.api_call_queue_live q
                          WHERE (q.data_type, q.symbol, q.backfill_id) = (x.data_type, x.symbol, x.backfill_id))))
    FROM unnest(symbols) AS w (symbol)
    JOIN pricing.price_history h ON h.data_type = wanted_type AND h.symbol = w.symbol
    GROUP BY w.symbol;
END $$;
COMMENT ON FUNCTION pricing.lock_basis(text, text, text[]) IS
    'Locks histories that may change their basis: first and last day of each, whether most of it is this provider''s, '
    'and whether all of it was requested.';


CREATE OR REPLACE FUNCTION pricing.change_basis(
    wanted_type text, wanted_symbol text, from_call bigint, basis text, brought timestamptz[], may_leave boolean)
RETURNS boolean
-- With the owner's rights: no worker may delete prices. A value that leaves a history here stays as a revision.
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    were pricing.price_history[];
BEGIN
    IF NOT may_leave AND EXISTS (
        SELECT FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
          AND h.observed_at NOT IN (SELECT b FROM unnest(brought) AS b)) THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM pricing.price_history h
        WHERE h.data_type = wanted_type AND h.symbol = wanted_symbol
          AND h.observed_at NOT IN (SELECT b FROM unnest(brought) AS b)
        RETURNING h AS old)
    SELECT array_agg(g.old) INTO were FROM gone g;
    PERFORM pricing.keep_revisions(were, now_, from_call) WHERE were IS NOT NULL;
    -- Released, these would be stored as if they were on the new basis. Values that are still doubted are quarantined
    -- again, by this call.
    DELETE FROM pricing.quarantined_values q
    WHERE q.data_type = wanted_type AND q.symbol = wanted_symbol
      AND q.status = 'quarantined' AND q.bar ->> 'adjustment' <> basis;
    -- The newest price is the same on every basis.
    UPDATE pricing.latest_prices l SET adjustment = basis WHERE l.data_type = wanted_type AND l.symbol = wanted_symbol;
    RETURN true;
END $$;
COMMENT ON FUNCTION pricing.change_basis(text, text, bigint, text, timestamptz[], boolean) IS
    'Prepares a history for a call on another basis: other days become revisions, quarantined values on the old basis '
    'are deleted; false, without a change, if days must not leave.';
