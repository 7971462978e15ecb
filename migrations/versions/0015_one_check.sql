-- One check judges and queues the pairs of all data types, and a task is finished in one step.

DROP FUNCTION IF EXISTS pricing.enqueue_due_of_type(text, text[], integer, boolean);
DROP FUNCTION IF EXISTS pricing.raise_tasks(text, text[]);
DROP FUNCTION IF EXISTS pricing.finish_held(bigint[]);
