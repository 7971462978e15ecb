"""What is known of a symbol before an answer is judged, and what a judgement says of it: nouns only.

The rules are plausibility.py's. What is loaded into them is known_values.py's and actions.py's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from pricing_pipeline.domain.answers import Adjustment, Observation
from pricing_pipeline.validation.restatement import Restatement


class Doubt(StrEnum):
    """Why a value is held instead of stored."""

    REFUSED = "refused"
    """Its answer's reader refused it (no price, a broken bar, a wrong day, another symbol), or a person did."""
    CURRENCY = "currency"
    BOUNDS = "bounds"
    UNIT = "unit"
    """Some powers of ten away, as pence are from pounds; nothing but a person makes it believed."""
    JUMP = "jump"
    SPIKE = "spike"
    SPLIT = "split"
    DIVIDEND = "dividend"
    """Its source has adjusted its past by one ratio that is no split's."""
    DISAGREEMENT = "disagreement"
    """Another provider says otherwise of the same time."""


DEFAULT_SCALE = 2
ROUNDING = Decimal("0.002")
"""By how much a value may differ from the stored one divided by a split: sources round what they divide."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value of the past with its source's time (UTC)."""

    at: datetime
    value: Decimal


@dataclass(frozen=True, slots=True)
class Traded:
    """How many shares were traded on a day that is stored, and at what close."""

    at: datetime
    close: Decimal
    volume: Decimal


@dataclass(frozen=True, slots=True)
class Rival:
    """What another provider says of the same instrument and time (UTC), on the same basis."""

    at: datetime
    value: Decimal
    provider: str


@dataclass(frozen=True, slots=True)
class Peer:
    """What is believed of the same instrument and UTC day: of quotes the daily bar, of daily bars the quote.

    `low` and `high` are those of a bar. `splits` are the ratios of splits of that day and its neighbours.
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
    """What is known of one symbol of one data type before an answer is judged.

    `stored` has what is believed of days that the answer brings again. `anchors` are values that are believed: around
    the answer's span, and the newest. `witnesses` were held lately: enough of them on one level show that the source
    means it. `newest_at` is the newest believed stamp.

    `splits` are first days and ratios of new to old shares: prices as traded are compared as if they were of today's
    shares. `are_splits_told`: the answer names all of its days. `provisional` are times of stored bars that were not
    final. `restated` are those whose stored value is of other shares than the answer's, and given here in the answer's.
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
    """That of the days before the answer's, the oldest first: looked up only where something is doubted."""
    splits: tuple[tuple[date, float], ...] = ()
    are_splits_told: bool = False
    has_splits: bool = True
    """False of what is never split, such as a currency: a step of any size is no split that was forgotten."""
    unnamed: tuple[tuple[date, float], ...] = ()
    provisional: frozenset[datetime] = frozenset()
    restated: frozenset[datetime] = frozenset()
    others: Mapping[datetime, Rival] = field(default_factory=dict)
    """What other providers say, by its times: those of the answer, for quotes a quarter of an hour around them."""
    peer: Peer | None = None
    unsettled: Mapping[datetime, Rival] = field(default_factory=dict)
    """What other providers said lately of these times, and was held: the newest word of each."""
    rejected: frozenset[tuple[datetime, Decimal]] = frozenset()
    """Times and values of this provider that a person has rejected."""

    def of_todays_shares(self, value: Decimal, at: datetime) -> float:
        """A price as traded, divided by the known splits since; a double is exact enough to compare."""
        ratio = 1.0
        for ex_on, shares in self.splits:
            if ex_on > at.date():
                ratio *= shares
        return float(value) / ratio


@dataclass(frozen=True, slots=True)
class Doubted:
    """A value that is not believed, and why, in words for a person."""

    observation: Observation
    kind: Doubt
    reason: str


@dataclass(slots=True)
class Verdict:
    """Which values of one symbol are believed; `other_basis` counts those that its history cannot take.

    `confirmed` are values that are what is stored, only of later shares, and need not be stored. Of a `restatement`
    by one ratio only the newest values are among those that are `held`.
    """

    good: Sequence[Observation] = ()
    doubted: list[Doubted] = field(default_factory=list)
    other_basis: int = 0
    confirmed: list[Observation] = field(default_factory=list)
    restatement: Restatement | None = None
