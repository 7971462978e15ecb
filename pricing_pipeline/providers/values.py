"""Values as providers spell them: numbers, currencies, days, and whether they can be true.

Here lies what every provider's parser needs to turn a spelling into an exact value and to tell a bad
one from a good one (requirement B18). Nothing here knows a provider, a URL or a response's shape.
No value passes through a binary float (requirement A9).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from pricing_pipeline.bars import Bars
from pricing_pipeline.domain import (
    Adjustment,
    Answer,
    Document,
    FailureKind,
    Observation,
    RejectedValue,
    SymbolFailure,
    Window,
)
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS

if TYPE_CHECKING:
    from pricing_pipeline.bars import Column
    from pricing_pipeline.providers.flat import Rows

Number = str | int | Annotated[Decimal, Field(allow_inf_nan=True)]
"""How a number may stand in a decoded answer: providers send strings, JSON numbers, or both.

NaN is let through to `decimal_of`, which refuses that one value and not the whole answer.
"""

MAX_DIGITS = 18
"""Digits an amount may have: what a signed 64-bit integer surely holds."""
MAX_SCALE = 18
"""Decimal places an amount may have."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far a source's clock may run ahead of ours."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_NUMBER = re.compile(_PLAIN.pattern + r"(?:[eE][+-]?[0-9]{1,6})?")
# Longer spellings are refused before any arithmetic: Decimal keeps every digit, and a provider
# could make us hold and print a billion of them.
_MAX_SPELLING = 64


class Implausible(ValueError):
    """A value that is well formed as text but cannot be a true price, volume or time."""


def json_number(literal: str) -> int | Decimal:
    """Decode a JSON number exactly: the hook for `json.loads`. What cannot be a value becomes NaN."""
    if len(literal) > _MAX_SPELLING:
        return Decimal("NaN")
    if len(literal) <= MAX_DIGITS and literal.lstrip("-").isdigit():
        return int(literal)
    try:
        return Decimal(literal)
    except InvalidOperation:
        return Decimal("NaN")


def spelling(raw: Number | None) -> str:
    """The source's own spelling of a decoded number, at most 64 characters."""
    if raw is None:
        return "null"
    if isinstance(raw, Decimal) and raw.is_finite():
        exponent = raw.as_tuple().exponent
        # str() would turn the literal 0.0000001 into 1E-7; format() would write 1e999999 out.
        if isinstance(exponent, int) and -_MAX_SPELLING < exponent <= 0:
            return format(raw, "f")[:_MAX_SPELLING]
    return str(raw)[:_MAX_SPELLING]


def decimal_of(raw: Number | None, what: str) -> Decimal:
    """The exact value of `raw`. Raises Implausible unless it is finite and fits 18 digits."""
    if type(raw) is str and len(raw) <= MAX_DIGITS and _PLAIN.fullmatch(raw):
        return Decimal(raw)  # written out, so short a number cannot have more digits
    text = spelling(raw)
    if isinstance(raw, bool | float) or len(text) >= _MAX_SPELLING or not _NUMBER.fullmatch(text):
        raise Implausible(f"{what} {text!r} is not a finite decimal number")
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # pragma: no cover - the pattern admits finite numbers only
        raise Implausible(f"{what} {text!r} is not a finite decimal number")
    if len(digits) + max(exponent, 0) > MAX_DIGITS or -exponent > MAX_SCALE:
        raise Implausible(f"{what} {text!r} has more than {MAX_DIGITS} digits")
    return value


def price_of(raw: Number | None, what: str = "price") -> Decimal:
    """The exact price, in the unit it is quoted in. Raises Implausible unless finite and above zero."""
    value = decimal_of(raw, what)
    if value <= 0:
        raise Implausible(f"{what} {spelling(raw)!r} is not above zero")
    return value


def volume_of(raw: Number | None) -> Decimal | None:
    """The traded volume, or None where the source has none (currencies, funds)."""
    if raw is None:
        return None
    value = decimal_of(raw, "volume")
    if value < 0:
        raise Implausible(f"volume {spelling(raw)!r} is negative")
    return value


_PLAIN_QUOTE = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}(?: [0-9]{1,9}\.[0-9]{1,9}){3}")


def plain_close(open_: object, high: object, low: object, close: object) -> Decimal | None:
    """The close of four prices that are spelled as nearly all quotes are, and in order; None for any others.

    They have passed every check of `price_of` and `check_bar`: nine digits on either side of the point fit 18 at any
    scale of the four. A fifth of the time that those take one by one.
    """
    if not (type(open_) is type(high) is type(low) is type(close) is str):
        return None
    texts = f"{open_} {high} {low} {close}"
    if not _PLAIN_QUOTE.fullmatch(texts):
        return None
    first, highest, lowest, last = map(Decimal, texts.split(" "))
    return last if 0 < lowest <= first <= highest and lowest <= last <= highest else None


