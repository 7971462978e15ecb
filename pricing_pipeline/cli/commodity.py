"""`commodity sync|list|show|terminal|routes`: what commodities of a game cost. Only `sync` calls a provider."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.arguments import as_of_time
from pricing_pipeline.cli.database import load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import AsOf, Json, Limit
from pricing_pipeline.cli.output import decimal, duration, iso, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.provider_access import access_to
from pricing_pipeline.cli.style import listing
from pricing_pipeline.commodities import etl, reads
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.uex_lists import NAME

if TYPE_CHECKING:
    from pricing_pipeline.commodities.etl import SyncReport

noun = typer.Typer()

Commodity = Annotated[str, typer.Argument(metavar="COMMODITY", help="The slug, code or name of a commodity.")]
_PRICED = ("buy", "stock", "sell", "demand", "version", "age")


@noun.command()
def sync(as_json: Json = False) -> None:
    """Read versions, terminals, commodities and all prices from UEX, in four calls. Two syncs never run at once.

    Failures are kept in pricing.etl_warnings, and the other lists are read anyway.

    \b
    Example: pricing-pipeline commodity sync
    """
    settings = load_settings()
    with open_engine(settings) as engine:
        access = access_to(engine, settings, NAME)
        with ProviderClient(PROVIDERS[NAME], access.base_url, access.keys, user_agent=settings.user_agent) as client:
            report = etl.sync(engine, client)
    if as_json:
        print_json({**asdict(report), "is_complete": report.is_complete})
    else:
        _print(report)
    if not report.is_complete:
        failed = ", ".join(step.name for step in report.steps if step.failure)
        first = next(step.failure for step in report.steps if step.failure)
        raise PricingError(f"of the sync {report.run} these lists could not be read: {failed}. {first}")


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the commodities: at how many terminals each is sold and bought, and the best prices.

    \b
    Example: pricing-pipeline commodity list
    """
    with open_connection() as connection:
        lines = reads.commodities(connection)
        state = reads.state(connection)
    if as_json:
        print_json({**asdict(state), "commodities": [asdict(line) for line in lines]})
        return
    print_table(
        ["commodity", "slug", "kind", "sold at", "cheapest", "bought at", "dearest"],
        [
            (
                line.name,
                line.slug or "",
                line.kind or "",
                line.sold_at or "",
                _number(line.cheapest),
                line.bought_at or "",
                _number(line.dearest),
            )
            for line in lines
        ],
        right=["sold at", "cheapest", "bought at", "dearest"],
        spare=["kind"],
    )
    if not lines:
        hint("no commodity is known yet; `pricing-pipeline commodity sync` reads them.")
    elif state.game_version:
        hint(f"Prices are of version {state.game_version} of the game.")


@noun.command()
@listing
def show(name: Commodity, believed_at: AsOf = None, as_json: Json = False) -> None:
    """Show where a commodity is traded, at which price, and how much of it.

    With --as-of, what was believed then.

    \b
    Example: pricing-pipeline commodity show gold --as-of 2026-11-20
    """
    as_of = as_of_time(believed_at)
    with open_connection() as connection:
        found = reads.find(connection, name)
        lines = reads.prices(connection, found.commodity_id, as_of)
    if as_json:
        past = {"as_of": iso(as_of)} if as_of is not None else {}
        print_json({**asdict(found), **past, "prices": [asdict(line) for line in lines]})
        return
    print_table(
        ["terminal", "symbol", "where", "quality", *_PRICED],
        [
            (
                line.terminal if line.is_available else f"{line.terminal} (closed)",
                line.symbol,
                ", ".join(part for part in (line.system, line.place) if part),
                line.quality,
                *_priced(line),
            )
            for line in lines
        ],
        right=["buy", "stock", "sell", "demand"],
        spare=["where", "quality", "version"],
    )
    if not lines:
        then = "" if as_of is None else f" at {iso(as_of)}"
        typer.echo(f"{found.name} was traded nowhere{then}, as far as is known.")


@noun.command()
@listing
def terminal(
    name: Annotated[str, typer.Argument(metavar="TERMINAL", help="The symbol, code or name of a terminal.")],
    believed_at: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show what a terminal trades, at which price, and how much of it.

    With --as-of, what was believed then.

    \b
    Example: pricing-pipeline commodity terminal UEX:6
    """
    as_of = as_of_time(believed_at)
    with open_connection() as connection:
        symbol = reads.find_terminal(connection, name)
        lines = reads.prices_at(connection, symbol, as_of)
    if as_json:
        past = {"as_of": iso(as_of)} if as_of is not None else {}
        print_json({"symbol": symbol, **past, "prices": [asdict(line) for line in lines]})
        return
    print_table(
        ["commodity", "quality", *_PRICED],
        [(line.commodity, line.quality, *_priced(line)) for line in lines],
        right=["buy", "stock", "sell", "demand"],
        spare=["quality", "version"],
    )
    if not lines:
        then = "" if as_of is None else f" at {iso(as_of)}"
        typer.echo(f"{symbol} traded nothing{then}, as far as is known.")
    elif not lines[0].is_available:
        hint(f"{lines[0].terminal} is closed now.")


@noun.command()
@listing
def routes(
    terminal: Annotated[
        str | None,
        typer.Option("--from", metavar="TERMINAL", help="Only from here: a symbol, code or name; default: all."),
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Show the best routes: what to buy where, and where to sell it, by total profit.

    \b
    Example: pricing-pipeline commodity routes --limit 10
    """
    with open_connection() as connection:
        symbol = None if terminal is None else reads.find_terminal(connection, terminal)
        found = reads.trade_routes(connection, symbol, limit)
    if as_json:
        print_json({"from": symbol, "routes": [asdict(route) for route in found]})
        return
    print_table(
        ["commodity", "quality", "from", "to", "buy", "sell", "margin", "%", "SCU", "total", "age"],
        [
            (
                route.commodity,
                route.quality,
                route.from_terminal,
                route.to_terminal,
                _number(route.buy),
                _number(route.sell),
                _number(route.margin),
                decimal(route.margin_percent),
                _number(route.quantity),
                _number(route.total),
                duration(route.age_seconds),
            )
            for route in found
        ],
        right=["buy", "sell", "margin", "%", "SCU", "total"],
        spare=["quality", "age", "%", "buy", "sell"],
    )
    if not found:
        hint("no route earns anything at the stored prices; `pricing-pipeline commodity sync` reads them.")


def _print(report: SyncReport) -> None:
    print_table(
        ["list", "added", "changed", "vanished", "rejected", "calls", ""],
        [
            (
                step.name,
                step.added,
                step.revised,
                step.vanished,
                step.rejected,
                step.calls,
                "failed" if step.failure else "",
            )
            for step in report.steps
        ],
        right=["added", "changed", "vanished", "rejected", "calls"],
    )


def _priced(line: reads.PriceLine) -> tuple[str, ...]:
    return (
        _number(line.buy),
        _number(line.stock),
        _number(line.sell),
        _number(line.demand),
        f"{line.game_version or ''} (older)".strip() if line.is_of_other_version else line.game_version or "",
        duration(line.age_seconds),
    )


def _number(value: int | Decimal | None) -> str:
    return "" if value is None else f"{value:,}"
