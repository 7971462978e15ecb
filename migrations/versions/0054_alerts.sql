-- Trouble that people are told of.
CREATE TABLE pricing.alerts (
    alert_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule            text NOT NULL CONSTRAINT rule_is_plain_name CHECK (rule ~ '^[a-z][a-z0-9_]{0,47}$'),
    subject         text NOT NULL,
    severity        text NOT NULL CONSTRAINT alert_severity_is_known CHECK (severity IN ('P0', 'P1', 'P2')),
    says            text NOT NULL,
    is_repeated     boolean NOT NULL DEFAULT true,
    since           timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    raised_at       timestamptz,
    told_at         timestamptz,
    resolved_at     timestamptz,
    end_told_at     timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.alerts IS 'Trouble that was found: what it is about, since when, who knows, and when it was over.';
COMMENT ON COLUMN pricing.alerts.alert_id IS 'In the order in which they were found.';
COMMENT ON COLUMN pricing.alerts.rule IS 'The rule that found it; docs/runbook.md has a section for each.';
COMMENT ON COLUMN pricing.alerts.subject IS 'What it is about: a provider, a data type.';
COMMENT ON COLUMN pricing.alerts.severity IS 'P0 = repeated each hour, P1 = each day, P2 = in a daily digest.';
COMMENT ON COLUMN pricing.alerts.says IS 'What was found, in words, as it was last seen.';
COMMENT ON COLUMN pricing.alerts.is_repeated IS 'Whether recipients are told again while it lasts.';
COMMENT ON COLUMN pricing.alerts.since IS 'When it was first seen.';
COMMENT ON COLUMN pricing.alerts.last_seen_at IS 'When it was last seen.';
COMMENT ON COLUMN pricing.alerts.raised_at IS 'When it had lasted as long as its rule asks; NULL = not yet.';
COMMENT ON COLUMN pricing.alerts.told_at IS 'When recipients were last told.';
COMMENT ON COLUMN pricing.alerts.resolved_at IS 'When it was over; NULL = it is not.';
COMMENT ON COLUMN pricing.alerts.end_told_at IS 'When recipients were told that it was over.';
COMMENT ON COLUMN pricing.alerts.acknowledged_at IS 'When somebody said that they look after it: it is not repeated.';
COMMENT ON COLUMN pricing.alerts.acknowledged_by IS 'Who said so.';
CREATE UNIQUE INDEX alerts_open ON pricing.alerts (rule, subject) WHERE resolved_at IS NULL;
COMMENT ON INDEX pricing.alerts_open IS 'One open alert of a rule for each subject.';
CREATE INDEX alerts_resolved_at ON pricing.alerts (resolved_at) WHERE resolved_at IS NOT NULL;
COMMENT ON INDEX pricing.alerts_resolved_at IS 'What pruning deletes.';

CREATE TABLE pricing.alert_silences (
    silence_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule       text NOT NULL,
    subject    text,
    until      timestamptz NOT NULL,
    silenced_by text NOT NULL,
    because    text,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE pricing.alert_silences IS 'Alerts that nobody is told of for a while.';
COMMENT ON COLUMN pricing.alert_silences.silence_id IS 'In the order in which they were made.';
COMMENT ON COLUMN pricing.alert_silences.rule IS 'Alerts of this rule.';
COMMENT ON COLUMN pricing.alert_silences.subject IS 'Only those about this; NULL = all.';
COMMENT ON COLUMN pricing.alert_silences.until IS 'When the silence ends.';
COMMENT ON COLUMN pricing.alert_silences.silenced_by IS 'Who made it.';
COMMENT ON COLUMN pricing.alert_silences.because IS 'Why.';
COMMENT ON COLUMN pricing.alert_silences.created_at IS 'When it was made.';
