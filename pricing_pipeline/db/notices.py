"""Warnings of the database, counted by the program that receives them: a rollback removes rows, but not received
notices.

The counts wait in memory, and a thread writes them in a session of its own. Lost are the counts of the last second if
the process is killed, and those since the database went away if the process ends before the database is back.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.errors import Diagnostic

from pricing_pipeline.db.query_loader import driver_query

_LOG = logging.getLogger(__name__)
_MARK = "pricing.warn"
"""The schema that `pricing.warn` names in its warnings, which no table is in."""
_MOST_CAUSES = 256
_LONGEST = 1000
_OTHERS = ("other warnings", "too many to tell apart", "")
_GATHER_SECONDS = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class _Heard:
    times: int
    last_at: float
    """By the monotonic clock."""
    message: str


_Cause = tuple[str, str, str]


class HeardWarnings:
    """Counts what the sessions of one engine hear, by cause, and writes the counts to its database.

    `hear` is the handler of a session's notices: it only counts, and never raises. A thread lives while something
    waits to be written.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._lock = threading.RLock()  # `close` may come while the same thread counts
        self._heard: dict[_Cause, _Heard] = {}
        self._writer: threading.Thread | None = None
        self._hurry = threading.Event()

    def hear(self, notice: Diagnostic) -> None:
        """Count a notice or warning that a session has received."""
        try:
            if (heard := _cause_of(notice)) is not None:
                cause, message = heard
                self._add([(cause, _Heard(1, time.monotonic(), message))])
        except Exception:  # nothing here may stop the statement
            _LOG.exception("a warning of the database is not counted")

    @property
    def waiting(self) -> int:
        """How many notices wait to be written."""
        with self._lock:
            return sum(heard.times for heard in self._heard.values())

    def close(self) -> None:
        """Write what waits, if the database answers; otherwise it is lost. The engine may be used again afterwards."""
        self._hurry.set()
        writer = self._writer
        if writer is not None and writer is not threading.current_thread():
            writer.join(10)
        with self._lock:
            self._heard.clear()
        self._hurry.clear()

    def _add(self, heard: Iterable[tuple[_Cause, _Heard]]) -> None:
        with self._lock:
            for cause, new in heard:
                key = cause if cause in self._heard or len(self._heard) < _MOST_CAUSES else _OTHERS
                old = self._heard.get(key)
                if old is not None:
                    latest = max(old, new, key=lambda each: each.last_at)
                    new = replace(latest, times=old.times + new.times)
                self._heard[key] = new
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(target=self._write_all, name="warnings", daemon=True)
                self._writer.start()

    def _take(self) -> dict[_Cause, _Heard]:
        """All waiting counts. Without any, the writer ends, under the lock that starts a new one."""
        with self._lock:
            taken, self._heard = self._heard, {}
            if not taken:
                self._writer = None
            return taken

    def _write_all(self) -> None:
        pause = _FIRST_PAUSE
        self._hurry.wait(_GATHER_SECONDS)
        while taken := self._take():
            try:
                self._write(taken)
                pause = _FIRST_PAUSE
                self._hurry.wait(_GATHER_SECONDS)
            except psycopg.OperationalError as error:
                if self._hurry.is_set():
                    _LOG.info("%d causes of warnings are not counted: %s", len(taken), error)
                    continue
                self._add(taken.items())
                self._hurry.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception as error:  # such as a database that is not upgraded yet, or no right to write
                _LOG.info("%d causes of warnings are not counted: %s", len(taken), error)

    def _write(self, heard: dict[_Cause, _Heard]) -> None:
        """Write counts in a session whose own notices nobody counts."""
        now = time.monotonic()
        rows = [
            {
                "source": source,
                "subject": subject,
                "sqlstate": sqlstate,
                "times": each.times,
                "seconds_ago": now - each.last_at,
                "message": each.message,
            }
            for (source, subject, sqlstate), each in heard.items()
        ]
        with self._connect() as connection:
            connection.execute(driver_query("session.count_warnings"), {"heard": json.dumps(rows)})


def _cause_of(notice: Diagnostic) -> tuple[_Cause, str] | None:
    """The cause of a notice and its text; None for a notice that is not worth counting."""
    severity = notice.severity_nonlocalized
    if severity not in ("WARNING", "NOTICE"):
        return None
    if notice.schema_name == _MARK:
        cause = (notice.table_name or "", notice.column_name or "", notice.datatype_name or "")
        message = notice.constraint_name
    else:
        cause = ("postgresql", severity, notice.sqlstate or "")
        message = notice.message_primary
    source, subject, sqlstate = (part[:200] for part in cause)
    return (source, subject, sqlstate), (message or "")[:_LONGEST]
