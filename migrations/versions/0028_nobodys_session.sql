-- No session stops others. A client's call writes rows of its own user and, for what everybody shares, a request; workers
-- serve it. A duty locks a row that clients and readers cannot lock; any login can take an advisory lock.

CREATE TABLE pricing.pair_requests (
    request_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type    text NOT NULL,
    symbol       text NOT NULL CONSTRAINT symbol_is_sane CHECK (length(symbol) <= 40),
    kind         text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('watched', 'held', 'read', 'seen', 'scheduled')),
    requested_at timestamptz NOT NULL DEFAULT pricing.clock()
);
CREATE INDEX pair_requests_pair ON pricing.pair_requests (data_type, symbol);
COMMENT ON TABLE pricing.pair_requests IS
    'What clients, and walks that met a lock, ask for, until a worker serves it (serve_requests): rows are only added and deleted, so that nobody waits for anybody.';
COMMENT ON COLUMN pricing.pair_requests.request_id IS 'Requests are served in this order.';
COMMENT ON COLUMN pricing.pair_requests.data_type IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.symbol IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a walk could not queue it, for another session was in the way.';
COMMENT ON COLUMN pricing.pair_requests.requested_at IS 'When it was asked for.';

COMMENT ON TABLE pricing.turns IS
    'One row for each kind of work that must not run twice at once; whoever does it has the row locked. A new row is made when it is needed.';
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

-- Deleting a type waited for every open reader of any history, and all others behind it.
CREATE OR REPLACE FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.document_pairs p WHERE p.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % holds prices or documents or is watched and cannot be deleted', OLD.data_type
            USING HINT = pg_catalog.format('Retire it instead: UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = %L',
                                           OLD.data_type),
                  ERRCODE = 'restrict_violation';
    END IF;
    IF pricing.is_document(OLD.fetcher) THEN
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'document_' || OLD.data_type);
    ELSE
        EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'latest_price_' || OLD.data_type);
    END IF;
    RETURN OLD;
EXCEPTION WHEN lock_not_available THEN
    -- Dropping its table needs all histories for a moment, and whoever comes would wait behind a wait for them.
    RAISE EXCEPTION 'data type % cannot be deleted now: somebody is reading or storing prices in a transaction that stays open', OLD.data_type
        USING HINT = 'Try again; docs/operations.md, "Something is locked", tells how to find the session.', ERRCODE = 'lock_not_available';
END $$;
