-- Who may use the HTTP API, and for what.
CREATE TABLE pricing.api_tokens (
    token_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL UNIQUE CONSTRAINT token_name_is_sane CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    secret_hash  bytea NOT NULL UNIQUE CONSTRAINT token_is_hashed CHECK (octet_length(secret_hash) = 32),
    scopes       text[] NOT NULL CONSTRAINT token_scopes_are_known
                 CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'watch', 'operate', 'admin']),
    user_id      text CONSTRAINT user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    created_at   timestamptz NOT NULL DEFAULT pricing.clock(),
    last_used_at timestamptz
);
COMMENT ON TABLE pricing.api_tokens IS 'Tokens of the HTTP API. The token itself is shown once, when it is made, and is stored nowhere.';
COMMENT ON COLUMN pricing.api_tokens.token_id IS 'Number of the token.';
COMMENT ON COLUMN pricing.api_tokens.name IS 'What people call it by.';
COMMENT ON COLUMN pricing.api_tokens.secret_hash IS 'SHA-256 of the token, which has 256 random bits.';
COMMENT ON COLUMN pricing.api_tokens.scopes IS 'What it allows: read (prices and history), watch (heartbeats and holdings), operate (the queue, the quarantine, backfills, alerts), admin (all of these, and settings).';
COMMENT ON COLUMN pricing.api_tokens.user_id IS 'The user that it acts for; NULL = an application that names the user in each request.';
COMMENT ON COLUMN pricing.api_tokens.created_at IS 'When it was made.';
COMMENT ON COLUMN pricing.api_tokens.last_used_at IS 'When a request last came with it, to the minute.';
