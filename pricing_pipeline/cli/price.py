"""`price show|why|history|gaps|export`: what is stored, read at once. Nothing here waits for a provider."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import price_export, reads
from pricing_pipeline.cli.arguments import as_of_time, basis, day
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.options import (
    AnyType,
    AsOf,
    Csv,
    Currency,
    Decimal,
    Json,
    Last,
    Symbol,
    Symbols,
    Type,
)
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    iso,
    listed,
    moment,
    print_json,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, is_wide, listing, zone
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import backfills, freshness, instruments
from pricing_pipeline.domain import cells
from pricing_pipeline.domain.answers import Adjust, CapitalGain, CorporateAction, SpinOff, Split
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.domain.prices import Price, shaped
from pricing_pipeline.domain.windows import last_of
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.prices import actions, conversion, lines, price_reader, unreported_splits
from pricing_pipeline.registry import calendars, data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.demand.freshness import Why
    from pricing_pipeline.domain.prices import Bar
    from pricing_pipeline.domain.windows import Window
    from pricing_pipeline.errors import UnknownSymbol
    from pricing_pipeline.prices.price_reader import Reading
    from pricing_pipeline.registry.calendars import Gap

noun = typer.Typer()

_IS_FETCHED = "A newer price is queued; a running pipeline fetches it in a moment."
_FAULTS = frozenset(
    {"unknown_symbol", "plan_restricted", "failed", "misconfigured", "endpoint_restricted", "quarantined"}
)
"""States of `why` in which no price comes until a person acts."""
_MOST_CLASSES = 100
"""Asset classes that may have one symbol."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What is stored of a symbol, why it is old, and what stops its providers.

    `is_retired`: it has no price, because it was removed and only its history stays.
    """

    symbol: str
    reading: Reading
    reasons: Sequence[Why]
    stops: Sequence[Why]
    is_retired: bool

    @property
    def is_unwanted(self) -> bool:
        """True if nobody watches or holds it in any data type, so that nothing is requested."""
        return bool(self.reasons) and all(reason.state == "unwatched" for reason in self.reasons)

    @property
    def is_stale(self) -> bool:
        """True if a price of it is not fresh, although it could be."""
        return any(not price.fresh and not price.paused for price in self.reading.prices)


@noun.command()
@listing
def show(
    symbols: Symbols,
    data_type: AnyType = None,
    currency: Currency = None,
    as_json: Json = False,
    as_csv: Csv = False,
    decimals: Decimal = Decimals.POINT,
) -> None:
    """Show the latest prices of symbols: one for each data type that has one.

    Missing and stale prices are requested: with a data type all, without one those that are watched or held.

    \b
    Example: pricing-pipeline price show AAPL fx_rate:EUR/USD
    """
    into = None if currency is None else conversion.Target.named(currency)
    with open_connection() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        types = {known.data_type: known for known in data_type_registry.active_data_types(connection)}
        pairs = [(data_type, symbol) if data_type else _pair(symbol, types) for symbol in symbols]
        spelled = instruments.all_spelled_anywhere(connection, [symbol for _, symbol in pairs])
        pairs = list(dict.fromkeys(zip((named for named, _ in pairs), spelled, strict=True)))
        for named, symbol in pairs:
            if named is not None:
                reads.require_instruments(connection, types[named], [symbol])
        answer = price_reader.as_answer(connection, pairs)
        rates = [] if into is None else conversion.convert_answer(connection, answer, into).pairs
        found = [_find(connection, symbol, named) for named, symbol in pairs]
        for type_of_rate, pair in rates:
            price_reader.request(connection, [pair], type_of_rate)
        connection.commit()
    if as_json:
        print_json(answer)
    elif as_csv:
        typer.echo(lines.prices_as_csv(answer, decimals, is_converted=into is not None), nl=False)
    elif into is not None:
        _list_prices([shaped(Price, price) for price in answer["prices"]])
        for words in dict.fromkeys(price["rate"] for price in answer["prices"] if price["rate"]):
            hint(f"Converted by {words}.")
        for sentence in dict.fromkeys(pair["why"]["sentence"] for pair in answer["missing"]):
            hint(sentence)
    elif answer["prices"]:
        _list_prices([price for one in found for price in one.reading.prices])
    for one in found:
        if not one.reading.prices:
            hint(_without_price(one, types))
    if not as_json and not as_csv:
        _hint_of_old(found)


@noun.command()
def why(symbol: Symbol, data_type: AnyType = None, as_json: Json = False) -> None:
    """Say why the prices of a symbol are as old as they are, and what to do about it. It requests nothing.

    \b
    Example: pricing-pipeline price why AAPL --type equity_quote
    """
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        if data_type is not None:
            type_ = data_type_registry.active_data_type(connection, data_type)
            reads.require_instruments(connection, type_, [symbol])
        reasons = freshness.why(connection, symbol, data_type)
        if not reasons:
            raise _unknown(connection, symbol)
    if as_json:
        print_json({"symbol": symbol, "reasons": [asdict(reason) for reason in reasons]})
        return
    for reason in reasons:
        typer.echo(
            f"{reason.data_type}: {reason.state.replace('_', ' ')}. {reason.sentence[:1].upper()}{reason.sentence[1:]}."
        )


def _pair(word: str, types: Collection[str]) -> tuple[str | None, str]:
    """A word of the command line as a pair, if it begins with the name of a data type, or else a symbol."""
    data_type, _, symbol = word.partition(":")
    return (data_type, symbol) if symbol and data_type in types else (None, word)


def _find(connection: Connection, symbol: str, data_type: str | None) -> _Found:
    # Asked before the read requests anything: later, a failed pair would look queued.
    reasons = freshness.why(connection, symbol, data_type)
    reading = price_reader.read(connection, symbol, data_type)
    # After the read, because only queued pairs show that their provider is stopped.
    stops = [why for why in freshness.why(connection, symbol, data_type) if why.is_stopped]
    known = [] if reading.prices else instruments.listed(connection, [symbol], None, _MOST_CLASSES)
    if not reading.prices and not known:
        raise _unknown(connection, symbol)
    is_retired = bool(known) and all(instrument.state == "retired" for instrument in known)
    return _Found(symbol, reading, reasons, stops, is_retired)


def _hint_of_old(found: Sequence[_Found]) -> None:
    """Say what happens to old prices that are shown."""
    with_prices = [one for one in found if one.reading.prices]
    for one in with_prices:
        if one.stops:
            hint(f"no newer price of {one.symbol} comes now. {sentences_of(one.stops)}")
    if any(one.reading.requested and not one.stops for one in with_prices):
        hint(_IS_FETCHED)
    unexplained = [one.symbol for one in with_prices if one.is_stale and not one.reading.requested and not one.stops]
    if unexplained:
        verb = "is" if len(unexplained) == 1 else "are"
        hint(f"{listed(unexplained)} {verb} not fresh. This says why: pricing-pipeline price why {unexplained[0]}")


def _list_prices(prices: Sequence[Price]) -> None:
    """A table of prices; the time of a daily value is its trading day."""
    several = len({price.symbol for price in prices}) > 1
    # The age says when a price was fetched, in less room.
    fetched = [in_zone("fetched")] if is_wide() else []
    headings = ["data type", "price", "", in_zone("observed"), *fetched, "age", "state", "provider"]
    print_table(
        [*(["symbol"] if several else []), *headings],
        [
            (
                *([price.symbol] if several else []),
                price.data_type,
                decimal(price.price),
                price.currency,
                price.date or moment(price.observed_at),
                *([moment(price.fetched_at)] if fetched else []),
                duration(price.age_seconds),
                _state(price),
                price.provider if price.provider_active else f"{price.provider} (switched off)",
            )
            for price in prices
        ],
        right=["price", "age"],
        spare=["provider"],
    )


def sentences_of(reasons: Sequence[Why]) -> str:
    """Why there is nothing newer, for each data type."""
    return "; ".join(f"{reason.data_type}: {reason.sentence}" for reason in reasons) + "."


def _unknown(connection: Connection, symbol: str) -> UnknownSymbol:
    way = f"watching it adds it: pricing-pipeline subscription watch {symbol} --type TYPE"
    return data_type_registry.unknown_symbol(connection, symbol, way)


def _state(price: Price) -> str:
    state = "paused" if price.paused else price.state.replace("_", " ")
    return state if price.frozen_since is None else f"{state}, the same since {moment(price.frozen_since)}"


def _without_price(found: _Found, types: Mapping[str, DataType]) -> str:
    symbol = found.symbol
    if found.is_retired:
        return (
            f"{symbol} has no latest price. It is retired: it was removed, and its history stays. This resumes it: "
            f"pricing-pipeline instrument resume {symbol}"
        )
    others = [types[reason.data_type] for reason in found.reasons if reason.data_type in types]
    if others and all(type_.contents is not Contents.PRICES for type_ in others):
        return f"{symbol} has no prices. It has {reads.read_by(others[0], symbol)}"
    return f"{symbol} has no price yet. {_what_will_come(found)}"


def _what_will_come(found: _Found) -> str:
    symbol, reasons = found.symbol, found.reasons
    if not reasons:
        return f"No active data type has prices of it: pricing-pipeline type list. {_remedy(symbol)}"
    if all(reason.state == "paused" for reason in reasons):
        return f"It is paused; this resumes it: pricing-pipeline instrument resume {symbol}"
    if found.is_unwanted and not found.reading.requested:
        return (
            "Nobody watches or holds it, so nothing is fetched. This fetches it once: pricing-pipeline price show "
            f"{symbol} --type {reasons[0].data_type}"
        )
    failed = [reason for reason in reasons if reason.state in _FAULTS]
    if failed:
        return f"{sentences_of(failed)} {_remedy(symbol)}"
    if found.stops:
        return sentences_of(found.stops)
    if found.reading.requested:
        return _IS_FETCHED
    return f"It is on its way, or its provider has none: pricing-pipeline price why {symbol} says which"


def _remedy(symbol: str) -> str:
    return f"If there is no such instrument: pricing-pipeline instrument remove {symbol}"


_NOT_COUNTED = "not counted: "
"""How `quality` begins to name payments that a total return does not count."""


@noun.command()
@listing
def history(
    symbols: Symbols,
    data_type: Type,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="First day; default: 30 days before the last."),
    ] = None,
    to: Last = None,
    believed_at: AsOf = None,
    adjusted: Annotated[
        str | None,
        typer.Option("--adjust", metavar="BASIS", help="raw, splits or total; default: as stored."),
    ] = None,
    currency: Currency = None,
    as_json: Json = False,
    as_csv: Csv = False,
    decimals: Decimal = Decimals.POINT,
) -> None:
    """Show the stored values of a symbol, or with --csv of several, between two days (UTC, both included), oldest
    first.

    \b
    raw     as traded on their day
    splits  divided by every split since
    total   the same, and less the dividends since, for total return

    \b
    Example: pricing-pipeline price history IBM --type equity_daily --from 2008-09 --to 2009-03
    """
    first = None if from_ is None else day(from_, "--from")
    last = None if to is None else day(to, "--to", last=True)
    as_of = as_of_time(believed_at)
    adjust = None if adjusted is None else basis(adjusted, "--adjust")
    into = None if currency is None else conversion.Target.named(currency)
    if len(symbols) > 1 and not as_csv:
        raise typer.BadParameter("histories of several symbols are printed as CSV: add --csv")
    with open_connection() as connection:
        today = calendars.today(connection)
        days = price_reader.days(connection, first, last)
        type_ = data_type_registry.active_data_type(connection, data_type)
        symbol, *others = dict.fromkeys(instruments.all_spelled_anywhere(connection, symbols))
        if as_csv:
            reads.require_instruments(connection, type_, [symbol, *others])
            names = lines.COLUMNS if into is None else lines.OF_CONVERTED
            typer.echo(cells.table([names], decimals), nl=False)
            span = (type_.data_type, days.start, days.end)
            for each in (symbol, *others):
                for part in price_reader.history_parts(connection, each, *span, as_of=as_of, adjust=adjust, into=into):
                    typer.echo(lines.as_csv(each, part, decimals), nl=False)
            return
        bars = price_reader.bars(connection, symbol, data_type, days.start, days.end, as_of=as_of, adjust=adjust)
        parts = (
            ()
            if into is None
            else price_reader.history_parts(
                connection,
                symbol,
                data_type,
                days.start,
                days.end,
                as_of=as_of,
                adjust=adjust,
                into=into,
            )
        )
        converted = [row for part in parts for row in json.loads(f"[{lines.as_json(part)}]")]
        if not bars:
            reads.require_instruments(connection, type_, [symbol])
        hints = [] if bars else [_what_is_missing(symbol, type_, days, as_of)]
        warnings = unreported_splits.warnings(connection, type_, symbol, days, adjust, as_of)
        if bars and adjust in (Adjust.SPLITS, Adjust.TOTAL):
            hints += _on_adjustment(connection, symbol, type_, bars, adjust, as_of, today)
            hints += warnings
    if as_json:
        print_json(
            {
                "symbol": symbol,
                "data_type": data_type,
                "from": days.start,
                "to": days.end,
                "as_of": as_of,
                "adjust": adjust,
                "warnings": warnings,
                "rows": bars if into is None else converted,
            }
        )
    elif into is not None:
        _list_converted(converted)
        if any((row["rate"] or "").startswith(conversion.NO_RATE) for row in converted):
            hint("A backfill of daily bars of the class fx brings rates of the past; docs/prices.md shows it.")
    elif bars:
        _list_bars(type_, bars)
        if adjust is None and any(bar.adjustment == Adjust.SPLITS for bar in bars):
            hint("Their source has divided these prices by every split since their day.")
    if as_of is not None and as_of > datetime.combine(today + timedelta(days=1), time(), UTC):
        hints.insert(1, f"{moment(as_of)} {zone()} is in the future; this is what is believed now.")
    for sentence in hints:
        hint(sentence)


def _on_adjustment(
    connection: Connection,
    symbol: str,
    type_: DataType,
    bars: Sequence[Bar],
    adjust: Adjust,
    as_of: datetime | None,
    today: date,
) -> list[str]:
    """What adjusted values are based on."""
    known = actions.read(connection, type_.asset_class, symbol, as_of)
    until = today if as_of is None else as_of.astimezone(UTC).date()
    notes = {bar.quality.partition(_NOT_COUNTED)[2] for bar in bars if bar.quality} - {""}
    sentences = [f"Some of these prices lack later payments: {note}." for note in sorted(notes)]
    return [*sentences, _what_is_counted(symbol, adjust, bars[0], until, [stored.action for stored in known])]


def _list_converted(rows: Sequence[Mapping[str, str | None]]) -> None:
    numbers = [name for name in ("open", "high", "low", "close") if any(row[name] for row in rows)] or ["close"]
    when = "day" if all(row["date"] for row in rows) else "time (UTC)"
    print_table(
        [when, *numbers, "", "rate"],
        [
            [
                row["date"] or row["observed_at"],
                *(row[name] or "" for name in numbers),
                row["currency"],
                row["rate"],
            ]
            for row in rows
        ],
        right=numbers,
        long="rate",
    )


def _list_bars(type_: DataType, bars: Sequence[Bar]) -> None:
    numbers = ["open", "high", "low", "close", "volume"]
    shown = [name for name in numbers if any(getattr(bar, name) is not None for bar in bars)]

    def cells(bar: Bar) -> list[object]:
        values = [getattr(bar, name) for name in shown]
        when = bar.date or moment(bar.observed_at)
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


def _what_is_counted(symbol: str, adjust: Adjust, first: Bar, until: date, known: Sequence[CorporateAction]) -> str:
    """The basis of an adjusted history: the actions that a provider or a person has entered."""
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
        f"{sentence} Where they come from: docs/documents.md#dividends-and-splits; `pricing-pipeline "
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
        return f"{sentence} Its provider has no history; values accumulate while someone watches it."
    if days.end < type_.history_from:
        return f"{sentence} Its history begins on {type_.history_from}."
    return (
        f"{sentence} This fetches it: pricing-pipeline backfill start {symbol} "
        f"--type {type_.data_type} --from {max(days.start, type_.history_from)} --to {days.end}"
    )


_HOLIDAYS_TOLD = 5


@noun.command()
@listing
def gaps(
    symbol: Symbol,
    data_type: AnyType = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="First day; default: where its history begins."),
    ] = None,
    to: Last = None,
    as_json: Json = False,
) -> None:
    """Show the trading days of a symbol that have no value, and why: by the calendar of its exchange.

    not_asked, failed and unreadable can be fetched by a backfill. provider_has_none is requested again automatically if
    the day is recent or between stored days, and at once by `backfill start --again`. not_listed has no values.
    quarantined waits for a person, queued is on its way, not_published will come.

    \b
    Example: pricing-pipeline price gaps IBM --type equity_daily --from 2012-01
    """
    first = None if from_ is None else day(from_, "--from")
    last = None if to is None else day(to, "--to", last=True)
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        last_day = last_of(first, last, calendars.today(connection))
        begins = {
            name: first or min(since or last_day, last_day)
            for name, since in _daily_types(connection, symbol, data_type)
        }
        gaps_of_type = {name: calendars.gaps(connection, name, symbol, day, last_day) for name, day in begins.items()}
        closed = {name: calendars.closed_days(connection, name, symbol, day, last_day) for name, day in begins.items()}
        known = {name: calendars.known_to(connection, name, symbol) for name in gaps_of_type}
        paused = {name for name in gaps_of_type if "paused" in backfills.left_out(connection, name, [symbol])}
    if as_json:
        print_json(
            {
                "symbol": symbol,
                "to": last_day,
                "gaps": [_gap_row(name, gap) for name in gaps_of_type for gap in gaps_of_type[name]],
                "market_closed": closed,
            }
        )
        return
    _list_gaps(gaps_of_type)
    for name, days in closed.items():
        if days:
            typer.echo(_holidays(name, days))
    for name, gaps_ in gaps_of_type.items():
        hint(_advice(symbol, name, gaps_, is_paused=name in paused))
        until = known[name]
        if until is not None and until[1] < last_day:
            hint(f"Trading days of {until[0]} are known only to {until[1]}: later gaps are unknown.")


def _list_gaps(gaps_of_type: Mapping[str, Sequence[Gap]]) -> None:
    rows = [
        (name, gap.first_day, gap.last_day, gap.sessions, str(gap.kind), gap.detail)
        for name, gaps in gaps_of_type.items()
        for gap in gaps
    ]
    if rows:
        headings = ["data type", "from", "to", "sessions", "kind", "why"]
        print_table(headings, sorted(rows), right=["sessions"], long="why")


def _holidays(data_type: str, days: Sequence[date]) -> str:
    """A holiday is not a gap; the list of gaps names it to explain why its day has no value."""
    newest = ", ".join(day.isoformat() for day in days[-_HOLIDAYS_TOLD:])
    if len(days) <= _HOLIDAYS_TOLD:
        return f"{data_type}: the market was closed on {newest}"
    return f"{data_type}: the market was closed on {len(days)} days; the last were {newest} (--json has all)"


def _daily_types(connection: Connection, symbol: str, wanted: str | None) -> Sequence[tuple[str, date | None]]:
    if wanted is not None:
        type_ = data_type_registry.active_data_type(connection, wanted)
        reads.require_instruments(connection, type_, [symbol])
        return [(type_.data_type, type_.history_from)]
    rows = connection.execute(query("calendars.daily_types"), {"symbol": symbol}).all()
    if not rows:
        way = data_type_registry.misfit(connection, symbol) or "watching a symbol adds it"
        raise UnknownSymbol(
            f"no data type of daily values applies to {symbol}. `pricing-pipeline type list` shows the types; {way}."
        )
    return [(row.data_type, row.history_from) for row in rows]


def _gap_row(data_type: str, gap: Gap) -> dict[str, object]:
    return {
        "data_type": data_type,
        "from": gap.first_day,
        "to": gap.last_day,
        "sessions": gap.sessions,
        "kind": gap.kind.value,
        "detail": gap.detail,
    }


def _advice(symbol: str, data_type: str, gaps: Sequence[Gap], *, is_paused: bool) -> str:
    if not gaps:
        return f"{data_type} of {symbol} has a value for every known trading day."
    kinds = calendars.GapKind
    fetchable = {kinds.NOT_ASKED, kinds.FAILED, kinds.UNREADABLE}
    wanted = [gap for gap in gaps if gap.kind in fetchable]
    if not wanted:
        return f"Nothing of {data_type} is worth fetching again."
    first = f"{symbol} is paused; first resume it: pricing-pipeline instrument resume {symbol}. " if is_paused else ""
    return first + (
        f"This fetches days that were not requested or failed: pricing-pipeline backfill start {symbol} "
        f"--type {data_type} --from {wanted[0].first_day} --to {wanted[-1].last_day}"
    )


noun.command("export")(price_export.export)
