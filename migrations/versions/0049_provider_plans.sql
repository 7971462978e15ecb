-- The plan of a provider that is in use, and the settings from before it.
CREATE TABLE pricing.provider_plans (
    provider        text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    plan            text NOT NULL CONSTRAINT plan_is_plain_name CHECK (plan ~ '^[a-z][a-z0-9_-]{0,47}$'),
    symbols         integer NOT NULL CONSTRAINT plan_is_for_some_symbols CHECK (symbols > 0),
    used_since      timestamptz NOT NULL DEFAULT pricing.clock(),
    settings_before jsonb NOT NULL
);
COMMENT ON TABLE pricing.provider_plans IS 'Plans that `provider use` has written, so that `provider undo` can restore what was before.';
COMMENT ON COLUMN pricing.provider_plans.provider IS 'Whose plan.';
COMMENT ON COLUMN pricing.provider_plans.plan IS 'Its name in plans.toml.';
COMMENT ON COLUMN pricing.provider_plans.symbols IS 'For how many watched symbols its TTLs are.';
COMMENT ON COLUMN pricing.provider_plans.used_since IS 'When it was written.';
COMMENT ON COLUMN pricing.provider_plans.settings_before IS 'Limits, batches and types of the provider before its first plan.';
