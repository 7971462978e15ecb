"""The commands of `key` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AnyProvider, Json, KeyName, Provider
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Look after the API keys of providers.")


@noun.command("set")
def set_(
    provider: Provider,
    name: KeyName = "default",
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="LIMIT=UNITS", help="What its own plan allows, such as minute=55; repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store an API key, encrypted, or replace one. The command asks for it, or reads it from standard input.

    Running drains use it within ten seconds. It goes before a key of the same name that is set in the environment.

    \b
    Example: pricing-pipeline key set twelvedata --name second --limit minute=55
    """
    from pricing_pipeline.cli import key

    key.set_(provider, name, limits or [], as_json=as_json)


@noun.command("list")
@listing
def list_(provider: AnyProvider = None, as_json: Json = False) -> None:
    """List API keys, stored ones and those that are set in the environment; of each the last two characters.

    \b
    Example: pricing-pipeline key list
    """
    from pricing_pipeline.cli import key

    key.list_(provider, as_json=as_json)


@noun.command()
@zoned
def show(provider: Provider, name: KeyName = "default", as_json: Json = False) -> None:
    """Show one key without its secret: its last two characters, its limits, and what is left of them.

    \b
    Example: pricing-pipeline key show twelvedata --name second
    """
    from pricing_pipeline.cli import key

    key.show(provider, name, as_json=as_json)


@noun.command()
@zoned
def change(
    provider: Provider,
    name: KeyName = "default",
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether calls are made with it at all.")
    ] = None,
    unblock: Annotated[
        bool,
        typer.Option(
            "--unblock", help="Use it again at once, and fully, though the provider has refused it."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Stop using a key, use it again, or end its pause. It may be a stored key or one that is set in the environment.

    Running drains keep to it from their next claim on. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline key change twelvedata --name second --inactive
    """
    if is_active is None and not unblock:
        raise typer.BadParameter("say what changes: --active, --inactive or --unblock")
    from pricing_pipeline.cli import key

    key.change(provider, name, is_active=is_active, unblock=unblock, as_json=as_json)


@noun.command()
def remove(provider: Provider, name: KeyName = "default", as_json: Json = False) -> None:
    """Forget a stored API key. No call uses a key of this name until one is stored again.

    \b
    Example: pricing-pipeline key remove twelvedata --name second
    """
    from pricing_pipeline.cli import key

    key.remove(provider, name, as_json=as_json)


@noun.command()
def rotate(
    new_master_key: Annotated[
        bool, typer.Option("--new-master-key", help="Make a new master key first, in the file of the others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Encrypt all stored API keys anew, with the newest master key. Safe while everything runs, and to repeat.

    The exit code is 1 when some could not be opened.

    \b
    Example: pricing-pipeline key rotate --new-master-key
    """
    from pricing_pipeline.cli import key

    if not key.rotate(new_master_key=new_master_key, as_json=as_json):
        raise typer.Exit(1)
