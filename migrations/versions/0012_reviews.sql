-- What people decide about held values, and how long prices are kept.

-- ── How fresh it was ───────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.freshness_samples (
    data_type  text NOT NULL,
    at         timestamptz NOT NULL,
    watched    integer NOT NULL,
    fresh      integer NOT NULL,
    late       integer NOT NULL,
    oldest_age interval,
    PRIMARY KEY (data_type, at)
);
COMMENT ON TABLE pricing.freshness_samples IS
    'How each watched data type served its viewers, looked at every five minutes and kept for seven days: what plots are drawn from.';
COMMENT ON COLUMN pricing.freshness_samples.data_type IS 'Of which pairs.';
COMMENT ON COLUMN pricing.freshness_samples.at IS 'When it was looked at.';
COMMENT ON COLUMN pricing.freshness_samples.watched IS 'How many pairs somebody watched.';
COMMENT ON COLUMN pricing.freshness_samples.fresh IS 'How many of them were within their TTL.';
COMMENT ON COLUMN pricing.freshness_samples.late IS 'How many were owed a price for more than max(30 s, TTL/4).';
COMMENT ON COLUMN pricing.freshness_samples.oldest_age IS 'Age of the oldest of their prices; NULL when none has one.';

-- Revisions of the last days are counted by every check, and are few among the prices.
CREATE INDEX price_revisions_recent ON pricing.price_revisions (data_type, revised_at);

-- ── How long ticks are kept ────────────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.data_type_registry
    ADD COLUMN thin_after_days integer CONSTRAINT thin_after_is_positive CHECK (thin_after_days > 0),
    ADD COLUMN thin_to_minutes integer NOT NULL DEFAULT 1440
        CONSTRAINT thinning_divides_a_day CHECK (thin_to_minutes > 0 AND thin_to_minutes <= 1440 AND 1440 % thin_to_minutes = 0),
    ADD CONSTRAINT only_quotes_are_thinned CHECK (thin_after_days IS NULL OR fetcher = 'quote');
COMMENT ON COLUMN pricing.data_type_registry.thin_after_days IS
    'Quotes older than so many days are thinned to one for every thin_to_minutes; NULL = all are kept for ever.';
COMMENT ON COLUMN pricing.data_type_registry.thin_to_minutes IS
    'Of each such span of a UTC day the last quote stays; it divides a day, which is the default.';

CREATE TABLE pricing.thinned (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    until     timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.thinned IS 'How far the history of each pair is thinned, so that nothing is read twice for it.';
COMMENT ON COLUMN pricing.thinned.data_type IS 'Whose history.';
COMMENT ON COLUMN pricing.thinned.symbol IS 'Whose history.';
COMMENT ON COLUMN pricing.thinned.until IS 'Midnight UTC; quotes before it were thinned.';

-- ── What another provider says ─────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.second_opinions (
    value_id    bigint NOT NULL CONSTRAINT opinion_is_on_a_value REFERENCES pricing.quarantined_values ON DELETE CASCADE,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    asked_at    timestamptz NOT NULL,
    answered_at timestamptz,
    observed_at timestamptz,
    value       numeric,
    currency    text,
    failure     text,
    PRIMARY KEY (value_id, provider)
);
COMMENT ON TABLE pricing.second_opinions IS
    'What other providers said when they were asked about a held value. An opinion helps a person decide; it is never stored as a price.';
COMMENT ON COLUMN pricing.second_opinions.value_id IS 'The held value it is about.';
COMMENT ON COLUMN pricing.second_opinions.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.second_opinions.call_id IS 'The call, in collector_call_log as long as that is kept.';
COMMENT ON COLUMN pricing.second_opinions.asked_at IS 'When it was asked last.';
COMMENT ON COLUMN pricing.second_opinions.answered_at IS 'When it answered; NULL = it has not, or whoever asked was lost.';
COMMENT ON COLUMN pricing.second_opinions.observed_at IS 'The time that it gives its value.';
COMMENT ON COLUMN pricing.second_opinions.value IS 'What it says; NULL when it has nothing.';
COMMENT ON COLUMN pricing.second_opinions.currency IS 'In which currency, where it says so.';
COMMENT ON COLUMN pricing.second_opinions.failure IS 'Why it says nothing.';
