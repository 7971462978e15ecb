"""The commands of `provider` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Look at the sources of prices, and choose those to be asked.")


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
def use(
    name: Provider,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="PLAN", help="Your plan there; left out, the plans are listed."),
    ] = None,
    symbols: Annotated[
        int,
        typer.Option(
            "--symbols", metavar="N", min=1, help="How many quotes will be watched; sets their TTL."
        ),
    ] = 20,
    minute: Annotated[
        int | None,
        typer.Option("--minute", metavar="UNITS", min=1, help="What your plan allows in a minute."),
    ] = None,
    day: Annotated[
        int | None,
        typer.Option("--day", metavar="UNITS", min=1, help="What your plan allows in a day of UTC."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Try the key with one call first.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Ask a provider from now on, within a plan: its limits, batches, data types and TTLs are written.

    It asks for the key, without showing it, if none is stored. It says what it changed, and how often each price can
    be fetched. Another plan replaces it; `provider undo` takes it back.

    \b
    Example: pricing-pipeline provider use twelvedata --plan free
    """
    from pricing_pipeline.cli import provider_plan

    provider_plan.use(name, plan, symbols=symbols, minute=minute, day=day, is_checked=check, as_json=as_json)


@noun.command()
def undo(name: Provider, as_json: Json = False) -> None:
    """Restore the settings of a provider from before `provider use`. Types that it added are retired.

    \b
    Example: pricing-pipeline provider undo twelvedata
    """
    from pricing_pipeline.cli import provider_plan

    provider_plan.undo(name, as_json=as_json)
