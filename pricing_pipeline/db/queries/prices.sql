-- name: merge
-- Move checked values into history and latest prices.
SELECT symbol, added, revised, outcome FROM pricing.merge_prices(
    :data_type, :provider, :call_id, :is_latest,
    CAST(:symbols AS text[]), CAST(:times AS timestamptz[]), CAST(:amounts AS bigint[]),
    CAST(:open_amounts AS bigint[]), CAST(:high_amounts AS bigint[]), CAST(:low_amounts AS bigint[]),
    CAST(:scales AS smallint[]), CAST(:currencies AS text[]), CAST(:volumes AS numeric[]), CAST(:texts AS text[]),
    CAST(:adjustments AS text[]), CAST(:qualities AS text[]));

-- name: merge_bars
-- Move the bars of one symbol into history.
SELECT added, revised FROM pricing.merge_bars(
    :data_type, :provider, :call_id, :symbol, CAST(:currency AS text), :adjustment,
    CAST(:times AS timestamptz[]), CAST(:amounts AS bigint[]), CAST(:open_amounts AS bigint[]),
    CAST(:high_amounts AS bigint[]), CAST(:low_amounts AS bigint[]), CAST(:scales AS smallint[]),
    CAST(:volumes AS numeric[]), CAST(:texts AS text[]), CAST(:qualities AS text[]));

-- name: verify
-- Note that a provider had values of a symbol, and in which currency; returns the time.
SELECT pricing.clock() FROM pricing.verify_instruments(:data_type, ARRAY[:symbol], ARRAY[CAST(:currency AS text)]);

-- name: copy_history
-- Store rows of history that are all new, in COPY's binary format.
COPY pricing.price_history (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount, scale,
                            currency, volume, provider, call_id, fetched_at, adjustment, source_text)
FROM STDIN (FORMAT binary);

-- name: settle
-- Store the latest prices of a call, finish its tasks and settle it; no row when a task was lost.
SELECT added, revised
FROM pricing.settle_prices(
    CAST(:ids AS bigint[]), CAST(:token AS uuid), CAST(:http_status AS integer), :wire_bytes,
    CAST(:units_left AS integer), CAST(:shown_units AS integer), CAST(:shown_seconds AS integer), :is_unannounced,
    :data_type, :provider, :call_id,
    CAST(:symbols AS text[]), CAST(:times AS timestamptz[]), CAST(:amounts AS bigint[]),
    CAST(:open_amounts AS bigint[]), CAST(:high_amounts AS bigint[]), CAST(:low_amounts AS bigint[]),
    CAST(:scales AS smallint[]), CAST(:currencies AS text[]), CAST(:volumes AS numeric[]), CAST(:texts AS text[]),
    CAST(:adjustments AS text[]));

-- name: cover
-- Remember the days for which the provider has answered.
SELECT pricing.cover(:data_type, CAST(:symbols AS text[]), CAST(:first_day AS date), CAST(:last_day AS date));

-- name: cover_without
-- Remember the days of a span for which the provider has answered; some days of it could not be read.
SELECT pricing.cover(:data_type, CAST(:symbols AS text[]), lower(part), upper(part) - 1)
FROM unnest(datemultirange(daterange(CAST(:first_day AS date), CAST(:last_day AS date), '[]'))
            - (SELECT range_agg(daterange(day, day, '[]')) FROM unnest(CAST(:unread AS date[])) AS day)) AS part;

-- name: note_absent_days
-- Note the trading days that an answer for latest prices lacked between its first and its last one.
SELECT pricing.note_absent_days(:data_type, u.symbol, u.first_day, u.last_day)
FROM unnest(CAST(:symbols AS text[]), CAST(:first_days AS date[]), CAST(:last_days AS date[]))
    AS u (symbol, first_day, last_day)
ORDER BY u.symbol;

