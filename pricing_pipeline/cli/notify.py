"""`notify test|log`: a message to try a channel, and the messages that were kept instead of sent."""

from __future__ import annotations

import socket
import time

import typer
from sqlalchemy import Engine

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.cli.style import in_zone
from pricing_pipeline.errors import OperationFailed, SettingsError, UnknownOperation
from pricing_pipeline.operations import last_resort, operation_queue, recipients
from pricing_pipeline.settings import load_settings

_PATIENCE = 30.0
"""In seconds; a little longer than one attempt may take is not needed to see most faults."""
_LOOK_EVERY = 0.2


def try_(name: str, *, as_json: bool) -> bool:
    """Send a test message at once, quiet hours or not; False when it has not arrived. Raises OperationRefused."""
    with open_engine(load_settings()) as engine:
        with engine.begin() as connection:
            channel = recipients.find(connection, name).channel
            operation_id = recipients.send(
                connection,
                name,
                "Test of the pricing pipeline",
                f"This is a test. The pricing pipeline can reach {name} by this channel.",
                is_urgent=True,
            )
        status, why, skipped = _outcome(engine, operation_id)
    if as_json:
        content = {
            "recipient": name,
            "operation": operation_id,
            "status": status,
            "why": why,
            "skipped": skipped,
        }
        print_json(content)
    elif skipped is not None:
        typer.echo(
            f"Nothing was sent to {name}: {skipped}. A message with prices shows whether it can be reached."
        )
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
    return status == "completed" and skipped is None


def try_last_resort(*, as_json: bool) -> bool:
    """Send a test message to the last resort, without a database; False if it has not arrived. Raises SettingsError."""
    resort = last_resort.from_settings(load_settings())
    if resort is None:
        raise SettingsError(
            "PRICING_LAST_RESORT_URL is not set, so nobody is told when the database is away. See .env.example."
        )
    why = None
    try:
        resort.send(
            "Test of the pricing pipeline",
            f"This is a test. {socket.gethostname()} tells you here when the pricing database is away.",
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


def _outcome(engine: Engine, operation_id: int) -> tuple[str, str | None, str | None]:
    """The status of an operation after its first attempt, why that failed, and why nothing was sent."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        with engine.connect() as connection:
            try:
                operation = operation_queue.find(connection, operation_id)
            except UnknownOperation:
                return "removed", None, None
        errors = operation["errors"]
        if errors or operation["finished_at"] is not None or time.monotonic() > deadline:
            result = operation["result"]
            skipped = result.get("skipped") if isinstance(result, dict) else None
            return operation["status"], errors[-1]["message"] if errors else None, skipped
        time.sleep(_LOOK_EVERY)


def log(at_most: int, *, as_json: bool) -> None:
    """Tell the messages of the channel `log`."""
    with open_connection(load_settings()) as connection:
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
