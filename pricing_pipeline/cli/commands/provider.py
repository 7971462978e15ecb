"""The commands of `provider` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Look at the sources of prices, and say how they are called.")


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


@noun.command()
@listing
def change(
    name: Provider,
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether it is called at all.")
    ] = None,
    max_in_flight: Annotated[
        int | None, typer.Option(metavar="CALLS", help="Calls of one process that may be under way at once.")
    ] = None,
    delay_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="Least time between two calls of all workers together.")
    ] = None,
    pause_seconds: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="First pause after a refusal for speed that names no time."),
    ] = None,
    quota: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes allowed in 30 days, such as 40GB.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change how a provider is called; what no option names stays. `limit set` changes its rate limits.

    What only an inactive provider serves fails, until the provider is active again or another one serves it. Running
    drains keep to the rest from their next claim on. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline provider change mfapi --delay-ms 500
    """
    from pricing_pipeline.cli import provider
    from pricing_pipeline.cli.arguments import byte_count

    given = {
        "is_active": is_active,
        "max_in_flight": max_in_flight,
        "request_delay_ms": delay_ms,
        "throttle_pause_seconds": pause_seconds,
        "quota_bytes": None if quota is None else byte_count(quota, "--quota"),
    }
    changes = {column: value for column, value in given.items() if value is not None}
    if not changes:
        raise typer.BadParameter("say what changes, such as --delay-ms 500 or --inactive")
    provider.change(name, changes, as_json=as_json)
