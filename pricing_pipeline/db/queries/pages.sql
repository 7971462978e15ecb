-- name: claim
-- Open the next request of a call, or learn when to ask again, or why it may not be made.
SELECT call_id, wait_seconds, refusal, retry_after
FROM pricing.claim_page(:first_call, CAST(:ids AS bigint[]), CAST(:token AS uuid), :first_bytes, :page_bytes,
                        :most_seconds, :most_requests);
