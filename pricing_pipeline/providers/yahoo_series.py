"""What Yahoo Finance says about one symbol, in a chart or as a member of a batch: its quote, or its daily bars.

Three oddities shape this file:
- Prices are binary32 numbers spelled out (129.0399932861328); noise.py finds what they were.
- Bars are divided by all splits that followed. Those in the answer are undone; if it does not reach the present,
  more may have followed, so its bars stay as they are and are marked as adjusted. Where there was none, `events` is
  left out: it may be missing, but not beside closes that something was taken off.
- The bar of a session in progress looks like all others. It is dropped until the session is surely over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from pricing_pipeline.domain import (
    Adjustment,
    Answer,
    Dividend,
    FailureKind,
    Fetcher,
    Observation,
    RejectedValue,
    Split,
    SymbolFailure,
    Window,
)
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Schema, said
from pricing_pipeline.providers.noise import before_division, without_noise
from pricing_pipeline.providers.values import (
    Implausible,
    check_bar,
    check_day,
    decimal_of,
    instant_of,
    major_unit,
    midnight,
    price_of,
    rescale,
    settle_days,
    spelling,
    volume_of,
    zone_of,
)

SETTLING = timedelta(hours=1)
"""How long after a session its bar may still change: exchanges delay what they give away by up to half an hour."""

_UNSPLIT = frozenset({"CURRENCY", "CRYPTOCURRENCY", "INDEX", "FUTURE"})
"""Types of instruments that have no splits."""
_LONGEST_WEEKEND, _LONGEST_HOLIDAY = timedelta(days=4), timedelta(days=14)
"""How much older than the newest price, and than today, the newest bar of an answer until now may be."""
_ROUNDED, _LAST_PLACE = Decimal("1e-5"), Decimal("2e-6")
_Ratio = tuple[Decimal, Decimal]
"""So many new shares for so many old ones."""
_WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)

Figure = int | Annotated[Decimal, Field(allow_inf_nan=True)]
"""A JSON number; NaN is refused value by value, as in values.py."""


class _Session(Schema):
    start: int
    end: int


class _Periods(Schema):
    regular: _Session


class _Meta(Schema):
    symbol: str
    currency: str
    price: Figure = Field(alias="regularMarketPrice")
    traded_at: int = Field(alias="regularMarketTime")
    zone: str | None = Field(None, alias="exchangeTimezoneName")
    instrument: str | None = Field(None, alias="instrumentType")
    interval: str | None = Field(None, alias="dataGranularity")
    periods: _Periods | None = Field(None, alias="currentTradingPeriod")


class _Shell(Schema):
    """What stands for `_Meta` where the symbol is unknown."""

    symbol: str
    currency: None = None
    price: Figure | None = Field(None, alias="regularMarketPrice")


class _Columns(Schema):
    open: list[Figure | None] | None = None
    high: list[Figure | None] | None = None
    low: list[Figure | None] | None = None
    close: list[Figure | None] | None = None
    volume: list[Figure | None] | None = None


class _Indicators(Schema):
    quote: list[_Columns] = Field(min_length=1, max_length=1)
    adjclose: object = None
    """Closes with dividends taken off, too: looked at only to see whether there were any."""


class _Split(Schema):
    date: int
    numerator: Figure
    denominator: Figure


class _Dividend(Schema):
    date: int
    amount: Figure


class _Events(Schema):
    splits: dict[str, _Split] = Field(default_factory=dict)
    dividends: dict[str, _Dividend] = Field(default_factory=dict)


class Series(Schema):
    """One symbol's answer of either endpoint."""

    meta: _Meta | _Shell
    timestamp: list[int] | None = None
    events: _Events | None = None
    indicators: _Indicators


class _Bar(Schema):
    """One line of a series: what its columns hold at one time stamp."""

    at: int
    open: Figure | None
    high: Figure | None
    low: Figure | None
    close: Figure
    volume: Figure | None


