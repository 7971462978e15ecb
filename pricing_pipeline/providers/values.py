"""Values as providers spell them: numbers, currencies, days, and whether they can be true.

Parsers of all providers use this module to turn a spelling into an exact value, and to tell bad values from good ones
(requirement B18). Nothing here knows a provider, a URL or a response's shape. No value passes through a binary float
(requirement A9).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from pricing_pipeline.domain.answers import (
    Answer,
    Document,
    FailureKind,
    RejectedValue,
    SpinOff,
    Split,
    SymbolFailure,
)
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS

if TYPE_CHECKING:
    from pricing_pipeline.domain.bars import Column
    from pricing_pipeline.providers.flat import FlatRows

T = TypeVar("T")
Number = str | int | Annotated[Decimal, Field(allow_inf_nan=True)]
"""A number in a decoded answer: providers send strings, JSON numbers, or both.

NaN is let through to `decimal_of`, which refuses that one value and not the whole answer.
"""

MAX_DIGITS = 18
"""Digits an amount may have: what a signed 64-bit integer surely holds."""
MAX_SCALE = 18
"""Decimal places an amount may have."""
_LARGEST_SPLIT = 1000
_LARGEST_VOLUME = 10**18 - 1
"""Coins in small units trade more than 10^15 a day: bitcoin in Iranian rial does."""
_FAR = 2
_FIRST_DAY = date(1602, 1, 1)
"""The exchange of Amsterdam is the oldest. One cannot count back from the calendar's first days."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far a source's clock may run ahead of ours."""

LATEST_REACH = timedelta(days=60)
"""How far before its newest day an answer for the latest few days may go, where markets are closed or trade seldom."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_NUMBER = re.compile(_PLAIN.pattern + r"(?:[eE][+-]?[0-9]{1,6})?")
# Longer spellings are refused before any arithmetic: Decimal keeps every digit, and a provider
# could make us hold and print a billion of them.
_MAX_SPELLING = 64
ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
IsoDay = Annotated[str, Field(pattern=f"^{ISO_DAY.pattern}$")]


class Implausible(ValueError):
    """A value that is well formed as text but cannot be a true price, volume or time."""


def json_number(literal: str) -> int | Decimal:
    """Decode a JSON number exactly: the hook for `json.loads`. What cannot be a value becomes NaN."""
    if len(literal) <= MAX_DIGITS and literal.lstrip("-").isdigit():
        return int(literal)
    if len(literal) > _MAX_SPELLING:
        return Decimal("NaN")
    try:
        return Decimal(literal)
    except InvalidOperation:
        return Decimal("NaN")


def spelling(raw: object) -> str:
    """The source's own spelling of a decoded number, at most 64 characters."""
    if raw is None:
        return "null"
    if isinstance(raw, Decimal) and raw.is_finite():
        exponent = raw.as_tuple().exponent
        # str() would turn the literal 0.0000001 into 1E-7; format() would write 1e999999 out.
        if isinstance(exponent, int) and -_MAX_SPELLING < exponent <= 0:
            return format(raw, "f")[:_MAX_SPELLING]
    return str(raw)[:_MAX_SPELLING]


def decimal_of(raw: object, what: str) -> Decimal:
    """The exact value of `raw`. Raises Implausible unless it is finite and fits 18 digits."""
    if type(raw) is str and len(raw) <= MAX_DIGITS and _PLAIN.fullmatch(raw):
        return Decimal(raw)  # written out, so short a number cannot have more digits
    text = spelling(raw)
    is_number = isinstance(raw, str | int | Decimal) and not isinstance(raw, bool)
    if not is_number or len(text) >= _MAX_SPELLING or not _NUMBER.fullmatch(text):
        raise Implausible(f"{what} {text!r} is not a finite decimal number")
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):  # pragma: no cover - the pattern admits finite numbers only
        raise Implausible(f"{what} {text!r} is not a finite decimal number")
    if len(digits) + max(exponent, 0) > MAX_DIGITS:
        raise Implausible(f"{what} {text!r} has more than {MAX_DIGITS} digits")
    if -exponent > MAX_SCALE:
        raise Implausible(f"{what} {text!r} has more than {MAX_SCALE} decimal places")
    return value


def price_of(raw: object, what: str = "price") -> Decimal:
    """The exact price, in the unit it is quoted in. Raises Implausible unless finite and above zero."""
    value = decimal_of(raw, what)
    if value <= 0:
        unsupported = "; prices below it are not supported" if value else ""
        raise Implausible(f"{what} {spelling(raw)!r} is not above zero{unsupported}")
    return value


