"""The watchdogs of deploy/systemd: systemd reads the units, and the commands are really run against a server."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest
from sqlalchemy import Engine

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import running_api
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.working import PAIR, go_on, start

SYSTEMD = ROOT / "deploy/systemd"
NEEDED = shutil.which("curl")

pytestmark = pytest.mark.skipif(NEEDED is None, reason="curl is not installed, which the watchdogs use")


def of_unit() -> str:
    """The command of the service."""
    (command,) = re.findall(
        r"^ExecStart=(.+)$", (SYSTEMD / "pricing-pipeline-watchdog.service").read_text(), re.MULTILINE
    )
    return shlex.join(shlex.split(command))


def of_cron() -> str:
    """The command of the line for cron, without times and account."""
    (line,) = re.findall(r"^\*/5 .+$", (SYSTEMD / "watchdog.cron").read_text(), re.MULTILINE)
    assert "%" not in line, "cron ends a command there"
    return line.split(maxsplit=6)[6]  # type: ignore[no-any-return]


def run(command: str, url: str) -> subprocess.CompletedProcess[str]:
    """Run a watchdog's command against a server, without its pauses."""
    command = command.replace("http://127.0.0.1:8000", url).replace("--retry-delay 20", "--retry-delay 0")
    assert url in command
    shell = ["/bin/sh", "-c", command.replace("--retry 2", "--retry 0")]
    return subprocess.run(shell, capture_output=True, text=True, timeout=60, check=False)


def test_b23_watchdogs_are_content_with_a_pipeline_that_works(core: Core, engine: Engine, owner_engine: Engine) -> None:
    start(core)
    core.heartbeat("ann", PAIR)
    go_on(core)
    with running_api(engine, owner_engine) as api:
        assert run(of_unit(), api.url).returncode == 0
        said = run(of_cron(), api.url)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_b23_watchdogs_say_what_is_late(core: Core, clock: Clock, engine: Engine, owner_engine: Engine) -> None:
    start(core)
    core.heartbeat("ann", PAIR)
    clock.advance(700)
    with running_api(engine, owner_engine) as api:
        unit, cron = run(of_unit(), api.url), run(of_cron(), api.url)
    assert unit.returncode != 0
    assert '"daemon"' in unit.stdout
    assert cron.stdout.startswith("the pricing pipeline does not work: ")
    assert '"daemon"' in cron.stdout


def test_b23_watchdogs_say_that_nobody_answers() -> None:
    url = "http://127.0.0.1:9"
    assert run(of_unit(), url).returncode != 0
    assert "onnect" in run(of_cron(), url).stdout


def test_b23_systemd_reads_the_units() -> None:
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("systemd-analyze is not installed")
    units = sorted(SYSTEMD.glob("pricing-pipeline-watchdog.*"))
    checked = subprocess.run([checker, "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    said = [line for line in checked.stderr.splitlines() if "pricing-pipeline-watchdog" in line]
    assert (checked.returncode, said) == (0, []), checked.stderr
