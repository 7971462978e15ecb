-- Enqueuing is told by its caller when none of the pairs should have a task yet.
DROP FUNCTION IF EXISTS pricing.enqueue_pairs(text[], text[], integer[], date[], date[], uuid);
