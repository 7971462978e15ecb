-- Positions of two logs of live streams are alike. A client that goes on must not take one for the other.
-- It has one row, which nobody waits for.
-- squawk-ignore adding-field-with-default, prefer-robust-stmts
ALTER TABLE pricing.stream_head ADD COLUMN log_id uuid NOT NULL DEFAULT gen_random_uuid();
COMMENT ON COLUMN pricing.stream_head.log_id IS 'Which log this is, of all databases. With the table''s own number, which a restore changes, it is part of the ids that clients go on after.';