def check_bar(
    close: Decimal,
    open_: Decimal | None = None,
    high: Decimal | None = None,
    low: Decimal | None = None,
) -> None:
    """Raise Implausible unless high is the greatest and low the least of those that are given.

    They must also fit 18 digits at the scale of the finest of them, since a bar is stored at one scale.
    """
    given = [price for price in (open_, high, low, close) if price is not None]
    highest, lowest = max(given), min(given)
    if high is not None and high < highest:
        raise Implausible(f"high {high} is below another price of its bar ({highest})")
    if low is not None and low > lowest:
        raise Implausible(f"low {low} is above another price of its bar ({lowest})")
    finest = min(given, key=_exponent) if any(not price.same_quantum(close) for price in given) else close
    scale = -_exponent(finest)
    if highest.adjusted() + 1 + max(scale, 0) > MAX_DIGITS:
        raise Implausible(f"{highest} with {scale} decimal places has more than {MAX_DIGITS} digits")


_MOST_PLACES = 9
_PRICES = ("open", "high", "low", "close")


def plain_bars(
    symbol: str, currency: str, rows: Rows, window: Window, *, day: str = "date", volume: str = "volume"
) -> Bars | None:
    """Daily bars by columns, as an answer has them, if all are spelled as nearly all answers are; else None.

    Days are ISO dates in the column `day`; the others are named open, high, low, close and `volume`. What it gives
    has passed every check of `price_of`, `volume_of`, `check_bar`, `calendar_day` and `check_day` (the window must be
    over), and stands in order, once a day. With nine digits on either side of the point, the four fit 18 at any scale.
    One odd value, and all go the long way.
    """
    import numpy as np

    if not {day, volume, *_PRICES} <= set(rows.names):
        return None
    ordinals, places = _ordinals(rows, day), len(rows.texts("close")[0].partition(".")[2])
    is_plain = (
        ordinals is not None
        and 0 < places <= _MOST_PLACES
        and all(_are_decimals(rows, name, places) for name in _PRICES)
        and rows.count(".") == len(_PRICES) * len(rows)
        and rows.count("-") == 2 * len(rows)
    )
    if ordinals is None or not is_plain:
        return None
    opens, highs, lows, closes = (np.ascontiguousarray(rows.numbers(name)) for name in _PRICES)
    is_sound = (
        lows.min() > 0
        and (lows <= opens).all()
        and (lows <= closes).all()
        and (highs >= opens).all()
        and (highs >= closes).all()
        and window.start.toordinal() <= ordinals[0]
        and ordinals[-1] <= window.end.toordinal()
    )
    if not is_sound:
        return None
    return Bars(
        *(symbol, currency, Adjustment.RAW, ordinals, places),
        *((opens, highs, lows, closes), np.ascontiguousarray(rows.numbers(volume)), rows.texts("close")),
    )


def _are_decimals(rows: Rows, name: str, places: int) -> bool:
    """Whether figures have up to nine digits, and `places` more behind a point; the caller counts points."""
    lengths = rows.lengths(name)
    return bool(
        lengths.min() > places + 1
        and lengths.max() <= _MOST_PLACES + 1 + places
        and rows.have(name, ".", places)
    )


def _ordinals(rows: Rows, name: str) -> Column | None:
    """The numbers of ISO days, if they are in order; the caller counts dashes."""
    import numpy as np

    if set(rows.lengths(name)) != {10} or not (rows.have(name, "-", 5) and rows.have(name, "-", 2)):
        return None
    years, rest = np.divmod(rows.numbers(name), 10_000)
    months, days = np.divmod(rest, 100)
    firsts = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    found = firsts.astype("datetime64[D]") + (days - 1)
    # A 31st of June is in July.
    if not ((months >= 1) & (months <= 12) & (found.astype("datetime64[M]") == firsts)).all():
        return None
    ordinals: Column = found.astype(np.int64) + date(1970, 1, 1).toordinal()
    return ordinals if (ordinals[1:] > ordinals[:-1]).all() else None


def _exponent(value: Decimal) -> int:
    return int(value.as_tuple().exponent)


def major_unit(currency: str) -> tuple[str, int]:
    """The ISO 4217 code for `currency`, and the power of ten that turns its quotes into that unit.

    Pence sterling (`GBp`) give `("GBP", -2)`; coins that prices are told in (`BTC`) stand for themselves. Raises
    Implausible for what is no currency.
    """
    if currency in PARTS:
        return PARTS[currency]
    if currency not in CURRENCIES:
        raise Implausible(
            f"currency {currency[:20]!r} is neither an ISO 4217 code nor a coin or part of a currency that is known"
        )
    return currency, 0


def rescale(observation: Observation, power: int) -> Observation:
    """The same prices times ten to `power` (never above 0), exactly; volume and spelling stay."""
    if power == 0:
        return observation

    def shift(price: Decimal | None) -> Decimal | None:
        if price is None:
            return None
        sign, digits, exponent = price.as_tuple()
        if -int(exponent) - power > MAX_SCALE:
            raise Implausible(f"price {price} has more than {MAX_SCALE} decimal places in its major unit")
        return Decimal((sign, digits, int(exponent) + power))

    close = shift(observation.close)
    assert close is not None  # noqa: S101 - for the type checker
    return replace(
        observation,
        close=close,
        open=shift(observation.open),
        high=shift(observation.high),
        low=shift(observation.low),
    )


