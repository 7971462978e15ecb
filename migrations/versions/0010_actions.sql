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

-- What is read now has more to say.
DROP FUNCTION IF EXISTS pricing.history(text, text, date, date);
