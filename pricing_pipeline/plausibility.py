"""Whether values that are well formed can be true of the instrument they are said to be of.

Here lie the rules that need to know what was believed before: currency, bounds, jumps, the basis of a history.
Pure functions over what the caller has loaded; no database, no clock. What needs no memory (digits, signs, days
outside the calendar) is refused where answers are read, in providers/values.py. A day is judged by its close; which of
its other prices can be true beside that is told in fields.py. The rules are told to people in docs/truth.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from math import exp, log, prod, sqrt
from statistics import median

from pricing_pipeline import peers
from pricing_pipeline.bars import Bars, StoredValues
from pricing_pipeline.domain import Adjustment, Fetcher, Observation
from pricing_pipeline.fields import are_sound, with_sound_parts
from pricing_pipeline.knowledge import Doubt, Doubted, Known, Point, Verdict
from pricing_pipeline.restatement import Restatement, RestatementKind, find
from pricing_pipeline.steps import (
    NEVER,
    QUESTIONED,
    QUOTE_LIMIT,
    SOON,
    Step,
    are_confirmed,
    is_heavy,
    known_split,
    least_step,
    split_factor,
    unit_factor,
    visible_splits,
)

_LIMITS = {Fetcher.QUOTE: QUOTE_LIMIT, Fetcher.DAILY_BARS: log(2.5), Fetcher.NAV: log(1.5)}
"""How far one new value may be from the last, before it is held until others confirm it."""
_AGREED = log(1.1)
"""Two providers that are further apart about the same time do not mean the same price."""
_CALM = log(1.08)
_TYPICAL = 25.0
"""A step of more than so many typical ones (the median of the answer's own) is looked at."""
_ENOUGH_STEPS = 20
_ROUNDED_LOG = 1e-9
"""More than sums of logarithms are rounded by."""
_CONFIRMED, _CONFIRMED_PAST = 3, 2
"""Values on one level that make it believed: a day, and two that follow it; one, in a span of the past."""
_PATIENCE = timedelta(days=7)
"""Between values further apart, steps may be larger: with the square root of the time."""
_LONGEST_SPIKE = 10
_CRASH = log(5.0)
_SHOWN = 5
"""Values of a restated past that are shown to people; their body has the others."""
_ROUNDING = Decimal("0.002")
"""By how much a value may differ from the stored one divided by a split: sources round what they divide."""


def judge(known: Known, rows: Sequence[Observation], fetcher: Fetcher, *, is_latest: bool) -> Verdict:
    """Judge the values of one symbol that one answer brought. `is_latest`: no span of days was asked for."""
    if isinstance(rows, Bars) and _are_calm(known, rows):
        return Verdict(good=rows)
    verdict = Verdict()
    if fetcher is Fetcher.DAILY_BARS:
        rows = with_sound_parts(known, rows)
    rows = _not_rejected(known, rows, verdict)
    rows = _of_one_basis(known, rows, verdict, is_latest=is_latest)
    rows = _not_divided(known, rows, verdict)
    rows = _not_restated(known, rows, verdict)
    passed: list[Observation] = []
    for row in rows:
        doubt = (
            _alone(known, row)
            or _revision(known, row, fetcher)
            or _disagreement(known, row, fetcher)
            or peers.contradiction(known, row, fetcher, _CONFIRMED)
        )
        if doubt is None:
            passed.append(row)
        else:
            verdict.held.append(doubt)
    if not known.are_jumps_trusted:
        needed = _CONFIRMED if is_latest else _CONFIRMED_PAST
        passed = _in_company(known, passed, fetcher, verdict, needed)
    verdict.good = passed
    return verdict


def _are_calm(known: Known, bars: Bars) -> bool:
    """Whether no rule below can hold any of the bars, seen over their columns: nearly always, and forty times as fast.

    It may say no of bars of which each is then believed, never yes of one that is not.
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
    """Whether `_levels` would find one, not counting that steps over longer times may be larger."""
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
    largest = float(steps.max(initial=0.0)) + _ROUNDED_LOG
    limit = _limit(None if len(logs) <= _ENOUGH_STEPS else float(np.median(steps)))
    smallest_split = min((least_step(shares) for _, shares in visible_splits(known)), default=largest + 1)
    return largest < max(_CALM, limit) and largest < smallest_split


def _not_rejected(known: Known, rows: Sequence[Observation], verdict: Verdict) -> Sequence[Observation]:
    """Those that no person has rejected: nothing that comes beside a rejected value makes it believed."""
    if not known.rejected:
        return rows
    wrong = [row for row in rows if (row.observed_at, row.close) in known.rejected]
    verdict.held += [Doubted(row, Doubt.REFUSED, "a person has rejected it") for row in wrong]
    return [row for row in rows if (row.observed_at, row.close) not in known.rejected]


def _of_one_basis(
    known: Known, rows: Sequence[Observation], verdict: Verdict, *, is_latest: bool
) -> Sequence[Observation]:
    """The answer's newest day is the same on every basis, since no split has come after it; older ones are not."""
    if known.adjustment is None or all(row.adjustment is known.adjustment for row in rows):
        return rows
    newest = max(row.observed_at for row in rows)
    is_news = is_latest and known.newest_at is not None and newest >= known.newest_at
    kept = [
        row for row in rows if row.adjustment is known.adjustment or (is_news and row.observed_at == newest)
    ]
    verdict.other_basis = len(rows) - len(kept)
    return kept


def _not_divided(known: Known, rows: Sequence[Observation], verdict: Verdict) -> Sequence[Observation]:
    """Those that are as traded, where the answer leaves out splits that are known: it may have divided by them.

    That shows where it holds both sides of the split, or days that are stored. Where neither does, nobody knows.
    """
    if known.are_jumps_trusted or not known.unnamed:
        return rows
    again = {row.observed_at for row in rows if _is_stored_divided(known, row)}
    verdict.confirmed += [row for row in rows if row.observed_at in again]
    rows = [row for row in rows if row.observed_at not in again]
    for ex_on, shares in sorted(known.unnamed, reverse=True):
        before = sorted(
            (row for row in rows if row.observed_at.date() < ex_on), key=lambda row: row.observed_at
        )
        if not before or _is_traded_through(known, before, rows, ex_on, shares):
            continue
        reason = (
            f"it is one of {len(before)} days before the split of {ex_on:%Y-%m-%d} ({shares:g} new shares for an old "
            "one), which is known, and which its answer does not name: nobody knows whether they are divided by it"
        )
        verdict.held += [Doubted(row, Doubt.SPLIT, reason) for row in before[-_SHOWN:]]
        times = frozenset(row.observed_at for row in before)
        change = Decimal(abs(1 / shares - 1))
        verdict.restatement = Restatement(
            RestatementKind.SPLIT, times, change, ratio=Decimal(shares).quantize(Decimal("1e-9"))
        )
        rows = [row for row in rows if row.observed_at.date() >= ex_on]
    return rows


def _is_traded_through(
    known: Known, before: Sequence[Observation], rows: Sequence[Observation], ex_on: date, shares: float
) -> bool:
    """Whether values before a split are as traded: one is as it is stored, or the split's own step is to be seen."""
    if any(known.stored.get(row.observed_at) == row.close for row in before):
        return True
    points = [*known.anchors, *(Point(row.observed_at, row.close) for row in rows)]
    points += [Point(at, value) for at, value in known.stored.items()]
    near = before[-1]
    far = min((point for point in points if point.at.date() >= ex_on), key=lambda p: p.at, default=None)
    if far is None or far.at - near.observed_at > SOON:
        return False
    step = log(
        known.of_todays_shares(near.close, near.observed_at) / known.of_todays_shares(far.value, far.at)
    )
    return abs(step) < abs(step + log(shares))


def _is_stored_divided(known: Known, row: Observation) -> bool:
    """Whether it is the stored value once more, divided by the splits that its answer does not name."""
    before = known.stored.get(row.observed_at)
    shares = prod(shares for ex_on, shares in known.unnamed if ex_on > row.observed_at.date())
    return (
        before is not None and shares != 1 and abs(float(row.close) * shares / float(before) - 1) < _ROUNDING
    )


def _not_restated(known: Known, rows: Sequence[Observation], verdict: Verdict) -> Sequence[Observation]:
    """Those that are not the stored days once more, divided by splits that are known or by a ratio that is not."""
    if known.restated:
        same = {
            row.observed_at for row in rows if row.observed_at in known.restated and _is_rounded(known, row)
        }
        verdict.confirmed += [row for row in rows if row.observed_at in same]
        rows = [row for row in rows if row.observed_at not in same]
    found = find(known.stored, rows, known.provisional)
    verdict.restatement = found or verdict.restatement
    if found is None or found.ratio is None or known.are_jumps_trusted:
        return rows
    kind = Doubt.SPLIT if found.kind is RestatementKind.SPLIT else Doubt.DIVIDEND
    reason = (
        f"it is one of {len(found.times)} days from {found.first_at:%Y-%m-%d} to {found.last_at:%Y-%m-%d} that come "
        f"divided by {found.ratio.normalize():f}: as if adjusted for a {kind.value} that is not known"
    )
    again = sorted((row for row in rows if row.observed_at in found.times), key=lambda row: row.observed_at)
    verdict.held += [Doubted(row, kind, reason) for row in again[-_SHOWN:]]
    return [row for row in rows if row.observed_at not in found.times]


def _is_rounded(known: Known, row: Observation) -> bool:
    return abs(row.close / known.stored[row.observed_at] - 1) < _ROUNDING


def _alone(known: Known, row: Observation) -> Doubted | None:
    if known.currency is not None and row.currency is not None and row.currency != known.currency:
        return Doubted(
            row, Doubt.CURRENCY, f"it is in {row.currency}, and this instrument in {known.currency}"
        )
    if known.lowest is not None and row.close < known.lowest:
        return Doubted(row, Doubt.BOUNDS, f"{row.close} is below the bound of {known.lowest}")
    if known.highest is not None and row.close > known.highest:
        return Doubted(row, Doubt.BOUNDS, f"{row.close} is above the bound of {known.highest}")
    return None


def _revision(known: Known, row: Observation, fetcher: Fetcher) -> Doubted | None:
    """Corrections are small. What comes again by a factor is another unit, or a split: the whole history's affair."""
    before = known.stored.get(row.observed_at)
    if before is None or not before or known.are_jumps_trusted:
        return None
    size = abs(log(float(row.close) / float(before)))
    if size <= QUESTIONED:
        return None
    said = f"{row.close} comes for {row.observed_at:%Y-%m-%d}, which is stored as {before}"
    if fetcher is Fetcher.DAILY_BARS and (factor := split_factor(size)) is not None:
        return Doubted(row, Doubt.SPLIT, f"{said}: looks like a split ({factor} to 1)")
    kind = Doubt.UNIT if size >= NEVER else Doubt.JUMP
    return Doubted(row, kind, f"{said}: a factor of {exp(size):.3g}")


def _disagreement(known: Known, row: Observation, fetcher: Fetcher) -> Doubted | None:
    """Two providers mean different prices: which of them is right, a person says. What is not final may differ."""
    if known.are_jumps_trusted or row.observed_at in known.provisional:
        return None
    exact = known.others.get(row.observed_at)
    near = known.others.values() if fetcher is Fetcher.QUOTE else [exact] if exact is not None else []
    for other in near:
        if abs(log(float(row.close) / float(other.value))) > _AGREED:
            when = f"{other.at:%Y-%m-%d %H:%M} UTC" if fetcher is Fetcher.QUOTE else f"{other.at:%Y-%m-%d}"
            said = f"{row.close} comes, and {other.provider} says {other.value.normalize():f} of {when}"
            return Doubted(row, Doubt.DISAGREEMENT, f"{said}: more than a tenth apart")
    return None


@dataclass(slots=True)
class _Level:
    """Values that follow each other without a break."""

    steps: list[Step]

    @property
    def is_anchored(self) -> bool:
        return any(step.is_anchor for step in self.steps)

    def is_confirmed(self, fetcher: Fetcher, needed: int) -> bool:
        return are_confirmed({step.at for step in self.steps}, fetcher, needed)


def _in_company(
    known: Known, rows: list[Observation], fetcher: Fetcher, verdict: Verdict, needed: int
) -> list[Observation]:
    """Compare the values with each other and with what is believed; the doubtful ones go to the verdict.

    A double is exact enough for asking whether a price has doubled; none of these is stored.
    """
    is_one = len(rows) == 1 and not known.splits
    if not rows or (is_one and all(_is_near(row, point) for row in rows for point in known.anchors)):
        return rows  # nearly every answer about a latest price ends here
    of = known.of_todays_shares
    steps = [Step(point.at, of(point.value, point.at), is_anchor=True) for point in known.anchors]
    stamps = {row.observed_at for row in rows}
    steps += [Step(p.at, of(p.value, p.at)) for p in known.witnesses if p.at not in stamps]
    # What comes again as it is stored is believed, so a longer stretch of wrong days beside it is not.
    steps += [
        Step(
            row.observed_at,
            of(row.close, row.observed_at),
            row,
            is_anchor=known.stored.get(row.observed_at) == row.close,
        )
        for row in rows
    ]
    steps.sort(key=lambda step: step.at)
    typical = _typical(steps)
    levels = _levels(known, steps, typical)
    if len(levels) == 1:
        return rows
    doubts = _doubted(known, levels, fetcher, typical, needed)
    verdict.held.extend(doubts)
    held = {doubt.observation.observed_at for doubt in doubts}
    return [row for row in rows if row.observed_at not in held]


def _is_near(row: Observation, point: Point) -> bool:
    return 0.77 < float(row.close) / float(point.value) < 1.3


def _typical(steps: Sequence[Step]) -> float | None:
    """The median step of a long answer, as a logarithm; None if it is too short to tell."""
    if len(steps) <= _ENOUGH_STEPS:
        return None
    return median(abs(log(b.value / a.value)) for a, b in pairwise(steps))


def _limit(typical: float | None) -> float:
    """The largest step to a value that follows the last without a question."""
    return QUESTIONED if typical is None else min(max(_CALM, _TYPICAL * typical), log(1.5))


def _levels(known: Known, steps: Sequence[Step], typical: float | None) -> list[_Level]:
    limit = _limit(typical)
    levels = [_Level([steps[0]])]
    for before, step in pairwise(steps):
        size = abs(log(step.value / before.value))
        if size > limit * _stretch(before, step) or known_split(known, before, step) is not None:
            levels.append(_Level([]))
        levels[-1].steps.append(step)
    return levels


def _stretch(a: Step, b: Step) -> float:
    """How much larger a step may be because of the time that lies between."""
    return sqrt(max(1.0, abs(b.at - a.at) / _PATIENCE))


def _doubted(
    known: Known, levels: list[_Level], fetcher: Fetcher, typical: float | None, needed: int
) -> list[Doubted]:
    """Walk from the surest level to both ends; each is compared with the nearest that is believed."""
    surest = _surest(known, levels)
    doubts: list[Doubted] = []
    for ahead, is_backwards in ((levels[surest + 1 :], False), (levels[:surest][::-1], True)):
        believed = levels[surest]
        wrong: _Wrong | None = None
        for index, level in enumerate(ahead):
            doubt = None
            if not level.is_anchored:
                beyond = ahead[index + 1] if index + 1 < len(ahead) else None
                if wrong is not None and not wrong.ends_at(level, believed, is_backwards=is_backwards):
                    doubt = wrong.doubt
                else:
                    doubt = _look(
                        *(known, believed, level, beyond, fetcher, typical, needed),
                        is_backwards=is_backwards,
                    )
                    wrong = None if doubt is None else _Wrong(believed, level, doubt, is_backwards)
            if doubt is None:
                believed, wrong = level, None
            else:
                doubts += [Doubted(step.row, *doubt) for step in level.steps if step.row is not None]
    return doubts


def _surest(known: Known, levels: list[_Level]) -> int:
    """The level that is anchored, else the longest. Of two that a known split parts, the later needs none undone."""
    surest = max(range(len(levels)), key=lambda i: (levels[i].is_anchored, len(levels[i].steps), i))
    while surest + 1 < len(levels) and not levels[surest].is_anchored:
        if known_split(known, levels[surest].steps[-1], levels[surest + 1].steps[0]) is None:
            break
        surest += 1
    return surest


class _Wrong:
    """A stretch of levels that are wrong by one factor: true moves within it do not make it right."""

    def __init__(self, believed: _Level, level: _Level, doubt: tuple[Doubt, str], is_backwards: bool) -> None:
        self.doubt = doubt
        self._level = level
        self._by = _step(believed, level, is_backwards=is_backwards)

    def ends_at(self, level: _Level, believed: _Level, *, is_backwards: bool) -> bool:
        """Whether this level takes the factor back, or is soon where the last believed one was."""
        step = _step(self._level, level, is_backwards=is_backwards)
        near, far = _facing(believed, level, is_backwards=is_backwards)
        is_back = abs(far.at - near.at) < SOON and abs(log(far.value / near.value)) < 2 * QUESTIONED
        self._level = level
        return is_back or abs(step + self._by) < QUESTIONED


def _facing(one: _Level, next_: _Level, *, is_backwards: bool) -> tuple[Step, Step]:
    """The values of two levels that are nearest to each other on a walk from the first to the second."""
    return (one.steps[0], next_.steps[-1]) if is_backwards else (one.steps[-1], next_.steps[0])


def _step(one: _Level, next_: _Level, *, is_backwards: bool) -> float:
    near, far = _facing(one, next_, is_backwards=is_backwards)
    return log(far.value / near.value)


def _look(
    known: Known,
    believed: _Level,
    level: _Level,
    beyond: _Level | None,
    fetcher: Fetcher,
    typical: float | None,
    needed: int,
    *,
    is_backwards: bool,
) -> tuple[Doubt, str] | None:
    """Why a level cannot be believed beside the one that is; None if it can. `beyond` comes after it on the walk."""
    near, far = _facing(believed, level, is_backwards=is_backwards)
    step = log(far.value / near.value)
    size, stretch = abs(step), _stretch(near, far)
    said = (
        f"{far.value:g} of {far.at:%Y-%m-%d} is {exp(size):.3g} times {'above' if step > 0 else 'below'} "
        f"{near.value:g} of {near.at:%Y-%m-%d}"
    )
    if size >= NEVER:
        if (unit := unit_factor(size)) is not None:
            return Doubt.UNIT, f"{said}: as if in another unit (a factor of {unit})"
        return Doubt.JUMP, f"{said}: no price moves so far in a step"
    if beyond is not None and len(level.steps) <= _LONGEST_SPIKE:
        back = beyond.steps[-1] if is_backwards else beyond.steps[0]
        if abs(log(back.value / near.value)) < max(size * 0.15, 0.01):
            return Doubt.SPIKE, f"{said}, and back at once"
    later, earlier = (believed, level) if is_backwards else (level, believed)
    is_true_move = size < _CRASH and is_heavy(later.steps[0], earlier.steps)
    if not is_true_move and (ex_on := known_split(known, near, far)) is not None:
        return (
            Doubt.SPLIT,
            f"{said}: as the split of {ex_on:%Y-%m-%d} changes it, which is known, and was not applied",
        )
    if size <= QUESTIONED:
        return None
    factor = split_factor(size) if fetcher is Fetcher.DAILY_BARS and not is_true_move else None
    # Where all splits are named, or applied, a step that stays is one that was forgotten.
    is_raw = not known.are_splits_told and all(
        step.row is None or step.row.adjustment is Adjustment.RAW for step in level.steps
    )
    if level.is_confirmed(fetcher, needed):
        if factor is not None and not is_raw:
            return Doubt.SPLIT, f"{said}: looks like a split ({factor} to 1) that the source forgot to apply"
        return None
    if factor is not None and is_backwards and is_raw and len(believed.steps) > 1:
        return None  # the days after it are here, and stay on their level
    if factor is not None:
        return (
            Doubt.SPLIT,
            f"{said}: looks like a split ({factor} to 1); held until the days after it confirm it",
        )
    limit = max(_LIMITS.get(fetcher, 0.0), _TYPICAL * (typical or 0.0)) * stretch
    if size > limit and not is_true_move:
        return Doubt.JUMP, f"{said}: held until more values confirm it"
    return None
