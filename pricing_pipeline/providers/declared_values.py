"""The value of a row in a declared provider's answer: its time, currency and prices, or why it cannot be true.

Which rows an answer has, and what the paths of the declaration lead to in them, is told by declared_answers.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.answers import RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.providers.base import Schema
from pricing_pipeline.providers.declaration import AnyReading, BarsReading, Time
from pricing_pipeline.providers.declared_calls import Asked
from pricing_pipeline.providers.exchange_days import day_of
from pricing_pipeline.providers.values import (
    Implausible,
    bar_of,
    calendar_day,
    check_day,
    check_range,
    in_major_unit,
    instant_of,
    is_to_come,
    major_unit,
    midnight,
    plain_price,
    price_of,
    spelling,
    without_currency,
)

_ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
)
_DAY_FIRST = re.compile(r"[0-9]{2}-[0-9]{2}-[0-9]{4}")
_DIGITS = re.compile(r"[0-9]{1,15}")


class Row(Schema):
    """What the paths of a declaration lead to in one row. Prices are read one by one: one may be broken alone."""

    time: str | int
    currency: str | None
    price: object
    open: object
    high: object
    low: object
    volume: object


def value_of(asked: Asked, reading: AnyReading, symbol: str, row: Row) -> Observation | RejectedValue | None:
    """A row's value, or why it cannot be true."""
    text, at = spelling(row.price), None
    try:
        if asked.fetcher is Fetcher.QUOTE:
            at = _moment(row.time, reading.time, asked.now)
        else:
            day = _day(row.time, reading.time)
            at = midnight(day)
            if is_to_come(day, (row.price, row.open, row.high, row.low), asked.now):
                return None
            check_day(day, asked.now)
        currency, power = (None, 0) if reading.currency.unnamed else _unit(row.currency)

        def price(raw: object, what: str) -> Decimal:
            return in_major_unit(price_of(raw, what), power)

        if isinstance(reading, BarsReading):
            values = {"close": row.price, **row.model_dump(include={"open", "high", "low", "volume"})}
            basis = Adjustment(reading.adjustment)
            bar = bar_of(symbol, at, values, currency, price=price, adjustment=basis)
            return bar if currency or reading.currency.unnamed else without_currency(bar)
        close = price(row.price, f"price (path `{reading.price}`)")
        check_range(price_of(row.price), plain_price(row.high), plain_price(row.low))
        value = Observation(symbol, at, close, text, currency)
        return value if currency or reading.currency.unnamed else without_currency(value)
    except Implausible as fault:
        return RejectedValue(symbol, at, str(fault), text)


def only(symbol: str, values: Sequence[Observation | RejectedValue]) -> list[Observation | RejectedValue]:
    """The one latest value of a symbol. Of several that differ none is believed: nothing tells which is true."""
    good = [value for value in values if isinstance(value, Observation)]
    bad = [value for value in values if isinstance(value, RejectedValue)]
    if len({(value.observed_at, value.close) for value in good}) <= 1:
        return [*good[:1], *bad]
    reason = f"the answer has {len(good)} rows of this symbol, which differ"
    return [*(RejectedValue(symbol, value.observed_at, reason, value.text) for value in good), *bad]


def _unit(currency: str | None) -> tuple[str | None, int]:
    return (None, 0) if currency is None else major_unit(currency)


def _day(raw: str | int, how: Time) -> date:
    """The day of a daily value. Raises Implausible."""
    match how.format:
        case "iso_date":
            return calendar_day(raw)
        case "DD-MM-YYYY":
            if not isinstance(raw, str) or not _DAY_FIRST.fullmatch(raw):
                raise Implausible(f"{spelling(raw)!r} is no day such as 23-11-2026")
            return calendar_day("-".join(reversed(raw.split("-"))))
        case "iso_time":
            return _instant(raw, ZoneInfo(how.zone) if how.zone else None).date()
        case _:
            return day_of(_seconds(raw, how), ZoneInfo(how.zone or "UTC"))


def _moment(raw: str | int, how: Time, now: datetime) -> datetime:
    """The time of a quote. Raises Implausible."""
    if how.format in ("iso_date", "DD-MM-YYYY"):
        day = _day(raw, how)
        check_day(day, now)
        return midnight(day)
    if how.format == "iso_time":
        at = _instant(raw, UTC)
        return instant_of(int(at.timestamp()), now).replace(microsecond=at.microsecond)
    return instant_of(_seconds(raw, how), now)


def _instant(raw: str | int, zone: tzinfo | None) -> datetime:
    """A time in a zone, or with the offset that it names. Raises Implausible."""
    if isinstance(raw, str) and _ISO_TIME.fullmatch(raw):
        try:
            at = datetime.fromisoformat(raw)
            return at if zone is None else at.astimezone(zone)
        except (ValueError, OverflowError):
            pass
    raise Implausible(f"{spelling(raw)!r} is no time such as 2026-11-23T20:00:00Z")


def _seconds(raw: str | int, how: Time) -> int:
    """Epoch seconds, without parts of a second."""
    if isinstance(raw, str) and not _DIGITS.fullmatch(raw):
        raise Implausible(f"time stamp {spelling(raw)!r} is no whole number")
    return int(raw) // (1000 if how.format == "epoch_milliseconds" else 1)
