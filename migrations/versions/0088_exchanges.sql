-- No version is released yet, so no client is at work while this runs.
-- squawk-ignore-file adding-foreign-key-constraint
-- One table of exchanges, which each upgrade fills from domain/exchanges.toml: who marks them how, and when they trade.
ALTER TABLE pricing.calendars ADD COLUMN time_zone text;
COMMENT ON COLUMN pricing.calendars.time_zone IS
    'The zone of its days and hours; NULL = not known, so no hours of a correction can be given.';
UPDATE pricing.calendars SET time_zone = 'UTC' WHERE calendar = '24/7';
UPDATE pricing.calendars SET time_zone = 'America/New_York' WHERE calendar = 'FX';
ALTER TABLE pricing.calendars ADD COLUMN known_to date;
COMMENT ON COLUMN pricing.calendars.known_to IS
    'The last day of which its holidays are announced, where the library does not say: from domain/exchanges.toml. '
    'NULL = the library says.';
ALTER TABLE pricing.calendars ADD COLUMN failure text;
COMMENT ON COLUMN pricing.calendars.failure IS
    'Why its sessions could not be worked out when last tried; NULL = they could.';

CREATE TABLE pricing.exchanges (
    mic         text PRIMARY KEY CONSTRAINT mic_is_code CHECK (mic ~ '^[A-Z0-9]{4}$'),
    name        text NOT NULL,
    calendar    text REFERENCES pricing.calendars(calendar),
    currency    text,
    minor_unit  text
);
COMMENT ON TABLE pricing.exchanges IS 'Exchanges, as domain/exchanges.toml tells them. Each upgrade writes it anew.';
COMMENT ON COLUMN pricing.exchanges.mic IS 'Its code by ISO 10383.';
COMMENT ON COLUMN pricing.exchanges.name IS 'For people.';
COMMENT ON COLUMN pricing.exchanges.calendar IS
    'When it trades; NULL = not known. Several exchanges may share a calendar.';
COMMENT ON COLUMN pricing.exchanges.currency IS 'The currency of all its shares; NULL = they have several.';
COMMENT ON COLUMN pricing.exchanges.minor_unit IS
    'The code of the part of a currency that its prices are in, such as GBX; NULL = whole units.';

CREATE TABLE pricing.exchange_endings (
    ending text NOT NULL,
    mic    text NOT NULL REFERENCES pricing.exchanges(mic) ON DELETE CASCADE,
    PRIMARY KEY (ending, mic)
);
COMMENT ON TABLE pricing.exchange_endings IS
    'How symbols of an exchange end: .L, :LSE, :XLON. An ending of several exchanges names none, unless the '
    'currency tells which.';
COMMENT ON COLUMN pricing.exchange_endings.ending IS 'The last part of a symbol, with its dot or colon.';
COMMENT ON COLUMN pricing.exchange_endings.mic IS 'The exchange that some provider marks so.';

ALTER TABLE pricing.instruments ADD COLUMN exchange text
    CONSTRAINT instrument_has_exchange REFERENCES pricing.exchanges(mic);
COMMENT ON COLUMN pricing.instruments.exchange IS
    'Where it trades, by MIC, as a person gave it; NULL = its symbol says (pricing.exchange_of).';

-- The rules keep what no exchange says: shares without an ending, funds, currencies, coins.
DELETE FROM pricing.calendar_rules r WHERE r.asset_class = 'equity' AND r.ending <> '' AND r.currency = '';
COMMENT ON TABLE pricing.calendar_rules IS
    'Which calendar an instrument gets whose exchange is not known: the rule with the longest fitting ending, and '
    'then one of its currency. No rule, no calendar.';

DROP FUNCTION IF EXISTS pricing.note_unknown_calendar(text);
DROP FUNCTION IF EXISTS pricing.calendars_to_extend(boolean);

DROP TRIGGER choose_calendar ON pricing.instruments;
CREATE TRIGGER choose_calendar BEFORE INSERT OR UPDATE OF currency, exchange ON pricing.instruments FOR EACH ROW
    WHEN (NEW.calendar IS NULL) EXECUTE FUNCTION pricing.choose_calendar();

