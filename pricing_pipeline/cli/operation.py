"""`operation list|show|status|retry|cancel`: side effects, and what a person does about single ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.output import duration, moment, print_json, print_lines, print_table, printable
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.domain.states import LIVE_AND_FAILED_OPERATIONS, OperationStatus
from pricing_pipeline.operations import operation_queue

if TYPE_CHECKING:
    from pricing_pipeline.operations.operation_queue import Outcome

noun = typer.Typer()

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids, as `operation list` shows them.")]


@noun.command("list")
@listing
def list_(
    statuses: Annotated[
        list[OperationStatus],
        typer.Option("--status", help="Only operations in this state; may be repeated."),
    ] = LIVE_AND_FAILED_OPERATIONS,
    operation_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Only this type, such as webhook; default: all."),
    ] = None,
    at_most: Limit = 50,
    as_json: Json = False,
) -> None:
    """List side effects: waiting ones in the order they are claimed, then finished ones, the newest first.

    \b
    Example: pricing-pipeline operation list --status failed
    """
    with open_connection() as connection:
        operations = operation_queue.listed(connection, [status.value for status in statuses], operation_type, at_most)
    if as_json:
        print_json({"operations": operations})
        return
    now = datetime.now(UTC)
    print_table(
        ["id", "type", "status", "to", "what", "tries", "age", "why"],
        [
            (
                operation["id"],
                operation["operation_type"],
                operation["status"],
                operation["payload"].get("recipient", ""),
                operation["payload"].get("title", ""),
                f"{operation['attempt']} of {operation['max_attempts']}",
                duration((now - operation["enqueued_at"]).total_seconds()),
                operation["waits"] or operation["last_error"],
            )
            for operation in operations
        ],
        right=["id", "age"],
        spare=["what", "tries"],
        long="why",
    )
    if not operations:
        typer.echo(f"no operation is {' or '.join(statuses)}.")


@noun.command()
@zoned
def show(
    operation_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="As in `operation list`.")],
    as_json: Json = False,
) -> None:
    """Show one side effect: what it is to do, where it stands, and every failure it has had.

    \b
    Example: pricing-pipeline operation show 17
    """
    with open_connection() as connection:
        operation = operation_queue.find(connection, operation_id)
    if as_json:
        print_json(operation)
        return
    print_lines(
        {
            "operation": operation["id"],
            "type": operation["operation_type"],
            "status": operation["status"],
            **{name: printable(str(value)) for name, value in operation["payload"].items()},
            "attempts": f"{operation['attempt']} of {operation['max_attempts']}",
            "enqueued": moment(operation["enqueued_at"]),
            "due": moment(operation["due_at"]) if operation["status"] == "pending" else None,
            "waits": operation["waits"],
            "worker": operation["worker"],
            "lease until": moment(operation["lease_until"]),
            "finished": moment(operation["finished_at"]),
            "key": operation["idempotency_key"],
            "result": None if operation["result"] is None else printable(json.dumps(operation["result"])),
        }
    )
    for error in operation["errors"]:
        at = moment(datetime.fromisoformat(error["at"]))
        typer.echo(printable(f"{at}  attempt {error['attempt']}: {error['message']}"))


@noun.command()
@listing
def status(as_json: Json = False) -> None:
    """Count side effects by type and status, and those of today.

    \b
    Example: pricing-pipeline operation status
    """
    with open_connection() as connection:
        counts = operation_queue.counts(connection)
        done, failed = operation_queue.today(connection)
    if as_json:
        content = [{**count, "average_attempts": float(count["average_attempts"])} for count in counts]
        print_json({"operations": content, "done_today": done, "failed_today": failed})
        return
    print_table(
        ["type", "status", "number", "oldest", "newest", "tries"],
        [
            (
                count["operation_type"],
                count["status"],
                count["operations"],
                moment(count["oldest_at"]),
                moment(count["newest_at"]),
                count["average_attempts"],
            )
            for count in counts
        ],
        right=["number", "tries"],
        spare=["newest"],
    )
    typer.echo(f"Today (UTC): {done} done, {failed} failed for good.")


@noun.command()
def retry(
    ids: Annotated[
        list[int] | None,
        typer.Argument(metavar="ID", min=1, help="Ids of failed or cancelled operations.", show_default=False),
    ] = None,
    all_failed: Annotated[bool, typer.Option("--all-failed", help="All operations that have failed for good.")] = False,
    as_json: Json = False,
) -> None:
    """Queue failed or cancelled side effects again, with all their attempts and the same idempotency key.

    The exit code is 1 when an operation could not be retried.

    \b
    Example: pricing-pipeline operation retry --all-failed
    """
    if bool(ids) == all_failed:
        raise typer.BadParameter("name operations by their ids, or give --all-failed; not both")
    ids = ids or []
    with open_engine() as engine, engine.begin() as connection:
        wanted = operation_queue.dead(connection) if all_failed else ids
        outcomes = operation_queue.retry(connection, wanted)
    if not _report(outcomes, as_json=as_json, nothing="no operation has failed."):
        raise typer.Exit(1)


@noun.command()
def cancel(ids: Ids, as_json: Json = False) -> None:
    """Cancel side effects that wait or are under way. Those under way may have happened already.

    The exit code is 1 when an operation could not be cancelled.

    \b
    Example: pricing-pipeline operation cancel 17 18
    """
    with open_engine() as engine, engine.begin() as connection:
        outcomes = operation_queue.cancel(connection, ids)
    if not _report(outcomes, as_json=as_json, nothing="no operation was named."):
        raise typer.Exit(1)


def _report(outcomes: Sequence[Outcome], *, as_json: bool, nothing: str) -> bool:
    if as_json:
        print_json({"operations": [{"id": outcome.id, "outcome": outcome.words} for outcome in outcomes]})
    else:
        for outcome in outcomes:
            typer.echo(f"operation {outcome.id}: {outcome.words}.")
        if not outcomes:
            typer.echo(nothing)
    return all(outcome.is_changed for outcome in outcomes)
