"""The commands of `commodity` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AsOf, Json, Limit
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Read what commodities of a game cost, and what can be earned.")

Commodity = Annotated[str, typer.Argument(metavar="COMMODITY", help="The slug, code or name of a commodity.")]


@noun.command()
def sync(as_json: Json = False) -> None:
    """Read versions, terminals, commodities and all prices from UEX, in four calls. Two syncs never run at once.

    What fails is noted in pricing.etl_warnings, and the other lists are read anyway.

    \b
    Example: pricing-pipeline commodity sync
    """
    from pricing_pipeline.cli import commodity

    commodity.sync(as_json=as_json)


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the commodities: at how many terminals each is sold and bought, and the best prices.

    \b
    Example: pricing-pipeline commodity list
    """
    from pricing_pipeline.cli import commodity

    commodity.list_(as_json=as_json)


@noun.command()
@listing
def show(name: Commodity, as_of: AsOf = None, as_json: Json = False) -> None:
    """Show where a commodity is traded, at which price, and how much of it.

    With --as-of, what was believed then.

    \b
    Example: pricing-pipeline commodity show gold --as-of 2026-11-20
    """
    from pricing_pipeline.cli import commodity
    from pricing_pipeline.cli.arguments import as_of_time

    commodity.show(name, as_of_time(as_of), as_json=as_json)


@noun.command()
@listing
def terminal(
    name: Annotated[str, typer.Argument(metavar="TERMINAL", help="The symbol, code or name of a terminal.")],
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show what a terminal trades, at which price, and how much of it.

    With --as-of, what was believed then.

    \b
    Example: pricing-pipeline commodity terminal UEX:6
    """
    from pricing_pipeline.cli import commodity
    from pricing_pipeline.cli.arguments import as_of_time

    commodity.terminal(name, as_of_time(as_of), as_json=as_json)


@noun.command()
@listing
def routes(
    terminal: Annotated[
        str | None,
        typer.Option("--from", metavar="TERMINAL", help="Only from here: a symbol, code or name; else all."),
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Show the best routes: what to buy where, and where to sell it, by what all of it earns.

    \b
    Example: pricing-pipeline commodity routes --limit 10
    """
    from pricing_pipeline.cli import commodity

    commodity.routes(terminal, limit, as_json=as_json)
