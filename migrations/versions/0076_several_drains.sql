-- Several drains at once: how many may be at work is an argument, and a provider's calls are bounded over all workers.
DROP FUNCTION IF EXISTS pricing.begin_drain(text, text, integer, timestamptz);
COMMENT ON COLUMN pricing.data_collectors.max_in_flight IS 'Calls of all workers together that may be under way at once.';
