"""`instrument list|show|add|change|spell|pause|resume|merge|remove`: what can be priced.

What pausing and removing mean is decided by the database (db/functions/demand/pauses.sql and symbols.sql).
"""

from __future__ import annotations

import codecs
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import day
from pricing_pipeline.cli.database import open_connection, open_engine, open_owner
from pricing_pipeline.cli.instrument_find import find
from pricing_pipeline.cli.options import (
    AnySymbols,
    Class,
    Highest,
    Json,
    Limit,
    Lowest,
    Symbol,
    Symbols,
    TrustJumpsUntil,
    given,
    given_bounds,
    symbols_argument,
)
from pricing_pipeline.cli.output import (
    bounds_words,
    duration,
    listed,
    moment,
    print_change,
    print_json,
    print_lines,
    print_table,
)
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.domain.words import counted
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.keys import credentials
from pricing_pipeline.prices import price_reader
from pricing_pipeline.registry import data_type_registry, spellings

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.demand.instruments import Bounds, NewInstrument
    from pricing_pipeline.registry.spellings import Spelled

noun = typer.Typer()

NewName = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="For people.")]
NewCurrency = Annotated[
    str | None,
    typer.Option("--currency", metavar="CODE", help="Currency of its prices; others are quarantined."),
]
NewCalendar = Annotated[
    str | None,
    typer.Option(
        "--calendar",
        metavar="NAME",
        help="When it trades, such as XNYS; with none its symbol and currency decide.",
    ),
]
NewExchange = Annotated[
    str | None,
    typer.Option(
        "--exchange",
        metavar="MIC",
        help="MIC of the exchange where it trades, such as XTAE; sets the calendar too. none: by its symbol.",
    ),
]
NewIsin = Annotated[str | None, typer.Option("--isin", metavar="ISIN", help="Another name for it.")]
NewFigi = Annotated[str | None, typer.Option("--figi", metavar="FIGI", help="Another name for it.")]
NewListedOn = Annotated[str | None, typer.Option("--listed-on", metavar="DATE", help="Its first day of trading.")]
NewScale = Annotated[
    int | None,
    typer.Option("--scale", metavar="DECIMALS", help="Least number of decimals stored with each price."),
]
TypeOfBounds = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="The data type whose prices the next four options bound.")
]
AsType = Annotated[bool, typer.Option("--as-type", help="Use the bounds of its type again.")]
_KNOWN = ("name", "currency", "isin", "figi", "exchange", "calendar", "listed_on", "scale")
_BOUNDS = ("lowest", "highest", "jumps_trusted_until")
_MOST_DOUBTS = 5
_COLUMNS = ("symbol", "asset_class", "name", "currency", "calendar", "listed_on", "scale", "isin", "figi")
_REMOVED = {
    "removed": "is removed: it had no history",
    "retired": "is retired: it is no longer fetched, and its history stays. `instrument resume` undoes this",
    "retired_already": "was retired before; its history stays",
}


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    asset_class: Class = None,
    at_most: Limit = 100,
    as_json: Json = False,
) -> None:
    """List instruments: their state, and how many users watch and hold them.

    \b
    Example: pricing-pipeline instrument list --asset-class fx
    """
    with open_connection() as connection:
        named = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols] if symbols else None
        known = instruments.listed(connection, named, asset_class, at_most + 1)
    if as_json:
        print_json({"instruments": [asdict(instrument) for instrument in known[:at_most]]})
        return
    print_table(
        ["symbol", "asset class", "state", "currency", "viewers", "holders", "name"],
        [
            (
                instrument.symbol,
                instrument.asset_class,
                instrument.state,
                instrument.currency,
                instrument.viewers,
                instrument.holders,
                instrument.name,
            )
            for instrument in known[:at_most]
        ],
        right=["viewers", "holders"],
        spare=["currency", "name"],
        long="name",
    )
    if not known:
        typer.echo("no such instrument is known.")
    elif len(known) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


