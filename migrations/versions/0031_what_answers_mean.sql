-- What an answer means: an empty one is an answer, a text is kept, and what a person enters is judged by.

CREATE TABLE pricing.empty_answers (
    data_type  text NOT NULL,
    symbol     text NOT NULL,
    fetched_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.empty_answers IS
    'Pairs without a price of which a provider has validly said that it has none. The row stays when a price comes, and says nothing then.';
COMMENT ON COLUMN pricing.empty_answers.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.empty_answers.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.empty_answers.fetched_at IS 'When a provider last said so.';

CREATE OR REPLACE VIEW pricing.latest_answers AS
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.latest_prices
    UNION ALL
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.document_pairs
    UNION ALL
    SELECT e.data_type, e.symbol, e.fetched_at, NULL::integer FROM pricing.empty_answers e
    WHERE NOT EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = e.data_type AND l.symbol = e.symbol OFFSET 0);
COMMENT ON VIEW pricing.latest_answers IS 'When each pair was last confirmed, of whatever kind it is; also where the answer was that there is nothing.';

ALTER TABLE pricing.price_history ADD COLUMN source_text text;
ALTER TABLE pricing.price_revisions ADD COLUMN source_text text;
COMMENT ON COLUMN pricing.price_history.source_text IS
    'The source''s own spelling of amount; NULL = amount with scale decimals, as in 146.50, is how it was spelled, or it was stored before spellings were kept.';
COMMENT ON COLUMN pricing.price_revisions.source_text IS 'As in price_history.';

ALTER TABLE pricing.corporate_actions ADD COLUMN judged_at timestamptz;
UPDATE pricing.corporate_actions SET judged_at = recorded_at;
CREATE INDEX corporate_actions_unjudged ON pricing.corporate_actions (recorded_at) WHERE judged_at IS NULL;
COMMENT ON COLUMN pricing.corporate_actions.judged_at IS
    'When held values of the instrument were judged anew with it; NULL = a worker will.';

ALTER TABLE pricing.restatements ADD COLUMN reopened_at timestamptz;
COMMENT ON COLUMN pricing.restatements.reopened_at IS 'When a split became known after which the history is fetched once more; NULL = none did.';

-- They have a parameter more, or decide on many at once.
DROP FUNCTION IF EXISTS pricing.revise_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
DROP FUNCTION IF EXISTS pricing.merge_bars(text, text, bigint, text, text, text, timestamptz[], bigint[], bigint[], bigint[], bigint[], smallint[], numeric[]);
DROP FUNCTION IF EXISTS pricing.decide_held(bigint, text, text, text);
DROP FUNCTION IF EXISTS pricing.date_released(bigint);
