"""`list add|show|remove`: symbols of a user under one name, which are read, and watched, together."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import AnySymbols, Json, Symbols, User
from pricing_pipeline.cli.output import listed, login, print_json, print_table
from pricing_pipeline.cli.style import listing
from pricing_pipeline.demand import lists

noun = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a list, such as mine.")]


@noun.command()
def add(
    name: Name,
    symbols: Symbols,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this data type; repeatable. Default: all of its prices."),
    ] = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Put symbols on a list: all of them, or none. A new name makes a new list.

    `GET /v1/prices?list=NAME` reads it, and so does a feed of `token add --feed --list NAME`. Each read keeps its
    prices fresh for five minutes. A symbol that is new here needs --type.

    \b
    Example: pricing-pipeline list add mine AAPL MSFT --user alice
    """
    user = login() if user is None else user
    with open_engine() as engine, engine.begin() as connection:
        pairs = (
            [(type_, symbol) for type_ in reads.types_of_prices(connection, types) for symbol in symbols]
            if types
            else reads.pairs_of_prices(connection, symbols, None)
        )
        found = lists.add(connection, user, name, pairs)
    if as_json:
        print_json({"user": user, "list": name, "pairs": _content(found)})
        return
    typer.echo(f"{name} has {listed(_symbols(found))}.")


@noun.command()
@listing
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this list; default: all.", show_default=False)
    ] = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Show the lists of a user.

    \b
    Example: pricing-pipeline list show mine --user alice
    """
    user = login() if user is None else user
    with open_connection() as connection:
        found = lists.of_user(connection, user)
        if name is not None and name not in found:
            raise lists.unknown(connection, user, name)
    shown = {key: pairs for key, pairs in found.items() if name in (None, key)}
    if as_json:
        content = [{"list": key, "pairs": _content(pairs)} for key, pairs in shown.items()]
        print_json({"user": user, "lists": content})
        return
    print_table(
        ["list", "type", "symbol"],
        [(key, data_type, symbol) for key, pairs in shown.items() for data_type, symbol in pairs],
    )
    if not shown:
        typer.echo(f"{user} has no list. `pricing-pipeline list add --help` shows how to make one.")


@noun.command()
def remove(name: Name, symbols: AnySymbols = None, user: User = None, as_json: Json = False) -> None:
    """Take symbols off a list; without symbols, remove the list.

    \b
    Example: pricing-pipeline list remove mine MSFT --user alice
    """
    user = login() if user is None else user
    with open_engine() as engine, engine.begin() as connection:
        removed = lists.remove(connection, user, name, symbols or None)
    if as_json:
        print_json({"user": user, "list": name, "removed": removed})
    elif symbols:
        typer.echo(f"{name} no longer has {listed(symbols)}." if removed else f"{name} had none of these.")
    else:
        typer.echo(f"{name} is removed.")


def _symbols(pairs: list[lists.Pair]) -> list[str]:
    return sorted({symbol for _, symbol in pairs})


def _content(pairs: list[lists.Pair]) -> list[dict[str, str]]:
    return [{"data_type": data_type, "symbol": symbol} for data_type, symbol in pairs]