@noun.command()
@zoned
def show(symbol: Symbol, asset_class: Class = None, as_json: Json = False) -> None:
    """Show an instrument, and what each data type stores of it.

    \b
    Example: pricing-pipeline instrument show AAPL
    """
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        stored = instruments.about(connection, symbol, asset_class)
        _require([symbol], [row["symbol"] for row in stored], asset_class, "")
        wanted = {
            instrument.asset_class: instrument
            for instrument in instruments.listed(connection, [symbol], asset_class, len(stored))
        }
        prices = {price.data_type: price for price in price_reader.latest(connection, symbol)}
        types = data_type_registry.active_data_types(connection)
        priced = {type_.data_type for type_ in types if type_.contents is Contents.PRICES}
        bounds = {row["asset_class"]: instruments.bounds(connection, row["asset_class"], symbol) for row in stored}
        spelled = {row["asset_class"]: spellings.of(connection, row["asset_class"], symbol) for row in stored}
    states = ("state", "viewers", "holders")
    if as_json:
        print_json(
            {
                "instruments": [
                    {
                        **row,
                        **{name: getattr(wanted[row["asset_class"]], name) for name in states},
                        "bounds": [asdict(bound) for bound in bounds[row["asset_class"]]],
                        "spellings": [asdict(spelling) for spelling in spelled[row["asset_class"]]],
                    }
                    for row in stored
                ]
            }
        )
        return
    for number, row in enumerate(stored):
        if number:
            typer.echo()
        counts = wanted[row["asset_class"]]
        print_lines(
            {
                "instrument": f"{symbol} ({row['asset_class']})",
                "name": row["name"],
                "state": counts.state,
                "currency": row["currency"],
                "ISIN": row["isin"],
                "FIGI": row["figi"],
                "decimals": f"at least {row['scale']}",
                "exchange": _exchange(row),
                "calendar": row["calendar"] or "not known",
                "listed": row["listed_on"],
                "known since": moment(row["created_at"]),
                "verified": moment(row["verified_at"]),
                "wanted by": f"{counted(counts.viewers, 'viewer')}, {counted(counts.holders, 'holder')}",
                "data types": ", ".join(
                    f"{name} ({duration(prices[name].age_seconds)} old)"
                    if name in prices
                    else f"{name}{' (none)' if name in priced else ''}"
                    for name in row["data_types"]
                ),
                "bounds": "; ".join(map(_bounds, bounds[row["asset_class"]])),
                "asked as": ", ".join(map(_spelled, spelled[row["asset_class"]])),
            }
        )


noun.command()(find)


