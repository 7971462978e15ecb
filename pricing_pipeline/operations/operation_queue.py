"""The queue of side effects. Attempts, pauses and fences are decided by db/functions/operations/operations.sql.

An operation is claimed, done, and then completed or failed by the claim's token. If a worker dies in between, the
operation is taken back after five minutes, so it may happen twice. Every attempt carries the same idempotency key, by
which the receiver recognises a repeat.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pricing_pipeline.db.errors import is_of_values, reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import OperationRefused, UnknownOperation

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Operation:
    """A claimed side effect. `attempt` counts from 1; times are UTC."""

    id: int
    operation_type: str
    payload: Mapping[str, Any]
    idempotency_key: UUID
    attempt: int
    max_attempts: int
    time_limit_seconds: int
    enqueued_at: datetime
    claim_token: UUID


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one side effect that a person retried or cancelled, and its `status` before.

    `outcome` is retried, not_dead, cancelled, cancelled_under_way (it may have happened), over or unknown.
    """

    id: int
    outcome: str
    status: str | None

    @property
    def words(self) -> str:
        """The rest of a sentence that begins with the operation."""
        return {
            "retried": "pending again, with all its attempts",
            "not_dead": f"nothing to do: it is not dead ({self.status})",
            "cancelled": "cancelled",
            "cancelled_under_way": "cancelled, while it was under way: it may have happened",
            "over": f"nothing to do: it is over already ({self.status})",
            "unknown": "there is no such operation",
        }[self.outcome]

    @property
    def is_changed(self) -> bool:
        """Whether the person has changed it."""
        return self.outcome in ("retried", "cancelled", "cancelled_under_way")


def enqueue(
    connection: Connection, operation_type: str, payload: Mapping[str, Any], due_at: datetime | None = None
) -> int:
    """Queue a side effect in the caller's transaction; returns its id.

    It is kept or rolled back with that transaction. Raises OperationRefused for an unknown type, or for a payload
    unlike its type.
    """
    try:
        queued = call_sql(connection, "enqueue_operation", operation_type, json.dumps(payload), due_at)
        return int(queued.scalar_one())
    except statement_error() as error:
        if not is_of_values(error):
            raise
        raise OperationRefused(f"{operation_type!r} is not queued: {reason(error)}") from error


def claim(connection: Connection, types: Collection[str], most: int, worker: str) -> list[Operation]:
    """Claim operations of these types that are due, by turns for each recipient; each counts an attempt."""
    return [
        Operation(**row) for row in call_sql(connection, "claim_operations", sorted(types), most, worker).mappings()
    ]


def complete(connection: Connection, token: UUID, results: Mapping[int, str | None]) -> list[int]:
    """Note that operations have happened, with results as JSON by id; returns the ids that the claim still owned."""
    return _completed(connection, token, results)


def fail(
    connection: Connection,
    operation: Operation,
    message: str,
    *,
    is_permanent: bool = False,
    retry_after: float | None = None,
) -> str | None:
    """Note a failed attempt: `pending` when it is tried again, `failed` when not, None if the claim was lost.

    `retry_after` are the seconds for which the receiver wants to be left alone.
    """
    pause = None if retry_after is None else timedelta(seconds=retry_after)
    attempt = (operation.id, operation.claim_token)
    status: str | None = call_sql(connection, "fail_operation", *attempt, message, is_permanent, pause).scalar_one()
    return status


def return_(connection: Connection, token: UUID, ids: Sequence[int]) -> list[int]:
    """Return a stopping worker's operations to the queue; returns the ids that the claim still owned.

    They are due, and the attempt does not count, though the operation may have happened.
    """
    return list(call_sql(connection, "return_operations", list(ids), token).scalar_one())


def note_run(connection: Connection) -> None:
    """Note that a notifier has just looked for messages to send."""
    call_sql(connection, "note_life", "send_messages", 0)


def complete_recovered(connection: Connection, operation: Operation, result: str | None) -> bool:
    """Complete an operation that has happened and was taken back; False if somebody has begun another attempt."""
    return bool(_completed(connection, None, {operation.id: result}, operation.attempt))


