"""README's tour and the page for applications, walked on one first start as their readers walk them.

Each command of the tour is run, and each line of its sample is found again.

Numbers, times and ids are masked, for they differ from run to run; prices of real days are not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.cli import ROOT, Said
from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.pages import blocks
from pricing_pipeline_tests.support.patience import PATIENCE

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
    return command.startswith("price history")


def compared(sample: str) -> list[str]:
    """The lines of a sample, without those that only stand for others."""
    return [line for line in sample.splitlines() if line.strip() not in ("", "...")]


@pytest.fixture(scope="module")
def tour() -> Iterator[Stack]:
    """A first start, as a reader of the README has it."""
    with new_stack() as stack:
        stack.start()
        stack.wait_until_up()
        yield stack


@pytest.mark.parametrize(("command", "sample"), SAMPLES, ids=[command for command, _ in SAMPLES])
def test_a_command_of_the_tour_prints_its_sample(tour: Stack, tmp_path: Path, command: str, sample: str) -> None:
    tour.wait_until_all_fresh()
    words = shlex.split(WATCHING.sub("--minutes 60", command))
    if "AAPL" in words:
        fetch_again(tour, "AAPL")
    said = watched(tour, words, sample, tmp_path) if WATCHING.search(command) else tour.cli(*words)
    assert said.exit_code == 0, said
    assert missing(command, sample, said.stdout) == [], said.stdout


def fetch_again(tour: Stack, symbol: str) -> None:
    """A quote is due each minute, which may be the moment in which the command looks; now that is a minute off."""
    before = tour.core.clock()
    tour.core.enqueue(QUOTE, symbol)
    tour.wait_for_price(QUOTE, symbol, after=before)


def watched(tour: Stack, words: list[str], sample: str, folder: Path) -> Said:
    """What a command that watches has printed when its sample is there, however long that takes. Ctrl-C ends it."""
    *lines, _ = sample.strip().splitlines()  # the last says that it has ended
    paths = folder / "stdout", folder / "stderr"
    with paths[0].open("w") as stdout, paths[1].open("w") as stderr:
        argv = [sys.executable, "-m", "pricing_pipeline.cli", *words]
        process = subprocess.Popen(argv, env=tour.environment(), stdout=stdout, stderr=stderr)
    try:
        with suppress(AssertionError):  # the test says what is missing
            tour.wait_until(
                "its sample",
                lambda: not missing(shlex.join(words), "\n".join(lines), paths[0].read_text()),
            )
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
    return Said(process.returncode, *(path.read_text() for path in paths))


def missing(command: str, sample: str, stdout: str) -> list[str]:
    """The lines of a sample that a command has not printed."""
    measure = str.strip if is_exact(command) else shape
    printed = [measure(line) for line in stdout.splitlines()]
    found = []
    for line in compared(sample):
        wanted = re.escape(measure(line)).replace(re.escape("..."), ".*")
        if not any(re.fullmatch(wanted, one) for one in printed):
            found.append(line)
    return found


def test_the_curl_of_the_tour_answers_as_its_sample_to_the_space(tour: Stack) -> None:
    """Numbers differ from day to day; an ellipsis stands for what is left out."""
    tour.wait_until_all_fresh()
    ((commands, sample),) = re.findall(
        r"^    (export TOKEN=.*\n    curl .*)\n\n((?:    .*\n)+)", README.read_text(), re.MULTILINE
    )
    fetch_again(tour, "AAPL")
    url = tour.state()["urls"]["api"].rstrip("/")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    answer = subprocess.run(
        ["sh", "-ec", commands.replace("curl", "curl -sS").replace("http://127.0.0.1:8000", url)],
        env=tour.environment() | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    parts = re.sub(r"\n? {4}", "", sample).strip().split("...")
    wanted = ".*".join(re.sub(r"\d+(\\\.\d+)?", r"[0-9.]+", re.escape(part)) for part in parts)
    assert re.fullmatch(wanted, answer.strip()), answer


def test_the_samples_are_found() -> None:
    assert len(SAMPLES) >= 4


# docs/from-an-application.md comes after the tour, because its thirty holdings would change the tour's samples.

PAGE = ROOT / "docs/from-an-application.md"
COMMANDS = blocks(PAGE, "sh")
STREAM = next(at for at, block in enumerate(COMMANDS) if "--no-buffer" in block)
MARK = "-- the next block --"


def environment(stack: Stack) -> dict[str, str]:
    """A terminal in which the environment of the clone is active."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return stack.environment() | {"PATH": path, "NO_PROXY": "127.0.0.1"}


def typed(stack: Stack, *later: str) -> list[str]:
    """What the page's commands print, block by block, and then `later`. The stream ends with its first state."""
    url = stack.state()["urls"]["api"].rstrip("/")
    texts = [block.replace("http://127.0.0.1:8000", url) for block in COMMANDS]
    texts[STREAM] = f"{texts[STREAM].rstrip()} | sed -u '/^event: ready/q'\n"
    script = f"\necho; echo '{MARK}'\n".join([*texts, *later])
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=ROOT,
        env=environment(stack),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(MARK)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a10_the_page_for_applications_brings_thirty_holdings_to_fresh_prices(tour: Stack, tmp_path: Path) -> None:
    pairs = [tuple(pair.values()) for pair in json.loads((ROOT / "docs/examples/portfolio.json").read_text())["pairs"]]
    assert len(set(pairs)) == 30
    (program,) = blocks(PAGE, "python")
    path = tmp_path / "portfolio.py"
    path.write_text(program)
    said = typed(tour, f"{sys.executable} {path}")
    stream, prices, why, quotes, bars, portfolio = said[STREAM:]
    assert stream.count("event: missing") + stream.count("event: price") == 30
    told = {row["symbol"]: row for row in json.loads(prices)["prices"]} | {
        row["symbol"]: row for row in json.loads(prices)["missing"]
    }
    assert told.keys() == {"AAPL", "VOD:XLON", "7203:XTKS"}
    assert [row["symbol"] for row in json.loads(why)["reasons"]] == ["AAPL"]
    assert [row["symbol"] for row in json.loads(why)["missing"]] == ["NOPE"]
    assert json.loads(quotes)["symbol"] == "AAPL"
    assert len(json.loads(bars[bars.index("{") :])["rows"]) == 20
    words = [line.split() for line in portfolio.splitlines()]
    fresh = {line[0]: line[2] for line in words if len(line) == 3 and line[2].isalpha()}
    assert fresh.keys() == {symbol for _, symbol in pairs}
    assert [fresh[symbol] for symbol in ("VOD:XLON", "7203:XTKS", "118632", "BTC/USD")] == [
        "GBP",
        "JPY",
        "INR",
        "USD",
    ]
    # Calls without an answer are left out: on a busy machine the sandbox may take longer than the deadline.
    refused = "outcome = 'failed' AND http_status IS NOT NULL"
    assert tour.core.rows(f"SELECT symbols, error FROM pricing.collector_call_log WHERE {refused}") == []
    assert tour.core.rows("SELECT symbol, reason FROM pricing.route_refusals") == []
