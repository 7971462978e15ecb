-- Corporate actions, and what was believed when.

CREATE TABLE pricing.corporate_actions (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    ex_on       date NOT NULL,
    kind        text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('split', 'dividend')),
    new_shares  numeric,
    old_shares  numeric,
    amount      bigint,
    scale       smallint,
    currency    text,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (asset_class, symbol, ex_on, kind),
    CONSTRAINT split_has_shares CHECK ((kind = 'split') = (new_shares IS NOT NULL AND old_shares IS NOT NULL)),
    CONSTRAINT dividend_has_amount CHECK ((kind = 'dividend') = (amount IS NOT NULL AND scale IS NOT NULL)),
    CONSTRAINT shares_are_positive CHECK (new_shares > 0 AND old_shares > 0 AND new_shares < 'Infinity' AND old_shares < 'Infinity'),
    CONSTRAINT amount_is_positive CHECK (amount > 0)
);
COMMENT ON TABLE pricing.corporate_actions IS
    'What happened to shares: splits and cash dividends, as we believe them now. Stored prices are never changed by them; reads apply them.';
COMMENT ON COLUMN pricing.corporate_actions.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.ex_on IS 'The first trading day without it: prices before this day are those that it adjusts.';
COMMENT ON COLUMN pricing.corporate_actions.kind IS 'split or dividend.';
COMMENT ON COLUMN pricing.corporate_actions.new_shares IS 'Of a split: so many new shares ...';
COMMENT ON COLUMN pricing.corporate_actions.old_shares IS '... for so many old ones.';
COMMENT ON COLUMN pricing.corporate_actions.amount IS 'Of a dividend: cash for one share as it was on that day, before taxes, in units of 10^-scale. Several of one day are one.';
COMMENT ON COLUMN pricing.corporate_actions.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.corporate_actions.currency IS 'Of a dividend: ISO 4217 code; NULL = that of the prices.';
COMMENT ON COLUMN pricing.corporate_actions.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.corporate_actions.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.corporate_actions.recorded_at IS 'When we came to believe it.';

CREATE TABLE pricing.corporate_action_revisions (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    ex_on       date NOT NULL,
    kind        text NOT NULL,
    new_shares  numeric,
    old_shares  numeric,
    amount      bigint,
    scale       smallint,
    currency    text,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    revised_at  timestamptz NOT NULL,
    revised_by  bigint NOT NULL,
    PRIMARY KEY (asset_class, symbol, ex_on, kind, revised_at)
);
COMMENT ON TABLE pricing.corporate_action_revisions IS 'What we believed before, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.corporate_action_revisions.asset_class IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.symbol IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.ex_on IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.kind IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.new_shares IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.old_shares IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.amount IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.scale IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.currency IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.corporate_action_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.revised_by IS 'The call that brought another one.';

CREATE TABLE pricing.corporate_action_pairs (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    covered     datemultirange NOT NULL,
    fetched_at  timestamptz NOT NULL,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.corporate_action_pairs IS 'Of which days providers have told all splits and dividends of an instrument. Of other days nothing is known, which is not the same as none.';
COMMENT ON COLUMN pricing.corporate_action_pairs.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.covered IS 'The days of which they were told.';
COMMENT ON COLUMN pricing.corporate_action_pairs.fetched_at IS 'When they were last told.';
COMMENT ON COLUMN pricing.corporate_action_pairs.provider IS 'Who told them last.';
COMMENT ON COLUMN pricing.corporate_action_pairs.call_id IS 'The call in which they were told last.';

CREATE TABLE pricing.restatements (
    restatement_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type      text NOT NULL,
    symbol         text NOT NULL,
    provider       text NOT NULL,
    kind           text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('split', 'dividend', 'scattered')),
    ratio          numeric,
    days           integer NOT NULL,
    largest        numeric NOT NULL,
    first_on       date NOT NULL,
    last_on        date NOT NULL,
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    times          bigint NOT NULL DEFAULT 1,
    last_seen_at   timestamptz NOT NULL,
    backfill_id    uuid,
    CONSTRAINT ratio_is_of_one_ratio CHECK ((kind = 'scattered') = (ratio IS NULL))
);
CREATE INDEX restatements_pair ON pricing.restatements (data_type, symbol, last_seen_at);
CREATE INDEX restatements_unasked ON pricing.restatements (recorded_at) WHERE ratio IS NOT NULL AND backfill_id IS NULL;
COMMENT ON TABLE pricing.restatements IS
    'Answers in which stored days came with other values: docs/truth.md. By one ratio they are held, and the history is fetched again once; scattered ones are stored, and price_revisions has what was believed.';
COMMENT ON COLUMN pricing.restatements.restatement_id IS 'Numbers restatements.';
COMMENT ON COLUMN pricing.restatements.data_type IS 'Whose history it is about.';
COMMENT ON COLUMN pricing.restatements.symbol IS 'Whose history it is about.';
COMMENT ON COLUMN pricing.restatements.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.restatements.kind IS 'split = by one ratio that companies split by; dividend = by another one; scattered = single days.';
COMMENT ON COLUMN pricing.restatements.ratio IS 'What the stored values are divided by.';
COMMENT ON COLUMN pricing.restatements.days IS 'How many stored days came with another value, the last time.';
COMMENT ON COLUMN pricing.restatements.largest IS 'The largest change as a share of the stored value.';
COMMENT ON COLUMN pricing.restatements.first_on IS 'The first of these days.';
COMMENT ON COLUMN pricing.restatements.last_on IS 'The last of these days.';
COMMENT ON COLUMN pricing.restatements.call_id IS 'The first call that brought it.';
COMMENT ON COLUMN pricing.restatements.recorded_at IS 'When it first came.';
COMMENT ON COLUMN pricing.restatements.times IS 'In how many answers it came.';
COMMENT ON COLUMN pricing.restatements.last_seen_at IS 'When it last came.';
COMMENT ON COLUMN pricing.restatements.backfill_id IS 'The backfill that fetches the history again; NULL = not planned (yet).';

CREATE TABLE pricing.provisional_bars (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    observed_at timestamptz NOT NULL,
    noted_at    timestamptz NOT NULL,
    asked       integer NOT NULL DEFAULT 0,
    ask_at      timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, observed_at)
);
CREATE INDEX provisional_bars_due ON pricing.provisional_bars (ask_at);
COMMENT ON TABLE pricing.provisional_bars IS 'Stored bars that came before their day was over, until they have come again after it.';
COMMENT ON COLUMN pricing.provisional_bars.data_type IS 'Whose bar it is.';
COMMENT ON COLUMN pricing.provisional_bars.symbol IS 'Whose bar it is.';
COMMENT ON COLUMN pricing.provisional_bars.observed_at IS 'Its day, as in price_history.';
COMMENT ON COLUMN pricing.provisional_bars.noted_at IS 'When it was first stored before its day was over.';
COMMENT ON COLUMN pricing.provisional_bars.asked IS 'How often it was asked for on its own; after six times it is left as it is.';
COMMENT ON COLUMN pricing.provisional_bars.ask_at IS 'When it is asked for next, if no refresh brings it before.';

-- What is read now has more to say.
DROP FUNCTION IF EXISTS pricing.history(text, text, date, date);
