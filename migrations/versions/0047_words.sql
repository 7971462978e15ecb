-- One word for one meaning: a user holds a pair, and a pair whose fetch failed backs off.
-- The pipeline is stopped for an upgrade.
-- squawk-ignore renaming-column
ALTER TABLE pricing.demand RENAME COLUMN held_until TO backoff_until;

-- They are made again with clearer names, or with clearer names of what they take; some are not needed any more.
DO $$
DECLARE
    former regprocedure;
BEGIN
    FOR former IN
        SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pricing'::regnamespace AND p.proname IN (
            'ask_about_held', 'back_off_for', 'decide_held', 'end_hold_off', 'finish_call', 'finish_held', 'heed_units_left', 'hold_call',
            'hold_call_log', 'hold_off', 'hold_tasks', 'is_one_action', 'judge_call', 'key_room', 'known_symbols', 'note_opinions', 'quarantine',
            'release_tasks', 'said_actions', 'said_by_others', 'said_confirmed', 'said_ordinal', 'said_outages', 'said_shape', 'said_span',
            'said_time', 'said_within', 'settle_prices', 'settle_quotes', 'check_statement', 'check_our_prices', 'probe_from',
            'is_littered', 'repair_demand')
        ORDER BY 1
    LOOP
        EXECUTE format('DROP FUNCTION %s', former);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION pricing.fetcher_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.end_backoff(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.fetcher_changed() IS 'Another kind of data is fetched now: no pair of the type backs off any more.';

CREATE OR REPLACE FUNCTION pricing.own_ttl_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Without waiting: a worker that stores this very price locks its demand and waits for us. What is missed
    -- here, reconcile_demand finds.
    UPDATE pricing.demand d SET due_at = pricing.clock()
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE (x.data_type, x.symbol) = (NEW.data_type, NEW.symbol) AND x.became_due_at IS NULL
            AND (x.backoff_until IS NULL OR x.backoff_until <= pricing.clock())
          FOR NO KEY UPDATE SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.own_ttl_changed() IS
    'Makes a pair''s own TTL take effect at the next staleness check.';

