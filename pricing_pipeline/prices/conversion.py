"""Prices in another currency, by stored exchange rates: exactly, and rounded once, half up.

A rate is a fraction of whole numbers: of the pair itself, of the pair the other way round, or of two pairs that share a
currency. It is never guessed: where none of that time is stored, there is no price, and a sentence says which rate is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db import copying
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.errors import InvalidCurrency
from pricing_pipeline.prices.frames import BETWEEN, LEAST, MISSING, Columns
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS

if TYPE_CHECKING:
    from sqlalchemy import Connection

DECIMALS, OF_SMALL = 8, 18
"""Decimals of a converted price, and of one below 0.01, where 8 decimals would leave few digits."""
_SMALL = Fraction(1, 100)
_MOST = 2.0**62
"""Below this whole numbers are computed by the machine, above it by Python."""
_FIRST_PIVOTS = ("USD", "EUR")
_DAY = 86_400_000_000
"""Microseconds."""
_DAY_OF_WHEN = len("2026-11-30")
_BESIDE = " * "
"""Between the rates of two pairs."""


@dataclass(frozen=True, slots=True)
class Target:
    """The currency that prices are wanted in: its code as given, and its size in a whole currency."""

    code: str
    whole: str
    units: int

    @classmethod
    def named(cls, code: str) -> Target:
        """That of a code, also of one for a part, such as GBX. Raises InvalidCurrency."""
        if code not in CURRENCIES and code not in PARTS:
            raise InvalidCurrency(
                f"{code[:12]!r} is not a known currency. Write a code like USD, or GBX for pence"
            )
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
            "of_days": of_days,
        }
        self._tables: dict[tuple[str, str], _Table] = {}

    def at(self, currency: str | None, microseconds: Any) -> _Fractions:
        """The rates of a currency at times in microseconds since 1970."""
        import numpy as np

        rows, whole = len(microseconds), self._target.whole
        up, down = np.full(rows, self._target.units), np.ones(rows, dtype="int64")
        if currency == whole:
            return _Fractions(up, down, np.full(rows, fill_value=True), [None] * rows)
        is_found, words = np.full(rows, fill_value=False), np.full(rows, None, dtype=object)
        if currency is None:
            return _Fractions(up, down, is_found, ["the prices name no currency"] * rows)
        times = _market_days(microseconds // _DAY) if self._of_days else microseconds
        for way in self._ways(currency):
            tables = [self._table(base, quote) for base, quote in way]
            places = [table.places(times) for table in tables]
            here = ~is_found & np.logical_and.reduce([place >= 0 for place in places])
            if not here.any():
                continue
            for table, place in zip(tables, places, strict=True):
                up = np.where(here, _product(up, table.up[place]), up)
                down = np.where(here, _product(down, table.down[place]), down)
            told = [table.words(place[here]) for table, place in zip(tables, places, strict=True)]
            joined = told[0] if len(told) == 1 else list(map(_BESIDE.join, zip(*told, strict=True)))
            if here.all():
                return _Fractions(up, down, here, joined)
            words[here] = joined
            is_found |= here
            if is_found.all():
                break
        lacks = ~is_found
        words[lacks] = [
            f"no rate {currency}/{whole} of {when}" for when in _spelled(times[lacks], self._of_days)
        ]
        return _Fractions(up, down, is_found, words.tolist())

    def _ways(self, currency: str) -> Iterable[list[tuple[str, str]]]:
        whole = self._target.whole
        yield [(currency, whole)]
        symbols = self._connection.execute(query("rates.pairs"), {"currencies": [currency, whole]}).scalars()
        for pivot in pivots(symbols, currency, whole):
            yield [(currency, pivot), (pivot, whole)]

    def _table(self, base: str, quote: str) -> _Table:
        if (base, quote) not in self._tables:
            parameters = self._span | {"from_currency": base, "to_currency": quote}
            (row,) = driver_rows(self._connection, driver_query("rates.between"), parameters, is_binary=True)
            self._tables[base, quote] = _Table(base, quote, row, of_days=self._of_days)
        return self._tables[base, quote]


class _Table:
    """The stored rates of one pair of currencies, by day or by time, each as a fraction."""

    def __init__(self, base: str, quote: str, row: Sequence[bytes | None], *, of_days: bool) -> None:
        import numpy as np

        self._base, self._quote, self._of_days = base, quote, of_days
        times, amounts, scales, inverse = (column or b"" for column in row)
        at = copying.read_times(times).view("datetime64[us]").astype("int64")
        self._times = at // _DAY if of_days else at
        self._amounts, self._scales = copying.read_bigints(amounts), copying.read_smallints(scales)
        self._is_inverse = copying.read_smallints(inverse) == 1
        one = 10 ** self._scales.astype("int64")
        self.up = np.where(self._is_inverse, one, self._amounts)
        self.down = np.where(self._is_inverse, self._amounts, one)

    def places(self, times: Any) -> Any:
        """Which rate each time has: that of the day, or the last one before it; -1 for none, or one too old."""
        import numpy as np

        if not len(self._times):
            return np.full(len(times), -1)
        places = np.searchsorted(self._times, times, "right") - 1
        earliest = times if self._of_days else _market_days(times // _DAY - 1) * _DAY
        return np.where(self._times[places] >= earliest, places, -1)

    def words(self, places: Any) -> list[str]:
        """Each rate for people and programs: the pair, the rate, its time, and whether it is turned round."""
        import numpy as np

        told = np.empty(len(places), dtype=object)
        kinds = self._scales[places].astype("int64") * 2 + self._is_inverse[places]
        for kind in np.unique(kinds).tolist():
            (here,) = np.nonzero(kinds == kind)
            of, scale, is_inverse = places[here], kind // 2, kind % 2
            pair = f"{self._quote}/{self._base}" if is_inverse else f"{self._base}/{self._quote}"
            # Without decimals nothing stands for the second number, which is 0.
            form = f"{pair} %d{f'.%0{scale}d' if scale else '%.0s'} %s{' inverse' * is_inverse}"
            whole, rest = np.divmod(self._amounts[of], 10**scale)
            rows = zip(whole.tolist(), rest.tolist(), _spelled(self._times[of], self._of_days), strict=True)
            # All at once, which takes half as long as one by one.
            text = "\n".join([form] * len(of)) % tuple(chain.from_iterable(rows))
            if len(of) == len(places):
                return text.split("\n")
            told[here] = text.split("\n")
        return told.tolist()


@dataclass(frozen=True, slots=True)
class _Fractions:
    """A rate for each row: up / down where it is found, and in words which rate it is, or why it is missing."""

    up: Any
    down: Any
    is_found: Any
    words: Sequence[str | None]


def pivots(symbols: Iterable[str], one: str, other: str) -> list[str]:
    """The currencies that some pairs have together with one and with another; the most usual first."""
    beside: dict[str, set[str]] = {one: set(), other: set()}
    for symbol in symbols:
        base, _, quote = symbol.partition("/")
        for currency, second in ((base, quote), (quote, base)):
            if currency in beside:
                beside[currency].add(second)
    common = sorted(beside[one] & beside[other])
    return sorted(common, key=lambda currency: (currency not in _FIRST_PIVOTS, currency != _FIRST_PIVOTS[0]))


def _market_days(days: Any) -> Any:
    """Days as the calendar FX has them, since 1970: those of a weekend belong to its Friday."""
    import numpy as np

    return days - np.maximum((days + 3) % 7 - 4, 0)  # 1970 began with a Thursday


def _spelled(times: Any, of_days: bool) -> list[str]:
    import numpy as np

    if of_days:
        return np.datetime_as_string(times.view("datetime64[D]")).tolist()  # type: ignore[no-any-return]
    spelled = np.datetime_as_string(times.view("datetime64[us]"), unit="s").tolist()
    return [f"{time}Z" for time in spelled]


def converted(
    sent: Columns, target: Target, rates: RatesOfTimes, currency: str | None, *, in_digits: bool
) -> Columns:
    """Columns, converted row by row. What has no rate is missing, and `rate` says why.

    `currency` is that of the instrument, which counts for values that name none.
    """
    import numpy as np

    times = copying.read_times(sent.observed_at).view("datetime64[us]").astype("int64")
    spelled = sent.currency.split(BETWEEN)
    read = {one: currency if one == MISSING else one.decode() for one in dict.fromkeys(spelled)}
    if len(read) == 1:
        each = rates.at(next(iter(read.values())), times)
    else:
        up, down = (np.ones(len(times), dtype=object) for _ in range(2))
        is_found, words = np.full(len(times), fill_value=False), np.full(len(times), None, dtype=object)
        of = np.array(spelled, dtype=object)
        for one, its_currency in read.items():
            here = of == one
            found = rates.at(its_currency, times[here])
            up[here], down[here], is_found[here], words[here] = (
                found.up,
                found.down,
                found.is_found,
                found.words,
            )
        each = _Fractions(up, down, is_found, words.tolist())
    given = [_amounts(prices, sent.scale) for prices in (sent.open, sent.high, sent.low, sent.close)]
    numbers = [_divided(*prices, each) for prices in given]
    is_same = each.is_found & (each.up == each.down)
    if is_same.any():  # and not by a rate of 1
        is_same &= np.array([told is None for told in each.words])
    is_narrow = not (in_digits or is_same.any()) and all(
        whole.max(initial=0) < _MOST / 10**DECIMALS and (places == DECIMALS).all()
        for _, whole, _, places in numbers
    )
    write = _packed if is_narrow else _in_digits
    columns = [write(*number) for number in numbers]
    if is_same.any():
        columns = [_kept(text, *prices, is_same) for text, prices in zip(columns, given, strict=True)]
    opens, highs, lows, closes = columns
    return sent._replace(
        open=opens,
        high=highs,
        low=lows,
        close=closes,
        scale=np.full(len(times), DECIMALS, dtype=">i2").tobytes() if is_narrow else None,
        currency=BETWEEN.join([target.code.encode()] * len(times)),
        rate=each.words,
    )


def _amounts(prices: bytes | str, scales: bytes | None) -> tuple[Any, Any]:
    """Whole numbers and their scales; LEAST stands for a missing one."""
    import numpy as np

    if isinstance(prices, bytes):
        return copying.read_bigints(prices), copying.read_smallints(scales or b"")
    parts = [price.partition(".") for price in prices.split(" ")]
    amounts = [int(whole + fraction) if whole else LEAST for whole, _, fraction in parts]
    return np.array(amounts, dtype=object), np.array(
        [len(fraction) for _, _, fraction in parts], dtype="int64"
    )


def _divided(amounts: Any, scales: Any, rates: _Fractions) -> tuple[Any, Any, Any, Any]:
    """Which prices there are, and of each its whole part, its decimals and how many these are.

    Divided twice, by half of the decimals each time, digits fit the machine.
    """
    import numpy as np

    is_there = rates.is_found & (amounts != LEAST)
    amounts, up = np.where(is_there, amounts, 0), rates.up
    down = _product(rates.down, 10 ** scales.astype("int64"))
    product = _product(amounts, up)
    is_small = is_there & (product.astype(float) < float(_SMALL) * down.astype(float))
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
    return is_there, whole + is_whole, np.where(is_whole, 0, decimals), places


def _product(one: Any, other: Any) -> Any:
    """The products of whole numbers, which are none of the machine's where they may be too large for it."""
    if float(one.max(initial=1)) * float(other.max(initial=1)) >= _MOST:
        one = one.astype(object)
    return one * other


