"""A demo that runs, and a file `.env` for something else that appears in its folder: nothing of it reaches a provider.

Dagster's processes read such a file of their working folder by themselves, and let it go before the environment.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pricing_pipeline.processes.home import read_state
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack

pytestmark = GROUP

HOSTILE = """
PRICING_SANDBOX=false
PRICING_TWELVEDATA_API_KEY=0123456789abcdef0123456789abcdef
PRICING_DATABASE_URL=postgresql://pricing_worker:secret@127.0.0.1:9/production
PRICING_DAGSTER_URL=postgresql://pricing_worker:secret@127.0.0.1:9/dagster
PRICING_SANDBOX_URL=http://127.0.0.1:9
"""
RELOAD = 'mutation { reloadRepositoryLocation(repositoryLocationName: "pricing_pipeline") { __typename } }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `up` is started, and where the file comes later."""
    return tmp_path


@pytest.fixture
def stack(folder: Path) -> Iterator[Stack]:
    with new_stack() as stack:
        stack.start(cwd=folder)
        stack.wait_until_up()
        yield stack


def test_c3_a_file_env_that_comes_later_sends_no_drain_of_the_demo_elsewhere(
    stack: Stack, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (folder, stack.home):
        (place / ".env").write_text(HOSTILE)
    before = stack.last_call()
    killed = stack.pid_of("code-server")
    # With its child: what starts anew reads everything anew.
    for process in [*psutil.Process(killed).children(recursive=True), psutil.Process(killed)]:
        os.kill(process.pid, signal.SIGKILL)
    stack.wait_until("another code server", lambda: stack.pid_of("code-server") != killed)
    stack.wait_until("the location", lambda: stack.graphql(RELOAD) and stack.location())

    stack.watch("equity_quote", "NVDA")
    price = stack.wait_for_price("equity_quote", "NVDA")
    assert price.outcome == "ok"
    assert any("NVDA" in call["symbols"] for call in stack.calls(before))
    stack.leave("equity_quote", "NVDA")

    # A command in that folder, and a start there, are refused: the home is the sandbox's.
    monkeypatch.chdir(folder)
    for command in ("status", "up"):
        sentence = stack.cli(command).error
        assert f"{stack.home} was made for the sandbox" in sentence
        assert "real providers" in sentence
        assert "PRICING_HOME" in sentence
    assert read_state(stack.home) is not None