def read_series(
    fetcher: Fetcher,
    symbol: str,
    series: Series,
    window: Window | None,
    answered: datetime | None,
    now: datetime,
) -> Answer:
    """The quote, or the finished bars of the window's days, or why there is none. Raises SchemaDrift.

    `answered` is when the answer was made, by the provider's own clock.
    """
    meta, what = series.meta, f"yahoo's {fetcher!s} of {symbol}"
    try:
        if meta.symbol != symbol:
            raise Implausible(f"it is about {meta.symbol}")
        if isinstance(meta, _Shell):
            if meta.price:
                raise SchemaDrift(f"{what} names no currency; nothing was stored.")
            return unknown(symbol, "it answers with an empty shell")
        unit = major_unit(meta.currency)
        if fetcher is Fetcher.QUOTE:
            return Answer(observations=(_quote(meta, unit, now),))
        answer = settle_days(symbol, _bars(meta, series, unit, window, answered, now, what))
        return answer if answer.failures else _with_actions(answer, meta, series, unit, window, answered)
    except Implausible as fault:
        message = (
            f"{what} cannot be true: {said(str(fault))}. Nothing was stored; compare with another source."
        )
        return failed(symbol, FailureKind.IMPLAUSIBLE, message)


def _quote(meta: _Meta, unit: tuple[str, int], now: datetime) -> Observation:
    close = price_of(_meant(meta.price), "regularMarketPrice")
    check_bar(close)
    at = instant_of(meta.traded_at, now)
    return rescale(Observation(meta.symbol, at, close, spelling(meta.price), unit[0]), unit[1])


def _bars(
    meta: _Meta,
    series: Series,
    unit: tuple[str, int],
    window: Window | None,
    answered: datetime | None,
    now: datetime,
    what: str,
) -> list[Observation | RejectedValue]:
    """The finished bars of the window's days; days before and after it were asked for, too, and are left out."""
    lines = _lines(meta, series, what)
    if not lines:
        return []
    zone = zone_of(meta.zone or "")
    if zone is None:
        raise SchemaDrift(f"{what} names no known time zone ({said(str(meta.zone))}); nothing was stored.")
    unfinished, ratios = _unfinished_from(meta, zone, answered), _ratios(series, zone)
    is_whole = meta.instrument in _UNSPLIT
    if not is_whole and _reaches_present(meta, series, zone, unfinished):
        _check_events(meta, series)
        is_whole = True
    found: dict[date, list[_Bar]] = {}
    rejected = []
    for at, bar in lines:
        try:
            day = _local(at, zone)
        except Implausible as fault:
            rejected.append(
                RejectedValue(meta.symbol, None, str(fault), spelling(bar.close if bar else None))
            )
            continue
        is_asked = window is None or window.start <= day <= window.end
        if bar is not None and is_asked and day < unfinished:
            found.setdefault(day, []).append(bar)
    return rejected + [
        _bar(day, bar, meta, unit, _ratio(ratios, day) if is_whole else None, now)
        for day, bars in found.items()
        for bar in _without_twin(bars, meta.traded_at)
    ]


def _lines(meta: _Meta, series: Series, what: str) -> list[tuple[int, _Bar | None]]:
    """The bars as they came, None where there is a hole. Raises SchemaDrift if their columns do not match."""
    stamps, columns = series.timestamp or [], series.indicators.quote[0]
    given = (columns.open, columns.high, columns.low, columns.close, columns.volume)
    if any(column is not None and len(column) != len(stamps) for column in given):
        raise SchemaDrift(f"{what} has columns of other lengths than its time stamps; nothing was stored.")
    if not stamps:
        return []
    if columns.close is None or meta.interval != "1d":
        raise SchemaDrift(
            f"{what} has no closes, or not one a day ({said(str(meta.interval))}); nothing was stored."
        )
    empty = [None] * len(stamps)
    return [
        (
            at,
            None
            if close is None
            else _Bar(at=at, open=open_, high=high, low=low, close=close, volume=volume),
        )
        for at, open_, high, low, close, volume in zip(
            stamps, *(column or empty for column in given), strict=True
        )
    ]


def _without_twin(bars: list[_Bar], traded_at: int) -> list[_Bar]:
    """One day's bars; beside the day's own Yahoo may send one stamped with the newest trade, which is then right."""
    newest = [bar for bar in bars if bar.at == traded_at]
    return newest or bars


