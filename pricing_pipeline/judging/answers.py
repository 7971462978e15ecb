"""Judge an answer in its context: decide what to store, quarantine, request again, or fail.

prices/context.py loads the context, refresh/writing.py writes the judgement. Records that are no prices are believed as
they come: their readers have refused what cannot be true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Observations, Rows, joined
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging import plausibility
from pricing_pipeline.judging.basis import BasisChange
from pricing_pipeline.judging.knowledge import Doubt, Doubted, Known, Point, Verdict
from pricing_pipeline.judging.restatement import Restatement, RestatementKind
from pricing_pipeline.providers.base import capped
from pricing_pipeline.providers.values import NO_CURRENCY, midnight, to_enter
from pricing_pipeline.providers.values import unasked as unasked_value

_OF_LEVEL = frozenset({Doubt.UNIT, Doubt.JUMP, Doubt.SPLIT})


@dataclass(frozen=True, slots=True)
class Context:
    """An answer with everything that is needed to judge it.

    `answer` is about the symbols whose tasks the claim still owns, and read with its unconfirmed splits if a person has
    entered them. `changes` are the histories that may change to its basis. `unasked` are its values of days without a
    value that nobody asked for, and `known_of_unasked` is what these are judged by.
    """

    call: Call
    answer: Answer
    known: Mapping[str, Known] = field(default_factory=dict)
    changes: Mapping[str, BasisChange] = field(default_factory=dict)
    unasked: Rows = field(default_factory=Rows)
    known_of_unasked: Mapping[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do about an answer: `verdicts` have the believed and the doubted values, by symbol.

    `answer` has failures and rejected values, too. Of the histories in `changes`, those in `refetched` are asked for as
    a whole instead. `taken` are the values that are stored though nobody asked for them.
    """

    call: Call
    answer: Answer
    known: Mapping[str, Known]
    verdicts: Mapping[str, Verdict]
    changes: Mapping[str, BasisChange]
    refetched: frozenset[str]
    taken: Rows
    known_of_taken: Mapping[str, Known]

    @property
    def good(self) -> Observations:
        """The believed values."""
        return joined(verdict.good for verdict in self.verdicts.values())

    @property
    def in_doubt(self) -> list[str]:
        """The symbols with doubted values."""
        return [symbol for symbol, verdict in self.verdicts.items() if verdict.doubted]

    @property
    def off_level(self) -> set[str]:
        """The symbols with values that are doubted because they are on another level than the others."""
        return {
            symbol
            for symbol, verdict in self.verdicts.items()
            if any(doubt.kind in _OF_LEVEL for doubt in verdict.doubted)
        }

    @property
    def call_for_taken(self) -> Call:
        """The call as if it had asked for the values that are taken unasked."""
        days = self.taken.dates()
        return replace(self.call, window=Window(min(days), max(days)))

    def failures(self, stored: Mapping[str, Stored]) -> list[SymbolFailure]:
        """Why symbols of the answer are not served, if this is `stored`."""
        failures = list(self.answer.failures)
        for symbol in dict.fromkeys([*self.verdicts, *stored]):
            verdict, row = self.verdicts.get(symbol, Verdict()), stored.get(symbol)
            is_confirmed = bool(verdict.confirmed) if row is None else not row.is_stale_source
            if not (is_confirmed or symbol in self.refetched):
                failures.append(self._failure(symbol, verdict, is_stale=row is not None))
        return failures

    def _failure(self, symbol: str, verdict: Verdict, *, is_stale: bool) -> SymbolFailure:
        provider = self.call.provider
        if verdict.doubted:
            kind = FailureKind.IMPLAUSIBLE
            message = (
                f"all values of {symbol} are quarantined as implausible: {verdict.doubted[-1].reason}. "
                "`pricing-pipeline quarantine list` shows them."
            )
        elif is_stale:
            kind, message = FailureKind.STALE_SOURCE, "the provider's time is older than the stored one"
        elif self.answer.unconfirmed is not None:
            kind, split = FailureKind.MISCONFIGURED, self.answer.unconfirmed.splits[0]
            message = (
                f"{provider} divides the days of {symbol} before {split.ex_on} by a split of "
                f"{split.new_shares:f} for {split.old_shares:f}, which only a person can confirm; "
                f"{to_enter(split)}. Then they are asked for again by themselves."
            )
        elif symbol in self.changes and self.changes[symbol].is_asked:
            kind = FailureKind.MISCONFIGURED
            message = (
                f"{provider} adjusts these days of {symbol} differently from the stored history, and its "
                "whole history, asked for less than a day ago, has not settled it. Backfill them again in a day."
            )
        else:
            kind = FailureKind.MISCONFIGURED
            message = (
                f"{provider} adjusts the history of {symbol} differently from the stored one, so the two cannot "
                "be mixed. Route it to a provider of the same adjustment."
            )
        return SymbolFailure(symbol, kind, message)


