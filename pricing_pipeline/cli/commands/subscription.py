"""The commands of `subscription` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import (
    AllOrNothing,
    AnySymbols,
    AnyType,
    AnyUser,
    Json,
    Limit,
    Symbol,
    Symbols,
    Type,
    User,
)
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Watch prices, or see who does.")


@noun.command()
@zoned
def watch(
    symbols: Symbols,
    data_type: Type,
    user: User = None,
    minutes: Annotated[
        float | None, typer.Option(help="Leave after this many minutes; else at Ctrl-C.")
    ] = None,
    all_or_nothing: AllOrNothing = False,
    as_json: Json = False,
) -> None:
    """Watch prices, which keeps them fresh: one heartbeat a minute until you leave.

    A symbol that is new here is added to the instruments, unverified until a provider's first valid
    answer. Symbols that are refused are named with the reason, and the others are watched. A pair without a fresh price
    says why after five seconds, and again when the reason changes. With --json, one line per event: subscribed, price,
    documents, confirmed, waiting, failed, heartbeat, warning, unsubscribed.

    \b
    Example: pricing-pipeline subscription watch AAPL MSFT --type equity_quote --minutes 5
    """
    if minutes is not None and minutes <= 0:
        raise typer.BadParameter(f"--minutes {minutes:g} leaves before it begins. Give more than 0")
    from pricing_pipeline.cli import subscription

    subscription.watch(user, data_type, symbols, minutes, all_or_nothing=all_or_nothing, as_json=as_json)


@noun.command()
def end(symbols: Symbols, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """Stop watching; for a subscription that was not ended in its own window.

    \b
    Example: pricing-pipeline subscription end AAPL MSFT --type equity_quote --user alice
    """
    from pricing_pipeline.cli import subscription

    subscription.end(user, data_type, symbols, as_json=as_json)


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    user: AnyUser = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List who watches what now, and since when.

    \b
    Example: pricing-pipeline subscription list AAPL --type equity_quote
    """
    from pricing_pipeline.cli import subscription

    subscription.list_(symbols, data_type, user, limit, as_json=as_json)


@noun.command()
@zoned
def show(symbol: Symbol, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """Show one subscription: since when, its last heartbeat, and why its price is as old as it is.

    \b
    Example: pricing-pipeline subscription show AAPL --type equity_quote --user alice
    """
    from pricing_pipeline.cli import subscription

    subscription.show(symbol, data_type, user, as_json=as_json)
