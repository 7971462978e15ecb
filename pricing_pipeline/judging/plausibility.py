"""Judge whether well-formed values can be true of their instrument.

The rules here need earlier believed values: currency, bounds, jumps, the basis of a history. They are pure functions of
loaded values, without database or clock. Rules that need no earlier values (digits, signs, days outside the calendar)
are in providers/values.py. A day is judged by its close; fields.py judges its other prices by the close. docs/truth.md
describes the rules for people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from math import exp, log, prod
from statistics import median

from pricing_pipeline.domain.bars import Bars, StoredValues
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Observations, Rows
from pricing_pipeline.judging import peers
from pricing_pipeline.judging.fields import are_sound, with_sound_parts
from pricing_pipeline.judging.knowledge import ROUNDING, Doubt, Doubted, Known, Point, Rival, Verdict
from pricing_pipeline.judging.levels import CALM, ENOUGH_STEPS, INVERSE, TURNED, doubted, is_inverse, limit_of
from pricing_pipeline.judging.restatement import Restatement, RestatementKind, find
from pricing_pipeline.judging.steps import (
    NEVER,
    QUESTIONED,
    SOON,
    Step,
    least_step,
    split_factor,
    step_of,
    visible_splits,
)

_AGREED = log(1.1)
"""Two providers whose values for one time are further apart do not mean the same price."""
_ROUNDED_LOG = 1e-9
"""More than the rounding error of sums of logarithms."""
_CONFIRMED, _CONFIRMED_PAST = 3, 2
"""How many values confirm a level: three in an answer for latest prices, two in a span of the past."""
_FEWEST_REPEATED = 3
"""Fewer days that come again do not show whether an answer is about another instrument."""
_SAME_RATIO = log(1.02)
"""Steps that differ by more are not made by one ratio: rates of exchange move less from day to day."""
_SHOWN = 5
"""How many values of a restated past are quarantined; the stored answer has the others."""


def judge_all(
    known: Mapping[str, Known], observed: Observations, fetcher: Fetcher, *, is_latest: bool
) -> dict[str, Verdict]:
    """Judge an answer's values symbol by symbol."""
    return {
        symbol: judge(known[symbol], rows, fetcher, is_latest=is_latest)
        for symbol, rows in observed.by_symbol().items()
    }


def judge(known: Known, rows: Sequence[Observation], fetcher: Fetcher, *, is_latest: bool) -> Verdict:
    """Judge one symbol's values in one answer. `is_latest`: the call asked for no span of days."""
    if isinstance(rows, Bars) and _are_calm(known, rows):
        verdict = Verdict(rows)
    elif _is_calm(known, rows, fetcher):
        verdict = Verdict(Rows(rows))
    else:
        verdict = _judged(known, Rows(row for row in rows if row.close), fetcher, is_latest=is_latest)
        zeros = Rows(row for row in rows if not row.close)
        if zeros:  # what has been written off: no step leads to 0 or from there
            verdict = _joined(verdict, _narrowed(known, zeros, _without_rejected, _without_impossible))
    if known.closed:
        verdict = verdict.then(_without_closed_days(known, verdict.good))
    return _with_released(known, verdict) if known.released and verdict.doubted else verdict


def _judged(known: Known, rows: Rows, fetcher: Fetcher, *, is_latest: bool) -> Verdict:
    needed = _CONFIRMED if is_latest else _CONFIRMED_PAST
    return _narrowed(
        known,
        Rows(with_sound_parts(known, rows)) if fetcher is Fetcher.DAILY_BARS else rows,
        _without_rejected,
        partial(_on_known_basis, is_latest=is_latest),
        _without_divided,
        _without_restated,
        partial(_without_doubtful, fetcher=fetcher),
        partial(_on_believed_levels, fetcher=fetcher, needed=needed),
    )


def _narrowed(known: Known, rows: Observations, *rules: Callable[[Known, Observations], Verdict | None]) -> Verdict:
    """The values after each rule in turn has removed those that it doubts. A rule without a verdict removes none."""
    verdict = Verdict(rows)
    for rule in rules:
        if (rest := rule(known, verdict.good)) is not None:
            verdict = verdict.then(rest)
    return verdict


def _joined(one: Verdict, other: Verdict) -> Verdict:
    """The verdict on the values of both, in order of time."""
    rows = Rows(sorted([*one.good, *other.good], key=lambda row: row.observed_at))
    return one.then(replace(other, good=rows))


