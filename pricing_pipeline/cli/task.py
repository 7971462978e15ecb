"""`task list|show|retry|forget|cancel`: the fetch queue, and what a person does about single tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.output import duration, moment, print_json, print_table, printable
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.states import LIVE_AND_FAILED_TASKS, TaskStatus
from pricing_pipeline.keys import credentials
from pricing_pipeline.queue import task_queue
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from pricing_pipeline.queue.task_queue import Outcome

noun = typer.Typer()

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids of tasks, as `task list` shows them.")]
DeadIds = Annotated[
    list[int] | None, typer.Argument(metavar="ID", min=1, help="Ids of dead tasks.", show_default=False)
]
AllFailed = Annotated[bool, typer.Option("--all-failed", help="All failed tasks that are not resolved.")]
OfType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="With --all-failed: only this data type.")]
OfProvider = Annotated[
    str | None, typer.Option("--provider", metavar="PROVIDER", help="With --all-failed: only this provider.")
]


@noun.command("list")
@listing
def list_(
    statuses: Annotated[
        list[TaskStatus], typer.Option("--status", help="Only tasks in this state; may be repeated.")
    ] = LIVE_AND_FAILED_TASKS,
    at_most: Limit = 50,
    as_json: Json = False,
) -> None:
    """List tasks of the fetch queue: live ones in the order they are claimed, then finished ones, the newest first.

    \b
    Example: pricing-pipeline task list --status failed --limit 10
    """
    with open_connection() as connection:
        tasks = task_queue.tasks(connection, [status.value for status in statuses], at_most)
    if as_json:
        print_json({"tasks": tasks})
        return
    now = datetime.now(UTC)
    print_table(
        ["id", "status", "data type", "symbol", "days", "provider", "priority", "tries", "age", "why"],
        [
            (
                task["id"],
                task["status"],
                task["data_type"],
                task["symbol"],
                "" if task["window_start"] is None else f"{task['window_start']} to {task['window_end']}",
                task["provider"],
                task["priority"],
                f"{task['attempt']} of {task['max_attempts']}",
                duration((now - task["enqueued_at"]).total_seconds()),
                task["last_error"],
            )
            for task in tasks
        ],
        right=["id", "priority", "age"],
        spare=["priority", "provider", "days", "tries"],
        long="why",
    )
    if not tasks:
        typer.echo(f"no task is {' or '.join(statuses)}.")


@noun.command()
@listing
def show(
    task_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="A task's id, as in `task list`.")],
    as_json: Json = False,
) -> None:
    """Show one task: what it is for, where it stands, and every failure it has had.

    \b
    Example: pricing-pipeline task show 17
    """
    with open_connection() as connection:
        task = task_queue.find(connection, task_id)
    if as_json:
        print_json({**task, "errors": list(task["errors"])})
    else:
        _print(task)


@noun.command()
def retry(
    ids: DeadIds = None,
    all_failed: AllFailed = False,
    data_type: OfType = None,
    provider: OfProvider = None,
    as_json: Json = False,
) -> None:
    """Make dead tasks pending again, with all their attempts, and end their pairs' back-off.

    A task whose work is already queued stays as it is. The exit code is 1 when a task could not be retried.

    \b
    Example: pricing-pipeline task retry --all-failed --provider twelvedata
    """
    _end(ids, data_type, provider, all_failed=all_failed, retried=True, as_json=as_json)


@noun.command()
def forget(
    ids: DeadIds = None,
    all_failed: AllFailed = False,
    data_type: OfType = None,
    provider: OfProvider = None,
    as_json: Json = False,
) -> None:
    """Resolve dead tasks without another attempt: they no longer count, and their pairs back off as before.

    Watched and held pairs fail again later if the cause remains.

    \b
    Example: pricing-pipeline task forget --all-failed --type equity_quote
    """
    _end(ids, data_type, provider, all_failed=all_failed, retried=False, as_json=as_json)


@noun.command()
def cancel(ids: Ids, as_json: Json = False) -> None:
    """Cancel tasks that wait or run. The answer of a running task is refused; its pair rests for an hour.

    \b
    Example: pricing-pipeline task cancel 17 18
    """
    with open_engine() as engine, engine.begin() as connection:
        outcomes = task_queue.cancel(connection, ids)
    if not _report(outcomes, as_json=as_json, nothing="no task was named."):
        raise typer.Exit(1)


def _end(
    ids: list[int] | None,
    data_type: str | None,
    provider: str | None,
    *,
    all_failed: bool,
    retried: bool,
    as_json: bool,
) -> None:
    if bool(ids) == all_failed:
        raise typer.BadParameter("name tasks by their ids, or give --all-failed; not both")
    if (data_type or provider) and not all_failed:
        raise typer.BadParameter("--type and --provider choose among --all-failed; leave them out with ids")
    from pricing_pipeline.cli import task

    if not task.end(ids, data_type, provider, retried=retried, as_json=as_json):
        raise typer.Exit(1)


def end(
    ids: Sequence[int] | None, data_type: str | None, provider: str | None, *, retried: bool, as_json: bool
) -> bool:
    """Retry or forget dead tasks, without ids all failed ones of a type and a provider; False if one is refused.

    Raises UnknownDataType and UnknownProvider: of a name with a typo, nothing would seem to have failed.
    """
    with open_engine() as engine, engine.begin() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        if provider is not None:
            credentials.require_provider(connection, provider)
        act = task_queue.retry if retried else task_queue.forget
        outcomes = act(connection, ids or task_queue.failed(connection, data_type, provider))
    return _report(outcomes, as_json=as_json, nothing="no failed task is waiting for anybody.")


def _report(outcomes: Sequence[Outcome], *, as_json: bool, nothing: str) -> bool:
    if as_json:
        counts = Counter(outcome.outcome for outcome in outcomes)
        print_json({"tasks": [asdict(outcome) for outcome in outcomes], "counts": dict(counts)})
    else:
        for outcome in outcomes:
            typer.echo(f"task {outcome.task_id}: {outcome.words}.")
        if not outcomes:
            typer.echo(nothing)
    return not any(outcome.is_refused for outcome in outcomes)


def _print(task: Mapping[str, Any]) -> None:
    days = "the latest price" if task["window_start"] is None else f"{task['window_start']} to {task['window_end']}"
    call = f"{task['call_id']}: {task['call_outcome']}" if task["call_id"] else None
    lines = {
        "task": task["id"],
        "what": f"{task['data_type']} {task['symbol']}, {days}",
        "status": task["status"],
        "failed as": task["failure_kind"],
        "provider": task["provider"],
        "priority": task["priority"],
        "attempts": f"{task['attempt']} of {task['max_attempts']}",
        "enqueued": moment(task["enqueued_at"]),
        "again at": moment(task["run_after"]),
        "worker": task["worker"],
        "lease until": moment(task["lease_until"]),
        "finished": moment(task["finished_at"]),
        "resolved": moment(task["resolved_at"]),
        "backs off": f"until {moment(task['backoff_until'])}" if task["backoff_until"] else None,
        "last call": call,
        "run": task["run_id"],
        "backfill": task["backfill_id"],
    }
    for name, value in lines.items():
        if value not in (None, ""):
            typer.echo(f"{name + ':':<13}{value}")
    for error in task["errors"]:
        at = moment(datetime.fromisoformat(error["at"]))
        typer.echo(printable(f"{at}  attempt {error['attempt']}, {error['kind']}: {error['message']}"))
