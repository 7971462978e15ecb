"""Years of daily values by columns: bars as an answer brings them, and values as they are stored.

To make an object of each of five thousand bars takes longer than all else that is done with them. What is here looks
like the objects to whoever asks for them (then they are made), and has the columns for who can do without. What the
columns are judged by is in plausibility.py, what they are read from in providers/values.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import overload

from pricing_pipeline.domain import Adjustment, Observation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_A_DAY = 86_400_000_000


class Bars(Sequence[Observation]):
    """Bars of one symbol, one a day, the oldest first: Observations that are made when they are asked for.

    Whoever makes it has checked that each could be one: `days` are ISO dates in order, `spelled` are the amounts of
    open, high, low and close between commas, in units of 10^-`scale` and above zero, with low and high around the
    others; volumes are whole numbers, and `texts` spell the closes as the source does.
    """

    __slots__ = (
        *("symbol", "currency", "adjustment", "days", "ordinals", "scale"),
        *("spelled", "opens", "highs", "lows", "closes", "volumes", "texts", "_rows"),
    )

    def __init__(
        self,
        symbol: str,
        currency: str | None,
        adjustment: Adjustment,
        days: Sequence[str],
        ordinals: Sequence[int],
        scale: int,
        spelled: Sequence[str],
        volumes: Sequence[str],
        texts: Sequence[str],
    ) -> None:
        self.symbol = symbol
        self.currency = currency
        self.adjustment = adjustment
        self.days = days
        self.ordinals = ordinals
        self.scale = scale
        self.spelled = tuple(spelled)
        self.opens, self.highs, self.lows, self.closes = (list(map(int, said.split(","))) for said in spelled)
        self.volumes = volumes
        self.texts = texts
        self._rows: tuple[Observation, ...] | None = None

    def __len__(self) -> int:
        return len(self.days)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Observation]: ...
    def __getitem__(self, index: int | slice) -> Observation | Sequence[Observation]:
        if self._rows is not None:
            return self._rows[index]
        numbers = range(len(self))
        if isinstance(index, int):
            return self._made(numbers[index])
        return [self._made(number) for number in numbers[index]]

    def __eq__(self, other: object) -> bool:
        return self.rows == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def rows(self) -> tuple[Observation, ...]:
        """All of them as objects."""
        if self._rows is None:
            self._rows = tuple(map(self._made, range(len(self))))
        return self._rows

    @property
    def microseconds(self) -> list[int]:
        """Their times, since 1970 UTC."""
        return [(ordinal - _EPOCH_DAY) * MICROSECONDS_A_DAY for ordinal in self.ordinals]

    def place_of(self, at: datetime) -> int:
        """How many of them are before `at`."""
        at = at.astimezone(UTC)
        is_midnight = at == datetime.combine(at.date(), datetime.min.time(), UTC)
        return (bisect_left if is_midnight else bisect_right)(self.ordinals, at.toordinal())

    def _made(self, number: int) -> Observation:
        def price(amounts: Sequence[int]) -> Decimal:
            return Decimal(amounts[number]).scaleb(-self.scale)

        return Observation(
            symbol=self.symbol,
            observed_at=_EPOCH + timedelta(days=self.ordinals[number] - _EPOCH_DAY),
            close=price(self.closes),
            text=self.texts[number],
            currency=self.currency,
            open=price(self.opens),
            high=price(self.highs),
            low=price(self.lows),
            volume=Decimal(self.volumes[number]),
            adjustment=self.adjustment,
        )


class StoredValues(Mapping[datetime, Decimal]):
    """Stored values by their times (UTC): `microseconds` since 1970, and amounts with a scale each."""

    __slots__ = ("_found", "amounts", "microseconds", "scales")

    def __init__(
        self, microseconds: Sequence[int] = (), amounts: Sequence[int] = (), scales: Sequence[int] = ()
    ) -> None:
        self.microseconds, self.amounts, self.scales = microseconds, amounts, scales
        self._found: dict[datetime, Decimal] | None = None

    def __len__(self) -> int:
        return len(self.microseconds)

    def __iter__(self) -> Iterator[datetime]:
        return iter(self._values)

    def __getitem__(self, at: datetime) -> Decimal:
        return self._values[at]

    @property
    def _values(self) -> dict[datetime, Decimal]:
        if self._found is None:
            self._found = {
                _EPOCH + at * _MICROSECOND: Decimal(amount).scaleb(-scale)
                for at, amount, scale in zip(self.microseconds, self.amounts, self.scales, strict=True)
            }
        return self._found

    def are_in(self, bars: Bars) -> bool:
        """Whether every stored value of a day of the bars is the close that they bring."""
        finest = max(self.scales, default=0)
        unit = 10 ** max(finest - bars.scale, 0)
        closes = bars.closes if unit == 1 else [close * unit for close in bars.closes]
        units = {scale: 10 ** (max(finest, bars.scale) - scale) for scale in set(self.scales)}
        stored = [amount * units[scale] for amount, scale in zip(self.amounts, self.scales, strict=True)]
        times = bars.microseconds
        if times == self.microseconds:
            return closes == stored
        brought = dict(zip(times, closes, strict=True))
        return all(
            brought.get(at, amount) == amount for at, amount in zip(self.microseconds, stored, strict=True)
        )


def spans(observations: Iterable[Observation]) -> dict[str, tuple[datetime, datetime]]:
    """The first and the last time of each symbol's values."""
    if isinstance(observations, Bars):
        return {observations.symbol: (observations[0].observed_at, observations[-1].observed_at)}
    found: dict[str, tuple[datetime, datetime]] = {}
    for row in observations:
        at = row.observed_at
        first, last = found.get(row.symbol, (at, at))
        found[row.symbol] = (at if at < first else first, at if at > last else last)
    return found


def symbols_of(observations: Iterable[Observation]) -> set[str]:
    """Of which symbols there are values."""
    return {observations.symbol} if isinstance(observations, Bars) else {row.symbol for row in observations}


def of_symbols(observations: Sequence[Observation], symbols: Container[str]) -> Sequence[Observation]:
    """Those values that are of one of the symbols."""
    if isinstance(observations, Bars):
        return observations if observations.symbol in symbols else ()
    return [row for row in observations if row.symbol in symbols]


def together(parts: Sequence[Sequence[Observation]]) -> Sequence[Observation]:
    """The values of several symbols as one sequence."""
    return parts[0] if len(parts) == 1 else [row for part in parts for row in part]


def months_of(observations: Iterable[Observation]) -> Counter[date]:
    """How many values lie in each UTC month, by its first day."""
    counted: Counter[date] = Counter()
    if isinstance(observations, Bars):
        days, start = observations.days, 0
        while start < len(days):
            month = days[start][:7]
            end = bisect_left(days, f"{month}-99", start)
            counted[date.fromisoformat(f"{month}-01")] = end - start
            start = end
        return counted
    for day, rows in Counter(row.observed_at.date() for row in observations).items():
        counted[day.replace(day=1)] += rows
    return counted


def after(observations: Sequence[Observation], at: datetime) -> Sequence[Observation]:
    """Those values whose time is after `at`."""
    if isinstance(observations, Bars):
        return observations[bisect_right(observations.ordinals, at.astimezone(UTC).toordinal()) :]
    return [row for row in observations if row.observed_at > at]
