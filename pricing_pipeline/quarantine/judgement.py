"""Judge an answer: apply `plausibility.judge` with values from the database, and explain the doubted values.

This module writes nothing. storing.py stores the believed values and quarantines the others.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection

from pricing_pipeline.domain.answers import (
    Answer,
    FailureKind,
    RejectedValue,
    Stored,
    SymbolFailure,
)
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Observations, Rows
from pricing_pipeline.prices import actions, known_values, quarantined_values, rebasing
from pricing_pipeline.prices.rebasing import BasisChange
from pricing_pipeline.providers.base import capped
from pricing_pipeline.providers.values import NO_CURRENCY, midnight, to_enter
from pricing_pipeline.validation import closed_days, plausibility
from pricing_pipeline.validation.knowledge import Doubt, Doubted, Known, Verdict
from pricing_pipeline.validation.restatement import Restatement, RestatementKind

_OF_LEVEL = frozenset({Doubt.UNIT, Doubt.JUMP, Doubt.SPLIT})


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on each symbol of a provider's answer, with the values that it was judged by.

    `answer` is about the symbols that were asked about, and read with its unconfirmed splits if a person has entered
    them. `changes` are the histories that may change to the basis of the answer.
    """

    provider: str
    answer: Answer
    known: Mapping[str, Known]
    changes: Mapping[str, BasisChange]
    verdicts: Mapping[str, Verdict]

    @property
    def off_level(self) -> set[str]:
        """The symbols with values that are doubted because they are on another level than the others."""
        return {
            symbol
            for symbol, verdict in self.verdicts.items()
            if any(doubt.kind in _OF_LEVEL for doubt in verdict.doubted)
        }


def judge_answer(connection: Connection, call: Call, answer: Answer, symbols: Collection[str]) -> Judgement:
    """Judge an answer's values of some symbols; locks the basis of their histories, and writes nothing.

    Earlier doubted values are looked up only for symbols in doubt.
    """
    answer = actions.as_confirmed(connection, call, answer).of(symbols)
    observed = answer.observations
    rebasing.lock_basis(connection, call)
    known, changes = rebasing.load_known(connection, call, answer)
    answer = _in_known_currency(call.provider, answer, known)
    observed = answer.observations
    closed = known_values.closed_days(connection, call, observed)
    is_latest = call.window is None
    judged = plausibility.judge_all(known, observed, call.fetcher, is_latest=is_latest)
    doubted = [symbol for symbol, verdict in judged.items() if verdict.doubted]
    if doubted:
        proved = _with_evidence(connection, call, observed.of(doubted), known)
        judged |= plausibility.judge_all(proved, observed.of(proved), call.fetcher, is_latest=is_latest)
    judged = closed_days.doubt_closed_days(judged, closed)
    believe_released(connection, call, judged.values())
    note_unconfirmed(answer, judged)
    return Judgement(call.provider, answer, known, changes, judged)


def _in_known_currency(provider: str, answer: Answer, known: Mapping[str, Known]) -> Answer:
    """The answer with values that name no currency, and should, in that of their instrument; noted in `quality`.

    Without earlier values nothing shows that the instrument's currency is meant, or pence of it: such a symbol fails.
    """
    if not answer.observations.trimmed():
        return answer
    kept, failed = [], set()
    for row in answer.observations:
        if row.quality is not None and row.quality.startswith(NO_CURRENCY):
            about = known[row.symbol]
            if about.currency is None or not (about.anchors or about.stored):
                failed.add(row.symbol)
                continue
            note = f"{NO_CURRENCY}, so it is taken to be in {about.currency}, that of its instrument"
            row = replace(row, currency=about.currency, quality=row.quality.replace(NO_CURRENCY, note, 1))
        kept.append(row)
    failures = tuple(
        SymbolFailure(
            symbol,
            FailureKind.SCHEMA_DRIFT,
            f"{provider}'s answer for {symbol} names no currency, and there is no earlier value of it that shows "
            "which one is meant; nothing was stored.",
        )
        for symbol in sorted(failed)
    )
    rows = Rows(row for row in kept if row.symbol not in failed)
    return replace(answer, observations=rows, failures=(*answer.failures, *failures))


def _with_evidence(
    connection: Connection, call: Call, rows: Observations, known: Mapping[str, Known]
) -> dict[str, Known]:
    """The known values of symbols in doubt, with the evidence that only they need. Only symbols that have some."""
    doubted = list(rows.by_symbol())
    proved = with_proofs(connection, call, rows, known)
    for symbol, witnesses in quarantined_values.witnesses(connection, call, doubted).items():
        proved[symbol] = replace(proved.get(symbol, known[symbol]), witnesses=witnesses)
    return proved


