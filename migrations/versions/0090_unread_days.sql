ALTER TABLE pricing.slot_windows ADD COLUMN unread_days date[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.slot_windows.unread_days IS
    'Those of the days on which the answer has a slot whose id cannot be read: it says nothing about them.';