-- name: latest
-- Latest prices of some symbols, or with NULL of all, of one data type or all. In the form of pricing.prices_to_read
-- without reasons, which a reader of all prices could not wait for.
SELECT l.symbol, l.data_type,
       CASE WHEN a.is_daily THEN (l.observed_at AT TIME ZONE 'UTC')::date END AS date,
       l.amount, l.scale, l.currency, l.observed_at, l.fetched_at,
       round(extract(epoch FROM pricing.clock() - l.fetched_at), 3)::float8 AS age_seconds,
       pricing.verdict_on(l.data_type, l.symbol) AS state, l.provider, a.paused, a.provider_active, a.frozen_since
FROM pricing.latest_prices l CROSS JOIN LATERAL pricing.about_price(l.data_type, l.symbol, l.provider) a
WHERE (CAST(:symbols AS text[]) IS NULL OR l.symbol = ANY (CAST(:symbols AS text[])))
  AND (CAST(:data_type AS text) IS NULL OR l.data_type = CAST(:data_type AS text))
ORDER BY l.data_type, l.symbol;

-- name: answer
-- The prices of pairs, or of symbols in every data type, and the pairs without one, each with its reason; it asks for
-- nothing.
SELECT json_build_object('prices', coalesce(p.prices, '[]'), 'missing', coalesce(p.missing, '[]'))
FROM pricing.prices_to_read(CAST(:symbols AS text[]), CAST(:data_types AS text[])) p;

-- name: read
-- The whole of a read over HTTP, as JSON: of symbols and the data types of each, separated by commas, or the one data
-- type of all; NULL if that type has no prices.
SELECT pricing.read_prices(string_to_array($1, ','), string_to_array($2, ','), $3, $4);

-- name: read_from_replica
-- The same on a replica. If a price must be requested, or a symbol is unknown, it is refused as a write, and the
-- primary does it.
SELECT pricing.read_prices(string_to_array($1, ','), string_to_array($2, ','), $3, $4)
FROM set_config('pricing.has_primary', 'on', true);

-- name: request
-- Request missing or stale prices of symbols, in one data type of prices, or in those in which they are watched or
-- held; returns how many are queued.
SELECT pricing.request_prices(array_agg(r.data_type), array_agg(i.symbol))
FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
WHERE i.symbol = ANY (CAST(:symbols AS text[])) AND r.is_active AND r.contents = 'prices'
  AND CASE WHEN CAST(:data_type AS text) IS NOT NULL THEN r.data_type = :data_type
           ELSE EXISTS (SELECT FROM pricing.active_subscriptions a
                        WHERE (a.data_type, a.symbol) = (r.data_type, i.symbol))
                OR EXISTS (SELECT FROM pricing.holdings h
                           WHERE (h.data_type, h.active_symbol) = (r.data_type, i.symbol)) END;

-- name: history
-- Values of one symbol between two days, both included, oldest first, as stored: now, or as believed at a time.
SELECT observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume, adjustment, provider,
       call_id, recorded_at, quality,
       (SELECT pricing.is_daily(r.fetcher)
        FROM pricing.data_type_registry r
        WHERE r.data_type = :data_type) AS is_daily
FROM pricing.prices_as_of(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                          CAST(:as_of AS timestamptz),
                          pricing.read_moved(CAST(:moved AS jsonb)));

-- name: adjusted
-- The same on another basis than it may be stored on.
SELECT observed_at, open, high, low, close, volume, currency, adjustment, provider, call_id, recorded_at, quality,
       (SELECT pricing.is_daily(r.fetcher)
        FROM pricing.data_type_registry r
        WHERE r.data_type = :data_type) AS is_daily
FROM pricing.adjusted_prices(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date),
                             CAST(:as_of AS timestamptz), :adjust,
                             pricing.read_moved(CAST(:moved AS jsonb)),
                             CAST(:read_until AS date));

-- name: sample
-- A few latest prices of a data type, most recently fetched first.
SELECT symbol, amount, scale, currency, observed_at, fetched_at, provider FROM pricing.latest_prices
WHERE data_type = :data_type ORDER BY fetched_at DESC, symbol LIMIT :at_most;

-- name: first_price
-- When the first price was stored by a call that a run made, and since when the database is up.
SELECT min(l.finished_at) AS first_at FROM pricing.collector_call_log l
WHERE l.outcome = 'ok' AND l.run_id IS NOT NULL AND l.window_end = 'infinity' AND l.finished_at >= :since;
