"""The examples of docs/api.md run as they stand, against a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pricing_pipeline.api import stream_hub
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

PAGE_PATH = Path(__file__).parents[2] / "docs/api.md"
PAGE = PAGE_PATH.read_text()


@pytest.fixture
def environment(api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the examples need, and a price."""
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.05)
    core.heartbeat("alice", (QUOTE, "AAPL"))
    core.refresh(price="189.95")
    token = api.caller(Scope.READ, Scope.WATCH).token
    return os.environ | {"TOKEN": token or "", "API_URL": api.url, "ONCE": "1"}


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node 20 or newer")
def test_b27_the_example_in_javascript_runs(environment: dict[str, str]) -> None:
    path = PAGE_PATH.with_name("examples") / "stream.mjs"
    assert run(["node", str(path)], environment).splitlines() == ["price AAPL 189.95", "ready  "]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_b27_the_example_with_curl_runs(environment: dict[str, str], api: RunningApi) -> None:
    (command,) = re.findall(r"^    (curl --no-buffer .*?(?:\\\n.*?)*)\n\n", PAGE, re.MULTILINE)
    command = command.replace("http://127.0.0.1:8000", api.url)
    shown = run(["sh", "-c", f"{command} | head -n 8"], environment)
    assert "event: price" in shown
    assert '"symbol":"AAPL","data_type":"equity_quote","date":null,"price":"189.95"' in shown
