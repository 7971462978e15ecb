-- name: add
-- Store the hash of a new token; no row if its name is taken.
INSERT INTO pricing.api_tokens (name, secret_hash, scopes, user_id)
VALUES (:name, :secret_hash, CAST(:scopes AS text[]), CAST(:user_id AS text))
ON CONFLICT (name) DO NOTHING RETURNING token_id;

-- name: all
-- All tokens, without their hashes.
SELECT token_id, name, scopes, user_id, created_at, last_used_at FROM pricing.api_tokens ORDER BY name;

-- name: find
-- The token with this hash.
SELECT token_id, name, scopes, user_id, created_at, last_used_at FROM pricing.api_tokens WHERE secret_hash = :secret_hash;

-- name: remove
-- Remove a token; no row if there is none of this name.
DELETE FROM pricing.api_tokens WHERE name = :name RETURNING token_id;

-- name: note_uses
-- Requests have just come with these tokens.
SELECT pricing.note_token_uses(CAST(:token_ids AS bigint[]));
