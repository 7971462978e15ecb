-- What a provider has shown of its limits, where that is less than the limit that is written down; and what pacing by the day
-- needs to know of all that is watched.
CREATE TABLE pricing.shown_limits (
    provider    text NOT NULL,
    key_name    text NOT NULL CONSTRAINT key_name_is_plain CHECK (key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    name        text NOT NULL,
    shown_units integer NOT NULL CONSTRAINT shown_limit_is_positive CHECK (shown_units > 0),
    shown_at    timestamptz NOT NULL,
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT shown_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.shown_limits IS
    'Limits of keys that answers have shown to be lower than provider_limits or provider_key_limits says. Claims keep to the lower one.';
COMMENT ON COLUMN pricing.shown_limits.provider IS 'Whose limit.';
COMMENT ON COLUMN pricing.shown_limits.key_name IS 'The key that was called with.';
COMMENT ON COLUMN pricing.shown_limits.name IS 'The limit''s name in provider_limits, which has its window.';
COMMENT ON COLUMN pricing.shown_limits.shown_units IS 'Units that the provider allows in the window, as it says.';
COMMENT ON COLUMN pricing.shown_limits.shown_at IS 'When it last said so, to the minute.';

CREATE FUNCTION pricing.forget_shown_limit() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_TABLE_NAME = 'provider_limits' THEN
        DELETE FROM pricing.shown_limits s WHERE (s.provider, s.name) = (OLD.provider, OLD.name);
    ELSIF TG_OP = 'DELETE' THEN
        DELETE FROM pricing.shown_limits s WHERE (s.provider, s.key_name, s.name) = (OLD.provider, OLD.key_name, OLD.name);
    ELSE
        DELETE FROM pricing.shown_limits s WHERE (s.provider, s.key_name, s.name) = (NEW.provider, NEW.key_name, NEW.name);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.forget_shown_limit() IS 'A person has written a limit: what was shown before does not count any more.';

CREATE TRIGGER forget_shown_limit AFTER UPDATE ON pricing.provider_limits
    FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_limit();
CREATE TRIGGER forget_shown_limit AFTER INSERT OR UPDATE OR DELETE ON pricing.provider_key_limits
    FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_limit();

CREATE TABLE pricing.watched_calendars (
    provider text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    calendar text NOT NULL,
    PRIMARY KEY (provider, calendar)
);
COMMENT ON TABLE pricing.watched_calendars IS
    'Calendars of the quotes that are watched at a provider with a limit of a calendar day, as of the last minute.';
COMMENT ON COLUMN pricing.watched_calendars.provider IS 'Who is asked for the quotes.';
COMMENT ON COLUMN pricing.watched_calendars.calendar IS 'When they trade; empty = not known.';

CREATE TABLE pricing.shown_batches (
    provider   text NOT NULL,
    fetcher    text NOT NULL,
    is_of_days boolean NOT NULL,
    shown_size integer NOT NULL CONSTRAINT batch_is_positive CHECK (shown_size > 0),
    shown_at   timestamptz NOT NULL,
    PRIMARY KEY (provider, fetcher, is_of_days),
    CONSTRAINT shown_batch_has_fetcher FOREIGN KEY (provider, fetcher) REFERENCES pricing.provider_capabilities(provider, fetcher) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.shown_batches IS
    'Fetchers of providers that have refused a call for its number of symbols. Claims keep to the smaller one.';
COMMENT ON COLUMN pricing.shown_batches.provider IS 'Who refused.';
COMMENT ON COLUMN pricing.shown_batches.fetcher IS 'What was asked for.';
COMMENT ON COLUMN pricing.shown_batches.is_of_days IS 'Calls for spans of days; else for latest values.';
COMMENT ON COLUMN pricing.shown_batches.shown_size IS 'How many symbols a call may ask for.';
COMMENT ON COLUMN pricing.shown_batches.shown_at IS 'When the last one was refused.';

CREATE FUNCTION pricing.forget_shown_batch() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    DELETE FROM pricing.shown_batches s WHERE (s.provider, s.fetcher) = (NEW.provider, NEW.fetcher);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.forget_shown_batch() IS 'A person has written a batch: what was shown before does not count any more.';

CREATE TRIGGER forget_shown_batch AFTER UPDATE OF batch_size, window_batch_size ON pricing.provider_capabilities
    FOR EACH ROW EXECUTE FUNCTION pricing.forget_shown_batch();

-- They have more parameters now; the functions of before would be called in their place.
DROP FUNCTION IF EXISTS pricing.judge_call(bigint, integer);
DROP FUNCTION IF EXISTS pricing.finish_call(bigint, bigint[], uuid, integer, bigint, text, integer, boolean);
DROP FUNCTION IF EXISTS pricing.settle_prices(bigint[], uuid, integer, bigint, integer, text, text, bigint, text[], timestamptz[],
    bigint[], bigint[], bigint[], bigint[], smallint[], text[], numeric[], text[], text[]);
