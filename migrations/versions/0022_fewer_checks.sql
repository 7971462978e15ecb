-- Claiming and finishing do less.

-- Tasks are finished with the call that they were claimed for; of a claim's parameters the lease is the last.
DROP FUNCTION IF EXISTS pricing.finish_held(bigint[], uuid, boolean);
DROP FUNCTION IF EXISTS pricing.claim_calls(text, text, integer, interval, text, text[], boolean);

-- A CHECK is read and planned anew by every statement that writes into its table, a domain's is not. The domains get
-- theirs after the columns: in that order the tables are read once and not written anew.
CREATE DOMAIN pricing.breaker_position AS text;
ALTER TABLE pricing.provider_state DROP CONSTRAINT breaker_is_known, ALTER COLUMN breaker TYPE pricing.breaker_position;
ALTER DOMAIN pricing.breaker_position ADD CONSTRAINT breaker_is_known CHECK (VALUE IN ('closed', 'open', 'half_open'));
COMMENT ON DOMAIN pricing.breaker_position IS 'What a breaker lets through: closed = all calls, open = none, half_open = one probe.';
CREATE DOMAIN pricing.call_outcome AS text;
ALTER TABLE pricing.collector_call_log DROP CONSTRAINT outcome_is_known, ALTER COLUMN outcome TYPE pricing.call_outcome;
ALTER DOMAIN pricing.call_outcome ADD CONSTRAINT outcome_is_known CHECK (VALUE IN ('open', 'ok', 'failed', 'unknown'));
COMMENT ON DOMAIN pricing.call_outcome IS
    'What became of a call: open = nothing yet, ok = answered, failed = not answered or refused, unknown = its worker was lost.';

-- The same in fewer words.
ALTER TABLE pricing.api_call_queue_live DROP CONSTRAINT status_has_its_columns;
ALTER TABLE pricing.api_call_queue_live ALTER COLUMN provider SET NOT NULL, ADD CONSTRAINT status_has_its_columns CHECK (
    (status = 'processing') = (claim_token IS NOT NULL) AND (claim_token IS NULL) = (lease_until IS NULL)
    AND (status = 'scheduled') = (run_after IS NOT NULL));
