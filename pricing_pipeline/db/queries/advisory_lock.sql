-- name: take
-- Take a lock that ends with the transaction; false when anyone holds it.
SELECT pg_try_advisory_xact_lock(hashtextextended('pricing.' || :name, 0));

-- name: keep
-- Let the holder idle as long as it works; fails when its session is gone. Being a second statement, it also ends the
-- portal of the first one, whose snapshot would hold back vacuum for as long.
SET LOCAL idle_in_transaction_session_timeout = 0;
