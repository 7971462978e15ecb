"""Signs of life of a notifier: files for the supervisor, which need no database, and those that the database keeps.

health.py says whether it is late.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import query

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOOKS, PRICES, RUNS = "looks", "prices", "runs"
"""The files of its threads: one looks for trouble, one at prices, one sends messages."""
SILENT_AFTER = timedelta(minutes=2)
"""A session that has the turn for this long and does not look hangs."""


class SignsOfLife:
    """Signs of life of a notifier's threads: that they go on, and whether the database and recipients answer.

    A thread that waits for a database that is away goes on; one that is stuck in a query does not.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._began_at = time.monotonic()
        self._answered: dict[str, float] = {}
        self._errors: dict[str, str] = {}
        self.nobody_told: str | None = None
        """Why no recipient of alerts can be reached; empty = they can, None = nobody has looked yet."""

    @property
    def answered_at(self) -> float:
        """When the thread that has waited longest last had an answer, by the monotonic clock; at first, the start."""
        return min(self._answered.copy().values(), default=self._began_at)

    @property
    def last_error(self) -> str | None:
        """The last error that the thread that has waited longest got from the database."""
        answered = self._answered.copy()
        return self._errors.get(min(answered, key=answered.__getitem__)) if answered else None

    def advance(self, thread: str) -> None:
        """Note that a thread goes on."""
        if self._folder is not None:
            with contextlib.suppress(OSError):  # a full disk stops nobody
                (self._folder / thread).touch()

    def answered(self, thread: str) -> None:
        """Note that the database has done what a thread asked."""
        self._errors.pop(thread, None)
        self._answered[thread] = time.monotonic()

    def failed(self, thread: str, error: str) -> None:
        """Note what the database, or the way to it, said to a thread instead."""
        self._errors[thread] = error
        self._answered.setdefault(thread, self._began_at)


def paths(folder: Path) -> tuple[Path, ...]:
    """The files that change while a notifier lives."""
    return tuple(folder / name for name in (LOOKS, PRICES, RUNS))


@dataclass(frozen=True, slots=True)
class LastSigns:
    """When any notifier last looked for trouble, and for messages to send; None = never. Times are UTC."""

    looked_at: datetime | None
    ran_at: datetime | None
    now: datetime


def last_signs(connection: Connection) -> LastSigns:
    """The last signs of life of all notifiers."""
    row = connection.execute(query("operations.signs_of_life")).one()
    return LastSigns(row.looked_at, row.ran_at, row.now)
