-- Nothing is skipped silently. What schedules and backfills of a whole type ask for is one view, and it says why it leaves
-- out what it leaves out.

CREATE VIEW pricing.universe AS
    SELECT r.data_type, i.symbol, i.calendar,
           CASE WHEN NOT i.is_active OR i.update_mode <> 'api' THEN 'paused'
                -- Its provider has said so, and nobody has changed symbol or route since.
                WHEN i.verified_at IS NULL AND EXISTS (
                    SELECT FROM pricing.api_call_queue_dead d
                    WHERE d.data_type = r.data_type AND d.symbol = i.symbol AND d.status = 'failed'
                      AND d.failure_kind = 'unknown_symbol' AND d.resolved_at IS NULL) THEN 'unknown_symbol'
           END AS left_out
    FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class);
COMMENT ON VIEW pricing.universe IS
    'The instruments of each data type: what its schedule walks over, and what a backfill of the whole type asks for. Verified or not, none is left out but for a reason.';
COMMENT ON COLUMN pricing.universe.data_type IS 'What may be asked for.';
COMMENT ON COLUMN pricing.universe.symbol IS 'Of what.';
COMMENT ON COLUMN pricing.universe.calendar IS 'Its trading calendar.';
COMMENT ON COLUMN pricing.universe.left_out IS
    'Why schedules and whole backfills leave it out: paused, or unknown_symbol = no answer ever came, and its provider does not know it. NULL = it is asked for.';

ALTER TABLE pricing.backfills ADD COLUMN left_out jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.backfills.left_out IS
    'How many of the instruments were left out, by reason: those of pricing.universe, or no_instrument for a name that is none.';
-- Producers ask queue_room.
DROP FUNCTION IF EXISTS pricing.spent_quota_of(text, integer);
-- Reads are capped, so it is told whose they are.
DROP FUNCTION IF EXISTS pricing.request_reads(text[], text[]);
COMMENT ON COLUMN pricing.user_caps.new_pairs_per_minute IS 'Pairs one user may begin to watch or hold, or have fetched by reads, in a minute.';
COMMENT ON COLUMN pricing.user_caps.pairs_per_user IS 'Pairs one user may watch at once, and as many may be held; reads have no more fetched in a minute.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'Who has begun to watch or hold something lately, or read what had to be fetched.';

-- An answer that cannot come: what a fetcher asks for, only some classes of instruments have. And without a word on it, daily
-- values are judged by their market.
ALTER TABLE pricing.data_type_registry ALTER COLUMN staleness_function SET DEFAULT '';
CREATE FUNCTION pricing.apply_fetcher() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    classes text[] := CASE WHEN NEW.fetcher = 'nav' THEN ARRAY['fund', 'etf']
                           WHEN pricing.is_document(NEW.fetcher) THEN ARRAY['equity', 'etf', 'fund'] END;
BEGIN
    IF NEW.staleness_function = '' THEN
        NEW.staleness_function := CASE WHEN NEW.fetcher IN ('daily_bars', 'nav') THEN 'is_market_stale' ELSE 'is_data_stale' END;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.fetcher, NEW.asset_class) = (OLD.fetcher, OLD.asset_class) THEN
        RETURN NEW; -- what stands may go on, and be retired
    END IF;
    IF NEW.asset_class <> ALL (classes) THEN
        RAISE EXCEPTION 'data type %: the fetcher % does not fit the asset class %: only instruments of % have what it asks for',
            NEW.data_type, NEW.fetcher, NEW.asset_class, pg_catalog.array_to_string(classes, ', ')
            USING HINT = 'Name another fetcher (quote and daily_bars fit every class), or the asset class of the instruments that are meant.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.apply_fetcher() IS
    'Refuses a data type whose fetcher does not fit its asset class, and names the judge of its staleness where the row does not: the market for daily values, the TTL for all else.';
-- Triggers fire by name: before check_data_type.
CREATE TRIGGER apply_fetcher BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW EXECUTE FUNCTION pricing.apply_fetcher();

