-- What has changed: every Dagster instance on this database reads it to run the assets downstream, and only then.
CREATE TABLE pricing.data_changes (
    data_type text NOT NULL,
    month date NOT NULL,
    changes bigint NOT NULL
);
COMMENT ON TABLE pricing.data_changes IS
    'Changes of stored data that have no number yet: a row for each call and month, added in the transaction that '
    'stores. pricing.number_changes moves them to data_versions.';
COMMENT ON COLUMN pricing.data_changes.data_type IS 'Whose data changed.';
COMMENT ON COLUMN pricing.data_changes.month IS
    'First day of the UTC month of observed_at whose history changed; -infinity = what is latest changed.';
COMMENT ON COLUMN pricing.data_changes.changes IS 'How many values were added, changed or taken out.';

CREATE TABLE pricing.data_versions (
    data_type text NOT NULL REFERENCES pricing.data_type_registry ON UPDATE CASCADE ON DELETE CASCADE,
    month date NOT NULL,
    version bigint NOT NULL,
    changes bigint NOT NULL,
    PRIMARY KEY (data_type, month)
);
COMMENT ON TABLE pricing.data_versions IS
    'The version of the stored data of each type and month. Versions rise in the order of commits, over all rows.';
COMMENT ON COLUMN pricing.data_versions.data_type IS 'Whose data it is.';
COMMENT ON COLUMN pricing.data_versions.month IS 'As in data_changes.';
COMMENT ON COLUMN pricing.data_versions.version IS
    'Number of the last change: milliseconds since 1970, or one more than the one before. Dagster shows it as the data '
    'version.';
COMMENT ON COLUMN pricing.data_versions.changes IS 'How many values were ever added, changed or taken out.';
CREATE INDEX data_versions_in_order ON pricing.data_versions (version);

ALTER TABLE pricing.latest_prices ADD COLUMN valued_by bigint;
COMMENT ON COLUMN pricing.latest_prices.valued_by IS
    'The call that first brought this value; later ones confirmed it. NULL = one before this was kept.';