def doubts(
    answer: Answer, verdicts: Mapping[str, Verdict], wrong: Iterable[RejectedValue] = ()
) -> list[Doubted | RejectedValue | SymbolFailure]:
    """All doubted values, and the symbols that were refused as a whole; none of them may be lost.

    `wrong` are the corporate actions of the answer that cannot be true.
    """
    rejected = capped([*answer.rejected, *wrong])
    shown = {value.symbol for value in rejected}
    whole = [
        failure
        for failure in answer.failures
        if failure.kind is FailureKind.IMPLAUSIBLE and failure.symbol not in shown
    ]
    return [doubt for verdict in verdicts.values() for doubt in verdict.doubted] + rejected + whole


def judge(context: Context) -> Judgement:
    """Judge an answer."""
    call = context.call
    answer = _in_known_currency(call, context.answer, context.known)
    verdicts = plausibility.judge_all(context.known, answer.observations, call.fetcher, is_latest=call.window is None)
    _note_unconfirmed(answer, verdicts)
    changes = {symbol: change for symbol, change in context.changes.items() if symbol in verdicts}
    refetched = set()
    for symbol, change in changes.items():
        verdict = verdicts[symbol]
        if not (change.is_whole and change.may_happen(context.known[symbol], verdict)):
            verdicts[symbol] = _not_rebased(answer, symbol, verdict, change)
            refetched |= set() if change.is_asked else {symbol}
    answer, taken, known_of_taken = _take_unasked(context, answer, verdicts)
    return Judgement(call, answer, context.known, verdicts, changes, frozenset(refetched), taken, known_of_taken)


def _in_known_currency(call: Call, answer: Answer, known: Mapping[str, Known]) -> Answer:
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
            f"{call.provider}'s answer for {symbol} names no currency, and there is no earlier value of it that shows "
            "which one is meant; nothing was stored.",
        )
        for symbol in sorted(failed)
    )
    rows = Rows(row for row in kept if row.symbol not in failed)
    return replace(answer, observations=rows, failures=(*answer.failures, *failures))


def _note_unconfirmed(answer: Answer, verdicts: dict[str, Verdict]) -> None:
    """Note days that came divided by an unconfirmed split: once a person enters the split, they are fetched again."""
    if answer.unconfirmed is None:
        return
    split = answer.unconfirmed.splits[0]
    verdict = verdicts.get(split.symbol)
    if verdict is not None and verdict.other_basis:
        times = frozenset({midnight(split.ex_on)})
        restatement = Restatement(
            RestatementKind.SPLIT, times, Decimal(abs(1 / split.shares - 1)), Decimal(split.shares)
        )
        verdicts[split.symbol] = replace(verdict, restatement=restatement)


def _not_rebased(answer: Answer, symbol: str, verdict: Verdict, change: BasisChange) -> Verdict:
    """The verdict on an answer as traded that leaves out stored days: nothing of it is stored.

    Unless that happened lately, the whole history is asked for instead.
    """
    refused = Verdict(
        doubted=verdict.doubted,
        other_basis=verdict.other_basis + len(verdict.good),
        restatement=verdict.restatement,
    )
    if change.is_asked:
        return refused
    times = frozenset(row.observed_at for row in answer.observations.of({symbol}))
    return replace(refused, restatement=Restatement(RestatementKind.BASIS, times, Decimal(0), ratio=Decimal(1)))


def _take_unasked(
    context: Context, answer: Answer, verdicts: Mapping[str, Verdict]
) -> tuple[Answer, Rows, dict[str, Known]]:
    """Take sound values that came unasked, of days without a value; returns the answer without them, and them.

    A day that an earlier answer lacked may come with one about other days. They are judged by the values that were
    asked for; they never change what is believed of those, and one in doubt is only counted.
    """
    if not context.unasked:
        return answer, Rows(), {}
    known = {}
    for symbol, about in context.known_of_unasked.items():
        verdict = verdicts.get(symbol, Verdict())
        if not verdict.doubted:
            points = tuple(Point(row.observed_at, row.close) for row in verdict.good if row.close)
            known[symbol] = replace(about, anchors=about.anchors + points)
    asked = {(row.symbol, row.observed_at) for verdict in verdicts.values() for row in verdict.good}
    rows = Rows(row for row in context.unasked if row.symbol in known and (row.symbol, row.observed_at) not in asked)
    judged = plausibility.judge_all(known, rows, context.call.fetcher, is_latest=False)
    taken = Rows(row for verdict in judged.values() if verdict.restatement is None for row in verdict.good)
    if not taken:
        return answer, Rows(), {}
    rest, places = [], {(row.symbol, row.observed_at) for row in taken}
    for value in answer.rejected:
        left = [row for row in value.unasked if (row.symbol, row.observed_at) not in places]
        if len(left) == len(value.unasked):
            rest.append(value)
        elif left:
            rest.append(unasked_value(value.symbol, left, "were not requested, and were not stored"))
    return replace(answer, rejected=tuple(rest)), taken, known
