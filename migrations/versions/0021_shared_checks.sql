-- Checks that run at once share the data types among them.

DROP FUNCTION IF EXISTS pricing.enqueue_due_pairs(text[], integer, text[], text[], boolean);
DROP FUNCTION IF EXISTS pricing.check_pairs_due(text[], integer, text[], text[], boolean);
