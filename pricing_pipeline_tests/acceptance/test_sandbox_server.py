"""The sandbox as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from pricing_pipeline_tests.integration.test_sandbox_server import get
from pricing_pipeline_tests.support.patience import PATIENCE


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_as_its_own_process_until_told_to_stop(sign):
    command = [sys.executable, "-u", "-m", "pricing_pipeline.cli", "sandbox"]
    command += ["--credits-per-minute", "8", "--credits-per-day", "800", "--key", "canary-key"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [*command, "--port", "0"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        first = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        assert url, process.communicate()
        key = {"Authorization": "apikey canary-key"}
        headers = get(f"{url[0]}/twelvedata/price?symbol=AAPL", headers=key).headers
        assert (headers["Api-Credits-Used"], headers["Api-Credits-Left"]) == ("1", "7")
    finally:
        process.send_signal(sign)
        _, errors = process.communicate(timeout=PATIENCE)
    assert first.startswith("The sandbox answers at http://127.0.0.1:")
    assert errors == ""
