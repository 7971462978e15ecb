"""Pages: the further requests of one call, each claimed as a call of its own within the provider's limits.

The rules are in db/functions/queue/pages.sql. This module only waits, outside any transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.db.errors import is_locked, statement_error, transact
from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.domain.calls import Call, Receipt, boot_seconds, is_late
from pricing_pipeline.errors import Unfinished, WorkerStopped
from pricing_pipeline.providers.dialogue import MAX_REQUESTS
from pricing_pipeline.queue import limits

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LONGEST_CALL_SECONDS = 300.0
"""How long a call may last, with all its requests: a worker does not renew its lease for longer."""
BY_HAND_SECONDS = 60.0
"""How long a person waits for all requests of a call."""
_DEADLINE_SECONDS = 15.0
"""The last request, and storing, need some of that time."""
_LOCKED_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class CallByHand:
    """A call that a person makes: it has no task."""

    id: int
    provider: str


@dataclass(frozen=True, slots=True)
class _Claimed:
    call_id: int | None
    wait_seconds: float | None
    refusal: str | None
    retry_after: float | None


class ClaimedPages:
    """Claims the further requests of one call; for one thread. `stopping` ends its waiting.

    `made` counts the requests after the first, and `wire_bytes` is what they have brought. `is_waiting`: the call waits
    for its next request, which limits do not allow yet.
    """

    def __init__(
        self,
        engine: Engine,
        call: Call | CallByHand,
        *,
        seconds: float = LONGEST_CALL_SECONDS,
        stopping: threading.Event | None = None,
    ) -> None:
        self._engine = engine
        self._call = call
        self._seconds = seconds - _DEADLINE_SECONDS
        self._stopping = stopping or threading.Event()
        self._open: int | None = None
        self.is_waiting = False
        self.made = 0
        self.wire_bytes = 0

    def begin(self, spent: Sequence[int]) -> None:
        """Claim the next request, waiting until limits allow it.

        Raises Unfinished if it may not be made: WorkerStopped if the waiting was ended by `stopping`, or the claim took
        so long that its units may not count any more.
        """
        try:
            self._wait_and_claim(spent)
        finally:
            self.is_waiting = False

    def _wait_and_claim(self, spent: Sequence[int]) -> None:
        while not self._stopping.is_set():
            asked_at = boot_seconds()
            claimed = self._claim(spent)
            if claimed is None:
                self._stopping.wait(_LOCKED_SECONDS)
            elif claimed.wait_seconds is not None:
                self.is_waiting = True
                self._stopping.wait(claimed.wait_seconds)
            elif claimed.call_id is None:
                message = self._ended_by(str(claimed.refusal), len(spent))
                raise Unfinished(message, retry_after=claimed.retry_after)
            elif is_late(asked_at):
                raise WorkerStopped(self._ended_by("the worker stood still", len(spent)))
            else:
                self._open = claimed.call_id
                self.made += 1
                return
        raise WorkerStopped(self._ended_by("the worker was told to stop", len(spent)))

    def end(self, receipt: Receipt) -> None:
        """Settle the request that has begun: book its bytes, and apply the limits that it shows."""
        page, self._open = self._open, None
        assert page is not None  # noqa: S101 - the client ends what it has begun
        self.wire_bytes += receipt.wire_bytes
        transact(self._engine, lambda connection: limits.settle(connection, page, receipt))

    def _claim(self, spent: Sequence[int]) -> _Claimed | None:
        """The database's answer; None while another session has locked the provider's row."""
        try:
            with self._engine.begin() as connection:
                return self._ask(connection, spent)
        except statement_error() as error:
            if not is_locked(error):
                raise
            return None

    def _ask(self, connection: Connection, spent: Sequence[int]) -> _Claimed:
        call = self._call
        return _Claimed(
            **call_sql(
                connection,
                "claim_page",
                call.id,
                call.task_ids if isinstance(call, Call) and call.tasks else None,
                call.claim_token if isinstance(call, Call) else None,
                spent[0],
                max(spent),
                self._seconds,
                MAX_REQUESTS,
            )
            .mappings()
            .one()
        )

    def _ended_by(self, reason: str, requests: int) -> str:
        made = f"{requests} request{'s' * (requests > 1)}"
        return (
            f"a call to {self._call.provider} ended after {made}, and nothing of it is stored: {reason}. "
            "It is asked again later."
        )
