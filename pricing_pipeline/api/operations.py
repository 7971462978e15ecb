"""`/v1/operations`: side effects such as messages; retrying and cancelling single ones.

Reading them needs `operate`, too, because they say who is told what.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Operator
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.ids import FailedIds, Id, Ids
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, ByCommas
from pricing_pipeline.domain.states import LIVE_AND_FAILED_OPERATIONS, OperationStatus
from pricing_pipeline.errors import UnknownOperation
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Outcome

router = APIRouter(prefix="/operations", tags=["operations"])


class Operation(Shape):
    """A side effect. Times are UTC."""

    id: int
    operation_type: str = Field(examples=["webhook"])
    status: OperationStatus
    payload: dict[str, Any]
    due_at: datetime
    attempt: int
    max_attempts: int
    enqueued_at: datetime
    finished_at: datetime | None
    waits: str | None
    """Why one that is pending has not been attempted yet."""


class ListedOperation(Operation):
    """A side effect, and the message of its last failure."""

    last_error: str | None


class Operations(Shape):
    """Side effects."""

    operations: list[ListedOperation]
    next: str | None
    """The cursor of the next page; null on the last one."""


class FailedAttempt(Shape):
    """A failed attempt at a side effect."""

    at: datetime
    attempt: int
    message: str


class WholeOperation(Operation):
    """Everything about a side effect."""

    idempotency_key: UUID
    claimed_at: datetime | None
    lease_until: datetime | None
    worker: str | None
    errors: list[FailedAttempt]
    result: Any
    """The result of its handler, if it returned one."""


class OperationCount(Shape):
    """How many side effects of one type are in one state, since when, and their mean number of attempts."""

    operation_type: str
    status: OperationStatus
    operations: int
    oldest_at: datetime | None
    newest_at: datetime | None
    average_attempts: float


class OperationCounts(Shape):
    """Side effects by type and state, and what was done since midnight UTC."""

    operations: list[OperationCount]
    done_today: int
    failed_today: int


class OperationOutcome(Shape):
    """What has become of a side effect."""

    id: int
    outcome: str = Field(examples=["retried"])
    """retried, not_dead; or cancelled, cancelled_under_way, over."""
    sentence: str


class OperationOutcomes(Shape):
    """What has become of side effects."""

    operations: list[OperationOutcome]


_OPERATIONS: Keyset[dict[str, Any]] = Keyset("operations", (int,), lambda row: (row["id"],))


@router.get("")
def list_operations(
    database: Database,
    _: Operator,
    page: Annotated[Page, Depends(_OPERATIONS)],
    status: Annotated[
        list[OperationStatus],
        ByCommas,
        Query(min_length=1, description="Only these states, separated by commas; may be repeated."),
    ] = LIVE_AND_FAILED_OPERATIONS,
    operation_type: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only this type.")] = None,
) -> Operations:
    """Side effects, the newest first. One whose state changes between two pages keeps its place."""
    with database.connect() as connection:
        rows = operation_queue.listed(connection, status, operation_type, page.at_most, by_id=True, after=page.after_id)
    shown, following = page.cut(rows)
    return Operations(operations=[ListedOperation(**row) for row in shown], next=following)


@router.get("/status")
def count_operations(database: Database, _: Operator) -> OperationCounts:
    """Side effects by type and state, and what was done today."""
    with database.connect() as connection:
        counts = operation_queue.counts(connection)
        done, failed = operation_queue.today(connection)
    return OperationCounts(
        operations=[OperationCount(**count) for count in counts], done_today=done, failed_today=failed
    )


@router.get("/{operation_id:int}")
def show_operation(database: Database, _: Operator, operation_id: Id) -> WholeOperation:
    """One side effect: what it is to do, where it stands, and every failure it has had."""
    with database.connect() as connection:
        return WholeOperation(**operation_queue.find(connection, operation_id))


@router.post("/retry")
def retry_operations(database: Database, _: Operator, body: FailedIds) -> OperationOutcomes:
    """Queue dead side effects again, with all their attempts and the same idempotency key."""
    with database.begin() as connection:
        outcomes = operation_queue.retry(connection, body.ids or operation_queue.dead(connection))
        _require_all(outcomes)
    return _answer(outcomes)


@router.post("/cancel")
def cancel_operations(database: Database, _: Operator, body: Ids) -> OperationOutcomes:
    """Cancel side effects that wait or are under way. One that is under way may have happened already."""
    with database.begin() as connection:
        outcomes = operation_queue.cancel(connection, body.ids)
        _require_all(outcomes)
    return _answer(outcomes)


def _require_all(outcomes: Sequence[Outcome]) -> None:
    """Raise UnknownOperation, so that nothing changes, for the first id that is unknown."""
    for outcome in outcomes:
        if outcome.outcome == "unknown":
            raise UnknownOperation(f"operation {outcome.id}: {outcome.words}. Nothing has changed.")


def _answer(outcomes: Sequence[Outcome]) -> OperationOutcomes:
    return OperationOutcomes(
        operations=[
            OperationOutcome(id=outcome.id, outcome=outcome.outcome, sentence=f"{outcome.words}.")
            for outcome in outcomes
        ]
    )
