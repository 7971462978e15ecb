"""`price history`: what is stored of some days, read at once. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from pricing_pipeline.cli import export, price_plot, reads
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.output import decimal, iso, moment, print_json, print_table, whole_or_text
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, zone
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.answers import Adjust, CapitalGain, CorporateAction, SpinOff, Split
from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import actions, price_reader, untold_splits
from pricing_pipeline.prices.price_reader import Bar
from pricing_pipeline.registry import calendars, data_type_registry
from pricing_pipeline.settings import load_settings

_DEFAULT_DAYS = 30
_NOT_COUNTED = "not counted: "
"""How `quality` begins to name payments that a total return does not count."""
_COLUMNS = (
    *("date", "open", "high", "low", "close", "volume", "currency"),
    *("provider", "fetched_at", "call_id", "adjustment", "quality"),
)


def history(
    symbol: str,
    data_type: str,
    first: date | None,
    last: date | None,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | None = None,
    plot: bool,
    csv: Path | None,
    parquet: Path | None,
    as_json: bool,
) -> None:
    """Tell the values between two days (UTC, both included); the last is today if None, the first 30 days before.

    With `as_of` as they were believed then, with `adjust` on that basis. Raises UnknownDataType, UnknownSymbol,
    InvalidAdjustment, and InvalidRange when the days are upside down.
    """
    with open_connection(load_settings()) as connection:
        today = calendars.today(connection)
        days = price_reader.days(connection, first, last, _DEFAULT_DAYS)
        type_ = data_type_registry.active_data_type(connection, data_type)
        symbol = instruments.spelled_anywhere(connection, symbol)
        bars = price_reader.bars(
            connection, symbol, data_type, days.start, days.end, as_of=as_of, adjust=adjust
        )
        if not bars:
            reads.require_instruments(connection, type_, [symbol])
        hints = [] if bars else [_what_is_missing(symbol, type_, days, as_of)]
        to_mark = price_plot.marks(connection, symbol, type_, bars, as_of) if plot and bars else None
        if bars and adjust in (Adjust.SPLITS, Adjust.TOTAL):
            hints += _on_adjustment(connection, symbol, type_, bars, days, adjust, as_of, today)
    if as_json:
        asked = {"as_of": as_of and iso(as_of), "adjust": adjust and adjust.value}
        print_json(
            {
                "symbol": symbol,
                "data_type": data_type,
                "from": days.start,
                "to": days.end,
                **{name: value for name, value in asked.items() if value is not None},
                "rows": [_row(bar, type_) for bar in bars],
            }
        )
    elif export.write(_COLUMNS, [_row(bar, type_) | {"volume": bar.volume} for bar in bars], csv, parquet):
        pass
    elif to_mark is not None:
        labels = [_date(bar, type_) if type_.fetcher.is_daily else moment(bar.observed_at) for bar in bars]
        price_plot.show(symbol, data_type, bars, labels, to_mark)
    elif bars:
        _list(type_, bars)
        if adjust is None and any(bar.adjustment is Adjust.SPLITS for bar in bars):
            hint("Their source has divided these prices by every split since their day.")
    if as_of is not None and as_of > datetime.combine(today + timedelta(days=1), time(), UTC):
        hints.insert(1, f"{moment(as_of)} {zone()} has not come yet; this is what is believed now.")
    for sentence in hints:
        hint(sentence)


def _on_adjustment(
    connection: Connection,
    symbol: str,
    type_: DataType,
    bars: Sequence[Bar],
    days: Window,
    adjust: Adjust,
    as_of: datetime | None,
    today: date,
) -> list[str]:
    """What adjusted values rest on; and steps that look like splits that nobody has entered."""
    known = actions.read(connection, type_.asset_class, symbol, as_of)
    until = today if as_of is None else as_of.astimezone(UTC).date()
    notes = {bar.quality.partition(_NOT_COUNTED)[2] for bar in bars if bar.quality} - {""}
    sentences = [f"Of these prices some lack payments after them: {note}." for note in sorted(notes)]
    sentences += [_what_is_counted(symbol, adjust, bars[0], until, [stored.action for stored in known])]
    if as_of is None and type_.fetcher is Fetcher.DAILY_BARS:
        splits = untold_splits.read(connection, type_.data_type, symbol, days.start, days.end)
        sentences += map(untold_splits.warning, splits)
    return sentences


def _row(bar: Bar, type_: DataType) -> dict[str, Any]:
    return {
        "date": _date(bar, type_),
        "open": bar.open,
        "high": bar.high,
        "low": bar.low,
        "close": bar.close,
        "volume": whole_or_text(bar.volume),
        "currency": bar.currency,
        "provider": bar.provider,
        "fetched_at": bar.fetched_at,
        "call_id": bar.call_id,
        "adjustment": bar.adjustment.value,
        "quality": bar.quality,
    }


def _date(bar: Bar, type_: DataType) -> str:
    """The trading day of a daily value, which is stored as its midnight UTC; else the full time."""
    stamp = iso(bar.observed_at)
    return stamp[:10] if type_.fetcher.is_daily else stamp


def _list(type_: DataType, bars: Sequence[Bar]) -> None:
    numbers = ["open", "high", "low", "close", "volume"]
    shown = [name for name in numbers if any(getattr(bar, name) is not None for bar in bars)]

    def cells(bar: Bar) -> list[object]:
        values = [getattr(bar, name) for name in shown]
        when = _date(bar, type_) if type_.fetcher.is_daily else moment(bar.observed_at)
        prices_ = ("" if value is None else decimal(value) for value in values)
        return [
            when,
            *prices_,
            bar.currency,
            *([dropped(bar) and f"dropped: {dropped(bar)}"] if is_noted else []),
        ]

    def dropped(bar: Bar) -> str | None:
        return bar.quality and bar.quality.partition(_NOT_COUNTED)[0].removesuffix("; ")

    is_noted = any(map(dropped, bars))
    headings = ["day" if type_.fetcher.is_daily else in_zone("time"), *shown, "", *([""] if is_noted else [])]
    print_table(headings, map(cells, bars), right=shown)


def _what_is_counted(
    symbol: str, adjust: Adjust, first: Bar, until: date, known: Sequence[CorporateAction]
) -> str:
    """What an adjusted history rests on: the actions that a provider or a person has named, and no more."""
    since = first.observed_at.astimezone(UTC).date()
    later = [action for action in known if since < action.ex_on <= until]
    ratios = [action for action in later if isinstance(action, Split)]
    spin_offs = sum(isinstance(action, SpinOff) for action in ratios)
    facts = [_counted(len(ratios) - spin_offs, "split")]
    facts += [_counted(spin_offs, "spin-off")] if spin_offs else []
    if adjust is Adjust.TOTAL:
        gains = sum(isinstance(action, CapitalGain) for action in later)
        facts.append(_counted(len(later) - len(ratios) - gains, "dividend"))
        facts += [_counted(gains, "capital gain")] if gains else []
    *others, newest = facts
    counted = f"{', '.join(others)} and {newest}" if others else newest
    sentence = f"These prices count what is known of {symbol} since {since}: {counted}."
    if ratios and (adjust is Adjust.SPLITS or len(ratios) < len(later)):
        return f"{sentence} `pricing-pipeline action list {symbol}` shows them."
    return (
        f"{sentence} How sources come to tell them: docs/documents.md#dividends-and-splits; `pricing-pipeline "
        f"action add {symbol}` enters what you know."
    )


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def _what_is_missing(symbol: str, type_: DataType, days: Window, as_of: datetime | None) -> str:
    sentence = f"nothing is stored of {symbol} {type_.data_type} from {days.start} to {days.end}."
    if as_of is not None:
        return f"{sentence[:-1]} that was believed at {iso(as_of)}."
    if type_.contents is not Contents.PRICES:
        return f"{sentence} It has {reads.read_by(type_, symbol)}"
    if type_.history_from is None:
        return f"{sentence} Its provider has no history; values gather while somebody watches it."
    if days.end < type_.history_from:
        return f"{sentence} Its history begins on {type_.history_from}."
    return (
        f"{sentence} This fetches it: pricing-pipeline backfill start {symbol} "
        f"--type {type_.data_type} --from {max(days.start, type_.history_from)} --to {days.end}"
    )
