-- No version is released yet, so no client is at work while this runs.
-- squawk-ignore-file adding-serial-primary-key-field
-- A day may have several payments of one kind, each in its own currency. Spin-offs and capital gains are kinds of their own.
ALTER TABLE pricing.corporate_actions
    ADD COLUMN part smallint NOT NULL DEFAULT 1,
    DROP CONSTRAINT corporate_actions_pkey,
    ADD CONSTRAINT corporate_actions_pkey PRIMARY KEY (asset_class, symbol, ex_on, kind, part),
    DROP CONSTRAINT kind_is_known,
    ADD CONSTRAINT kind_is_known CHECK (kind IN ('split', 'spin_off', 'dividend', 'capital_gain')),
    DROP CONSTRAINT dividend_has_amount,
    ADD CONSTRAINT payment_has_amount
        CHECK ((kind IN ('dividend', 'capital_gain')) = (amount IS NOT NULL AND scale IS NOT NULL)),
    DROP CONSTRAINT split_has_shares,
    ADD CONSTRAINT split_has_shares
        CHECK ((kind IN ('split', 'spin_off')) = (new_shares IS NOT NULL AND old_shares IS NOT NULL));
COMMENT ON TABLE pricing.corporate_actions IS
    'What happened to shares: splits, spin-offs, dividends and capital gains, as we believe them now. Stored '
    'prices are never changed by them; reads apply them.';
COMMENT ON COLUMN pricing.corporate_actions.kind IS
    'split; spin_off: divides prices like a split, and changes no volume; dividend; capital_gain: what a fund pays '
    'out of gains.';
COMMENT ON COLUMN pricing.corporate_actions.part IS
    'Tells payments of one kind and day apart; it means nothing else.';
COMMENT ON COLUMN pricing.corporate_actions.new_shares IS 'Of a split or spin-off: so many new shares ...';
COMMENT ON COLUMN pricing.corporate_actions.amount IS
    'Of a payment: cash for one share as it was on that day, before taxes, in units of 10^-scale of its currency.';
COMMENT ON COLUMN pricing.corporate_actions.currency IS
    'Of a payment: ISO 4217 or a coin (USDT), which may differ from that of the prices; NULL = that of the prices.';

-- A day has one ratio: a split or a spin-off.
CREATE UNIQUE INDEX corporate_actions_one_ratio ON pricing.corporate_actions (asset_class, symbol, ex_on)
    WHERE new_shares IS NOT NULL;

ALTER TABLE pricing.corporate_action_revisions
    ADD COLUMN part smallint NOT NULL DEFAULT 1,
    DROP CONSTRAINT corporate_action_revisions_pkey,
    ADD CONSTRAINT corporate_action_revisions_pkey PRIMARY KEY (asset_class, symbol, ex_on, kind, part, revised_at);
COMMENT ON COLUMN pricing.corporate_action_revisions.part IS 'As in corporate_actions.';

ALTER TABLE pricing.corporate_action_pairs ADD COLUMN gains_covered datemultirange NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.corporate_action_pairs.gains_covered IS
    'The days of which capital gains were told: not every provider can tell them.';

-- These have other parameters or results now, or are no more.
DROP FUNCTION IF EXISTS pricing.actions_of_answer(jsonb);
DROP FUNCTION IF EXISTS pricing.believable_actions(text, text, jsonb);
DROP FUNCTION IF EXISTS pricing.is_one_action(pricing.corporate_actions, date, text, numeric, numeric, bigint, smallint, text);
DROP FUNCTION IF EXISTS pricing.is_refuted(text, text, date, text, text, numeric, numeric, bigint, smallint);
DROP FUNCTION IF EXISTS pricing.cover_actions(text, text, bigint, text[], date[]);
DROP FUNCTION IF EXISTS pricing.merge_actions(text, text, bigint, jsonb, text[], date[]);
DROP FUNCTION IF EXISTS pricing.doubted_dividends(text, jsonb);
DROP FUNCTION IF EXISTS pricing.enter_action(text, text, date, text, numeric, numeric, numeric, text, text, text);
DROP FUNCTION IF EXISTS pricing.remove_action(text, text, date, text, text, text);
DROP FUNCTION IF EXISTS pricing.left_by_dividend(text, text, text, date, numeric, text, timestamptz, pricing.price_revisions[]);
DROP FUNCTION IF EXISTS pricing.adjustment_steps(text, text, boolean, timestamptz, pricing.price_revisions[]);
DROP FUNCTION IF EXISTS pricing.adjusted_prices(text, text, date, date, timestamptz, text, pricing.price_revisions[]);
DROP FUNCTION IF EXISTS pricing.close_before(text, text, date, timestamptz, pricing.price_revisions[]);
