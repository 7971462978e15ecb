"""`token add|list|remove`: tokens of the HTTP API."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import seconds
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zone, zoned
from pricing_pipeline.demand import lists
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
        list[Scope] | None,
        typer.Option("--scope", help="What it allows; repeatable. admin includes the others."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="The user that it acts for.")] = None,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="Each request names a user, as an application's does.")
    ] = False,
    is_feed: Annotated[
        bool,
        typer.Option(
            "--feed",
            help="For programs that send no header: in a URL, it reads prices and histories of --symbols or a --list.",
        ),
    ] = False,
    symbols: Annotated[
        list[str] | None,
        typer.Option("--symbols", metavar="SYMBOLS", help="With --feed: its symbols, with commas; repeatable."),
    ] = None,
    of_list: Annotated[
        str | None,
        typer.Option(
            "--list",
            metavar="NAME",
            help="With --feed, instead of --symbols: a list of --user, read each time.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="With --feed: only this data type; repeatable. Default: all."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="SPAN|never",
            help=f"How long it lasts, such as 8h or 30d; default: never ends, with --feed {api_tokens.FEED_DAYS}d.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token, and print it. It is not shown again.

    \b
    Example: pricing-pipeline token add web-shop --scope read --scope watch --any-user
    """
    named = [part.strip() for given in symbols or () for part in given.split(",") if part.strip()]
    if is_feed and (scopes or any_user or bool(named) == (of_list is not None)):
        raise typer.BadParameter("a feed takes --symbols or --list, but neither --scope nor --any-user")
    if of_list is not None and (user is None or types):
        raise typer.BadParameter("--list needs --user, and takes no --type, because a list has its own data types")
    if not is_feed and (named or types or of_list is not None):
        raise typer.BadParameter("--symbols, --list and --type are for a feed: add --feed")
    if not is_feed and not scopes:
        raise typer.BadParameter("give --scope: what the token allows")
    if not is_feed and (user is None) != any_user:
        raise typer.BadParameter("give --user USER, or --any-user if each request names its user")
    hours = _hours(expires, api_tokens.FEED_DAYS * 24 if is_feed else None)
    with open_owner() as engine, engine.begin() as connection:
        if of_list is not None and user is not None:
            if of_list not in lists.of_user(connection, user):
                raise lists.unknown(connection, user, of_list)
            made = api_tokens.add_feed_of_list(connection, name, user, of_list, hours)
        elif is_feed:
            made = api_tokens.add_feed(connection, name, reads.pairs_of_prices(connection, named, types), user, hours)
        else:
            made = api_tokens.add(connection, name, set(scopes or ()), user, hours)
        token = made.get_secret_value()
        expires_at = next(token.expires_at for token in api_tokens.stored(connection) if token.name == name)
    if as_json:
        print_json({"name": name, "token": token, "expires_at": expires_at})
        return
    typer.echo(token)
    if expires_at is not None:
        hint(f"It expires at {moment(expires_at)} {zone()}.")
    place = "/v1/prices?format=csv&token=TOKEN, or as a password" if is_feed else "Authorization: Bearer TOKEN"
    hint(f"This is shown only now. Send it as: {place}")


def _hours(expires: str | None, default: float | None) -> float | None:
    """How long a token lasts; None for ever."""
    if expires is None:
        return default
    if expires == "never":
        return None
    hours = seconds(expires, "--expires") / 3600
    if not 0.01 <= hours <= 87_600:
        raise typer.BadParameter(f"--expires {expires!r}: a token lasts from 36s to 3650d, or write never")
    return hours


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the tokens, what they allow, when they were last used and when they expire.

    \b
    Example: pricing-pipeline token list
    """
    with open_connection() as connection:
        found = api_tokens.stored(connection)
        feeds = {token.token_id: api_tokens.feed(connection, token.token_id) for token in found if token.is_feed}
    if as_json:
        print_json({"tokens": [_content(token, feeds.get(token.token_id)) for token in found]})
        return
    print_table(
        ["token", "allows", "acts for", in_zone("made"), in_zone("last used"), in_zone("expires")],
        [
            (
                token.name,
                _allows(token, feeds.get(token.token_id)),
                token.user_id or ("nobody" if token.is_feed else "any user"),
                moment(token.created_at),
                moment(token.last_used_at) or "never",
                f"{moment(token.expires_at)}{' (over)' if token.has_expired else ''}" if token.expires_at else "never",
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


def _allows(token: ApiToken, feed: list[tuple[str, str]] | None) -> str:
    if feed is not None:
        return f"feed of {len({symbol for _, symbol in feed})} symbols"
    return ", ".join(scope for scope in Scope if scope in token.scopes)


def _content(token: ApiToken, feed: list[tuple[str, str]] | None) -> dict[str, object]:
    content = asdict(token) | {"scopes": sorted(token.scopes), "has_expired": token.has_expired}
    content["feed"] = feed and [{"data_type": data_type, "symbol": symbol} for data_type, symbol in feed]
    del content["seconds_left"]
    return content
