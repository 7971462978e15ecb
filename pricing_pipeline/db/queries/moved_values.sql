-- These are DuckDB's: they read files of history.

-- name: use_utc
-- Days begin at midnight UTC, and times are spelled in UTC.
SET TimeZone = 'UTC';

-- name: of_symbol
-- The values of one symbol on some days. Numbers and times are text: every digit comes through.
SELECT observed_at::VARCHAR AS observed_at, open::VARCHAR AS open, high::VARCHAR AS high, low::VARCHAR AS low,
       close::VARCHAR AS close, scale, volume::VARCHAR AS volume, volume_scale, currency, adjustment, quality,
       source_text, provider, call_id, recorded_at::VARCHAR AS recorded_at, revised_at::VARCHAR AS revised_at,
       revised_by
FROM filed
WHERE symbol = $1
  AND EXISTS (
    FROM (SELECT unnest($2::DATE[]) AS since, unnest($3::DATE[]) AS until) AS span
    WHERE filed.observed_at >= span.since::TIMESTAMPTZ AND filed.observed_at < span.until::TIMESTAMPTZ);

-- name: take
-- Materialize the rows, which arrive once but are read twice.
CREATE TEMP TABLE stored AS FROM arriving;

-- name: merged
-- The values of a month's file until the database has others of the same time; and all that the database has. A value
-- of the file that seems younger stays too: the clock was set back before the database's value was stored.
SELECT * FROM (
    SELECT f.* REPLACE (least(f.revised_at, s.since) AS revised_at,
                        CASE WHEN s.since < coalesce(f.revised_at, 'infinity'::TIMESTAMPTZ) THEN s.since_call
                             ELSE f.revised_by END AS revised_by)
    FROM filed f
    LEFT JOIN (SELECT symbol, observed_at, min(recorded_at) AS since, arg_min(call_id, recorded_at) AS since_call
               FROM stored GROUP BY ALL) s USING (symbol, observed_at)
    WHERE NOT EXISTS (FROM stored t
                      WHERE t.symbol = f.symbol AND t.observed_at = f.observed_at AND t.recorded_at = f.recorded_at)
    UNION ALL
    SELECT * FROM stored)
ORDER BY symbol, observed_at, revised_at NULLS LAST;
