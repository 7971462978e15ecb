"""Years of daily values in columns: bars of an answer, and stored values.

Making an object for each of five thousand bars takes longer than all other work on them. These classes look like
sequences of objects, which are made when they are read, and give the columns to callers that can use them.
plausibility.py judges the columns, providers/values.py reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias, overload

from pricing_pipeline.domain.observations import Adjustment, Observation, Observations, Rows

if TYPE_CHECKING:
    from numpy import datetime64, int64
    from numpy.typing import NDArray

    Column: TypeAlias = NDArray[int64]
    """Whole numbers of numpy. Only functions that make columns import it, because that takes a tenth of a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
MICROSECONDS_A_DAY = 86_400_000_000


class Bars(Observations):
    """Bars of one symbol, one for each day, oldest first. It makes its Observations when they are read.

    The caller has checked each bar: `ordinals` are days in order; the prices are amounts in units of 10^-`scale`, above
    zero, with nine digits at most before the point; volumes are whole numbers; `texts` are the closes in the source's
    spelling. fields.py judges the prices of a bar by each other.
    """

    __slots__ = (
        *("symbol", "currency", "adjustment", "ordinals", "scale"),
        *("opens", "highs", "lows", "closes", "volumes", "texts", "_rows"),
    )

    def __init__(
        self,
        symbol: str,
        currency: str | None,
        adjustment: Adjustment,
        ordinals: Column,
        scale: int,
        prices: Iterable[Column],
        volumes: Column,
        texts: Sequence[str],
    ) -> None:
        self.symbol = symbol
        self.currency = currency
        self.adjustment = adjustment
        self.ordinals = ordinals
        self.scale = scale
        self.opens, self.highs, self.lows, self.closes = prices
        self.volumes = volumes
        self.texts = texts
        self._rows: tuple[Observation, ...] | None = None

    def __len__(self) -> int:
        return len(self.ordinals)

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
        """All bars as objects."""
        if self._rows is None:
            self._rows = tuple(map(self._made, range(len(self))))
        return self._rows

    @property
    def days(self) -> NDArray[datetime64]:
        """The days of the bars."""
        return (self.ordinals - _EPOCH_DAY).astype("datetime64[D]")

    @property
    def microseconds(self) -> Column:
        """The times of the bars, since 1970 UTC."""
        return (self.ordinals - _EPOCH_DAY) * MICROSECONDS_A_DAY

    def symbols(self) -> set[str]:
        return {self.symbol}

    def spans(self) -> dict[str, tuple[datetime, datetime]]:
        return {self.symbol: (self[0].observed_at, self[-1].observed_at)}

    def by_symbol(self) -> Mapping[str, Bars]:
        return {self.symbol: self}

    def of(self, symbols: Container[str]) -> Observations:
        return self if self.symbol in symbols else Rows()

    def called(self, symbol: str) -> Bars:
        prices = (self.opens, self.highs, self.lows, self.closes)
        return Bars(
            *(symbol, self.currency, self.adjustment, self.ordinals, self.scale),
            *(prices, self.volumes, self.texts),
        )

    def after(self, at: datetime) -> Sequence[Observation]:
        return self[int(self.ordinals.searchsorted(at.astimezone(UTC).toordinal(), "right")) :]

    def months(self) -> Counter[date]:
        import numpy as np

        months = self.days.astype("datetime64[M]")
        firsts, counts = np.unique(months.astype("datetime64[D]"), return_counts=True)
        return Counter(dict(zip(firsts.tolist(), counts.tolist(), strict=True)))

    def dates(self) -> list[date]:
        return [date.fromordinal(ordinal) for ordinal in self.ordinals.tolist()]

    def adjustments(self) -> set[Adjustment]:
        return {self.adjustment}

    def trimmed(self) -> int:
        return 0  # a bar that lacks a part is not kept in columns

    def place_of(self, at: datetime) -> int:
        """How many bars are before `at`."""
        at = at.astimezone(UTC)
        is_midnight = at == datetime.combine(at.date(), datetime.min.time(), UTC)
        return int(self.ordinals.searchsorted(at.toordinal(), "left" if is_midnight else "right"))

    def _made(self, number: int) -> Observation:
        def price(amounts: Column) -> Decimal:
            return Decimal(int(amounts[number])).scaleb(-self.scale)

        return Observation(
            symbol=self.symbol,
            observed_at=_EPOCH + timedelta(days=int(self.ordinals[number]) - _EPOCH_DAY),
            close=price(self.closes),
            text=self.texts[number],
            currency=self.currency,
            open=price(self.opens),
            high=price(self.highs),
            low=price(self.lows),
            volume=Decimal(int(self.volumes[number])),
            adjustment=self.adjustment,
        )


class StoredValues(Mapping[datetime, Decimal]):
    """Stored values by time (UTC): `microseconds` since 1970, and amounts with a scale for each."""

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
        """Whether every stored value on a day of the bars equals the close of that day."""
        finest = max(self.scales, default=0)
        unit = 10 ** max(finest - bars.scale, 0)
        # As Python's numbers: converted to the other scale, an amount may have more digits than a column can hold.
        closes = [close * unit for close in bars.closes.tolist()]
        units = {scale: 10 ** (max(finest, bars.scale) - scale) for scale in set(self.scales)}
        stored = [amount * units[scale] for amount, scale in zip(self.amounts, self.scales, strict=True)]
        times = bars.microseconds.tolist()
        if times == self.microseconds:
            return closes == stored
        brought = dict(zip(times, closes, strict=True))
        return all(brought.get(at, amount) == amount for at, amount in zip(self.microseconds, stored, strict=True))
