-- name: add
-- Store the hash of a new token; no row if its name is that of a token that has not expired.
INSERT INTO pricing.api_tokens AS t (name, secret_hash, scopes, is_feed, user_id, list, expires_at)
VALUES (:name, :secret_hash, CAST(:scopes AS text[]), :is_feed, CAST(:user_id AS text), CAST(:list AS text),
        pricing.clock() + make_interval(secs => CAST(:seconds AS float8)))
ON CONFLICT (name) DO UPDATE
SET secret_hash = EXCLUDED.secret_hash, scopes = EXCLUDED.scopes, is_feed = EXCLUDED.is_feed,
    user_id = EXCLUDED.user_id, list = EXCLUDED.list, expires_at = EXCLUDED.expires_at, created_at = pricing.clock(),
    last_used_at = NULL
WHERE t.expires_at <= pricing.clock()
RETURNING t.token_id;

-- name: empty_feed
-- Remove all pairs from the token of a feed.
DELETE FROM pricing.feed_pairs WHERE token_id = :token_id;

-- name: fill_feed
-- The token of a feed reads these pairs.
INSERT INTO pricing.feed_pairs (token_id, data_type, symbol)
SELECT :token_id, u.data_type, u.symbol
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol);

-- name: feed
-- The pairs or the list that the token of a feed reads.
SELECT data_type, symbol FROM pricing.feed_pairs WHERE token_id = :token_id
UNION
SELECT l.data_type, l.symbol
FROM pricing.api_tokens t
JOIN pricing.listed_pairs l ON (l.user_id, l.list) = (t.user_id, t.list)
WHERE t.token_id = :token_id
ORDER BY data_type, symbol;

-- name: forget
-- Remove tokens that expired long ago.
DELETE FROM pricing.api_tokens WHERE expires_at < pricing.clock() - interval '30 days';

-- name: all
-- All tokens, with their hashes and the seconds until they expire.
SELECT token_id, name, scopes, is_feed, user_id, list, created_at, last_used_at, expires_at, secret_hash,
       extract(epoch FROM expires_at - pricing.clock())::float8 AS seconds_left
FROM pricing.api_tokens ORDER BY name;

-- name: remove
-- Remove a token; no row for an unknown name.
DELETE FROM pricing.api_tokens WHERE name = :name RETURNING token_id;
