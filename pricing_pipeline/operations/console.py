"""Failing parts, for the console of `up`: the notifier writes them into a file, and the supervisor reads the file.

The supervisor has one thread, which starts processes. It must not wait for a database that hangs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import health

if TYPE_CHECKING:
    from sqlalchemy import Engine

NAME = "health"
_EVERY_SECONDS = 5.0


def keep_writing(engine: Engine, stop: threading.Event, *, folder: Path) -> None:
    """Write which parts of the pipeline are late until `stop` is set."""
    watch = health.HealthWatch(engine)
    while not stop.is_set():
        try:
            late = {part.part: part.says or "" for part in health.late(watch.measure())}
        except statement_error() as error:
            late = {health.DATABASE: f"the database does not answer: {reason(error)}"}
        except DatabaseError as error:
            late = {health.DATABASE: str(error)}
        with contextlib.suppress(OSError):  # a full disk must not end the thread
            unfinished = folder / f".{NAME}"
            unfinished.write_text(json.dumps(late))
            os.replace(unfinished, folder / NAME)
        stop.wait(_EVERY_SECONDS)


class Console:
    """Prints a line when a part stops working, with the reason, and a line when it works again."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._path = folder / NAME
        self._say = say
        self._said: dict[str, str] = {}
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)  # of an earlier start

    def look(self) -> None:
        """Say what has changed."""
        try:
            late: dict[str, str] = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return
        for part, says in late.items():
            # Counts and times go on changing.
            if (gist := re.sub(r"\d+", "", says)) != self._said.get(part):
                self._said[part] = gist
                self._print(f"Does not work: {_words(part)}: {says.rstrip('.')}.")
        # While the database does not answer, it is unknown whether the other parts work again.
        for part in () if health.DATABASE in late else self._said.keys() - late.keys():
            del self._said[part]
            self._print(f"Works again: {_words(part)}")

    def _print(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone
            self._say(line)


def _words(part: str) -> str:
    return part.replace("_", " ")
