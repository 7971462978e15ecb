"""Processes of their own for tests: workers, enqueuers and drains, started together, stopped or killed.

`crowd` runs many to their end; `Worker` is one that a test signals. Run as a module it is such a process:
its work is named on the command line, it says "ready", waits for a line, and prints its result as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import psycopg

_ROOT = Path(__file__).parents[1]


class Worker:
    """A process that does one piece of work. Use as a context manager: it never outlives it."""

    def __init__(self, work: str, **arguments: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, work, json.dumps(arguments)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.kill()
        self.process.communicate()

    def says(self, word: str) -> None:
        """Wait for a line."""
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        assert line == word, self._died(line)

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def start(self) -> Self:
        """Let it begin."""
        self.says("ready")
        self.go()
        return self

    def result(self, seconds: float = 120) -> Any:
        """Wait for its end and return what it made."""
        out, errors = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0, errors
        return json.loads(out)

    def _died(self, line: str) -> str:
        self.process.kill()
        return f"said {line!r}: {self.process.communicate()[1]}"


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


def claim_all(
    url: str, number: int, provider: str, max_calls: int, threads: int, ahead: float = 0
) -> dict[str, Any]:
    """Claim and complete in several sessions until nothing is left; counts errors by SQLSTATE."""
    claimed: list[int] = []
    refused: list[int] = []
    errors: list[str] = []

    def run(session: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            empty = 0
            while empty < 3:
                try:
                    rows = connection.execute(
                        "SELECT unnest(ids) AS id, claim_token FROM pricing.claim_calls(%s, %s, %s)",
                        [provider, f"w{number}.{session}", max_calls],
                    ).fetchall()
                    if not rows:
                        empty += 1
                        time.sleep(0.01)
                        continue
                    ids = [row[0] for row in rows]
                    claimed.extend(ids)
                    done = connection.execute(
                        "SELECT pricing.complete_tasks(%s, %s)", [ids, rows[0][1]]
                    ).fetchone()
                    assert done is not None
                    refused.extend(set(ids) - set(done[0]))
                except psycopg.Error as error:
                    errors.append(f"{error.sqlstate}: {error}")

    _in_threads(run, threads)
    return {"claimed": claimed, "refused": refused, "errors": errors}


def claim_for(url: str, number: int, provider: str, max_calls: int, seconds: float) -> dict[str, Any]:
    """Claim and complete as fast as the limits allow, for a while."""
    count = 0
    with psycopg.connect(url, autocommit=True) as connection:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            rows = connection.execute(
                "SELECT unnest(ids) AS id, claim_token FROM pricing.claim_calls(%s, %s, %s)",
                [provider, f"w{number}", max_calls],
            ).fetchall()
            if rows:
                connection.execute(
                    "SELECT pricing.complete_tasks(%s, %s)", [[row[0] for row in rows], rows[0][1]]
                )
                count += len(rows)
    return {"claimed": count}


def enqueue_due(url: str, number: int, rounds: int) -> dict[str, Any]:
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


def enqueue(url: str, number: int, data_type: str, symbols: list[str], rounds: int) -> dict[str, Any]:
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


def drain(url: str, sandbox: str, seconds: float, number: int = 0, halt: str = "") -> dict[str, Any]:
    """A real worker on a real provider client. With `halt` it says so at that point, and waits there."""
    # Only this work needs them, and they take half a second to import.
    from pricing_pipeline_tests.refreshing import run_worker

    return run_worker(url, sandbox, seconds, f"worker {number}", halt)


def work_for(url: str, sandbox: str, number: int, seconds: float) -> dict[str, Any]:
    """A real worker on a real client for a while; not a drain, of which there is one at a time."""
    from pricing_pipeline_tests.refreshing import work_beside_others

    work_beside_others(url, sandbox, seconds, f"worker {number}")
    return {}


def rotate_keys(
    url: str, master_keys: list[str], halt: str = "", after: int = 0, number: int = 0
) -> dict[str, Any]:
    """Seal all stored keys anew. Halts where the row number `after` is "sealed" (not committed yet) or "committed"."""
    from sqlalchemy import event

    from pricing_pipeline import credentials
    from pricing_pipeline.db.engine import make_engine
    from pricing_pipeline.sealing import Keyring

    engine = make_engine(url)
    rows = 0

    def count(connection: object) -> None:
        nonlocal rows
        rows += 1
        if halt == "sealed":
            stop()

    def stop() -> None:
        if rows == after:
            print("halted", flush=True)
            time.sleep(60)

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


if __name__ == "__main__":
    WORK: dict[str, Callable[..., dict[str, Any]]] = {
        one.__name__: one
        for one in (claim_all, claim_for, enqueue_due, enqueue, drain, work_for, rotate_keys)
    }
    work, arguments = WORK[sys.argv[1]], json.loads(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(work(**arguments)), flush=True)
