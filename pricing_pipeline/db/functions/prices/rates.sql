-- Says which stored exchange rates count. With them prices/conversion.py converts prices, and history.sql payments.
-- Nothing here writes.

CREATE OR REPLACE FUNCTION pricing.sources_of_rates(from_currency text, to_currency text)
RETURNS TABLE (place bigint, data_type text, symbol text, currency text, is_inverse boolean, is_quote boolean)
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT row_number() OVER (ORDER BY r.fetcher = 'quote', pair.is_inverse, r.data_type), r.data_type, pair.symbol,
           pair.currency, pair.is_inverse, r.fetcher = 'quote'
    FROM pricing.data_type_registry r
    CROSS JOIN (VALUES (from_currency || '/' || to_currency, to_currency, false),
                       (to_currency || '/' || from_currency, from_currency, true)) pair (symbol, currency, is_inverse)
    WHERE r.asset_class = 'fx'
$$;
COMMENT ON FUNCTION pricing.sources_of_rates(text, text) IS
    'Where rates between two currencies of the past may be stored, and in which currency. For one day the first place '
    'counts: a bar before a quote, then the pair itself before its inverse.';


CREATE OR REPLACE FUNCTION pricing.rates_between(
    from_currency text, to_currency text, of_days boolean, first_day date, last_day date, as_of timestamptz,
    moved pricing.price_revisions[])
RETURNS TABLE (data_type text, symbol text, has_moved boolean, is_inverse boolean, times bytea, amounts bytea,
               scales bytea)
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.data_type, s.symbol,
           EXISTS (SELECT FROM pricing.moved_days m
                   WHERE (m.data_type, m.symbol) = (s.data_type, s.symbol)
                     AND m.noted_days && daterange(first_day, last_day, '[]')),
           s.is_inverse, c.times, c.amounts, c.scales
    FROM pricing.sources_of_rates(from_currency, to_currency) s
    CROSS JOIN LATERAL (
        SELECT string_agg(timestamptz_send(h.observed_at), '') AS times, string_agg(int8send(h.amount), '') AS amounts,
               string_agg(int2send(h.scale), '') AS scales
        FROM (SELECT n.observed_at, n.amount, n.scale, n.currency
              FROM pricing.price_history n -- directly: twenty years take half of the time
              WHERE as_of IS NULL AND moved IS NULL AND n.data_type = s.data_type AND n.symbol = s.symbol
                AND n.observed_at >= pricing.start_of(first_day) AND n.observed_at < pricing.start_of(last_day + 1)
              UNION ALL
              SELECT p.observed_at, p.amount, p.scale, p.currency
              FROM pricing.prices_as_of(s.data_type, s.symbol, first_day, last_day, as_of, coalesce(moved, '{}')) p
              WHERE as_of IS NOT NULL OR moved IS NOT NULL) h
        WHERE h.amount > 0 AND (h.currency = s.currency) IS NOT FALSE) c
    WHERE of_days OR s.is_quote
    ORDER BY s.place;
END $$;
COMMENT ON FUNCTION pricing.rates_between(
    text, text, boolean, date, date, timestamptz, pricing.price_revisions[]) IS
    'The rates of some days by source, in columns without an order, as believed at a time (NULL = now), and whether '
    'some have moved to files; those are in moved.';


CREATE OR REPLACE FUNCTION pricing.rate_of_day(
    from_currency text, to_currency text, day date, as_of timestamptz DEFAULT NULL,
    moved pricing.price_revisions[] DEFAULT '{}')
RETURNS numeric
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN s.is_inverse THEN 1.000000000000000000000000000000 / (h.amount * ('1e-' || h.scale)::numeric)
                ELSE h.amount * ('1e-' || h.scale)::numeric END
    FROM pricing.sources_of_rates(from_currency, to_currency) s
    CROSS JOIN LATERAL pricing.prices_as_of(s.data_type, s.symbol, day, day, as_of, moved) h
    WHERE h.amount > 0 AND (h.currency = s.currency) IS NOT FALSE
    ORDER BY s.place, h.observed_at DESC LIMIT 1
$$;
COMMENT ON FUNCTION pricing.rate_of_day(text, text, date, timestamptz, pricing.price_revisions[]) IS
    'The stored exchange rate of a day, as believed at a time (NULL = now), from the pair or its inverse; NULL = '
    'none. Moved rates are in moved.';
