"""`python -m benchmarks NAME... [--quick] [--json]`: answer one question, several, or `all`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import (
    api,
    backfill,
    first_start,
    heartbeats,
    history_write,
    latency,
    limiter,
    operations,
    peers,
    queue,
    refresh,
    report,
    scaling,
    server,
    slots,
    staleness,
    stream,
    workers,
)

_QUESTIONS: dict[str, Any] = {
    "queue": queue,
    "staleness": staleness,
    "heartbeats": heartbeats,
    "limiter": limiter,
    "stream": stream,
    "operations": operations,
    "refresh": refresh,
    "workers": workers,
    "latency": latency,
    "first_start": first_start,
    "history_write": history_write,
    "backfill": backfill,
    "api": api,
    "slots": slots,
    "scaling": scaling,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*_QUESTIONS, "all"], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="smaller, under 50 seconds")
    parser.add_argument(
        "--tiny", action="store_true", help="only to see that it runs; its figures mean nothing"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON for each name")
    arguments = parser.parse_args()
    size = "TINY" if arguments.tiny else "QUICK" if arguments.quick else "FULL"
    names = list(_QUESTIONS) if "all" in arguments.names else arguments.names
    if {"queue", "backfill"} & set(names) and not peers.are_installed():
        sys.stderr.write(
            "The peers are not installed, so they are left out; `make bench-install` installs them.\n"
        )
    show: Callable[..., str] = (
        (lambda *answer: json.dumps(report.to_json(*answer))) if arguments.json else report.to_text
    )

    def answer(name: str, running: server.BenchmarkServer) -> None:
        rows = _QUESTIONS[name].measure(running, getattr(_QUESTIONS[name], size))
        sys.stdout.write(show(name, rows) + "\n")
        sys.stdout.flush()

    # What one question leaves on a server would slow down the next; where figures mean nothing, one server will do.
    groups = [names] if arguments.tiny else [[name] for name in names]
    for group in groups:
        with server.running(durable=not arguments.tiny) as running:
            for name in group:
                answer(name, running)


if __name__ == "__main__":
    main()
