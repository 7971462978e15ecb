-- The whole life of a task: extend, retry and cancel by hand, retire, resolve; warnings; what duties report.

DROP FUNCTION IF EXISTS pricing.release_tasks(bigint[], uuid);

-- Each version of a row finds room beside the one before it. Packed pages were searched for what may be thrown out at
-- every other claim, a tenth of what a task costs.
ALTER INDEX pricing.api_call_queue_live_pkey SET (fillfactor = 45, deduplicate_items = off);
ALTER INDEX pricing.live_task_is_unique SET (fillfactor = 45, deduplicate_items = off);

-- One constraint instead of four: every statement reads and prepares each anew.
ALTER TABLE pricing.api_call_queue_live
    DROP CONSTRAINT live_task_has_provider, DROP CONSTRAINT processing_is_claimed,
    DROP CONSTRAINT processing_has_lease, DROP CONSTRAINT scheduled_has_time,
    ADD CONSTRAINT status_has_its_columns CHECK (
        provider IS NOT NULL
        AND (status = 'processing') = (claim_token IS NOT NULL) AND (status = 'processing') = (lease_until IS NOT NULL)
        AND (status = 'scheduled') = (run_after IS NOT NULL));


-- ── Dead tasks and hold-off ────────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.api_call_queue ADD COLUMN resolved_at timestamptz;
COMMENT ON COLUMN pricing.api_call_queue.resolved_at IS
    'Since when a dead task needs nobody any more: it was cancelled, or its work has succeeded since. It is kept 90 days longer.';
CREATE INDEX dead_unresolved ON pricing.api_call_queue_dead (id) WHERE resolved_at IS NULL;

CREATE FUNCTION pricing.route_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pricing.end_hold_off(OLD.data_type, CASE WHEN OLD.symbol IS NOT NULL THEN ARRAY[OLD.symbol] END);
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND (OLD.data_type, OLD.symbol) IS DISTINCT FROM (NEW.data_type, NEW.symbol)) THEN
        PERFORM pricing.end_hold_off(NEW.data_type, CASE WHEN NEW.symbol IS NOT NULL THEN ARRAY[NEW.symbol] END);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.route_changed() IS 'Another provider may serve what failed: ends the hold-off of the pairs that the rule is about.';
CREATE TRIGGER route_changed AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_routing
    FOR EACH ROW EXECUTE FUNCTION pricing.route_changed();

CREATE FUNCTION pricing.provider_switched() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    rule record;
BEGIN
    FOR rule IN
        SELECT r.data_type, r.symbol FROM pricing.provider_routing r WHERE r.provider = NEW.provider AND r.is_active
        ORDER BY 1, 2
    LOOP
        PERFORM pricing.end_hold_off(rule.data_type, CASE WHEN rule.symbol IS NOT NULL THEN ARRAY[rule.symbol] END);
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.provider_switched() IS 'A provider was switched on or off, or moved: ends the hold-off of the pairs routed to it.';
CREATE TRIGGER provider_switched AFTER UPDATE OF is_active, base_url ON pricing.data_collectors
    FOR EACH ROW WHEN ((OLD.is_active, OLD.base_url) IS DISTINCT FROM (NEW.is_active, NEW.base_url))
    EXECUTE FUNCTION pricing.provider_switched();

CREATE FUNCTION pricing.type_retired() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.retire_tasks();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.type_retired() IS 'Cancels what is queued of a data type that is retired.';
CREATE TRIGGER type_retired AFTER UPDATE OF is_active ON pricing.data_type_registry
    FOR EACH ROW WHEN (OLD.is_active AND NOT NEW.is_active) EXECUTE FUNCTION pricing.type_retired();


-- ── Warnings and duties ────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.warnings (
    warning_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    source     text NOT NULL,
    subject    text NOT NULL,
    sqlstate   text,
    message    text NOT NULL
);
CREATE INDEX warnings_newest ON pricing.warnings (source, subject, at DESC);
COMMENT ON TABLE pricing.warnings IS 'What went wrong without stopping anything else, at most one row a minute for the same trouble; kept 30 days.';
COMMENT ON COLUMN pricing.warnings.source IS 'The function that warned: enqueue_due, run_duties.';
COMMENT ON COLUMN pricing.warnings.subject IS 'What it was about: a data type, a duty.';

ALTER TABLE pricing.duties ALTER COLUMN last_success_at DROP NOT NULL;
ALTER TABLE pricing.duties ADD COLUMN last_failure_at timestamptz;
ALTER TABLE pricing.duties ADD COLUMN last_error text;
COMMENT ON TABLE pricing.duties IS 'When each periodic duty last succeeded and last failed.';
COMMENT ON COLUMN pricing.duties.last_success_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.last_error IS 'Why it last failed, in the database''s words.';