def midnight(day: date) -> datetime:
    """Midnight UTC of a trading day: the stamp of every daily value."""
    return datetime.combine(day, time(), tzinfo=UTC)


def instant_of(epoch_seconds: int, now: datetime) -> datetime:
    """The UTC time of an epoch stamp. Raises Implausible if not after 1970, or over 5 min ahead of `now`."""
    try:
        at = _EPOCH + timedelta(seconds=epoch_seconds)
    except OverflowError:
        raise Implausible(f"time stamp {epoch_seconds} lies beyond the calendar") from None
    if at <= _EPOCH:
        raise Implausible(f"time stamp {epoch_seconds} says that there is no time")
    if at > now + CLOCK_TOLERANCE:
        raise Implausible(f"time stamp {at.isoformat()} lies in the future")
    return at


def calendar_day(text: str) -> date:
    """The day of an ISO date. Raises Implausible for one that is not in the calendar."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Implausible(f"{text} is no day of the calendar") from None


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of this IANA name; None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def check_day(day: date, window: Window | None, now: datetime) -> None:
    """Raise Implausible for a day after tomorrow (UTC), or outside the window that was asked for."""
    if day > now.astimezone(UTC).date() + timedelta(days=1):
        raise Implausible(f"day {day} lies in the future")
    if window is not None and not window.start <= day <= window.end:
        raise Implausible(f"day {day} lies outside the asked {window.start}..{window.end}")


def settle_days(symbol: str, rows: Iterable[Observation | RejectedValue]) -> Answer:
    """One symbol's daily rows as an Answer, oldest first.

    Of equal rows for one day the first stays; rows that contradict each other are all rejected, since
    nothing tells which is true. Without rows the symbol is `empty`; without a good one it has failed.
    """
    rows = list(rows)
    good = [row for row in rows if isinstance(row, Observation)]
    if good and len(good) == len(rows) and all(a.observed_at < b.observed_at for a, b in pairwise(good)):
        return Answer(observations=tuple(good))
    by_day: defaultdict[datetime, list[Observation]] = defaultdict(list)
    rejected: list[RejectedValue] = []
    for row in rows:
        if isinstance(row, RejectedValue):
            rejected.append(row)
        else:
            by_day[row.observed_at].append(row)
    kept: list[Observation] = []
    for at in sorted(by_day):
        first, *others = by_day[at]
        if all(other == first for other in others):
            kept.append(first)
            surplus, reason = others, f"day {at.date()} appears more than once"
        else:
            surplus, reason = [first, *others], f"day {at.date()} appears with different values"
        rejected.extend(RejectedValue(symbol, at, reason, row.text) for row in surplus)
    if kept:
        return Answer(observations=tuple(kept), rejected=tuple(rejected))
    if not rejected:
        return Answer(empty=frozenset({symbol}))
    return _nothing_believed(symbol, rejected)


def settle_documents(symbol: str, rows: Sequence[Document | RejectedValue]) -> Answer:
    """One symbol's documents as an Answer, oldest period first, by the rules of `settle_days`."""
    by_period: defaultdict[date | None, list[Document]] = defaultdict(list)
    rejected = [row for row in rows if isinstance(row, RejectedValue)]
    for row in rows:
        if isinstance(row, Document):
            by_period[row.period].append(row)
    kept: list[Document] = []
    for period in sorted(by_period, key=lambda day: day or date.min):
        first, *others = by_period[period]
        at = None if period is None else midnight(period)
        if all(other == first for other in others):
            kept.append(first)
            surplus, reason = others, f"period {period} appears more than once"
        else:
            surplus, reason = [first, *others], f"period {period} appears with different values"
        rejected.extend(RejectedValue(symbol, at, reason, str(period)) for _ in surplus)
    if kept:
        return Answer(documents=tuple(kept), rejected=tuple(rejected))
    if not rejected:
        return Answer(empty=frozenset({symbol}))
    return _nothing_believed(symbol, rejected)


def _nothing_believed(symbol: str, rejected: Sequence[RejectedValue]) -> Answer:
    message = (
        f"none of the {len(rejected)} values for {symbol} can be true; the first: {rejected[0].reason}. "
        "Nothing was stored; compare with another source."
    )
    return Answer(
        failures=(SymbolFailure(symbol, FailureKind.IMPLAUSIBLE, message),), rejected=tuple(rejected)
    )


def merge(answers: Sequence[Answer]) -> Answer:
    """The answers of several symbols as one."""
    return Answer(
        observations=tuple(item for answer in answers for item in answer.observations),
        failures=tuple(item for answer in answers for item in answer.failures),
        empty=frozenset().union(*(answer.empty for answer in answers)),
        rejected=tuple(item for answer in answers for item in answer.rejected),
        documents=tuple(item for answer in answers for item in answer.documents),
        actions=tuple(item for answer in answers for item in answer.actions),
        actions_since={symbol: day for answer in answers for symbol, day in answer.actions_since.items()},
    )