def _in_digits(is_there: Any, whole: Any, decimals: Any, places: Any) -> str:
    import numpy as np

    form = f"%d.%0{DECIMALS}d"
    if not is_there.all() or (places != DECIMALS).any():
        rows = zip(*(column.tolist() for column in (is_there, whole, decimals, places)), strict=True)
        return " ".join(
            f"{one}.{rest:0{digits}d}" if is_there else "" for is_there, one, rest, digits in rows
        )
    pairs = np.column_stack((whole, decimals)).ravel().tolist()
    return " ".join([form] * len(whole)) % tuple(pairs)


def _kept(text: Any, amounts: Any, scales: Any, is_same: Any) -> str:
    """The text with the digits of those prices that nothing changes."""
    rows = zip(text.split(" "), amounts.tolist(), scales.tolist(), is_same.tolist(), strict=True)
    return " ".join(
        f"{to_decimal(amount, scale):f}" if is_same and amount != LEAST else converted
        for converted, amount, scale, is_same in rows
    )


def _packed(is_there: Any, whole: Any, decimals: Any, _: Any) -> bytes:
    import numpy as np

    amounts = np.where(is_there, whole * 10**DECIMALS + decimals, LEAST)
    return amounts.astype(">i8").tobytes()


# ── Latest prices ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Leg:
    data_type: str
    symbol: str
    amount: int
    scale: int
    when: str
    is_inverse: bool = False

    @property
    def fraction(self) -> tuple[int, int]:
        exact = self.amount, 10**self.scale
        return (exact[1], exact[0]) if self.is_inverse else exact

    def __str__(self) -> str:
        return (
            f"{self.symbol} {to_decimal(self.amount, self.scale)} {self.when}{' inverse' * self.is_inverse}"
        )


