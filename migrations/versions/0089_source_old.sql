-- Whether a source has nothing newer is judged wherever freshness is, also over many pairs at once.
CREATE OR REPLACE VIEW pricing.latest_answers AS
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes, observed_at FROM pricing.latest_prices
    UNION ALL
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes, NULL::timestamptz FROM pricing.confirmed_pairs
    UNION ALL
    SELECT e.data_type, e.symbol, e.fetched_at, NULL::integer, NULL::timestamptz FROM pricing.empty_answers e
    WHERE NOT EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = e.data_type AND l.symbol = e.symbol OFFSET 0);
COMMENT ON COLUMN pricing.latest_answers.observed_at IS 'The source''s time of the price; NULL = it is none.';

DROP FUNCTION IF EXISTS pricing.newest_expected(pricing.data_type_registry, pricing.instruments, timestamptz, interval);
DROP FUNCTION IF EXISTS pricing.why_judged_fresh(pricing.data_type_registry, pricing.instruments, pricing.latest_prices, pricing.demand, timestamptz, interval);
DROP FUNCTION IF EXISTS pricing.streams_to_judge(timestamptz, interval);
