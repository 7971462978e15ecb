-- name: months
-- Rows and symbols of a data type per UTC month, between two days.
SELECT (date_trunc('month', observed_at, 'UTC') AT TIME ZONE 'UTC')::date AS month, count(*) AS rows, count(DISTINCT symbol) AS symbols
FROM pricing.price_history
WHERE data_type = :data_type
  AND observed_at >= CAST(:first_day AS timestamp) AT TIME ZONE 'UTC'
  AND observed_at < (CAST(:last_day AS timestamp) + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY 1 ORDER BY 1;
