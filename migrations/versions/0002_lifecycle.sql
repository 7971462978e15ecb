-- The whole life of a task: extend, retry and cancel by hand, wake-up.

DROP FUNCTION IF EXISTS pricing.release_tasks(bigint[], uuid);
