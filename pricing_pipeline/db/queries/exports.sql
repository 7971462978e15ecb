-- name: use_utc
-- Times are written in UTC in this transaction, and its session may wait for a file that is being written.
SELECT set_config('TimeZone', 'UTC', true), set_config('idle_in_transaction_session_timeout', '10min', true),
       set_config('statement_timeout', '1h', true);

-- name: wait_for_files
-- The session of this transaction may wait for files that are being read.
SELECT set_config('idle_in_transaction_session_timeout', '10min', true);

-- name: types
-- Every type of prices that has a history, retired ones too.
SELECT data_type FROM pricing.data_type_registry WHERE contents = 'prices' ORDER BY 1;

-- name: known
-- The files of months that the pipeline has written, or is about to put into their place: sizes by digest.
SELECT month, coming || jsonb_build_object(sha256, file_bytes) AS known FROM pricing.exported_months
WHERE data_type = :data_type AND month = ANY (CAST(:months AS date[]));

-- name: noted
-- The file of a month that the pipeline has written: its size by digest.
SELECT jsonb_build_object(sha256, file_bytes) FROM pricing.exported_months
WHERE data_type = :data_type AND month = CAST(:month AS date);

-- name: copy_month
-- All values of a month, by symbol and time, as lines of CSV: prices with the decimals that they are stored with.
COPY (SELECT v.symbol, CASE WHEN pricing.is_daily(r.fetcher) THEN v.observed_at::date END, v.observed_at,
             v.open_amount * unit.one, v.high_amount * unit.one, v.low_amount * unit.one, v.amount * unit.one, v.scale,
             v.volume, scale(v.volume), v.currency, v.adjustment, v.quality, v.source_text, v.provider, v.call_id,
             v.recorded_at, nullif(v.revised_at, 'infinity'), v.revised_by
      FROM pricing.month_versions(:data_type, CAST(:month AS date)) v
      JOIN pricing.data_type_registry r ON r.data_type = v.data_type
      CROSS JOIN LATERAL (SELECT ('1e-' || v.scale)::numeric AS one) unit
      ORDER BY v.symbol COLLATE "C", v.observed_at, v.revised_at) TO STDOUT (FORMAT csv)

-- name: digits
-- Digits before and after the point that the numbers of a month, and of all files of its type, have at most.
SELECT max(n.price_whole) AS price_whole, max(n.price_decimals) AS price_decimals,
       max(n.volume_whole) AS volume_whole, max(n.volume_decimals) AS volume_decimals
FROM (SELECT greatest(length(max(greatest(abs(v.amount), abs(v.open_amount), abs(v.high_amount),
                                          abs(v.low_amount)))::text) - v.scale, 1) AS price_whole,
             v.scale AS price_decimals, length(trunc(max(abs(v.volume)))::text) AS volume_whole,
             max(scale(v.volume)) AS volume_decimals
      FROM pricing.month_versions(:data_type, CAST(:month AS date)) v
      GROUP BY v.scale
      UNION ALL
      SELECT e.price_whole, e.price_decimals, e.volume_whole, e.volume_decimals FROM pricing.exported_months e
      WHERE e.data_type = :data_type
      UNION ALL
      SELECT 1, :price_decimals, 1, 0) n;

-- name: moved_spans
-- Days for which a read needs moved values of a pair.
SELECT first_day, last_day
FROM pricing.moved_spans(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                         CAST(:as_of AS timestamptz), CAST(:adjust AS text));

-- name: moved_tiles
-- Spans of days, until the last moved one: five years of daily values, or a month of quotes.
SELECT greatest(t.day::date, CAST(:first_day AS date)) AS first_day,
       least((t.day + step.length)::date - 1, CAST(:last_day AS date)) AS last_day
FROM pricing.data_type_registry r
CROSS JOIN LATERAL (SELECT CASE r.fetcher WHEN 'quote' THEN interval '1 month'
                                          ELSE interval '60 months' END AS length) step
CROSS JOIN LATERAL (
    SELECT max(s.last_day) AS until, min(s.first_day) AS since
    FROM pricing.moved_spans(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                             CAST(:as_of AS timestamptz), NULL) s) moved
CROSS JOIN LATERAL generate_series(date_trunc('month', least(moved.since, moved.until)::timestamp),
                                   moved.until::timestamp, step.length) AS t (day)
WHERE r.data_type = :data_type
ORDER BY 1;
