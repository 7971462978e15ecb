"""Put known values on the basis of an answer, and decide whether a history changes to the basis of its answer.

A history is as traded or divided by splits, as a whole. It changes from divided to as traded when its own provider
sends all of it as traded. docs/truth.md explains the bases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import prod

from pricing_pipeline.domain.answers import SAME_ACTION, Answer, Split, Unconfirmed
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.judging.knowledge import ROUNDING, Known, Point, Verdict

FINAL_AFTER = timedelta(hours=25)
"""How long after the midnight UTC of its day a bar is final, for every exchange: an hour after the day's end."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The basis of a stored history and its known splits, with their ratios of new to old shares.

    `newest`, `earlier` and `recorded` say when stored values were recorded: the newest, the last before the answer, and
    those that the answer repeats. `refuted` are days of splits of the answer that a person has removed or replaced.
    """

    adjustment: Adjustment | None
    splits: Mapping[date, Decimal]
    may_split: bool
    newest: datetime | None
    earlier: datetime | None
    recorded: Mapping[datetime, datetime]
    refuted: frozenset[date] = field(default_factory=frozenset)

    @property
    def ratios(self) -> dict[date, float]:
        """The known splits; a double is exact enough to compare."""
        return {day: float(ratio) for day, ratio in self.splits.items()}

    def recorded_at(self, point: Point, newest_at: datetime | None) -> datetime | None:
        """When a stored value around the answer was recorded."""
        is_newest = newest_at is not None and point.at >= newest_at
        return self.recorded.get(point.at, self.newest if is_newest else self.earlier)

    def shares_since(self, then: datetime | None, until: date) -> Decimal:
        """New shares for an old one, by the splits that came after a value was recorded."""
        ratio = Decimal(1)
        for ex_on, shares in self.splits.items():
            if then is not None and then.astimezone(UTC).date() < ex_on <= until:
                ratio *= shares
        return ratio


@dataclass(frozen=True, slots=True)
class BasisChange:
    """The own provider of a divided history has sent days of it as traded.

    The first and the last day are those of what is stored. `is_whole`: the call asked for all of it. `is_asked`: all of
    it was asked for lately, for this cause.
    """

    first_day: date
    last_day: date
    is_whole: bool
    is_asked: bool

    def may_happen(self, known: Known, verdict: Verdict) -> bool:
        """Whether every stored day came, or may leave the history because it was left out twice."""
        if not verdict.good or self.may_leave(verdict):
            return True
        days = {row.observed_at: row.observed_at.date() for row in verdict.good}
        are_all_known = min(days.values()) <= self.first_day and self.last_day <= max(days.values())
        return are_all_known and days.keys() >= known.stored.keys()

    def may_leave(self, verdict: Verdict) -> bool:
        """Whether stored days that did not come are no part of the history any more."""
        is_restated = verdict.restatement is not None and verdict.restatement.is_constant
        return self.is_asked and not (verdict.confirmed or is_restated)


def are_believed(unsure: Unconfirmed, known_splits: Mapping[date, float]) -> bool:
    """Whether a person has entered all splits that only a person can confirm."""
    return all(
        any(_are_same_split(*known, split.ex_on, split.shares) for known in known_splits.items())
        for split in unsure.splits
    )


def may_change(call: Call, answer: Answer, bases: Mapping[str, Basis]) -> list[str]:
    """The symbols with days as traded in the answer and a divided history.

    An unconfirmed answer changes no basis. Neither do divided days: with one unreadable split, the prices as traded
    could not be computed any more.
    """
    if call.fetcher is not Fetcher.DAILY_BARS or call.window is None or answer.unconfirmed is not None:
        return []
    return [
        symbol
        for symbol, rows in answer.observations.by_symbol().items()
        if rows.adjustments() == {Adjustment.RAW} and bases[symbol].adjustment not in (None, Adjustment.RAW)
    ]


def refined(known: Known, basis: Basis, call: Call, answer: Answer, *, is_rebased: bool = False) -> Known:
    """The known daily values of the symbol of an answer, with its splits and the stored bars that were not final.

    If a history is divided by the splits until each value was recorded, the values here are also divided by the splits
    since then, as the answer should be. `is_rebased`: they are converted to prices as traded, as the answer is.
    """
    rows = answer.observations
    (symbol,) = rows.symbols()
    named = {
        action.ex_on: action.shares
        for action in answer.actions
        if isinstance(action, Split) and action.symbol == symbol
    }
    believed = basis.ratios
    applied = _merge_splits(believed, {day: shares for day, shares in named.items() if day not in basis.refuted})
    about = replace(
        known,
        adjustment=basis.adjustment,
        are_splits_reported=symbol in answer.actions_since,
        has_splits=bool(believed or named) or (basis.may_split and symbol not in answer.unsplit),
        # A NAV is published once, and does not change with its day.
        provisional=frozenset(at for at, then in basis.recorded.items() if then - at < FINAL_AFTER)
        if call.fetcher is Fetcher.DAILY_BARS
        else frozenset(),
    )
    today = call.claimed_at.astimezone(UTC).date()
    if about.adjustment is Adjustment.SPLITS and believed:
        about = _of_later_shares(about, basis, today)
    if is_rebased:
        about = _as_traded(about, applied, rows)
    if about.adjustment is not Adjustment.SPLITS:
        unnamed = _unnamed(believed, named, answer.actions_since.get(symbol), today)
        about = replace(about, splits=applied, unnamed=unnamed)
    return about


def _of_later_shares(about: Known, basis: Basis, today: date) -> Known:
    """The known values divided by the splits that came after each was recorded."""
    stored = {at: basis.shares_since(basis.recorded.get(at), today) for at in about.stored}
    return replace(
        about,
        stored={at: value / stored[at] for at, value in about.stored.items()},
        anchors=tuple(
            Point(
                point.at,
                point.value / basis.shares_since(basis.recorded_at(point, about.newest_at), today),
            )
            for point in about.anchors
        ),
        restated=frozenset(at for at, then in basis.recorded.items() if basis.shares_since(then, today) != 1),
    )


def _as_traded(about: Known, splits: Sequence[tuple[date, float]], rows: Collection[Observation]) -> Known:
    """The known values on the answer's basis. If a value differs by rounding alone, the answer's is taken."""
    closes = {row.observed_at: row.close for row in rows}

    def converted(at: datetime, value: Decimal) -> Decimal:
        value *= Decimal(prod(shares for ex_on, shares in splits if ex_on > at.date()))
        return closes[at] if at in closes and abs(closes[at] / value - 1) < ROUNDING else value

    return replace(
        about,
        adjustment=Adjustment.RAW,
        stored={at: converted(at, value) for at, value in about.stored.items()},
        anchors=tuple(Point(point.at, converted(point.at, point.value)) for point in about.anchors),
        restated=frozenset(),
    )


def _merge_splits(believed: Mapping[date, float], named: Mapping[date, float]) -> tuple[tuple[date, float], ...]:
    """Believed splits and those that the answer names; the same split counts once, on its believed day."""
    new = {
        day: shares
        for day, shares in named.items()
        if day in believed
        or not any(_are_same_split(*known, day, shares) for known in believed.items() if known[0] not in named)
    }
    return tuple(sorted({**believed, **new}.items()))


def _unnamed(
    believed: Mapping[date, float], named: Mapping[date, float], since: date | None, today: date
) -> tuple[tuple[date, float], ...]:
    """Believed splits that an answer does not name, though it names all splits after `since`."""
    if since is None:
        return ()
    return tuple(
        split
        for split in believed.items()
        if since < split[0] <= today and not any(_are_same_split(*split, *other) for other in named.items())
    )


def _are_same_split(day: date, shares: float, other_day: date, other_shares: float) -> bool:
    """Whether splits of two days may be the same: sources differ by some days about its first day."""
    return abs(other_day - day) <= SAME_ACTION and abs(other_shares / shares - 1) < 0.01
