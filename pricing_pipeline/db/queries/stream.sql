-- name: look
-- Log changes of streamed pairs, and start streaming some pairs.
-- A restored backup is another log, with other positions.
SELECT l.head_position, l.kept_from, pg_catalog.format('%s-%s', h.log_id, h.tableoid) AS log
FROM pricing.look_for_streams(CAST(:data_types AS text[]), CAST(:symbols AS text[])) l
CROSS JOIN pricing.stream_head h;

-- name: events
-- What changed after a position, in order: about some pairs, or about all.
SELECT e.position, e.is_new_price, e.symbol, e.data_type, e.state, e.sentence, e.since, e.next_at, e.amount, e.scale,
       a.is_daily, e.currency, e.observed_at, e.fetched_at, e.noted_at, e.verdict, a.paused, e.provider,
       a.provider_active, a.frozen_since
FROM pricing.stream_events e CROSS JOIN LATERAL pricing.about_price(e.data_type, e.symbol, e.provider) a
WHERE e.position > :after AND e.position <= :until
  AND (CAST(:symbols AS text[]) IS NULL
       OR (e.data_type, e.symbol) IN (SELECT * FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[]))))
ORDER BY e.position;

-- name: states
-- The state of some pairs as streams have it, and the position since which the log has all their events.
SELECT s.since_position, true AS is_new_price, s.symbol, s.data_type, s.state, s.sentence, s.since, s.next_at, s.amount,
       s.scale, a.is_daily, s.currency, s.observed_at, s.fetched_at, pricing.clock() AS noted_at, s.verdict, a.paused,
       s.provider, a.provider_active, a.frozen_since
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol)
JOIN pricing.streamed_pairs s USING (data_type, symbol)
CROSS JOIN LATERAL pricing.about_price(s.data_type, s.symbol, s.provider) a
ORDER BY s.data_type, s.symbol;

-- name: watched
-- The pairs of active data types of prices that some users watch.
SELECT a.user_id, a.data_type, a.symbol
FROM pricing.active_subscriptions a JOIN pricing.data_type_registry r USING (data_type)
WHERE a.user_id = ANY (CAST(:users AS text[])) AND r.is_active AND r.contents = 'prices';

-- name: renew
-- Renew all subscriptions of a user. Rows that another session has locked are being renewed or left there.
UPDATE pricing.active_subscriptions a SET last_seen_at = pricing.clock()
WHERE a.ctid = ANY (ARRAY(
    SELECT x.ctid FROM pricing.active_subscriptions x JOIN pricing.data_type_registry r USING (data_type)
    WHERE x.user_id = :user AND r.is_active AND r.contents = 'prices' FOR NO KEY UPDATE OF x SKIP LOCKED));

-- name: not_streamed
-- The first of some data types that has no prices to stream.
SELECT u FROM unnest(CAST(:data_types AS text[])) AS u
WHERE NOT EXISTS (SELECT FROM pricing.data_type_registry r
                  WHERE r.data_type = u AND r.is_active AND r.contents = 'prices')
ORDER BY 1 LIMIT 1;
