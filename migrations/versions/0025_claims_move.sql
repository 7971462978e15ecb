-- Claims always move: a claim picks only tasks that could be called alone, and claims of all providers follow one another.

CREATE TYPE pricing.call_allowance AS (
    key_name text, units_left bigint, bytes_used bigint, quota_bytes bigint, is_probe boolean, is_single boolean, most_calls integer, most_tasks integer);
COMMENT ON TYPE pricing.call_allowance IS 'What a provider allows a claim: the key, its units and bytes, how many calls and tasks.';
COMMENT ON COLUMN pricing.call_allowance.key_name IS 'The key with the most room; NULL = no call is allowed.';
COMMENT ON COLUMN pricing.call_allowance.units_left IS 'Units that the key may be charged now.';
COMMENT ON COLUMN pricing.call_allowance.bytes_used IS 'Bytes of the last 720 hours, calls in flight included.';
COMMENT ON COLUMN pricing.call_allowance.quota_bytes IS 'Bytes allowed in 720 hours.';
COMMENT ON COLUMN pricing.call_allowance.is_probe IS 'The call decides whether the breaker closes.';
COMMENT ON COLUMN pricing.call_allowance.is_single IS 'Only one call may be made at a time: a probe, after a refusal, a delay between calls, max_in_flight 1.';
COMMENT ON COLUMN pricing.call_allowance.most_calls IS 'Calls that the claim may plan.';
COMMENT ON COLUMN pricing.call_allowance.most_tasks IS 'Tasks that are worth locking for them.';

CREATE TYPE pricing.picked_task AS (
    place tid, id bigint, data_type text, symbol text, window_start date, window_end date, priority integer, cadence_minutes integer,
    est_bytes bigint, attempt smallint, parts integer);
COMMENT ON TYPE pricing.picked_task IS 'A pending task that a claim has locked.';
COMMENT ON COLUMN pricing.picked_task.place IS 'Where its row is (ctid), by which it is updated.';
COMMENT ON COLUMN pricing.picked_task.id IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.data_type IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.symbol IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.window_start IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.window_end IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.priority IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.cadence_minutes IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.est_bytes IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.attempt IS 'Attempts before this one.';
COMMENT ON COLUMN pricing.picked_task.parts IS 'By how much smaller its calls are after refusals of whole batches.';

CREATE TABLE pricing.turns (
    name text PRIMARY KEY
);
COMMENT ON TABLE pricing.turns IS
    'Rows to lock for work that only one session may do at a time. A row lock needs the right to update, so no client can take it; it ends with its transaction.';
COMMENT ON COLUMN pricing.turns.name IS 'The work: claim.';
INSERT INTO pricing.turns (name) VALUES ('claim');

-- By urgency, so that one comparison says where a claim resumes.
DROP INDEX pricing.live_claim;
CREATE INDEX live_claim ON pricing.api_call_queue_live (provider, (-priority), cadence_minutes, id) WHERE run_after IS NULL;
COMMENT ON INDEX pricing.live_claim IS 'The order in which tasks are claimed.';
CREATE INDEX second_opinions_call ON pricing.second_opinions (call_id);

CREATE TRIGGER type_deleted AFTER DELETE ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.type_retired();
COMMENT ON FUNCTION pricing.type_retired() IS 'Cancels what is queued of a data type that is retired or deleted.';
