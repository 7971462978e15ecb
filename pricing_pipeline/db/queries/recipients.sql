-- name: all
-- Recipients, by name.
SELECT r.recipient, r.channel, r.user_id, r.takes_any_user, r.least_severity, r.quiet_from, r.quiet_until, r.time_zone,
       r.allows_private, r.is_active, r.created_at,
       r.row_version, r.master_key_id, r.key_nonce, r.wrapped_key, r.secret_nonce, r.ciphertext
FROM pricing.recipients r
WHERE coalesce(r.recipient = CAST(:recipient AS text), true)
ORDER BY 1;

-- name: next_version
-- A version for a row that is about to be sealed.
SELECT nextval('pricing.credential_version_seq');

-- name: add
-- Add a recipient.
INSERT INTO pricing.recipients
    (recipient, channel, user_id, takes_any_user, least_severity, quiet_from, quiet_until, time_zone, allows_private,
     created_at, row_version, master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext)
VALUES (:recipient, :channel, :user_id, :takes_any_user, :least_severity, :quiet_from, :quiet_until, :time_zone,
        :allows_private, pricing.clock(),
        :row_version, :master_key_id, :key_nonce, :wrapped_key, :secret_nonce, :ciphertext)
ON CONFLICT (recipient) DO NOTHING
RETURNING recipient;

-- name: change
-- Change when and about what a recipient is notified.
UPDATE pricing.recipients
SET least_severity = :least_severity, quiet_from = :quiet_from, quiet_until = :quiet_until, time_zone = :time_zone,
    allows_private = :allows_private, is_active = :is_active
WHERE recipient = :recipient;

-- name: try_anew
-- Close the breaker of a recipient that was changed.
DELETE FROM pricing.failing_recipients WHERE recipient = :recipient;

-- name: unreached
-- Recipients that cannot be reached, and those whose channel is inactive while messages wait; and how many wait.
SELECT r.recipient, r.channel, t.is_active AS channel_is_active, f.since, f.failures, f.breaker_until,
       coalesce(f.is_dead, false) AS is_dead, f.last_error,
       (SELECT count(*) FROM pricing.async_operations_live o
        WHERE o.status = 'pending' AND (o.operation_type, o.recipient) = (r.channel, r.recipient)) AS waiting
FROM pricing.recipients r JOIN pricing.operation_types t ON t.operation_type = r.channel
LEFT JOIN pricing.failing_recipients f ON (f.operation_type, f.recipient) = (r.channel, r.recipient)
WHERE r.is_active
  AND (f.is_dead
       OR f.breaker_until > pricing.clock()
       OR (NOT t.is_active
           AND EXISTS (SELECT FROM pricing.async_operations_live o
                       WHERE o.status = 'pending'
                         AND (o.operation_type, o.recipient) = (r.channel, r.recipient))))
ORDER BY 1;

-- name: readdress
-- Replace the sealed address; none when the row is no longer the version that was read.
UPDATE pricing.recipients
SET row_version = :row_version, master_key_id = :master_key_id, key_nonce = :key_nonce, wrapped_key = :wrapped_key,
    secret_nonce = :secret_nonce, ciphertext = :ciphertext
WHERE recipient = :recipient AND row_version = :found_version
RETURNING recipient;

-- name: withdraw
-- Cancel waiting and failed messages of a recipient, so that a later recipient of the same name does not get them.
WITH failed AS (
    UPDATE pricing.async_operations_dead d SET status = 'cancelled'
    WHERE d.status = 'failed' AND d.payload ->> 'recipient' = :recipient)
SELECT pricing.cancel_operations(ARRAY(
    SELECT o.id FROM pricing.async_operations_live o
    WHERE o.payload ->> 'recipient' = :recipient
    ORDER BY 1));

-- name: remove
-- Remove a recipient; no row for an unknown one.
DELETE FROM pricing.recipients WHERE recipient = :recipient RETURNING recipient;
