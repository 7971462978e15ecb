-- A product that its provider no longer sells: its slots stay as they were told, and cannot be booked.

ALTER TABLE pricing.products ADD COLUMN is_listed boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN pricing.products.is_listed IS 'False = its provider no longer has it.';

-- The last column of both: a revision is a whole row of products.
ALTER TABLE pricing.product_revisions ADD COLUMN is_listed boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN pricing.product_revisions.is_listed IS 'False = its provider no longer has it.';