-- Where a week's leaf is missing, tasks finish all the same.
CREATE TABLE pricing.api_call_queue_completed_rest PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) DEFAULT;
CREATE INDEX completed_rest_backfill ON pricing.api_call_queue_completed_rest (backfill_id) WHERE backfill_id IS NOT NULL;
COMMENT ON TABLE pricing.api_call_queue_completed_rest IS 'Finished tasks of a week whose leaf is missing. Empty, unless somebody has dropped one.';

-- A price outlives the log of calls and Dagster's record of the run. Who brought it stays known as long as it.
CREATE TABLE pricing.past_calls (
    call_id      bigint PRIMARY KEY,
    provider     text NOT NULL,
    key_name     text NOT NULL,
    data_type    text NOT NULL,
    window_start date,
    window_end   date,
    symbols      integer NOT NULL,
    run_id       text,
    worker       text NOT NULL,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz NOT NULL,
    http_status  integer,
    wire_bytes   bigint
);
COMMENT ON TABLE pricing.past_calls IS
    'Calls that were answered, once they leave collector_call_log: what a price that they brought needs to be traced. They are kept for good, as prices are.';
COMMENT ON COLUMN pricing.past_calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.past_calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.past_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.past_calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.past_calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.past_calls.run_id IS 'Dagster''s id of the run that made it, also when Dagster has forgotten that run. NULL = none of Dagster''s.';
COMMENT ON COLUMN pricing.past_calls.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.past_calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.past_calls.finished_at IS 'When its answer was settled.';
COMMENT ON COLUMN pricing.past_calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.past_calls.wire_bytes IS 'Headers and body as they were sent, compressed.';
CREATE VIEW pricing.calls AS
    SELECT c.call_id, c.provider, c.key_name, c.data_type, nullif(c.window_start, '-infinity') AS window_start,
           nullif(c.window_end, 'infinity') AS window_end, cardinality(c.symbols) AS symbols, c.run_id, c.worker,
           c.started_at, c.finished_at, c.http_status, c.wire_bytes
    FROM pricing.collector_call_log c
    UNION ALL
    SELECT p.call_id, p.provider, p.key_name, p.data_type, p.window_start, p.window_end, p.symbols, p.run_id, p.worker,
           p.started_at, p.finished_at, p.http_status, p.wire_bytes
    FROM pricing.past_calls p;
COMMENT ON VIEW pricing.calls IS 'Every call that a price may name, of the log and of before: the place to trace a price from.';
COMMENT ON COLUMN pricing.calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.calls.run_id IS 'Dagster''s id of the run that made it. NULL = none of Dagster''s.';
COMMENT ON COLUMN pricing.calls.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.calls.wire_bytes IS 'Headers and body as they were sent, compressed.';

-- Twelve Data answers up to 120 symbols a call for spans, too.
ALTER TABLE pricing.provider_capabilities ADD COLUMN window_days_per_call integer
    CONSTRAINT window_days_are_positive CHECK (window_days_per_call > 0);
COMMENT ON COLUMN pricing.provider_capabilities.window_days_per_call IS
    'The most days that one call for a span may ask for, over all its symbols: a long span travels alone. NULL = window_batch_size alone decides.';
UPDATE pricing.provider_capabilities SET window_batch_size = 120, window_days_per_call = 6000
WHERE provider = 'twelvedata' AND fetcher = 'daily_bars' AND window_batch_size = 1;

-- Without a length nobody can tell beforehand whether an answer is whole.
ALTER TABLE pricing.collector_call_log ADD COLUMN is_unannounced boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pricing.collector_call_log.is_unannounced IS
    'Its answer came without a Content-Length. Its bytes were counted as they arrived; `status` counts such calls.';
CREATE INDEX collector_call_log_unannounced ON pricing.collector_call_log (provider, started_at) WHERE is_unannounced;

-- It returns one column more.
DROP FUNCTION IF EXISTS pricing.plan_backfill(text, date, date, text[], text);
