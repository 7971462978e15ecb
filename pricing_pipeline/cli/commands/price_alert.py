"""The commands of `price-alert` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Limit, Type
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Be told when a price crosses a value, moves, grows stale, or is new.")

Id = Annotated[int, typer.Argument(metavar="ID", help="Of `price-alert list`.")]


@noun.command()
def add(
    recipient: Annotated[
        str, typer.Argument(metavar="RECIPIENT", help="Who is told; one of `recipient list`.")
    ],
    data_type: Type,
    symbol: Annotated[
        str | None,
        typer.Argument(
            metavar="SYMBOL", help="Whose price; left out with --all-symbols.", show_default=False
        ),
    ] = None,
    above: Annotated[
        str | None, typer.Option("--above", metavar="PRICE", help="When the price goes above this.")
    ] = None,
    below: Annotated[
        str | None, typer.Option("--below", metavar="PRICE", help="When the price goes below this.")
    ] = None,
    moved: Annotated[
        str | None,
        typer.Option("--moved", metavar="PERCENT", help="When the price has moved by this many percent."),
    ] = None,
    hysteresis: Annotated[
        str | None,
        typer.Option(
            "--hysteresis",
            metavar="AMOUNT|PERCENT%",
            help="With --above or --below, how far the price must come back before it is told again: 0.5 or 1%.",
        ),
    ] = None,
    stale: Annotated[
        str | None, typer.Option("--stale", metavar="SPAN", help="When it has been stale for this long: 30m.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Of each new price.")] = False,
    pace: Annotated[
        str | None,
        typer.Option(
            "--pace", metavar="SPAN", help="With --each, at most one message in this time; else 1m."
        ),
    ] = None,
    all_symbols: Annotated[
        bool, typer.Option("--all-symbols", help="With --each, of all symbols of the data type.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell a recipient when a price crosses a value, moves, grows stale, or is new.

    \b
    Example: pricing-pipeline price-alert add mailbox AAPL --type equity_quote --above 200
    """
    from pricing_pipeline.cli import price_alert

    price_alert.add(
        recipient,
        symbol,
        data_type,
        price_alert.TypedOptions(above, below, moved, stale, each, pace, all_symbols, hysteresis),
        as_json=as_json,
    )


@noun.command("list")
@listing
def list_(
    recipient: Annotated[
        str | None,
        typer.Option("--recipient", metavar="NAME", help="Only those of this recipient; else all."),
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List who is told of which prices.

    \b
    Example: pricing-pipeline price-alert list --recipient mailbox
    """
    from pricing_pipeline.cli import price_alert

    price_alert.list_(recipient, limit, as_json=as_json)


@noun.command()
@zoned
def show(id_: Id, as_json: Json = False) -> None:
    """Show one price alert, and what it has seen and told.

    \b
    Example: pricing-pipeline price-alert show 3
    """
    from pricing_pipeline.cli import price_alert

    price_alert.show(id_, as_json=as_json)


@noun.command()
def remove(id_: Id, as_json: Json = False) -> None:
    """End a price alert. Messages that wait already are sent.

    \b
    Example: pricing-pipeline price-alert remove 3
    """
    from pricing_pipeline.cli import price_alert

    price_alert.remove(id_, as_json=as_json)
