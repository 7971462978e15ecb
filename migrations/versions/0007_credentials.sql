-- Providers' keys, encrypted. The words for what each column binds are in pricing_pipeline/sealing.py.

CREATE SEQUENCE pricing.credential_version_seq;
COMMENT ON SEQUENCE pricing.credential_version_seq IS
    'Versions of rows of provider_credentials. None is used twice, so that no two ciphertexts are bound to the same.';

CREATE TABLE pricing.provider_credentials (
    provider      text NOT NULL REFERENCES pricing.data_collectors ON DELETE CASCADE,
    key_name      text NOT NULL,
    row_version   bigint NOT NULL CONSTRAINT credential_version_is_unique UNIQUE,
    master_key_id text NOT NULL CONSTRAINT master_key_id_is_plain CHECK (master_key_id ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    key_nonce     bytea NOT NULL CONSTRAINT key_nonce_has_96_bits CHECK (octet_length(key_nonce) = 12),
    wrapped_key   bytea NOT NULL CONSTRAINT wrapped_key_has_key_and_tag CHECK (octet_length(wrapped_key) = 48),
    secret_nonce  bytea NOT NULL CONSTRAINT secret_nonce_has_96_bits CHECK (octet_length(secret_nonce) = 12),
    ciphertext    bytea NOT NULL CONSTRAINT ciphertext_is_padded CHECK (octet_length(ciphertext) BETWEEN 80 AND 4176 AND octet_length(ciphertext) % 64 = 16),
    created_at    timestamptz NOT NULL,
    rotated_at    timestamptz,
    sealed_at     timestamptz NOT NULL,
    PRIMARY KEY (provider, key_name),
    -- A worker may delete rows of provider_keys; those that have a secret must not go that way.
    CONSTRAINT credential_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys,
    CONSTRAINT nonces_differ CHECK (key_nonce <> secret_nonce)
);
COMMENT ON TABLE pricing.provider_credentials IS
    'API keys of providers under AES-256-GCM. Each row has a data key of its own, wrapped by a master key that is not in the database. Both ciphertexts are bound to provider, key_name, row_version and master_key_id: in any other row they do not open.';
COMMENT ON COLUMN pricing.provider_credentials.provider IS 'Whose key.';
COMMENT ON COLUMN pricing.provider_credentials.key_name IS 'Its name, under which provider_keys has its limits and pauses.';
COMMENT ON COLUMN pricing.provider_credentials.row_version IS 'Another one each time the row is sealed.';
COMMENT ON COLUMN pricing.provider_credentials.master_key_id IS 'The master key that wraps wrapped_key.';
COMMENT ON COLUMN pricing.provider_credentials.key_nonce IS 'Nonce of wrapped_key, random.';
COMMENT ON COLUMN pricing.provider_credentials.wrapped_key IS 'The data key, encrypted with the master key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.secret_nonce IS 'Nonce of ciphertext, random.';
COMMENT ON COLUMN pricing.provider_credentials.ciphertext IS 'The API key, padded, encrypted with the data key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.created_at IS 'When a key of this name was first stored.';
COMMENT ON COLUMN pricing.provider_credentials.rotated_at IS 'When it was last replaced by another; NULL = never.';
COMMENT ON COLUMN pricing.provider_credentials.sealed_at IS 'When the row was last encrypted, be it for a new master key only.';

COMMENT ON TABLE pricing.provider_keys IS
    'API keys of a provider by name, each with its own rate limits. A provider without rows has one key named default. Secrets are in provider_credentials, encrypted, or in settings.';
COMMENT ON COLUMN pricing.provider_keys.key_name IS 'Its name.';
