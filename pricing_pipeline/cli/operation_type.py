"""`operation-type add|list|show|change|remove`: which side effects there are, and who does them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import (
    duration,
    print_change,
    print_json,
    print_lines,
    print_table,
    printable,
)
from pricing_pipeline.cli.program import warn
from pricing_pipeline.cli.style import listing
from pricing_pipeline.operations import operation_types, own_handlers

if TYPE_CHECKING:
    from pricing_pipeline.operations.operation_types import OperationType
    from pricing_pipeline.operations.own_handlers import OwnHandler

noun = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="TYPE", help="A type of `operation-type list`.")]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=KIND",
        help="A field of the payload: string, number, boolean, object, array or url; with ? it may be left out.",
    ),
]
Description = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="For people.")]
Attempts = Annotated[int | None, typer.Option("--max-attempts", help="Number of attempts, 1 to 20.")]
TimeLimit = Annotated[
    int | None, typer.Option("--time-limit", metavar="SECONDS", help="Time for one attempt, 1 to 240.")
]
FirstPause = Annotated[
    int | None,
    typer.Option("--first-pause", metavar="SECONDS", help="Pause after the first failed attempt; later ones double."),
]


@noun.command()
def add(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A name, such as sheet_row.")],
    fields: Fields = None,
    description: Description = None,
    max_attempts: Attempts = None,
    time_limit: TimeLimit = None,
    first_pause: FirstPause = None,
    as_json: Json = False,
) -> None:
    """Add an operation type. Nothing happens until a package with a handler of this name is installed.

    It needs the owner's URL. A type with the fields recipient, title and body (strings), which
    needs no others, can be a channel; `data=object?` brings it prices.

    \b
    Example: pricing-pipeline operation-type add sheet_row --field symbol=string --field price=string?
    """
    changes = _changes(fields or (), description, max_attempts, time_limit, first_pause)
    with open_owner() as engine, engine.begin() as connection:
        operation_types.add(connection, operation_types.OperationType(name, **changes))
        added = operation_types.find(connection, name)
    if as_json:
        print_json(_content(added))
        return
    typer.echo(f"{name} is added{', and can be a channel' if added.takes_messages else ''}.")
    if name not in own_handlers.sources():
        typer.echo(
            f"Its operations wait for a handler: a package with an entry point {name} of the group "
            f"{own_handlers.GROUP}, installed where the notifier runs."
        )


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the operation types, and where the handler of each is in this installation.

    \b
    Example: pricing-pipeline operation-type list
    """
    with open_connection() as connection:
        found = operation_types.stored(connection)
    sources = own_handlers.sources()
    if as_json:
        content = [{**_content(each), "handler": _source(each, sources.get)} for each in found]
        print_json({"operation_types": content})
        return
    print_table(
        ["type", "tries", "limit", "first pause", "channel", "handler", ""],
        [
            (
                each.operation_type,
                each.max_attempts,
                f"{each.time_limit_seconds} s",
                duration(each.first_pause.total_seconds()),
                "yes" if each.takes_messages else "",
                _source(each, sources.get) or "none in this installation",
                "" if each.is_active else "inactive",
            )
            for each in found
        ],
        right=["tries", "limit"],
        spare=["first pause"],
        long="handler",
    )
    for name in sorted(sources.keys() - {each.operation_type for each in found}):
        warn(f"a handler for {name!r} is installed ({printable(sources[name])}), but there is no such type")


