-- A version of the game that is taken back and comes again: the past keeps the times at which it was played before.
ALTER TABLE pricing.game_versions ADD COLUMN earlier_live_times tstzmultirange NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.game_versions.earlier_live_times IS 'When it was what people play before live_since, if it has come again.';
