"""What README's tour prints is what a user gets: each command is run, and each line of its sample is found again.

Numbers, times and ids are masked, for they differ from run to run; prices of real days are not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.cli import ROOT
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack

pytestmark = GROUP

README = Path(ROOT, "README.md")
SAMPLE = re.compile(r"^    \$ pricing-pipeline (.+)\n((?:    (?!\$).*\n|\n(?=    (?!\$)))*)", re.MULTILINE)
SAMPLES = [(found[1], found[2]) for found in SAMPLE.finditer(README.read_text())]
WATCHING = re.compile(r"--minutes [\d.]+")


def shape(line: str) -> str:
    """A line without what differs: numbers and their units, ids, places, the width of columns and rules."""
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "#", line)
    line = re.sub(r"\d[\d.,:/-]*(?: \d\d:\d\d:\d\d)?(?: (?:s|min|h|d|kB|MB|GB)\b)?", "#", line)
    line = re.sub(r"#(?: #)+", "#", line)
    return re.sub(r"\s+", " ", re.sub("─+", "─", line)).strip()


def is_exact(command: str) -> bool:
    return command.startswith("price history") and "--plot" not in command


def compared(command: str, sample: str) -> list[str]:
    """The lines of a sample that every reader sees so. What is for sale changes with the time of day."""
    lines = sample.splitlines()
    if command.startswith(("product availability", "commodity routes")):
        lines = lines[:2]
    is_watching = WATCHING.search(command)
    return [line for line in lines if line.strip() not in ("", "...") and not (is_watching and "%" in line)]


@pytest.fixture(scope="module")
def tour() -> Iterator[Stack]:
    """A first start, as a reader of the README has it."""
    with new_stack() as stack:
        stack.start()
        stack.wait_until_up()
        yield stack


@pytest.mark.parametrize(("command", "sample"), SAMPLES, ids=[command for command, _ in SAMPLES])
def test_a_command_of_the_tour_prints_its_sample(tour: Stack, command: str, sample: str) -> None:
    tour.wait_until_all_fresh()
    words = shlex.split(WATCHING.sub("--minutes 0.1", command))
    if words[:2] == ["product", "availability"]:
        # The demo watches today's slots. In the evening none can be booked any more; the first call asks for others.
        tour.wait_until("slots of the week", lambda: "available" in tour.cli(*words).stdout)
    said = tour.cli(*words)
    assert said.exit_code == 0, said
    measure = str.strip if is_exact(command) else shape
    printed = [measure(line) for line in said.stdout.splitlines()]
    for line in compared(command, sample):
        wanted = re.escape(measure(line)).replace(re.escape("..."), ".*")
        # With shorter names, more columns of routes fit.
        wanted = wanted.replace("margin", "(?:buy )?(?:sell )?margin")
        assert any(re.fullmatch(wanted, found) for found in printed), f"{line}\n{said.stdout}"


def test_the_samples_are_found() -> None:
    assert len(SAMPLES) >= 8