@noun.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show one operation type. Its handler is imported, to say whether that works in this installation.

    \b
    Example: pricing-pipeline operation-type show webhook
    """
    with open_connection() as connection:
        found = operation_types.find(connection, name)
        built_in = [each.operation_type for each in operation_types.stored(connection) if each.is_built_in]
    with redirect_stdout(sys.stderr):  # whatever is imported may print
        own = next(iter(own_handlers.load(built_in, name)), None)
    if as_json:
        handler = _source(found, lambda _: own.source if own else None)
        print_json({**_content(found), "handler": handler, "fault": own.fault if own else None})
        return
    print_lines(
        {
            "type": found.operation_type,
            "what": printable(found.description) or None,
            **{f"field {field}": kind for field, kind in sorted(found.payload_fields.items())},
            "attempts": found.max_attempts,
            "time limit": f"{found.time_limit_seconds} s",
            "first pause": f"{duration(found.first_pause.total_seconds())}, twice as long each time",
            "channel": _channel(found),
            "handler": _handler_words(found, own),
            "waiting or under way": found.live or None,
            "state": "active" if found.is_active else "inactive: its operations wait",
        }
    )


@noun.command()
def change(
    name: Name,
    fields: Fields = None,
    description: Description = None,
    max_attempts: Attempts = None,
    time_limit: TimeLimit = None,
    first_pause: FirstPause = None,
    is_active: Annotated[
        bool | None,
        typer.Option("--active/--inactive", help="Whether its operations are done or wait."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change an operation type. New fields replace all former ones; those of a built-in type stay.

    Queued operations keep their payload and their number of attempts. It needs the owner's URL.

    \b
    Example: pricing-pipeline operation-type change webhook --max-attempts 8
    """
    changes = _changes(fields, description, max_attempts, time_limit, first_pause)
    if is_active is not None:
        changes["is_active"] = is_active
    if not changes:
        raise typer.BadParameter("give at least one option to change")
    with open_owner() as engine, engine.begin() as connection:
        before = operation_types.find(connection, name)
        operation_types.change(connection, before, replace(before, **changes))
        after = operation_types.find(connection, name)
    print_change({"operation_type": name}, _settings(before), _settings(after), as_json=as_json)


@noun.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Delete an operation type of your own. No recipient may use it, and none of its operations may wait.

    It needs the owner's URL.

    \b
    Example: pricing-pipeline operation-type remove sheet_row
    """
    with open_owner() as engine, engine.begin() as connection:
        operation_types.remove(connection, name)
    if as_json:
        print_json({"operation_type": name, "removed": True})
    else:
        typer.echo(f"{name} is removed.")


def _changes(
    fields: Sequence[str] | None,
    description: str | None,
    max_attempts: int | None,
    time_limit: int | None,
    first_pause: int | None,
) -> dict[str, Any]:
    """What was typed, by column."""
    typed: dict[str, Any] = {
        "payload_fields": None if fields is None else _fields(fields),
        "description": description,
        "max_attempts": _small(max_attempts),
        "time_limit_seconds": _small(time_limit),
        "first_pause": None if first_pause is None else timedelta(seconds=_small(first_pause, 10**9) or 0),
    }
    return {column: value for column, value in typed.items() if value is not None}


def _small(number: int | None, most: int = 32_767) -> int | None:
    """A number that the column can hold; what it means is judged there."""
    return None if number is None else max(-1, min(number, most))


def _fields(typed: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in typed:
        name, _, kind = each.partition("=")
        if not name or kind.removesuffix("?") not in operation_types.KINDS:
            kinds = ", ".join(operation_types.KINDS)
            raise typer.BadParameter(
                f"--field {each!r} is not a field. Write it like price=string, or price=string? if it may be left out; "
                f"kinds are {kinds}"
            )
        if name in found:
            raise typer.BadParameter(f"--field {name} is given twice")
        found[name] = kind
    return found


def _source(found: OperationType, source_of: Callable[[str], str | None]) -> str | None:
    return "built in" if found.is_built_in else source_of(found.operation_type)


def _handler_words(found: OperationType, own: OwnHandler | None) -> str:
    if found.is_built_in:
        return "built in"
    if own is None:
        return "none in this installation: its operations wait"
    return printable(f"{own.source}: {own.fault}" if own.fault else own.source)


def _channel(found: OperationType) -> str:
    if not found.takes_messages:
        return "no"
    return f"of {', '.join(found.recipients)}" if found.recipients else "of nobody yet"


def _settings(found: OperationType) -> dict[str, object]:
    fields = ", ".join(f"{name}={kind}" for name, kind in sorted(found.payload_fields.items()))
    return {
        "description": found.description,
        "fields": fields or None,
        "max_attempts": found.max_attempts,
        "time_limit": f"{found.time_limit_seconds} s",
        "first_pause": duration(found.first_pause.total_seconds()),
        "is_active": found.is_active,
    }


def _content(found: OperationType) -> dict[str, object]:
    return {
        "operation_type": found.operation_type,
        "description": found.description,
        "fields": dict(found.payload_fields),
        "max_attempts": found.max_attempts,
        "time_limit_seconds": found.time_limit_seconds,
        "first_pause_seconds": found.first_pause.total_seconds(),
        "is_channel": found.takes_messages,
        "is_built_in": found.is_built_in,
        "is_active": found.is_active,
        "live": found.live,
        "recipients": list(found.recipients),
    }
