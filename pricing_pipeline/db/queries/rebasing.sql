-- name: lock_basis
-- Keep the bases of some histories as they are until the transaction ends.
SELECT pricing.share_basis(:data_type, CAST(:symbols AS text[]));

-- name: extents
-- Lock histories that may change their basis: their first and last day, whether a provider's own, and whether asked for lately.
SELECT symbol, first_day, last_day, is_own, is_asked FROM pricing.lock_basis(:data_type, :provider, CAST(:symbols AS text[]));

-- name: change
-- Give a history another basis, if an answer brings all of its days, or others may leave it.
SELECT pricing.change_basis(:data_type, :symbol, :call_id, :basis, CAST(:times AS timestamptz[]), :may_leave);
