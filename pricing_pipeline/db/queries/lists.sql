-- name: add
-- Add these pairs to a list of a user.
INSERT INTO pricing.listed_pairs (user_id, list, data_type, symbol)
SELECT :user_id, :list, u.data_type, u.symbol
FROM unnest(CAST(:data_types AS text[]), CAST(:symbols AS text[])) AS u (data_type, symbol)
ON CONFLICT DO NOTHING;

-- name: pairs
-- The pairs of a user's lists, or of one of them.
SELECT list, data_type, symbol FROM pricing.listed_pairs
WHERE user_id = :user_id AND (CAST(:list AS text) IS NULL OR list = :list)
ORDER BY list, data_type, symbol;

-- name: remove
-- Removes symbols from a list of a user; without symbols, removes the list.
DELETE FROM pricing.listed_pairs
WHERE user_id = :user_id AND list = :list
  AND (CAST(:symbols AS text[]) IS NULL OR symbol = ANY (CAST(:symbols AS text[])));
