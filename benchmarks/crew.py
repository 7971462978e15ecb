"""Worker processes that start together; every benchmark loads the database with them.

A worker is a command that connects, says `ready`, waits for `go`, works, and answers with one line of JSON.
Ours and the peers' use this protocol alike, so that the time to start an interpreter and connect is not counted.
What the workers do belongs to the questions and to peers/.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

DATABASE_URL = "BENCHMARK_DATABASE_URL"
"""Environment variable with the libpq URL: a URL holds a password, and arguments can be read by everyone."""


class WorkerError(RuntimeError):
    """A worker process ended without an answer."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a crew did: seconds from `go` to the last answer, and the answers."""

    seconds: float
    answers: list[Any]

    @property
    def total(self) -> int:
        """Sum of the answers of a crew that counts."""
        return sum(int(answer) for answer in self.answers)

    @property
    def rate(self) -> float:
        """What was counted, per second."""
        return self.total / self.seconds


def module(name: str, *arguments: object) -> list[str]:
    """Return the command of a worker that is a module of ours."""
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


def run(commands: Sequence[Sequence[str]], database_url: str, *, meanwhile: Callable[[], None] | None = None) -> Work:
    """Run workers together until all have answered. `meanwhile` runs once, right after `go`.

    Raises WorkerError with what the worker wrote when one of them dies.
    """
    environment = os.environ | {DATABASE_URL: database_url}
    with contextlib.ExitStack() as stack:
        workers = [_Worker(stack, command, environment) for command in commands]
        for worker in workers:
            worker.expect("ready")
        began = time.monotonic()
        for worker in workers:
            worker.say("go")
        if meanwhile is not None:
            meanwhile()
        answers = [json.loads(worker.hear()) for worker in workers]
        return Work(time.monotonic() - began, answers)


def serve(prepare: Callable[[str], Callable[[], Any]]) -> None:
    """Run as a worker: `prepare` connects to a database and returns the work; its result is the answer."""
    work = prepare(os.environ[DATABASE_URL])
    gc.freeze()  # what the imports have left, or the first worker to collect garbage would look through it all
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if sys.stdin.readline() != "go\n":
        raise SystemExit(1)
    answer = json.dumps(work())
    # Python's standard output may be unbuffered (PYTHONUNBUFFERED), which loses a part of a long answer.
    with open(sys.stdout.fileno(), "w", closefd=False) as output:
        output.write(answer + "\n")


def megabytes() -> float:
    """The peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Worker:
    def __init__(self, stack: contextlib.ExitStack, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = command
        self._complaints = stack.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115 - the stack closes it
        self._process = stack.enter_context(
            subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                text=True,
            )
        )
        stack.callback(self._process.kill)

    def expect(self, word: str) -> None:
        heard = self.hear()
        if heard != word:
            raise WorkerError(f"{' '.join(self._command)} said {heard!r} where {word!r} was due")

    def say(self, word: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - a pipe was asked for
        stdin.write(word + "\n")
        stdin.flush()

    def hear(self) -> str:
        stdout: IO[str] | None = self._process.stdout
        assert stdout is not None  # noqa: S101 - a pipe was asked for
        line = stdout.readline()
        if not line.endswith("\n"):
            self._process.wait()
            self._complaints.seek(0)
            raise WorkerError(
                f"{' '.join(self._command)} ended with {self._process.returncode}. It wrote:\n"
                + self._complaints.read()[-3000:]
            )
        return line.rstrip("\n")
