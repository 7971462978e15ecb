"""Hearing that there is work: a session of its own that listens, and wakes whoever waits.

A wake-up is a hint and nothing more. It may be lost (the server restarts; PgBouncer in transaction mode passes none),
so whoever waits must look by itself now and then.
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
"""For reading what has arrived; with no time at all psycopg does not even look."""


class WakeUp:
    """Calls `wake`, from a thread of its own, when new work comes and once each time it begins to listen.

    Its session is lost and made again as often as need be. Close it after use.
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
            # Readable, by its end, as soon as it is told to stop.
            selector.register(self._stopped, selectors.EVENT_READ)
            while True:
                try:
                    with self._engine.connect() as connection:
                        connection.execution_options(isolation_level="AUTOCOMMIT")
                        connection.execute(query("drains.listen"))
                        driver = connection.connection.driver_connection
                        connection.detach()  # a session that listens must not be lent to others
                        pause = _FIRST_PAUSE
                        self._wake()  # what came before it listened
                        if self._hear(driver, selector):
                            return
                except Exception as error:  # whatever it is, work goes on without wake-ups
                    _LOG.info("no wake-ups for %.1f s: %s", pause, error)
                if selector.select(pause):
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _hear(self, driver: Any, selector: selectors.BaseSelector) -> bool:
        """Pass wake-ups on until the session is lost, which raises, or the end has come, which is True."""
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
