"""`backfill start` in a process of its own."""

from __future__ import annotations

import signal

import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.integration.test_cli_backfill import WINTER
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")


def test_g6_a_backfill_that_waits_says_for_what_and_ctrl_c_says_what_stays(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name, is_active) VALUES ('twelvedata', 'default', false)"
    )
    with cli.running(urls={"sandbox": sandbox.url}):
        process = cli.start("backfill", "start", "AAPL", "--type", DAILY, *WINTER, "--json")
        assert process.stderr is not None
        warning = "warning: it waits: no key of twelvedata is active. `pricing-pipeline key set"
        assert process.stderr.readline().startswith(warning)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert errors == "stopped. What is not fetched yet stays queued for the next worker.\n"
    assert set(core.statuses().values()) == {"pending"}
