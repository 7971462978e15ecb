"""The commands on what a history lacks and how it is filled, as they are typed: arguments, options, help.

What they do is in modules imported when they run, as for commands.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pricing_pipeline.cli.commands import By, Class, Last, Symbol, Type
from pricing_pipeline.cli.program import Json

Day = Annotated[str, typer.Argument(metavar="DAY", help="The first trading day without it, like 2020-08-31.")]
Reason = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Kept with it.")]


class ActionKind(StrEnum):
    """The kinds of corporate actions."""

    SPLIT = "split"
    DIVIDEND = "dividend"


def gaps(
    symbol: Symbol,
    data_type: Annotated[
        str | None,
        typer.Option("--data-type", metavar="DATA_TYPE", help="A type of daily values; else all it has."),
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; else where its history begins.")
    ] = None,
    last: Last = None,
    as_json: Json = False,
) -> None:
    """Show the trading days of a symbol that have no value, and why: by the calendar of its exchange.

    not_asked, failed and unreadable can be fetched by a backfill. provider_has_none and not_listed cannot: asking
    again would bring the same answer. held waits in the quarantine, queued is on its way, not_published will come.

    \b
    Example: pricing-pipeline gaps IBM --data-type equity_daily --from 2012-01
    """
    from pricing_pipeline.cli import gaps as implementation
    from pricing_pipeline.cli.arguments import day

    first_day = None if first is None else day(first, "--from")
    last_day = None if last is None else day(last, "--to", last=True)
    implementation.gaps(symbol, data_type, first_day, last_day, as_json=as_json)


def backfill(
    data_type: Type,
    first: Annotated[
        str, typer.Option("--from", metavar="DATE", help="First day, like 2000-03-01 or 2000-03.")
    ],
    last: Last = None,
    symbols: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these; else every instrument that is not paused."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what it would cost; nothing is queued.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fetch the history that is missing between two days. What is stored already costs no call.

    Dagster does it if it runs on this home, and goes on when you leave; otherwise this process does. With
    --dry-run: calls, units, bytes, time and share of the quota. The exit code is 1 if something failed, would be
    refused, or every instrument is left out.

    \b
    Example: pricing-pipeline backfill equity_daily --from 2000-03 --to 2013-02 --symbols AAPL,MSFT
    """
    from pricing_pipeline.cli import backfill as implementation
    from pricing_pipeline.cli.arguments import day, names

    first_day = day(first, "--from")
    last_day = None if last is None else day(last, "--to", last=True)
    wanted = None if symbols is None else names(symbols, "--symbols")
    if dry_run:
        from pricing_pipeline.cli import backfills

        if not backfills.cost(data_type, first_day, last_day, wanted, as_json=as_json):
            raise typer.Exit(1)
        return
    if not implementation.backfill(data_type, first_day, last_day, wanted, as_json=as_json):
        raise typer.Exit(1)


def backfills_list(
    at_most: Annotated[int, typer.Option("--limit", min=1, help="The newest so many.")] = 20,
    as_json: Json = False,
) -> None:
    """Show backfills and how far they are, the newest first; those of the Dagster UI too.

    \b
    Example: pricing-pipeline backfills list --limit 5
    """
    from pricing_pipeline.cli import backfills

    backfills.show(at_most, as_json=as_json)


def backfills_cancel(
    backfill_id: Annotated[str, typer.Argument(metavar="ID", help="Of `backfills list`.")],
    as_json: Json = False,
) -> None:
    """Call a backfill off: what it still waits for is not fetched. What is stored stays.

    \b
    Example: pricing-pipeline backfills cancel 2f1c1f6e-8a0f-4a51-9a5b-1d2e3f405162
    """
    from pricing_pipeline.cli import backfills
    from pricing_pipeline.cli.arguments import identifier

    backfills.cancel(identifier(backfill_id, "backfills list"), as_json=as_json)


def actions_list(
    symbol: Symbol,
    asset_class: Class = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="As it was believed then; a day means its end."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the splits and dividends of an instrument, the newest first, and who said so.

    \b
    Example: pricing-pipeline actions list AAPL
    """
    from pricing_pipeline.cli import actions
    from pricing_pipeline.cli.arguments import moment

    when = None if as_of is None else moment(as_of, "--as-of")
    actions.show(symbol, asset_class, when, as_json=as_json)


def actions_add(
    symbol: Symbol,
    ex_day: Day,
    split: Annotated[
        str | None, typer.Option("--split", metavar="NEW:OLD", help="New shares for old ones: 4:1.")
    ] = None,
    dividend: Annotated[
        str | None, typer.Option("--dividend", metavar="CASH", help="Cash for one share of that day.")
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="CODE", help="Of the dividend; else that of the prices."),
    ] = None,
    why: Reason = None,
    by: By = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Enter a split or a dividend that no source tells, or that one tells wrongly.

    No stored price changes: histories count it when they are read adjusted. It needs the owner's URL, as
    `registry add` does.

    \b
    Example: pricing-pipeline actions add AAPL 2020-08-31 --split 4:1 --why "the source forgot it"
    """
    from pricing_pipeline.cli import actions
    from pricing_pipeline.cli.arguments import currency_code, day
    from pricing_pipeline.domain.answers import CorporateAction, Dividend, Split

    if (split is None) == (dividend is None):
        raise typer.BadParameter("give either --split or --dividend")
    if currency is not None and dividend is None:
        raise typer.BadParameter("--currency is that of a dividend; leave it out with --split")
    on = day(ex_day, "DAY")
    action: CorporateAction
    if split is not None:
        action = Split(symbol, on, *actions.ratio(split, "--split"))
    else:
        code = None if currency is None else currency_code(currency, "--currency")
        action = Dividend(symbol, on, actions.cash(dividend or "", "--dividend"), code)
    actions.add(action, asset_class, by, why, as_json=as_json)


def actions_remove(
    symbol: Symbol,
    ex_day: Day,
    kind: Annotated[
        ActionKind | None, typer.Option("--kind", help="Where the day has both a split and a dividend.")
    ] = None,
    why: Reason = None,
    by: By = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Take back a split or dividend, whoever said it. It stays as a revision, with who took it back and why.

    \b
    Example: pricing-pipeline actions remove AAPL 2020-08-31 --kind split --why "it was 5:1"
    """
    from pricing_pipeline.cli import actions
    from pricing_pipeline.cli.arguments import day

    on = day(ex_day, "DAY")
    actions.remove(symbol, on, None if kind is None else kind.value, asset_class, by, why, as_json=as_json)
