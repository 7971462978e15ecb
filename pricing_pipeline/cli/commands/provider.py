"""The commands of `provider` as they are typed."""

from __future__ import annotations

import typer

from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Look at the sources of prices.")


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List providers: what each can be asked for, and what it serves.

    \b
    Example: pricing-pipeline provider list
    """
    from pricing_pipeline.cli import provider

    provider.list_(as_json=as_json)


@noun.command()
@listing
def show(name: Provider, as_json: Json = False) -> None:
    """Show one provider: whether it may be called now, its limits and quota, its keys, and what it serves.

    \b
    Example: pricing-pipeline provider show twelvedata
    """
    from pricing_pipeline.cli import provider

    provider.show(name, as_json=as_json)
