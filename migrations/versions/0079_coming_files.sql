-- Reads accept no file whose digest is unknown, so the next file of a month is noted before it takes its place.
ALTER TABLE pricing.exported_months ADD COLUMN coming jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.exported_months.coming IS
    'Files that are about to take the place of this one, or were when their export ended: sizes by digest. Reads accept them, too.';
