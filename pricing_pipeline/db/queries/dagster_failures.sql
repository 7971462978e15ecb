-- name: note_runs
-- Note how the newest runs ended.
SELECT pricing.note_dagster_runs(CAST(:runs AS jsonb));

-- name: noted
-- What is noted as failing of one kind, and why.
SELECT d.name, d.reason FROM pricing.dagster_failures d WHERE d.kind = :kind;

-- name: note
-- Note all that fails now of one kind.
SELECT pricing.note_dagster_failures(CAST(:failing AS jsonb), :kind);
