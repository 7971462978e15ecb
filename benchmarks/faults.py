"""Does the real system under load lose work, do it twice or exceed a limit when faults are injected?

Faults are drawn by weight from a seed and injected one at a time. After each, the run measures how long the system
takes to work again, and compares the records of clients, pipeline and provider. docs/reliability.md explains the
table. The run uses helpers of the tests: `make install-test` installs what they need.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from benchmarks import report

if TYPE_CHECKING:
    from pricing_pipeline_tests.fault_run.run import Outcome, Row

_NEEDED = ("pytest", "psutil", "aiosmtpd")
_COLUMNS = (
    "faults", "attempted", "acknowledged", "lost", "doubled", "late", "over_limit", "over_quota", "other",
)  # fmt: skip

Number = TypeVar("Number", int, float)


def main(arguments: Sequence[str]) -> int:
    """Run, print the table, and return 1 if anything was wrong."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        sys.stderr.write(f"The run needs {', '.join(missing)}, which are not installed; run: make install-test\n")
        return 2
    # Subprocesses are forked from one that has loaded all this; they load this module's caller again.
    from pricing_pipeline_tests.fault_run.run import KINDS, Options, run
    from pricing_pipeline_tests.fault_run.stage import StageError

    parser = _parser(sorted(KINDS))
    chosen = parser.parse_args(arguments)
    if chosen.list:
        sys.stdout.write("| kind | weight | what happens |\n|---|---|---|\n")
        for name, kind in sorted(KINDS.items()):
            sys.stdout.write(f"| `{name}` | {kind.weight} | {kind.words} |\n")
        return 0
    options = Options(
        seed=chosen.seed,
        seconds=60 * chosen.minutes,
        most=chosen.faults,
        first=chosen.first,
        only=chosen.only or (),
        keeps_going=chosen.keep_going,
        streams=chosen.streams,
        reads=chosen.reads,
    )
    # A run that gets SIGTERM ends all that it has started, and removes its disk.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("The run was stopped."))
    try:
        outcome = run(options, _say)
    except StageError as error:
        sys.stderr.write(f"The system did not come up: {error}\n")
        return 2
    sys.stdout.write((_to_json if chosen.json else _to_text)(options.seed, outcome) + "\n")
    return 1 if outcome.faults else 0


def _say(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


def _parser(kinds: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults", description=__doc__)
    add = parser.add_argument
    add("--seed", type=_number(int, 0), default=1, help="which sequence of faults; else 1")
    add("--minutes", type=_number(float, 0.05), default=5.0, help="how long to run; else 5")
    add("--faults", type=_number(int, 1), help="end after so many faults")
    add("--from", type=_number(int, 1), default=1, dest="first", help="begin with this step of the sequence")
    add("--only", nargs="+", choices=kinds, metavar="KIND", help="draw from these kinds; else from all")
    add("--streams", type=_number(int, 1), default=3, help="how many live streams are open; else 3")
    add("--reads", type=_number(int, 1), default=2, help="how many reads of prices a second are sent; else 2")
    add("--keep-going", action="store_true", help="go on after an audit that fails")
    add("--list", action="store_true", help="list all kinds of faults and end")
    add("--json", action="store_true", help="one line of JSON")
    return parser


def _number(kind: Callable[[str], Number], least: Number) -> Callable[[str], Number]:
    """Parses an option, and says in words what it accepts."""

    def read(given: str) -> Number:
        name = "a whole number" if kind is int else "a number"
        try:
            number = kind(given)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{given!r} is not {name}") from None
        if not least <= number < 1e9:
            raise argparse.ArgumentTypeError(f"{given} is not between {least} and 1e9")
        return number

    return read


def _to_json(seed: int, outcome: Outcome) -> str:
    return json.dumps(
        {
            "name": "faults",
            "machine": report.machine(),
            "seed": seed,
            "seconds": round(outcome.seconds, 1),
            "server": outcome.server,
            "streams": outcome.streams,
            "reads_per_second": round(outcome.reads, 1),
            "rows": {name: asdict(row) for name, row in outcome.rows.items()},
            "left_out": outcome.left_out,
            "faults": outcome.faults,
        }
    )


def _to_text(seed: int, outcome: Outcome) -> str:
    """A table in Markdown."""
    kinds = [row for name, row in outcome.rows.items() if row.faults]
    lines = [
        f"Seed {seed}, {sum(row.faults for row in kinds):,} faults of {len(kinds)} kinds in"
        f" {outcome.seconds / 60:.0f} minutes, on PostgreSQL {outcome.server}, with {outcome.streams} streams and"
        f" {outcome.reads:.0f} reads a second answered ({report.machine()}).",
        "",
        "| kind | " + " | ".join(name.replace("_", " ") for name in _COLUMNS) + " | back after (s) |",
        "|---|" + "---|" * (len(_COLUMNS) + 1),
        *(_line(f"`{name}`", row) for name, row in sorted(outcome.rows.items()) if row.faults),
    ]
    if (rest := outcome.rows.get("no fault")) is not None:
        lines.append(_line("before, and at the end", rest))
    lines.append(_line("all", _sum(list(outcome.rows.values()))))
    if outcome.left_out:
        lines += ["", f"Not possible on this machine: {', '.join(outcome.left_out)}."]
    return "\n".join([*lines, *([""] if outcome.faults else []), *outcome.faults])


def _line(name: str, row: Row) -> str:
    cells = [f"{getattr(row, column):,}" for column in _COLUMNS]
    return f"| {name} | " + " | ".join(cells) + f" | {row.slowest_back:.1f} |"


def _sum(rows: Sequence[Row]) -> Row:
    total = type(rows[0])()
    for column in _COLUMNS:
        setattr(total, column, sum(getattr(row, column) for row in rows))
    total.slowest_back = max(row.slowest_back for row in rows)
    return total
