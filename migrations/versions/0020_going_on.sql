-- Where a claim goes on when the way from the first task on is full of finished ones.

ALTER TABLE pricing.provider_state
    ADD COLUMN passed_at timestamptz,
    ADD COLUMN passed_priority integer,
    ADD COLUMN passed_cadence integer,
    ADD COLUMN passed_id bigint;
COMMENT ON COLUMN pricing.provider_state.passed_at IS
    'When a claim last looked from the first task on; for 250 ms from then claims may begin after the last one. NULL = the next one looks from the first on.';
COMMENT ON COLUMN pricing.provider_state.passed_priority IS 'Priority of the task that was claimed last.';
COMMENT ON COLUMN pricing.provider_state.passed_cadence IS 'Its cadence_minutes.';
COMMENT ON COLUMN pricing.provider_state.passed_id IS 'Its id.';
