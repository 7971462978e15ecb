-- What is to happen outside the database, queued in the transaction that causes it.
CREATE TABLE pricing.operation_types (
    operation_type      text PRIMARY KEY CONSTRAINT operation_type_is_plain_name CHECK (operation_type ~ '^[a-z][a-z0-9_]{0,47}$'),
    description         text NOT NULL DEFAULT '',
    payload_fields      jsonb NOT NULL DEFAULT '{}',
    max_attempts        smallint NOT NULL DEFAULT 3 CONSTRAINT operation_attempts_are_sane CHECK (max_attempts BETWEEN 1 AND 20),
    time_limit_seconds  smallint NOT NULL DEFAULT 30 CONSTRAINT operation_time_limit_is_sane CHECK (time_limit_seconds BETWEEN 1 AND 240),
    first_pause         interval NOT NULL DEFAULT '5 minutes' CONSTRAINT first_pause_is_sane CHECK (first_pause BETWEEN '1 second' AND '1 day'),
    is_active           boolean NOT NULL DEFAULT true
);
COMMENT ON TABLE pricing.operation_types IS 'What can be queued to happen outside the database, and how often it is tried.';
COMMENT ON COLUMN pricing.operation_types.operation_type IS 'Its name; a handler of this name does it.';
COMMENT ON COLUMN pricing.operation_types.description IS 'For people.';
COMMENT ON COLUMN pricing.operation_types.payload_fields IS
    'What a payload has: names with string, number, boolean, object, array or url; with a ? at the end it may be left out. Others are refused.';
COMMENT ON COLUMN pricing.operation_types.max_attempts IS 'Attempts before it is dead; counted when it is claimed.';
COMMENT ON COLUMN pricing.operation_types.time_limit_seconds IS 'How long one attempt may take.';
COMMENT ON COLUMN pricing.operation_types.first_pause IS 'Pause after the first failed attempt; it doubles with each further one.';
COMMENT ON COLUMN pricing.operation_types.is_active IS 'False = queued ones wait, and new ones are refused.';

CREATE SEQUENCE pricing.operation_id_seq;
COMMENT ON SEQUENCE pricing.operation_id_seq IS 'Numbers side effects.';
CREATE TABLE pricing.async_operations (
    id              bigint NOT NULL DEFAULT nextval('pricing.operation_id_seq'),
    operation_type  text NOT NULL,
    payload         jsonb NOT NULL,
    idempotency_key uuid NOT NULL DEFAULT gen_random_uuid(),
    status          text NOT NULL DEFAULT 'pending',
    due_at          timestamptz NOT NULL,
    is_urgent       boolean NOT NULL DEFAULT false,
    attempt         smallint NOT NULL DEFAULT 0,
    max_attempts    smallint NOT NULL,
    claim_token     uuid,
    claimed_at      timestamptz,
    lease_until     timestamptz,
    worker          text,
    enqueued_at     timestamptz NOT NULL,
    finished_at     timestamptz,
    errors          jsonb NOT NULL DEFAULT '[]',
    result          jsonb
) PARTITION BY LIST (status);
COMMENT ON TABLE pricing.async_operations IS 'Side effects: each is to happen once outside the database. A repeat has the same idempotency key.';
COMMENT ON COLUMN pricing.async_operations.id IS 'Rises with each operation, over all states.';
COMMENT ON COLUMN pricing.async_operations.operation_type IS 'What is to happen.';
COMMENT ON COLUMN pricing.async_operations.payload IS 'What it needs to know.';
COMMENT ON COLUMN pricing.async_operations.idempotency_key IS 'Reaches the receiver, the same in every attempt.';
COMMENT ON COLUMN pricing.async_operations.status IS 'pending, processing, completed, failed or cancelled.';
COMMENT ON COLUMN pricing.async_operations.due_at IS 'Not claimed before.';
COMMENT ON COLUMN pricing.async_operations.is_urgent IS 'Claimed before all that are not.';
COMMENT ON COLUMN pricing.async_operations.attempt IS 'Attempts begun; a retry by hand begins anew.';
COMMENT ON COLUMN pricing.async_operations.max_attempts IS 'Attempts before it is dead, by its type when it was queued.';
COMMENT ON COLUMN pricing.async_operations.claim_token IS 'Who does it now: only the claim with this token may finish it.';
COMMENT ON COLUMN pricing.async_operations.claimed_at IS 'When the last attempt began.';
COMMENT ON COLUMN pricing.async_operations.lease_until IS 'When the attempt counts as lost.';
COMMENT ON COLUMN pricing.async_operations.worker IS 'Host and process of the last attempt.';
COMMENT ON COLUMN pricing.async_operations.enqueued_at IS 'When it was queued.';
COMMENT ON COLUMN pricing.async_operations.finished_at IS 'When it was completed, failed for good or was cancelled.';
COMMENT ON COLUMN pricing.async_operations.errors IS 'All failed attempts: at, attempt, message.';
COMMENT ON COLUMN pricing.async_operations.result IS 'What the handler brought back, if anything.';

