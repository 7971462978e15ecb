-- A home remembers from where its prices come. A database that several hosts share had nothing that did.
ALTER TABLE pricing.registry_state ADD COLUMN prices_from text
    CONSTRAINT prices_from_known CHECK (prices_from IN ('sandbox', 'real providers'));
COMMENT ON COLUMN pricing.registry_state.prices_from IS
    'Who is asked for prices: the sandbox or the real providers, whose prices must not mix; NULL until the first worker starts.';
COMMENT ON TABLE pricing.registry_state IS
    'Counts changes of the registry, so that the sensor knows when to reload the code location; and keeps from where prices come.';