def _local(epoch_seconds: int, zone: ZoneInfo) -> date:
    """The exchange's day: opening times in Sydney lie on the UTC day before."""
    try:
        return datetime.fromtimestamp(epoch_seconds, zone).date()
    except (ValueError, OverflowError, OSError):
        raise Implausible(f"time stamp {epoch_seconds} lies beyond the calendar") from None


def _unfinished_from(meta: _Meta, zone: ZoneInfo, answered: datetime | None) -> date:
    """The first day whose bar may still change.

    A session is over once something was traded at or after its end, or, for what is seldom traded, when the answer
    was made long enough after it. Only the answer's own clock counts, so that a replayed answer reads the same.
    """
    if meta.periods is not None:
        day, end = _local(meta.periods.regular.start, zone), meta.periods.regular.end
    else:
        day = _local(meta.traded_at, zone)
        end = int(datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).timestamp())
    is_settled = answered is not None and answered.timestamp() >= end + SETTLING.total_seconds()
    return day + timedelta(days=1) if meta.traded_at >= end or is_settled else day


def _reaches_present(meta: _Meta, series: Series, zone: ZoneInfo, unfinished: date) -> bool:
    """Whether a bar proves that the answer goes on until now, and so names all splits."""
    days = set()
    for at in series.timestamp or ():
        try:
            days.add(_local(at, zone))
        except Implausible:
            continue  # its bar is refused by itself
    traded = _local(meta.traded_at, zone)
    # Some funds are years behind with the time of their price, so that does not prove it alone.
    present = max(traded - _LONGEST_WEEKEND, unfinished - _LONGEST_HOLIDAY)
    # What is delisted, or suspended, has its newest bar on the day of its newest price, however long ago.
    return any(present <= day <= unfinished for day in days) or max(days, default=None) == traded


def _check_events(meta: _Meta, series: Series) -> None:
    """Raise Implausible where the answer names no event, and its own closes tell of one.

    Funds are not looked at: what they pay out of capital gains is no event that was asked for.
    """
    events, column = series.events, series.indicators.adjclose
    if meta.instrument != "EQUITY" or (events is not None and (events.splits or events.dividends)):
        return
    adjusted = column[0].get("adjclose") if isinstance(column, list) and _is_object(column) else None
    closes = series.indicators.quote[0].close
    if closes is None or not isinstance(adjusted, list):
        return
    if any(_differ(close, other) for close, other in zip(closes, adjusted, strict=False)):
        raise Implausible(
            "it names neither a split nor a dividend, though its adjusted closes differ from its closes: its list "
            "of events is missing, and nobody knows by which splits its prices are divided"
        )


def _is_object(column: list[object]) -> bool:
    return len(column) == 1 and isinstance(column[0], dict)


def _differ(close: Figure | None, adjusted: object) -> bool:
    """Whether two closes of one day are further apart than binary32 and six places round."""
    if close is None or isinstance(adjusted, bool) or not isinstance(adjusted, int | Decimal):
        return False
    a, b = Decimal(close), Decimal(adjusted)
    return a.is_finite() and b.is_finite() and abs(a - b) > abs(a) * _ROUNDED + _LAST_PLACE


def _with_actions(
    answer: Answer,
    meta: _Meta,
    series: Series,
    unit: tuple[str, int],
    window: Window | None,
    answered: datetime | None,
) -> Answer:
    """The answer with its splits, and its dividends as they were paid: Yahoo divides them by later splits, too.

    Without them if it does not reach the present: then it is not known what they were divided by.
    """
    zone = zone_of(meta.zone or "")
    if zone is None or not series.timestamp:
        return answer
    days = [_local(at, zone) for at in series.timestamp]
    if not _reaches_present(meta, series, zone, _unfinished_from(meta, zone, answered)):
        return answer
    ratios = _ratios(series, zone)
    paid: dict[date, Decimal] = {}
    rejected = []
    for dividend in series.events.dividends.values() if series.events else ():
        day = _local(dividend.date, zone)
        try:
            cash = _undivided(price_of(_meant(dividend.amount), "a dividend"), _ratio(ratios, day))
            paid[day] = paid.get(day, Decimal(0)) + cash.scaleb(unit[1])
        except Implausible as fault:
            reason = f"the dividend of {day}: {fault}"
            rejected.append(RejectedValue(meta.symbol, midnight(day), reason, spelling(dividend.amount)))
    splits = [Split(meta.symbol, day, new, old) for day, new, old in ratios if new != old]
    dividends = [Dividend(meta.symbol, day, cash, unit[0]) for day, cash in sorted(paid.items())]
    return replace(
        answer,
        rejected=(*answer.rejected, *rejected),
        actions=(*splits, *dividends),
        actions_since={meta.symbol: min(days) if window is None else window.start},
    )