def volume_of(raw: object, what: str = "volume") -> Decimal:
    """The exact traded volume. Raises Implausible unless finite, 0 or more and of 18 digits at most."""
    value = decimal_of(raw, what)
    if value < 0:
        raise Implausible(f"{what} {spelling(raw)!r} is negative")
    if value > _LARGEST_VOLUME:
        raise Implausible(f"{what} {spelling(raw)!r} is more than anything trades")
    return value


Reader = Callable[[object, str], Decimal]
"""Reads one value, of this name in messages. Raises Implausible."""


def bar_of(
    symbol: str,
    at: datetime,
    fields: Mapping[str, object],
    currency: str | None,
    *,
    price: Reader = price_of,
    volume: Reader = volume_of,
    adjustment: Adjustment = Adjustment.RAW,
) -> Observation:
    """A day's bar from its open, high, low, close and volume as the source has them, by these names.

    Only the close is needed. Other parts may be null or empty; an unreadable part is dropped, and `quality` says so.
    Whether they can be true beside the close is for fields.py. Raises Implausible for the close.
    """
    close = price(fields["close"], "close")
    parts: dict[str, Decimal] = {}
    faults: list[str] = []
    for name, read in (("open", price), ("high", price), ("low", price), ("volume", volume)):
        raw = fields[name]
        if raw is None or raw == "":
            continue
        try:
            parts[name] = read(raw, name)
        except Implausible as fault:
            faults.append(str(fault))
    return Observation(
        symbol,
        at,
        close,
        spelling(fields["close"]),
        currency,
        parts.get("open"),
        parts.get("high"),
        parts.get("low"),
        parts.get("volume"),
        adjustment,
        "; ".join(faults) or None,
    )


def plain_price(raw: object) -> Decimal | None:
    """The exact price, or None for anything else."""
    try:
        return price_of(raw)
    except Implausible:
        return None


def check_range(price: Decimal, high: Decimal | None, low: Decimal | None) -> None:
    """Raise Implausible for a quote whose day's range is inside out, or in another unit than its price.

    A price a little beside the range of its day is true: ranges come late, or leave out trades.
    """
    if high is not None and low is not None and low > high:
        raise Implausible(f"its low of {low:f} is above its high of {high:f}")
    if high is not None and price > _FAR * high:
        raise Implausible(f"its price of {price:f} is far above its high of {high:f}")
    if low is not None and price * _FAR < low:
        raise Implausible(f"its price of {price:f} is far below its low of {low:f}")


_MOST_PLACES = 9


def plain_bars(
    symbol: str,
    currency: str,
    rows: FlatRows,
    window: Window,
    *,
    day: str = "date",
    close: str = "close",
    adjustment: Adjustment = Adjustment.RAW,
) -> Bars | None:
    """Daily bars by columns, as an answer has them, if all are spelled as nearly all answers are; else None.

    Days are ISO dates in the column `day`; the others are named open, high, low, `close` and volume. What it gives
    has passed every check of `price_of`, `volume_of`, `calendar_day` and `check_day` (the window must be over), and is
    in order, one a day. With nine digits on either side of the point, the four fit 18 at any scale. One unusual value,
    and all are read one by one.
    """
    import numpy as np

    prices = ("open", "high", "low", close)
    if not {day, "volume", *prices} <= set(rows.names):
        return None
    ordinals, places = _ordinals(rows, day), len(rows.texts(close)[0].partition(".")[2])
    is_plain = (
        ordinals is not None
        and 0 < places <= _MOST_PLACES
        and all(_are_decimals(rows, name, places) for name in prices)
        and rows.count(".") == len(prices) * len(rows)
        and rows.count("-") == 2 * len(rows)
    )
    if ordinals is None or not is_plain:
        return None
    opens, highs, lows, closes = (np.ascontiguousarray(rows.numbers(name)) for name in prices)
    is_sound = (
        min(column.min() for column in (opens, highs, lows, closes)) > 0
        and rows.numbers("volume").max() <= _LARGEST_VOLUME
        and _EPOCH.date().toordinal() not in ordinals
        and window.start.toordinal() <= ordinals[0]
        and ordinals[-1] <= window.end.toordinal()
    )
    if not is_sound:
        return None
    return Bars(
        *(symbol, currency, adjustment, ordinals, places),
        *((opens, highs, lows, closes), np.ascontiguousarray(rows.numbers("volume")), rows.texts(close)),
    )