-- What no library knows of trading days.
CREATE TABLE pricing.calendar_corrections (
    calendar    text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day         date NOT NULL,
    origin      text NOT NULL CONSTRAINT origin_is_known CHECK (origin IN ('shipped', 'operator', 'evidence')),
    is_open     boolean NOT NULL,
    opens_at    time,
    closes_at   time,
    reason      text NOT NULL,
    source      text,
    by_whom     text,
    recorded_at timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (calendar, day, origin),
    CONSTRAINT hours_are_of_an_open_day CHECK (is_open OR opens_at IS NULL),
    CONSTRAINT hours_are_whole CHECK ((opens_at IS NULL) = (closes_at IS NULL)),
    CONSTRAINT hours_are_upright CHECK (opens_at < closes_at),
    CONSTRAINT only_people_are_named CHECK ((origin = 'operator') = (by_whom IS NOT NULL))
);
COMMENT ON TABLE pricing.calendar_corrections IS
    'Days on which a calendar of the library is wrong: special sessions, closed days, other hours. An operator''s '
    'row comes before one from evidence, and that before a shipped one.';
COMMENT ON COLUMN pricing.calendar_corrections.calendar IS 'Whose day.';
COMMENT ON COLUMN pricing.calendar_corrections.day IS 'The day, in the exchange''s own zone.';
COMMENT ON COLUMN pricing.calendar_corrections.origin IS
    'shipped = comes with the pipeline; operator = a person entered it; evidence = bars of several instruments or '
    'providers are of this day.';
COMMENT ON COLUMN pricing.calendar_corrections.is_open IS 'Whether the exchange trades on that day.';
COMMENT ON COLUMN pricing.calendar_corrections.opens_at IS
    'When trading begins, in the calendar''s zone; NULL = as on the days before.';
COMMENT ON COLUMN pricing.calendar_corrections.closes_at IS 'When trading ends, in the calendar''s zone.';
COMMENT ON COLUMN pricing.calendar_corrections.reason IS 'Why, in words.';
COMMENT ON COLUMN pricing.calendar_corrections.source IS 'Where the exchange, or who reports of it, says so.';
COMMENT ON COLUMN pricing.calendar_corrections.by_whom IS 'The person who entered it.';
COMMENT ON COLUMN pricing.calendar_corrections.recorded_at IS 'Since when it is known here.';

CREATE TABLE pricing.calendar_disagreements (
    calendar    text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day         date NOT NULL,
    is_open     boolean NOT NULL,
    reason      text NOT NULL,
    found_at    timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (calendar, day)
);
COMMENT ON TABLE pricing.calendar_disagreements IS
    'Days about which the two sources of trading days say different things, and no correction says who is right. '
    'The first source counts until bars show otherwise.';
COMMENT ON COLUMN pricing.calendar_disagreements.calendar IS 'Whose day.';
COMMENT ON COLUMN pricing.calendar_disagreements.day IS 'The day, in the exchange''s own zone.';
COMMENT ON COLUMN pricing.calendar_disagreements.is_open IS
    'What the second source says: whether the exchange trades. The first one says the opposite.';
COMMENT ON COLUMN pricing.calendar_disagreements.reason IS
    'The name that the second source gives the holiday, or that it knows none.';
COMMENT ON COLUMN pricing.calendar_disagreements.found_at IS 'When it was first seen.';

CREATE TABLE pricing.opened_days (
    calendar text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day      date NOT NULL,
    reason   text NOT NULL,
    PRIMARY KEY (calendar, day)
);
COMMENT ON TABLE pricing.opened_days IS
    'Days that have become sessions while bars of them were quarantined. A worker releases these bars within a second.';
COMMENT ON COLUMN pricing.opened_days.calendar IS 'Whose day.';
COMMENT ON COLUMN pricing.opened_days.day IS 'The day, in the exchange''s own zone.';
COMMENT ON COLUMN pricing.opened_days.reason IS 'What made it a session, in words.';

CREATE INDEX quarantined_values_of_closed_days ON pricing.quarantined_values (observed_at) WHERE kind = 'closed_day';
COMMENT ON COLUMN pricing.quarantined_values.kind IS
    'refused, closed_day, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.';
