-- Requests that name pairs are answered pair by pair: what is bad keeps nothing good out.
CREATE TYPE pricing.pair_answer AS (
    place       integer,
    data_type   text,
    given       text,
    symbol      text,
    outcome     text,
    code        text,
    reason      text,
    proposal    text,
    retry_after integer
);
COMMENT ON TYPE pricing.pair_answer IS 'The answer to one pair of a request that watches or holds pairs.';
COMMENT ON COLUMN pricing.pair_answer.place IS 'Which pair of the request it is, from 1.';
COMMENT ON COLUMN pricing.pair_answer.data_type IS 'Its data type.';
COMMENT ON COLUMN pricing.pair_answer.given IS 'Its symbol as it was given.';
COMMENT ON COLUMN pricing.pair_answer.symbol IS 'Its symbol as the instrument is spelled; NULL if it is refused.';
COMMENT ON COLUMN pricing.pair_answer.outcome IS 'accepted, doubtful (accepted with a warning) or refused.';
COMMENT ON COLUMN pricing.pair_answer.code IS
    'Why it is doubtful or refused, in one word: symbol_doubtful, symbol_refused, unknown_type, retired_type, '
    'pairs_per_user or new_pairs_per_minute. NULL if it is accepted.';
COMMENT ON COLUMN pricing.pair_answer.reason IS 'The same for people, as what follows a colon.';
COMMENT ON COLUMN pricing.pair_answer.proposal IS 'Another spelling or data type that would do; NULL = none is known.';
COMMENT ON COLUMN pricing.pair_answer.retry_after IS
    'In how many seconds the same pair may be accepted; NULL if waiting does not help.';

-- They answer in another shape now.
DROP FUNCTION IF EXISTS pricing.heartbeat(text, text[], text[], boolean);
DROP FUNCTION IF EXISTS pricing.heartbeat(text[], text[]);
DROP FUNCTION IF EXISTS pricing.hold(text, text[], text[], boolean);
DROP FUNCTION IF EXISTS pricing.hold(text[], text[]);
DROP FUNCTION IF EXISTS pricing.begin_watching(text, text[], text[], boolean);
DROP FUNCTION IF EXISTS pricing.admit_pairs(text, integer, bigint);
