-- name: note_runs
-- Note how the newest runs ended.
SELECT pricing.note_dagster_runs(CAST(:runs AS jsonb));

-- name: noted
-- What of a kind is noted as failing, and why.
SELECT d.name, d.reason FROM pricing.dagster_failures d WHERE d.kind = :kind;

-- name: note
-- Note what of a kind fails now.
SELECT pricing.note_dagster_ticks(CAST(:failing AS jsonb), :kind);
