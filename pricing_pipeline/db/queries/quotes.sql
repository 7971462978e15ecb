-- name: settle
-- Store the quotes of a call, finish its tasks and settle it; no row when a quote must be looked at, or a task was lost.
SELECT added FROM pricing.settle_quotes(
    CAST(:ids AS bigint[]), CAST(:token AS uuid), CAST(:http_status AS integer), :wire_bytes, CAST(:units_left AS integer),
    :data_type, :provider, :call_id, :basis, CAST(:symbols AS text[]), CAST(:times AS timestamptz[]),
    CAST(:closes AS numeric[]), CAST(:currencies AS text[]), CAST(:texts AS text[]));
