-- When the database's clock is set, work goes on within a minute: pricing.follow_clock.

ALTER TABLE pricing.duties ADD COLUMN not_before timestamptz;
COMMENT ON COLUMN pricing.duties.not_before IS
    'It is not run before: the clock was set forward, or the pipeline was off for days, and what it throws away cannot be brought back.';
COMMENT ON TABLE pricing.duties IS
    'When each periodic duty last succeeded and last failed. The latest of these times tells whether the database''s clock was set back since.';

-- The call log is evidence and keeps its times. For limits and breakers a call counts by the clock as it is now.
ALTER TABLE pricing.collector_call_log ADD COLUMN moved_to timestamptz;
COMMENT ON COLUMN pricing.collector_call_log.moved_to IS
    'started_at on the clock as it is now, where that was set back since; -infinity = the call counts no more. NULL = it was not.';
DROP INDEX pricing.collector_call_log_rate;
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log (provider, started_at) INCLUDE (units, key_name) WHERE moved_to IS NULL;
CREATE INDEX collector_call_log_moved ON pricing.collector_call_log (provider, moved_to) INCLUDE (units, key_name) WHERE moved_to IS NOT NULL;

-- Two parts, so that each has its index, and the second costs nothing while it is empty.
CREATE VIEW pricing.counted_calls AS
SELECT c.call_id, c.provider, c.key_name, c.started_at AS counted_at, c.finished_at, c.outcome, c.failure_kind, c.units
FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
UNION ALL
SELECT c.call_id, c.provider, c.key_name, c.moved_to, c.finished_at, c.outcome, c.failure_kind, c.units
FROM pricing.collector_call_log c WHERE c.moved_to IS NOT NULL;
COMMENT ON VIEW pricing.counted_calls IS 'Calls as limits and breakers count them: by the clock as it is now.';
COMMENT ON COLUMN pricing.counted_calls.call_id IS 'Its number in collector_call_log.';
COMMENT ON COLUMN pricing.counted_calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.counted_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.counted_calls.counted_at IS 'When it was claimed, by the clock as it is now; -infinity = it counts no more.';
COMMENT ON COLUMN pricing.counted_calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.counted_calls.outcome IS 'How it ended.';
COMMENT ON COLUMN pricing.counted_calls.failure_kind IS 'Why it brought nothing.';
COMMENT ON COLUMN pricing.counted_calls.units IS 'What it costs, in the provider''s units.';

COMMENT ON COLUMN pricing.active_subscriptions.last_seen_at IS
    'The last heartbeat, stamped by the database. Nothing else changes it, but for the moment at which a clock that was set back is noticed.';
