-- name: registry
-- Ten data types, none so quick that its prices would grow old while the benchmark runs.
INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)
SELECT 'bench_' || i, 'equity', 'quote', (ARRAY[60, 60, 120, 240, 480, 720, 1440, 1440, 10080, 43200])[i + 1]
FROM generate_series(0, 9) AS i;

-- name: prices
-- Some symbols of each type, fetched between just now and a tenth of a TTL ago: nothing is stale yet.
INSERT INTO pricing.latest_prices
    (data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider, call_id, source_text)
SELECT r.data_type, 'S' || s, 12345, 2, 'USD', now(),
       now() - random() * make_interval(mins => r.default_ttl_minutes) * 0.1, 'twelvedata', 1, '123.45'
FROM pricing.data_type_registry r CROSS JOIN generate_series(1, %(symbols)s) AS s
WHERE r.data_type LIKE 'bench\_%%';

-- name: subscriptions
-- Three pairs a user, popularity falling off steeply: 300,000 subscriptions are about 80,000 pairs.
WITH wanted AS MATERIALIZED (
    SELECT 'user' || i / 3 AS user_id, 'bench_' || floor(random() * 10)::integer AS data_type,
           'S' || (1 + floor((%(symbols)s - 1) * power(random(), 3)))::integer AS symbol
    FROM generate_series(1, %(subscriptions)s) AS i),
demanded AS (
    INSERT INTO pricing.demand (data_type, symbol, due_at)
    SELECT DISTINCT data_type, symbol, now() + interval '1 day' FROM wanted ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING 1)
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT DISTINCT w.user_id, w.data_type, w.symbol FROM wanted w CROSS JOIN (SELECT count(*) FROM demanded) AS first
ORDER BY 2, 3, 1;

-- name: more_subscriptions
-- Further viewers of pairs that are watched already.
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT 'more' || copy || '-' || a.user_id, a.data_type, a.symbol
FROM pricing.active_subscriptions a CROSS JOIN generate_series(1, %(copies)s) AS copy
WHERE a.user_id LIKE 'user%%';

-- name: choose
-- The pairs that fall due in every round: the same ones, so that rounds can be compared.
CREATE TABLE public.chosen AS
SELECT d.data_type, d.symbol FROM pricing.demand d ORDER BY md5(d.data_type || d.symbol) LIMIT (SELECT count(*) / 10 FROM pricing.demand);

-- name: analyze
VACUUM ANALYZE;

-- name: fall_due
WITH old AS (
    UPDATE pricing.latest_prices l
    SET fetched_at = now() - 1.5 * make_interval(mins => r.default_ttl_minutes)
    FROM public.chosen c JOIN pricing.data_type_registry r USING (data_type)
    WHERE (l.data_type, l.symbol) = (c.data_type, c.symbol))
UPDATE pricing.demand d SET due_at = now(), became_due_at = NULL
FROM public.chosen c WHERE (d.data_type, d.symbol) = (c.data_type, c.symbol);

-- name: empty_queue
TRUNCATE pricing.api_call_queue_live;

-- name: tidy
VACUUM pricing.demand, pricing.latest_prices, pricing.active_subscriptions, pricing.api_call_queue_live;

-- name: tick
SELECT pricing.enqueue_due();

-- name: market_closes
SET LOCAL ROLE pricing_owner;
CREATE FUNCTION pricing.market_is_closed(stamp timestamptz, ttl_minutes integer) RETURNS boolean
    LANGUAGE sql STABLE AS 'SELECT false';
UPDATE pricing.data_type_registry SET staleness_function = 'market_is_closed' WHERE data_type LIKE 'bench\_%';
UPDATE pricing.latest_prices SET fetched_at = now() - interval '60 days' WHERE data_type LIKE 'bench\_%';
UPDATE pricing.demand SET due_at = now(), became_due_at = NULL;