def _completed(
    connection: Connection, token: UUID | None, results: Mapping[int, str | None], *taken_at: int
) -> list[int]:
    brought = (f'"{id_}": {result}' for id_, result in results.items() if result is not None)
    arguments = (list(results), token, f"{{{', '.join(brought)}}}", *taken_at)
    return list(call_sql(connection, "complete_operations", *arguments).scalar_one())


def recover(connection: Connection, known: Collection[int] = ()) -> int:
    """Take back operations whose worker has said nothing for five minutes; returns how many.

    `known` are those that the caller has in hand.
    """
    return int(call_sql(connection, "recover_operations", sorted(known)).scalar_one())


def cancel(connection: Connection, ids: Sequence[int]) -> list[Outcome]:
    """Cancel operations that wait or are under way."""
    before = _locked_states(connection, ids)
    cancelled = call_sql(connection, "cancel_operations", list(ids)).scalar_one()
    done = {"processing": "cancelled_under_way"}
    return [
        Outcome(
            id_,
            _outcome(id_, before, cancelled, done.get(before.get(id_, ""), "cancelled"), "over"),
            before.get(id_),
        )
        for id_ in dict.fromkeys(ids)
    ]


def retry(connection: Connection, ids: Sequence[int]) -> list[Outcome]:
    """Queue dead operations again, with all their attempts."""
    before = _locked_states(connection, ids)
    retried = call_sql(connection, "retry_operations", list(ids)).scalar_one()
    return [
        Outcome(id_, _outcome(id_, before, retried, "retried", "not_dead"), before.get(id_))
        for id_ in dict.fromkeys(ids)
    ]


def _locked_states(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The status of each existing operation; until the end of the transaction no other session changes it."""
    connection.execute(query("operations.lock"), {"ids": list(ids)})
    # A separate query sees what other sessions did while this one waited for the lock.
    rows = connection.execute(query("operations.states"), {"ids": list(ids)})
    return {row.id: row.status for row in rows}


def _outcome(id_: int, known: Collection[int], changed: Collection[int], done: str, not_done: str) -> str:
    return done if id_ in changed else not_done if id_ in known else "unknown"


def find(connection: Connection, id_: int) -> dict[str, Any]:
    """Everything about one side effect. Raises UnknownOperation."""
    found = connection.execute(query("operations.show"), {"id": id_}).mappings().one_or_none()
    if found is None:
        raise UnknownOperation(
            f"there is no operation {id_}. Completed ones are kept for 14 days; `operation list` lists them."
        )
    return dict(found)


def listed(
    connection: Connection,
    statuses: Sequence[str],
    operation_type: str | None,
    most: int,
    *,
    by_id: bool = False,
    after: int | None = None,
) -> list[dict[str, Any]]:
    """Side effects in some states: what waits in the order of claims, then the newest finished.

    `by_id` is the order of pages, in which no row moves: the newest first, those of smaller ids than `after`.
    """
    parameters = {
        "statuses": list(statuses),
        "operation_type": operation_type,
        "most": most,
        "by_id": by_id,
        "after_id": after,
    }
    return [dict(row) for row in connection.execute(query("operations.list"), parameters).mappings()]


def dead(connection: Connection) -> list[int]:
    """Ids of the side effects that have failed for good."""
    return list(connection.execute(query("operations.dead")).scalars())


def counts(connection: Connection) -> list[dict[str, Any]]:
    """How many there are by type and status, since when, and their mean number of attempts."""
    return [dict(row) for row in connection.execute(query("operations.counts")).mappings()]


def today(connection: Connection) -> tuple[int, int]:
    """How many have happened today, in UTC, and how many have failed for good."""
    row = connection.execute(query("operations.today")).one()
    return row.done, row.failed


def sent_to_log(connection: Connection, most: int) -> list[dict[str, Any]]:
    """Messages that the channel `log` has kept instead of sending them, the newest first."""
    return [dict(row) for row in connection.execute(query("operations.sent"), {"most": most}).mappings()]
