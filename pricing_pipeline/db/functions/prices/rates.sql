-- Chooses stored exchange rates: those of days, those of times, or the latest, which may be a cross rate. With them
-- prices/conversion.py converts prices; it makes cross rates of the past itself. Nothing here writes.

CREATE OR REPLACE FUNCTION pricing.rates_between(
    from_currency text, to_currency text, of text, first_day date DEFAULT NULL, last_day date DEFAULT NULL,
    as_of timestamptz DEFAULT NULL, archived pricing.price_revisions[] DEFAULT NULL)
RETURNS TABLE (at timestamptz, amount bigint, scale smallint, is_inverse boolean, words text, data_type text,
               symbol text)
LANGUAGE plpgsql STABLE SET search_path = '' SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
#variable_conflict use_column
DECLARE
    direct text := from_currency || '/' || to_currency;
    inverse text := to_currency || '/' || from_currency;
    is_stored boolean := as_of IS NULL AND coalesce(cardinality(archived), 0) = 0;
    units numeric[] := ARRAY(SELECT ('1e-' || scale)::numeric FROM generate_series(0, 18) scale ORDER BY scale);
BEGIN
    RETURN QUERY
    SELECT c.at, c.amount, c.scale, c.is_inverse,
           concat(c.symbol, ' ', c.amount * units[c.scale + 1], ' ',
                  CASE of WHEN 'days' THEN c.at::date::text ELSE to_char(c.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
                  CASE WHEN c.is_inverse THEN ' inverse' END),
           CASE of WHEN 'latest' THEN c.data_type END, CASE of WHEN 'latest' THEN c.symbol END
    FROM (SELECT DISTINCT ON (s.at) s.*
          FROM (SELECT CASE of WHEN 'days' THEN date_bin('24 hours', h.observed_at, '2000-01-01Z') ELSE h.observed_at
                       END AS at,
                       h.observed_at, h.amount, h.scale, pair.is_inverse, r.data_type, pair.symbol,
                       r.fetcher = 'quote' AS is_quote
                FROM pricing.data_type_registry r
                CROSS JOIN (VALUES (direct, to_currency, false), (inverse, from_currency, true))
                    pair (symbol, currency, is_inverse)
                CROSS JOIN LATERAL (
                    (SELECT n.amount, n.scale, n.currency, n.observed_at FROM pricing.price_history n
                     WHERE of <> 'latest' AND is_stored AND n.data_type = r.data_type AND n.symbol = pair.symbol
                       AND n.observed_at >= pricing.start_of(first_day)
                       AND n.observed_at < pricing.start_of(last_day + 1)
                     ORDER BY n.observed_at)
                    UNION ALL
                    SELECT p.amount, p.scale, p.currency, p.observed_at
                    FROM pricing.prices_as_of(r.data_type, pair.symbol, first_day, last_day, as_of, archived) p
                    WHERE of <> 'latest' AND NOT is_stored
                    UNION ALL
                    SELECT l.amount, l.scale, l.currency, l.observed_at FROM pricing.latest_prices l
                    WHERE of = 'latest' AND r.is_active AND l.data_type = r.data_type AND l.symbol = pair.symbol
                    OFFSET 0) h
                WHERE r.asset_class = 'fx' AND (of <> 'times' OR r.fetcher = 'quote') AND h.amount > 0
                  AND (h.currency = pair.currency) IS NOT FALSE) s
          -- A day's bar before a quote of that day, but the quote of now before a bar.
          ORDER BY s.at, s.is_quote = (of <> 'latest'), s.is_inverse, s.data_type, s.observed_at DESC) c;
END $$;
COMMENT ON FUNCTION pricing.rates_between(
    text, text, text, date, date, timestamptz, pricing.price_revisions[]) IS
    'The stored exchange rates of a pair in either spelling, oldest first: one for each of the ''days'', those of all '
    '''times'', or the ''latest'' ones, with their pairs; as believed at a time (NULL = now); archived has the moved '
    'ones.';


CREATE OR REPLACE FUNCTION pricing.pivots(one text, other text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT b.pivot
    FROM (SELECT DISTINCT c.currency,
                 CASE WHEN split_part(i.symbol, '/', 1) = c.currency THEN split_part(i.symbol, '/', 2)
                      ELSE split_part(i.symbol, '/', 1) END AS pivot
          FROM pricing.instruments i
          JOIN unnest(ARRAY[one, other]) c (currency)
              ON c.currency IN (split_part(i.symbol, '/', 1), split_part(i.symbol, '/', 2))
          WHERE i.asset_class = 'fx') b
    GROUP BY b.pivot
    HAVING count(*) = 2
    ORDER BY b.pivot <> 'USD', b.pivot <> 'EUR', b.pivot COLLATE "C"
$$;
COMMENT ON FUNCTION pricing.pivots(text, text) IS
    'The currencies that two others have a cross rate through, by the known pairs: USD, EUR, then the rest.';


CREATE OR REPLACE FUNCTION pricing.rate_of_day(from_currency text, to_currency text, day date,
                                               as_of timestamptz DEFAULT NULL)
RETURNS numeric
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT CASE WHEN r.is_inverse THEN 1.000000000000000000000000000000 / (r.amount * ('1e-' || r.scale)::numeric)
                ELSE r.amount * ('1e-' || r.scale)::numeric END
    FROM pricing.rates_between(from_currency, to_currency, 'days', day, day, as_of, '{}') r
$$;
COMMENT ON FUNCTION pricing.rate_of_day(text, text, date, timestamptz) IS
    'The stored exchange rate of a day, as believed at a time (NULL = now), from either spelling of the pair; NULL = '
    'none.';


CREATE OR REPLACE FUNCTION pricing.latest_rate(
    from_currency text, to_currency text,
    OUT up numeric, OUT down numeric, OUT words text, OUT data_types text[], OUT symbols text[])
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (CASE WHEN a.is_inverse THEN ('1e' || a.scale)::numeric ELSE a.amount END)
           * (CASE WHEN b.is_inverse THEN ('1e' || b.scale)::numeric ELSE coalesce(b.amount, 1) END),
           (CASE WHEN a.is_inverse THEN a.amount ELSE ('1e' || a.scale)::numeric END)
           * (CASE WHEN b.is_inverse THEN b.amount ELSE ('1e' || coalesce(b.scale, 0))::numeric END),
           concat_ws(' * ', a.words, b.words), array_remove(ARRAY[a.data_type, b.data_type], NULL),
           array_remove(ARRAY[a.symbol, b.symbol], NULL)
    FROM (SELECT NULL AS pivot, 0 AS place
          UNION ALL
          SELECT p.pivot, p.place FROM pricing.pivots(from_currency, to_currency) WITH ORDINALITY p (pivot, place)) way
    CROSS JOIN LATERAL (
        SELECT r.* FROM pricing.rates_between(from_currency, coalesce(way.pivot, to_currency), 'latest') r
        ORDER BY r.at DESC LIMIT 1) a
    LEFT JOIN LATERAL (
        SELECT r.* FROM pricing.rates_between(way.pivot, to_currency, 'latest') r
        ORDER BY r.at DESC LIMIT 1) b ON way.pivot IS NOT NULL
    WHERE way.pivot IS NULL OR b.at IS NOT NULL
    -- The pair itself, unless a cross rate is of a newer day.
    ORDER BY date_trunc('day', least(a.at, b.at), 'UTC') DESC, way.place LIMIT 1
$$;
COMMENT ON FUNCTION pricing.latest_rate(text, text) IS
    'The latest rate between two currencies as a fraction, the stored rates that it is made of in words, and their '
    'pairs; NULL = none.';
