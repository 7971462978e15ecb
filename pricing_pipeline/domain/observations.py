"""A value as a provider gave it, and sequences of values: rows here, years of daily bars in columns in bars.py."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum


class Adjustment(StrEnum):
    """The basis of stored prices: by which splits they were divided later. Dividends never count here."""

    RAW = "raw"
    """As traded on their day."""
    SPLITS = "splits"
    """Divided by every split from their day until the day of the answer."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of one symbol as a provider gave it, checked but not yet stored.

    `close` is the price, the close of the bar, or the NAV. `observed_at` is the source's time in
    UTC; for daily values it is midnight UTC of the trading day. `text` keeps the source's own
    spelling of the price. `currency` is ISO 4217 or a coin, or None if the source does not name it.
    `adjustment` applies to the four prices and, inversely, to the volume. `quality` says which values beside the close
    were dropped, and why; None if none was.
    """

    symbol: str
    observed_at: datetime
    close: Decimal
    text: str
    currency: str | None = None
    open: Decimal | None = None
    high: Decimal | None = None
    low: Decimal | None = None
    volume: Decimal | None = None
    adjustment: Adjustment = Adjustment.RAW
    quality: str | None = None


class Observations(Sequence[Observation]):
    """Values of one answer, of any symbols."""

    __slots__ = ()

    @abstractmethod
    def symbols(self) -> set[str]:
        """The symbols with values."""

    @abstractmethod
    def spans(self) -> dict[str, tuple[datetime, datetime]]:
        """The first and the last time of each symbol's values."""

    @abstractmethod
    def by_symbol(self) -> Mapping[str, Observations]:
        """The values of each symbol."""

    @abstractmethod
    def of(self, symbols: Container[str]) -> Observations:
        """The values of these symbols."""

    @abstractmethod
    def called(self, symbol: str) -> Observations:
        """The values, which are of one symbol, under another name."""

    @abstractmethod
    def after(self, at: datetime) -> Sequence[Observation]:
        """The values after the time `at`."""

    @abstractmethod
    def months(self) -> Counter[date]:
        """The number of values in each UTC month, by its first day."""

    @abstractmethod
    def dates(self) -> list[date]:
        """The days of the values, in UTC."""

    @abstractmethod
    def adjustments(self) -> set[Adjustment]:
        """The bases of the values."""

    @abstractmethod
    def trimmed(self) -> int:
        """How many values lack parts that were dropped."""


class Rows(tuple[Observation, ...], Observations):
    """Values as objects."""

    __slots__ = ()

    def symbols(self) -> set[str]:
        return {row.symbol for row in self}

    def spans(self) -> dict[str, tuple[datetime, datetime]]:
        spans: dict[str, tuple[datetime, datetime]] = {}
        for row in self:
            at = row.observed_at
            first, last = spans.get(row.symbol, (at, at))
            spans[row.symbol] = (at if at < first else first, at if at > last else last)
        return spans

    def by_symbol(self) -> Mapping[str, Rows]:
        rows: defaultdict[str, list[Observation]] = defaultdict(list)
        for row in self:
            rows[row.symbol].append(row)
        return {symbol: Rows(own) for symbol, own in rows.items()}

    def of(self, symbols: Container[str]) -> Rows:
        return Rows(row for row in self if row.symbol in symbols)

    def called(self, symbol: str) -> Rows:
        return Rows(replace(row, symbol=symbol) for row in self)

    def after(self, at: datetime) -> Sequence[Observation]:
        return [row for row in self if row.observed_at > at]

    def months(self) -> Counter[date]:
        months: Counter[date] = Counter()
        for day, rows in Counter(row.observed_at.date() for row in self).items():
            months[day.replace(day=1)] += rows
        return months

    def dates(self) -> list[date]:
        return [row.observed_at.astimezone(UTC).date() for row in self]

    def adjustments(self) -> set[Adjustment]:
        return {row.adjustment for row in self}

    def trimmed(self) -> int:
        return sum(row.quality is not None for row in self)


def joined(parts: Iterable[Observations]) -> Observations:
    """The values of several symbols as one sequence."""
    match list(parts):
        case [only]:
            return only
        case several:
            return Rows(row for part in several for row in part)
