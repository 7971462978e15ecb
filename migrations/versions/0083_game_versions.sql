-- A version of the game that is taken back and comes again: the past keeps the times at which it was played before.
ALTER TABLE pricing.game_versions ADD COLUMN earlier_live_times tstzmultirange NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.game_versions.earlier_live_times IS 'When it was what people play before live_since, if it has come again.';

-- A higher version than the live one is a patch that the list of versions has not told yet, unless it is for tests.
ALTER TABLE pricing.game_versions ADD COLUMN is_test boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN pricing.game_versions.is_test IS 'True = the provider says that it is for tests only, and most people do not play it.';
