-- A call may take several requests: further pages, or one for each product. Each after the first is a call of its own.
ALTER TABLE pricing.collector_call_log ADD COLUMN IF NOT EXISTS page_of bigint;
COMMENT ON COLUMN pricing.collector_call_log.page_of IS 'The call of which this is a further request: its page. That call says what came of all. NULL = it is no page.';
CREATE INDEX IF NOT EXISTS collector_call_log_pages ON pricing.collector_call_log (page_of) WHERE page_of IS NOT NULL;

ALTER TABLE pricing.provider_state ADD COLUMN IF NOT EXISTS page_call bigint, ADD COLUMN IF NOT EXISTS page_key text, ADD COLUMN IF NOT EXISTS page_until timestamptz;
COMMENT ON COLUMN pricing.provider_state.page_call IS 'The oldest call that waits for its next request: this goes before new calls, and before those of younger calls.';
COMMENT ON COLUMN pricing.provider_state.page_key IS 'The key of that call. Who calls with another one does not wait for it.';
COMMENT ON COLUMN pricing.provider_state.page_until IS 'Until when others wait for it; it is renewed every second.';

CREATE OR REPLACE VIEW pricing.counted_calls AS
SELECT c.call_id, c.provider, c.key_name, c.started_at AS counted_at, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols, c.page_of
FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
UNION ALL
SELECT c.call_id, c.provider, c.key_name, c.moved_to, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols, c.page_of
FROM pricing.collector_call_log c WHERE c.moved_to IS NOT NULL;
COMMENT ON COLUMN pricing.counted_calls.page_of IS 'The call of which it is a page; NULL = it is none.';
