-- A client's read locks nothing: what it asks for is counted where workers serve it.

ALTER TABLE pricing.pair_requests ADD COLUMN user_id pricing.user_name;
COMMENT ON COLUMN pricing.pair_requests.user_id IS 'Whose read it is, against whose allowance it counts; NULL = no read of a client.';
DROP FUNCTION IF EXISTS pricing.request_pairs(text, text[], text[]);
DROP FUNCTION IF EXISTS pricing.admit_reads(text, integer);

CREATE TABLE pricing.read_charges (
    user_id    pricing.user_name,
    charged_at timestamptz,
    pairs      integer NOT NULL CONSTRAINT pairs_are_positive CHECK (pairs > 0),
    PRIMARY KEY (user_id, charged_at)
);
COMMENT ON TABLE pricing.read_charges IS
    'What workers have served of the reads of each user in the last minute. Only workers write it, one at a time, so no client keeps it locked.';
COMMENT ON COLUMN pricing.read_charges.user_id IS 'Who has read what had to be fetched.';
COMMENT ON COLUMN pricing.read_charges.charged_at IS 'When it was served.';
COMMENT ON COLUMN pricing.read_charges.pairs IS 'How many pairs that were.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'Who has begun to watch or hold something lately.';
