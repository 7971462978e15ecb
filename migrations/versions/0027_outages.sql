-- A pair whose task died of trouble (of the provider, the key or ours) stays late, and is tried again as soon as the
-- provider answers; only a fault of the symbol itself takes it out of the count.

DROP FUNCTION IF EXISTS pricing.hold_off(text, text[], text);

ALTER TABLE pricing.demand ADD COLUMN owed_since timestamptz;
COMMENT ON COLUMN pricing.demand.owed_since IS
    'Since when the pair is owed a price that trouble keeps away: a task for it died, by no fault of its symbol. NULL = no such trouble.';
COMMENT ON COLUMN pricing.demand.held_until IS
    'A pair whose task died backs off until then: up to 10 min after trouble, 1 h after a cancel by hand, 1 h doubling to 24 h after a fault of its symbol.';
-- Only what is in trouble has an entry, so that nobody else pays for it.
CREATE INDEX demand_owed ON pricing.demand (data_type, due_at) WHERE owed_since IS NOT NULL;
-- What backs off was not told apart until now: it is tried again, and told apart by what comes of it.
UPDATE pricing.demand SET due_at = least(due_at, pricing.clock()), held_until = NULL WHERE held_until > pricing.clock();
COMMENT ON COLUMN pricing.route_refusals.kind IS 'unknown_symbol, plan_restricted or endpoint_restricted.';

CREATE TABLE pricing.outages (
    outage_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider      text NOT NULL REFERENCES pricing.data_collectors ON DELETE CASCADE,
    data_type     text NOT NULL REFERENCES pricing.data_type_registry ON DELETE CASCADE,
    since         timestamptz NOT NULL,
    last_fault_at timestamptz NOT NULL,
    probed_at     timestamptz,
    answered_at   timestamptz
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX one_open_outage ON pricing.outages (provider, data_type) WHERE answered_at IS NULL;
CREATE INDEX outages_data_type ON pricing.outages (data_type);
COMMENT ON TABLE pricing.outages IS
    'Spans in which every call to a provider for a data type failed by a fault of the provider or its key. A row goes 15 s after the provider has answered again, or when no call has failed for 24 hours.';
COMMENT ON COLUMN pricing.outages.outage_id IS 'In the order of their beginnings.';
COMMENT ON COLUMN pricing.outages.provider IS 'Who does not answer.';
COMMENT ON COLUMN pricing.outages.data_type IS 'What it does not answer for.';
COMMENT ON COLUMN pricing.outages.since IS 'When the first of the calls began that failed.';
COMMENT ON COLUMN pricing.outages.last_fault_at IS 'When the last call failed.';
COMMENT ON COLUMN pricing.outages.probed_at IS 'When it was last seen to that somebody who waits is asked for ahead of the pauses. NULL = not yet.';
COMMENT ON COLUMN pricing.outages.answered_at IS 'When the provider answered again. NULL = it does not yet.';
