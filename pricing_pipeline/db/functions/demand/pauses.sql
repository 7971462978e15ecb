-- Pausing instruments, and cancelling waiting tasks that are no longer wanted. Retired types: by_hand.sql.

CREATE OR REPLACE FUNCTION pricing.stop_tasks(ids bigint[], kind text, message text) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    waiting bigint[];
BEGIN
    IF ids IS NULL THEN
        RETURN 0;
    END IF;
    -- A task that another session has locked is being claimed right now; a claimed task runs to its end.
    SELECT array_agg(x.id) INTO waiting FROM (
        SELECT q.id FROM pricing.api_call_queue_live q
        WHERE q.id = ANY (ids) AND q.status IN ('pending', 'scheduled') ORDER BY q.id FOR UPDATE SKIP LOCKED) x;
    RETURN cardinality(pricing.withdraw(waiting, kind, message)); -- as 'cancelled'
END $$;
COMMENT ON FUNCTION pricing.stop_tasks(bigint[], text, text) IS
    'Cancels those of the tasks that still wait, keeps the reason, and returns how many.';


CREATE OR REPLACE FUNCTION pricing.stop_paused(only_class text DEFAULT NULL, only_symbol text DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    waiting bigint[];
BEGIN
    IF only_class IS NULL THEN
        SELECT array_agg(q.id) INTO waiting
        FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
        JOIN pricing.api_call_queue_live q ON (q.data_type, q.symbol) = (r.data_type, i.symbol)
        WHERE (i.update_mode <> 'api' OR NOT i.is_active) AND q.status IN ('pending', 'scheduled');
    ELSE
        SELECT array_agg(q.id) INTO waiting
        FROM pricing.data_type_registry r
        JOIN pricing.api_call_queue_live q ON (q.data_type, q.symbol) = (r.data_type, only_symbol)
        WHERE r.asset_class = only_class AND q.status IN ('pending', 'scheduled')
          AND EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (only_class, only_symbol)
                                                          AND (i.update_mode <> 'api' OR NOT i.is_active));
    END IF;
    RETURN pricing.stop_tasks(waiting, 'paused', 'the instrument is paused');
END $$;
COMMENT ON FUNCTION pricing.stop_paused(text, text) IS
    'Cancels waiting tasks of paused instruments, or of one; returns how many.';


CREATE OR REPLACE FUNCTION pricing.stop_paused_tasks(ids bigint[]) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN pricing.stop_tasks(
        (SELECT array_agg(q.id) FROM pricing.api_call_queue_live q JOIN pricing.data_type_registry r USING (data_type)
         WHERE q.id = ANY (ids) AND q.status IN ('pending', 'scheduled')
           AND EXISTS (SELECT FROM pricing.instruments i WHERE i.asset_class = r.asset_class AND i.symbol = q.symbol
                                                           AND (i.update_mode <> 'api' OR NOT i.is_active) OFFSET 0)),
        'paused', 'the instrument is paused');
END $$;
COMMENT ON FUNCTION pricing.stop_paused_tasks(bigint[]) IS
    'Cancels those of the tasks that wait again because their instrument was paused while they ran; returns how many.';


CREATE OR REPLACE FUNCTION pricing.pause_instruments(symbols text[], paused boolean, only_class text DEFAULT NULL)
RETURNS TABLE (asset_class text, symbol text, changed boolean)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
BEGIN
    -- All pairs first and in key order; the trigger then finds them locked.
    PERFORM FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
    WHERE d.symbol = ANY (symbols) AND (only_class IS NULL OR r.asset_class = only_class)
    ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    RETURN QUERY
    WITH named AS MATERIALIZED (
        SELECT i.asset_class, i.symbol, (i.update_mode <> 'api' OR NOT i.is_active) <> paused AS changes
        FROM pricing.instruments i
        WHERE i.symbol = ANY (symbols) AND (only_class IS NULL OR i.asset_class = only_class)
        ORDER BY 1, 2 FOR NO KEY UPDATE),
    done AS (
        UPDATE pricing.instruments i
        SET update_mode = CASE WHEN paused THEN 'manual' ELSE 'api' END, is_active = i.is_active OR NOT paused
        FROM named n WHERE (i.asset_class, i.symbol) = (n.asset_class, n.symbol) AND n.changes)
    SELECT n.asset_class, n.symbol, n.changes FROM named n ORDER BY 1, 2;
END $$;
COMMENT ON FUNCTION pricing.pause_instruments(text[], boolean, text) IS
    'Pauses instruments, which cancels waiting tasks, or resumes them, which makes watched pairs due at once; returns '
    'the instruments that exist, and which changed.';


CREATE OR REPLACE FUNCTION pricing.instrument_paused() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.asset_class = NEW.asset_class AND d.symbol = NEW.symbol
    ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    IF NEW.update_mode <> 'api' OR NOT NEW.is_active THEN
        PERFORM pricing.stop_paused(NEW.asset_class, NEW.symbol);
    END IF;
    PERFORM pricing.look_again(r.data_type, NEW.symbol) FROM pricing.data_type_registry r
    WHERE r.asset_class = NEW.asset_class;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.instrument_paused() IS
    'Stops the waiting tasks of a paused instrument; makes the pairs of a resumed one due at once.';

CREATE TRIGGER instrument_paused
    AFTER UPDATE OF update_mode, is_active ON pricing.instruments
    FOR EACH ROW WHEN (OLD.update_mode IS DISTINCT FROM NEW.update_mode OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.instrument_paused();
