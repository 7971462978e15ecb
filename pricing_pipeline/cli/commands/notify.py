"""The commands of `notify` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Try a recipient's channel, and read the messages of the channel log.")


@noun.command("test")
def try_(
    name: Annotated[
        str | None, typer.Argument(metavar="[RECIPIENT]", help="A recipient of `recipient list`.")
    ] = None,
    last_resort: Annotated[
        bool,
        typer.Option("--last-resort", help="Send to PRICING_LAST_RESORT_URL instead, without a database."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Send a recipient a test message, and wait up to half a minute for its end.

    \b
    Example: pricing-pipeline notify test ops
    """
    from pricing_pipeline.cli import notify

    if (name is None) != last_resort:
        raise typer.BadParameter("name a recipient, or say --last-resort")
    if not (notify.try_last_resort(as_json=as_json) if name is None else notify.try_(name, as_json=as_json)):
        raise typer.Exit(1)


@noun.command()
@listing
def log(limit: Limit = 20, as_json: Json = False) -> None:
    """Show messages to recipients of the channel `log`, which sends nothing, the newest first.

    \b
    Example: pricing-pipeline notify log
    """
    from pricing_pipeline.cli import notify

    notify.log(limit, as_json=as_json)