CREATE TABLE pricing.async_operations_live PARTITION OF pricing.async_operations (
    PRIMARY KEY (id) WITH (fillfactor=45),
    CONSTRAINT operation_has_its_columns CHECK (((status = 'processing') = (claim_token IS NOT NULL)) AND ((claim_token IS NULL) = (lease_until IS NULL)))
) FOR VALUES IN ('pending', 'processing') WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, fillfactor = 40);
COMMENT ON TABLE pricing.async_operations_live IS 'Operations that wait or are under way.';
CREATE INDEX operations_due ON pricing.async_operations_live (is_urgent DESC, due_at, id) WHERE status = 'pending';
COMMENT ON INDEX pricing.operations_due IS 'The order in which operations are claimed.';
CREATE INDEX operations_claimed ON pricing.async_operations_live (lease_until) WHERE status = 'processing';
COMMENT ON INDEX pricing.operations_claimed IS 'Attempts whose worker may be lost.';

CREATE TABLE pricing.async_operations_dead PARTITION OF pricing.async_operations (
    PRIMARY KEY (id), CONSTRAINT dead_operation_is_finished CHECK (finished_at IS NOT NULL)) FOR VALUES IN ('failed', 'cancelled');
COMMENT ON TABLE pricing.async_operations_dead IS 'Operations that failed or were cancelled, with all their errors.';

CREATE TABLE pricing.async_operations_completed PARTITION OF pricing.async_operations (
    PRIMARY KEY (id), CONSTRAINT completed_operation_is_finished CHECK (finished_at IS NOT NULL)) FOR VALUES IN ('completed');
COMMENT ON TABLE pricing.async_operations_completed IS 'Operations that have happened; pruning deletes them after 14 days.';
CREATE INDEX operations_completed_at ON pricing.async_operations_completed (finished_at);
COMMENT ON INDEX pricing.operations_completed_at IS 'What pruning deletes.';

CREATE VIEW pricing.operation_status AS
SELECT o.operation_type, o.status, count(*) AS operations, min(o.enqueued_at) AS oldest_at, max(o.enqueued_at) AS newest_at,
       round(avg(o.attempt), 2) AS average_attempts
FROM pricing.async_operations o GROUP BY 1, 2;
COMMENT ON VIEW pricing.operation_status IS 'Operations by type and status: how many, since when, and how many attempts they took.';
COMMENT ON COLUMN pricing.operation_status.operation_type IS 'What is to happen.';
COMMENT ON COLUMN pricing.operation_status.status IS 'pending, processing, completed, failed or cancelled.';
COMMENT ON COLUMN pricing.operation_status.operations IS 'How many.';
COMMENT ON COLUMN pricing.operation_status.oldest_at IS 'When the first of them was queued.';
COMMENT ON COLUMN pricing.operation_status.newest_at IS 'When the last of them was queued.';
COMMENT ON COLUMN pricing.operation_status.average_attempts IS 'Attempts begun, in the mean.';

