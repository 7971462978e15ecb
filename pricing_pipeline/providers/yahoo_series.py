"""Read Yahoo Finance's answer about one symbol, in a chart or in a batch: its quote, or its daily bars.

Four oddities shape this file:
- Single values and events are broken at times. Each is read separately, so that it costs at most its day.
- Prices are binary32 numbers spelled out (129.0399932861328); noise.py finds what they were.
- Bars are divided by all splits that followed. Those in the answer are undone; if it does not reach the present,
  more may have followed, so its bars stay as they are and are marked as adjusted. Where there was none, `events` is
  left out: it may be missing, but not beside closes that something was taken off.
- The bar of a session in progress looks like all others. It is dropped until the session is surely over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, TypeGuard
from zoneinfo import ZoneInfo

from pydantic import Discriminator, Field, Tag

from pricing_pipeline.domain.answers import (
    Answer,
    FailureKind,
    RejectedValue,
    Split,
    Unconfirmed,
)
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import MAX_DAYS, Question, Schema, check_count, failed, safe_words, untrue
from pricing_pipeline.providers.exchange_days import check_offset, day_of, local_day, zone_of
from pricing_pipeline.providers.splits import Splits, undivided, unmultiplied
from pricing_pipeline.providers.values import (
    LATEST_REACH,
    Implausible,
    bar_of,
    check_day,
    in_major_unit,
    instant_of,
    is_to_come,
    major_unit,
    midnight,
    settle_days,
    spelling,
    volume_of,
    without_currency,
)
from pricing_pipeline.providers.yahoo_series_events import (
    Events,
    meant,
    payments_of,
    splits_of,
)

SETTLING = timedelta(hours=1)
"""How long after a session its bar may still change: exchanges delay what they give away by up to half an hour."""

_UNSPLIT = frozenset({"CURRENCY", "CRYPTOCURRENCY", "INDEX", "FUTURE"})
"""Types of instruments that have no splits."""
_LONGEST_WEEKEND, _LONGEST_HOLIDAY = timedelta(days=4), timedelta(days=14)
"""How much older than the newest price, and than today, the newest bar of an answer until now may be."""
_ROUNDED, _LAST_PLACE = Decimal("1e-5"), Decimal("2e-6")

_DAYS_BEFORE = timedelta(days=2)
"""How much earlier than the window's first day an answer may begin: see `Yahoo.build`, and zones behind UTC."""


class _Session(Schema):
    start: int
    end: int


class _Periods(Schema):
    regular: _Session


Unit = tuple[str | None, int]
"""The currency of prices, None if it is not named, and how many decimal places they are away from its major unit."""


class _Meta(Schema):
    symbol: str
    currency: str | None
    price: object = Field(alias="regularMarketPrice")
    traded_at: int = Field(alias="regularMarketTime")
    zone: str | None = Field(None, alias="exchangeTimezoneName")
    offset: object = Field(None, alias="gmtoffset")
    instrument: str | None = Field(None, alias="instrumentType")
    interval: str | None = Field(None, alias="dataGranularity")
    periods: _Periods | None = Field(None, alias="currentTradingPeriod")


class _Shell(Schema):
    """Yahoo's answer about an unknown symbol, in place of `_Meta`."""

    symbol: str
    price: object = Field(None, alias="regularMarketPrice")


def _kind_of_meta(meta: object) -> str:
    has_price = isinstance(meta, dict) and meta.get("regularMarketPrice")
    return "shell" if isinstance(meta, dict) and meta.get("currency") is None and not has_price else "full meta"


class _Columns(Schema):
    open: list[object] | None = None
    high: list[object] | None = None
    low: list[object] | None = None
    close: list[object] | None = None
    volume: list[object] | None = None


class _Indicators(Schema):
    quote: list[_Columns] = Field(min_length=1, max_length=1)
    adjclose: object = None
    """Closes with dividends taken off, too: looked at only to see whether there were any."""


class Series(Schema):
    """One symbol's answer of either endpoint."""

    meta: Annotated[Annotated[_Meta, Tag("full meta")] | Annotated[_Shell, Tag("shell")], Discriminator(_kind_of_meta)]
    timestamp: list[object] | None = None
    events: Events | None = None
    indicators: _Indicators