@noun.command()
def add(
    symbols: Annotated[list[str] | None, symbols_argument("Symbols of new instruments.")] = None,
    asset_class: Annotated[str | None, typer.Option("--asset-class", metavar="CLASS", help="Their class.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", help="A name for people; only with one symbol.")
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="CODE", help="Currency of their prices; default: that of the first answer."),
    ] = None,
    isin: NewIsin = None,
    figi: NewFigi = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="A table of them: symbol, asset_class, name, currency, calendar, listed_on, scale, isin, figi; "
            "only the first column is needed. - is standard input.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add instruments, unverified until a provider's first valid answer. All are added, or none.

    This fetches nothing. Existing instruments stay as they are, but get a missing ISIN or FIGI.

    \b
    Example: pricing-pipeline instrument add MSFT GOOG --asset-class equity --currency USD
    """
    if bool(symbols) == (table is not None):
        raise typer.BadParameter("name symbols, or a file with --csv; not both")
    if symbols and asset_class is None:
        raise typer.BadParameter("--asset-class says what they are, such as equity")
    if (name or isin or figi) and (symbols is None or len(symbols) > 1):
        raise typer.BadParameter("--name, --isin and --figi are those of one symbol")
    symbols = symbols or []
    isin = isin and isin.upper()
    figi = figi and figi.upper()
    if table is None:
        wanted = [
            instruments.NewInstrument(asset_class or "", symbol, name, currency, isin=isin, figi=figi)
            for symbol in symbols
        ]
    else:
        wanted = _read(table, asset_class, currency)
    with open_engine() as engine, engine.begin() as connection:
        doubts = instruments.doubts(connection, wanted)
        added = instruments.add(connection, wanted)
    for doubt in doubts[:_MOST_DOUBTS]:
        warn(f"{doubt}.")
    if len(doubts) > _MOST_DOUBTS:
        warn(f"{len(doubts) - _MOST_DOUBTS} more are doubtful.")
    new = [instrument for instrument, is_new in added if is_new]
    if as_json:
        print_json({"instruments": [asdict(instrument) | {"new": is_new} for instrument, is_new in added]})
        return
    known = [instrument.symbol for instrument, is_new in added if not is_new]
    if new:
        typer.echo(f"{listed([instrument.symbol for instrument in new])} {'is' if len(new) == 1 else 'are'} known now.")
    if known:
        was, stays = ("was", "stays") if len(known) == 1 else ("were", "stay")
        numbered = any(instrument.isin or instrument.figi for instrument in wanted)
        more = ", but for an ISIN or FIGI that was not known" if numbered else ""
        typer.echo(f"{listed(known)} {was} known already, and {stays} as before{more}.")


@noun.command()
@listing
def change(
    symbol: Symbol,
    asset_class: Class = None,
    name: NewName = None,
    currency: NewCurrency = None,
    isin: NewIsin = None,
    figi: NewFigi = None,
    exchange: NewExchange = None,
    calendar: NewCalendar = None,
    listed_on: NewListedOn = None,
    scale: NewScale = None,
    data_type: TypeOfBounds = None,
    lowest: Lowest = None,
    highest: Highest = None,
    trust_jumps_until: TrustJumpsUntil = None,
    as_type: AsType = False,
    as_json: Json = False,
) -> None:
    """Correct an instrument, or bound its prices. Only the named options change.

    The word none removes a value, as in --highest none. Quarantined values stay where they are. It
    needs the owner's URL.

    \b
    Example: pricing-pipeline instrument change EUR/USD --type fx_rate --lowest 0.5 --highest 2.5
    """
    known = given(
        name=(name, str),
        currency=(currency, str),
        isin=(isin, str.upper),
        figi=(figi, str.upper),
        exchange=(exchange, str),
        calendar=(calendar, str),
        listed_on=(listed_on, lambda text: day(text, "--listed-on")),
        scale=(scale, int),
    )
    bounds = given_bounds(lowest, highest, trust_jumps_until)
    if bounds and as_type:
        raise typer.BadParameter("--as-type takes its own bounds away; leave out those that you give")
    if bool(bounds or as_type) != (data_type is not None):
        raise typer.BadParameter(
            "--type says whose bounds --lowest, --highest, --trust-jumps-until and --as-type change; give both"
        )
    if not (known or bounds or as_type):
        raise typer.BadParameter("say what changes, such as --currency USD")
    with open_owner() as engine, engine.begin() as connection:
        if data_type is not None:
            asset_class = reads.any_data_type(connection, data_type)["asset_class"]
        symbol = instruments.spelled_anywhere(connection, symbol)
        stored = instruments.about(connection, symbol, asset_class)
        _require([symbol], [row["symbol"] for row in stored], asset_class)
        _require_one_class(symbol, [row["asset_class"] for row in stored])
        of_class = stored[0]["asset_class"]
        before = _settings(connection, of_class, symbol, data_type)
        if known:
            if known.get("exchange") is not None:
                known = {**known, "exchange": str(known["exchange"]).upper()}
            if "exchange" in known and "calendar" not in known:
                known = {**known, "calendar": None}  # that of the exchange is chosen
            instruments.change(connection, of_class, symbol, known)
        if as_type:
            instruments.remove_bounds(connection, data_type or "", symbol)
        elif bounds:
            instruments.change_bounds(connection, data_type or "", symbol, bounds)
        after = _settings(connection, of_class, symbol, data_type)
    names = {"symbol": symbol, "asset_class": of_class, "data_type": data_type}
    print_change(names, before, after, as_json=as_json)
    if before != after and ("currency" in known or data_type is not None) and not as_json:
        hint(f"its quarantined values stay quarantined: `pricing-pipeline quarantine list --symbol {symbol}` shows it.")


@noun.command()
def spell(
    symbol: Symbol,
    provider: Annotated[str, typer.Option("--at", metavar="PROVIDER", help="A provider of `provider list`.")],
    spelling: Annotated[
        str | None, typer.Option("--as", metavar="SPELLING", help="What the provider calls it.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Use the provider's rule again.")] = False,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Set a provider's spelling of an instrument, if its rule is wrong. `instrument show` lists all spellings.

    Its failed tasks are queued again. It needs the owner's URL.

    \b
    Example: pricing-pipeline instrument spell BRK.B --at yahoo --as BRK-B
    """
    if undo == (spelling is not None):
        raise typer.BadParameter("give the spelling with --as, or take it back with --undo")
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        symbol = instruments.spelled_anywhere(connection, symbol)
        classes = [row["asset_class"] for row in instruments.about(connection, symbol, asset_class)]
        _require([symbol], [symbol] if classes else [], asset_class)
        _require_one_class(symbol, classes)
        before = spellings.use(connection, provider, classes[0], symbol)
        if spelling is None:
            now = spellings.take_back(connection, provider, classes[0], symbol)
        else:
            now = spellings.give(connection, provider, classes[0], symbol, spelling)
    if as_json:
        print_json({"symbol": symbol, "asset_class": classes[0], **asdict(now), "before": asdict(before)})
        return
    by_rule = ", by its rule" if now.by == "rule" else ""
    typer.echo(f"{provider} is asked for {symbol} ({classes[0]}) as {now.spelling}{by_rule}.")
    if before.values and before.spelling != now.spelling:
        one = before.values == 1
        hint(
            f"{before.values} {'value' if one else 'values'} ({', '.join(before.data_types)}) that {provider} sent for "
            f"{before.spelling} {'stays' if one else 'stay'} stored as {symbol}'s. If {before.spelling} is another "
            f"instrument, delete {'it' if one else 'them'}: docs/providers.md#values-of-a-wrong-spelling"
        )


