"""The commands on held values, as they are typed: arguments, options, help.

What they do is in a module imported when they run, as for commands.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pricing_pipeline.cli.commands import By
from pricing_pipeline.cli.program import Json

HeldIds = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids of `quarantine list`.")]
Why = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Kept with the decision.")]
Level = Annotated[
    bool, typer.Option("--level", help="Also all that is held with it: values in a row, on the same level.")
]


class Decided(StrEnum):
    """The states of a held value."""

    HELD = "held"
    RELEASED = "released"
    REJECTED = "rejected"
    ALL = "all"


def quarantine_list(
    data_type: Annotated[
        str | None, typer.Option("--data-type", metavar="DATA_TYPE", help="Only this data type.")
    ] = None,
    symbol: Annotated[
        str | None, typer.Option("--symbol", metavar="SYMBOL", help="Only this symbol.")
    ] = None,
    state: Annotated[Decided, typer.Option("--status", help="Only values in this state.")] = Decided.HELD,
    at_most: Annotated[int, typer.Option("--limit", min=1, help="The newest so many.")] = 50,
    as_json: Json = False,
) -> None:
    """Show values that a provider sent and that are not believed, the latest first.

    \b
    Example: pricing-pipeline quarantine list --data-type equity_daily --symbol AAPL
    """
    from pricing_pipeline.cli import held

    held.show_all(data_type, symbol, None if state is Decided.ALL else state.value, at_most, as_json=as_json)


def quarantine_show(
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
    """Show one held value: why it is not believed, what is stored around it, what others say, and its answer.

    \b
    Example: pricing-pipeline quarantine show 17 --ask
    """
    from pricing_pipeline.cli import held

    if body and (as_json or ask):
        raise typer.BadParameter("--body writes what the provider sent; leave it out with --json and --ask")
    if body:
        held.write_body(value_id)
    else:
        held.show(value_id, ask=ask, as_json=as_json)


def quarantine_release(
    ids: HeldIds, level: Level = False, why: Why = None, by: By = None, as_json: Json = False
) -> None:
    """Believe held values after all: each is stored exactly as its provider sent it.

    A value enters the history, and is the latest price if none is newer. The exit code is 1 when one could not be.
    With --level one decision settles a whole level, such as all days before a change of face value.

    \b
    Example: pricing-pipeline quarantine release 17 18 --why "checked with the exchange"
    """
    from pricing_pipeline.cli import held

    if not held.decide(ids, by, why, release=True, level=level, as_json=as_json):
        raise typer.Exit(1)


def quarantine_reject(
    ids: HeldIds, level: Level = False, why: Why = None, by: By = None, as_json: Json = False
) -> None:
    """Keep held values out for good. When one comes again it is counted, and nobody is asked.

    \b
    Example: pricing-pipeline quarantine reject 17 --why "pence for pounds"
    """
    from pricing_pipeline.cli import held

    if not held.decide(ids, by, why, release=False, level=level, as_json=as_json):
        raise typer.Exit(1)