INSERT INTO pricing.operation_types (operation_type, description, payload_fields, max_attempts) VALUES
    ('email',   'Sends an e-mail to a recipient.', '{"recipient": "string", "title": "string", "body": "string"}', 3),
    ('sms',     'Sends a short message to a recipient''s telephone.', '{"recipient": "string", "title": "string", "body": "string"}', 3),
    ('chat',    'Sends a message to a recipient''s chat.', '{"recipient": "string", "title": "string", "body": "string"}', 3),
    ('webhook', 'Posts a signed message to a recipient''s URL.', '{"recipient": "string", "title": "string", "body": "string", "data": "object?"}', 5),
    ('log',     'Sends nothing: keeps what would have been sent.', '{"recipient": "string", "title": "string", "body": "string"}', 3);

CREATE TABLE pricing.recipients (
    recipient      text PRIMARY KEY CONSTRAINT recipient_is_plain_name CHECK (recipient ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    channel        text NOT NULL REFERENCES pricing.operation_types (operation_type)
                   CONSTRAINT channel_is_known CHECK (channel IN ('email', 'sms', 'chat', 'webhook', 'log')),
    least_severity text NOT NULL DEFAULT 'P1' CONSTRAINT severity_is_known CHECK (least_severity IN ('P0', 'P1', 'P2')),
    quiet_from     time,
    quiet_until    time,
    -- A zone that is not known is refused here, before a message needs it.
    time_zone      text NOT NULL DEFAULT 'UTC' CONSTRAINT time_zone_is_known CHECK ('2000-01-01 00:00+00'::timestamptz AT TIME ZONE time_zone IS NOT NULL),
    allows_private boolean NOT NULL DEFAULT false,
    is_active      boolean NOT NULL DEFAULT true,
    created_at     timestamptz NOT NULL,
    row_version    bigint NOT NULL DEFAULT 0,
    master_key_id  text,
    key_nonce      bytea,
    wrapped_key    bytea,
    secret_nonce   bytea,
    ciphertext     bytea,
    CONSTRAINT quiet_hours_are_whole CHECK ((quiet_from IS NULL) = (quiet_until IS NULL) AND quiet_from <> quiet_until),
    CONSTRAINT recipient_has_address CHECK ((channel = 'log') = (ciphertext IS NULL)
        AND num_nulls(master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext) IN (0, 5))
);
COMMENT ON TABLE pricing.recipients IS 'Who is told, by which channel, and when.';
COMMENT ON COLUMN pricing.recipients.recipient IS 'A name for people.';
COMMENT ON COLUMN pricing.recipients.channel IS 'email, sms, chat, webhook, or log, which sends nothing.';
COMMENT ON COLUMN pricing.recipients.least_severity IS 'P0 = told of alerts of P0 alone; P1 = of P0 and P1; P2 = of all.';
COMMENT ON COLUMN pricing.recipients.quiet_from IS 'Messages that are not P0 wait from then, by the recipient''s time zone; NULL = never.';
COMMENT ON COLUMN pricing.recipients.quiet_until IS '... until then.';
COMMENT ON COLUMN pricing.recipients.time_zone IS 'IANA zone of the quiet hours.';
COMMENT ON COLUMN pricing.recipients.allows_private IS 'Whether the address may be in a private network.';
COMMENT ON COLUMN pricing.recipients.is_active IS 'False = nothing is queued for it.';
COMMENT ON COLUMN pricing.recipients.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.recipients.row_version IS 'Rises with each change of the address; bound to the ciphertext.';
COMMENT ON COLUMN pricing.recipients.master_key_id IS 'The master key that sealed the address.';
COMMENT ON COLUMN pricing.recipients.key_nonce IS 'Nonce of the wrapped data key.';
COMMENT ON COLUMN pricing.recipients.wrapped_key IS 'Data key, sealed by the master key.';
COMMENT ON COLUMN pricing.recipients.secret_nonce IS 'Nonce of the ciphertext.';
COMMENT ON COLUMN pricing.recipients.ciphertext IS 'Address, and secret of a webhook, as JSON, sealed by the data key.';
