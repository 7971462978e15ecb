"""The fetch queue: a thin typed call for each change of a task. The rules are in db/functions/queue/queue.sql."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from pricing_pipeline.db.engine import driver_rows, is_autocommitting
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Call, Receipt, Task, boot_seconds
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import UnknownTask

if TYPE_CHECKING:
    from sqlalchemy import Connection

_WORDS = {
    "retried": "pending again, with all its attempts",
    "live_already": "nothing to do: task {live_id} does the same work already",
    "not_dead": "nothing to do: it is not dead",
    "retired": "not retried: its data type is retired",
    "removed": "not retried: its instrument is removed; watching it adds it again",
    "paused": "not retried: its instrument is paused; resume it first with `pricing-pipeline instrument resume`",
    "misconfigured": "not retried: no active provider serves it; add a route with "
    "`pricing-pipeline route add`, or choose a provider with `pricing-pipeline provider use`",
    "cancelled": "cancelled",
    "finished": "nothing to do: it has finished already",
    "forgotten": "forgotten: it no longer counts",
    "settled": "nothing to do: it was forgotten already",
    "unknown": "there is no such task",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one task that a person retried or cancelled; the task `live_id` does the same work now."""

    task_id: int
    outcome: str
    live_id: int | None

    @property
    def words(self) -> str:
        """The rest of a sentence that begins with the task."""
        return _WORDS[self.outcome].format(live_id=self.live_id)

    @property
    def is_refused(self) -> bool:
        """Whether the task is not as the person wants it."""
        return self.outcome in ("retired", "removed", "paused", "misconfigured", "unknown")


def claim(
    connection: Connection,
    provider: str,
    worker: str,
    max_calls: int,
    run_id: str | None,
    keys: Collection[str] | None = None,
) -> list[Call]:
    """Claim as many tasks as the provider allows now, grouped into at most `max_calls` calls.

    All calls use the key with the most units left, among `keys` if given. The calls are logged, and their units and
    bytes reserved; commit before making them. If each statement is its own transaction, the claim is committed on
    return, and no other worker's claim has waited for this one to reach the disk.
    """
    is_alone = is_autocommitting(connection)
    parameters = {
        "provider": provider,
        "worker": worker,
        "max_calls": max_calls,
        "run_id": run_id,
        "keys": None if keys is None else sorted(keys),
        "is_waited_for": not is_alone,
    }
    asked_at = boot_seconds()
    rows = driver_rows(connection, driver_query("queue.claim"), parameters)
    if rows and is_alone:
        # If a crash took the claim back, the call would be made twice, beyond the limit.
        driver_rows(connection, driver_query("queue.await_disk"), {})
    return [_call(provider, asked_at, *row) for row in rows]


def lock_owned(connection: Connection, call: Call, ids: Iterable[int] | None = None) -> set[int]:
    """Lock the tasks that the claim still owns, all or those of `ids`; returns their ids. The fence before storing."""
    asked_ids = call.task_ids if ids is None else ids
    parameters = {"call_id": call.id, "ids": _array(asked_ids), "token": call.claim_token}
    ((ids,),) = driver_rows(connection, driver_query("queue.lock_owned"), parameters)
    return set(ids)


def complete(connection: Connection, ids: Sequence[int], token: UUID) -> set[int]:
    """Finish tasks; returns those that the claim still owned. A lost claim changes nothing."""
    return set(call_sql(connection, "complete_tasks", _array(ids), token).scalar_one())


def finish(
    connection: Connection,
    call: Call,
    ids: Sequence[int],
    receipt: Receipt,
    *,
    is_owned: bool = True,
) -> set[int]:
    """Finish tasks and settle their answered call in one statement; returns those that the claim still owned."""
    parameters = {
        "ids": _array(ids),
        "token": call.claim_token,
        "call_id": call.id,
        "kind": receipt.kind.value if receipt.kind is not None and is_owned else None,
        "is_owned": is_owned,
        **receipt.parameters,
    }
    ((done,),) = driver_rows(connection, driver_query("queue.finish"), parameters)
    return set(done)


def fail(
    connection: Connection,
    ids: Sequence[int],
    token: UUID,
    kind: FailureKind,
    message: str,
    *,
    is_permanent: bool | None = None,
    retry_after: float | None = None,
) -> None:
    """Record a failure of tasks: by its `kind` they are retried, snoozed or dead.

    `retry_after` is in seconds and matters to snoozed tasks. A lost claim changes nothing.
    """
    is_permanent = kind.is_permanent if is_permanent is None else is_permanent
    pause = None if retry_after is None else timedelta(seconds=retry_after)
    call_sql(connection, "fail_tasks", _array(ids), token, kind.value, message, is_permanent, pause)


def extend(connection: Connection, call: Call) -> set[int]:
    """Renew the lease of a call's tasks; returns those that the claim still owns."""
    return set(call_sql(connection, "extend_tasks", _array(call.task_ids), call.claim_token).scalar_one())


def return_tasks(
    connection: Connection,
    call: Call,
    kind: FailureKind,
    message: str,
    *,
    ids: Iterable[int] | None = None,
    pause: float | None = None,
) -> int:
    """Return a call's tasks, or those of `ids`, to the queue, at no attempt; returns how many the claim still owned.

    `kind` and `message` go to the tasks' history. `pause` is in seconds; without it they are pending at once. Tasks
    that another session has locked are passed over: they return when their lease ends.
    """
    returned = _array(call.task_ids if ids is None else ids)
    wait = None if pause is None else timedelta(seconds=pause)
    arguments = (returned, call.claim_token, kind.value, message, wait)
    return int(call_sql(connection, "return_tasks", *arguments).scalar_one())