-- name: seed_schema
-- The original design, in its own manner: loop over the watched symbols, over each one's data types, and build a
-- statement for each pair. Its queue is one plain table, which favours it.
CREATE TABLE public.seed_queue (
    data_type text NOT NULL, symbol text NOT NULL, priority integer NOT NULL, estimated_bytes bigint NOT NULL,
    status text NOT NULL DEFAULT 'pending', UNIQUE (data_type, symbol));
CREATE FUNCTION public.seed_tick() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    watched record;
    pair record;
    kind pricing.data_type_registry;
BEGIN
    FOR watched IN SELECT DISTINCT a.symbol FROM pricing.active_subscriptions a LOOP
        FOR pair IN SELECT DISTINCT a.data_type FROM pricing.active_subscriptions a WHERE a.symbol = watched.symbol LOOP
            SELECT * INTO kind FROM pricing.data_type_registry r
            WHERE r.data_type = pair.data_type AND r.refresh_strategy = 'on-demand';
            CONTINUE WHEN NOT FOUND;
            BEGIN
                EXECUTE format(
                    'INSERT INTO public.seed_queue (data_type, symbol, priority, estimated_bytes) '
                    'SELECT %1$L, %2$L, count(DISTINCT a.user_id)::integer, %3$L::bigint '
                    'FROM pricing.%4$I t JOIN pricing.active_subscriptions a ON a.symbol = t.%5$I AND a.data_type = %1$L '
                    'WHERE t.%5$I = %2$L AND a.symbol = %2$L '
                    'AND pricing.%6$I(t.%7$I, coalesce(t.cache_ttl_minutes, %8$L::integer)) '
                    'AND NOT EXISTS (SELECT FROM public.seed_queue q WHERE q.symbol = %2$L AND q.data_type = %1$L '
                    'AND q.status IN (''pending'', ''processing'')) '
                    'GROUP BY a.symbol HAVING count(DISTINCT a.user_id) > 0 ON CONFLICT DO NOTHING',
                    kind.data_type, watched.symbol, kind.estimated_data_size_bytes, kind.table_name, kind.symbol_column,
                    kind.staleness_function, kind.timestamp_column, kind.default_ttl_minutes);
            EXCEPTION WHEN OTHERS THEN
                RAISE WARNING '% of % failed: %', watched.symbol, pair.data_type, SQLERRM;
            END;
        END LOOP;
    END LOOP;
END $$;
-- For each of its symbols it looks subscriptions up by symbol alone; without this index it would take hours.
CREATE INDEX seed_subscriptions ON pricing.active_subscriptions (symbol, data_type);

-- name: seed_done
DROP INDEX pricing.seed_subscriptions;

-- name: seed_tick
SELECT public.seed_tick();

-- name: empty_seed_queue
TRUNCATE public.seed_queue;

-- name: set_tick
-- What a good hand would write first: one statement for each data type over all that is watched.
DO $$
DECLARE
    kind pricing.data_type_registry;
BEGIN
    FOR kind IN SELECT * FROM pricing.data_type_registry WHERE refresh_strategy = 'on-demand' LOOP
        EXECUTE format(
            'INSERT INTO public.seed_queue (data_type, symbol, priority, estimated_bytes) '
            'SELECT %1$L, a.symbol, a.viewers, %2$L::bigint '
            'FROM (SELECT symbol, count(*)::integer AS viewers FROM pricing.active_subscriptions '
            'WHERE data_type = %1$L GROUP BY symbol) a LEFT JOIN pricing.%3$I t ON t.%4$I = a.symbol '
            'WHERE t.%4$I IS NULL OR pricing.%5$I(t.%6$I, coalesce(t.cache_ttl_minutes, %7$L::integer)) '
            'ON CONFLICT DO NOTHING',
            kind.data_type, kind.estimated_data_size_bytes, kind.table_name, kind.symbol_column,
            kind.staleness_function, kind.timestamp_column, kind.default_ttl_minutes);
    END LOOP;
END $$;

-- name: queued
SELECT count(*) FROM pricing.api_call_queue_live;

-- name: seed_queued
SELECT count(*) FROM public.seed_queue;

-- name: chosen
SELECT count(*) FROM public.chosen;

-- name: pairs
SELECT count(*) FROM pricing.demand;
