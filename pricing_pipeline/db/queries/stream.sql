-- name: look
-- Note what has changed about streamed pairs; some are streamed from now on.
-- A restored backup is another log: its positions say something else.
SELECT l.head_position, l.kept_from, pg_catalog.format('%s-%s', h.log_id, h.tableoid) AS log
FROM pricing.look_for_streams(CAST(:data_types AS text[]), CAST(:symbols AS text[])) l CROSS JOIN pricing.stream_head h;

-- name: events
-- What changed after a position, in order.
SELECT position, data_type, symbol, is_new_price, amount, scale, currency, observed_at, fetched_at, provider, is_fresh, state, sentence,
       since, next_at
FROM pricing.stream_events WHERE position > :after AND position <= :until ORDER BY position;

-- name: events_of_pairs
-- What changed about some pairs after a position, in order.
SELECT e.position, e.data_type, e.symbol, e.is_new_price, e.amount, e.scale, e.currency, e.observed_at, e.fetched_at, e.provider,
       e.is_fresh, e.state, e.sentence, e.since, e.next_at
FROM pricing.stream_events e
JOIN (SELECT DISTINCT u.data_type, u.symbol FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol)) u
    USING (data_type, symbol)
WHERE e.position > :after AND e.position <= :until ORDER BY e.position;

-- name: states
-- The state of some pairs as streams have it, and the position since which the log has all their events.
SELECT s.since_position, s.data_type, s.symbol, true AS is_new_price, s.amount, s.scale, s.currency, s.observed_at, s.fetched_at,
       s.provider, s.is_fresh, s.state, s.sentence, s.since, s.next_at
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol)
JOIN pricing.streamed_pairs s USING (data_type, symbol) ORDER BY s.data_type, s.symbol;

-- name: watched
-- What some users watch, of active data types of prices.
SELECT a.user_id, a.data_type, a.symbol FROM pricing.active_subscriptions a JOIN pricing.data_type_registry r USING (data_type)
WHERE a.user_id = ANY (CAST(:users AS text[])) AND r.is_active AND r.contents = 'prices';

-- name: take_turn
-- Who leaves at the same time takes turns with this transaction.
SELECT pricing.lock_allowance(:user);

-- name: renew
-- A user looks at all that is watched. What another session has locked is being renewed or left there.
UPDATE pricing.active_subscriptions a SET last_seen_at = pricing.clock()
WHERE a.ctid = ANY (ARRAY(
    SELECT x.ctid FROM pricing.active_subscriptions x JOIN pricing.data_type_registry r USING (data_type)
    WHERE x.user_id = :user AND r.is_active AND r.contents = 'prices' FOR NO KEY UPDATE OF x SKIP LOCKED));

-- name: not_streamed
-- The first of some data types that has no prices to stream.
SELECT u FROM unnest(CAST(:data_types AS text[])) AS u
WHERE NOT EXISTS (SELECT FROM pricing.data_type_registry r WHERE r.data_type = u AND r.is_active AND r.contents = 'prices')
ORDER BY 1 LIMIT 1;

-- name: spelled
-- Symbols as the instruments of their data types are spelled.
SELECT pricing.spelled(CAST(:data_types AS text[]), CAST(:symbols AS text[]));
