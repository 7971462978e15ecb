-- name: arrange
-- A type of quotes that are old after a minute by day and night, from a provider without limits.
WITH provider AS (
    UPDATE pricing.data_collectors SET is_active = true, base_url = %(url)s, max_in_flight = 10 WHERE provider = 'twelvedata'),
unlimited AS (DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata'),
batches AS (UPDATE pricing.provider_capabilities SET batch_size = 100 WHERE provider = 'twelvedata' AND fetcher = 'quote'),
instruments AS (
    INSERT INTO pricing.instruments (asset_class, symbol, currency, verified_at)
    SELECT 'equity', prefix || n, 'USD', now() FROM unnest(ARRAY['S', 'C']) AS prefix, generate_series(1, %(pairs)s) AS n)
INSERT INTO pricing.data_type_registry (data_type, description, asset_class, fetcher, default_ttl_minutes)
VALUES ('minute_quote', 'Old after a minute', 'equity', 'quote', 1);

-- name: watch
-- A heartbeat of one viewer for so many pairs.
SELECT pricing.heartbeat('viewer ' || %(viewer)s, array_fill(CAST('minute_quote' AS text), ARRAY[cardinality(s)]), s)
FROM (SELECT CAST(%(symbols)s AS text[])) AS list (s);

-- name: leave_all
SELECT pricing.unsubscribe(a.user_id, array_agg(a.data_type), array_agg(a.symbol)) FROM pricing.active_subscriptions a GROUP BY a.user_id;

-- name: is_idle
SELECT NOT EXISTS (SELECT FROM pricing.drains d WHERE d.finished_at IS NULL AND d.lease_until > pricing.clock());

-- name: fetched
-- How many of the symbols have had a price since a time.
SELECT count(*) FROM pricing.latest_prices l
WHERE l.data_type = 'minute_quote' AND l.symbol = ANY (%(symbols)s) AND l.fetched_at >= %(since)s;

-- name: cold
-- The run that fetched the symbols' first prices. Seconds from a time until it was requested, until it drained, until its
-- first call was claimed, and until each price was stored.
SELECT d.run_id, extract(epoch FROM d.requested_at - %(since)s)::float8, extract(epoch FROM d.started_at - %(since)s)::float8,
       extract(epoch FROM s.claimed_at - %(since)s)::float8, s.seconds
FROM (SELECT array_agg(extract(epoch FROM t.finished_at - %(since)s)::float8) AS seconds, min(t.finished_at) AS first,
             min(t.claimed_at) AS claimed_at
      FROM pricing.api_call_queue_completed t
      WHERE t.data_type = 'minute_quote' AND t.symbol = ANY (%(symbols)s) AND t.finished_at >= %(since)s) s
CROSS JOIN LATERAL (SELECT x.run_id, x.requested_at, x.started_at FROM pricing.drains x
                    WHERE x.started_at < s.first ORDER BY x.started_at DESC LIMIT 1) d;

-- name: warm
-- Seconds from the end of each price's minute until the next was stored, and those of them before it was queued, and
-- before its call was made.
SELECT extract(epoch FROM t.finished_at - p.due_at)::float8, extract(epoch FROM t.enqueued_at - p.due_at)::float8,
       extract(epoch FROM t.claimed_at - p.due_at)::float8
FROM (SELECT h.symbol, h.call_id, lag(h.fetched_at) OVER (PARTITION BY h.symbol ORDER BY h.fetched_at) + interval '1 minute' AS due_at
      FROM pricing.price_history h WHERE h.data_type = 'minute_quote') p
JOIN pricing.api_call_queue_completed t ON t.data_type = 'minute_quote' AND (t.symbol, t.call_id) = (p.symbol, p.call_id)
WHERE p.due_at >= %(since)s;

-- name: now
SELECT pricing.clock();

-- name: watched_and_fresh
-- Watched pairs, and those of them whose price is less than a minute and two seconds old.
SELECT count(*), count(*) FILTER (WHERE l.fetched_at > pricing.clock() - interval '62 seconds')
FROM pricing.active_subscriptions a LEFT JOIN pricing.latest_prices l USING (data_type, symbol);
