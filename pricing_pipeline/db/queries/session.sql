-- name: set_timeouts
-- A process that is frozen or cut off loses its session, and what others have locked is not waited for.
SELECT set_config('idle_in_transaction_session_timeout', '30s', false), set_config('lock_timeout', '2s', false),
       set_config('statement_timeout', '10min', false);
