-- A history changes its basis when its own provider tells all of it on the other one.

ALTER TABLE pricing.restatements DROP CONSTRAINT kind_is_known;
ALTER TABLE pricing.restatements ADD CONSTRAINT kind_is_known CHECK (kind IN ('split', 'dividend', 'scattered', 'basis'));
COMMENT ON COLUMN pricing.restatements.kind IS
    'split = by one ratio that companies split by; dividend = by another one; scattered = single days; basis = as traded, of a history that is divided by splits.';
COMMENT ON COLUMN pricing.restatements.ratio IS 'What the stored values are divided by; of a basis 1.';
COMMENT ON COLUMN pricing.restatements.reopened_at IS
    'When a split became known, or the other basis came again, after which the history is fetched once more; NULL = neither did.';
