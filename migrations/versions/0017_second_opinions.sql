-- Second opinions come by themselves, and people enter splits and dividends that no source tells.

-- ── Whom to ask about a held value, and when ───────────────────────────────────────────────────────────

ALTER TABLE pricing.quarantined_values
    ADD COLUMN ask_at timestamptz,
    ADD COLUMN asked smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN pricing.quarantined_values.kind IS
    'refused, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.';
COMMENT ON COLUMN pricing.quarantined_values.ask_at IS
    'When workers ask a second provider about it; NULL = it has answered, or nobody is asked any more.';
COMMENT ON COLUMN pricing.quarantined_values.asked IS 'How often workers have asked; after four times in vain nobody is.';
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values (ask_at) WHERE ask_at IS NOT NULL AND status = 'held';

ALTER TABLE pricing.second_opinions
    ADD COLUMN adjustment text CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    ADD COLUMN ratio numeric CONSTRAINT ratio_is_positive CHECK (ratio > 0 AND ratio < 'Infinity');
COMMENT ON TABLE pricing.second_opinions IS
    'What other providers said when they were asked about a held value, by workers or by a person. An opinion helps a person decide; it is never stored as a price.';
COMMENT ON COLUMN pricing.second_opinions.adjustment IS 'On which basis the value is: raw or splits, as in price_history.';
COMMENT ON COLUMN pricing.second_opinions.ratio IS
    'The held value as a multiple of this one, on one basis: near 1 they agree. NULL = they cannot be compared.';
CREATE INDEX second_opinions_recent ON pricing.second_opinions (answered_at) WHERE ratio IS NOT NULL;

-- ── What people know of splits and dividends ───────────────────────────────────────────────────────────

ALTER TABLE pricing.corporate_actions
    ADD COLUMN entered_by text,
    ADD COLUMN reason text CONSTRAINT reason_is_short CHECK (length(reason) <= 500);
COMMENT ON COLUMN pricing.corporate_actions.provider IS 'Who said so; "by hand" is a person, named by entered_by.';
COMMENT ON COLUMN pricing.corporate_actions.call_id IS 'The call that brought it; 0 = none, it was entered by hand.';
COMMENT ON COLUMN pricing.corporate_actions.entered_by IS 'Who entered it by hand; NULL = a provider told it.';
COMMENT ON COLUMN pricing.corporate_actions.reason IS 'Why so, in that person''s words.';

ALTER TABLE pricing.corporate_action_revisions
    ADD COLUMN entered_by text,
    ADD COLUMN reason text,
    ADD COLUMN removed_by text,
    ADD COLUMN removed_because text CONSTRAINT because_is_short CHECK (length(removed_because) <= 500);
COMMENT ON COLUMN pricing.corporate_action_revisions.entered_by IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.reason IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.revised_by IS 'The call that brought another one; 0 = a person removed or replaced it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.removed_by IS 'Who removed or replaced it by hand; its provider is not believed when it says the same again.';
COMMENT ON COLUMN pricing.corporate_action_revisions.removed_because IS 'Why, in that person''s words.';

-- Their parameters or results have changed.
DROP FUNCTION IF EXISTS pricing.known_values(text, text[], timestamptz[], timestamptz[], boolean);
DROP FUNCTION IF EXISTS pricing.claim_opinion(bigint, text, text[]);
DROP FUNCTION IF EXISTS pricing.note_opinion(bigint, bigint, timestamptz, numeric, text, text);
DROP FUNCTION IF EXISTS pricing.actions_as_of(text, text, timestamptz);
