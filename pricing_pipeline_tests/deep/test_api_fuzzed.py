"""Whatever is sent to the running API, right or wrong, it answers as its OpenAPI document says, and never with a fault.

PRICING_TEST_FUZZ_SECONDS=600 lets Schemathesis try for longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation
from pricing_pipeline_tests.support.api_server import running_api
from pricing_pipeline_tests.support.fake_dagster import fake_dagster
from pricing_pipeline_tests.support.quarantining import bring, one_call

SECONDS = int(os.environ.get("PRICING_TEST_FUZZ_SECONDS", "0"))
UNTRIED = "positive_data_acceptance,unsupported_method,allow_header_conformance"
"""A request that fits the document may still be refused: for an unknown symbol, or a range that ends before it begins.
Other methods are tried in test_api_permissions.py. The path of an action may also be read, as if its name were a
symbol."""
REFUSALS = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"""
"""Its own list lacks 413: a list with too many items may also be too long."""


@pytest.fixture
def busy(core: Core) -> None:
    """Something of everything that lists show."""
    core.rows("UPDATE pricing.user_caps SET pairs_per_user = 1000000, new_pairs_per_minute = 1000000")
    core.enqueue(QUOTE, "AAPL", "MSFT")
    core.enqueue(DAILY, "AAPL")
    bring(core, one_call(core, QUOTE, "IBM"), observation("IBM", "72.50", core.clock()))
    bring(core, one_call(core, QUOTE, "IBM"), observation("IBM", "7250", core.clock()))
    core.rows(
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
        " SELECT 'breaker_open', 'twelvedata', 'P1', 'x', t, t, t FROM pricing.clock() t"
    )
    core.rows(
        "INSERT INTO pricing.async_operations (operation_type, payload, due_at, max_attempts, enqueued_at)"
        " SELECT 'log', '{\"title\": \"x\"}', t, 3, t FROM pricing.clock() t"
    )
    core.rows(
        "INSERT INTO pricing.backfills (data_type, window_start, window_end, symbols)"
        " VALUES ('equity_daily', '2020-01-01', '2020-01-02', '{AAPL}')"
    )


@pytest.mark.usefixtures("busy", "still")
def test_b7_the_api_answers_as_documented_whatever_is_sent(
    engine: Engine, owner_engine: Engine, cli: CommandLine, tmp_path: Path
) -> None:
    program = Path(sys.executable).parent / "schemathesis"
    (tmp_path / "schemathesis.toml").write_text(REFUSALS)
    # A stream has no end, so each costs the time after which one is given up.
    # With a seed, a change is judged by what it changes.
    short = [
        "--seed",
        "1",
        "--max-examples",
        "2",
        "--no-shrink",
        "--phases",
        "examples,fuzzing",
        "--exclude-path",
        "/v1/stream",
    ]
    extent = ["--max-time", str(SECONDS)] if SECONDS else short
    with (
        fake_dagster() as dagster,
        cli.running(urls={"dagster": dagster.url}),
        running_api(engine, owner_engine, settings=Settings(home=cli.home)) as api,
    ):
        with owner_engine.begin() as owner:  # else gaps are to be asked for later, with 503
            owner.exec_driver_sql(
                "SELECT pricing.store_sessions(c.calendar, '2020-01-01', '2039-12-31', '{}', '{}', '{}')"
                " FROM pricing.calendars c"
            )
        token = api.caller(Scope.ADMIN, user="ann").token
        given = [
            *(str(program), "run", f"{api.url}/openapi.json", "--header", f"Authorization: Bearer {token}"),
            *("--checks", "all", "--exclude-checks", UNTRIED, "--suppress-health-check", "all"),
            *("--request-timeout", "30", "--warnings", "off", "--no-color", "--continue-on-failure", *extent),
        ]
        found = subprocess.run(given, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS + 600)
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-2000:]