class _Bar(Schema):
    """One line of a series: what its columns hold at one time stamp."""

    at: object
    open: object
    high: object
    low: object
    close: object
    volume: object


def read_series(question: Question, symbol: str, series: Series, answered: datetime | None) -> Answer:
    """The quote, or the finished bars of the window's days, or why it has none. Raises SchemaDrift.

    `answered` is when the answer was made, by the provider's own clock.
    """
    meta, what, now = series.meta, f"yahoo's {question.fetcher!s} of {symbol}", question.now
    try:
        if meta.symbol != symbol:
            raise Implausible(f"it is about {meta.symbol}")
        if isinstance(meta, _Shell):
            return unknown(symbol, "it answers with an empty shell")
        unit = (None, 0) if meta.currency is None else major_unit(meta.currency)
        if question.fetcher is Fetcher.QUOTE:
            return Answer(observations=Rows([_quote(meta, unit, now)]))
        asked = _Asked(question.window, answered, now, what)
        answer, unconfirmed = _days(meta, series, unit, asked)
        if unconfirmed:
            confirmed, _ = _days(meta, series, unit, replace(asked, are_confirmed=True))
            answer = replace(answer, unconfirmed=Unconfirmed(tuple(unconfirmed), confirmed))
        return answer
    except Implausible as fault:
        return untrue(symbol, what, fault)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The requested days, the time of the request, and how to read the answer: `are_confirmed` as in `splits_of`."""

    window: Window | None
    answered: datetime | None
    now: datetime
    what: str
    are_confirmed: bool = False


def _days(meta: _Meta, series: Series, unit: Unit, asked: _Asked) -> tuple[Answer, list[Split]]:
    """The finished days, and the splits that only a person is believed about."""
    chart = _read(meta, series, asked)
    if chart is None:
        return Answer(empty=frozenset({meta.symbol})), []
    answer = settle_days(meta.symbol, _bars(chart, meta, unit), asked.window)
    if meta.instrument in _UNSPLIT:
        answer = replace(answer, unsplit=frozenset({meta.symbol}))
    if not answer.failures and unit[0] is not None:
        answer = _with_actions(answer, chart, meta, series, unit, asked.window, asked.now)
    return answer, chart.unconfirmed


def _quote(meta: _Meta, unit: Unit, now: datetime) -> Observation:
    close = in_major_unit(meant(meta.price, "regularMarketPrice"), unit[1])
    quote = Observation(meta.symbol, instant_of(meta.traded_at, now), close, spelling(meta.price), unit[0])
    return without_currency(quote) if meta.currency is None else quote


@dataclass(frozen=True, slots=True)
class _Chart:
    """The days and splits of a chart. `is_whole`: its prices can be given as they were traded.

    `tells_actions`: it reaches the present, and so names all splits since its first day, and each can be read. `bars`
    are those of finished days that were asked for, `rejected` the lines and splits that cannot be true.
    """

    zone: ZoneInfo
    first: date
    is_whole: bool
    tells_actions: bool
    splits: Splits
    bars: dict[date, list[_Bar]]
    rejected: Sequence[RejectedValue]
    unconfirmed: list[Split]


def _read(meta: _Meta, series: Series, asked: _Asked) -> _Chart | None:
    """The chart's days; None if it has none. The requested days around the window are left out."""
    window, answered, now, what = asked.window, asked.answered, asked.now, asked.what
    lines = _lines(meta, series, what)
    if not lines:
        return None
    zone = zone_of(meta.zone or "")
    if zone is None:
        raise SchemaDrift(f"{what} names no known time zone ({safe_words(str(meta.zone))}); nothing was stored.")
    # The offset is that of the moment: of the newest bar, trade or session, or of the answer.
    moments = [meta.traded_at, int((answered or now).timestamp())]
    moments += [max((bar.at for bar in lines if isinstance(bar.at, int)), default=meta.traded_at)]
    moments += [] if meta.periods is None else [meta.periods.regular.start]
    check_offset(zone, meta.offset, moments)
    unfinished = _unfinished_from(meta, zone, answered)
    days: set[date] = set()
    bars_by_day: dict[date, list[_Bar]] = {}
    rejected: list[RejectedValue] = []
    for bar in lines:
        at = None
        try:
            day = day_of(bar.at, zone)
            at = midnight(day)
            if is_to_come(day, (bar.open, bar.high, bar.low, bar.close), now):
                continue
            is_asked = _is_asked(day, window, unfinished, now)
            days.add(day)
            if bar.close is not None and is_asked:
                bars_by_day.setdefault(day, []).append(bar)
        except Implausible as fault:
            rejected.append(RejectedValue(meta.symbol, at, str(fault), spelling(bar.close)))
    splits = splits_of(meta.symbol, series.events, zone, now, are_confirmed=asked.are_confirmed)
    reaches_present = _reaches_present(meta, days, zone, unfinished)
    if reaches_present:
        _check_events(meta, series)
    # Bars before a split that cannot be read stay divided by it.
    is_undone = all(
        split.observed_at is not None and all(midnight(day) >= split.observed_at for day in bars_by_day)
        for split in splits.broken
    )
    return _Chart(
        zone=zone,
        first=_first(days) if days else unfinished,
        is_whole=meta.instrument in _UNSPLIT or (reaches_present and is_undone),
        tells_actions=reaches_present and not splits.broken,
        splits=Splits(splits.believed),
        bars=bars_by_day,
        rejected=(*rejected, *splits.broken, *splits.early),
        unconfirmed=splits.unconfirmed,
    )


