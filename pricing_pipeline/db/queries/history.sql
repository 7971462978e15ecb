-- name: months
-- Rows and symbols of a data type per UTC month, between two days.
SELECT (date_trunc('month', observed_at, 'UTC') AT TIME ZONE 'UTC')::date AS month, count(*) AS rows, count(DISTINCT symbol) AS symbols
FROM pricing.price_history
WHERE data_type = :data_type
  AND observed_at >= CAST(:first_day AS timestamp) AT TIME ZONE 'UTC'
  AND observed_at < (CAST(:last_day AS timestamp) + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY 1 ORDER BY 1;

-- name: columns
-- Values of one symbol between two days, oldest first, as an array for each column; times are microseconds since 1970. Texts
-- that are the same in all rows are in one row's array.
SELECT array_agg((date_part('epoch', h.observed_at) * 1000000)::bigint) AS observed_at,
       array_agg((date_part('epoch', h.recorded_at) * 1000000)::bigint) AS fetched_at,
       array_agg(h.amount) AS close, array_agg(h.open_amount) AS open, array_agg(h.high_amount) AS high, array_agg(h.low_amount) AS low,
       array_agg(h.scale) AS scale, array_agg(h.volume::text) AS volume, array_agg(h.call_id) AS call_id,
       CASE WHEN min(h.currency) = max(h.currency) AND count(h.currency) = count(*) THEN ARRAY[min(h.currency)] ELSE array_agg(h.currency) END
           AS currency,
       CASE WHEN min(h.adjustment) = max(h.adjustment) THEN ARRAY[min(h.adjustment)] ELSE array_agg(h.adjustment) END AS adjustment,
       CASE WHEN min(h.provider) = max(h.provider) THEN ARRAY[min(h.provider)] ELSE array_agg(h.provider) END AS provider
FROM pricing.prices_as_of(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date), CAST(:as_of AS timestamptz)) h;
