-- What is done thousands of times a second does less.

-- Enqueuing is told by its caller when none of the pairs should have a task yet.
DROP FUNCTION IF EXISTS pricing.enqueue_pairs(text[], text[], integer[], date[], date[], uuid);

-- A CHECK of the table is read and planned anew by every statement that updates it; a domain looks at the names that
-- are stored, and costs heartbeats nothing.
CREATE DOMAIN pricing.user_name AS text CONSTRAINT user_is_sane CHECK (length(VALUE) BETWEEN 1 AND 200);
COMMENT ON DOMAIN pricing.user_name IS 'Who watches or holds something: 1 to 200 characters.';
DROP POLICY IF EXISTS reader_sees_own ON pricing.active_subscriptions; -- made again by the grants
DROP POLICY IF EXISTS reader_sees_own ON pricing.holdings;
ALTER TABLE pricing.active_subscriptions DROP CONSTRAINT user_is_sane, ALTER COLUMN user_id TYPE pricing.user_name;
ALTER TABLE pricing.holdings DROP CONSTRAINT user_is_sane, ALTER COLUMN user_id TYPE pricing.user_name;
