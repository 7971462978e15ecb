"""The commands of `quarantine` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AnySymbol, AnyType, Json, Reason, User
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.domain.states import Decided

noun = typer.Typer(help="Look at values that are not believed, and decide on them.")

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids of `quarantine list`.")]
Level = Annotated[
    bool, typer.Option("--level", help="Also all quarantined values beside it: in a row, on the same level.")
]


@noun.command("list")
@listing
def list_(
    symbol: AnySymbol = None,
    data_type: AnyType = None,
    state: Annotated[
        Decided, typer.Option("--status", help="Only values in this state.")
    ] = Decided.QUARANTINED,
    at_most: Annotated[
        int, typer.Option("--limit", min=1, help="Show at most this many rows, the newest first.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """List values that a provider sent and that are not believed, the latest first.

    \b
    Example: pricing-pipeline quarantine list AAPL --type equity_daily
    """
    from pricing_pipeline.cli import quarantine

    status = None if state is Decided.ALL else state.value
    quarantine.list_(data_type, symbol, status, at_most, as_json=as_json)


@noun.command()
@listing
def show(
    value_id: Annotated[int, typer.Argument(metavar="ID", help="Of `quarantine list`.")],
    body: Annotated[
        bool,
        typer.Option("--body", help="Write the answer that brought it, byte for byte, and nothing else."),
    ] = False,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask the next provider of its route first: one call, if limits allow."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one quarantined value: why it is not believed, what is stored around it, what others say, and its answer.

    \b
    Example: pricing-pipeline quarantine show 17 --ask
    """
    from pricing_pipeline.cli import quarantine

    if body and (as_json or ask):
        raise typer.BadParameter("--body writes what the provider sent; leave it out with --json and --ask")
    if body:
        quarantine.write_body(value_id)
    else:
        quarantine.show(value_id, ask=ask, as_json=as_json)


@noun.command()
@zoned
def release(
    ids: Ids, level: Level = False, reason: Reason = None, user: User = None, as_json: Json = False
) -> None:
    """Believe quarantined values after all: each is stored exactly as its provider sent it.

    A value enters the history, and is the latest price if none is newer. The exit code is 1 when one could not be.
    With --level one decision settles a whole level, such as all days before a change of face value.

    \b
    Example: pricing-pipeline quarantine release 17 18 --reason "checked with the exchange"
    """
    from pricing_pipeline.cli import quarantine

    if not quarantine.decide(ids, user, reason, release=True, level=level, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
@zoned
def reject(
    ids: Ids, level: Level = False, reason: Reason = None, user: User = None, as_json: Json = False
) -> None:
    """Keep quarantined values out for good. When one comes again it is counted, and nobody is asked.

    \b
    Example: pricing-pipeline quarantine reject 17 --reason "pence for pounds"
    """
    from pricing_pipeline.cli import quarantine

    if not quarantine.decide(ids, user, reason, release=False, level=level, as_json=as_json):
        raise typer.Exit(1)
