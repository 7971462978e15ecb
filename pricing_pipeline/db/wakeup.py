"""Listen for new work in a session of its own, and wake the waiting thread.

A wake-up is only a hint. It may be lost (the server restarts; PgBouncer in transaction mode passes none), so the
waiting thread must also look for work from time to time.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine

from pricing_pipeline.db.query_loader import query

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_READ_SECONDS = 0.05
"""How long to read notifications; with 0 psycopg does not read at all."""


class WakeUp:
    """Calls `wake`, in a thread of its own, when new work comes and each time it begins to listen.

    It replaces a lost session by a new one. Close it after use.
    """

    def __init__(self, engine: Engine, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._wake = wake
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
                        connection.execute(query("drains.listen"))
                        driver = connection.connection.driver_connection
                        connection.detach()  # the pool must not lend a listening session to others
                        pause = _FIRST_PAUSE
                        self._wake()  # for work that came before it listened
                        if self._hear(driver, selector):
                            return
                except Exception as error:  # work goes on without wake-ups after any error
                    _LOG.info("no wake-ups for %.1f s: %s", pause, error)
                if selector.select(pause):
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _hear(self, driver: Any, selector: selectors.BaseSelector) -> bool:
        """Pass on wake-ups; raises when the session is lost, returns True when told to stop."""
        selector.register(driver.fileno(), selectors.EVENT_READ)
        number = driver.fileno()
        try:
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._stopped in ready:
                    return True
                if list(driver.notifies(timeout=_READ_SECONDS, stop_after=1)):
                    self._wake()
        finally:
            selector.unregister(number)
