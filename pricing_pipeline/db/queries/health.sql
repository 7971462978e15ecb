-- name: be_quick
-- The caller waits for the answer.
SET LOCAL statement_timeout = '1500ms';

-- name: now_epoch
-- The database's clock in Unix seconds.
SELECT extract(epoch FROM pricing.clock())::float8;
