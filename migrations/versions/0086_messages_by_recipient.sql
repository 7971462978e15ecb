-- No version is released yet, so no client is at work while this runs.
-- squawk-ignore-file adding-field-with-default, ban-drop-column
-- Messages wait in a line for each recipient: one that hangs, or is in its quiet hours, holds up nobody else's.
ALTER TABLE pricing.async_operations
    ADD COLUMN recipient text NOT NULL GENERATED ALWAYS AS (left(coalesce(payload ->> 'recipient', ''), 100)) STORED,
    ADD COLUMN priority smallint NOT NULL DEFAULT 2 CONSTRAINT priority_is_known CHECK (priority BETWEEN 0 AND 2);
COMMENT ON COLUMN pricing.async_operations.recipient IS 'Whose line it waits in; empty = its payload names nobody.';
COMMENT ON COLUMN pricing.async_operations.priority IS
    'Lower numbers are claimed first. 0 = P0, also in quiet hours and while the recipient fails; 1 = other alerts; '
    '2 = the rest.';

UPDATE pricing.async_operations
SET priority = CASE WHEN payload ->> 'title' LIKE '[P0]%' THEN 0 ELSE 1 END WHERE is_urgent;

DROP INDEX pricing.operations_due;
ALTER TABLE pricing.async_operations DROP COLUMN is_urgent;
CREATE INDEX operations_due ON pricing.async_operations_live (operation_type, recipient, priority, due_at, id) WHERE status = 'pending';
COMMENT ON INDEX pricing.operations_due IS 'The lines of waiting operations: by type, recipient and priority.';

CREATE TABLE pricing.failing_recipients (
    operation_type  text NOT NULL,
    recipient       text NOT NULL,
    since           timestamptz NOT NULL,
    failed_at       timestamptz NOT NULL,
    failures        integer NOT NULL DEFAULT 0,
    holds           integer NOT NULL DEFAULT 0,
    held_until      timestamptz,
    is_dead         boolean NOT NULL DEFAULT false,
    last_error      text NOT NULL DEFAULT '',
    PRIMARY KEY (operation_type, recipient)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.failing_recipients IS
    'Recipients whose last attempt failed. The next attempt that succeeds deletes the row. After three failures '
    'the recipient''s breaker holds its messages back.';
COMMENT ON COLUMN pricing.failing_recipients.operation_type IS
    'Its channel, or another operation type whose payload names it.';
COMMENT ON COLUMN pricing.failing_recipients.recipient IS 'Who cannot be reached.';
COMMENT ON COLUMN pricing.failing_recipients.since IS 'When the first of these attempts failed.';
COMMENT ON COLUMN pricing.failing_recipients.failed_at IS 'When the last of them failed.';
COMMENT ON COLUMN pricing.failing_recipients.failures IS 'How many attempts have failed in a row.';
COMMENT ON COLUMN pricing.failing_recipients.holds IS
    'How often the breaker has opened since then; each hold is twice as long as the one before, up to 16 minutes.';
COMMENT ON COLUMN pricing.failing_recipients.held_until IS
    'Until then only P0 is attempted; NULL = the breaker has not opened.';
COMMENT ON COLUMN pricing.failing_recipients.is_dead IS
    'Whether the recipient counts as unreachable: a message was given up, or three attempts failed.';
COMMENT ON COLUMN pricing.failing_recipients.last_error IS 'Why the last attempt failed.';

-- Messages of a recipient wait for its quiet hours when they are claimed, not by their time.
UPDATE pricing.async_operations_live o SET due_at = greatest(o.enqueued_at, least(o.due_at, pricing.clock()))
WHERE o.status = 'pending' AND o.attempt = 0 AND EXISTS (SELECT FROM pricing.recipients r WHERE r.recipient = o.recipient AND r.quiet_from IS NOT NULL);
DROP FUNCTION IF EXISTS pricing.reconsider_quiet(text);
DROP FUNCTION IF EXISTS pricing.recover_operations();

-- Whether an alert has looked at the price that was there when it was made is a state, and not a question of time.
ALTER TABLE pricing.price_alerts
    ADD COLUMN is_settled boolean NOT NULL DEFAULT false,
    ADD COLUMN settles_at xid8;
COMMENT ON COLUMN pricing.price_alerts.is_settled IS
    'Whether it has looked at every price that was stored, or was being stored, when it was added. Until then it '
    'looks at the latest price, too.';
COMMENT ON COLUMN pricing.price_alerts.settles_at IS
    'It is settled by a look when all transactions before this one have ended; NULL = it has not looked yet.';
UPDATE pricing.price_alerts SET is_settled = condition IN ('each', 'stale');
