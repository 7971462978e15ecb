-- Names that say what they are: only holdings are held, only calls are settled, and a breaker has the same words
-- everywhere. Nothing outside the pipeline reads these columns.
-- squawk-ignore renaming-column
ALTER TABLE pricing.failing_recipients RENAME COLUMN holds TO breaker_openings;
-- squawk-ignore renaming-column
ALTER TABLE pricing.failing_recipients RENAME COLUMN held_until TO breaker_until;
COMMENT ON TABLE pricing.failing_recipients IS
    'Recipients whose last attempt failed. The next success deletes the row. After three failures in a row the '
    'breaker opens, and the messages of the recipient wait.';
COMMENT ON COLUMN pricing.failing_recipients.breaker_openings IS
    'How often the breaker has opened since the first failure. Each time it stays open twice as long, up to '
    '16 minutes.';
COMMENT ON COLUMN pricing.failing_recipients.breaker_until IS
    'Until then only P0 is attempted; NULL = the breaker has not opened.';
COMMENT ON COLUMN pricing.failing_recipients.operation_type IS
    'The channel, or another operation type whose payload names the recipient.';
COMMENT ON COLUMN pricing.failing_recipients.recipient IS 'The recipient that cannot be reached.';
COMMENT ON COLUMN pricing.async_operations.recipient IS
    'The recipient that the payload names, who has a line of messages of its own; empty = it names none.';

-- squawk-ignore renaming-column
ALTER TABLE pricing.price_alerts RENAME COLUMN is_settled TO is_caught_up;
-- squawk-ignore renaming-column
ALTER TABLE pricing.price_alerts RENAME COLUMN settles_at TO caught_up_after;
COMMENT ON COLUMN pricing.price_alerts.is_caught_up IS
    'Whether the alert has looked at every price that was stored, or was being stored, when it was added. Until then '
    'each look includes the latest price.';
COMMENT ON COLUMN pricing.price_alerts.caught_up_after IS
    'The transaction before which all must have ended for the alert to be caught up; NULL = it has not looked yet.';

COMMENT ON TABLE pricing.dagster_failures IS
    'What fails in Dagster now. The sensor note_failures writes jobs whose last run failed, and sensors and schedules '
    'whose last tick failed. The daemon of `up` writes code locations that do not load, and sensors that have not '
    'worked since their code location was loaded.';
COMMENT ON COLUMN pricing.dagster_failures.kind IS
    'run = a job, or what a run without one materializes; tick = a sensor or schedule; location = a code location; '
    'sensor = a sensor that has not worked since its code location was loaded.';
COMMENT ON COLUMN pricing.dagster_failures.reason IS 'The first line of the error, or what the sensor waits for.';

COMMENT ON TABLE pricing.corporate_actions IS
    'Splits, spin-offs, dividends and capital gains of instruments, as we believe them now. They never change stored '
    'prices; reads apply them.';
COMMENT ON COLUMN pricing.corporate_actions.part IS
    'Distinguishes payments of one kind on one day; the number means nothing else.';
COMMENT ON COLUMN pricing.corporate_action_pairs.gains_covered IS
    'The days for which all capital gains are known. Not every provider reports them.';

COMMENT ON COLUMN pricing.calendars.time_zone IS
    'The time zone of its days and hours; NULL = not known, so that no hours can be corrected.';
COMMENT ON COLUMN pricing.calendars.known_to IS
    'The last day whose holidays are announced, from domain/exchanges.toml; NULL = the library knows.';
COMMENT ON COLUMN pricing.calendars.failure IS
    'Why the last attempt to work out its sessions failed; NULL = it succeeded.';
COMMENT ON TABLE pricing.exchanges IS 'Exchanges, from domain/exchanges.toml. Each upgrade writes them again.';
COMMENT ON COLUMN pricing.exchanges.calendar IS 'The calendar that it follows, alone or with others; NULL = not known.';
COMMENT ON COLUMN pricing.exchanges.minor_unit IS
    'The code of the minor unit in which it quotes prices, such as GBX; NULL = whole units.';
COMMENT ON TABLE pricing.exchange_endings IS
    'How symbols of an exchange end, such as .L, :LSE or :XLON. If several exchanges share an ending, the currency '
    'must tell which is meant.';
COMMENT ON COLUMN pricing.exchange_endings.mic IS 'An exchange whose symbols end like this at some provider.';
COMMENT ON COLUMN pricing.instruments.exchange IS
    'The MIC of the exchange where it trades, as a person gave it; NULL = the symbol tells (pricing.exchange_of).';
COMMENT ON TABLE pricing.calendar_rules IS
    'Which calendar an instrument gets if its exchange is not known: that of the rule with the longest matching '
    'ending, and among these of a rule for its currency. Without a matching rule it gets none.';
COMMENT ON TABLE pricing.calendar_corrections IS
    'Days on which a calendar of the library is wrong: special sessions, closed days, other hours. A person''s row '
    'comes before one from evidence, and that before a shipped one.';
COMMENT ON COLUMN pricing.calendar_corrections.calendar IS 'The calendar that is corrected.';
COMMENT ON COLUMN pricing.calendar_corrections.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.calendar_corrections.origin IS
    'shipped = comes with the pipeline; operator = a person entered it; evidence = several instruments or providers '
    'have bars of this day.';
COMMENT ON COLUMN pricing.calendar_corrections.opens_at IS
    'When trading begins, in the calendar''s time zone; NULL = the usual hours.';
COMMENT ON COLUMN pricing.calendar_corrections.closes_at IS
    'When trading ends, in the calendar''s time zone; NULL = the usual hours.';
COMMENT ON COLUMN pricing.calendar_corrections.reason IS 'Why the day differs from the library.';
COMMENT ON COLUMN pricing.calendar_corrections.source IS 'Where this is published; NULL = no source was given.';
COMMENT ON COLUMN pricing.calendar_corrections.by_whom IS 'The person who entered it; NULL = nobody did.';
COMMENT ON COLUMN pricing.calendar_corrections.recorded_at IS 'When it was stored here.';
COMMENT ON TABLE pricing.calendar_disagreements IS
    'Days about which the two sources of trading days disagree and no correction decides. The first source counts '
    'until bars prove it wrong.';
COMMENT ON COLUMN pricing.calendar_disagreements.calendar IS 'The calendar.';
COMMENT ON COLUMN pricing.calendar_disagreements.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.calendar_disagreements.is_open IS
    'Whether the exchange trades by the second source. The first one says the opposite.';
COMMENT ON COLUMN pricing.calendar_disagreements.reason IS
    'The name of the holiday in the second source, or that it knows no holiday.';
COMMENT ON COLUMN pricing.opened_days.calendar IS 'The calendar.';
COMMENT ON COLUMN pricing.opened_days.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.opened_days.reason IS 'Why it became a session.';

DROP FUNCTION IF EXISTS pricing.settle_operation(bigint, integer, jsonb);
DROP FUNCTION IF EXISTS pricing.why_held(text, text, integer, integer, timestamptz);
DROP FUNCTION IF EXISTS pricing.note_dagster_ticks(jsonb, text);
DROP FUNCTION IF EXISTS pricing.told_exchanges(jsonb);
DROP FUNCTION IF EXISTS pricing.uncorrect_calendar(text, date);
DROP FUNCTION IF EXISTS pricing.days_corrected(text, date, text);
DROP FUNCTION IF EXISTS pricing.traded_on(text, date, date);
