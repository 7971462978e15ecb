"""`price export`: prices as lines for plain-text accounting and GnuCash."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import day, moment
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.options import AnySymbols, Last, Type, pairs_of
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.domain.windows import last_of, span
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.prices import journals, price_reader
from pricing_pipeline.registry import calendars, data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.domain.windows import Window
    from pricing_pipeline.prices.journals import DayPrice

_EARLIEST = date(1970, 1, 1)


def export(
    data_type: Type,
    journal: Annotated[str, typer.Option("--format", metavar="PROGRAM", help="ledger, hledger, beancount or gnucash.")],
    symbols: AnySymbols = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; default: of all that is stored.")
    ] = None,
    to: Last = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only what was stored since then; a day means its beginning."),
    ] = None,
    own_names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="SYMBOL=NAME", help="What a symbol is called in your journal."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(help="For gnucash: the type of the securities there. Exchange rates are CURRENCY."),
    ] = None,
    has_directives: Annotated[
        bool, typer.Option("--directives", help="Begin with the decimals that each currency shows.")
    ] = False,
) -> None:
    """Print prices as lines for accounting programs: the last value of each day of an instrument's market, as traded.

    \b
    Example: pricing-pipeline price export AAPL BRK-B --type equity_daily --format ledger --from 2026-11
    """
    program = _program(journal)
    if bool(namespace) != (program is journals.Journal.GNUCASH):
        raise typer.BadParameter("--namespace NASDAQ belongs to --format gnucash, and that needs it.")
    names = pairs_of("name", own_names)
    first = None if from_ is None else day(from_, "--from")
    last = None if to is None else day(to, "--to", last=True)
    stored_since = None if since is None else _beginning(since)
    with open_connection() as connection:
        type_ = data_type_registry.active_data_type(connection, data_type)
        if type_.contents is not Contents.PRICES:
            raise UnknownDataType(f"{data_type} has no prices. `pricing-pipeline type list` shows the types.")
        last_day = last_of(first, last, calendars.today(connection))
        days = span(first or min(type_.history_from or _EARLIEST, last_day), last_day)
        if symbols:
            symbols = instruments.spelled(connection, data_type, symbols)
            reads.require_instruments(connection, type_, symbols)
        else:
            symbols = price_reader.symbols_between(connection, data_type, days.start, days.end)
        prices = list(_prices(connection, type_, symbols, days, stored_since))
    written = journals.write(prices, program, names, has_directives=has_directives, namespace=namespace or "")
    for line in written.lines:
        typer.echo(line)
    for symbol, name in written.names.items():
        hint(f"{symbol} is {name} here.")
    for loss in written.losses:
        warn(loss)
    for symbol in names.keys() - {price.symbol for price in prices}:
        warn(f"--name: no price is written of {symbol}.")
    if not prices:
        hint(f"no price of {data_type} is stored from {days.start} to {days.end}.")


def _program(name: str) -> journals.Journal:
    try:
        return journals.Journal(name)
    except ValueError:
        raise typer.BadParameter(f"{name!r} is not a format: use one of {', '.join(journals.Journal)}") from None


def _beginning(since: str) -> datetime:
    """A time; of a day its beginning in UTC, so that nothing of that day is missed."""
    try:
        return datetime.combine(date.fromisoformat(since), time(), UTC)
    except ValueError:
        return moment(since, "--since")


def _prices(
    connection: Connection, type_: DataType, symbols: list[str], days: Window, stored_since: datetime | None
) -> Iterator[DayPrice]:
    """The last value of each day, of each symbol, that has been stored since."""
    zones = {} if type_.fetcher.is_daily else calendars.time_zones(connection, type_.data_type, symbols)
    for symbol in dict.fromkeys(symbols):
        zone = ZoneInfo(zones.get(symbol, "UTC"))
        bars = price_reader.bars(connection, symbol, type_.data_type, days.start, days.end, adjust=Adjust.RAW)
        last_bars = {bar.observed_at.astimezone(zone).date(): bar for bar in bars}
        for on, bar in last_bars.items():
            is_new = stored_since is None or bar.fetched_at >= stored_since
            if is_new and bar.currency is not None and bar.close is not None:
                yield journals.DayPrice(on, symbol, bar.close, bar.currency)
