"""A call to a provider: the tasks that it serves, and the bytes that came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer as bytes, `body` decompressed, header names in lower case.

    `wire_bytes` counts headers and body as they were sent, compressed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a finished call cost, and what it says about its provider.

    `http_status` is None when nothing was answered. `wire_bytes` counts what crossed the wire. `units_left` is what the
    provider says is left of its limit, if it says so. `kind` says why the call as a whole brought nothing. A call with
    an `error` has failed.
    """

    http_status: int | None
    wire_bytes: int
    units_left: int | None = None
    kind: FailureKind | None = None
    error: str | None = None


class Task(NamedTuple):
    """A claimed row of the fetch queue: fetch one symbol. A tuple, because thousands are made a second."""

    id: int
    symbol: str
    priority: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Call:
    """Claimed tasks that one request to a provider will answer.

    It is in the call log already, charged to the key `key_name`; `claim_token` fences every later change
    to its tasks.
    `window` is None for the latest price.
    """

    id: int
    provider: str
    key_name: str
    data_type: str
    fetcher: Fetcher
    window: Window | None
    tasks: tuple[Task, ...]
    claim_token: UUID
    claimed_at: datetime
    """The database's clock at the claim: what is judged by time is judged by it."""

    @property
    def symbols(self) -> list[str]:
        return [task.symbol for task in self.tasks]

    @property
    def task_ids(self) -> list[int]:
        return [task.id for task in self.tasks]
