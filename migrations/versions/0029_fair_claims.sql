-- A task that needs more units than come free at a time has them saved.

ALTER TYPE pricing.call_allowance
    ADD ATTRIBUTE units_limit integer, ADD ATTRIBUTE is_scarce boolean,
    ADD ATTRIBUTE before_urgency integer, ADD ATTRIBUTE before_cadence integer, ADD ATTRIBUTE before_id bigint;
COMMENT ON COLUMN pricing.call_allowance.units_limit IS 'Units that the key''s narrowest limit allows in its window; NULL = no limit.';
COMMENT ON COLUMN pricing.call_allowance.is_scarce IS 'Some data type costs more units than are left.';
COMMENT ON COLUMN pricing.call_allowance.before_urgency IS
    'Only tasks before this place in the claim''s order are picked: units are saved for the task there. This is its -priority.';
COMMENT ON COLUMN pricing.call_allowance.before_cadence IS 'Its cadence in minutes.';
COMMENT ON COLUMN pricing.call_allowance.before_id IS 'Its id.';
