"""The commands of `price` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import (
    AnyType,
    AsOf,
    Csv,
    Json,
    Last,
    Parquet,
    Symbol,
    Symbols,
    Type,
    one_output,
)
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Read prices and their history, and ask why they are as they are.")


@noun.command()
@listing
def show(
    symbols: Symbols,
    data_type: AnyType = None,
    csv: Csv = None,
    parquet: Parquet = None,
    as_json: Json = False,
) -> None:
    """Show the latest prices of symbols: one for each data type that has one.

    What is missing or stale is asked for: with a data type everything, without one what is watched or held.

    \b
    Example: pricing-pipeline price show AAPL fx_rate:EUR/USD
    """
    one_output(False, as_json, csv, parquet)
    from pricing_pipeline.cli import price

    price.show(symbols, data_type, csv, parquet, as_json=as_json)


@noun.command()
def why(symbol: Symbol, data_type: AnyType = None, as_json: Json = False) -> None:
    """Say why the prices of a symbol are as old as they are, and what to do about it. It asks for nothing.

    \b
    Example: pricing-pipeline price why AAPL --type equity_quote
    """
    from pricing_pipeline.cli import price

    price.why(symbol, data_type, as_json=as_json)


@noun.command()
@listing
def history(
    symbol: Symbol,
    data_type: Type,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; else 30 days before the last.")
    ] = None,
    last: Last = None,
    as_of: AsOf = None,
    adjust: Annotated[
        str | None,
        typer.Option("--adjust", metavar="BASIS", help="raw, splits or total; without it as it is stored."),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw it instead of listing it.")] = False,
    csv: Csv = None,
    parquet: Parquet = None,
    as_json: Json = False,
) -> None:
    """Show the stored values of a symbol between two days (UTC, both included), oldest first.

    \b
    raw     as traded on their day
    splits  divided by every split since
    total   that, and without the dividends since: for total return

    \b
    Example: pricing-pipeline price history IBM --type equity_daily --from 2008-09 --to 2009-03 --plot
    """
    one_output(plot, as_json, csv, parquet)
    from pricing_pipeline.cli import price_history
    from pricing_pipeline.cli.arguments import as_of_time, basis, day

    price_history.history(
        symbol,
        data_type,
        None if first is None else day(first, "--from"),
        None if last is None else day(last, "--to", last=True),
        as_of=as_of_time(as_of),
        adjust=None if adjust is None else basis(adjust, "--adjust"),
        plot=plot,
        csv=csv,
        parquet=parquet,
        as_json=as_json,
    )


@noun.command()
@listing
def gaps(
    symbol: Symbol,
    data_type: AnyType = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; else where its history begins.")
    ] = None,
    last: Last = None,
    csv: Csv = None,
    parquet: Parquet = None,
    as_json: Json = False,
) -> None:
    """Show the trading days of a symbol that have no value, and why: by the calendar of its exchange.

    not_asked, failed and unreadable can be fetched by a backfill. provider_has_none is asked for again by itself if
    the day is recent or between stored days, and at once by `backfill start --again`. not_listed has no values.
    quarantined waits for a person, queued is on its way, not_published will come.

    \b
    Example: pricing-pipeline price gaps IBM --type equity_daily --from 2012-01
    """
    one_output(False, as_json, csv, parquet)
    from pricing_pipeline.cli import price_gaps
    from pricing_pipeline.cli.arguments import day

    first_day = None if first is None else day(first, "--from")
    last_day = None if last is None else day(last, "--to", last=True)
    price_gaps.gaps(symbol, data_type, first_day, last_day, csv, parquet, as_json=as_json)