@dataclass(frozen=True, slots=True)
class Rate:
    """What one of a currency is worth, as a fraction, and by which stored rates."""

    up: int
    down: int
    words: str | None

    def of(self, price: str) -> str:
        """A price in digits, converted; as it is where nothing is to do."""
        if self.up == self.down:
            return price
        whole, _, fraction = price.partition(".")
        up, down = int(whole + fraction) * self.up, self.down * 10 ** len(fraction)
        places = OF_SMALL if up < _SMALL * down else DECIMALS
        ones, rest = divmod((2 * up * 10**places + down) // (2 * down), 10**places)
        return f"{ones}.{rest:0{places}d}"


def _along(legs: Iterable[_Leg], target: Target) -> Rate:
    up, down, words = target.units, 1, []
    for leg in legs:
        up, down = up * leg.fraction[0], down * leg.fraction[1]
        words.append(str(leg))
    return Rate(up, down, _BESIDE.join(words) or None)


def convert_told(connection: Connection, told: dict[str, Any], target: Target) -> list[tuple[str, str]]:
    """Convert a Prices as JSON has it, in place, by the latest stored rates; returns the pairs that these are of.

    A price gets the field `rate`. Without a rate it becomes a missing one, which says so.
    """
    prices = [
        price | {"currency": price["currency"] or _own_currency(connection, price)}
        for price in told["prices"]
    ]
    rates, pairs = _latest(connection, target, {price["currency"] for price in prices if price["currency"]})
    told["prices"] = []
    for price in prices:
        rate = rates.get(price["currency"])
        if rate is not None:
            converted = {"price": rate.of(price["price"]), "currency": target.code, "rate": rate.words}
            told["prices"].append(price | converted)
            continue
        sentence = _lack(connection, price["currency"], target.whole)
        why = {"state": "no_rate", "sentence": sentence, "since": None, "next_at": None}
        told["missing"].append({"symbol": price["symbol"], "data_type": price["data_type"], "why": why})
    return pairs


def _own_currency(connection: Connection, of: Mapping[str, Any]) -> str | None:
    """The currency of an instrument whose prices name none."""
    currency: str | None = connection.execute(query("rates.currency_of"), of).scalar_one_or_none()
    return currency


def _lack(connection: Connection, currency: str | None, whole: str) -> str:
    """Why a currency has no rate, and what to do."""
    if currency is None:
        return "The price names no currency, so it cannot be converted."
    data_type = connection.execute(query("rates.type_of_rates")).scalar_one()
    way = "" if data_type is None else f" Watch {currency}/{whole} of {data_type}, and it is fetched."
    return f"No rate {currency}/{whole} is stored, nor two pairs that lead there.{way}"


def _latest(
    connection: Connection, target: Target, currencies: set[str]
) -> tuple[dict[str | None, Rate], list[tuple[str, str]]]:
    """The latest rates of some currencies, and the pairs that these are of."""
    found: dict[str, _Leg] = {}
    for row in connection.execute(query("rates.latest"), {"currencies": [*currencies, target.whole]}):
        when = f"{row.observed_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        found.setdefault(row.symbol, _Leg(row.data_type, row.symbol, row.amount, row.scale, when))

    def between(base: str, quote: str) -> _Leg | None:
        direct, inverse = found.get(f"{base}/{quote}"), found.get(f"{quote}/{base}")
        if inverse is None or (direct is not None and direct.when >= inverse.when):
            return direct
        return replace(inverse, is_inverse=True)

    rates: dict[str | None, Rate] = {target.whole: _along((), target)}
    pairs: dict[tuple[str, str], None] = {}
    for currency in sorted(currencies - {target.whole}):
        ways = [[between(currency, target.whole)]]
        for pivot in pivots(found, currency, target.whole):
            ways.append([between(currency, pivot), between(pivot, target.whole)])
        whole = [[leg for leg in legs if leg is not None] for legs in ways if None not in legs]
        # The first way, such as the pair itself, unless another one's rates are of a newer day.
        way = max(whole, key=lambda legs: min(leg.when for leg in legs)[:_DAY_OF_WHEN], default=None)
        if way is not None:
            rates[currency] = _along(way, target)
            pairs |= dict.fromkeys((leg.data_type, leg.symbol) for leg in way)
    return rates, list(pairs)