def _are_decimals(rows: FlatRows, name: str, places: int) -> bool:
    """Whether figures have up to nine digits, and `places` more behind a point; the caller counts points."""
    lengths = rows.lengths(name)
    return bool(
        lengths.min() > places + 1 and lengths.max() <= _MOST_PLACES + 1 + places and rows.have(name, ".", places)
    )


def _ordinals(rows: FlatRows, name: str) -> Column | None:
    """The numbers of ISO days, if they are in order; the caller counts dashes."""
    import numpy as np

    if set(rows.lengths(name)) != {10} or not (rows.have(name, "-", 5) and rows.have(name, "-", 2)):
        return None
    years, rest = np.divmod(rows.numbers(name), 10_000)
    months, days = np.divmod(rest, 100)
    firsts = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    days_of_rows = firsts.astype("datetime64[D]") + (days - 1)
    # A 31st of June is in July.
    if not ((months >= 1) & (months <= 12) & (days_of_rows.astype("datetime64[M]") == firsts)).all():
        return None
    ordinals: Column = days_of_rows.astype(np.int64) + date(1970, 1, 1).toordinal()
    return ordinals if (ordinals[1:] > ordinals[:-1]).all() else None


def major_unit(currency: str) -> tuple[str, int]:
    """The code of CURRENCIES for `currency`, and the power of ten that turns its quotes into that unit.

    Pence sterling (`GBp`) give `("GBP", -2)`; coins that prices are told in (`BTC`, `USDT`) stand for themselves.
    Raises Implausible for an unknown currency.
    """
    if currency in PARTS:
        return PARTS[currency]
    if currency not in CURRENCIES:
        raise Implausible(
            f"currency {currency[:20]!r} is neither an ISO 4217 code nor a coin or part of a currency that is known"
        )
    return currency, 0


def in_major_unit(price: Decimal, power: int) -> Decimal:
    """A price times ten to `power` (never above 0), exactly. Raises Implausible if that has too many places."""
    sign, digits, exponent = price.as_tuple()
    if -int(exponent) - power > MAX_SCALE:
        raise Implausible(f"price {price} has more than {MAX_SCALE} decimal places in its major unit")
    return Decimal((sign, digits, int(exponent) + power))


class UnconfirmedSplit(Implausible):
    """A split that is larger than any other: only a person is believed about it."""

    def __init__(self, split: Split) -> None:
        self.split = split
        super().__init__(
            f"a split of {split.new_shares:f} for {split.old_shares:f} is larger than {_LARGEST_SPLIT} to 1; "
            f"{to_enter(split)}"
        )


def to_enter(split: Split) -> str:
    """The command with which a person confirms a split."""
    return (
        f"if it is true, enter it: pricing-pipeline action add {split.symbol} {split.ex_on} "
        f"--split {split.new_shares:f}:{split.old_shares:f}"
    )


def split_of(symbol: str, day: date, new_shares: Decimal, old_shares: Decimal) -> Split:
    """A split, or the spin-off that a provider tells as one.

    Raises Implausible for one that changes nothing, UnconfirmedSplit for one that is too large.
    """
    if new_shares == old_shares:
        raise Implausible(f"a split of {new_shares:f} for {old_shares:f} is impossible")
    kind = SpinOff if _is_spin_off(Fraction(new_shares) / Fraction(old_shares)) else Split
    split = kind(symbol, day, new_shares, old_shares)
    if max(new_shares, old_shares) > _LARGEST_SPLIT * min(new_shares, old_shares):
        raise UnconfirmedSplit(split)
    return split


_MOST_OLD_SHARES = 100
"""A company splits by small numbers: 3 for 2, a stock dividend of 21 for 20, or 56 for 45 at the oddest."""


def _is_spin_off(shares: Fraction) -> bool:
    """Whether no company splits so: the ratio is what the prices of two days make it, like 1253 for 1000.

    A spin-off lowers the price, so a reverse split is not one. Neither is a rounded third or sixth, like 1333
    for 1000.
    """
    is_rounded = abs(shares - Fraction(round(shares * 6), 6)) <= Fraction(1, 2000)
    return shares > 1 and shares.denominator > _MOST_OLD_SHARES and not is_rounded


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


def calendar_day(raw: object) -> date:
    """The day of an ISO date. Raises Implausible for one that is not in the calendar."""
    text = spelling(raw)
    try:
        if isinstance(raw, str) and ISO_DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise Implausible(f"{text!r} is not a day of the calendar")