@noun.command()
def pause(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Stop fetching instruments, even if they are watched or held; waiting tasks are cancelled.

    \b
    Example: pricing-pipeline instrument pause AAPL --asset-class equity
    """
    _set_paused(symbols, asset_class, paused=True, as_json=as_json)


@noun.command()
def resume(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Fetch paused instruments again; watched ones are due at once.

    \b
    Example: pricing-pipeline instrument resume AAPL
    """
    _set_paused(symbols, asset_class, paused=False, as_json=as_json)


@noun.command()
def merge(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The symbol that goes.")],
    into: Annotated[str, typer.Argument(metavar="INTO", help="The symbol that stays.")],
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Merge two instruments with their histories, or rename one. OLD then means INTO.

    Where both have something, such as a price of one day, that of INTO stays. It needs the owner's URL.

    \b
    Example: pricing-pipeline instrument merge VOD.L VOD:XLON
    """
    with open_owner() as engine, engine.begin() as connection:
        old = instruments.spelled_anywhere(connection, old)
        classes = [row["asset_class"] for row in instruments.about(connection, old, asset_class)]
        _require([old], [old] * len(classes), asset_class)
        _require_one_class(old, classes)
        into = instruments.name_for(connection, classes[0], old, into)
        merged = instruments.merge(connection, classes[0], old, into)
    if as_json:
        print_json({"old": old, "into": into, "rows": [asdict(rows) for rows in merged]})
        return
    typer.echo(f"{old} is {into} now; both names work.")
    for rows in merged:
        dropped = f"; {rows.dropped} dropped, because {into} has its own" if rows.dropped else ""
        typer.echo(f"{rows.rows_of}: {rows.moved} moved{dropped}")


@noun.command()
def remove(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Remove instruments that have no history; retire the others, whose history stays.

    Their subscriptions and holdings end, and waiting tasks are cancelled.

    \b
    Example: pricing-pipeline instrument remove NOPE1 --asset-class equity
    """
    with open_engine() as engine, engine.begin() as connection:
        symbols = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols]
        removed = instruments.remove_instruments(connection, symbols, asset_class)
        _require(symbols, [instrument.symbol for instrument in removed], asset_class)
        for symbol in symbols:
            _require_one_class(
                symbol, [instrument.asset_class for instrument in removed if instrument.symbol == symbol]
            )
    if as_json:
        print_json({"instruments": [asdict(instrument) for instrument in removed]})
        return
    for instrument in removed:
        ended = (
            f" What {_users(instrument.viewers + instrument.holders)} of it has ended."
            if instrument.viewers + instrument.holders
            else ""
        )
        typer.echo(f"{instrument.symbol} ({instrument.asset_class}) {_REMOVED[instrument.outcome]}.{ended}")


def _set_paused(symbols: Sequence[str], asset_class: str | None, *, paused: bool, as_json: bool) -> None:
    """Pause or resume instruments. Raises UnknownSymbol, and changes nothing, if one of them does not exist."""
    with open_engine() as engine, engine.begin() as connection:
        symbols = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols]
        states = instruments.pause_instruments(connection, symbols, paused=paused, asset_class=asset_class)
        _require(symbols, [instrument.symbol for instrument in states], asset_class)
    done = "paused" if paused else "resumed"
    if as_json:
        print_json({done: [asdict(instrument) for instrument in states]})
        return
    for instrument in states:
        outcome = f"is {done}" if instrument.changed else "is paused already" if paused else "was not paused"
        typer.echo(f"{instrument.symbol} ({instrument.asset_class}) {outcome}.")
    if len(states) > len(set(symbols)) and asset_class is None:
        warn("some symbols name instruments of several classes; --asset-class picks one.")


