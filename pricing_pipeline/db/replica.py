"""A streaming replica for reads: whether it follows the primary closely enough now.

The lag is bounded, not guessed. Each poll notes the time and how far the primary's log is flushed. When the replica has
replayed that much, it shows everything that was committed by that time. So a replica that is cut off from the primary,
or that replays nothing, is soon unused. No clock but this process's own matters.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any
from weakref import WeakSet

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting, make_engine
from pricing_pipeline.db.query_loader import named, query
from pricing_pipeline.errors import DatabaseError

_POLL_SECONDS = 1.0
_MOST_MARKS = 4096
_CONNECT_SECONDS = 2
"""A replica that does not answer must not keep readers waiting."""
_ANSWER_SECONDS = 1.0
"""A poll that is not answered within this time ends all sessions: those who read in them would wait for ever."""


class ReplicaState(StrEnum):
    """Whether a replica is read, or why not."""

    USED = "used"
    LAGS = "lags"
    """It lags more than it may, or nothing is known of its lag: the primary does not answer."""
    AWAY = "away"
    """It does not answer, or a read of it failed just now."""
    PROMOTED = "promoted"
    """It follows no primary any more."""
    OTHER = "of another database"
    """Or a copy of ours that went its own way: its log may be ahead of the primary's, and has other prices."""


class Replica:
    """Polls a replica in a thread of its own, from `start` to `close`. Until the first poll it is not used.

    A replica that stands still answers no poll, and then ends for all who read there.
    """

    def __init__(self, primary: Engine, url: str, *, max_lag: float, pool_size: int = 5) -> None:
        self.engine = make_engine(url, pool_size=pool_size, connect_timeout=_CONNECT_SECONDS)
        self._sessions = _Sessions(self.engine)
        event.listen(self.engine, "connect", _make_read_only)
        self._primary = autocommitting(primary)
        self._max_lag = max_lag
        self._marks: deque[tuple[float, int]] = deque(maxlen=_MOST_MARKS)
        self._identity: str | None = None
        self._timeline: int | None = None
        self._shows_until: float | None = None
        self._last_state = ReplicaState.AWAY
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll_until_closed, name="replica", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and the sessions."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self.engine.dispose()

    @property
    def lag(self) -> float | None:
        """Seconds that it lags at most; None while that is not known."""
        return None if self._shows_until is None else time.monotonic() - self._shows_until

    @property
    def state(self) -> ReplicaState:
        """Whether it may be read now, or why not."""
        if self._last_state is not ReplicaState.USED:
            return self._last_state
        lag = self.lag
        return ReplicaState.USED if lag is not None and lag <= self._max_lag else ReplicaState.LAGS

    @property
    def is_used(self) -> bool:
        """Whether it may be read now."""
        return self.state is ReplicaState.USED

    def mark_unavailable(self) -> None:
        """Note that a read from it failed: it is not used before the next poll."""
        self._last_state = ReplicaState.AWAY

    def poll(self) -> None:
        """Find out its state and its lag. While the primary does not answer, the lag grows."""
        began = time.monotonic()
        try:
            with self._primary.connect() as connection:
                mark = connection.execute(query("replica.mark")).one()
            self._identity, self._timeline = mark.identity, mark.timeline
            self._marks.append((began, mark.flushed))
        except (DatabaseError, DBAPIError):
            pass
        try:
            with self._sessions.answering(), autocommitting(self.engine).connect() as connection:
                seen = connection.execute(query("replica.state")).one()
        except (DatabaseError, DBAPIError):
            self._last_state = ReplicaState.AWAY
            return
        if self._identity not in (None, seen.identity):
            self._last_state = ReplicaState.OTHER
        elif not seen.is_following:
            self._last_state = ReplicaState.PROMOTED
        elif self._timeline not in (None, seen.timeline):
            self._last_state = ReplicaState.OTHER
        else:
            while self._marks and self._marks[0][1] <= seen.replayed:
                self._shows_until, _ = self._marks.popleft()
            self._last_state = ReplicaState.USED

    def _poll_until_closed(self) -> None:
        pause = min(_POLL_SECONDS, self._max_lag / 4)
        while True:
            self.poll()
            if self._stop.wait(pause):
                return


class _Sessions:
    """The open sessions of an engine, which can be ended while other threads wait in them for a server that hangs."""

    def __init__(self, engine: Engine) -> None:
        self._open: WeakSet[psycopg.Connection[Any]] = WeakSet()
        self._lock = threading.Lock()
        event.listen(engine, "connect", self._add, insert=True)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """End all sessions if the block takes too long: threads that wait in one get the error of a lost session."""
        patience = threading.Timer(_ANSWER_SECONDS, self._cut)
        patience.start()
        try:
            yield
        finally:
            patience.cancel()

    def _add(self, connection: psycopg.Connection[Any], _record: object) -> None:
        with self._lock:
            self._open.add(connection)

    def _cut(self) -> None:
        with self._lock:
            for connection in self._open:
                with (
                    suppress(psycopg.Error, OSError),  # it has ended already
                    socket.socket(fileno=os.dup(connection.fileno())) as theirs,
                ):
                    theirs.shutdown(socket.SHUT_RDWR)


def _make_read_only(connection: object, _record: object) -> None:
    connection.execute(named("replica.only_read"))  # type: ignore[attr-defined]
    connection.commit()  # type: ignore[attr-defined]
