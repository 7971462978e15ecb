-- What is queued keeps the time at which it fell due: that something is queued is told by became_due_at alone, which no
-- index names.

DROP FUNCTION IF EXISTS pricing.check_type(text, integer, text[], boolean);
DROP FUNCTION IF EXISTS pricing.check_statement(text, text, text);
DROP FUNCTION IF EXISTS pricing.check_our_prices(
    text, timestamptz, text[], integer, boolean, boolean, text, integer, integer, text, bigint, boolean);

UPDATE pricing.demand SET became_due_at = coalesce(became_due_at, pricing.clock()), due_at = coalesce(became_due_at, pricing.clock())
WHERE due_at = 'infinity';
DROP INDEX pricing.demand_due;
CREATE INDEX demand_due ON pricing.demand (data_type, due_at);
COMMENT ON COLUMN pricing.demand.due_at IS 'When to look at the pair next. While a task for it is live, it is not looked at.';
COMMENT ON COLUMN pricing.demand.became_due_at IS 'A task for the pair is live, and owed since then; NULL = none is.';

CREATE TABLE pricing.check_marks (
    data_type    text PRIMARY KEY REFERENCES pricing.data_type_registry ON DELETE CASCADE,
    queued_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.check_marks IS
    'Where the staleness check of a data type begins, so that it does not pass by a backlog each time. No row: at the beginning.';
COMMENT ON COLUMN pricing.check_marks.data_type IS 'What is checked.';
COMMENT ON COLUMN pricing.check_marks.queued_until IS 'What fell due before was queued.';

CREATE OR REPLACE FUNCTION pricing.own_ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Without waiting: a worker that stores this very price holds its demand and waits for us. What is missed
    -- here, reconcile_demand finds.
    UPDATE pricing.demand d SET due_at = pricing.clock()
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE (x.data_type, x.symbol) = (NEW.data_type, NEW.symbol) AND x.became_due_at IS NULL
            AND (x.held_until IS NULL OR x.held_until <= pricing.clock())
          FOR NO KEY UPDATE SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    RETURN NULL;
END $$;
