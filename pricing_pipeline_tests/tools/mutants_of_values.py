"""Mutants of what is believed and stored: answers, judgement, prices, actions, documents, second opinions."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_FUNCTIONS = "pricing_pipeline/db/functions"
_TESTS = "pricing_pipeline_tests"
_FENCE = f"{_TESTS}/faults/test_fence.py"
_PRICES = f"{_TESTS}/integration/test_prices.py"
_BARS_STORED = f"{_TESTS}/integration/test_bars_stored.py"
_OVERTAKEN = f"{_TESTS}/integration/test_overtaken.py"
_LEVELS = f"{_TESTS}/integration/test_levels.py"
_EMPTY = f"{_TESTS}/integration/test_empty_answers.py"
_BARS = f"{_TESTS}/unit/test_bars.py"
_MOVES = f"{_TESTS}/unit/test_true_moves.py"
_FIELDS = f"{_TESTS}/unit/test_fields.py"
_PARTS = f"{_TESTS}/integration/test_parts_of_bars.py"
_QUOTES = f"{_TESTS}/integration/test_quotes.py"
_DOCUMENTS = f"{_TESTS}/integration/test_documents.py"
_OPINIONS = f"{_TESTS}/integration/test_opinions.py"
_BY_HAND = f"{_TESTS}/integration/test_cli_actions.py"
_FETCHING = f"{_TESTS}/integration/test_contracts_of_fetching.py"
_REBASING = f"{_TESTS}/integration/test_rebasing.py"


MUTANTS = (
    Mutant(
        "an answer that is cut short changes the basis of a history",
        "pricing_pipeline/prices/rebasing.py",
        "_has_changed",
        "change.is_asked and not is_restated",
        "True",
        (_REBASING,),
    ),
    Mutant(
        "a day that comes with the same price keeps its old basis",
        f"{_FUNCTIONS}/prices/prices.sql",
        "revise_bars",
        "AND h.adjustment = basis)",
        ")",
        (_REBASING,),
    ),
    Mutant(
        "another provider changes the basis of a history",
        "pricing_pipeline/prices/rebasing.py",
        "find_basis_changes",
        "if is_own",
        "if True",
        (_REBASING,),
    ),
    Mutant(
        "a basis changes while another session stores days on the old one",
        f"{_FUNCTIONS}/prices/rebasing.sql",
        "lock_basis",
        "FOR UPDATE OF i",
        "FOR KEY SHARE OF i",
        (_REBASING,),
    ),
    Mutant(
        "prices are stored without the fence",
        "pricing_pipeline/quarantine/judgement.py",
        "judge_answer",
        "answer.observations.of(symbols)",
        "answer.observations",
        (_FENCE,),
    ),
    Mutant(
        "prices of a lost claim are stored at once",
        f"{_FUNCTIONS}/prices/prices.sql",
        "settle_prices",
        "IF cardinality(owned) < cardinality(ids) THEN",
        "IF false THEN",
        (_QUOTES,),
    ),
    Mutant(
        "documents are stored without the fence",
        "pricing_pipeline/refresh/storing.py",
        "store_answer",
        "documents.store(connection, call, judged.answer, symbols)",
        "documents.store(connection, call, judged.answer, call.symbols)",
        (_DOCUMENTS,),
    ),
    Mutant(
        "the old body of a document is not kept",
        f"{_FUNCTIONS}/prices/documents.sql",
        "merge_documents",
        "FROM changed c ORDER BY c.symbol, c.period)",
        "FROM changed c WHERE false)",
        (_DOCUMENTS,),
    ),
    Mutant(
        "documents out of an answer's reach are withdrawn",
        f"{_FUNCTIONS}/prices/documents.sql",
        "merge_documents",
        " AND d.period >= reach.since",
        "",
        (_DOCUMENTS,),
    ),
    Mutant(
        "a batch of prices is written in no order",
        f"{_FUNCTIONS}/prices/prices.sql",
        "store_rows",
        "        ORDER BY s.symbol, s.observed_at\n        ON CONFLICT",
        "        ON CONFLICT",
        (_PRICES,),
    ),
    Mutant(
        "an answer waits for locks in its turn",
        "pricing_pipeline/refresh/settling.py",
        "",
        "            with turn:\n                tally = _settle_whole",
        "            with _ANY_TIME:\n                tally = _settle_whole",
        (
            f"{_TESTS}/faults/test_locked_rows.py::test_fault_27_an_answer_that_meets_locks_is_stored_out_of_turn",
        ),
    ),
    Mutant(
        "usage is the unpacked body",
        "pricing_pipeline/providers/client.py",
        "",
        "body=unpack.finish(), wire_bytes=exchange.received\n",
        "body=(whole := unpack.finish()), wire_bytes=len(whole)\n",
        (f"{_FETCHING}::test_contract_06a_usage_is_counted_on_the_wire",),
    ),
    Mutant(
        "an answer older than ours is believed",
        f"{_FUNCTIONS}/prices/prices.sql",
        "merge_prices",
        "WHERE n.at < (SELECT",
        "WHERE false AND n.at < (SELECT",
        (f"{_FETCHING}::test_contract_14_old_data_under_a_fresh_answer_is_refused",),
    ),
    Mutant(
        "a bar of 1900 is one of the latest",
        "pricing_pipeline/providers/values.py",
        "_asked",
        "max(days) - LATEST_REACH, max(days)",
        "min(days), max(days)",
        (f"{_TESTS}/unit/test_values.py",),
    ),
    Mutant(
        "a day that could not be read is covered",
        "pricing_pipeline/prices/price_writer.py",
        "cover_read",
        "[symbol for symbol in symbols if symbol not in unread]",
        "list(symbols)",
        (f"{_TESTS}/integration/test_gaps.py",),
    ),
    Mutant(
        "what a later answer confirmed can be rejected",
        f"{_FUNCTIONS}/quarantine/quarantine.sql",
        "decide_quarantined",
        "PERFORM pricing.close_believed(wanted);",
        "NULL;",
        (f"{_TESTS}/integration/test_reviews.py",),
    ),
    Mutant(
        "a high of ten times the close is believed",
        "pricing_pipeline/validation/fields.py",
        "_fault_of_price",
        "if not least <= value <= most:",
        "if False:",
        (_FIELDS,),
    ),
    Mutant(
        "an open above its high is believed",
        "pricing_pipeline/validation/fields.py",
        "_sound",
        'kept["open"] > kept["high"]',
        'kept["open"] > 100 * kept["high"]',
        (_FIELDS,),
    ),
    Mutant(
        "columns of bars are believed whatever their parts",
        "pricing_pipeline/validation/plausibility.py",
        "_are_calm",
        "are_sound(bars)",
        "True",
        (_BARS,),
    ),
    Mutant(
        "a part that was dropped takes the place of a stored one",
        f"{_FUNCTIONS}/prices/prices.sql",
        "same_part",
        "(given IS NULL AND quality IS NOT NULL) OR ",
        "",
        (
            f"{_TESTS}/integration/test_misbehaviour.py::test_b18_f6_a_low_above_the_high_costs_both_and_nothing_that_is_stored",
        ),
    ),
    Mutant(
        "days that nobody asked for are quarantined one by one",
        "pricing_pipeline/providers/values.py",
        "_outside",
        "if not outside:",
        "if True:",
        (_PARTS,),
    ),
    Mutant(
        "a dividend of more than its price is entered",
        f"{_FUNCTIONS}/prices/actions.sql",
        "doubted_dividends",
        "WHEN 'raw' THEN 0.2 ELSE",
        "WHEN 'raw' THEN 1e20 ELSE",
        (
            f"{_TESTS}/integration/test_actions_in_doubt.py::test_f5_a_dividend_of_more_than_a_fifth_of_its_price_is_quarantined_and_never_entered",
        ),
    ),
    Mutant(
        "columns of bars are believed whatever is known",
        "pricing_pipeline/validation/plausibility.py",
        "_are_calm",
        "not known.stored or",
        "True or",
        (_BARS,),
    ),
    Mutant(
        "a step between bars by columns is believed however large",
        "pricing_pipeline/validation/plausibility.py",
        "_are_calm",
        "known.are_jumps_trusted or",
        "True or",
        (_BARS,),
    ),
    Mutant(
        "a bar that was corrected counts as the same",
        f"{_FUNCTIONS}/prices/prices.sql",
        "same_bar",
        "AND pricing.same_part((old).open_amount, (old).scale, open_amount, scale, quality)",
        "",
        (_BARS_STORED,),
    ),
    Mutant(
        "days that two calls store at once are a fault of the answer",
        f"{_FUNCTIONS}/prices/prices.sql",
        "merge_bars",
        "EXCEPTION WHEN unique_violation THEN",
        "EXCEPTION WHEN foreign_key_violation THEN",
        (_OVERTAKEN,),
    ),
    Mutant(
        "a value that another call stores at once is passed over",
        f"{_FUNCTIONS}/prices/prices.sql",
        "merge_prices",
        "IF NOT pass.is_overtaken THEN",
        "IF true THEN",
        (_OVERTAKEN,),
    ),
    Mutant(
        "a level goes on over a value that is believed",
        f"{_FUNCTIONS}/quarantine/quarantine.sql",
        "level_of",
        "AND h.observed_at > s.at_before AND h.observed_at < s.observed_at",
        "AND false",
        (_LEVELS,),
    ),
    Mutant(
        "an empty answer counts only where there is a price",
        f"{_FUNCTIONS}/prices/prices.sql",
        "confirm_prices",
        "WHERE s NOT IN (SELECT c.symbol FROM confirmed c)",
        "WHERE false",
        (_EMPTY,),
    ),
    Mutant(
        "a call has no deadline",
        "pricing_pipeline/providers/client.py",
        "",
        "exchange(seconds=self._deadline,",
        "exchange(seconds=12.0,",
        (f"{_FETCHING}::test_contract_21_a_slow_answer_is_a_failure_and_soon",),
    ),
    Mutant(
        "a price of nothing is believed",
        "pricing_pipeline/providers/values.py",
        "price_of",
        "if value <= 0:",
        "if value < 0:",
        (f"{_FETCHING}::test_contract_05_only_what_has_shape_sense_and_the_asked_name_is_stored",),
    ),
    Mutant(
        "the upsert leaves a column out",
        f"{_FUNCTIONS}/prices/prices.sql",
        "store_rows",
        "s.currency, s.volume, s.provider",
        "s.currency, NULL::numeric, s.provider",
        (f"{_FETCHING}::test_contract_22_every_fetcher_fills_every_column_from_answer_to_table",),
    ),
    Mutant(
        "a second opinion goes ahead of what waits",
        f"{_FUNCTIONS}/quarantine/opinions.sql",
        "next_to_ask",
        "IF chosen.ask_at > now_ - interval '10 minutes' AND EXISTS (",
        "IF false AND EXISTS (",
        (_OPINIONS,),
    ),
    Mutant(
        "a second opinion may pass limits and quota",
        f"{_FUNCTIONS}/quarantine/opinions.sql",
        "claim_opinions",
        "(wanted_provider, -2, bytes_) w;\n    IF refusal IS NOT NULL THEN",
        "(wanted_provider, -2, bytes_) w;\n    IF false THEN",
        (_OPINIONS,),
    ),
    Mutant(
        "opinions are compared whatever their basis",
        f"{_FUNCTIONS}/quarantine/opinions.sql",
        "note_opinions",
        "WHEN s.adjustment = 'splits' THEN 1 / split.shares ELSE split.shares END",
        "ELSE 1 END",
        (_OPINIONS,),
    ),
    Mutant(
        "what another provider contradicts is believed",
        "pricing_pipeline/validation/plausibility.py",
        "_do_agree",
        "<= _AGREED",
        "<= 100 * _AGREED",
        (_OPINIONS,),
    ),
    Mutant(
        "shares alone prove a move",
        "pricing_pipeline/validation/steps.py",
        "is_traded",
        "min(shares, money)",
        "shares",
        (_MOVES,),
    ),
    Mutant(
        "a wrong stretch is looked at up to its next step alone",
        "pricing_pipeline/validation/levels.py",
        "",
        "if level.is_anchored or len(values) > _LONGEST_SPIKE:",
        "if True:",
        (_MOVES,),
    ),
    Mutant(
        "a rival's quarantined value confirms nothing",
        "pricing_pipeline/quarantine/judgement.py",
        "with_proofs",
        "unsettled=rivals.get(symbol, {}), ",
        "",
        (f"{_TESTS}/integration/test_true_moves.py",),
    ),
    Mutant(
        "a split that a person has entered is not believed of its source",
        "pricing_pipeline/prices/actions.py",
        "as_confirmed",
        "return unsure.answer",
        "return answer",
        (f"{_TESTS}/integration/test_large_splits.py",),
    ),
    Mutant(
        "what a person took back comes back",
        f"{_FUNCTIONS}/prices/actions_by_hand.sql",
        "is_refuted",
        "AND r.removed_by IS NOT NULL",
        "AND false",
        (_BY_HAND,),
    ),
    Mutant(
        "a crash is named as an untold split",
        f"{_FUNCTIONS}/prices/actions_by_hand.sql",
        "untold_splits",
        "greatest(2.5, exp(abs(s.step)) / 2)",
        "1e9",
        (
            f"{_TESTS}/orchestration/test_checks.py::test_f5_yfinance_a_split_that_nobody_told_fails_a_check_and_a_crash_does_not",
        ),
    ),
)