def _first(days: Collection[date]) -> date:
    """The first day of an answer for the latest few; one stamp of long ago does not make it older."""
    earliest = max(days) - LATEST_REACH
    return min(day for day in days if day >= earliest)


def _is_asked(day: date, window: Window | None, unfinished: date, now: datetime) -> bool:
    """Whether a day is over and not one of those around the window. Raises Implausible for one that is to come."""
    check_day(day, now)
    if day > unfinished:
        raise Implausible(f"day {day} lies after the newest session, that of {unfinished}")
    is_beside = window is not None and (window.start - _DAYS_BEFORE <= day < window.start or day > window.end)
    return day < unfinished and not is_beside


def _bars(chart: _Chart, meta: _Meta, unit: Unit) -> list[Observation | RejectedValue]:
    """The bars, and all that was refused on the way to them."""
    return [
        *chart.rejected,
        *(
            _bar(day, bar, meta, unit, chart.splits if chart.is_whole else None)
            for day, bars in chart.bars.items()
            for bar in _without_twin(bars, meta.traded_at)
        ),
    ]


def _lines(meta: _Meta, series: Series, what: str) -> list[_Bar]:
    """The bars as they came, a hole without a close. Raises SchemaDrift if their columns do not match."""
    stamps, columns = series.timestamp or [], series.indicators.quote[0]
    check_count(len(stamps), what, MAX_DAYS)
    value_columns = (columns.open, columns.high, columns.low, columns.close, columns.volume)
    if any(column is not None and len(column) != len(stamps) for column in value_columns):
        raise SchemaDrift(f"{what} has columns of other lengths than its time stamps; nothing was stored.")
    if not stamps:
        return []
    if columns.close is None or meta.interval != "1d":
        raise SchemaDrift(
            f"{what} has no closes, or not one a day ({safe_words(str(meta.interval))}); nothing was stored."
        )
    empty = [None] * len(stamps)
    return [
        _Bar(at=at, open=open_, high=high, low=low, close=close, volume=volume)
        for at, open_, high, low, close, volume in zip(
            stamps, *(column or empty for column in value_columns), strict=True
        )
    ]


def _without_twin(bars: list[_Bar], traded_at: int) -> list[_Bar]:
    """One day's bars; beside the day's own Yahoo may send one stamped with the newest trade, which is then right."""
    newest = [bar for bar in bars if bar.at == traded_at]
    return newest or bars


def _unfinished_from(meta: _Meta, zone: ZoneInfo, answered: datetime | None) -> date:
    """The first day whose bar may still change.

    A session is over once something was traded at or after its end, or, for what is seldom traded, when the answer
    was made long enough after it. Only the answer's own clock counts, so that a replayed answer reads the same.
    """
    if meta.periods is not None:
        day, end = local_day(meta.periods.regular.start, zone), meta.periods.regular.end
    else:
        day = local_day(meta.traded_at, zone)
        end = int(datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).timestamp())
    is_settled = answered is not None and answered.timestamp() >= end + SETTLING.total_seconds()
    return day + timedelta(days=1) if meta.traded_at >= end or is_settled else day


