"""The commands of `document` as they are typed."""

from __future__ import annotations

import typer

from pricing_pipeline.cli.options import AsOf, Json, Symbol, Type
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Read what providers say about companies.")


# Without this, a group of one command is that command.
@noun.callback()
def _group() -> None: ...


@noun.command()
@listing
def show(symbol: Symbol, data_type: Type, as_of: AsOf = None, as_json: Json = False) -> None:
    """Show what providers say about a company: its documents of one type, the newest period first.

    What is missing or stale is asked for. With --as-of, what was believed then.

    \b
    Example: pricing-pipeline document show AAPL --type company_profile --as-of 2026-11-20
    """
    from pricing_pipeline.cli import document
    from pricing_pipeline.cli.arguments import as_of_time

    at = as_of_time(as_of)
    document.show(symbol, data_type, at, as_json=as_json)
