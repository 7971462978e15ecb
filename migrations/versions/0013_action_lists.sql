-- Dividends and splits can be asked for by themselves: lists that are kept as documents, and stored as corporate actions.

ALTER TABLE pricing.data_type_registry
    DROP CONSTRAINT fetcher_is_known,
    ADD CONSTRAINT fetcher_is_known
        CHECK (fetcher IN ('quote', 'daily_bars', 'nav', 'profile', 'earnings', 'income_statement', 'dividends', 'splits'));

INSERT INTO pricing.provider_capabilities
    (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol, max_window_days, bytes_per_day, routes_new_types)
SELECT c.provider, f.fetcher, 1, 1, 1, 0, 1, 0, true
FROM pricing.data_collectors c CROSS JOIN (VALUES ('dividends'), ('splits')) AS f (fetcher)
WHERE c.provider = 'fmp' ORDER BY f.fetcher ON CONFLICT DO NOTHING;
