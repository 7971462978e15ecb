"""Listen for new work in a session of its own, and wake the waiting thread.

A wake-up is only a hint. It may be lost (the server restarts), and none comes through a pooler, so the waiting thread
must also look for work from time to time.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import DatabaseError

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_READ_SECONDS = 0.05
"""How long to read notifications; with 0 psycopg does not read at all."""
_LOOK_SECONDS = 1.0


class WakeUp:
    """Calls `wake`, in a thread of its own, when new work comes and each time it begins to listen.

    It replaces a lost session by a new one. It does not listen through a pooler, whose sessions are not its own:
    PgBouncer in transaction mode would let a session of the server listen that it then lends to others. Close it after
    use.
    """

    def __init__(
        self,
        engine: Engine,
        wake: Callable[[], None],
        is_wanted: Callable[[Connection], bool] | None = None,
    ) -> None:
        """`is_wanted` is asked every second in the same session, for what sends no notification; True also wakes."""
        self._engine = engine
        self._wake = wake
        self._is_wanted = is_wanted
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="wake-up", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its session."""
        self._stop.close()
        self._thread.join(10)
        self._stopped.close()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        with selectors.DefaultSelector() as selector:
            # `close` closes the other end, which makes this one readable.
            selector.register(self._stopped, selectors.EVENT_READ)
            while True:
                try:
                    with self._engine.connect() as connection:
                        connection.execution_options(isolation_level="AUTOCOMMIT")
                        driver = connection.connection.driver_connection
                        _require_own_session(connection, driver)
                        connection.execute(query("drains.listen"))
                        connection.detach()  # the pool must not lend a listening session to others
                        pause = _FIRST_PAUSE
                        self._wake()  # for work that came before it listened
                        if self._hear(connection, driver, selector):
                            return
                except Exception as error:  # work goes on without wake-ups after any error
                    _LOG.info("no wake-ups for %.1f s: %s", pause, error)
                if selector.select(pause):
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _hear(self, connection: Connection, driver: Any, selector: selectors.BaseSelector) -> bool:
        """Pass on wake-ups; raises when the session is lost, returns True when told to stop."""
        selector.register(driver.fileno(), selectors.EVENT_READ)
        number = driver.fileno()
        pause = None if self._is_wanted is None else _LOOK_SECONDS
        try:
            while True:
                ready = [key.fileobj for key, _ in selector.select(pause)]
                if self._stopped in ready:
                    return True
                is_heard = ready and list(driver.notifies(timeout=_READ_SECONDS, stop_after=1))
                if is_heard or (self._is_wanted is not None and self._is_wanted(connection)):
                    self._wake()
        finally:
            selector.unregister(number)


def _require_own_session(connection: Connection, driver: Any) -> None:
    """Raise DatabaseError unless the session at the server is the one that was connected to."""
    serving = connection.execute(query("drains.process")).scalar_one()
    if serving != driver.info.backend_pid:  # a pooler makes up this number
        raise DatabaseError(
            "a pooler lends the session, and no wake-up would come through. Set PRICING_LISTEN_URL to an address that "
            "reaches the server itself."
        )
