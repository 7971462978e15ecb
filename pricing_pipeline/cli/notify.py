"""`notify test|log`: send a test message, and show messages that the channel `log` kept instead of sending them."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.database import load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.cli.style import in_zone, listing
from pricing_pipeline.errors import OperationFailed, SettingsError, UnknownOperation
from pricing_pipeline.operations import last_resort, operation_queue, recipients

if TYPE_CHECKING:
    from sqlalchemy import Engine

noun = typer.Typer()

_PATIENCE = 30.0
"""In seconds; a little longer than one attempt may take is not needed to see most faults."""
_LOOK_EVERY = 0.2


@noun.command("test")
def try_(
    name: Annotated[str | None, typer.Argument(metavar="[RECIPIENT]", help="A recipient of `recipient list`.")] = None,
    last_resort: Annotated[
        bool,
        typer.Option("--last-resort", help="Send to PRICING_LAST_RESORT_URL instead, without a database."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Send a recipient a test message, and wait up to half a minute for the result.

    \b
    Example: pricing-pipeline notify test ops
    """
    if (name is None) != last_resort:
        raise typer.BadParameter("name a recipient, or say --last-resort")
    if not (_try_last_resort(as_json=as_json) if name is None else _try_recipient(name, as_json=as_json)):
        raise typer.Exit(1)


@noun.command()
@listing
def log(at_most: Limit = 20, as_json: Json = False) -> None:
    """Show messages to recipients of the channel `log`, which sends nothing, the newest first.

    \b
    Example: pricing-pipeline notify log
    """
    with open_connection() as connection:
        sent = operation_queue.sent_to_log(connection, at_most)
    if as_json:
        print_json({"messages": sent})
        return
    print_table(
        [in_zone("at"), "to", "title", "body"],
        [(moment(m["finished_at"]), m["recipient"], m["title"], m["body"]) for m in sent],
        spare=["title"],
        long="body",
    )
    if not sent:
        typer.echo("the channel log has no messages yet.")


def _try_recipient(name: str, *, as_json: bool) -> bool:
    """Send a test message at once, quiet hours or not; False when it has not arrived. Raises OperationRefused."""
    with open_engine() as engine:
        with engine.begin() as connection:
            channel = recipients.find(connection, name).channel
            operation_id = recipients.send(
                connection,
                name,
                "Test of the pricing pipeline",
                f"This is a test. The pricing pipeline can reach {name} by this channel.",
                is_urgent=True,
            )
        status, why = _outcome(engine, operation_id)
    if as_json:
        content = {
            "recipient": name,
            "operation": operation_id,
            "status": status,
            "why": why,
        }
        print_json(content)
    elif status == "completed":
        typer.echo(f"The message to {name} was sent.")
    elif why is not None:
        again = " It is tried again." if status == "pending" else ""
        typer.echo(
            f"The message to {name} was not sent: {why.rstrip('.')}.{again} `operation show {operation_id}` follows it."
        )
    else:
        typer.echo(
            f"The message to {name} still waits. Does the process `notifier` run, and `operation-type show {channel}` "
            f"find a handler? `operation show {operation_id}` follows it."
        )
    return status == "completed"


def _try_last_resort(*, as_json: bool) -> bool:
    """Send a test message to the last resort, without a database; False if it has not arrived. Raises SettingsError."""
    resort = last_resort.from_settings(load_settings())
    if resort is None:
        raise SettingsError(
            "PRICING_LAST_RESORT_URL is not set, so nothing reports that the database is away. See .env.example."
        )
    why = None
    try:
        resort.send(
            "Test of the pricing pipeline",
            f"This is a test. {socket.gethostname()} reports here when the pricing database is away.",
            f"test {time.time_ns()}",
        )
    except OperationFailed as error:
        why = str(error)
    if as_json:
        print_json({"last_resort": resort.place, "sent": why is None, "why": why})
    elif why is None:
        typer.echo(f"The message to {resort.place} was sent.")
    else:
        typer.echo(f"The message to {resort.place} was not sent: {why.rstrip('.')}.")
    return why is None


def _outcome(engine: Engine, operation_id: int) -> tuple[str, str | None]:
    """The status of an operation after its first attempt, and why that failed."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        with engine.connect() as connection:
            try:
                operation = operation_queue.find(connection, operation_id)
            except UnknownOperation:
                return "removed", None
        errors = operation["errors"]
        if errors or operation["finished_at"] is not None or time.monotonic() > deadline:
            return operation["status"], errors[-1]["message"] if errors else None
        time.sleep(_LOOK_EVERY)
