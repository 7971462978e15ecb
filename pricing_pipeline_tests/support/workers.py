"""Processes of their own for tests: workers, enqueuers and drains, started together, stopped or killed.

`crowd` runs many to their end; `Worker` is one that a test signals. Such a process says "ready", waits to be told to
go, does the work it was given by name, and answers with what that returns.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from typing import Any, Self
from uuid import UUID

import psycopg
from sqlalchemy import event

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.keys import credentials
from pricing_pipeline.keys.sealing import Keyring
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.refreshing import run_worker, work_beside_others

# Forked off a process that has imported everything: of a short piece of work, importing was the larger part.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


def import_once(*modules: str) -> None:
    """Have the process that others are forked off import more modules, before the first of them is started."""
    _FORKS.set_forkserver_preload([__name__, *modules])


Say = Callable[[str], None]
Work = Callable[..., dict[str, Any]]


class Worker:
    """A process that does one piece of work. Use as a context manager: it never outlives it."""

    def __init__(self, work: str | Work, *, anew: bool = False, **arguments: Any) -> None:
        """Work of this module by its name, or any function that takes what a worker says first.

        With `anew` it is an interpreter of its own, with the environment as it is now.
        """
        processes = multiprocessing.get_context("spawn") if anew else _FORKS
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(theirs, work, arguments))
        self._process.start()
        theirs.close()  # so that a process that died is heard as the end of the pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        self._process.close()
        self._pipe.close()

    def says(self, word: str) -> None:
        """Wait for a word."""
        heard = self._hear(PATIENCE)
        assert heard == word, heard

    def go(self) -> None:
        self._pipe.send("go")

    def start(self) -> Self:
        """Let it begin."""
        self.says("ready")
        self.go()
        return self

    def result(self, seconds: float = 2 * PATIENCE) -> Any:
        """Wait for its end and return what it made."""
        answer = self._hear(seconds)
        assert isinstance(answer, dict), answer
        return answer

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def has_said(self, word: str, seconds: float) -> bool:
        """Whether it says this word within so many seconds."""
        return self._pipe.poll(seconds) and self._hear(0) == word

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self, seconds: float) -> None:
        """Tell it to end (SIGTERM), and wait so long at most."""
        self._process.terminate()
        self._process.join(seconds)

    def kill(self) -> None:
        """Kill it, if it still lives, and wait until it is gone."""
        self._process.kill()
        self._process.join()

    def _hear(self, seconds: float) -> Any:
        assert self._pipe.poll(seconds), f"heard nothing for {seconds} s"
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            return f"it ended with {self._process.exitcode}"


def _serve(pipe: Connection, work: str | Work, arguments: dict[str, Any]) -> None:
    """Be the process: the test hears what went wrong, in words."""
    pipe.send("ready")
    pipe.recv()
    try:
        do = _WORK[work] if isinstance(work, str) else work
        pipe.send(do(pipe.send, **arguments))
    except Exception:
        pipe.send(traceback.format_exc())


def crowd(count: int, work: str, **arguments: Any) -> list[Any]:
    """Run the same work in `count` processes that begin together; returns what each made."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(work, **arguments, number=number)) for number in range(count)]
        for worker in workers:
            worker.says("ready")
        for worker in workers:
            worker.go()
        return [worker.result() for worker in workers]


# What the processes do. Each returns what can be told in JSON.

_CLAIM = "SELECT call_id, ids, claim_token FROM pricing.claim_calls(%s, %s, %s)"
_IS_ANYTHING_LEFT = "SELECT EXISTS (SELECT FROM pricing.api_call_queue_live)"


def _finish(connection: psycopg.Connection[Any], call: int, ids: list[int], token: UUID) -> set[int]:
    """Finish the tasks of a call that is not made; returns those that the claim still owned."""
    finished = connection.execute("SELECT pricing.finish_call(%s, %s, %s, 200, 600)", [call, ids, token])
    ((done,),) = finished.fetchall()
    return set(done)


