-- Versions are numbered by the clock (number_changes): a sequence gave the numbers of a restored backup to other data.
-- No client used it, only that function.
-- squawk-ignore ban-drop-sequence
DROP SEQUENCE pricing.data_version_seq;
COMMENT ON COLUMN pricing.data_versions.version IS
    'Number of the last change: milliseconds since 1970, or one more than the one before. Dagster shows it as the data '
    'version.';
