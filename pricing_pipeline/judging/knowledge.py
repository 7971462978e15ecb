"""The input and output of judging a symbol's values: known values, doubts, verdicts.

plausibility.py has the rules. prices/context.py loads the known values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from pricing_pipeline.domain.observations import Adjustment, Observation, Observations, Rows
from pricing_pipeline.judging.restatement import Restatement


class Doubt(StrEnum):
    """Why a value is quarantined instead of stored."""

    REFUSED = "refused"
    """Its answer's reader refused it (no price, a broken bar, a wrong day, another symbol), or a person did."""
    CLOSED_DAY = "closed_day"
    """Its exchange has no session on that day, as far as is known. A second witness makes the day a session."""
    CURRENCY = "currency"
    BOUNDS = "bounds"
    UNIT = "unit"
    """Some powers of ten away, like pence from pounds, or a rate the other way round; only a person can release it."""
    JUMP = "jump"
    SPIKE = "spike"
    SPLIT = "split"
    DIVIDEND = "dividend"
    """The source has adjusted its history by one ratio that is not a split's."""
    DISAGREEMENT = "disagreement"
    """Another provider has a different value for the same time."""


DEFAULT_SCALE = 2
ROUNDING = Decimal("0.002")
"""The largest difference, as a share, between a value and the stored one divided by a split: sources round."""


@dataclass(frozen=True, slots=True)
class Point:
    """A past value with its source's time (UTC)."""

    at: datetime
    value: Decimal


@dataclass(frozen=True, slots=True)
class Traded:
    """Close and traded shares of a stored day."""

    at: datetime
    close: Decimal
    volume: Decimal


@dataclass(frozen=True, slots=True)
class Rival:
    """Another provider's value for the same instrument and time (UTC), on the same basis."""

    at: datetime
    value: Decimal
    provider: str


@dataclass(frozen=True, slots=True)
class Peer:
    """The believed value of the instrument on a UTC day, of the other kind: the daily bar for quotes, or the quote.

    `low` and `high` are those of a bar. `splits` are the ratios of splits on that day and the days next to it.
    """

    at: datetime
    value: Decimal
    low: Decimal | None
    high: Decimal | None
    currency: str | None
    data_type: str
    is_bar: bool
    splits: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The known values of one symbol of one data type, by which an answer is judged.

    `stored` has the believed values of days that the answer brings again. `anchors` are believed values around the
    answer's span, and the newest one. `witnesses` were quarantined lately: enough of them on one level confirm that
    level. `newest_at` is the time of the newest believed value.

    `splits` are first days and ratios of new to old shares: prices as traded are compared as if they were of today's
    shares. `are_splits_reported`: the answer names all splits of its days. `provisional` are times of stored bars
    that were not final. `restated` are times whose stored value is in other shares than the answer; here it is
    converted.
    """

    scale: int = DEFAULT_SCALE
    currency: str | None = None
    adjustment: Adjustment | None = None
    lowest: Decimal | None = None
    highest: Decimal | None = None
    newest_at: datetime | None = None
    are_jumps_trusted: bool = False
    stored: Mapping[datetime, Decimal] = field(default_factory=dict)
    anchors: tuple[Point, ...] = ()
    witnesses: tuple[Point, ...] = ()
    trading: tuple[Traded, ...] = ()
    """The trading on the days before the answer, oldest first: looked up only if a value is doubted."""
    splits: tuple[tuple[date, float], ...] = ()
    are_splits_reported: bool = False
    has_splits: bool = True
    """False for instruments that are never split, such as a currency: no step is a forgotten split."""
    is_rate: bool = False
    """True for a pair of currencies, whose rate a source may give the other way round."""
    unnamed: tuple[tuple[date, float], ...] = ()
    provisional: frozenset[datetime] = frozenset()
    restated: frozenset[datetime] = frozenset()
    others: Mapping[datetime, Rival] = field(default_factory=dict)
    """Other providers' values, by time: at the times of the answer, or for quotes within 15 minutes of them."""
    peer: Peer | None = None
    unsettled: Mapping[datetime, Rival] = field(default_factory=dict)
    """Other providers' values for these times that were quarantined lately: the newest of each provider."""
    rejected: frozenset[tuple[datetime, Decimal]] = frozenset()
    """Times and values of this provider that a person has rejected."""
    released: frozenset[tuple[datetime, Decimal]] = frozenset()
    """Those that a person has released: they are believed for good. Looked up only if a value is doubted."""
    closed: Mapping[date, str] = field(default_factory=dict)
    """Days of the answer on which the exchange of the instrument has no session, with its calendar."""

    def of_todays_shares(self, value: Decimal, at: datetime) -> float:
        """A price as traded, divided by the known splits since then; a double is exact enough to compare."""
        ratio = 1.0
        for ex_on, shares in self.splits:
            if ex_on > at.date():
                ratio *= shares
        return float(value) / ratio


@dataclass(frozen=True, slots=True)
class Doubted:
    """A value that is not believed, and the reason, in words for a person."""

    observation: Observation
    kind: Doubt
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The believed and the doubted values of one symbol; `other_basis` counts values on another basis than its history.

    `confirmed` values repeat stored ones in later shares, and need not be stored. Of a `restatement` by one ratio, only
    the newest values are among the `doubted`.
    """

    good: Observations = field(default_factory=Rows)
    doubted: tuple[Doubted, ...] = ()
    other_basis: int = 0
    confirmed: tuple[Observation, ...] = ()
    restatement: Restatement | None = None

    def then(self, rest: Verdict) -> Verdict:
        """This verdict with that of a further rule on its good values."""
        return Verdict(
            rest.good,
            self.doubted + rest.doubted,
            self.other_basis + rest.other_basis,
            self.confirmed + rest.confirmed,
            rest.restatement or self.restatement,
        )
