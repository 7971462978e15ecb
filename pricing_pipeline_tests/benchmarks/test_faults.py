"""The run of faults: that it runs and finds nothing, that it repeats itself, and what its page shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from pricing_pipeline_tests.fault_run.run import BACK_SECONDS, KINDS, draw
from pricing_pipeline_tests.support.pages import ROOT

PAGE = (ROOT / "docs/reliability.md").read_text()


def faults(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "faults", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_b11_a_small_run_finds_nothing_wrong() -> None:
    run = faults(
        *("--seed", "4", "--minutes", "10", "--faults", "4", "--json", "--only"),
        *("worker_killed", "session_cut", "provider_fails", "two_producers"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    answer = json.loads(run.stdout)
    rows = answer["rows"]
    assert sum(row["faults"] for row in rows.values()) == 4
    assert sum(row["acknowledged"] for row in rows.values()) > 0
    assert answer["faults"] == []
    assert len(re.findall(r"^\d+ \w+ .*: ok$", run.stderr, re.MULTILINE)) == 4


def test_the_fault_of_a_step_depends_on_seed_and_step_alone() -> None:
    kinds = list(KINDS.values())
    sequence = [draw(kinds, 7, step) for step in range(1, 401)]
    again = [draw(kinds, 7, step) for step in range(1, 401)]
    assert [(kind.name, dice.random()) for kind, dice in sequence] == [
        (kind.name, dice.random()) for kind, dice in again
    ]
    assert [kind.name for kind, _ in sequence] != [draw(kinds, 8, step)[0].name for step in range(1, 401)]
    drawn = Counter(kind.name for kind, _ in sequence)
    assert len(drawn) >= 60


def test_the_run_that_the_page_shows_found_nothing() -> None:
    (row,) = re.findall(r"^\| ([\d,]+ \|.*) \|$", PAGE, re.MULTILINE)
    run, *_, back_after = row.split(" | ")
    assert int(run.replace(",", "")) >= 1000
    assert row.split(" | ")[3:9] == ["0"] * 6, "nothing lost, doubled, late or exceeded"
    assert float(back_after) <= BACK_SECONDS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "x"], "argument --seed: 'x' is not a whole number"),
        (["--minutes", "0"], "argument --minutes: 0 is not between 0.05 and 1e9"),
        (["--minutes", "nan"], "argument --minutes: nan is not between 0.05 and 1e9"),
        (["--faults", "-3"], "argument --faults: -3 is not between 1 and 1e9"),
        (["--only", "earthquake"], "argument --only: invalid choice: 'earthquake'"),
        (["queue"], "unrecognized arguments: queue"),
    ],
)
def test_bad_options_are_refused_in_words(arguments: list[str], words: str) -> None:
    run = faults(*arguments)
    assert run.returncode == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr
