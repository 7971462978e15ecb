-- Who reads sees no requests that name nobody: the numbers of their transactions told who had asked. Each policy is made
-- again by the grants.

DROP POLICY IF EXISTS reader_sees_own ON pricing.active_subscriptions;
DROP POLICY IF EXISTS reader_sees_own ON pricing.holdings;
DROP POLICY IF EXISTS reader_sees_own ON pricing.pair_requests;
DROP POLICY IF EXISTS reader_sees_own ON pricing.read_charges;
DROP POLICY IF EXISTS reader_sees_own ON pricing.user_allowances;
