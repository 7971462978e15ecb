-- A pair whose demand was judged last while nobody watched is told apart, and what people change ends the back-off of what
-- had failed of it.

-- What they return has a column more.
DROP FUNCTION IF EXISTS pricing.watched_pairs(text[]);
DROP FUNCTION IF EXISTS pricing.pairs_waiting_for(text, text);

ALTER TABLE pricing.demand ADD COLUMN is_background boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pricing.demand.is_background IS
    'The pair was judged last while nobody watched: due_at may be by the background TTL, and says nothing to a viewer.';
UPDATE pricing.demand d SET is_background = true
WHERE d.became_due_at IS NULL
  AND NOT EXISTS (SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol));

COMMENT ON TABLE pricing.outages IS
    'Spans in which every call to a provider for a data type failed of trouble that others may have, too. A row goes 15 s after the provider has answered again, or when no call has failed for 24 hours.';

DROP TRIGGER provider_switched ON pricing.data_collectors;
CREATE TRIGGER provider_switched AFTER UPDATE OF is_active, base_url, quota_bytes ON pricing.data_collectors
    FOR EACH ROW WHEN ((OLD.is_active, OLD.base_url, OLD.quota_bytes) IS DISTINCT FROM (NEW.is_active, NEW.base_url, NEW.quota_bytes))
    EXECUTE FUNCTION pricing.provider_switched();
COMMENT ON FUNCTION pricing.provider_switched() IS
    'A provider was switched on or off, or moved, or another quota, limit or capability of it was set: forgets what it and others refused for the pairs routed to it, ends their hold-off, and moves what waits to where it belongs now.';
CREATE TRIGGER capability_changed AFTER INSERT OR UPDATE ON pricing.provider_capabilities
    FOR EACH ROW EXECUTE FUNCTION pricing.provider_switched();
CREATE TRIGGER limit_changed AFTER UPDATE ON pricing.provider_limits
    FOR EACH ROW WHEN (OLD.units <> NEW.units) EXECUTE FUNCTION pricing.provider_switched();

CREATE FUNCTION pricing.fetcher_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.end_hold_off(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.fetcher_changed() IS 'Something else is asked for: ends the hold-off of all pairs of the type.';
CREATE TRIGGER fetcher_changed AFTER UPDATE OF fetcher ON pricing.data_type_registry
    FOR EACH ROW WHEN (OLD.fetcher <> NEW.fetcher) EXECUTE FUNCTION pricing.fetcher_changed();

-- What failed again while others were answered does not count against a provider: for that, which symbols a call asked for.
CREATE OR REPLACE VIEW pricing.counted_calls AS
SELECT c.call_id, c.provider, c.key_name, c.started_at AS counted_at, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols
FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
UNION ALL
SELECT c.call_id, c.provider, c.key_name, c.moved_to, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols
FROM pricing.collector_call_log c WHERE c.moved_to IS NOT NULL;
COMMENT ON COLUMN pricing.counted_calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.counted_calls.symbols IS 'What was asked for.';
