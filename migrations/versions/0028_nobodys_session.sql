-- No session stops others. A client's call writes rows of its own user and, for what everybody shares, a request; workers
-- serve it. Whose turn a duty is is told by rows that clients and readers cannot lock; an advisory lock any login can take.

CREATE TABLE pricing.pair_requests (
    request_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    kind         text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('watched', 'held', 'read', 'seen', 'scheduled')),
    requested_at timestamptz NOT NULL DEFAULT pricing.clock()
);
CREATE INDEX pair_requests_pair ON pricing.pair_requests (data_type, symbol);
COMMENT ON TABLE pricing.pair_requests IS
    'What client calls ask for, until a worker serves it (serve_requests): rows are only added and deleted, so that nobody waits for anybody.';
COMMENT ON COLUMN pricing.pair_requests.request_id IS 'Requests are served in this order.';
COMMENT ON COLUMN pricing.pair_requests.data_type IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.symbol IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a walk could not queue it, for another session was in the way.';
COMMENT ON COLUMN pricing.pair_requests.requested_at IS 'When it was asked for.';

COMMENT ON TABLE pricing.turns IS
    'Work that does not run beside itself: who has locked its row is at it. The rows hold nothing; a new one is made when it is needed.';
COMMENT ON COLUMN pricing.turns.name IS 'The work.';
INSERT INTO pricing.turns (name) VALUES ('begin_drain'), ('run_duties'), ('walk_schedules');

-- A subscription may be committed before a worker has added its demand. What has none is found by adopt_pairs.
ALTER TABLE pricing.active_subscriptions DROP CONSTRAINT subscription_has_demand;
ALTER TABLE pricing.holdings DROP CONSTRAINT active_holding_has_demand;
COMMENT ON COLUMN pricing.holdings.active_symbol IS 'The symbol while the holding is active.';

-- They have a parameter more or less, or are gone.
DROP FUNCTION IF EXISTS pricing.heartbeat(text, text[], text[]);
DROP FUNCTION IF EXISTS pricing.unsubscribe(text, text[], text[]);
DROP FUNCTION IF EXISTS pricing.hold(text, text[], text[]);
DROP FUNCTION IF EXISTS pricing.add_demand(text[], text[], timestamptz);
DROP FUNCTION IF EXISTS pricing.check_type(text, integer, text[], boolean, timestamptz);
DROP FUNCTION IF EXISTS pricing.enqueue_pairs(text[], text[], integer[], date[], date[], uuid, boolean);
DROP FUNCTION IF EXISTS pricing.finish_held(bigint[], uuid, boolean, bigint);
DROP FUNCTION IF EXISTS pricing.release_tasks(bigint[], uuid, text, text);
DROP FUNCTION IF EXISTS pricing.hold_pairs(bigint[], uuid);
DROP FUNCTION IF EXISTS pricing.hold_pairs_of(bigint);
