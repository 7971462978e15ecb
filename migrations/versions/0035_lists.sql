-- A list of all symbols costs one call, and more bytes than a few symbols alone: it is asked for from so many on.

ALTER TABLE pricing.provider_capabilities ADD COLUMN batch_from integer NOT NULL DEFAULT 1
    CONSTRAINT batch_from_is_positive CHECK (batch_from > 0),
    ADD CONSTRAINT batch_from_is_at_most_batch_size CHECK (batch_from <= batch_size);
COMMENT ON COLUMN pricing.provider_capabilities.batch_from IS
    'The fewest symbols that share a call for latest prices; fewer are asked for one by one, as is what has failed before. 1 = any number shares a call.';

ALTER TYPE pricing.call_allowance ADD ATTRIBUTE most_listed integer;
COMMENT ON COLUMN pricing.call_allowance.most_listed IS
    'Tasks that are worth locking where lists of latest prices (batch_from) may serve them; 0 = the provider has no list.';
