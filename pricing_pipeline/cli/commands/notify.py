"""The commands of `notify` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Try a recipient's channel, and read what would have been sent.")


@noun.command("test")
def try_(
    name: Annotated[str, typer.Argument(metavar="RECIPIENT", help="A recipient of `recipient list`.")],
    as_json: Json = False,
) -> None:
    """Send a recipient a test message, and wait up to half a minute to see how it ends.

    \b
    Example: pricing-pipeline notify test ops
    """
    from pricing_pipeline.cli import notify

    if not notify.try_(name, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
@listing
def log(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20, as_json: Json = False
) -> None:
    """Show messages to recipients of the channel `log`: what would have been sent, the newest first.

    \b
    Example: pricing-pipeline notify log
    """
    from pricing_pipeline.cli import notify

    notify.log(limit, as_json=as_json)
