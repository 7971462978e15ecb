-- The queue's depth counts for each provider by itself: what one cannot take now delays no schedule of another.

DROP FUNCTION IF EXISTS pricing.queue_depth(integer);
DROP FUNCTION IF EXISTS pricing.most_wanted(text, bigint, text[], timestamptz);
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a walk came by it and could not queue it: its provider can take no more, or another session was in the way.';
-- A pair that waits for a schedule is asked for once.
DELETE FROM pricing.pair_requests r USING pricing.pair_requests x
WHERE r.kind = 'scheduled' AND x.kind = 'scheduled' AND (x.data_type, x.symbol) = (r.data_type, r.symbol) AND x.request_id < r.request_id;
