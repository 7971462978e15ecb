"""Prices in another currency, by stored exchange rates: exactly, and rounded once, half up.

A rate is a fraction of whole numbers: of a pair, as db/functions/prices/rates.sql chooses it, or of two pairs that
share a currency. It is never guessed: where none of that time is stored, there is no price, and a sentence says which
rate is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pricing_pipeline.db import copying
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.prices import Missing, Price, Reason
from pricing_pipeline.errors import InvalidCurrency
from pricing_pipeline.prices import moved_values
from pricing_pipeline.prices.frames import BETWEEN, LEAST, MISSING, Columns, exact_amounts
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS

if TYPE_CHECKING:
    from sqlalchemy import Connection

DECIMALS, OF_SMALL = 8, 18
"""Decimals of a converted price, and of one below 0.01, which 8 decimals would leave few digits."""
NO_RATE = "no rate"
"""How the column `rate` begins where no rate is stored."""
_SMALL = Fraction(1, 100)
_MOST = 2.0**62
"""Below this, whole numbers are computed as 64-bit integers; above it, as Python's."""
_DAY = 86_400_000_000
"""Microseconds."""
_BESIDE = " * "
"""Between the rates of two pairs."""


@dataclass(frozen=True, slots=True)
class Target:
    """The currency that prices are wanted in: its code as given, the whole currency, and how many make up one."""

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
            return _Fractions(up, down, np.full(rows, fill_value=True), [None] * rows)
        is_found, words = np.full(rows, fill_value=False), np.full(rows, None, dtype=object)
        if currency is None:
            return _Fractions(up, down, is_found, ["the prices name no currency"] * rows)
        times = _market_days(microseconds // _DAY) * _DAY if self._of_days else microseconds
        for way in self._ways(currency):
            tables = [self._table(base, quote) for base, quote in way]
            places = [table.places(times) for table in tables]
            here = ~is_found & np.logical_and.reduce([place >= 0 for place in places])
            if not here.any():
                continue
            for table, place in zip(tables, places, strict=True):
                up = np.where(here, _product(up, table.up[place]), up)
                down = np.where(here, _product(down, table.down[place]), down)
            told = [table.words[place[here]].tolist() for table, place in zip(tables, places, strict=True)]
            words[here] = told[0] if len(told) == 1 else list(map(_BESIDE.join, zip(*told, strict=True)))
            is_found |= here
            if is_found.all():
                break
        lacks = ~is_found
        words[lacks] = [f"{NO_RATE} {currency}/{whole} of {when}" for when in _spelled(times[lacks], self._of_days)]
        return _Fractions(up, down, is_found, words.tolist())

    def _ways(self, currency: str) -> Iterable[list[tuple[str, str]]]:
        whole = self._target.whole
        yield [(currency, whole)]
        for pivot in call_sql(self._connection, "pivots", currency, whole).scalars():
            yield [(currency, pivot), (pivot, whole)]

    def _table(self, base: str, quote: str) -> _Table:
        if (base, quote) not in self._tables:
            moved: list[dict[str, Any]] | None = None

            def read(archived: list[Any]) -> _Table:
                values = [
                    {"data_type": pair["data_type"], "symbol": pair["symbol"], "rows": rows}
                    for pair, rows in zip(now, archived, strict=True)
                    if rows is not None
                ]
                parameters = self._span | {
                    "from_currency": base,
                    "to_currency": quote,
                    "of": "days" if self._of_days else "times",
                    "archived": json.dumps(values) if values else None,
                }
                (row,) = driver_rows(self._connection, driver_query("rates.between"), parameters, is_binary=True)
                return _Table(row, of_days=self._of_days)

            # Read again if the first month of a rate was moved in the meantime.
            while (now := self._moved(base, quote)) != moved:
                moved = now
                self._tables[base, quote] = moved_values.complete(self._connection, now, read)
        return self._tables[base, quote]

    def _moved(self, base: str, quote: str) -> list[dict[str, Any]]:
        """The rates of a pair, in either spelling, that are partly in files."""
        rows = driver_rows(self._connection, driver_query("rates.moved"), self._span)
        spellings = (f"{base}/{quote}", f"{quote}/{base}")
        return [
            self._span | {"data_type": data_type, "symbol": symbol, "adjust": None}
            for data_type, symbol in sorted(rows)
            if symbol in spellings
        ]


class _Table:
    """The stored rates of one pair of currencies, by day or by time, each as a fraction and in words."""

    def __init__(self, row: Sequence[Any], *, of_days: bool) -> None:
        import numpy as np

        times, amounts, kinds, words = row
        self._times, self._of_days = copying.read_times(times or b""), of_days
        exact, kinds = copying.read_bigints(amounts or b""), copying.read_smallints(kinds or b"")
        one, is_inverse = 10 ** (kinds // 2), kinds % 2 == 1
        self.up, self.down = np.where(is_inverse, one, exact), np.where(is_inverse, exact, one)
        self.words = np.array(words.split("\n") if words else [], dtype=object)

    def places(self, times: Any) -> Any:
        """Which rate each time has: that of the day, or the last one before it; -1 for none, or one too old."""
        import numpy as np

        if not len(self._times):
            return np.full(len(times), -1)
        places = np.searchsorted(self._times, times, "right") - 1
        earliest = times if self._of_days else _market_days(times // _DAY - 1) * _DAY
        return np.where(self._times[places] >= earliest, places, -1)


@dataclass(frozen=True, slots=True)
class _Fractions:
    """A rate for each row: up / down where one is found, and in words which one it is, or why there is none."""

    up: Any
    down: Any
    is_found: Any
    words: Sequence[str | None]


def _market_days(days: Any) -> Any:
    """Days since 1970 by the calendar FX: those of a weekend become their Friday."""
    import numpy as np

    return days - np.maximum((days + 3) % 7 - 4, 0)  # 1970 began on a Thursday


def _spelled(times: Any, of_days: bool) -> list[str]:
    import numpy as np

    spelled = np.datetime_as_string(times.view("datetime64[us]"), unit="D" if of_days else "s").tolist()
    return spelled if of_days else [f"{time}Z" for time in spelled]


def converted(sent: Columns, target: Target, rates: RatesOfTimes, currency: str | None) -> Columns:
    """Columns, converted row by row. A value without a rate becomes missing, and `rate` says why.

    `currency` is the instrument's, for values that name none.
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
    given = [exact_amounts(prices, sent.scale) for prices in (sent.open, sent.high, sent.low, sent.close)]
    numbers = [_divided(*prices, each) for prices in given]
    is_same = each.is_found & (each.up == each.down)
    if is_same.any():  # and not by a rate of 1
        is_same &= np.array([told is None for told in each.words])
    is_narrow = not is_same.any() and all(
        whole.max(initial=0) < _MOST / 10**DECIMALS and (places == DECIMALS).all() for _, whole, _, places in numbers
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


def _divided(amounts: Any, scales: Any, rates: _Fractions) -> tuple[Any, Any, Any, Any]:
    """Which prices there are, and of each its whole part, its decimals and their number.

    It divides twice, for half of the decimals each time, so that remainders fit 64-bit integers.
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
    """The products of whole numbers; Python's where they may exceed 64-bit integers."""
    if float(one.max(initial=1)) * float(other.max(initial=1)) >= _MOST:
        one = one.astype(object)
    return one * other


def _in_digits(is_there: Any, whole: Any, decimals: Any, places: Any) -> str:
    rows = zip(*(column.tolist() for column in (is_there, whole, decimals, places)), strict=True)
    return " ".join(f"{one}.{rest:0{digits}d}" if is_there else "" for is_there, one, rest, digits in rows)


def _kept(text: Any, amounts: Any, scales: Any, is_same: Any) -> str:
    """The text, with the stored digits of the prices that were in the target currency already."""
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
        places = OF_SMALL if up < _SMALL * down else DECIMALS
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
            self._rates |= dict.fromkeys(unknown)
            wanted = {"currencies": unknown, "to_currency": self._target.whole}
            for row in self._connection.execute(query("rates.latest"), wanted):
                pairs = list(zip(row.data_types, row.symbols, strict=True))
                up, down = int(row.up) * self._target.units, int(row.down)
                self._rates[row.currency] = Rate(up, down, row.words, pairs)
        return [self._rates[one] for one in currencies]

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


def convert_told(connection: Connection, told: dict[str, Any], target: Target) -> LatestRates:
    """Convert an answer of prices (JSON) in place by the latest stored rates, and return these.

    Each price gets the field `rate`. A price without a rate moves to `missing`, with the reason.
    """
    rates = LatestRates(connection, target)
    prices = [price | {"currency": price["currency"] or own_currency(connection, price)} for price in told["prices"]]
    told["prices"] = []
    for price, rate in zip(prices, rates.of(*(price["currency"] for price in prices)), strict=True):
        if rate is not None:
            converted = {"price": rate.of(price["price"]), "currency": target.code, "rate": rate.words}
            told["prices"].append(price | converted)
            continue
        why = {"state": "no_rate", "sentence": rates.lack(price["currency"]), "since": None, "next_at": None}
        told["missing"].append({"symbol": price["symbol"], "data_type": price["data_type"], "why": why})
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
