-- Bars of an opened day that were noted while a worker released the earlier ones were forgotten with the day.
ALTER TABLE pricing.opened_days ADD COLUMN notes bigint NOT NULL DEFAULT 1;
COMMENT ON COLUMN pricing.opened_days.notes IS
    'How often bars of the day were noted: a worker forgets the day only if it has seen them all.';

DROP FUNCTION IF EXISTS pricing.bars_of_opened_days();
