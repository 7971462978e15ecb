-- name: now_epoch
-- The database's clock in Unix seconds.
SELECT extract(epoch FROM pricing.clock())::float8;
