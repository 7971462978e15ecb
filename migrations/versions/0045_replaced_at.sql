-- `provider rotate` encrypts keys anew, and this column told something else: when a key was replaced by another.
-- Nobody but the pipeline reads this table, and the pipeline is stopped for an upgrade.
-- squawk-ignore renaming-column
ALTER TABLE pricing.provider_credentials RENAME COLUMN rotated_at TO replaced_at;
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a schedule reached it and could not queue it: its provider can take no more, or another session was in the way.';
