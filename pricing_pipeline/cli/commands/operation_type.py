"""The commands of `operation-type` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Say which side effects there are, such as those that a program of yours does.")

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
    typer.Option(
        "--first-pause", metavar="SECONDS", help="Pause after the first failed attempt; later ones double."
    ),
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

    It needs the owner's URL, as `type add` does. A type with the fields recipient, title and body (strings), which
    needs no others, can be a channel; `data=object?` brings it prices.

    \b
    Example: pricing-pipeline operation-type add sheet_row --field symbol=string --field price=string?
    """
    from pricing_pipeline.cli import operation_type

    operation_type.add(
        name,
        fields or (),
        description=description,
        max_attempts=max_attempts,
        time_limit=time_limit,
        first_pause=first_pause,
        as_json=as_json,
    )


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List the operation types, and where the handler of each is in this installation.

    \b
    Example: pricing-pipeline operation-type list
    """
    from pricing_pipeline.cli import operation_type

    operation_type.list_(as_json=as_json)


@noun.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show one operation type. Its handler is imported, to say whether that works in this installation.

    \b
    Example: pricing-pipeline operation-type show webhook
    """
    from pricing_pipeline.cli import operation_type

    operation_type.show(name, as_json=as_json)


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
        typer.Option("--active/--inactive", help="Whether its operations are done; if not, they wait."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change an operation type. Fields replace all former fields; those of a built-in type stay.

    Queued operations keep their payload and their number of attempts. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline operation-type change webhook --max-attempts 8
    """
    from pricing_pipeline.cli import operation_type

    operation_type.change(
        name,
        fields,
        description=description,
        max_attempts=max_attempts,
        time_limit=time_limit,
        first_pause=first_pause,
        is_active=is_active,
        as_json=as_json,
    )


@noun.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Delete an operation type of your own. No recipient may use it, and none of its operations may wait.

    It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline operation-type remove sheet_row
    """
    from pricing_pipeline.cli import operation_type

    operation_type.remove(name, as_json=as_json)
