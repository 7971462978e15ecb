"""`operation list|show|status|retry|cancel`: side effects, and what a person does about single ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import duration, moment, print_json, print_lines, print_table, printable
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Outcome
from pricing_pipeline.settings import load_settings


def list_(statuses: Sequence[str], operation_type: str | None, at_most: int, *, as_json: bool) -> None:
    """Tell the side effects in some states."""
    with open_connection(load_settings()) as connection:
        operations = operation_queue.listed(connection, statuses, operation_type, at_most)
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


def show(operation_id: int, *, as_json: bool) -> None:
    """Tell everything about one side effect. Raises UnknownOperation."""
    with open_connection(load_settings()) as connection:
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


def status(*, as_json: bool) -> None:
    """Tell how many side effects there are by type and status, and what was done today."""
    with open_connection(load_settings()) as connection:
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


def retry(ids: Sequence[int], *, all_failed: bool, as_json: bool) -> bool:
    """Queue dead side effects again; False when one of them could not be."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        wanted = operation_queue.dead(connection) if all_failed else ids
        outcomes = operation_queue.retry(connection, wanted)
    return _report(outcomes, as_json=as_json, nothing="no operation has failed.")


def cancel(ids: Sequence[int], *, as_json: bool) -> bool:
    """Cancel side effects that have not ended; False when one of them had."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        outcomes = operation_queue.cancel(connection, ids)
    return _report(outcomes, as_json=as_json, nothing="no operation was named.")


def _report(outcomes: Sequence[Outcome], *, as_json: bool, nothing: str) -> bool:
    if as_json:
        print_json({"operations": [{"id": outcome.id, "outcome": outcome.words} for outcome in outcomes]})
    else:
        for outcome in outcomes:
            typer.echo(f"operation {outcome.id}: {outcome.words}.")
        if not outcomes:
            typer.echo(nothing)
    return all(outcome.is_changed for outcome in outcomes)
