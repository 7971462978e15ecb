-- name: set_up
-- A process that is frozen or cut off loses its session, and no session waits long for locks. A statement of a dead
-- process ends within seconds, so that its locks do not stop others. Queries are not compiled, because compiling takes
-- longer than our short queries, although plans that avoid whole tables look expensive enough for it.
SELECT set_config('idle_in_transaction_session_timeout', '30s', false), set_config('lock_timeout', '2s', false),
       set_config('statement_timeout', '10min', false), set_config('client_connection_check_interval', '5s', false),
       set_config('jit', 'off', false);

-- name: count_warnings
-- Add counts of warnings that this program has received.
SELECT pricing.count_warnings(CAST(:heard AS jsonb));

-- name: call
-- Calls a function of ours; call_sql fills in its name and its parameters.
SELECT * FROM pricing.{function}({arguments});

-- name: limit
-- How long each statement of this transaction may take.
SELECT set_config('statement_timeout', :limit, true);
