-- squawk-ignore-file ban-drop-column
-- The staleness check hands on the pairs that it has locked as one list, where it had a statement for each way of judging.
CREATE TYPE pricing.due_pair AS (
    place     tid,
    symbol    text,
    viewers   integer,
    is_paused boolean,
    is_held   boolean,
    stamp     timestamptz,
    ttl       integer,
    is_stale  boolean
);
COMMENT ON TYPE pricing.due_pair IS 'A pair that is due, and whose row of demand a staleness check has locked.';
COMMENT ON COLUMN pricing.due_pair.place IS 'Where its row of demand is (ctid), by which it is updated.';
COMMENT ON COLUMN pricing.due_pair.symbol IS 'As in demand.';
COMMENT ON COLUMN pricing.due_pair.viewers IS 'How many users watch it; a reader counts as one until it is served.';
COMMENT ON COLUMN pricing.due_pair.is_paused IS 'Nothing of its instrument is fetched.';
COMMENT ON COLUMN pricing.due_pair.is_held IS 'It is held, nobody watches it, and it is not paused.';
COMMENT ON COLUMN pricing.due_pair.stamp IS 'When its price was last confirmed; NULL = there is none.';
COMMENT ON COLUMN pricing.due_pair.ttl IS 'How many minutes its price stays fresh.';
COMMENT ON COLUMN pricing.due_pair.is_stale IS
    'What a staleness function of the user''s own says; NULL = the time of the price and the TTL decide.';

-- Each claim looks from the first task on: to resume after the last one saved time only while a snapshot was held open.
-- The pipeline is stopped for an upgrade.
ALTER TABLE pricing.provider_state
    DROP COLUMN passed_at, DROP COLUMN passed_priority, DROP COLUMN passed_cadence, DROP COLUMN passed_id;
