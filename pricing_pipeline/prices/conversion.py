"""Prices in another currency, by stored exchange rates: exactly, and rounded once, half up.

A rate is a fraction of whole numbers: of a pair, in either spelling, or of two pairs that share a currency. It is never
guessed: where none of that time is stored, there is no price, and a sentence says which rate is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pricing_pipeline.db import copying
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.prices import Missing, Price, Reason
from pricing_pipeline.errors import InvalidCurrency
from pricing_pipeline.prices import digits, moved_values
from pricing_pipeline.prices.frames import BETWEEN, LEAST, MISSING, Columns, exact_amounts
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS

if TYPE_CHECKING:
    from sqlalchemy import Connection

DECIMALS, OF_SMALL = 8, 18
"""Decimals of a converted price, and of one below 0.01, which 8 decimals would leave few digits."""
NO_RATE = "no rate"
"""How the column `rate` begins where no rate is stored."""
_SMALL = 100
"""A price below 1 / 100 is small. Floats cannot say so exactly."""
_MOST = 2.0**62
"""Below this, whole numbers are computed as 64-bit integers; above it, as Python's."""
_DAY = 86_400_000_000
"""Microseconds."""
_BESIDE = " * "
"""Between the rates of two pairs."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target currency: its code as given, the main currency, and how many units of the code make one."""

    code: str
    whole: str
    units: int

    @classmethod
    def named(cls, code: str) -> Target:
        """The target of a currency code, or of a code for a minor unit such as GBX. Raises InvalidCurrency."""
        if code not in CURRENCIES and code not in PARTS:
            raise InvalidCurrency(f"{code[:12]!r} is not a known currency. Write a code like USD, or GBX for pence")
        whole, power = PARTS.get(code, (code, 0))
        return cls(code, whole, 10**-power)


