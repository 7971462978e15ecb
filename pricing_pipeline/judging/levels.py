"""Decide which levels of an answer's values are believed.

Values that follow each other without a large step form a level. A walk goes from the surest level to both ends, and
compares each level with the nearest believed one. steps.py judges single steps, plausibility.py has the other rules,
and docs/truth.md describes them for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import exp, log, sqrt
from statistics import median

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.judging.knowledge import Doubt, Doubted, Known
from pricing_pipeline.judging.steps import (
    NEVER,
    QUESTIONED,
    QUOTE_LIMIT,
    SOON,
    Step,
    are_confirmed,
    is_traded,
    known_split,
    split_factor,
    unit_factor,
)

CALM = log(1.08)
INVERSE = log(1.06)
"""A smaller step in a week is no rate the other way round."""
TURNED = 0.25
"""How near a value must be to the inverse of the other, as a share of its distance from the other."""
ENOUGH_STEPS = 20
_LIMITS = {Fetcher.QUOTE: QUOTE_LIMIT, Fetcher.DAILY_BARS: log(2.5), Fetcher.NAV: log(1.5)}
"""How far one new value may be from the last; a larger step is quarantined until others confirm it."""
_TYPICAL = 25.0
"""A step is judged if it is larger than this number of typical steps (the median of the answer's steps)."""
_PATIENCE = timedelta(days=7)
"""Values further apart in time may have larger steps: the limit grows with the square root of the time."""
_LONGEST_SPIKE = 10
_BACK = 0.15
"""A value is back if its distance to the believed value is less than this share of the distance of any value away."""
_BACK_AT_LEAST = 0.01


def doubted(known: Known, steps: list[Step], fetcher: Fetcher, needed: int) -> list[Doubted]:
    """The rows that cannot be believed beside the others. `needed` values on a level confirm it."""
    steps.sort(key=lambda step: step.at)
    typical = _typical(steps)
    levels = _levels(known, steps, typical)
    if len(levels) == 1:
        return []
    surest = _surest(known, levels)
    about = (known, steps, fetcher, needed, typical)
    back = _Walk(*about, levels[surest::-1], [levels[surest]], is_backwards=True)
    doubts = list(back.doubted())
    onwards = _Walk(*about, levels[surest:], back.trail[::-1], is_backwards=False)
    return [*doubts, *onwards.doubted()]


def limit_of(typical: float | None) -> float:
    """The largest step that is not judged; `typical` is the median step of a long answer."""
    return QUESTIONED if typical is None else min(max(CALM, _TYPICAL * typical), log(1.5))


@dataclass(slots=True)
class _Level:
    """Values that follow each other without a large step; `start` is the index of the first among all steps."""

    start: int
    steps: list[Step]

    @property
    def is_anchored(self) -> bool:
        return any(step.is_anchor for step in self.steps)

    def is_confirmed(self, fetcher: Fetcher, needed: int) -> bool:
        return are_confirmed({step.at for step in self.steps}, fetcher, needed)


def _typical(steps: Sequence[Step]) -> float | None:
    """The median step of a long answer, as a logarithm; None for a short answer."""
    if len(steps) <= ENOUGH_STEPS:
        return None
    return median(abs(log(b.value / a.value)) for a, b in pairwise(steps))


def _levels(known: Known, steps: Sequence[Step], typical: float | None) -> list[_Level]:
    limit = limit_of(typical)
    levels = [_Level(0, [steps[0]])]
    for place, (before, step) in enumerate(pairwise(steps), 1):
        size = abs(log(step.value / before.value))
        if (
            size > limit * _stretch(before, step)
            or known_split(known, before, step) is not None
            or is_inverse(known, before, step)
        ):
            levels.append(_Level(place, []))
        levels[-1].steps.append(step)
    return levels


def is_inverse(known: Known, near: Step, far: Step) -> bool:
    """Whether a rate fits the other one far better the other way round.

    No rate moves by a sixteenth in a week and lands just there; one close to 1 cannot be told from its inverse.
    """
    step, turned = abs(_size(near, far)), abs(log(far.value * near.value))
    return known.is_rate and step > INVERSE * _stretch(near, far) and turned < TURNED * step


def _stretch(a: Step, b: Step) -> float:
    """The factor by which a step may be larger because of the time between its values."""
    return sqrt(max(1.0, abs(b.at - a.at) / _PATIENCE))


def _surest(known: Known, levels: list[_Level]) -> int:
    """The anchored level, or the longest. If a known split separates two levels, the later one is taken."""
    surest = max(range(len(levels)), key=lambda i: (levels[i].is_anchored, len(levels[i].steps), i))
    while surest + 1 < len(levels) and not levels[surest].is_anchored:
        if known_split(known, levels[surest].steps[-1], levels[surest + 1].steps[0]) is None:
            break
        surest += 1
    return surest


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk over `levels`, beginning with a believed one; `trail` has the believed ones so far."""

    known: Known
    steps: Sequence[Step]
    fetcher: Fetcher
    needed: int
    typical: float | None
    levels: Sequence[_Level]
    trail: list[_Level]
    is_backwards: bool

    def doubted(self) -> Iterator[Doubted]:
        """The rows of levels that are not believed."""
        wrong: _WrongLevels | None = None
        for place, level in enumerate(self.levels[1:], 1):
            doubt = None
            if not level.is_anchored:
                if wrong is not None and not wrong.ends_at(self, level):
                    doubt = wrong.doubt
                else:
                    doubt = self._look(level, place)
                    # Each level between a value and its return is judged on its own.
                    is_lasting = doubt is not None and doubt[0] is not Doubt.SPIKE
                    wrong = _WrongLevels(self, level, doubt) if doubt and is_lasting else None
            if doubt is None:
                self.trail.append(level)
                wrong = None
            else:
                yield from (Doubted(step.row, *doubt) for step in level.steps if step.row is not None)

    def facing(self, nearer: _Level, farther: _Level) -> tuple[Step, Step]:
        """The last value of the first level and the first of the second, in the direction of the walk."""
        return self._on_the_way(nearer)[-1], self._on_the_way(farther)[0]

    def _on_the_way(self, level: _Level) -> list[Step]:
        return level.steps[::-1] if self.is_backwards else level.steps

    def _look(self, level: _Level, place: int) -> tuple[Doubt, str] | None:
        """Why a level cannot be believed beside the last believed one; None if it can."""
        known, believed = self.known, self.trail[-1]
        near, far = self.facing(believed, level)
        step = _size(near, far)
        size, stretch = abs(step), _stretch(near, far)
        if is_traded(known, self.steps, (believed if self.is_backwards else level).start, size):
            return None
        message = (
            f"{far.value:g} of {far.at:%Y-%m-%d} is {exp(size):.3g} times {'above' if step > 0 else 'below'} "
            f"{near.value:g} of {near.at:%Y-%m-%d}"
        )
        if is_inverse(known, near, far):
            return Doubt.UNIT, f"{message}, and close to 1/{near.value:g}: as if the rate the other way round"
        if size >= NEVER:
            if (unit := unit_factor(size)) is not None:
                return Doubt.UNIT, f"{message}: as if in another unit (a factor of {unit})"
            return Doubt.JUMP, f"{message}: no price moves so far in a step"
        if (away := self._away(near, place)) is not None:
            return None if self._is_begun_by_trading(away) else (Doubt.SPIKE, f"{message}, and soon back")
        if (ex_on := known_split(known, near, far)) is not None:
            return (
                Doubt.SPLIT,
                f"{message}: as the split of {ex_on:%Y-%m-%d} changes it, which is known, and was not applied",
            )
        if size <= QUESTIONED or self._is_end_of_peak(far):
            return None
        factor = split_factor(size) if self.fetcher is Fetcher.DAILY_BARS and known.has_splits else None
        # If all other splits are named or applied, a lasting step is a forgotten split.
        is_raw = not known.are_splits_reported and all(
            step.row is None or step.row.adjustment is Adjustment.RAW for step in level.steps
        )
        if level.is_confirmed(self.fetcher, self.needed):
            if factor is not None and not is_raw:
                return (
                    Doubt.SPLIT,
                    f"{message}: looks like a split ({factor} to 1) that the source forgot to apply",
                )
            return None
        if factor is not None and self.is_backwards and is_raw and len(believed.steps) > 1:
            return None  # the later days are in this answer, and stay on their level
        if factor is not None:
            return (
                Doubt.SPLIT,
                f"{message}: looks like a split ({factor} to 1); quarantined until the days after it confirm it",
            )
        limit = max(_LIMITS.get(self.fetcher, 0.0), _TYPICAL * (self.typical or 0.0)) * stretch
        if size > limit:
            return Doubt.JUMP, f"{message}: quarantined until more values confirm it"
        return None

    def _away(self, near: Step, place: int) -> list[_Level] | None:
        """The levels from `place` on until a value is back near a believed one; None if none is within ten values."""
        away: list[_Level] = []
        values: list[Step] = []
        for level in self.levels[place:]:
            if values and _is_back(near, values, self._on_the_way(level)[0]):
                return away
            values += level.steps
            away.append(level)
            if level.is_anchored or len(values) > _LONGEST_SPIKE:
                break
        return None

    def _is_end_of_peak(self, far: Step) -> bool:
        """Whether a value is back at the believed prices before a peak that heavy trading has proved."""
        away: list[_Level] = []
        for before, peak in zip(self.trail[-2::-1], self.trail[:0:-1], strict=True):
            away.append(peak)
            values = [step for level in away for step in level.steps]
            if len(values) > _LONGEST_SPIKE:
                break
            if _is_back(self._on_the_way(before)[-1], values, far):
                return self._is_begun_by_trading(away)
        return False

    def _is_begun_by_trading(self, away: Sequence[_Level]) -> bool:
        place = min(level.start for level in away)
        return is_traded(self.known, self.steps, place, abs(_size(self.steps[place - 1], self.steps[place])))


def _is_back(near: Step, away: Sequence[Step], far: Step) -> bool:
    least = min(abs(log(step.value / near.value)) for step in away)
    return abs(log(far.value / near.value)) < max(_BACK * least, _BACK_AT_LEAST)


class _WrongLevels:
    """Levels in a row that are wrong by one factor: true moves within them do not make them right."""

    def __init__(self, walk: _Walk, level: _Level, doubt: tuple[Doubt, str]) -> None:
        self.doubt = doubt
        self._level = level
        self._by = _size(*walk.facing(walk.trail[-1], level))

    def ends_at(self, walk: _Walk, level: _Level) -> bool:
        """Whether this level reverses the factor, or soon returns to the last believed level."""
        step = _size(*walk.facing(self._level, level))
        near, far = walk.facing(walk.trail[-1], level)
        is_back = abs(far.at - near.at) < SOON and abs(_size(near, far)) < 2 * QUESTIONED
        self._level = level
        return is_back or abs(step + self._by) < QUESTIONED


def _size(near: Step, far: Step) -> float:
    return log(far.value / near.value)
