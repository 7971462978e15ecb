"""A call to a provider: its tasks, its response and its receipt."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window

_LATE_SECONDS = 5.0
"""A request lasts 10 s at most, and claims count it as in flight for 15 s."""
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""macOS has the second one alone, which goes on while the machine sleeps there."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response: `body` is decompressed, header names are in lower case.

    `wire_bytes` counts headers and body as sent, compressed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


ShownLimit = tuple[int, int | None]
"""How many units a key may use in how many seconds, as its provider says; None if it does not name the window."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The cost of a finished call, and its news about the provider.

    `http_status` is None without a response. `wire_bytes` counts bytes on the wire. `units_left` is the rest of the
    provider's limit and `shown` the limit, if the provider states them. `kind` says why the whole call brought nothing.
    A call with an `error` has failed. `is_unannounced`: the answer did not say how long it is. A call that never left
    (`was_sent` False) gives its units back.
    """

    http_status: int | None
    wire_bytes: int
    units_left: int | None = None
    kind: FailureKind | None = None
    error: str | None = None
    shown: ShownLimit | None = None
    is_unannounced: bool = False
    was_sent: bool = True

    @property
    def parameters(self) -> dict[str, int | None]:
        """The parameters that all queries that settle a call have in common."""
        units, seconds = self.shown or (None, None)
        return {
            "http_status": self.http_status,
            "wire_bytes": self.wire_bytes,
            "units_left": self.units_left,
            "shown_units": units,
            "shown_seconds": seconds,
            "is_unannounced": self.is_unannounced,
        }


class Task(NamedTuple):
    """A claimed row of the fetch queue: fetch one symbol. A tuple, because thousands are made a second."""

    id: int
    symbol: str
    priority: int
    attempt: int


def boot_seconds() -> float:
    """Seconds since this machine started, including sleep. This clock cannot be set."""
    return time.clock_gettime(_BOOT_CLOCK)


def is_late(asked_at: float) -> bool:
    """Whether it is too late to begin a call whose claim was requested at this time (boot_seconds)."""
    return boot_seconds() - asked_at > _LATE_SECONDS


@dataclass(frozen=True, slots=True)
class Call:
    """Claimed tasks for one request to a provider.

    The call is in the call log already, charged to the key `key_name`. `claim_token` fences every later change to its
    tasks. `window` is None for the latest price.
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
    """The database's time of the claim: values are judged by this time."""
    asset_class: str = ""
    """Of its symbols, which are canonical."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """The provider's spellings of symbols, where a person has given them."""
    asked_at: float = field(default_factory=boot_seconds)
    """When its claim was asked for (boot_seconds)."""

    @property
    def symbols(self) -> list[str]:
        return [task.symbol for task in self.tasks]

    @property
    def task_ids(self) -> list[int]:
        return [task.id for task in self.tasks]


@dataclass(frozen=True, slots=True)
class Preparation:
    """The stored facts that a request needs: the local days to ask for, and by symbol what its provider must know."""

    window: Window | None
    known: Mapping[str, Mapping[str, object]]
