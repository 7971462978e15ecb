-- name: first_price
-- When the first price was stored, in Unix seconds.
SELECT CAST(extract(epoch FROM min(fetched_at)) AS double precision) FROM pricing.latest_prices;
