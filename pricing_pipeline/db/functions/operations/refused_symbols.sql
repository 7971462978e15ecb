-- When refused symbols are trouble of the pipeline, for the alerts symbols_unknown and symbol_vanished.

CREATE OR REPLACE FUNCTION pricing.refused_symbols()
RETURNS TABLE (provider text, data_type text, refused bigint, vanished bigint, is_fault boolean, example text,
               reason text)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH pairs AS MATERIALIZED (
        SELECT d.*, max(d.priced_at) OVER (PARTITION BY d.provider, d.data_type) AS newest_at
        FROM (SELECT DISTINCT ON (x.data_type, x.symbol) x.id, x.provider, x.data_type, x.symbol, x.failure_kind,
                     x.errors -> -1 ->> 'message' AS message, l.fetched_at AS priced_at
              FROM pricing.api_call_queue_dead x
              JOIN pricing.demand w USING (data_type, symbol)
              JOIN pricing.data_type_registry t ON t.data_type = x.data_type AND t.is_active
              JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (t.asset_class, x.symbol)
                  AND i.is_active
                  AND i.update_mode = 'api'
              LEFT JOIN pricing.latest_answers l ON (l.data_type, l.symbol) = (x.data_type, x.symbol)
              WHERE x.status = 'failed' AND x.resolved_at IS NULL AND x.window_end = 'infinity'
              ORDER BY x.data_type, x.symbol, x.id DESC) d
        WHERE pricing.is_symbol_fault(d.failure_kind)),
    kinds AS (
        SELECT p.provider, p.data_type, count(*) AS refused, count(p.priced_at) AS vanished,
               -- Symbols that vanish one by one over the years do not count: a day before the last one vanished.
               count(*) FILTER (WHERE p.priced_at > p.newest_at - interval '1 day') AS at_once,
               (array_agg(p.symbol ORDER BY p.priced_at IS NULL, p.id DESC))[1] AS example,
               (array_agg(p.message ORDER BY p.priced_at IS NULL, p.id DESC))[1] AS reason
        FROM pairs p GROUP BY 1, 2)
    SELECT k.provider, k.data_type, k.refused, k.vanished,
           -- Demand for the type is counted only where this may be a fault.
           CASE WHEN k.at_once > 1 THEN (
                    SELECT k.at_once > 0.05 * count(*) AND (k.at_once >= 5 OR k.at_once = count(*))
                    FROM pricing.demand w JOIN pricing.latest_answers l USING (data_type, symbol)
                    WHERE w.data_type = k.data_type)
                WHEN k.refused >= 5 THEN NOT EXISTS (
                    SELECT FROM pricing.latest_answers l WHERE l.data_type = k.data_type)
                ELSE false END,
           k.example, k.reason
    FROM kinds k
$$;
COMMENT ON FUNCTION pricing.refused_symbols() IS
    'Wanted symbols that a provider refuses, by data type; is_fault if enough are suddenly refused that the provider '
    'must be wrong.';