def believe_released(connection: Connection, call: Call, judged: Collection[Verdict]) -> None:
    """Believe the doubted values that a person has released."""
    doubted = {doubt.observation.symbol for verdict in judged for doubt in verdict.doubted}
    released = quarantined_values.released(connection, call, sorted(doubted)) if doubted else set()
    for verdict in judged if released else ():
        believed = [
            doubt.observation
            for doubt in verdict.doubted
            if (doubt.observation.symbol, doubt.observation.observed_at, doubt.observation.close) in released
        ]
        verdict.doubted = [doubt for doubt in verdict.doubted if doubt.observation not in believed]
        verdict.good = Rows(sorted([*verdict.good, *believed], key=lambda row: row.observed_at))


def with_proofs(
    connection: Connection, call: Call, rows: Observations, known: Mapping[str, Known]
) -> dict[str, Known]:
    """The known values, with evidence for doubted moves: trading, other providers. Only symbols that have evidence."""
    rivals = quarantined_values.rivals(connection, call, rows)
    trading = known_values.trading(connection, call, rows)
    return {
        symbol: replace(known[symbol], unsettled=rivals.get(symbol, {}), trading=trading.get(symbol, ()))
        for symbol in rivals.keys() | trading.keys()
    }


def doubts(
    answer: Answer,
    verdicts: Mapping[str, Verdict],
    wrong_actions: Iterable[RejectedValue] = (),
) -> list[Doubted | RejectedValue | SymbolFailure]:
    """All doubted values, which must not be lost, and the symbols that were refused as a whole.

    `wrong_actions` are the corporate actions of the answer that cannot be true.
    """
    rejected = capped([*answer.rejected, *wrong_actions])
    shown = {value.symbol for value in rejected}
    whole = [
        failure
        for failure in answer.failures
        if failure.kind is FailureKind.IMPLAUSIBLE and failure.symbol not in shown
    ]
    return [doubt for verdict in verdicts.values() for doubt in verdict.doubted] + rejected + whole


def note_unconfirmed(answer: Answer, verdicts: Mapping[str, Verdict]) -> None:
    """Note days that came divided by an unconfirmed split: once a person enters the split, they are fetched again."""
    if answer.unconfirmed is None:
        return
    split = answer.unconfirmed.splits[0]
    verdict = verdicts.get(split.symbol)
    if verdict is not None and verdict.other_basis:
        times = frozenset({midnight(split.ex_on)})
        verdict.restatement = Restatement(
            RestatementKind.SPLIT, times, Decimal(abs(1 / split.shares - 1)), Decimal(split.shares)
        )


def unserved(
    judged: Judgement, stored: Mapping[str, Stored], refetched: Container[str]
) -> list[SymbolFailure]:
    """Failures of symbols whose values cannot be used, except those `refetched`: their whole history is fetched."""
    failures = []
    for symbol, verdict in judged.verdicts.items():
        row = stored.get(symbol)
        if (
            symbol in refetched
            or (row is not None and not row.is_stale_source)
            or (row is None and verdict.confirmed)
        ):
            continue
        if verdict.doubted:
            kind = FailureKind.IMPLAUSIBLE
            message = (
                f"all values of {symbol} are quarantined as implausible: {verdict.doubted[-1].reason}. "
                "`pricing-pipeline quarantine list` shows them."
            )
        elif row is not None:
            kind, message = FailureKind.STALE_SOURCE, "the provider's time is older than the stored one"
        elif judged.answer.unconfirmed is not None:
            kind, split = FailureKind.MISCONFIGURED, judged.answer.unconfirmed.splits[0]
            message = (
                f"{judged.provider} divides the days of {symbol} before {split.ex_on} by a split of "
                f"{split.new_shares:f} for {split.old_shares:f}, which only a person is believed about; "
                f"{to_enter(split)}. Then they are asked for again by themselves."
            )
        elif symbol in judged.changes and judged.changes[symbol].is_asked:
            kind = FailureKind.MISCONFIGURED
            message = (
                f"{judged.provider} adjusts these days of {symbol} otherwise than the history that is stored, and its "
                "whole history, asked for less than a day ago, has not settled it. Backfill them again in a day."
            )
        else:
            kind = FailureKind.MISCONFIGURED
            message = (
                f"{judged.provider} adjusts the history of {symbol} otherwise than the one that is stored, so its past "
                "cannot be mixed with it. Route it to a provider of the same adjustment."
            )
        failures.append(SymbolFailure(symbol, kind, message))
    return failures
