"""`/healthz` over real HTTP: what it answers, how fast, and what it tells strangers."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Engine

from pricing_pipeline.api import health as health_routes
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.working import PAIR, go_on, late, start

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that does not hang is not away because the machine is busy."""
    monkeypatch.setattr(health_routes, "_PATIENCE_SECONDS", PATIENCE)


def health(api: RunningApi) -> tuple[int, dict[str, object]]:
    """The status and the content of a stranger's request."""
    answer = api.client.get("/healthz")
    return answer.status_code, answer.json()


def test_b23_a_pipeline_that_works_is_well(api: RunningApi, core: Core) -> None:
    start(core)
    core.heartbeat("ann", PAIR)
    go_on(core)
    wait_until(lambda: health(api) == (200, {"status": "ok", "late": []}))


def test_b23_what_is_late_is_named_and_nothing_else_is_told(
    core: Core, clock: Clock, engine: Engine, owner_engine: Engine
) -> None:
    start(core)
    core.heartbeat("secret-user", PAIR)
    clock.advance(700)
    expected = late(core)
    with running_api(engine, owner_engine) as api:
        answer = api.client.get("/healthz")
    assert answer.status_code == 503
    assert set(answer.json()) == {"status", "late"}
    assert set(answer.json()["late"]) == expected >= {"daemon", "duties", "notifier"}
    for secret in (
        "secret-user",
        "AAPL",
        "equity_quote",
        "twelvedata",
        "pricing_test",
        "PostgreSQL",
        "0.1.0",
    ):
        assert secret not in answer.text + str(answer.headers)


def test_b23_a_database_that_is_away_is_late(core: Core, owner_engine: Engine) -> None:
    away = make_engine("postgresql://nobody@127.0.0.1:9/nowhere")
    with running_api(away, owner_engine) as api:
        assert health(api) == (503, {"status": "late", "late": ["database"]})
        assert api.client.get("/livez").text == "ok\n"
    away.dispose()


def test_b23_a_database_that_lacks_a_migration_is_late(api: RunningApi, core: Core) -> None:
    core.rows("DROP FUNCTION pricing.health()")
    assert health(api) == (503, {"status": "late", "late": ["database"]})


def test_b23_status_says_what_is_late_and_check_exits_with_it(cli: CommandLine, core: Core, clock: Clock) -> None:
    start(core)
    core.heartbeat("ann", PAIR)
    go_on(core)
    said = cli("status", "--check")
    assert (said.exit_code, said.stdout) == (0, "")
    assert "late:" not in cli("status").stdout
    clock.advance(121)
    said = cli("status", "--check")
    assert said.exit_code == 1
    assert "late: daemon: Dagster's daemon has ticked no sensor since" in said.stdout
    assert "late:        drain: there is work, but no drain has worked since" in cli("status").stdout
    shown = {part["part"] for part in json.loads(cli("status", "--json").stdout)["health"] if part["is_late"]}
    assert shown == late(core)