def _reaches_present(meta: _Meta, days: Collection[date], zone: ZoneInfo, unfinished: date) -> bool:
    """Whether a bar proves that the answer goes on until now, and so names all splits."""
    traded = local_day(meta.traded_at, zone)
    # Some funds have price times that are years old, so the time alone does not prove it.
    present = max(traded - _LONGEST_WEEKEND, unfinished - _LONGEST_HOLIDAY)
    # A delisted or suspended share has its newest bar on the day of its newest price, however long ago.
    return any(present <= day <= unfinished for day in days) or max(days, default=None) == traded


def _check_events(meta: _Meta, series: Series) -> None:
    """Raise Implausible where the answer names no event, although its closes show one.

    Funds are not looked at: some of their closes are adjusted by payments that Yahoo names nowhere.
    """
    events, column = series.events, series.indicators.adjclose
    if meta.instrument != "EQUITY" or (events is not None and (events.splits or events.dividends or events.gains)):
        return
    adjusted = column[0].get("adjclose") if isinstance(column, list) and _is_object(column) else None
    closes = series.indicators.quote[0].close
    if closes is None or not isinstance(adjusted, list):
        return
    if any(_differ(close, other) for close, other in zip(closes, adjusted, strict=False)):
        raise Implausible(
            "it names neither a split nor a dividend, though its adjusted closes differ from its closes: its list "
            "of events is missing, so it is unknown by which splits its prices are divided"
        )


def _is_object(column: list[object]) -> bool:
    return len(column) == 1 and isinstance(column[0], dict)


def _differ(close: object, adjusted: object) -> bool:
    """Whether two closes of one day are further apart than binary32 and six places round."""
    if not (_is_number(close) and _is_number(adjusted)):
        return False
    a, b = Decimal(close), Decimal(adjusted)
    try:
        return a.is_finite() and b.is_finite() and abs(a - b) > abs(a) * _ROUNDED + _LAST_PLACE
    except ArithmeticError:
        return False  # such a close is refused separately


def _is_number(figure: object) -> TypeGuard[int | Decimal]:
    return isinstance(figure, int | Decimal) and not isinstance(figure, bool)


def _with_actions(
    answer: Answer,
    chart: _Chart,
    meta: _Meta,
    series: Series,
    unit: Unit,
    window: Window | None,
    now: datetime,
) -> Answer:
    """The answer with its splits, dividends and capital gains.

    Without them if it does not tell all splits: then it is not known what the payments were divided by.
    """
    if not chart.tells_actions:
        return answer
    paid, rejected = payments_of(meta.symbol, series.events, chart.splits, unit, chart.zone, now)
    return replace(
        answer,
        rejected=(*answer.rejected, *rejected),
        actions=(*chart.splits.all, *paid),
        actions_since={meta.symbol: chart.first if window is None else window.start},
        gains_reported=frozenset({meta.symbol}),
    )


def _bar(day: date, bar: _Bar, meta: _Meta, unit: Unit, splits: Splits | None) -> Observation | RejectedValue:
    """One day; without `splits` its prices stay divided by those that the answer does not reach, or tell."""
    of_prices, of_volumes = (None, None) if splits is None else (splits.of_prices(day), splits.of_volumes(day))

    def price(raw: object, what: str) -> Decimal:
        return in_major_unit(undivided(meant(raw, what), of_prices), unit[1])

    def volume(raw: object, what: str) -> Decimal:
        return unmultiplied(volume_of(raw, what), of_volumes)

    try:
        value = bar_of(
            meta.symbol,
            midnight(day),
            bar.model_dump(),
            unit[0],
            price=price,
            volume=volume,
            adjustment=Adjustment.SPLITS if splits is None else Adjustment.RAW,
        )
        return without_currency(value) if meta.currency is None else value
    except Implausible as fault:
        return RejectedValue(meta.symbol, midnight(day), str(fault), spelling(bar.close))


def unknown(symbol: str, why: str) -> Answer:
    message = (
        f"yahoo knows no {symbol}, or no longer: {why.rstrip('.')}. "
        "Correct the symbol, route it to another provider, or retire the instrument if it was delisted."
    )
    return failed(symbol, FailureKind.UNKNOWN_SYMBOL, message)
