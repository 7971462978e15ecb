-- Operation types of users' own, which may be channels, and the channel of REST tables.

-- Both tables have a few rows, so rewriting and checking them takes no time.
ALTER TABLE pricing.operation_types
    ADD COLUMN is_built_in boolean NOT NULL DEFAULT false,
    -- An alert or a price alert can be queued as an operation of such a type.
    -- squawk-ignore adding-field-with-default
    ADD COLUMN takes_messages boolean NOT NULL GENERATED ALWAYS AS (
        CASE WHEN jsonb_typeof(payload_fields) = 'object' THEN
            payload_fields @> '{"recipient": "string", "title": "string", "body": "string"}'
            AND coalesce(payload_fields -> 'data', '"object?"') = '"object?"'
            AND NOT jsonb_path_exists(payload_fields - '{recipient,title,body,data}'::text[], 'strict $.* ? (!(@ like_regex "[?]$"))')
        ELSE false END) STORED,
    ADD CONSTRAINT payload_fields_are_known CHECK (CASE WHEN jsonb_typeof(payload_fields) = 'object' THEN NOT jsonb_path_exists(payload_fields,
        'strict $.keyvalue() ? (!(@.key like_regex "^[A-Za-z_][A-Za-z0-9_]{0,47}$" && @.value.type() == "string"
                                  && @.value like_regex "^(string|number|boolean|object|array|url)[?]?$"))') ELSE false END),
    -- squawk-ignore disallowed-unique-constraint
    ADD CONSTRAINT operation_types_takes_messages UNIQUE (operation_type, takes_messages);
COMMENT ON COLUMN pricing.operation_types.is_built_in IS 'Whether the pipeline itself does it; false = a handler of the user''s own.';
COMMENT ON COLUMN pricing.operation_types.takes_messages IS 'Whether it can be a channel: it takes recipient, title and body, and needs nothing else.';
COMMENT ON INDEX pricing.operation_types_takes_messages IS 'Types that channels refer to.';
UPDATE pricing.operation_types SET is_built_in = true WHERE operation_type IN ('email', 'sms', 'chat', 'webhook', 'log');
INSERT INTO pricing.operation_types (operation_type, description, payload_fields, max_attempts, time_limit_seconds, is_built_in) VALUES
    ('rest', 'Writes prices into a table that a REST service keeps.', '{"recipient": "string", "title": "string", "body": "string", "data": "object?"}', 5, 60, true);

ALTER TABLE pricing.recipients
    -- squawk-ignore adding-field-with-default
    ADD COLUMN takes_messages boolean NOT NULL GENERATED ALWAYS AS (true) STORED,
    DROP CONSTRAINT channel_is_known,
    DROP CONSTRAINT recipients_channel_fkey,
    -- squawk-ignore adding-foreign-key-constraint
    ADD CONSTRAINT channel_takes_messages FOREIGN KEY (channel, takes_messages) REFERENCES pricing.operation_types (operation_type, takes_messages),
    DROP CONSTRAINT recipient_has_address,
    ADD CONSTRAINT recipient_has_address CHECK ((channel IN ('email', 'sms', 'chat', 'webhook', 'rest')) = (ciphertext IS NOT NULL)
        AND num_nulls(master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext) IN (0, 5));
COMMENT ON COLUMN pricing.recipients.takes_messages IS 'Always true: the channel must be an operation type that takes messages.';
COMMENT ON COLUMN pricing.recipients.channel IS 'email, sms, chat, webhook, rest, log, which sends nothing, or an operation type of the user''s own that takes messages.';
COMMENT ON COLUMN pricing.recipients.ciphertext IS
    'Address, and secret of a webhook, as JSON, sealed by the data key; NULL for log and channels of the user''s own.';
