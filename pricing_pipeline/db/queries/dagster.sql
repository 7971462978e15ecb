-- name: settle
-- The home whose runs a Dagster storage holds, in its own table of keys and values: the first home, or its owner.
INSERT INTO kvs (key, value) VALUES ('pricing-pipeline/home', :home)
ON CONFLICT (key) DO UPDATE SET value = CASE WHEN :is_owner THEN excluded.value ELSE kvs.value END
RETURNING value;

-- name: note_maker
-- Note in a storage, for its processes on all machines, that it was made for the pipeline. A copy has another identity.
INSERT INTO kvs (key, value) VALUES ('pricing-pipeline/made', :identity)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: maker
-- The identity of the storage that was made for the pipeline.
SELECT value FROM kvs WHERE key = 'pricing-pipeline/made';
