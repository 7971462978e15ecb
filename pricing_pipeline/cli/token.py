"""`token add|list|remove`: who may use the HTTP API."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zone, zoned
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens

if TYPE_CHECKING:
    from pricing_pipeline.keys.api_tokens import ApiToken

noun = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name for the token, such as web-shop.")]


@noun.command()
@zoned
def add(
    name: Name,
    scopes: Annotated[
        list[Scope],
        typer.Option("--scope", help="What it allows; repeatable. admin includes the others."),
    ],
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="The user that it acts for.")
    ] = None,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="Each request names a user, as an application's does.")
    ] = False,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            metavar="HOURS",
            min=0.01,
            max=87_600,
            help="How long it lasts; default: until it is removed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token, and print it. It is not shown again.

    \b
    Example: pricing-pipeline token add web-shop --scope read --scope watch --any-user
    """
    if (user is None) != any_user:
        raise typer.BadParameter(
            "say --user USER for whom it acts, or --any-user if it names a user in each request"
        )
    with open_owner() as engine, engine.begin() as connection:
        token = api_tokens.add(connection, name, set(scopes), user, hours).get_secret_value()
        expires_at = next(token.expires_at for token in api_tokens.stored(connection) if token.name == name)
    if as_json:
        print_json({"name": name, "token": token, "expires_at": expires_at})
        return
    typer.echo(token)
    if expires_at is not None:
        hint(f"It expires at {moment(expires_at)} {zone()}.")
    hint("This is shown only now. Send it as: Authorization: Bearer TOKEN")


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the tokens, what they allow, when they were last used and when they expire.

    \b
    Example: pricing-pipeline token list
    """
    with open_connection() as connection:
        found = api_tokens.stored(connection)
    if as_json:
        print_json({"tokens": [_content(token) for token in found]})
        return
    print_table(
        ["token", "allows", "acts for", in_zone("made"), in_zone("last used"), in_zone("expires")],
        [
            (
                token.name,
                ", ".join(scope for scope in Scope if scope in token.scopes),
                token.user_id if token.user_id is not None else "any user",
                moment(token.created_at),
                moment(token.last_used_at) or "never",
                f"{moment(token.expires_at)}{' (over)' if token.has_expired else ''}"
                if token.expires_at
                else "never",
            )
            for token in found
        ],
        spare=[in_zone("made"), in_zone("last used")],
    )
    if not found:
        typer.echo(
            "there is no token, so nobody can use the HTTP API. `pricing-pipeline token add --help` shows how to add "
            "one."
        )


@noun.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A token of `token list`.")],
    as_json: Json = False,
) -> None:
    """Remove a token. The API refuses it within five seconds.

    \b
    Example: pricing-pipeline token remove web-shop
    """
    with open_owner() as engine, engine.begin() as connection:
        api_tokens.remove(connection, name)
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        typer.echo(f"{name} cannot use the HTTP API any more.")


def _content(token: ApiToken) -> dict[str, object]:
    content = asdict(token) | {"scopes": sorted(token.scopes), "has_expired": token.has_expired}
    del content["seconds_left"]
    return content
