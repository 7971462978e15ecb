-- One word for one meaning: users hold pairs, and a value that is not believed is quarantined.
-- The pipeline is stopped for an upgrade.
DROP INDEX pricing.quarantined_values_to_ask;
ALTER TABLE pricing.quarantined_values
    DROP CONSTRAINT status_is_known,
    DROP CONSTRAINT held_is_unresolved,
    ALTER COLUMN status SET DEFAULT 'quarantined';
UPDATE pricing.quarantined_values SET status = 'quarantined' WHERE status = 'held';
ALTER TABLE pricing.quarantined_values
    ADD CONSTRAINT status_is_known CHECK (status IN ('quarantined', 'released', 'rejected')),
    ADD CONSTRAINT quarantined_is_unresolved CHECK ((status = 'quarantined') = (resolved_at IS NULL));
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values (ask_at) WHERE ask_at IS NOT NULL AND status = 'quarantined';

COMMENT ON COLUMN pricing.quarantined_values.value_id IS 'Numbers quarantined values.';
COMMENT ON COLUMN pricing.quarantined_values.status IS
    'quarantined = waits for a person; released = believed after all and stored; rejected = wrong for good.';
COMMENT ON TABLE pricing.quarantined_bodies IS
    'Answers that brought quarantined values: one for each call that brought a new one. API keys are blotted out.';
COMMENT ON TABLE pricing.second_opinions IS
    'What other providers said when they were asked about a quarantined value, by workers or by a person. An opinion helps a person decide; it is never stored as a price.';
COMMENT ON COLUMN pricing.second_opinions.value_id IS 'The quarantined value it is about.';
COMMENT ON COLUMN pricing.second_opinions.ratio IS
    'The quarantined value as a multiple of this one, on one basis: near 1 they agree. NULL = they cannot be compared.';
COMMENT ON COLUMN pricing.instruments.currency IS
    'ISO 4217 or a coin (USDT); learned from the first answer where it is not given. Values in another currency are quarantined.';
COMMENT ON COLUMN pricing.plausibility_bounds.lowest IS 'Lower prices are quarantined.';
COMMENT ON COLUMN pricing.plausibility_bounds.highest IS 'Higher prices are quarantined.';
COMMENT ON COLUMN pricing.plausibility_bounds.jumps_trusted_until IS
    'Until then no value is quarantined for being far from the last one: after a split or a change of unit that a person has checked.';
COMMENT ON COLUMN pricing.corporate_actions.judged_at IS
    'When quarantined values of the instrument were judged anew with it; NULL = a worker will.';
COMMENT ON TABLE pricing.restatements IS
    'Answers in which stored days came with other values: docs/truth.md. By one ratio they are quarantined, and the history is fetched again once; scattered ones are stored, and price_revisions has what was believed.';
COMMENT ON COLUMN pricing.collector_call_log.reserved_bytes IS 'Bytes reserved in the quota until it is settled.';
COMMENT ON FUNCTION pricing.provider_switched() IS
    'A provider was switched on or off, or moved, or another quota, limit or capability of it was set: forgets what it and others refused for the pairs routed to it, ends their back-off, and moves what waits to where it belongs now.';
COMMENT ON FUNCTION pricing.route_changed() IS
    'Another provider may serve what failed: ends the back-off of the pairs that the rule is about, and moves their waiting tasks.';
