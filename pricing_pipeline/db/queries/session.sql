-- name: set_timeouts
-- A process that is frozen or cut off loses its session, and what others have locked is not waited for. What a process that
-- has died had asked for ends within seconds: nobody else gets at the rows that it has locked.
SELECT set_config('idle_in_transaction_session_timeout', '30s', false), set_config('lock_timeout', '2s', false),
       set_config('statement_timeout', '10min', false), set_config('client_connection_check_interval', '5s', false);

-- name: count_warnings
-- Add counts of warnings that this program has heard.
SELECT pricing.count_warnings(CAST(:heard AS jsonb));
