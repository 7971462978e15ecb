-- What stops a provider, asked once for many pairs that are explained.
CREATE TYPE pricing.provider_stop AS (
    provider    text,
    state       text,
    sentence    text,
    next_at     timestamptz,
    used_bytes  bigint,
    quota_bytes bigint
);
COMMENT ON TYPE pricing.provider_stop IS 'Why a provider may not be asked now, whatever the work, and how much of its quota is used.';
COMMENT ON COLUMN pricing.provider_stop.provider IS 'Who is to be asked.';
COMMENT ON COLUMN pricing.provider_stop.state IS 'provider_off, breaker_open, key_refused, throttled or rate_limited; NULL = it may be asked, as far as its quota has room.';
COMMENT ON COLUMN pricing.provider_stop.sentence IS 'The same as a sentence.';
COMMENT ON COLUMN pricing.provider_stop.next_at IS 'When that ends, if it is known.';
COMMENT ON COLUMN pricing.provider_stop.used_bytes IS 'Bytes used of its quota; NULL = nothing is asked of it, whatever is left.';
COMMENT ON COLUMN pricing.provider_stop.quota_bytes IS 'Its quota.';

-- They take what is known of stops now.
DROP FUNCTION IF EXISTS pricing.why_old(text, text);
DROP FUNCTION IF EXISTS pricing.why_as_json(text, text);
DROP FUNCTION IF EXISTS pricing.why_stale(pricing.data_type_registry, pricing.instruments, pricing.demand, timestamptz, interval);
DROP FUNCTION IF EXISTS pricing.why_queued(pricing.api_call_queue_live);
DROP FUNCTION IF EXISTS pricing.why_backing_off(pricing.demand, pricing.api_call_queue_dead);
