-- The views of latest prices show the price itself. The new column comes last, so that views built on these still work.
DO $$
DECLARE
    kind record;
BEGIN
    FOR kind IN
        SELECT r.data_type, r.table_name FROM pricing.data_type_registry r
        JOIN pg_catalog.pg_class c ON c.relnamespace = 'pricing'::pg_catalog.regnamespace
             AND c.relname::text = r.table_name AND c.relkind = 'v'
        WHERE r.contents = 'prices' AND NOT r.has_own_table
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE OR REPLACE VIEW pricing.%I AS SELECT symbol, amount, scale, currency, observed_at, fetched_at, '
            'provider, call_id, source_text, cache_ttl_minutes, amount * (''1e-'' || scale)::numeric AS price '
            'FROM pricing.latest_prices WHERE data_type = %L', kind.table_name, kind.data_type);
        EXECUTE pg_catalog.format(
            'COMMENT ON COLUMN pricing.%I.price IS %L', kind.table_name, 'The price, exact: amount / 10^scale.');
    END LOOP;
END $$;
