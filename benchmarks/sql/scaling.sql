-- name: types
-- So many data types of quotes, each with its view and its table partition of the history.
INSERT INTO pricing.data_type_registry (data_type, description, asset_class, fetcher, default_ttl_minutes)
SELECT format('scaled_%%s', lpad(n::text, 3, '0')), 'Scaled', 'equity', 'quote', 1440
FROM generate_series(CAST(%(first)s AS integer), CAST(%(last)s AS integer)) n;

-- name: symbols
-- So many instruments.
INSERT INTO pricing.instruments (asset_class, symbol, currency, verified_at)
SELECT 'equity', 'S' || n, 'USD', now() FROM generate_series(CAST(%(first)s AS integer), CAST(%(last)s AS integer)) n
ON CONFLICT DO NOTHING;

-- name: watched
-- Viewers of pairs of the types scaled_*, round after round; what they watch is fresh.
WITH wanted AS MATERIALIZED (
    SELECT n, format('scaled_%%s', lpad(((n / CAST(%(symbols)s AS integer)) %% CAST(%(types)s AS integer))::text, 3, '0')) AS data_type,
           'S' || (n %% CAST(%(symbols)s AS integer)) AS symbol
    FROM generate_series(CAST(%(first)s AS integer), CAST(%(last)s AS integer)) n),
viewers AS (
    INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
    SELECT 'u' || w.n, w.data_type, w.symbol FROM wanted w ON CONFLICT DO NOTHING),
pairs AS (
    INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, currency, observed_at, fetched_at, provider, call_id, source_text)
    SELECT DISTINCT w.data_type, w.symbol, 1000, 2, 'USD', now(), now(), 'twelvedata', 1, '10.00' FROM wanted w ON CONFLICT DO NOTHING)
INSERT INTO pricing.demand (data_type, symbol, due_at)
SELECT DISTINCT w.data_type, w.symbol, now() + interval '1 hour' FROM wanted w ON CONFLICT DO NOTHING;

-- name: heartbeat
-- One viewer of ten pairs.
SELECT pricing.heartbeat('one', array_fill(CAST('scaled_000' AS text), ARRAY[10]), ARRAY(SELECT 'S' || n FROM generate_series(0, 9) n));

-- name: check
-- A staleness check of all types.
SELECT pricing.enqueue_due();

-- name: without_limits
-- The provider takes whatever is asked, fifty symbols in a call.
UPDATE pricing.provider_capabilities SET batch_size = 50 WHERE provider = 'twelvedata';
DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata';

-- name: queue
-- Tasks for symbols of one type.
SELECT pricing.enqueue('scaled_000', array_agg('S' || n), array_agg(1)) FROM generate_series(0, CAST(%(symbols)s AS integer) - 1) n;

-- name: events
-- So many prices fetched a day more: completed tasks of seven days, and calls of 35.
WITH calls AS (
    INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units, reserved_bytes, worker,
                                            started_at, finished_at, outcome, http_status, wire_bytes)
    SELECT 'twelvedata', 'scaled_000', asked.symbols, '-infinity', 'infinity', 50, 0, 'scaling', at, at + interval '200 milliseconds', 'ok', 200, 5000
    FROM (SELECT array_agg('S' || n) AS symbols FROM generate_series(1, %(per_call)s) n) asked,
         LATERAL (SELECT now() - n * interval '35 days' / (35 * %(added)s / %(per_call)s) AS at
                  FROM generate_series(1, 35 * %(added)s / %(per_call)s) n) spread)
INSERT INTO pricing.api_call_queue_completed (data_type, symbol, provider, status, enqueued_at, attempt, claim_token, claimed_at,
                                              worker, call_id, finished_at, ring)
SELECT 'scaled_000', 'S' || n %% %(symbols)s, 'twelvedata', 'completed', at - interval '1 second', 1, gen_random_uuid(),
       at - interval '300 milliseconds', 'scaling', n, at, floor(extract(epoch FROM at) / 604800)::bigint %% 8
FROM generate_series(1, 7 * %(added)s) n, LATERAL (SELECT now() - n * interval '7 days' / (7 * %(added)s) AS at) spread;

-- name: prune
-- What forgets old tasks and calls, every hour.
SELECT pricing.prune();

-- name: claim
-- A claim of one call.
SELECT count(*) FROM pricing.claim_calls('twelvedata', 'scaling', 1);

