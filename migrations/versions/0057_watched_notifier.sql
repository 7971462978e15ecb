-- Warnings that survive a rollback, as the programs count them that hear them.
CREATE TABLE pricing.warning_counts (
    since        timestamptz NOT NULL,
    source       text NOT NULL,
    subject      text NOT NULL,
    sqlstate     text NOT NULL,
    times        bigint NOT NULL CONSTRAINT warnings_are_counted CHECK (times > 0),
    last_at      timestamptz NOT NULL,
    last_message text NOT NULL,
    PRIMARY KEY (since, source, subject, sqlstate)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.warning_counts IS 'Warnings and notices of PostgreSQL by cause and ten minutes, counted outside the transactions that raised them.';
COMMENT ON COLUMN pricing.warning_counts.since IS 'When the ten minutes began in which they were written down.';
COMMENT ON COLUMN pricing.warning_counts.source IS 'The function that warned; postgresql = PostgreSQL itself.';
COMMENT ON COLUMN pricing.warning_counts.subject IS 'What it is about; of PostgreSQL''s own ones, WARNING or NOTICE.';
COMMENT ON COLUMN pricing.warning_counts.sqlstate IS 'The code of the error behind it; empty = none.';
COMMENT ON COLUMN pricing.warning_counts.times IS 'How often it was raised.';
COMMENT ON COLUMN pricing.warning_counts.last_at IS 'When the last one was raised.';
COMMENT ON COLUMN pricing.warning_counts.last_message IS 'What the last one said.';

CREATE TABLE pricing.notifiers (
    worker    text PRIMARY KEY,
    looked_at timestamptz,
    ran_at    timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.notifiers IS 'Signs of life of processes that tell people; one that has been silent for a day is forgotten.';
COMMENT ON COLUMN pricing.notifiers.worker IS 'Host and process.';
COMMENT ON COLUMN pricing.notifiers.looked_at IS 'When it last looked for trouble by all rules.';
COMMENT ON COLUMN pricing.notifiers.ran_at IS 'When it last looked for messages to send.';

ALTER TABLE pricing.provider_state ADD COLUMN breaker_began_at timestamptz;
COMMENT ON COLUMN pricing.provider_state.breaker_began_at IS
    'When the breaker opened first; failed probes, which open it again, do not change it. NULL = it is closed.';

ALTER TABLE pricing.alerts ADD COLUMN newest_at timestamptz;
COMMENT ON COLUMN pricing.alerts.newest_at IS
    'When the newest event happened that it is about; NULL = its rule counts no events.';
ALTER TABLE pricing.alerts ADD COLUMN told_newest_at timestamptz;
COMMENT ON COLUMN pricing.alerts.told_newest_at IS 'newest_at when recipients were last told: what is newer is told, too.';

-- It returns one column more.
DROP FUNCTION IF EXISTS pricing.alerts_to_tell();