def check_day(day: date, now: datetime, zone: tzinfo | None = None) -> None:
    """Raise Implausible for a day after today in its zone, and for the day of an epoch stamp that is 0.

    Without a zone, tomorrow in UTC may have begun somewhere. Neither is a day before the first exchange true. Nothing
    was traded on New Year's Day of 1970; the days before it are those of indices and old shares.
    """
    if day < _FIRST_DAY:
        raise Implausible(f"day {day} lies before the first exchange")
    last = (now + timedelta(days=1)).astimezone(UTC).date() if zone is None else now.astimezone(zone).date()
    if day > last:
        raise Implausible(f"day {day} lies in the future" + ("" if zone is None else f" of {zone}"))
    if day == _EPOCH.date():
        raise Implausible(f"day {day} says that there is no time")


NO_CURRENCY = "its answer names no currency"
"""Begins the quality of a value whose currency its provider should have named. See judging/answers.py."""


def without_currency(row: Observation) -> Observation:
    """A value whose provider names a currency elsewhere, with that noted."""
    return replace(row, quality="; ".join(filter(None, (NO_CURRENCY, row.quality))))


def is_to_come(day: date, values: Iterable[object], now: datetime) -> bool:
    """Whether a row is a place for a day that is not over yet, without a value. Some providers send such rows."""
    return day >= now.astimezone(UTC).date() and all(value in (None, "") for value in values)


def of_day(symbol: str, raw_day: object, raw: object, make: Callable[[date], T]) -> T | RejectedValue:
    """The value that `make` reads on an ISO day; the row as rejected where either cannot be true."""
    at = None
    try:
        day = calendar_day(raw_day)
        at = midnight(day)
        return make(day)
    except Implausible as fault:
        return RejectedValue(symbol, at, str(fault), spelling(raw))


def daily_bar(
    symbol: str,
    raw_day: object,
    fields: Mapping[str, object],
    currency: str | None,
    now: datetime,
    *,
    price: Reader = price_of,
    adjustment: Adjustment = Adjustment.RAW,
) -> Observation | RejectedValue | None:
    """The bar of an ISO day as `bar_of` reads it; None for a day that is not over and has no value."""

    def read(day: date) -> Observation | None:
        if is_to_come(day, [fields[name] for name in ("open", "high", "low", "close")], now):
            return None
        check_day(day, now)
        return bar_of(symbol, midnight(day), fields, currency, price=price, adjustment=adjustment)

    return of_day(symbol, raw_day, fields["close"], read)


def settle_days(
    symbol: str, rows: Iterable[Observation | RejectedValue | None], window: Window | None = None
) -> Answer:
    """One symbol's daily rows as an Answer, oldest first. None is a row that says nothing.

    Days that nobody asked for are counted: those outside the window, or without one those of before LATEST_REACH. Of
    equal rows for one day the first stays, however they are spelled; rows that contradict each other are all
    rejected, since nothing tells which is true. Without rows the symbol is `empty`; without a good one it has failed.
    """
    told: Sequence[_Row] = [row for row in rows if row is not None]
    asked, outside = _asked(told, window)
    good = [row for row in asked if isinstance(row, Observation)]
    if good and len(good) == len(told) and all(a.observed_at < b.observed_at for a, b in pairwise(good)):
        return Answer(observations=Rows(good))
    by_day: defaultdict[datetime, list[Observation]] = defaultdict(list)
    for row in good:
        by_day[row.observed_at].append(row)
    rejected = [row for row in asked if isinstance(row, RejectedValue)]
    kept: list[Observation] = []
    for at in sorted(by_day):
        first, *others = by_day[at]
        if all(replace(other, text=first.text) == first for other in others):
            kept.append(first)
            surplus, reason = others, f"day {at.date()} appears more than once"
        else:
            surplus, reason = [first, *others], f"day {at.date()} appears with different values"
        rejected.extend(RejectedValue(symbol, at, reason, row.text) for row in surplus)
    unread = _unread(rejected, kept, window)
    rejected += _outside(symbol, outside, window)
    if kept:
        return Answer(observations=Rows(kept), rejected=tuple(rejected), unread={symbol: unread} if unread else {})
    if not rejected:
        return Answer(empty=frozenset({symbol}))
    return _nothing_believed(symbol, rejected)


_Row = Observation | RejectedValue
_EXAMPLES = 3


