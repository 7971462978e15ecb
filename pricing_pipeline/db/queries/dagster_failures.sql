-- name: noted
-- What is noted as failing of one kind, and why.
SELECT d.name, d.reason FROM pricing.dagster_failures d WHERE d.kind = :kind;