def _exchange(row: Mapping[str, Any]) -> str | None:
    """Where an instrument trades, or what to do if its symbol ends as those of several exchanges do."""
    known: str | None = row["exchange"] or row["exchange_by_symbol"]
    if known is None and len(row["exchanges_by_symbol"]) > 1:
        return f"one of {listed(row['exchanges_by_symbol'])}; `instrument change --exchange` says which"
    return known


def _spelled(one: Spelled) -> str:
    return f"{one.spelling} at {one.provider} ({one.by if one.is_possible else 'which has no such symbols'})"


def _bounds(bounds: Bounds) -> str:
    words = bounds_words(bounds.lowest, bounds.highest, bounds.jumps_trusted_until)
    return f"{bounds.data_type} {words}{'' if bounds.is_own else ' (of its type)'}"


def _settings(connection: Connection, asset_class: str, symbol: str, data_type: str | None) -> dict[str, Any]:
    (known,) = instruments.about(connection, symbol, asset_class)
    settings = {name: known[name] for name in _KNOWN}
    if data_type is not None:
        rows = [row for row in instruments.bounds(connection, asset_class, symbol) if row.data_type == data_type]
        settings |= {name: getattr(rows[0], name) if rows else None for name in _BOUNDS}
    return settings


def _read(table: Path, asset_class: str | None, currency: str | None) -> list[NewInstrument]:
    """Rows of a CSV file; what its columns leave out is as the options say. Else a usage error, with the line."""
    content = sys.stdin.buffer.read() if str(table) == "-" else table.read_bytes()
    rows = csv.DictReader(_decoded(content, table).splitlines())
    strange = sorted(set(rows.fieldnames or []) - set(_COLUMNS))
    if strange or "symbol" not in (rows.fieldnames or []):
        fault = f"the column {strange[0]!r}, which is unknown" if strange else "no column 'symbol'"
        raise typer.BadParameter(f"{table} has {fault}. Its columns may be: {', '.join(_COLUMNS)}")
    read = []
    for row in rows:
        if None in row:
            raise typer.BadParameter(f"line {rows.line_num} of {table} has more values than there are columns")
        given = {key: value.strip() or None for key, value in row.items() if value is not None}
        symbol, of_class = given.get("symbol"), given.get("asset_class") or asset_class
        if symbol is None or of_class is None:
            raise typer.BadParameter(f"line {rows.line_num} of {table} has no {'asset_class' if symbol else 'symbol'}")
        since, scale = given.get("listed_on"), given.get("scale")
        if scale is not None and not (scale.isascii() and scale.isdigit() and len(scale) < 3):
            raise typer.BadParameter(f"line {rows.line_num}: scale {scale!r} is not a number of decimals, such as 2")
        read.append(
            instruments.NewInstrument(
                of_class,
                symbol,
                given.get("name"),
                given.get("currency") or currency,
                given.get("calendar"),
                None if since is None else day(since, f"line {rows.line_num}: listed_on"),
                None if scale is None else int(scale),
                given.get("isin"),
                given.get("figi"),
            )
        )
    if not read:
        raise typer.BadParameter(f"{table} names no instrument")
    return read


def _decoded(content: bytes, table: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 if it begins with that encoding's mark. Else a usage error."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise typer.BadParameter(
            f"line {line} of {table} is not {encoding.removesuffix('-sig').upper()}. Save the file as CSV in UTF-8"
        ) from None


def _users(count: int) -> str:
    return "1 user watched or held" if count == 1 else f"{count} users watched or held"


def _require_one_class(symbol: str, classes: Sequence[str]) -> None:
    if len(classes) > 1:
        raise UnknownSymbol(
            f"{symbol} names instruments of several classes: {', '.join(classes)}. Say which by --asset-class. "
            "Nothing has changed."
        )


def _require(
    symbols: Sequence[str], known: Sequence[str], asset_class: str | None, end: str = " Nothing has changed."
) -> None:
    unknown = sorted(set(symbols) - set(known))
    if unknown:
        of = f"{asset_class} instrument" if asset_class else "instrument"
        raise UnknownSymbol(f"no {of} is called {listed(unknown)}.{end}")
