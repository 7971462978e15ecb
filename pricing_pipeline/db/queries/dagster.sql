-- name: settle
-- Whose runs a storage of Dagster's holds, in its own table of keys and values: who came first, or who owns the storage.
INSERT INTO kvs (key, value) VALUES ('pricing-pipeline/home', :home)
ON CONFLICT (key) DO UPDATE SET value = CASE WHEN :is_owner THEN excluded.value ELSE kvs.value END
RETURNING value;
