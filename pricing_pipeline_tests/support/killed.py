"""Exports and moves in processes that are killed (SIGKILL) at a step. Run as a program: it forks one for each line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import count
from typing import Any

import duckdb  # noqa: F401 - once for all processes
import pyarrow.csv
import pyarrow.dataset  # noqa: F401
from pyarrow import fs, parquet
from sqlalchemy import Connection, event, make_url

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.prices import exporting
from pricing_pipeline.prices.files import Store

NAME = "killed-at-a-step"
"""The application_name of the sessions of these processes."""
_STEPS = (
    *((Store, name) for name in ("write", "publish", "drop", "make_durable")),
    *((parquet.ParquetWriter, "write_table"), (Connection, "commit")),
)


class Killed:
    """Does the work of a line in a process of its own, and tells at which step it was killed."""

    def __init__(self, url: str, root: str) -> None:
        named = make_url(url).update_query_dict({"application_name": NAME})
        self._where = {"url": named.render_as_string(hide_password=False), "root": root}
        self._program = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def work(self, name: str, data_type: str, month: date, step: int) -> str | None:
        """Export or move a month; returns before what it was killed, or None if it has ended before that step."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        line = {"name": name, "data_type": data_type, "month": month.isoformat(), "step": step}
        print(json.dumps(line | self._where), file=self._program.stdin, flush=True)
        said = json.loads(self._program.stdout.readline())
        assert said["status"] in (0, -signal.SIGKILL), said
        return said["before"] if said["status"] else None

    def end(self) -> None:
        self._program.communicate()


@contextmanager
def killing(url: str, root: str) -> Iterator[Killed]:
    """A program that does exports and moves, until the end of the block."""
    killed = Killed(url, root)
    try:
        yield killed
    finally:
        killed.end()


def _main() -> None:
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(json.loads(line), writing)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as told:
            before = told.read()
        result = {"status": os.waitstatus_to_exitcode(status), "before": before}
        print(json.dumps(result), flush=True)


def _work(line: dict[str, Any], told: int) -> None:
    steps = count()

    def about_to(what: str) -> None:
        if next(steps) == line["step"]:
            os.write(told, what.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name in _STEPS:
        setattr(owner, name, _announced(getattr(owner, name), name, about_to))
    engine = make_engine(line["url"])
    event.listen(engine, "before_cursor_execute", lambda *args: about_to(args[2].replace("\n", " ")))
    try:
        work = exporting.export if line["name"] == "export" else exporting.move
        work(
            engine,
            Store(fs.LocalFileSystem(), line["root"]),
            line["data_type"],
            date.fromisoformat(line["month"]),
        )
        about_to("end")
    except BaseException as error:
        os.write(told, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os._exit(0)


def _announced(original: Callable[..., Any], name: str, about_to: Callable[[str], None]) -> Callable[..., Any]:
    def announced(*args: Any, **options: Any) -> Any:
        about_to(name)
        return original(*args, **options)

    return announced


if __name__ == "__main__":
    _main()
