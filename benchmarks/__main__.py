"""`python -m benchmarks NAME... [--quick] [--json]`: answer one question, several, or `all`.

`python -m benchmarks faults --help` is about the run of faults, which has options of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from importlib import import_module

from benchmarks import faults, peers, report, server

_QUESTIONS = (
    "queue", "staleness", "heartbeats", "limiter", "stream", "operations", "refresh", "workers", "latency",
    "first_start", "history_write", "backfill", "api", "slots", "scaling", "declared",
)  # fmt: skip
"""Modules of this package, imported when asked for."""


def main() -> None:
    if sys.argv[1:2] == ["faults"]:
        sys.exit(faults.main(sys.argv[2:]))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*_QUESTIONS, "all"], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="smaller, under 50 seconds")
    parser.add_argument("--tiny", action="store_true", help="only to see that it runs; its figures mean nothing")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each name")
    arguments = parser.parse_args()
    size = "TINY" if arguments.tiny else "QUICK" if arguments.quick else "FULL"
    names = list(_QUESTIONS) if "all" in arguments.names else arguments.names
    if {"queue", "backfill"} & set(names) and not peers.are_installed():
        sys.stderr.write("The peers are not installed, so they are left out; `make bench-install` installs them.\n")
    show: Callable[..., str] = (
        (lambda *answer: json.dumps(report.to_json(*answer))) if arguments.json else report.to_text
    )

    def answer(name: str, running: server.BenchmarkServer) -> None:
        question = import_module(f"benchmarks.{name}")
        rows = question.measure(running, getattr(question, size))
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