def claim_all(
    say: Say, url: str, number: int, provider: str, max_calls: int, threads: int, ahead: float = 0
) -> dict[str, Any]:
    """Claim and complete in several sessions until nothing is left; counts errors by SQLSTATE."""
    claimed: list[int] = []
    refused: list[int] = []
    errors: list[str] = []

    def run(session: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while True:
                try:
                    calls = connection.execute(_CLAIM, [provider, f"w{number}.{session}", max_calls]).fetchall()
                    if not calls and connection.execute(_IS_ANYTHING_LEFT).fetchone() == (True,):
                        time.sleep(0.01)
                    elif not calls:
                        return
                    for call, ids, token in calls:
                        claimed.extend(ids)
                        refused.extend(set(ids) - _finish(connection, call, ids, token))
                except psycopg.errors.LockNotAvailable:
                    pass  # a claim waits for others for a moment; then a worker looks again
                except psycopg.Error as error:
                    errors.append(f"{error.sqlstate}: {error}")

    _in_threads(run, threads)
    return {"claimed": claimed, "refused": refused, "errors": errors}


def claim_for(say: Say, url: str, number: int, provider: str, max_calls: int, logged: int) -> dict[str, Any]:
    """Claim and complete as fast as the limits allow, until all together have made so many calls."""
    count = 0
    are_enough = "SELECT count(*) >= %s FROM pricing.collector_call_log"
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(are_enough, [logged]).fetchone() == (False,):
            calls: list[tuple[int, list[int], UUID]] = []
            with suppress(psycopg.errors.LockNotAvailable):
                calls = connection.execute(_CLAIM, [provider, f"w{number}", max_calls]).fetchall()
            for call in calls:
                count += len(_finish(connection, *call))
    return {"claimed": count}


def enqueue_due(say: Say, url: str, number: int, rounds: int) -> dict[str, Any]:
    """Run the staleness check, as several sensors and drains would at once; counts what each says it queued."""
    queued, errors = 0, []
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(rounds):
            try:
                row = connection.execute("SELECT pricing.enqueue_due()").fetchone()
                queued += row[0] if row else 0
            except psycopg.Error as error:
                errors.append(f"{error.sqlstate}: {error}")
    return {"queued": queued, "errors": errors}


def enqueue(say: Say, url: str, number: int, data_type: str, symbols: list[str], rounds: int) -> dict[str, Any]:
    """Queue the same symbols again and again, in an order of one's own."""
    added, errors = 0, []
    mine = symbols[number * 37 % len(symbols) :] + symbols[: number * 37 % len(symbols)]
    with psycopg.connect(url, autocommit=True) as connection:
        for turn in range(rounds):
            try:
                row = connection.execute(
                    "SELECT pricing.enqueue(%s, %s, %s)", [data_type, mine, [number + turn] * len(mine)]
                ).fetchone()
                added += row[0] if row else 0
            except psycopg.Error as error:
                errors.append(f"{error.sqlstate}: {error}")
    return {"added": added, "errors": errors}


def drain(
    say: Say, url: str, sandbox: str, seconds: float, number: int = 0, halt: str = "", idle: str = ""
) -> dict[str, Any]:
    """A real worker on a real provider client. With `halt` it says so at that point, and waits there.

    `idle` shortens the time after which the server ends its session when it is frozen in a transaction.
    """
    return run_worker(say, url, sandbox, seconds, f"worker {number}", halt, idle)


def work_for(
    say: Say, url: str, sandbox: str, number: int, seconds: float, until: str = "SELECT true"
) -> dict[str, Any]:
    """A real worker on a real client until something has come about, and a while longer.

    It is not a drain, of which there is one at a time.
    """
    work_beside_others(url, sandbox, seconds, f"worker {number}", until)
    return {}


def rotate_keys(
    say: Say, url: str, master_keys: list[str], halt: str = "", after: int = 0, number: int = 0
) -> dict[str, Any]:
    """Seal all stored keys anew. Halts where the row number `after` is "sealed" (not committed yet) or "committed"."""
    engine = make_engine(url)
    rows = 0

    def count(connection: object) -> None:
        nonlocal rows
        rows += 1
        if halt == "sealed":
            stop()

    def stop() -> None:
        if rows == after:
            say("halted")
            time.sleep(600)

    event.listen(engine, "commit", count)
    if halt == "committed":
        event.listen(engine, "checkin", lambda dbapi, record: stop())
    try:
        result = credentials.reseal(engine, Keyring.parse(master_keys))
    finally:
        engine.dispose()
    return {"done": result.done, "faults": [str(fault) for fault in result.faults]}


def _in_threads(run: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


_WORK: dict[str, Work] = {
    one.__name__: one for one in (claim_all, claim_for, enqueue_due, enqueue, drain, work_for, rotate_keys)
}