class RatesOfTimes:
    """The rates into one currency between two days, as they were believed at a time (None = now).

    A day's value is converted by the rate of its day, and one of a weekend by that of Friday: the calendar FX has no
    session there. A quote is converted by the last quote before it that is not older than the trading day before.
    """

    def __init__(
        self,
        connection: Connection,
        target: Target,
        first_day: date,
        last_day: date,
        as_of: datetime | None,
        *,
        of_days: bool,
    ) -> None:
        self._connection, self._target, self._of_days = connection, target, of_days
        self._span = {
            "first_day": max(first_day, date.min + timedelta(days=4)) - timedelta(days=4),
            "last_day": last_day,
            "as_of": as_of,
        }
        self._tables: dict[tuple[str, str], _Table] = {}

    def at(self, currency: str | None, microseconds: Any) -> _Fractions:
        """The rates of a currency at times in microseconds since 1970."""
        import numpy as np

        rows, whole = len(microseconds), self._target.whole
        up, down = np.full(rows, self._target.units), np.ones(rows, dtype="int64")
        if currency == whole:
            return _Fractions(up, down, np.full(rows, fill_value=True), np.full(rows, MISSING))
        is_found = np.full(rows, fill_value=False)
        if currency is None:
            return _Fractions(up, down, is_found, np.full(rows, b"the prices name no currency"))
        times = _market_days(microseconds // _DAY) * _DAY if self._of_days else microseconds
        words, when = np.zeros(rows, "S1"), _spelled_times(times, self._of_days)
        for way in self._ways(currency):
            tables = [self._table(base, quote) for base, quote in way]
            places = [table.places(times) for table in tables]
            here = ~is_found & np.logical_and.reduce([place >= 0 for place in places])
            if not here.any():
                continue
            for table, place in zip(tables, places, strict=True):
                up = np.where(here, _product(up, table.up[place]), up)
                down = np.where(here, _product(down, table.down[place]), down)
            told = [
                table.spelled(place[here], when[here] if self._of_days else None)
                for table, place in zip(tables, places, strict=True)
            ]
            words = _replaced(words, here, told[0] if len(told) == 1 else _beside(told[0], _BESIDE.encode(), told[1]))
            is_found |= here
            if is_found.all():
                return _Fractions(up, down, is_found, words)
        lacks = _beside(f"{NO_RATE} {currency}/{whole} of ".encode(), when[~is_found])
        return _Fractions(up, down, is_found, _replaced(words, ~is_found, lacks))

    def _ways(self, currency: str) -> Iterator[Way]:
        wanted = {"currencies": [currency, self._target.whole]}
        return ways(
            currency,
            self._target.whole,
            lambda: (pair.split("/") for pair in self._connection.execute(query("rates.pairs"), wanted).scalars()),
        )

    def _table(self, base: str, quote: str) -> _Table:
        if (base, quote) not in self._tables:
            wanted = self._span | {"from_currency": base, "to_currency": quote, "of_days": self._of_days}
            moved: list[dict[str, Any]] | None = None
            now: list[dict[str, Any]] = []

            def read(values: str | None) -> list[Any]:
                parameters = wanted | {"moved": values}
                return driver_rows(self._connection, driver_query("rates.between"), parameters, is_binary=True)

            # Read again with the values that have moved to files, including any moved meanwhile.
            while now != moved:
                moved = now
                sources = moved_values.complete(self._connection, moved, read)
                now = [
                    self._span | {"data_type": data_type, "symbol": symbol, "adjust": None}
                    for data_type, symbol, has_moved, *_ in sources
                    if has_moved
                ]
            self._tables[base, quote] = _Table(sources, of_days=self._of_days)
        return self._tables[base, quote]


Way: TypeAlias = list[tuple[str, str]]
"""The pairs of currencies that lead from one to another."""


def ways(one: str, other: str, pairs: Callable[[], Iterable[Iterable[str]]]) -> Iterator[Way]:
    """The pair itself, then two of the known pairs, by way of USD, EUR and the rest."""
    yield [(one, other)]
    known = [set(pair) for pair in pairs()]
    to_one, to_other = ({end for pair in known if one in pair for end in pair} for one in (one, other))
    pivots = (to_one & to_other) - {one, other}
    for pivot in sorted(pivots, key=lambda currency: (currency != "USD", currency != "EUR", currency)):
        yield [(one, pivot), (pivot, other)]


class _Table:
    """The stored rates of one pair of currencies, by day or by time, each as a fraction and in words."""

    def __init__(self, sources: Sequence[Sequence[Any]], *, of_days: bool) -> None:
        """`sources` are the rows of the query rates.between: of one day, the last rate of the first source counts."""
        import numpy as np

        _, symbols, _, is_inverse, *columns = zip(*sources, strict=True) if sources else ((),) * 7
        times, amounts, scales = (b"".join(filter(None, column)) for column in columns)
        of = np.repeat(np.arange(len(symbols)), [len(one or b"") // 8 for one in columns[0]])
        exact = copying.read_times(times)
        at = exact - exact % _DAY if of_days else exact
        order = np.lexsort((-exact, of, at))
        chosen = order[np.unique(at[order], return_index=True)[1]]
        self._of_days, self._symbols, self._is_inverse = of_days, symbols, np.array(is_inverse, dtype=bool)
        self._times, self._of = at[chosen], of[chosen]
        self._amounts, self._scales = copying.read_bigints(amounts)[chosen], copying.read_smallints(scales)[chosen]
        one, is_turned = 10**self._scales, self._is_inverse[self._of]
        self.up, self.down = np.where(is_turned, one, self._amounts), np.where(is_turned, self._amounts, one)

    def places(self, times: Any) -> Any:
        """Which rate each time has: that of the day, or the last one before it; -1 for none, or one too old."""
        import numpy as np

        if not len(self._times):
            return np.full(len(times), -1)
        places = np.searchsorted(self._times, times, "right") - 1
        earliest = times if self._of_days else _market_days(times // _DAY - 1) * _DAY
        return np.where(self._times[places] >= earliest, places, -1)

    def spelled(self, places: Any, days: Any) -> Any:
        """These rates in words, such as EUR/USD 1.0853 2026-06-11 inverse; rates of days are of these."""
        import numpy as np

        of = self._of[places]
        return _beside(
            np.array([f"{symbol} ".encode() for symbol in self._symbols])[of],
            _texts(digits.characters(self._amounts[places], self._scales[places])),
            b" ",
            days if self._of_days else _spelled_times(self._times[places], self._of_days),
            np.where(self._is_inverse[of], b" inverse", b""),
        )


@dataclass(frozen=True, slots=True)
class _Fractions:
    """A rate for each row: up / down where one is found, and in words which one it is, or why there is none.

    Words are MISSING where no rate is needed.
    """

    up: Any
    down: Any
    is_found: Any
    words: Any


def _market_days(days: Any) -> Any:
    """Days since 1970 by the calendar FX: days of a weekend become the Friday before."""
    import numpy as np

    return days - np.maximum((days + 3) % 7 - 4, 0)  # 1970 began on a Thursday


# A column of texts is an array of bytes, all texts of one width. Zero bytes are padding, wherever they stand: so
# thousands of texts are made and joined in the time of a few hundred strings.


def _beside(*columns: Any) -> Any:
    """Columns of texts, or single texts for all rows, joined row by row."""
    import numpy as np

    rows = max(len(column) for column in columns if not isinstance(column, bytes))
    wide = [np.full(rows, column) if isinstance(column, bytes) else column for column in columns]
    return _texts(np.hstack([column.view("u1").reshape(rows, -1) for column in wide]))


def _texts(characters: Any) -> Any:
    return characters.view(f"S{characters.shape[1]}").ravel()


def _replaced(texts: Any, here: Any, others: Any) -> Any:
    """A column of texts, with others in the rows `here`."""
    if here.all():
        return others
    width = max(texts.itemsize, others.itemsize)
    texts = texts.astype(f"S{width}")
    texts[here] = others
    return texts


def _joined(texts: Any, between: bytes) -> bytes:
    """A column of texts as one, which has none of these bytes, without the zero bytes."""
    joined: bytes = _beside(texts, b"\n").tobytes()
    return joined.translate(None, b"\0")[:-1].replace(b"\n", between)


def _spelled_times(microseconds: Any, of_days: bool) -> Any:
    """Times since 1970 in ISO 8601: days, or UTC with seconds."""
    times = microseconds.view("datetime64[us]")
    if of_days:  # datetime_as_string takes four times as long
        return times.astype("datetime64[D]").astype("S10")
    return _beside(times.astype("datetime64[s]").astype("S19"), b"Z")


def converted(sent: Columns, target: Target, rates: RatesOfTimes, own_currency: Callable[[], str | None]) -> Columns:
    """Columns, converted row by row. A value without a rate becomes missing, and `rate` says why.

    `own_currency` returns the instrument's, for values that name none.
    """
    import numpy as np

    times = copying.read_times(sent.observed_at)
    spelled = sent.currency.split(BETWEEN)
    read = {one: own_currency() if one == MISSING else one.decode() for one in dict.fromkeys(spelled)}
    if len(read) == 1:
        each = rates.at(next(iter(read.values())), times)
    else:
        up, down = (np.ones(len(times), dtype=object) for _ in range(2))
        is_found, words = np.full(len(times), fill_value=False), np.full(len(times), b"")
        of = np.array(spelled, dtype=object)
        for one, its_currency in read.items():
            here = of == one
            found = rates.at(its_currency, times[here])
            up[here], down[here], is_found[here] = found.up, found.down, found.is_found
            words = _replaced(words, here, found.words)
        each = _Fractions(up, down, is_found, words)
    numbers = [exact_amounts(prices, sent.scale) for prices in (sent.open, sent.high, sent.low, sent.close)]
    amounts, scales = (np.concatenate(column) for column in zip(*numbers, strict=True))
    up, down, is_found = (np.tile(column, 4) for column in (each.up, each.down, each.is_found))
    is_there = is_found & (amounts != LEAST)
    whole, decimals, places = _divided(np.where(is_there, amounts, 0), scales, up, down)
    kind: Any = "int64" if whole.max(initial=0) < _MOST / 10**DECIMALS else object
    exact = whole.astype(kind) * 10**places + decimals.astype(kind)
    is_same = is_there & np.tile((each.up == each.down) & (each.words == MISSING), 4)  # and not by a rate of 1
    if is_same.any():
        exact, places = np.where(is_same, amounts, exact), np.where(is_same, scales, places)
    exact, is_narrow = np.where(is_there, exact, LEAST), exact.dtype != object and (places == DECIMALS).all()
    write = _packed if is_narrow else _in_many_digits if exact.dtype == object else digits.in_digits
    opens, highs, lows, closes = map(write, exact.reshape(4, -1), places.reshape(4, -1))
    return sent._replace(
        open=opens,
        high=highs,
        low=lows,
        close=closes,
        scale=np.full(len(times), DECIMALS, dtype=">i2").tobytes() if is_narrow else None,
        currency=BETWEEN.join([target.code.encode()] * len(times)),
        rate=_joined(each.words, BETWEEN),
    )


def _divided(amounts: Any, scales: Any, up: Any, down: Any) -> tuple[Any, Any, Any]:
    """Of each converted price its whole part, its decimals and their number.

    It divides twice, for half of the decimals each time, so that remainders fit 64-bit integers.
    """
    import numpy as np

    down = _product(down, 10 ** scales.astype("int64"))
    product = _product(amounts, up)
    is_small = (product != 0) & (product < -(-down // _SMALL))
    places = np.where(is_small, OF_SMALL, DECIMALS)
    half = 10 ** (places // 2)
    if 2.0 * float(half.max(initial=1)) * float(down.max(initial=1)) >= _MOST:
        down = down.astype(object)
    whole = product // down
    rest = (product - whole * down) * half
    first = rest // down
    rest = (rest - first * down) * half
    second = rest // down
    rest -= second * down
    decimals = first * half + second + (2 * rest >= down)
    is_whole = decimals == half * half
    return whole + is_whole, np.where(is_whole, 0, decimals), places


def _product(one: Any, other: Any) -> Any:
    """The products of whole numbers; Python's where they may exceed 64-bit integers."""
    if float(one.max(initial=1)) * float(other.max(initial=1)) >= _MOST:
        one = one.astype(object)
    return one * other


def _packed(amounts: Any, _: Any) -> bytes:
    packed: bytes = amounts.astype(">i8").tobytes()
    return packed


def _in_many_digits(amounts: Any, scales: Any) -> str:
    """The same as digits.in_digits, for Python's numbers."""
    pairs = zip(amounts.tolist(), scales.tolist(), strict=True)
    return " ".join("" if amount == LEAST else f"{Decimal(f'{amount}e-{scale}'):f}" for amount, scale in pairs)


# ── Latest prices ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rate:
    """The worth of one of a currency, as a fraction; the stored rates that it comes from, in words and as pairs."""

    up: int
    down: int
    words: str | None = None
    pairs: Sequence[tuple[str, str]] = ()

    def of(self, price: str) -> str:
        """A price in digits, converted; unchanged if it is in the target currency already."""
        if self.words is None and self.up == self.down:
            return price
        whole, _, fraction = price.partition(".")
        up, down = int(whole + fraction) * self.up, self.down * 10 ** len(fraction)
        places = OF_SMALL if up * _SMALL < down else DECIMALS
        ones, rest = divmod((2 * up * 10**places + down) // (2 * down), 10**places)
        return f"{ones}.{rest:0{places}d}"


class LatestRates:
    """The latest rates into one currency, each read once."""

    def __init__(self, connection: Connection, target: Target) -> None:
        self._connection, self._target = connection, target
        self._rates: dict[str | None, Rate | None] = {None: None, target.whole: Rate(target.units, 1)}

    def of(self, *currencies: str | None) -> list[Rate | None]:
        """The rate of each currency; None where there is none."""
        unknown = sorted({one for one in currencies if one is not None} - self._rates.keys())
        if unknown:
            wanted = {"currencies": [*unknown, self._target.whole]}
            found = self._connection.execute(query("rates.latest"), wanted)
            rates = {(row.base, row.quote): row for row in found}
            self._rates |= {one: self._newest(rates, one) for one in unknown}
        return [self._rates[one] for one in currencies]

    def _newest(self, rates: Mapping[tuple[str, str], Any], currency: str) -> Rate | None:
        """The pair itself, unless two others are of a newer day."""
        each = [
            [rates[pair] for pair in way]
            for way in ways(currency, self._target.whole, lambda: rates)
            if rates.keys() >= set(way)
        ]
        if not each:
            return None
        legs = max(each, key=lambda legs: min(leg.observed_at.astimezone(UTC) for leg in legs).date())
        up, down = self._target.units, 1
        for leg in legs:
            one = 10**leg.scale
            up, down = (up * one, down * leg.amount) if leg.is_inverse else (up * leg.amount, down * one)
        words = [
            f"{leg.symbol} {to_decimal(leg.amount, leg.scale):f} {leg.observed_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
            f"{' inverse' if leg.is_inverse else ''}"
            for leg in legs
        ]
        return Rate(up, down, _BESIDE.join(words), [(leg.data_type, leg.symbol) for leg in legs])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of the rates that were read."""
        return [pair for rate in self._rates.values() if rate is not None for pair in rate.pairs]

    @property
    def lacking(self) -> set[str]:
        """The currencies that were asked for and have no rate."""
        return {currency for currency, rate in self._rates.items() if currency is not None and rate is None}

    @property
    def missing(self) -> list[tuple[str, str]]:
        """The pairs to watch for the rates that are missing."""
        if not self.lacking or self._type is None:
            return []
        return [(self._type, f"{currency}/{self._target.whole}") for currency in sorted(self.lacking)]

    @cached_property
    def _type(self) -> str | None:
        data_type: str | None = self._connection.execute(query("rates.type_of_rates")).scalar_one()
        return data_type

    def converted(self, price: Price) -> Price | Missing:
        """A price in this currency, or why there is none."""
        currency = price.currency or own_currency(self._connection, asdict(price))
        (rate,) = self.of(currency)
        if rate is None:
            return Missing(price.symbol, price.data_type, Reason("no_rate", self.lack(currency)))
        exact = Decimal(rate.of(f"{price.price:f}"))
        return replace(price, price=exact, currency=self._target.code, rate=rate.words)

    def in_place(self, prices: Iterable[Price]) -> list[Price]:
        """Prices in this currency, for tables: a price without a rate becomes None, and `rate` says why."""
        found = [(price, self.converted(price)) for price in prices]
        return [
            replace(price, price=cast(Decimal, None), currency=self._target.code, rate=told.why.sentence)
            if isinstance(told, Missing)
            else told
            for price, told in found
        ]

    def lack(self, currency: str | None) -> str:
        """Why a currency has no rate, and what to do."""
        if currency is None:
            return "The price names no currency, so it cannot be converted."
        pair = f"{currency}/{self._target.whole}"
        way = "" if self._type is None else f" Watch {pair} of {self._type}, and it is fetched."
        return f"No rate {pair} is stored, nor two pairs that lead there.{way}"


def convert_answer(connection: Connection, answer: dict[str, Any], target: Target) -> LatestRates:
    """Convert an answer of prices (JSON) in place by the latest stored rates, and return these.

    Each price gets the field `rate`. A price without a rate moves to `missing`, with the reason.
    """
    rates = LatestRates(connection, target)
    prices = [price | {"currency": price["currency"] or own_currency(connection, price)} for price in answer["prices"]]
    answer["prices"] = []
    for price, rate in zip(prices, rates.of(*(price["currency"] for price in prices)), strict=True):
        if rate is not None:
            converted = {"price": rate.of(price["price"]), "currency": target.code, "rate": rate.words}
            answer["prices"].append(price | converted)
            continue
        why = {"state": "no_rate", "sentence": rates.lack(price["currency"]), "since": None, "next_at": None}
        answer["missing"].append({"symbol": price["symbol"], "data_type": price["data_type"], "why": why})
    return rates


def pairs_of_rates(
    connection: Connection, target: Target, pairs: Iterable[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """The pairs of the exchange rates that convert the prices of some pairs; for a missing rate, the pair to watch."""
    rates = LatestRates(connection, target)
    ordered = list(pairs)
    named = {"data_types": [pair[0] for pair in ordered], "symbols": [pair[1] for pair in ordered]}
    rates.of(*connection.execute(query("rates.currencies"), named).scalars())
    return frozenset([*rates.pairs, *rates.missing])


def named_rates(words: str | None) -> list[str]:
    """The symbols of the rates that `rate` of a price names."""
    return [] if words is None else [rate.split(" ", 1)[0] for rate in words.split(_BESIDE)]


def own_currency(connection: Connection, of: Mapping[str, Any]) -> str | None:
    """The currency of an instrument whose prices name none."""
    currency: str | None = connection.execute(query("rates.currency_of"), of).scalar_one_or_none()
    return currency