def _ratios(series: Series, zone: ZoneInfo) -> list[tuple[date, Decimal, Decimal]]:
    """The splits: their first day, new shares, and the old ones that they stand for."""
    splits = series.events.splits.values() if series.events else ()
    return [
        (
            _local(split.date, zone),
            price_of(_meant(split.numerator), "a split's numerator"),
            price_of(_meant(split.denominator), "a split's denominator"),
        )
        for split in splits
    ]


def _ratio(ratios: Sequence[tuple[date, Decimal, Decimal]], day: date) -> _Ratio:
    """What splits after `day` have made of its shares: so many new for so many old ones."""
    new, old = Decimal(1), Decimal(1)
    for since, numerator, denominator in ratios:
        if since > day:
            new, old = _WIDE.multiply(new, numerator), _WIDE.multiply(old, denominator)
    return new, old


def _bar(
    day: date,
    bar: _Bar,
    meta: _Meta,
    unit: tuple[str, int],
    ratio: _Ratio | None,
    now: datetime,
) -> Observation | RejectedValue:
    """One day; without `ratio` its prices stay divided by splits that the answer does not reach."""
    text, at = spelling(bar.close), midnight(day)

    def price(raw: Figure | None, what: str) -> Decimal | None:
        return None if raw is None else _undivided(price_of(_meant(raw), what), ratio)

    try:
        check_day(day, None, now)
        close = price_of(price(bar.close, "close"))
        open_, high, low = price(bar.open, "open"), price(bar.high, "high"), price(bar.low, "low")
        check_bar(close, open_, high, low)
        observation = Observation(
            symbol=meta.symbol,
            observed_at=at,
            close=close,
            text=text,
            currency=unit[0],
            open=open_,
            high=high,
            low=low,
            volume=_unmultiplied(volume_of(bar.volume), ratio),
            adjustment=Adjustment.SPLITS if ratio is None else Adjustment.RAW,
        )
        return rescale(observation, unit[1])
    except Implausible as fault:
        return RejectedValue(meta.symbol, at, str(fault), text)


def _meant(raw: Figure) -> Decimal:
    """The number without binary noise; what is no finite number stays what it is, to be refused."""
    value = Decimal(raw)
    return without_noise(value) if value.is_finite() else value


def _undivided(price: Decimal, ratio: _Ratio | None) -> Decimal:
    """The price before the splits."""
    if ratio is None or ratio[0] == ratio[1]:
        return price
    try:
        return price_of(before_division(price, *ratio), "the price before its splits")
    except ArithmeticError:
        raise Implausible(f"{price} cannot be a price divided by splits") from None


def _unmultiplied(volume: Decimal | None, ratio: _Ratio | None) -> Decimal | None:
    """The volume before the splits, in whole shares."""
    if volume is None or ratio is None or ratio[0] == ratio[1]:
        return volume
    return decimal_of(_WIDE.divide(_WIDE.multiply(volume, ratio[1]), ratio[0]).to_integral_value(), "volume")


def failed(symbol: str, kind: FailureKind, message: str) -> Answer:
    return Answer(failures=(SymbolFailure(symbol, kind, message),))


def unknown(symbol: str, why: str) -> Answer:
    message = (
        f"yahoo knows no {symbol}, or no longer: {why.rstrip('.')}. "
        "Correct the symbol, route it to another provider, or retire the instrument if it was delisted."
    )
    return failed(symbol, FailureKind.UNKNOWN_SYMBOL, message)
