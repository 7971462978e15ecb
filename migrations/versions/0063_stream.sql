-- What live streams tell: the truth about each streamed pair as it was last told, and a log of what changed since.
CREATE TABLE pricing.stream_head (
    is_only   boolean PRIMARY KEY DEFAULT true CONSTRAINT head_is_only_one CHECK (is_only),
    position  bigint NOT NULL DEFAULT 0,
    kept_from bigint NOT NULL DEFAULT 0,
    CONSTRAINT head_is_upright CHECK (0 <= kept_from AND kept_from <= position)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.stream_head IS 'How far the log of live streams goes. Who has its row locked looks for changes, and nobody else meanwhile: so positions are given in the order of commits.';
COMMENT ON COLUMN pricing.stream_head.is_only IS 'There is one row.';
COMMENT ON COLUMN pricing.stream_head.position IS 'Of the last event; positions have no gaps but where pairs were forgotten.';
COMMENT ON COLUMN pricing.stream_head.kept_from IS 'Events up to this position are deleted.';
INSERT INTO pricing.stream_head DEFAULT VALUES;

CREATE TABLE pricing.streamed_pairs (
    data_type      text NOT NULL,
    symbol         text NOT NULL,
    since_position bigint NOT NULL,
    wanted_until   timestamptz NOT NULL,
    judge_at       timestamptz NOT NULL,
    amount         bigint,
    scale          smallint,
    currency       text,
    observed_at    timestamptz,
    fetched_at     timestamptz,
    provider       text,
    is_fresh       boolean NOT NULL DEFAULT false,
    state          text,
    sentence       text,
    since          timestamptz,
    next_at        timestamptz,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.streamed_pairs IS 'Pairs that a live stream shows, or showed a quarter of an hour ago, as they were last told.';
COMMENT ON COLUMN pricing.streamed_pairs.data_type IS 'Its data type.';
COMMENT ON COLUMN pricing.streamed_pairs.symbol IS 'Its symbol.';
COMMENT ON COLUMN pricing.streamed_pairs.since_position IS 'The log has all its events after this position.';
COMMENT ON COLUMN pricing.streamed_pairs.wanted_until IS 'When it is forgotten; a stream that shows it puts this off.';
COMMENT ON COLUMN pricing.streamed_pairs.judge_at IS 'When its freshness is looked at next; -infinity = nobody has looked at it yet.';
COMMENT ON COLUMN pricing.streamed_pairs.amount IS 'The price in units of its last decimal; NULL = it has none.';
COMMENT ON COLUMN pricing.streamed_pairs.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.streamed_pairs.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.streamed_pairs.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.streamed_pairs.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.streamed_pairs.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.streamed_pairs.is_fresh IS 'Whether that is within its TTL, or nothing newer is to be expected.';
COMMENT ON COLUMN pricing.streamed_pairs.state IS 'Why it is not fresh, in one word of pricing.why_old; NULL = it is.';
COMMENT ON COLUMN pricing.streamed_pairs.sentence IS 'The same in a sentence.';
COMMENT ON COLUMN pricing.streamed_pairs.since IS 'Since when that is so.';
COMMENT ON COLUMN pricing.streamed_pairs.next_at IS 'When that may change.';

CREATE TABLE pricing.stream_events (
    position     bigint PRIMARY KEY,
    noted_at     timestamptz NOT NULL,
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    is_new_price boolean NOT NULL,
    amount       bigint,
    scale        smallint,
    currency     text,
    observed_at  timestamptz,
    fetched_at   timestamptz,
    provider     text,
    is_fresh     boolean NOT NULL,
    state        text,
    sentence     text,
    since        timestamptz,
    next_at      timestamptz
);
COMMENT ON TABLE pricing.stream_events IS 'What changed about streamed pairs, kept ten minutes (100,000 events at most): a live stream that was cut off goes on from here.';
COMMENT ON COLUMN pricing.stream_events.position IS 'Rises in the order of commits; of a pair in the order of its prices.';
COMMENT ON COLUMN pricing.stream_events.noted_at IS 'When it was noted.';
COMMENT ON COLUMN pricing.stream_events.data_type IS 'What changed: its data type.';
COMMENT ON COLUMN pricing.stream_events.symbol IS 'Its symbol.';
COMMENT ON COLUMN pricing.stream_events.is_new_price IS 'Whether the price is new; else only its freshness, or the reason, has changed.';
COMMENT ON COLUMN pricing.stream_events.amount IS 'The price in units of its last decimal; NULL = it has none.';
COMMENT ON COLUMN pricing.stream_events.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.stream_events.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.stream_events.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.stream_events.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.stream_events.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.stream_events.is_fresh IS 'Whether the pair is fresh now.';
COMMENT ON COLUMN pricing.stream_events.state IS 'Why it is not, in one word; NULL = it is.';
COMMENT ON COLUMN pricing.stream_events.sentence IS 'The same in a sentence.';
COMMENT ON COLUMN pricing.stream_events.since IS 'Since when that is so.';
COMMENT ON COLUMN pricing.stream_events.next_at IS 'When that may change.';
