"""docs/from-an-application.md, walked as its reader walks it: thirty holdings of five kinds, all fresh in the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.cli import ROOT
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.pages import blocks
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = [GROUP, pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")]

PAGE = ROOT / "docs/from-an-application.md"
COMMANDS = blocks(PAGE, "sh")
STREAM = next(at for at, block in enumerate(COMMANDS) if "--no-buffer" in block)
MARK = "-- the next block --"


@pytest.fixture(scope="module")
def walked() -> Iterator[Stack]:
    """A first start."""
    with new_stack() as stack:
        stack.start()
        stack.wait_until_up()
        yield stack


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


def test_a10_its_page_brings_thirty_holdings_to_fresh_prices(walked: Stack, tmp_path: Path) -> None:
    pairs = [tuple(pair.values()) for pair in json.loads((ROOT / "docs/examples/portfolio.json").read_text())["pairs"]]
    assert len(set(pairs)) == 30
    (program,) = blocks(PAGE, "python")
    path = tmp_path / "portfolio.py"
    path.write_text(program)
    said = typed(walked, f"{sys.executable} {path}")
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
    assert walked.core.rows(f"SELECT symbols, error FROM pricing.collector_call_log WHERE {refused}") == []
    assert walked.core.rows("SELECT symbol, reason FROM pricing.route_refusals") == []
