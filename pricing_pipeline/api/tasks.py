"""`/v1/tasks`: the fetch queue; retrying and cancelling single tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import Field, model_validator
from sqlalchemy import Connection

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.ids import FailedIds, Id, Ids
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, ByCommas
from pricing_pipeline.domain.states import LIVE_AND_FAILED_TASKS, TaskStatus
from pricing_pipeline.errors import PricingError, UnknownTask
from pricing_pipeline.keys import credentials
from pricing_pipeline.queue import task_queue
from pricing_pipeline.queue.task_queue import Outcome
from pricing_pipeline.registry import data_type_registry

router = APIRouter(prefix="/tasks", tags=["tasks"])


class Task(Shape):
    """A task of the fetch queue. Without a window it fetches the latest price. Times are UTC."""

    id: int
    data_type: str = Field(examples=["equity_quote"])
    symbol: str = Field(examples=["AAPL"])
    window_start: date | None
    window_end: date | None
    provider: str | None
    status: TaskStatus
    priority: int
    """The number of viewers; 0 for held, -1 for scheduled, -2 for backfills."""
    attempt: int
    max_attempts: int
    enqueued_at: datetime
    run_after: datetime | None
    finished_at: datetime | None
    failure_kind: str | None


class ListedTask(Task):
    """A task, and the message of its last failure."""

    last_error: str | None


class Tasks(Shape):
    """Tasks of the fetch queue."""

    tasks: list[ListedTask]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Attempt(Shape):
    """A failed attempt."""

    at: datetime
    attempt: int
    kind: str
    message: str


class WholeTask(Task):
    """Everything about a task: its claim, its last call, and every failure."""

    claimed_at: datetime | None
    lease_until: datetime | None
    worker: str | None
    backfill_id: UUID | None
    resolved_at: datetime | None
    backoff_until: datetime | None
    """Until when its pair is not queued again."""
    call_id: int | None
    call_outcome: str | None
    http_status: int | None
    wire_bytes: int | None
    run_id: str | None
    errors: list[Attempt]


class DeadTasks(FailedIds):
    """The dead tasks that a request is about: those of `ids`, or all failed ones of a data type and a provider."""

    data_type: str | None = Field(None, max_length=LONGEST_NAME)
    provider: str | None = Field(None, max_length=LONGEST_NAME)

    @model_validator(mode="after")
    def _chooses_among_all(self) -> Self:
        if (self.data_type or self.provider) and not self.all_failed:
            raise ValueError("data_type and provider choose among all_failed; leave them out with ids")
        return self


class TaskOutcome(Shape):
    """What has become of a task. The task `live_id` does the same work now."""

    task_id: int
    outcome: str = Field(examples=["retried"])
    """retried, live_already, not_dead; or retired, removed, paused or misconfigured, which cannot be retried.

    Of forget: forgotten, settled, not_dead. Of cancel: cancelled, finished.
    """
    live_id: int | None
    sentence: str


class TaskOutcomes(Shape):
    """What has become of tasks, and how many of each outcome there are."""

    tasks: list[TaskOutcome]
    counts: dict[str, int]


_TASKS: Keyset[Mapping[str, Any]] = Keyset("tasks", (int,), lambda row: (row["id"],))


@router.get("")
def list_tasks(
    database: Database,
    _: Reader,
    page: Annotated[Page, Depends(_TASKS)],
    status: Annotated[
        list[TaskStatus],
        ByCommas,
        Query(min_length=1, description="Only these states, separated by commas; may be repeated."),
    ] = LIVE_AND_FAILED_TASKS,
) -> Tasks:
    """Tasks, the newest first. One whose priority or state changes between two pages keeps its place."""
    with database.connect() as connection:
        rows = task_queue.tasks(connection, status, page.at_most, by_id=True, after=page.after_id)
    shown, following = page.cut(rows)
    return Tasks(tasks=[ListedTask(**row) for row in shown], next=following)


@router.get("/{task_id:int}")
def show_task(database: Database, _: Reader, task_id: Id) -> WholeTask:
    """One task: what it is for, where it stands, and every failure it has had."""
    with database.connect() as connection:
        return WholeTask(**task_queue.find(connection, task_id))


@router.post("/retry")
def retry_tasks(database: Database, _: Operator, body: DeadTasks) -> TaskOutcomes:
    """Make dead tasks pending again, with all their attempts, and end their pairs' back-off.

    A task whose work is queued already is left as it is. One that cannot be retried keeps no other one out.
    """
    with database.begin() as connection:
        outcomes = task_queue.retry(connection, _dead_ids(connection, body))
        _require_some(outcomes)
    return _answer(outcomes)


@router.post("/forget")
def forget_tasks(database: Database, _: Operator, body: DeadTasks) -> TaskOutcomes:
    """Resolve dead tasks without another attempt: they no longer count, and their pairs back off as before."""
    with database.begin() as connection:
        outcomes = task_queue.forget(connection, _dead_ids(connection, body))
        _require_some(outcomes)
    return _answer(outcomes)


@router.post("/cancel")
def cancel_tasks(database: Database, _: Operator, body: Ids) -> TaskOutcomes:
    """Cancel tasks that wait or run. The answer of a running task is refused; its pair backs off for an hour."""
    with database.begin() as connection:
        outcomes = task_queue.cancel(connection, body.ids)
        _require_some(outcomes)
    return _answer(outcomes)


def _dead_ids(connection: Connection, body: DeadTasks) -> Sequence[int]:
    """The tasks that are meant. Raises UnknownDataType and UnknownProvider."""
    if body.data_type is not None:
        data_type_registry.active_data_type(connection, body.data_type)
    if body.provider is not None:
        credentials.require_provider(connection, body.provider)
    return body.ids or task_queue.failed(connection, body.data_type, body.provider)


def _require_some(outcomes: Sequence[Outcome]) -> None:
    """Raise, so that nothing changes, UnknownTask for a task that does not exist, PricingError if all are refused."""
    for outcome in outcomes:
        words = f"task {outcome.task_id}: {outcome.words}. Nothing has changed."
        if outcome.outcome == "unknown":
            raise UnknownTask(words)
        if all(other.is_refused for other in outcomes):
            raise PricingError(words)


def _answer(outcomes: Sequence[Outcome]) -> TaskOutcomes:
    return TaskOutcomes(
        tasks=[TaskOutcome(**asdict(outcome), sentence=f"{outcome.words}.") for outcome in outcomes],
        counts=dict(Counter(outcome.outcome for outcome in outcomes)),
    )
