-- What the queue and the demand are found by.

-- Values of a call come as arrays, no longer through a staging table.
DROP FUNCTION IF EXISTS pricing.open_staging();
DROP FUNCTION IF EXISTS pricing.merge_prices(text, text, bigint, boolean);

-- A claim changes the status of every task that it takes. While an index names the status, that writes anew into each
-- index of the table: a quarter of what a claim costs. So none names it: run_after tells what waits for its time, and
-- what is in work is found through the open calls of the call log.
DROP INDEX pricing.live_claim;
DROP INDEX pricing.live_scheduled;
DROP INDEX pricing.live_processing;
CREATE INDEX live_claim ON pricing.api_call_queue_live (provider, priority DESC, cadence_minutes, id) WHERE run_after IS NULL;
CREATE INDEX live_scheduled ON pricing.api_call_queue_live (run_after) WHERE run_after IS NOT NULL;

-- What waits for its task is due at no time, so it needs no entry: the check, which moves pairs there, writes one less.
DROP INDEX pricing.demand_due;
CREATE INDEX demand_due ON pricing.demand (data_type, due_at) WHERE due_at < 'infinity';
