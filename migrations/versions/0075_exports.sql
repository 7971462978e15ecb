-- Months of history as files outside the database, and which of them have left it.
ALTER TABLE pricing.data_type_registry ADD COLUMN keep_months integer;
-- Two steps, so that rows are checked without keeping others out.
ALTER TABLE pricing.data_type_registry ADD CONSTRAINT keep_months_is_sane CHECK (keep_months BETWEEN 3 AND 1200) NOT VALID;
ALTER TABLE pricing.data_type_registry VALIDATE CONSTRAINT keep_months_is_sane;
ALTER TABLE pricing.data_type_registry ADD CONSTRAINT months_are_thinned_before_they_leave CHECK (thin_after_days < keep_months * 28) NOT VALID;
ALTER TABLE pricing.data_type_registry VALIDATE CONSTRAINT months_are_thinned_before_they_leave;
COMMENT ON COLUMN pricing.data_type_registry.keep_months IS
    'Months of history, beside the current one, that stay in the database; older ones leave it once their file is verified. NULL = all stay.';

CREATE TABLE pricing.exported_months (
    data_type text NOT NULL,
    month date NOT NULL,
    versions bigint NOT NULL,
    mark jsonb NOT NULL,
    file_bytes bigint NOT NULL,
    sha256 text NOT NULL,
    exported_at timestamptz NOT NULL,
    moved_at timestamptz,
    CONSTRAINT exported_months_pkey PRIMARY KEY (data_type, month),
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry (data_type) ON DELETE CASCADE,
    CONSTRAINT month_begins_on_its_first CHECK (extract(day FROM month) = 1)
);
COMMENT ON TABLE pricing.exported_months IS 'Months of history that are a file outside the database.';
COMMENT ON COLUMN pricing.exported_months.data_type IS 'Whose history.';
COMMENT ON COLUMN pricing.exported_months.month IS 'First day of a UTC month of observed_at.';
COMMENT ON COLUMN pricing.exported_months.versions IS 'Values in the file: those that are believed, and those that were.';
COMMENT ON COLUMN pricing.exported_months.mark IS 'What the database had of the month then, as pricing.month_marks tells it. Another one now = the export is due again.';
COMMENT ON COLUMN pricing.exported_months.file_bytes IS 'Size of the file.';
COMMENT ON COLUMN pricing.exported_months.sha256 IS 'Digest of the file.';
COMMENT ON COLUMN pricing.exported_months.exported_at IS 'When the file was written last.';
COMMENT ON COLUMN pricing.exported_months.moved_at IS 'Since when the values are in the file alone, but for the newest ones of each pair; NULL = all are in the database, too.';

CREATE TABLE pricing.moved_days (
    data_type text NOT NULL,
    symbol text NOT NULL,
    days datemultirange NOT NULL,
    noted_days datemultirange NOT NULL,
    CONSTRAINT moved_days_pkey PRIMARY KEY (data_type, symbol),
    CONSTRAINT data_type_is_registered FOREIGN KEY (data_type) REFERENCES pricing.data_type_registry (data_type) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.moved_days IS 'Pairs with values that have left the database for a file.';
COMMENT ON COLUMN pricing.moved_days.data_type IS 'Whose values.';
COMMENT ON COLUMN pricing.moved_days.symbol IS 'Whose values.';
COMMENT ON COLUMN pricing.moved_days.days IS 'UTC days of which a value is believed that has left.';
COMMENT ON COLUMN pricing.moved_days.noted_days IS 'The same, and days of which only values that were believed earlier have left.';

-- They take values from the files, too, so they are other functions now.
DROP FUNCTION IF EXISTS pricing.prices_as_of(text, text, date, date, timestamptz);
DROP FUNCTION IF EXISTS pricing.close_before(text, text, date, timestamptz);
DROP FUNCTION IF EXISTS pricing.left_by_dividend(text, text, text, date, numeric, text, timestamptz);
DROP FUNCTION IF EXISTS pricing.adjustment_steps(text, text, boolean, timestamptz);
DROP FUNCTION IF EXISTS pricing.adjusted_prices(text, text, date, date, timestamptz, text);
