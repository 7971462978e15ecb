-- name: months
-- Rows and symbols of a data type per UTC month, between two days.
SELECT (date_trunc('month', observed_at, 'UTC') AT TIME ZONE 'UTC')::date AS month, count(*) AS rows,
       count(DISTINCT symbol) AS symbols
FROM pricing.price_history
WHERE data_type = :data_type
  AND observed_at >= CAST(:first_day AS timestamp) AT TIME ZONE 'UTC'
  AND observed_at < (CAST(:last_day AS timestamp) + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY 1
ORDER BY 1;

-- name: symbols
-- Symbols of a type with values between two days, in the database or in a file; with a time also those that had some.
SELECT i.symbol
FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
CROSS JOIN (SELECT CAST(CAST(:first_day AS date) AS timestamp) AT TIME ZONE 'UTC' AS since,
                   CAST(CAST(:last_day AS date) + 1 AS timestamp) AT TIME ZONE 'UTC' AS before) span
WHERE r.data_type = :data_type
  AND (EXISTS (SELECT FROM pricing.price_history h
               WHERE h.data_type = :data_type AND h.symbol = i.symbol
                 AND h.observed_at >= span.since AND h.observed_at < span.before)
       OR EXISTS (SELECT FROM pricing.moved_days m
                  WHERE (m.data_type, m.symbol) = (r.data_type, i.symbol)
                    AND m.noted_days && daterange(CAST(:first_day AS date), CAST(:last_day AS date), '[]'))
       OR (CAST(:as_of AS timestamptz) IS NOT NULL
           AND EXISTS (SELECT FROM pricing.price_revisions v
                       WHERE v.data_type = :data_type AND v.symbol = i.symbol
                         AND v.observed_at >= span.since AND v.observed_at < span.before)))
ORDER BY i.symbol COLLATE "C";

-- name: parts
-- Spans of whole UTC days with values of one symbol, so that none has many more than so many rows; what was believed is
-- counted, too. One span, if it has no more values: they are counted three times as fast as they are numbered.
WITH one AS MATERIALIZED (
    SELECT CAST(:as_of AS timestamptz) IS NULL AND NOT EXISTS (
        SELECT FROM pricing.price_history h
        WHERE h.data_type = :data_type AND h.symbol = :symbol
          AND h.observed_at >= CAST(CAST(:first_day AS date) AS timestamp) AT TIME ZONE 'UTC'
          AND h.observed_at < CAST(CAST(:last_day AS date) + 1 AS timestamp) AT TIME ZONE 'UTC'
        ORDER BY h.observed_at OFFSET CAST(:rows AS bigint)) AS is_enough)
SELECT CAST(:first_day AS date) AS first_day, CAST(:last_day AS date) AS last_day FROM one
WHERE one.is_enough AND CAST(:first_day AS date) <= CAST(:last_day AS date) -- the rest of a span may be in files
UNION ALL
SELECT day, coalesce(lead(day) OVER (ORDER BY day) - 1, CAST(:last_day AS date))
FROM (SELECT DISTINCT (observed_at AT TIME ZONE 'UTC')::date AS day
      FROM (SELECT h.observed_at, row_number() OVER (ORDER BY h.observed_at) - 1 AS place
            FROM (SELECT data_type, symbol, observed_at FROM pricing.price_history
                  UNION ALL
                  SELECT data_type, symbol, observed_at FROM pricing.price_revisions
                  WHERE CAST(:as_of AS timestamptz) IS NOT NULL) h
            WHERE h.data_type = :data_type AND h.symbol = :symbol
              AND h.observed_at >= CAST(CAST(:first_day AS date) AS timestamp) AT TIME ZONE 'UTC'
              AND h.observed_at < CAST(CAST(:last_day AS date) + 1 AS timestamp) AT TIME ZONE 'UTC'
              AND NOT (SELECT one.is_enough FROM one)) numbered
      WHERE place % CAST(:rows AS bigint) = 0) starts
ORDER BY 1;

-- name: columns
-- Values of one symbol between two days, oldest first, a row in all: each column as frames.py reads it. Numbers and
-- times stand side by side as they are sent. A missing amount is the least number, a missing text a byte no text has.
SELECT string_agg(timestamptz_send(h.observed_at), '') AS observed_at,
       string_agg(timestamptz_send(h.recorded_at), '') AS fetched_at,
       string_agg(coalesce(int8send(h.open_amount), '\x8000000000000000'), '') AS open,
       string_agg(coalesce(int8send(h.high_amount), '\x8000000000000000'), '') AS high,
       string_agg(coalesce(int8send(h.low_amount), '\x8000000000000000'), '') AS low,
       string_agg(int8send(h.amount), '') AS close,
       string_agg(int2send(h.scale), '') AS scale,
       string_agg(coalesce(h.volume::text, ''), ' ') AS volume,
       string_agg(coalesce(textsend(h.currency), '\xff'), '\x00') AS currency,
       string_agg(textsend(h.adjustment), '\x00') AS adjustment,
       string_agg(textsend(h.provider), '\x00') AS provider,
       string_agg(int8send(h.call_id), '') AS call_id,
       string_agg(coalesce(textsend(h.quality), '\xff'), '\x00') AS quality,
       (SELECT pricing.is_daily(r.fetcher)
        FROM pricing.data_type_registry r
        WHERE r.data_type = :data_type) AS is_daily
FROM pricing.prices_as_of(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                          CAST(:as_of AS timestamptz),
                          pricing.read_moved(CAST(:moved AS jsonb))) h;

-- name: adjusted_columns
-- The same on another basis than it may be stored on: prices are decimals, so there is no scale.
SELECT string_agg(timestamptz_send(h.observed_at), '') AS observed_at,
       string_agg(timestamptz_send(h.recorded_at), '') AS fetched_at,
       string_agg(coalesce(h.open::text, ''), ' ') AS open,
       string_agg(coalesce(h.high::text, ''), ' ') AS high,
       string_agg(coalesce(h.low::text, ''), ' ') AS low,
       string_agg(h.close::text, ' ') AS close,
       NULL AS scale,
       string_agg(coalesce(h.volume::text, ''), ' ') AS volume,
       string_agg(coalesce(textsend(h.currency), '\xff'), '\x00') AS currency,
       string_agg(textsend(h.adjustment), '\x00') AS adjustment,
       string_agg(textsend(h.provider), '\x00') AS provider,
       string_agg(int8send(h.call_id), '') AS call_id,
       string_agg(coalesce(textsend(h.quality), '\xff'), '\x00') AS quality,
       (SELECT pricing.is_daily(r.fetcher)
        FROM pricing.data_type_registry r
        WHERE r.data_type = :data_type) AS is_daily
FROM pricing.adjusted_prices(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                             CAST(:as_of AS timestamptz), :adjust,
                             pricing.read_moved(CAST(:moved AS jsonb)),
                             CAST(:read_until AS date)) h;