-- name: definitions
-- What the code location reads of the registry.
SELECT count(*) FROM (SELECT r.* FROM pricing.data_type_registry r) x;

-- name: history
-- Daily bars, a symbol after the other, noted as changes of their months.
WITH noted AS (
    INSERT INTO pricing.data_changes (data_type, month, changes)
    SELECT 'equity_daily', pricing.utc_month(timestamptz '2004-01-01Z' + d * interval '24 hours'),
           count(*) * (CAST(%(last)s AS integer) - CAST(%(first)s AS integer) + 1)
    FROM generate_series(0, 4999) d
    GROUP BY 2)
INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale, currency,
                                   volume, provider, call_id, fetched_at)
SELECT 'equity_daily', 'H' || s, timestamptz '2004-01-01Z' + d * interval '24 hours', 5000 + (d * 7919 + s) %% 101, 5000, 5100, 4900, 2,
       'USD', 100000 + d, 'twelvedata', s, timestamptz '2026-01-01Z'
FROM generate_series(CAST(%(first)s AS integer), CAST(%(last)s AS integer)) s, generate_series(0, 4999) d;

-- name: day
-- The next day of a thousand symbols, as an answer's values are stored.
SELECT pricing.store_rows('equity_daily', 9, ARRAY(
    SELECT ROW('equity_daily', 'H' || s, timestamptz '2017-09-10Z' + CAST(%(day)s AS integer) * interval '24 hours', 5000, 5000, 5100, 4900, 2,
               'USD', 100000, 'twelvedata', 9, NULL, 'raw', NULL, NULL)::pricing.price_history
    FROM generate_series(0, 999) s));

-- name: year
-- A year of a symbol.
SELECT count(*) FROM pricing.adjusted_prices('equity_daily', %(symbol)s, '2010-01-01', '2010-12-31');

-- name: as_of
-- A year of a symbol as it was believed.
SELECT count(*) FROM pricing.adjusted_prices('equity_daily', %(symbol)s, '2010-01-01', '2010-12-31', timestamptz '2026-02-01Z');

-- name: marks
-- What an export looks at to find the months that are due.
SELECT count(*) FROM pricing.exports('equity_daily', '0001-01-01', '9999-01-01') WHERE is_due;

-- name: month
-- What the file of one month is made of.
SELECT count(*) FROM pricing.month_versions('equity_daily', '2010-03-01');

-- name: vacuum
-- Leave nothing for autovacuum to do in the middle.
VACUUM (ANALYZE);

-- name: partitioned
-- A history with a table partition for each month.
CREATE TABLE by_month (LIKE pricing.price_history INCLUDING ALL) PARTITION BY RANGE (observed_at);
DO $$ DECLARE month date; BEGIN
    FOR month IN SELECT generate_series(date '2004-01-01', date '2017-12-01', interval '1 month') LOOP
        EXECUTE format('CREATE TABLE by_month_%s PARTITION OF by_month FOR VALUES FROM (%L) TO (%L)', to_char(month, 'YYYYMM'),
                       month::text || 'Z', (month + interval '1 month')::date::text || 'Z');
    END LOOP;
END $$;

-- name: fill_partitioned
-- The same rows as the type has in one table.
INSERT INTO by_month SELECT * FROM pricing.price_history WHERE data_type = 'equity_daily';

-- name: year_by_month
SELECT count(*) FROM by_month WHERE data_type = 'equity_daily' AND symbol = %(symbol)s
   AND observed_at >= '2010-01-01Z' AND observed_at < '2011-01-01Z';

-- name: year_in_one
SELECT count(*) FROM pricing.price_history_equity_daily WHERE data_type = 'equity_daily' AND symbol = %(symbol)s
   AND observed_at >= '2010-01-01Z' AND observed_at < '2011-01-01Z';

-- name: past_by_month
SELECT count(*) FROM by_month WHERE data_type = 'equity_daily' AND symbol = %(symbol)s;

-- name: past_in_one
SELECT count(*) FROM pricing.price_history_equity_daily WHERE data_type = 'equity_daily' AND symbol = %(symbol)s;

-- name: drop_by_month
DROP TABLE by_month_200401;

-- name: forget_partitioned
DROP TABLE by_month;

-- name: delete_in_one
DELETE FROM pricing.price_history_equity_daily WHERE observed_at >= '2004-01-01Z' AND observed_at < '2004-02-01Z';
