-- name: users
-- Everybody has sent a heartbeat before; prices are fresh, so that only heartbeats are measured.
WITH pairs AS MATERIALIZED (
    SELECT u, k, (ARRAY['equity_quote', 'equity_daily', 'equity_hourly'])[1 + k] AS data_type, 'S' || mod(u * 7 + k, 10000) AS symbol
    FROM generate_series(1, %(users)s) AS u CROSS JOIN generate_series(0, 2) AS k),
demanded AS (
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT DISTINCT data_type, symbol, now() + interval '1 day' FROM pairs ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING 1)
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT DISTINCT 'user' || p.u, p.data_type, p.symbol FROM pairs p CROSS JOIN (SELECT count(*) FROM demanded) AS first
ORDER BY 2, 3, 1;

-- name: data_type
-- Beside the two types of equities in the sample.
INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('equity_hourly', 'quote', 60);

-- name: instruments
INSERT INTO pricing.instruments (asset_class, symbol)
SELECT 'equity', 'S' || s FROM generate_series(0, 9999) AS s ON CONFLICT DO NOTHING;

-- name: bare_table
CREATE TABLE public.bare_subscriptions (
    user_id text NOT NULL, data_type text NOT NULL, symbol text NOT NULL,
    subscribed_at timestamptz NOT NULL DEFAULT clock_timestamp(), last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (user_id, data_type, symbol)) WITH (fillfactor = 70);

-- name: bare_users
INSERT INTO public.bare_subscriptions SELECT * FROM pricing.active_subscriptions;

-- name: bare_index
CREATE INDEX ON public.bare_subscriptions (data_type, symbol);

-- name: tidy
VACUUM (FREEZE, ANALYZE);

-- name: ours
SELECT pricing.heartbeat(%(user)s, %(data_types)s, %(symbols)s);

-- name: bare
INSERT INTO public.bare_subscriptions (user_id, data_type, symbol)
SELECT %(user)s, u.data_type, u.symbol FROM unnest(%(data_types)s::text[], %(symbols)s::text[]) AS u (data_type, symbol)
ON CONFLICT (user_id, data_type, symbol) DO UPDATE SET last_seen_at = clock_timestamp();

-- name: hot
SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE relid = 'pricing.active_subscriptions'::regclass;

-- name: flush
SELECT pg_stat_force_next_flush();

-- name: size
SELECT pg_total_relation_size('pricing.active_subscriptions');
