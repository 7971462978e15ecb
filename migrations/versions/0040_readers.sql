-- A reader counts as a viewer until it is served, so that a spent quota forgets no read.

UPDATE pricing.demand SET read_at = NULL WHERE read_at IS NOT NULL;
COMMENT ON COLUMN pricing.demand.read_at IS
    'A read has asked for the pair, last at this time, and is not served yet: it counts as a viewer. NULL = none waits.';
DROP FUNCTION IF EXISTS pricing.enqueue_due_pairs(text[], text[], boolean);
DROP FUNCTION IF EXISTS pricing.check_type(text, integer, text[], boolean, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS pricing.most_wanted(text, text, bigint, text[], integer, timestamptz, boolean);
DROP FUNCTION IF EXISTS pricing.check_by_halves(text, text[], boolean, timestamptz);
DROP FUNCTION IF EXISTS pricing.check_statement(text, text, text, text);
DROP FUNCTION IF EXISTS pricing.check_our_prices(
    text, timestamptz, text[], integer, boolean, timestamptz, text, integer, integer, text, bigint, boolean);