def _without_closed_days(known: Known, rows: Observations) -> Verdict:
    """The values without those of days on which the exchange has no session.

    Calendars are wrong at times: they miss special sessions, and learn of some holidays too late. So such a bar is
    evidence that the exchange traded. It is quarantined until a second instrument, a second provider or a correction
    says the same (`pricing.weigh_closed_days`). Currencies have no such days: their week begins on Sunday evening.
    """
    doubts = tuple(
        Doubted(row, Doubt.CLOSED_DAY, _words_for_closed_day(known.closed[row.observed_at.date()], row))
        for row in rows
        if row.observed_at.date() in known.closed
    )
    if not doubts:
        return Verdict(rows)
    return Verdict(Rows(row for row in rows if row.observed_at.date() not in known.closed), doubts)


def _words_for_closed_day(calendar: str, row: Observation) -> str:
    day = row.observed_at.date()
    return (
        f"{calendar} has no session on {day:%A}, {day}. It is believed once another instrument or provider has a bar "
        f"of that day, or after `calendar add-session {calendar} {day}`. If {calendar} is not its calendar, "
        "correct it with `instrument change --calendar`"
    )


def _with_released(known: Known, verdict: Verdict) -> Verdict:
    """The verdict with the doubted values that a person has released among the believed ones."""
    rows = (doubt.observation for doubt in verdict.doubted)
    released = [row for row in rows if (row.observed_at, row.close) in known.released]
    if not released:
        return verdict
    doubted = tuple(doubt for doubt in verdict.doubted if doubt.observation not in released)
    return _joined(replace(verdict, doubted=doubted), Verdict(Rows(released)))


def _is_calm(known: Known, rows: Sequence[Observation], fetcher: Fetcher) -> bool:
    """Whether these are one value that no rule below can doubt, as nearly every latest price is.

    As `_are_calm`, it may return False for a value that is believed later, but never True for one that is not.
    """
    if len(rows) != 1 or fetcher is Fetcher.DAILY_BARS:
        return False
    row = rows[0]
    return (
        bool(row.close)
        and not (known.restated or known.unnamed or known.others or known.rejected)
        and known.adjustment in (None, row.adjustment)
        and known.stored.get(row.observed_at) in (None, row.close)
        and _doubt_of_value(known, row) is None
        and peers.contradiction(known, row, fetcher, _CONFIRMED) is None
        and (known.are_jumps_trusted or _is_near_anchors(known, row))
    )


def _is_near_anchors(known: Known, row: Observation) -> bool:
    """Whether no step leads from a known value to this one, without a look at splits."""
    value = float(row.close)
    if known.splits or not all(0.77 < value / float(point.value) < 1.3 for point in known.anchors):
        return False
    step = Step(row.observed_at, value)
    return not known.is_rate or not any(is_inverse(known, Step(p.at, float(p.value)), step) for p in known.anchors)


def _are_calm(known: Known, bars: Bars) -> bool:
    """Whether no rule below can doubt a bar, by a check of columns that is forty times as fast and mostly enough.

    It may return False for bars that are all believed later, but never True if one is not.
    """
    unit = Decimal(1).scaleb(-bars.scale)
    return (
        are_sound(bars)
        and known.adjustment in (None, bars.adjustment)
        and (None in (known.currency, bars.currency) or known.currency == bars.currency)
        and not (known.restated or known.unnamed or known.witnesses or known.others or known.rejected)
        and (known.lowest is None or int(bars.lows.min()) * unit >= known.lowest)
        and (known.highest is None or int(bars.highs.max()) * unit <= known.highest)
        and (not known.stored or (isinstance(known.stored, StoredValues) and known.stored.are_in(bars)))
        and (known.are_jumps_trusted or (peers.agree(known, bars) and _are_on_one_level(known, bars)))
    )


