-- name: merge
-- Store documents and confirm their pairs.
SELECT symbol, added, revised FROM pricing.merge_documents(
    :data_type, :provider, :call_id, CAST(:answered AS text[]), CAST(:whole AS text[]),
    CAST(:symbols AS text[]), CAST(:periods AS date[]), CAST(:bodies AS jsonb[]));

-- name: read
-- Documents of a pair as believed now or at a time, newest period first. Bodies are text: a JSON reader makes floats.
SELECT d.period, CAST(d.body AS text) AS body, d.recorded_at, d.provider
FROM pricing.documents_as_of(:data_type, :symbol, CAST(:as_of AS timestamptz)) d;

-- name: pair
-- When a pair was last confirmed, with age in seconds, freshness, and whether it is paused; no row while it never was.
SELECT p.fetched_at, extract(epoch FROM pricing.clock() - p.fetched_at)::float8 AS age_seconds,
       pricing.verdict_on(p.data_type, p.symbol) = 'fresh' AS fresh
FROM pricing.confirmed_pairs p
WHERE (p.data_type, p.symbol) = (:data_type, :symbol);

-- name: request
-- A read asks for what is missing or stale; returns how many are queued.
SELECT pricing.request_prices(ARRAY[:data_type], ARRAY[:symbol]);

-- name: request_for
-- The same for one user, within the caps of a user; a worker serves it.
SELECT count(pricing.request_reads(:user_id, ARRAY[:data_type], ARRAY[:symbol]));

-- name: newest
-- For some symbols of a data type: how many documents they have, and since when the newest of them is believed.
SELECT d.symbol, count(*) AS documents, max(d.recorded_at) AS recorded_at FROM pricing.documents d
WHERE d.data_type = :data_type AND d.symbol = ANY (CAST(:symbols AS text[])) AND d.body IS NOT NULL
GROUP BY 1
ORDER BY 1;

-- name: sample
-- A few documents of a data type, the latest believed first.
SELECT symbol, nullif(period, '-infinity') AS period, recorded_at, provider FROM pricing.documents
WHERE data_type = :data_type AND body IS NOT NULL ORDER BY recorded_at DESC, symbol, period DESC LIMIT :at_most;
