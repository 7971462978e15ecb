"""The commands of `token` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.domain.scopes import Scope

noun = typer.Typer(help="Say which programs may use the HTTP API, and for what.")


Name = Annotated[str, typer.Argument(metavar="NAME", help="A name for the token, such as web-shop.")]


@noun.command()
@zoned
def add(
    name: Name,
    scope: Annotated[
        list[Scope],
        typer.Option("--scope", help="What it allows; give it again for more. admin includes the others."),
    ],
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="The user that it acts for.")
    ] = None,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="It names a user in each request, as an application does.")
    ] = False,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            metavar="HOURS",
            min=0.01,
            max=87_600,
            help="It lasts so long; else until it is removed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token, and print it. It is not shown again.

    \b
    Example: pricing-pipeline token add web-shop --scope read --scope watch --any-user
    """
    from pricing_pipeline.cli import token

    token.add(name, scope, user, hours, any_user=any_user, as_json=as_json)


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the tokens, what they allow, when they were last used and when they expire.

    \b
    Example: pricing-pipeline token list
    """
    from pricing_pipeline.cli import token

    token.list_(as_json=as_json)


@noun.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A token of `token list`.")],
    as_json: Json = False,
) -> None:
    """Remove a token. The API refuses it within five seconds.

    \b
    Example: pricing-pipeline token remove web-shop
    """
    from pricing_pipeline.cli import token

    token.remove(name, as_json=as_json)