def _are_on_one_level(known: Known, bars: Bars) -> bool:
    """Whether levels.py would find one level, without its larger limit for steps over a long time."""
    import numpy as np

    logs = np.log(bars.closes)
    for ex_on, shares in known.splits:
        logs[: bars.ordinals.searchsorted(ex_on.toordinal())] -= log(shares)
    unit = bars.scale * log(10.0)
    anchors = sorted(known.anchors, key=lambda point: point.at, reverse=True)
    for point in anchors:
        value = log(known.of_todays_shares(point.value, point.at)) + unit
        logs = np.insert(logs, bars.place_of(point.at), value)
    steps = np.abs(np.diff(logs))
    if known.is_rate:
        turned = np.abs(logs[1:] + logs[:-1] - 2 * unit)
        if ((steps > INVERSE) & (turned < TURNED * steps)).any():
            return False
    largest = float(steps.max(initial=0.0)) + _ROUNDED_LOG
    limit = limit_of(None if len(logs) <= ENOUGH_STEPS else float(np.median(steps)))
    smallest_split = min((least_step(shares) for _, shares in visible_splits(known)), default=largest + 1)
    return largest < max(CALM, limit) and largest < smallest_split


def _without_rejected(known: Known, rows: Observations) -> Verdict | None:
    """The values that no person has rejected: other values cannot confirm a rejected one."""
    if not known.rejected:
        return None
    wrong = [row for row in rows if (row.observed_at, row.close) in known.rejected]
    return Verdict(
        Rows(row for row in rows if (row.observed_at, row.close) not in known.rejected),
        tuple(Doubted(row, Doubt.REFUSED, "a person has rejected it") for row in wrong),
    )


def _on_known_basis(known: Known, rows: Observations, *, is_latest: bool) -> Verdict | None:
    """The values on the history's basis. The answer's newest day is the same on every basis: no split follows it."""
    if known.adjustment is None or all(row.adjustment is known.adjustment for row in rows):
        return None
    newest = max(row.observed_at for row in rows)
    is_news = is_latest and known.newest_at is not None and newest >= known.newest_at
    kept = Rows(row for row in rows if row.adjustment is known.adjustment or (is_news and row.observed_at == newest))
    return Verdict(kept, other_basis=len(rows) - len(kept))


def _without_divided(known: Known, rows: Observations) -> Verdict | None:
    """The values as traded, if the answer does not name known splits: it may have divided by them.

    This can be decided if the answer has days on both sides of the split, or stored days. Otherwise they are doubted.
    """
    if known.are_jumps_trusted or not known.unnamed:
        return None
    again = {row.observed_at for row in rows if _is_stored_divided(known, row)}
    verdict = Verdict(
        Rows(row for row in rows if row.observed_at not in again),
        confirmed=tuple(row for row in rows if row.observed_at in again),
    )
    for ex_on, shares in sorted(known.unnamed, reverse=True):
        before = sorted(
            (row for row in verdict.good if row.observed_at.date() < ex_on), key=lambda row: row.observed_at
        )
        if not before or _is_traded_through(known, before, verdict.good, ex_on, shares):
            continue
        reason = (
            f"it is one of {len(before)} days before the split of {ex_on:%Y-%m-%d} ({shares:g} new shares for an old "
            "one), which is known, and which its answer does not name: nobody knows whether they are divided by it"
        )
        restatement = Restatement(
            RestatementKind.SPLIT,
            frozenset(row.observed_at for row in before),
            Decimal(abs(1 / shares - 1)),
            ratio=Decimal(shares).quantize(Decimal("1e-9")),
        )
        verdict = verdict.then(
            Verdict(
                Rows(row for row in verdict.good if row.observed_at.date() >= ex_on),
                tuple(Doubted(row, Doubt.SPLIT, reason) for row in before[-_SHOWN:]),
                restatement=restatement,
            )
        )
    return verdict


def _is_traded_through(
    known: Known, before: Sequence[Observation], rows: Sequence[Observation], ex_on: date, shares: float
) -> bool:
    """Whether values before a split are as traded: one equals its stored value, or the step of the split is there."""
    if any(known.stored.get(row.observed_at) == row.close for row in before):
        return True
    points = [*known.anchors, *(Point(row.observed_at, row.close) for row in rows)]
    points += [Point(at, value) for at, value in known.stored.items()]
    near = before[-1]
    far = min((point for point in points if point.at.date() >= ex_on), key=lambda p: p.at, default=None)
    if far is None or far.at - near.observed_at > SOON:
        return False
    step = log(known.of_todays_shares(near.close, near.observed_at) / known.of_todays_shares(far.value, far.at))
    return abs(step) < abs(step + log(shares))


