-- Who reads sees no requests that name nobody: the numbers of their transactions told who had asked. Each policy is made
-- again by the grants.

DROP POLICY IF EXISTS reader_sees_own ON pricing.active_subscriptions;
DROP POLICY IF EXISTS reader_sees_own ON pricing.holdings;
DROP POLICY IF EXISTS reader_sees_own ON pricing.pair_requests;
DROP POLICY IF EXISTS reader_sees_own ON pricing.read_charges;
DROP POLICY IF EXISTS reader_sees_own ON pricing.user_allowances;

-- Made again with clearer names of what they take and return.
DROP FUNCTION IF EXISTS pricing.key_room(text, timestamptz);
DROP FUNCTION IF EXISTS pricing.store_credential(text, text, bigint, text, bytea, bytea, bytea, bytea);
DROP FUNCTION IF EXISTS pricing.reseal_credential(text, text, bigint, bigint, text, bytea, bytea, bytea, bytea);
DROP FUNCTION IF EXISTS pricing.set_key_limits(text, text, text[], integer[]);
