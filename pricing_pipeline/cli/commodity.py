"""`commodity sync|list|show|terminal|routes`: what commodities of a game cost. Only `sync` calls a provider."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import decimal, duration, iso, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.provider_access import access_to
from pricing_pipeline.commodities import etl, reads
from pricing_pipeline.commodities.etl import SyncReport
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.uex_lists import NAME
from pricing_pipeline.settings import load_settings


def sync(*, as_json: bool) -> None:
    """Read all lists of UEX and tell what they brought. Raises LockUnavailable while another sync is at work, LockLost,
    and PricingError at the end if a list could not be read.
    """
    settings = load_settings()
    with open_engine(settings) as engine:
        access = access_to(engine, settings, NAME)
        with ProviderClient(
            PROVIDERS[NAME], access.base_url, access.keys, user_agent=settings.user_agent
        ) as client:
            report = etl.sync(engine, client)
    if as_json:
        print_json({**asdict(report), "is_complete": report.is_complete})
    else:
        _tell(report)
    if not report.is_complete:
        failed = ", ".join(step.name for step in report.steps if step.failure)
        first = next(step.failure for step in report.steps if step.failure)
        raise PricingError(f"of the sync {report.run} these lists could not be read: {failed}. {first}")


def _tell(report: SyncReport) -> None:
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


def list_(*, as_json: bool) -> None:
    """Tell all commodities."""
    with open_connection(load_settings()) as connection:
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


def show(name: str, as_of: datetime | None, *, as_json: bool) -> None:
    """Tell where a commodity is traded; of now, or of a moment in the past. Raises UnknownCommodity."""
    with open_connection(load_settings()) as connection:
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


def terminal(name: str, as_of: datetime | None, *, as_json: bool) -> None:
    """Tell what a terminal trades; of now, or of a moment in the past. Raises UnknownTerminal."""
    with open_connection(load_settings()) as connection:
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


_PRICED = ("buy", "stock", "sell", "demand", "version", "age")


def _priced(line: reads.PriceLine) -> tuple[str, ...]:
    return (
        _number(line.buy),
        _number(line.stock),
        _number(line.sell),
        _number(line.demand),
        f"{line.game_version or ''} (older)".strip() if line.is_of_other_version else line.game_version or "",
        duration(line.age_seconds),
    )


def routes(terminal: str | None, limit: int, *, as_json: bool) -> None:
    """Tell the best routes. Raises UnknownTerminal."""
    with open_connection(load_settings()) as connection:
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
        hint(
            "no route earns anything by the prices that are stored; `pricing-pipeline commodity sync` reads them."
        )


def _number(value: int | Decimal | None) -> str:
    return "" if value is None else f"{value:,}"