def _is_stored_divided(known: Known, row: Observation) -> bool:
    """Whether a value is the stored one, divided by the splits that its answer does not name."""
    before = known.stored.get(row.observed_at)
    shares = prod(shares for ex_on, shares in known.unnamed if ex_on > row.observed_at.date())
    return before is not None and shares != 1 and abs(float(row.close) * shares / float(before) - 1) < ROUNDING


def _without_restated(known: Known, rows: Observations) -> Verdict | None:
    """The values that do not repeat stored days, divided by known splits or by an unknown ratio."""
    same = {row.observed_at for row in rows if row.observed_at in known.restated and _is_rounded(known, row)}
    confirmed = tuple(row for row in rows if row.observed_at in same)
    rows = Rows(row for row in rows if row.observed_at not in same) if same else rows
    restatement = find(known.stored, rows, known.provisional)
    if restatement is None and not same:
        return None
    if restatement is None or restatement.ratio is None or known.are_jumps_trusted:
        return Verdict(rows, confirmed=confirmed, restatement=restatement)
    if not known.has_splits:
        kind, cause = Doubt.UNIT, "another unit"
    else:
        kind = Doubt.SPLIT if restatement.kind is RestatementKind.SPLIT else Doubt.DIVIDEND
        cause = f"adjusted for a {kind.value} that is not known"
    reason = (
        f"it is one of {len(restatement.times)} days from {restatement.first_at:%Y-%m-%d} to "
        f"{restatement.last_at:%Y-%m-%d} that come divided by {restatement.ratio.normalize():f}: as if {cause}"
    )
    again = sorted((row for row in rows if row.observed_at in restatement.times), key=lambda row: row.observed_at)
    doubted = tuple(Doubted(row, kind, reason) for row in again[-_SHOWN:])
    rows = Rows(row for row in rows if row.observed_at not in restatement.times)
    return Verdict(rows, doubted, confirmed=confirmed, restatement=restatement)


def _is_rounded(known: Known, row: Observation) -> bool:
    return abs(row.close / known.stored[row.observed_at] - 1) < ROUNDING


def _without_doubtful(known: Known, rows: Observations, *, fetcher: Fetcher) -> Verdict | None:
    """The values that can be believed one by one."""
    is_strange = known.currency is not None and any(row.currency not in (None, known.currency) for row in rows)
    stranger = _words_for_stranger(known, rows) if is_strange else ""
    passed: list[Observation] = []
    doubts: list[Doubted] = []
    for row in rows:
        doubt = (
            _doubt_of_value(known, row, stranger)
            or _doubt_of_revision(known, row, fetcher)
            or _doubt_of_disagreement(known, row, fetcher)
            or peers.contradiction(known, row, fetcher, _CONFIRMED)
        )
        if doubt is None:
            passed.append(row)
        else:
            doubts.append(doubt)
    return Verdict(Rows(passed), tuple(doubts)) if doubts else None


def _without_impossible(known: Known, rows: Observations) -> Verdict:
    """The values in the right currency and within the bounds."""
    doubts = [(row, _doubt_of_value(known, row)) for row in rows]
    return Verdict(
        Rows(row for row, doubt in doubts if doubt is None),
        tuple(doubt for _, doubt in doubts if doubt is not None),
    )


def _words_for_stranger(known: Known, rows: Sequence[Observation]) -> str:
    """The addition to a reason if the answer seems to be about another instrument, which now has the symbol.

    Its stored days have other prices, too, which do not differ by one ratio as in another unit or currency.
    """
    steps = [
        log(float(row.close) / float(before))
        for row in rows
        if row.close and (before := known.stored.get(row.observed_at))
    ]
    if len(steps) < _FEWEST_REPEATED:
        return ""
    middle = median(steps)
    apart = sum(abs(step - middle) > _SAME_RATIO for step in steps)
    if 2 * apart < len(steps):
        return ""
    return (
        f"; {len(steps)} days that are stored come with other prices, too: it seems to be another instrument, which "
        "has this symbol now. Rename or retire this one"
    )


