"""The value of a row in a declared provider's answer: its time, currency and prices, or why it cannot be true.

declared_answers.py finds the rows of an answer, and the values at the declaration's paths.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.answers import RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.providers.base import Question, Schema
from pricing_pipeline.providers.declaration import AnyReading, BarsReading, Numbers
from pricing_pipeline.providers.declared_times import day, moment
from pricing_pipeline.providers.values import (
    MAX_DIGITS,
    MAX_SCALE,
    Implausible,
    bar_of,
    check_day,
    check_range,
    decimal_of,
    in_major_unit,
    is_to_come,
    major_unit,
    midnight,
    plain_price,
    price_of,
    spelling,
    volume_of,
    without_currency,
)

_EXACT = Context(prec=80)
_DIVIDING = Context(prec=15, rounding=ROUND_HALF_EVEN)
_LEAST_DIGITS = 8
"""The digits that a rounded quotient has at least: the price of a rial in bitcoin has them in 18 decimal places."""
_SPACES = re.compile("[\u00a0\u2009\u202f ]")


class Row(Schema):
    """The values at the paths of a declaration in one row. Prices are read one by one: one may be broken alone."""

    time: str | int | Decimal
    currency: str | None
    price: object
    open: object
    high: object
    low: object
    volume: object
    per: object


class Amounts:
    """How a declaration reads numbers: exact, but for quotients, which have 15 digits."""

    def __init__(self, numbers: Numbers) -> None:
        self._about = numbers
        self._factor = Decimal(numbers.factor)
        self._changes = numbers.changes_prices
        self._is_plain = numbers.decimal == "." and numbers.thousands is None
        sign, groups = re.escape(numbers.decimal), re.escape(numbers.thousands or "")
        whole = rf"[1-9][0-9]{{0,2}}(?:{groups}[0-9]{{2,3}})*{groups}[0-9]{{3}}|[0-9]+" if groups else "[0-9]+"
        self._form = re.compile(rf"[+-]?(?:{whole})(?:{sign}[0-9]+)?(?:[eE][+-]?[0-9]{{1,3}})?")

    def is_blank(self, raw: object) -> bool:
        """Whether a text stands for no price."""
        return isinstance(raw, str) and raw in self._about.blank

    def plain(self, raw: object) -> object:
        """A number's text with Python's signs; any other text is unchanged, and refused later."""
        if self._is_plain or not isinstance(raw, str):
            return raw
        text = raw.strip()
        if self._about.thousands == " ":
            text = _SPACES.sub(" ", text)
        if self._about.thousands == "'":
            text = text.replace("\u2019", "'")
        if self._form.fullmatch(text) is None:
            raise Implausible(
                f"{spelling(raw)!r} is not a number with the decimal sign {self._about.decimal!r}"
                + (
                    f" and groups parted by {self._about.thousands!r}"
                    if self._about.thousands
                    else ", and the declaration names no sign `thousands`"
                )
            )
        return text.replace(self._about.thousands or " ", "").replace(self._about.decimal, ".").lstrip("+")

    def price(self, raw: object, what: str, per: object) -> Decimal:
        """The price that is stored. Raises Implausible."""
        value = price_of(self.plain(raw), what)
        if not self._changes:
            return value
        value, units = _EXACT.multiply(value, self._factor), None
        if self._about.per is not None:
            units = price_of(self.plain(per), "number of units")
        if self._about.inverse:
            value = _quotient(units or Decimal(1), value, what)
        elif units is not None:
            value = _quotient(value, units, what)
        return price_of(value, what)

    def volume(self, raw: object, what: str) -> Decimal:
        """Raises Implausible."""
        return volume_of(self.plain(raw), what)


def _quotient(value: Decimal, by: Decimal, what: str) -> Decimal:
    """Exact where 18 digits can say it, else with 15 digits, or with all that 18 places have room for.

    Raises Implausible if these are fewer than _LEAST_DIGITS.
    """
    exact = _EXACT.divide(value, by)
    if _EXACT.multiply(exact, by) == value and len(exact.as_tuple().digits) <= MAX_DIGITS:
        quotient = exact
    else:
        quotient = _DIVIDING.divide(value, by)
    if -int(quotient.as_tuple().exponent) <= MAX_SCALE:
        return quotient
    rounded = _EXACT.quantize(exact, Decimal(1).scaleb(-MAX_SCALE))
    if len(rounded.as_tuple().digits) < _LEAST_DIGITS:
        raise Implausible(f"{what} {quotient} is too small for {MAX_SCALE} decimal places")
    return rounded


def value_of(
    asked: Question, reading: AnyReading, amounts: Amounts, symbol: str, row: Row
) -> Observation | RejectedValue | None:
    """A row's value, or why it cannot be true; None for a row that states that there is no value."""
    text, at, time = spelling(row.price), None, reading.time
    zone = time.zone or asked.fact(symbol, "exchange_zone")
    if amounts.is_blank(row.price):
        return None
    try:
        if asked.fetcher is Fetcher.QUOTE:
            at = asked.now if time.format is None else moment(row.time, time.format, time.zone, asked.now)
        elif time.format is None:
            at = midnight(asked.now.astimezone(ZoneInfo(zone or "UTC")).date())
        else:
            of = day(row.time, time.format, time.zone)
            at = midnight(of)
            if is_to_come(of, (row.price, row.open, row.high, row.low), asked.now):
                return None
            check_day(of, asked.now, ZoneInfo(zone) if zone else None)
        currency, power = (None, 0) if reading.currency.unnamed else _unit(row.currency)

        def price(raw: object, what: str) -> Decimal:
            return in_major_unit(amounts.price(raw, what, row.per), power)

        if isinstance(reading, BarsReading):
            fields = row.model_dump(include={"open", "high", "low", "volume"})
            values = {
                "close": row.price,
                **{k: None if amounts.is_blank(v) else v for k, v in fields.items()},
            }
            if reading.numbers.inverse:
                values["high"], values["low"] = values["low"], values["high"]
            basis = Adjustment(reading.adjustment)
            bar = bar_of(symbol, at, values, currency, price=price, volume=amounts.volume, adjustment=basis)
            return bar if currency or reading.currency.unnamed else without_currency(bar)
        close = price(row.price, f"price (path `{reading.price}`)")
        high, low = (_plain(amounts, raw) for raw in (row.high, row.low))
        check_range(decimal_of(amounts.plain(row.price), "price"), high, low)
        value = Observation(symbol, at, close, text, currency)
        return value if currency or reading.currency.unnamed else without_currency(value)
    except Implausible as fault:
        return RejectedValue(symbol, at, str(fault), text)


def _plain(amounts: Amounts, raw: object) -> Decimal | None:
    try:
        return plain_price(amounts.plain(raw))
    except Implausible:
        return None


def _unit(currency: str | None) -> tuple[str | None, int]:
    return (None, 0) if currency is None else major_unit(currency)
