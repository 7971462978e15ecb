"""The first hour with a key, by the commands of docs/providers.md. A sandbox on the free plan is the service."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from pricing_pipeline_tests.acceptance.test_readme import shape
from pricing_pipeline_tests.fixtures.cli import ROOT
from pricing_pipeline_tests.fixtures.stack import Stack, new_stack
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

KEY = "canary-5ecret-0123456789"
SHARES = ("AAPL", "MSFT", "IBM", "GOOG", "META", "AMZN", "NVDA", "TSLA", "JPM", "KO", "PG", "XOM")
"""More than one minute of the free plan pays for."""
CHOOSE = "choose one of `pricing-pipeline provider list` with `pricing-pipeline provider use NAME`"
LISTENING = (
    "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'LISTEN pricing_work|EXISTS .SELECT FROM pricing.data_changes'"
    " AND pid <> pg_backend_pid()"
)
"""The session that listens asks for changes meanwhile."""


@pytest.fixture
def service() -> Iterator[RunningSandbox]:
    with running_sandbox(key=KEY, credits_per_minute=8, credits_per_day=800) as sandbox:
        yield sandbox


@pytest.fixture
def real(service: RunningSandbox) -> Iterator[Stack]:
    """A pipeline for real providers, whose addresses lead to `service`."""
    with new_stack(SANDBOX="false") as stack:
        stack.start()
        stack.wait_until("the webserver", stack.location)
        stack.core.rows("UPDATE pricing.data_collectors SET base_url = :u || '/' || provider", u=service.url)
        yield stack


def test_a6_from_a_start_with_a_key_to_prices_without_a_refused_call(real: Stack, service: RunningSandbox) -> None:
    assert "Nobody is asked for prices yet" in real.log.read_text()
    assert real.core.one("SELECT count(*) FROM pricing.active_subscriptions") == 0, "there is no demo viewer"
    real.wait_until(
        "the last line of the start", lambda: "pricing-pipeline provider use NAME\n" in real.log.read_text()
    )
    assert f"the registry is empty; no provider is in use: {CHOOSE}." in real.cli("type", "list").stdout
    assert f"hint:        no provider is in use: {CHOOSE}." in real.cli("status").stdout
    time.sleep(3)  # nothing is to happen by itself
    assert service.calls() == []
    # No drain is at work, so this is the daemon, which ticks its sensors as soon as there is work.
    real.wait_until("the daemon", lambda: real.core.call(LISTENING) >= 1)

    command, sample = sample_of_the_page()
    used = real.cli(*command, stdin=KEY)
    assert used.exit_code == 0, used
    printed = [shape(line) for line in used.stdout.splitlines()]
    assert [line for line in sample if shape(line) not in printed] == []
    assert len(service.calls("twelvedata")) == 1

    real.core.heartbeat("alice", *(("equity_quote", symbol) for symbol in SHARES[:7]))
    real.wait_until("seven prices", lambda: _prices(real) == 7)
    assert {call["status"] for call in service.calls("twelvedata")} == {200}

    # The minute's eight credits are used: one tried the key, seven fetched prices. The others wait, and are told why.
    real.core.heartbeat("alice", *(("equity_quote", symbol) for symbol in SHARES))
    why = real.cli("price", "why", SHARES[-1]).stdout
    assert "allows 8 units in 60 s, and 8 are used; the next comes at" in why
    assert "twelvedata" in real.cli("price", "show", "AAPL").stdout
    real.wait_until("all prices", lambda: _prices(real) == len(SHARES))
    assert {call["status"] for call in service.calls("twelvedata")} == {200}, "no call was refused"


def sample_of_the_page() -> tuple[list[str], list[str]]:
    """The command of docs/providers.md that chooses a provider, and the lines that it prints."""
    page = (ROOT / "docs/providers.md").read_text()
    section = page.partition("## Use a real provider")[2].partition("\n## ")[0]
    assert "PRICING_SANDBOX=false" in section
    ((command, sample),) = re.findall(
        r"^ +pricing-pipeline (provider use twelvedata .*)\n\n((?: +.*\n|\n(?= ))+)", section, re.MULTILINE
    )
    lines = [line.strip() for line in sample.splitlines() if line.strip() not in ("", "...")]
    assert len(lines) >= 8
    return command.split(), lines


def _prices(stack: Stack) -> int:
    return int(stack.core.one("SELECT count(*) FROM pricing.latest_prices WHERE data_type = 'equity_quote'"))
