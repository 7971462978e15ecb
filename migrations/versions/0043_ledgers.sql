-- What is counted against limits is a worker's to read only. Bytes are reserved by the sizes of tasks, which it writes:
-- one of less than a byte would give the quota back.

UPDATE pricing.api_call_queue_live SET est_bytes = 1 WHERE est_bytes < 1;
ALTER TABLE pricing.api_call_queue_live ADD CONSTRAINT estimate_is_positive CHECK (est_bytes > 0);
