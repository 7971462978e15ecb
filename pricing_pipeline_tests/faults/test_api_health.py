"""`/healthz` and `status --check` of a database that hangs, or in which somebody holds locks."""

from __future__ import annotations

import json
import threading

import httpx
import pytest
from sqlalchemy import Engine, text

from pricing_pipeline.api import health as health_routes
from pricing_pipeline.api.app import AT_ONCE_OF_ONE
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.operations.health import HealthWatch, Part
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_api_health import health, unhurried
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks, waiting_for_locks
from pricing_pipeline_tests.support.working import start

__all__ = ["unhurried"]


def test_b23_a_database_that_hangs_is_late_within_two_seconds(
    engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert health_routes._PATIENCE_SECONDS == 1.8
    measure, answers = HealthWatch.measure, threading.Event()

    def hang(watch: HealthWatch) -> list[Part]:
        assert answers.wait(3 * PATIENCE), "longer than anyone who asks waits here"
        return measure(watch)

    monkeypatch.setattr(HealthWatch, "measure", hang)
    with running_api(engine, owner_engine) as api:
        try:
            assert health(api) == (503, {"status": "late", "late": ["database"]})
        finally:
            answers.set()
        wait_until(lambda: health(api)[1]["late"] != ["database"])


@pytest.mark.own_sessions
@pytest.mark.usefixtures("unhurried")
def test_b23_requests_that_wait_for_the_database_do_not_hold_health_up(api: RunningApi, core: Core) -> None:
    """All threads for requests wait for one table; health does not need them."""
    wait_for_locks(core)
    start(core)
    token = api.caller(Scope.READ).token
    with core.owner.begin() as connection:
        connection.execute(text("LOCK TABLE pricing.latest_prices IN ACCESS EXCLUSIVE MODE"))

        def ask() -> None:
            headers = {"Authorization": f"Bearer {token}"}
            httpx.get(f"{api.url}/v1/prices?symbols=AAPL", headers=headers, timeout=PATIENCE)

        waiting = [threading.Thread(target=ask) for _ in range(10)]
        for thread in waiting:
            thread.start()
        try:
            wait_until(lambda: waiting_for_locks(core) == AT_ONCE_OF_ONE)
            wait_until(lambda: health(api)[0] == 200)
            assert waiting_for_locks(core) == AT_ONCE_OF_ONE
        finally:
            connection.rollback()
            for thread in waiting:
                thread.join()


@pytest.mark.usefixtures("unhurried")
def test_b23_check_calls_a_database_late_that_cannot_say_how_the_parts_are(
    api: RunningApi, cli: CommandLine, core: Core
) -> None:
    with core.owner.begin() as connection:
        connection.execute(text("LOCK TABLE pricing.schedule_walks IN ACCESS EXCLUSIVE MODE"))
        said = cli("status", "--check")
        assert (said.exit_code, said.stdout) == (
            1,
            "late: database: another session has locked what this needs. Try again; docs/operations.md, "
            '"Something is locked", says how to find that session.\n',
        )
        assert json.loads(cli("status", "--json").stdout)["health"][0]["is_late"]
        assert health(api) == (503, {"status": "late", "late": ["database"]})
        connection.rollback()
