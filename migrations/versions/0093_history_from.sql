-- Of the years before 1000 and of 9999 Dagster makes no months: one such type kept all definitions from loading. And a
-- day without end cannot be read by any process.
ALTER TABLE pricing.data_type_registry
    ADD CONSTRAINT history_begins_within_reason CHECK (history_from BETWEEN '1800-01-01' AND '2999-12-31') NOT VALID;
ALTER TABLE pricing.data_type_registry VALIDATE CONSTRAINT history_begins_within_reason;