def is_in_work(connection: Connection, call: Call) -> bool:
    """Whether the claim still owns a task of the call, locked or not; does not wait for locks."""
    parameters = {"call_id": call.id, "ids": _array(call.task_ids), "token": call.claim_token}
    return bool(connection.execute(query("queue.is_in_work"), parameters).scalar_one())


def lock_call(connection: Connection, call: Call) -> None:
    """Lock the row of a call, so that values are stored only for a call that can be settled."""
    call_sql(connection, "lock_call", call.id)


def limit_lock_wait(connection: Connection, *, milliseconds: int) -> None:
    """Limit how long this transaction waits for locks of other sessions; the fence has its own limit."""
    connection.execute(query("queue.limit_lock_wait"), {"milliseconds": milliseconds})


def find(connection: Connection, task_id: int) -> Mapping[str, Any]:
    """One task: its row, its last call, and its pair's back-off. Raises UnknownTask."""
    row = connection.execute(query("queue.show"), {"id": task_id}).mappings().one_or_none()
    if row is None:
        raise UnknownTask(f"there is no task {task_id}. Completed ones are kept a week or two; `task list` lists them.")
    return dict(row)


def failed(connection: Connection, data_type: str | None, provider: str | None) -> list[int]:
    """Failed tasks whose work nothing has done since, of one data type and provider or of all; oldest first."""
    parameters = {"data_type": data_type, "provider": provider}
    return list(connection.execute(query("queue.failed"), parameters).scalars())


def retry(connection: Connection, ids: Sequence[int]) -> list[Outcome]:
    """Make dead tasks pending again by hand, with all their attempts, and end their pairs' back-off.

    Outcomes: retried, live_already, not_dead, retired, removed, paused, misconfigured, unknown.
    """
    rows = call_sql(connection, "retry_tasks", _array(ids))
    return [Outcome(row.task_id, row.outcome, row.live_id) for row in rows]


def forget(connection: Connection, ids: Sequence[int]) -> list[Outcome]:
    """Settle dead tasks by hand without another attempt: they count no longer. Their pairs back off as before.

    Outcomes: forgotten, settled, not_dead, unknown.
    """
    rows = call_sql(connection, "forget_tasks", _array(ids))
    return [Outcome(row.task_id, row.outcome, None) for row in rows]


def cancel(connection: Connection, ids: Sequence[int]) -> list[Outcome]:
    """Cancel live tasks by hand, also those in work: their finish is refused. Their pairs back off for an hour.

    Outcomes: cancelled, finished, unknown.
    """
    rows = call_sql(connection, "cancel_tasks", _array(ids))
    return [Outcome(row.task_id, row.outcome, None) for row in rows]


def promote(connection: Connection) -> int:
    """Make scheduled tasks pending whose time has come; returns how many."""
    return int(call_sql(connection, "promote_tasks").scalar_one())


def tend_outages(connection: Connection) -> int:
    """Queue a probe a minute for providers in an outage, and end the wait for providers that answer again.

    Returns how many pairs and tasks wait no longer.
    """
    return int(call_sql(connection, "tend_outages").scalar_one())


class ProviderWithWork(NamedTuple):
    """A provider that has pending tasks: how many calls it may have in flight, and its most urgent task's priority."""

    provider: str
    max_in_flight: int
    priority: int


def providers_with_work(connection: Connection) -> list[ProviderWithWork]:
    """Providers that have pending tasks, those with the most urgent one first."""
    rows = driver_rows(connection, driver_query("queue.providers_with_work"), {})
    return [ProviderWithWork(*row) for row in rows]


def is_busy(connection: Connection) -> bool:
    """True while any task is live or anyone watches anything."""
    return bool(connection.execute(query("queue.is_busy")).scalar_one())


class Counted(NamedTuple):
    """How many tasks of a provider (or `none`) are in a status, and for how long the oldest has been ready.

    Dead ones are those that nothing has settled since they failed.
    """

    provider: str
    status: str
    tasks: int
    oldest_seconds: float


def counts(connection: Connection) -> list[Counted]:
    """Tasks that are pending, processing, scheduled or dead, counted by provider and status."""
    return [Counted(*row) for row in connection.execute(query("queue.counts"))]


def tasks(
    connection: Connection,
    statuses: Sequence[str],
    at_most: int,
    *,
    by_id: bool = False,
    after: int | None = None,
) -> list[Mapping[str, Any]]:
    """Tasks in these states: live ones in claim order, then the newest finished ones.

    `by_id` is the order of pages, in which no row moves: the newest first, those of smaller ids than `after`.
    """
    parameters = {
        "statuses": list(statuses),
        "at_most": at_most,
        "by_id": by_id,
        "after_id": after,
    }
    return [dict(row) for row in connection.execute(query("queue.list"), parameters).mappings()]


def _array(ids: Iterable[int]) -> str:
    """The ids in PostgreSQL's text form of an array: the driver takes ten times as long to adapt a list."""
    return f"{{{','.join(map(str, ids))}}}"


def _call(
    provider: str,
    asked_at: float,
    call_id: int,
    key_name: str,
    data_type: str,
    fetcher: str,
    window_start: date | None,
    window_end: date | None,
    claim_token: UUID,
    claimed_at: datetime,
    asset_class: str,
    overrides: Mapping[str, str] | None,
    *tasks: Sequence[Any],
) -> Call:
    return Call(
        id=call_id,
        provider=provider,
        key_name=key_name,
        data_type=data_type,
        fetcher=Fetcher(fetcher),
        window=None if window_start is None or window_end is None else Window(window_start, window_end),
        tasks=tuple(map(Task, *tasks)),
        claim_token=claim_token,
        claimed_at=claimed_at,
        asset_class=asset_class,
        overrides=overrides or {},
        asked_at=asked_at,
    )
