"""The commands of `product` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AsOf, Json, Limit, Symbol
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(
    help="Look at products that are sold in slots, and at their availability; set their time zone."
)


@noun.command("list")
@listing
def list_(limit: Limit = 100, as_json: Json = False) -> None:
    """List products: their name, time zone, and when their slots were last confirmed.

    `instrument pause` stops fetching one, `instrument resume` restarts it.

    \b
    Example: pricing-pipeline product list
    """
    from pricing_pipeline.cli import product

    product.list_(limit, as_json=as_json)


@noun.command()
@zoned
def show(symbol: Symbol, as_json: Json = False) -> None:
    """Show a product: its options, its categories, and its time zone.

    \b
    Example: pricing-pipeline product show OCT-1001
    """
    from pricing_pipeline.cli import product

    product.show(symbol, as_json=as_json)


@noun.command()
@listing
def availability(
    symbol: Symbol,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First local day; else today where it is.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DATE", help="Last local day; else a week from the first.")
    ] = None,
    pax: Annotated[int, typer.Option("--pax", min=1, metavar="N", help="For so many people.")] = 1,
    currency: Annotated[
        str | None, typer.Option("--currency", metavar="CODE", help="Only what has prices in it.")
    ] = None,
    sellable: Annotated[
        bool, typer.Option("--sellable", help="Only slots that so many people can book.")
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the slots of a product: local times, places left, and the price of each category.

    Missing and stale days are asked for. With --as-of, what was believed then.

    \b
    Example: pricing-pipeline product availability OCT-1001 --from 2026-12-24 --pax 2 --sellable
    """
    from pricing_pipeline.cli import product
    from pricing_pipeline.cli.arguments import as_of_time, day

    product.availability(
        symbol,
        None if first is None else day(first, "--from"),
        None if last is None else day(last, "--to"),
        pax,
        currency,
        sellable=sellable,
        as_of=as_of_time(as_of),
        as_json=as_json,
    )


@noun.command("set-zone")
def set_zone(
    symbol: Symbol,
    time_zone: Annotated[
        str, typer.Argument(metavar="ZONE", help="Its time zone, such as Europe/London, or none.")
    ],
    as_json: Json = False,
) -> None:
    """Set the time zone of a product, which counts instead of what its provider says; none takes it back.

    Coming slots without an offset of their own are placed anew. What has failed without a zone is tried again by
    `task retry`.

    \b
    Example: pricing-pipeline product set-zone OCT-1001 Europe/London
    """
    from pricing_pipeline.cli import product

    product.set_zone(symbol, None if time_zone == "none" else time_zone, as_json=as_json)