def _doubt_of_value(known: Known, row: Observation, stranger: str = "") -> Doubted | None:
    if known.currency is not None and row.currency is not None and row.currency != known.currency:
        reason = f"it is in {row.currency}, and this instrument in {known.currency}"
        return Doubted(row, Doubt.CURRENCY, f"{reason}{stranger}")
    if known.lowest is not None and row.close < known.lowest:
        return Doubted(row, Doubt.BOUNDS, f"{row.close} is below the bound of {known.lowest}")
    if known.highest is not None and row.close > known.highest:
        return Doubted(row, Doubt.BOUNDS, f"{row.close} is above the bound of {known.highest}")
    return None


def _doubt_of_revision(known: Known, row: Observation, fetcher: Fetcher) -> Doubted | None:
    """The doubt about a large correction. True corrections are small; a factor is another unit, or a split."""
    before = known.stored.get(row.observed_at)
    if before is None or not before or known.are_jumps_trusted:
        return None
    size = abs(log(float(row.close) / float(before)))
    if size <= QUESTIONED:
        return None
    message = f"{row.close} comes for {row.observed_at:%Y-%m-%d}, which is stored as {before}"
    if fetcher is Fetcher.DAILY_BARS and known.has_splits and (factor := split_factor(size)) is not None:
        return Doubted(row, Doubt.SPLIT, f"{message}: looks like a split ({factor} to 1)")
    kind = Doubt.UNIT if size >= NEVER else Doubt.JUMP
    return Doubted(row, kind, f"{message}: a factor of {exp(size):.3g}")


def _doubt_of_disagreement(known: Known, row: Observation, fetcher: Fetcher) -> Doubted | None:
    """The doubt if two providers mean different prices; a person decides. Values that are not final may differ."""
    if known.are_jumps_trusted or row.observed_at in known.provisional or not known.others:
        return None
    for other in _rivals_at_time(known.others, row, fetcher):
        if not _do_agree(row, other) and not _is_confirmed_by_rival(known, row, fetcher):
            when = f"{other.at:%Y-%m-%d %H:%M} UTC" if fetcher is Fetcher.QUOTE else f"{other.at:%Y-%m-%d}"
            message = f"{row.close} comes, and {other.provider} says {other.value.normalize():f} of {when}"
            return Doubted(row, Doubt.DISAGREEMENT, f"{message}: more than a tenth apart")
    return None


def _rivals_at_time(rivals: Mapping[datetime, Rival], row: Observation, fetcher: Fetcher) -> Iterable[Rival]:
    if fetcher is Fetcher.QUOTE:
        return rivals.values()
    return [rivals[row.observed_at]] if row.observed_at in rivals else []


def _do_agree(row: Observation, other: Rival) -> bool:
    return abs(log(float(row.close) / float(other.value))) <= _AGREED


def _is_confirmed_by_rival(known: Known, row: Observation, fetcher: Fetcher) -> bool:
    """Whether another provider has the same value, believed or quarantined: two that see one move confirm it."""
    return any(
        _do_agree(row, other)
        for rivals in (known.others, known.unsettled)
        for other in _rivals_at_time(rivals, row, fetcher)
    )


def _on_believed_levels(known: Known, rows: Observations, *, fetcher: Fetcher, needed: int) -> Verdict | None:
    """The values that can be believed beside each other and beside known ones.

    A double is exact enough to compare prices; none of these is stored.
    """
    if not rows or known.are_jumps_trusted or (len(rows) == 1 and _is_near_anchors(known, rows[0])):
        return None
    of = known.of_todays_shares
    steps = [_step(known, row, fetcher) for row in rows]
    stamps, believed = {step.at for step in steps}, {step.at for step in steps if step.is_anchor}
    steps += [Step(p.at, of(p.value, p.at), is_anchor=True) for p in known.anchors if p.at not in believed]
    steps += [Step(p.at, of(p.value, p.at)) for p in known.witnesses if p.at not in stamps]
    doubts = tuple(doubted(known, steps, fetcher, needed))
    if not doubts:
        return None
    doubtful = {doubt.observation.observed_at for doubt in doubts}
    return Verdict(Rows(row for row in rows if row.observed_at not in doubtful), doubts)


def _step(known: Known, row: Observation, fetcher: Fetcher) -> Step:
    step = step_of(known, row.observed_at, row.close, row.volume)
    step.row = row
    # A value that equals the stored one is believed, so that more wrong days beside it cannot outvote it.
    step.is_anchor = known.stored.get(row.observed_at) == row.close or _is_confirmed_by_rival(known, row, fetcher)
    return step
