"""A quota as a plain list of hours: what the forecast and the stretch of TTLs should say, without a database.

`Month` is a month of it in fast motion. The database's own rules are compared with these functions on random states
(deep/test_forecast_model.py), and its months with these months.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WINDOW, MOST, MARGIN = 720, 16.0, 50
"""Hours of the quota; the largest stretch; the part of the quota (a fiftieth) that stays free below 90 %."""


def leaving(hours: Sequence[int]) -> list[int]:
    """What will have left in 1, 2, ... 721 hours, of bytes by hour of which the last is the current one."""
    padded = [0] * (WINDOW + 1 - len(hours)) + list(hours)[-(WINDOW + 1) :]
    left: list[int] = []
    for count in padded:
        left.append((left[-1] if left else 0) + count)
    return left


def reached_after(left: Sequence[int], used: int, rate: float, step: int) -> int | None:
    """Hours until used bytes reach a step; None = never."""
    if used >= step:
        return 0
    return next((n for n, gone in enumerate(left, 1) if used - gone + rate * n >= step), None)


def sustained(left: Sequence[int], used: int, target: int) -> float:
    """Bytes an hour at which used bytes are past the target at the end of no day."""
    return max(0.0, min((target - used + left[24 * day - 1]) / (24 * day) for day in range(1, 31)))


def factors(watched: float, background: float, most: float) -> tuple[float, float]:
    """By how much to stretch, watched first."""

    def stretch(need: float, room: float) -> float:
        if need <= room:
            return 1.0
        return MOST if room * MOST <= need else need / room

    behind = stretch(background, most - watched)
    return stretch(watched, most - background / behind), behind


def next_factor(before: float, wanted: float, elapsed: float) -> float:
    """It grows twofold in an hour at most, shrinks at once, and stays where it changes by two percent."""
    wanted = min(wanted, before * 2 ** (elapsed / 3600))
    return before if wanted > 1 and abs(wanted - before) <= 0.02 * before else wanted


@dataclass
class Month:
    """Hours in which so much is wanted of a quota, watched and in the background. Time passes by `pass_hour`."""

    quota: int
    is_stretched: bool = True
    hours: list[int] = field(default_factory=lambda: [0])
    factors: tuple[float, float] = (1.0, 1.0)
    _need: float = 0.0
    _weight: float = 0.0
    _carry: list[float] = field(default_factory=lambda: [0.0, 0.0])

    @property
    def used(self) -> int:
        return sum(self.hours[-(WINDOW + 1) :])

    def pass_hour(self, watched: float, background: float = 0.0) -> None:
        """An hour in which pairs need so many bytes at their TTLs."""
        if self.is_stretched:
            self._stretch(watched, background)
        for step, need, factor, place in (
            (90, background, self.factors[1], 1),
            (95, watched, self.factors[0], 0),
        ):
            # What is refused now stays due; it is no longer wanted twice.
            self._carry[place] = min(self._carry[place] + need / factor, need)
            room = self.quota // 100 * step - self.used
            come = max(0, min(int(self._carry[place]), room))
            self._carry[place] -= come
            self.hours[-1] += come
        self.hours.append(0)

    def _stretch(self, watched: float, background: float) -> None:
        used = self.used
        if used < self.quota // 20:
            self.factors, self._need, self._weight = (1.0, 1.0), 0.0, 0.0
            return
        gain = 1 - math.exp(-3600 / 86400)
        self._weight = self._weight * (1 - gain) + gain
        self._need += (watched - self._need) * gain / self._weight
        left = leaving(self.hours)
        wanted = factors(
            min(watched, self._need),
            background,
            sustained(left, used, self.quota // 100 * 90 - self.quota // MARGIN),
        )
        before = self.factors
        self.factors = (
            next_factor(before[0], wanted[0], 3600),
            next_factor(before[1], wanted[1], 3600),
        )