def _asked(rows: Sequence[_Row], window: Window | None) -> tuple[Sequence[_Row], Sequence[Observation]]:
    """The rows of requested days and the rejected ones, and separately the good rows of other days."""
    days = [row.observed_at for row in rows if isinstance(row, Observation)]
    if not days:
        return rows, ()
    first, last = max(days) - LATEST_REACH, max(days)
    if window is not None:
        first, last = midnight(window.start), midnight(window.end)
    asked: list[_Row] = []
    outside: list[Observation] = []
    for row in rows:
        if isinstance(row, RejectedValue) or first <= row.observed_at <= last:
            asked.append(row)
        else:
            outside.append(row)
    return asked, outside


def _unread(rejected: Sequence[RejectedValue], kept: Sequence[Observation], window: Window | None) -> frozenset[date]:
    """The days of the window without a value that refused ones may be of."""
    if window is None or not rejected:
        return frozenset()
    named = {row.observed_at.date() for row in rejected if row.observed_at is not None}
    asked = {window.start + timedelta(days=n) for n in range((window.end - window.start).days + 1)}
    are_named = all(row.observed_at is not None for row in rejected)
    return frozenset((asked & named if are_named else asked) - {row.observed_at.date() for row in kept})


def _outside(symbol: str, outside: Sequence[Observation], window: Window | None) -> list[RejectedValue]:
    """One rejected value for all values that were not asked for."""
    if not outside:
        return []
    asked = f"{window.start}..{window.end}" if window else f"{LATEST_REACH.days} days until the newest"
    return [unasked(symbol, outside, f"lie outside the asked {asked}")]


def unasked(symbol: str, rows: Sequence[Observation], why: str) -> RejectedValue:
    """The rejected value that stands for values that nobody asked for: their number, why, and the first of them."""
    first = ", ".join(f"{row.text} of {row.observed_at.date()}" for row in rows[:_EXAMPLES])
    reason = f"{len(rows)} value(s) {why}; the first: {first}"
    return RejectedValue(symbol, None, reason, "values outside", len(rows), Rows(rows))


def only(symbol: str, values: Sequence[_Row]) -> list[_Row]:
    """The one latest value of a symbol. If several differ, none is believed, because nothing shows which is true."""
    good = [value for value in values if isinstance(value, Observation)]
    bad = [value for value in values if isinstance(value, RejectedValue)]
    if len({(value.observed_at, value.close, value.currency) for value in good}) <= 1:
        return [*good[:1], *bad]
    reason = f"the answer has {len(good)} rows of this symbol, which differ"
    return [*(RejectedValue(symbol, value.observed_at, reason, value.text) for value in good), *bad]


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
        return Answer(records=tuple(kept), rejected=tuple(rejected))
    if not rejected:
        return Answer(empty=frozenset({symbol}))
    return _nothing_believed(symbol, rejected)


def _nothing_believed(symbol: str, rejected: Sequence[RejectedValue]) -> Answer:
    count = sum(value.count for value in rejected)
    if all(value.unasked for value in rejected):
        message = f"no value of {symbol} is of the days that were asked for: {rejected[0].reason}."
    else:
        message = f"none of the {count} values for {symbol} can be true; the first: {rejected[0].reason}. "
        # What came unasked may be stored.
        nothing = "" if any(value.unasked for value in rejected) else "Nothing was stored; compare"
        message += f"{nothing or 'Compare'} with another source."
    return Answer(failures=(SymbolFailure(symbol, FailureKind.IMPLAUSIBLE, message),), rejected=tuple(rejected))


def merge_found(answers: Sequence[Answer]) -> Answer:
    """The answers of several symbols as one. Raises SchemaDrift if none of them was found."""
    if all([failure.kind for failure in answer.failures] == [FailureKind.SCHEMA_DRIFT] for answer in answers):
        raise SchemaDrift(f"of {len(answers)} symbols none was found; of the first: {answers[0].failures[0].message}")
    return merge(answers)


def merge(answers: Sequence[Answer]) -> Answer:
    """The answers of several symbols as one."""
    return Answer(
        observations=Rows(item for answer in answers for item in answer.observations),
        failures=tuple(item for answer in answers for item in answer.failures),
        empty=frozenset().union(*(answer.empty for answer in answers)),
        rejected=tuple(item for answer in answers for item in answer.rejected),
        records=tuple(item for answer in answers for item in answer.records),
        actions=tuple(item for answer in answers for item in answer.actions),
        actions_since={symbol: day for answer in answers for symbol, day in answer.actions_since.items()},
        gains_reported=frozenset().union(*(answer.gains_reported for answer in answers)),
        unread={symbol: days for answer in answers for symbol, days in answer.unread.items()},
        unsplit=frozenset().union(*(answer.unsplit for answer in answers)),
        left_out=sum(answer.left_out for answer in answers),
    )
