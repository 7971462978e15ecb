"""The commands of `action` as they are typed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pricing_pipeline.cli.options import AsOf, Class, Json, Reason, Symbol, User
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Look at splits and dividends, or enter what no source tells.")

Day = Annotated[str, typer.Argument(metavar="DAY", help="The first trading day without it, like 2020-08-31.")]


class ActionKind(StrEnum):
    """The kinds of corporate actions."""

    SPLIT = "split"
    DIVIDEND = "dividend"


AnyKind = Annotated[
    ActionKind | None, typer.Option("--kind", help="Where the day has both a split and a dividend.")
]


@noun.command("list")
@listing
def list_(symbol: Symbol, asset_class: Class = None, as_of: AsOf = None, as_json: Json = False) -> None:
    """List the splits and dividends of an instrument, the newest first, and who reported them.

    \b
    Example: pricing-pipeline action list AAPL
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import as_of_time

    when = as_of_time(as_of)
    action.list_(symbol, asset_class, when, as_json=as_json)


@noun.command()
@zoned
def show(
    symbol: Symbol, ex_day: Day, kind: AnyKind = None, asset_class: Class = None, as_json: Json = False
) -> None:
    """Show the splits and dividends of a day: who reported them, when, why, and what was believed before.

    \b
    Example: pricing-pipeline action show AAPL 2020-08-31
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import day

    of_kind = None if kind is None else kind.value
    action.show(symbol, day(ex_day, "DAY"), of_kind, asset_class, as_json=as_json)


@noun.command()
def add(
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
    reason: Reason = None,
    user: User = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Enter a split or a dividend that no source reports, or that a source reports wrongly.

    No stored price changes: histories count it when they are read adjusted. It needs the owner's URL, as
    `type add` does.

    \b
    Example: pricing-pipeline action add AAPL 2020-08-31 --split 4:1 --reason "the source forgot it"
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import currency_code, day
    from pricing_pipeline.domain.answers import CorporateAction, Dividend, Split

    if (split is None) == (dividend is None):
        raise typer.BadParameter("give either --split or --dividend")
    if currency is not None and dividend is None:
        raise typer.BadParameter("--currency is that of a dividend; leave it out with --split")
    on = day(ex_day, "DAY")
    entered: CorporateAction
    if split is not None:
        entered = Split(symbol, on, *action.ratio(split, "--split"))
    else:
        code = None if currency is None else currency_code(currency, "--currency")
        entered = Dividend(symbol, on, action.cash(dividend or "", "--dividend"), code)
    action.add(entered, asset_class, user, reason, as_json=as_json)


@noun.command()
def remove(
    symbol: Symbol,
    ex_day: Day,
    kind: AnyKind = None,
    reason: Reason = None,
    user: User = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Take back a split or dividend, whoever reported it. It stays as a revision, with who took it back and why.

    \b
    Example: pricing-pipeline action remove AAPL 2020-08-31 --kind split --reason "it was 5:1"
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import day

    on = day(ex_day, "DAY")
    of_kind = None if kind is None else kind.value
    action.remove(symbol, on, of_kind, asset_class, user, reason, as_json=as_json)
