"""`task list|show|retry|forget|cancel`: the fetch queue, and what a person does about single tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import duration, moment, print_json, print_table, printable
from pricing_pipeline.keys import credentials
from pricing_pipeline.queue import task_queue
from pricing_pipeline.queue.task_queue import Outcome
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import load_settings


def list_(statuses: Sequence[str], at_most: int, *, as_json: bool) -> None:
    """Tell the tasks in some states: live ones in claim order, then the newest finished."""
    with open_connection(load_settings()) as connection:
        tasks = task_queue.tasks(connection, statuses, at_most)
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


def show(task_id: int, *, as_json: bool) -> None:
    """Tell everything about one task. Raises UnknownTask."""
    with open_connection(load_settings()) as connection:
        task = task_queue.find(connection, task_id)
    if as_json:
        print_json({**task, "errors": list(task["errors"])})
    else:
        _say(task)


def end(
    ids: Sequence[int] | None, data_type: str | None, provider: str | None, *, retried: bool, as_json: bool
) -> bool:
    """Retry or forget dead tasks, without ids all failed ones of a type and a provider; False if one is refused.

    Raises UnknownDataType and UnknownProvider: of a name with a typo, nothing would seem to have failed.
    """
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        if provider is not None:
            credentials.require_provider(connection, provider)
        act = task_queue.retry if retried else task_queue.forget
        outcomes = act(connection, ids or task_queue.failed(connection, data_type, provider))
    return _report(outcomes, as_json=as_json, nothing="no failed task is waiting for anybody.")


def cancel(ids: Sequence[int], *, as_json: bool) -> bool:
    """Cancel live tasks; False when one of them does not exist."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        outcomes = task_queue.cancel(connection, ids)
    return _report(outcomes, as_json=as_json, nothing="no task was named.")


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


def _say(task: Mapping[str, Any]) -> None:
    days = (
        "the latest price"
        if task["window_start"] is None
        else f"{task['window_start']} to {task['window_end']}"
    )
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
