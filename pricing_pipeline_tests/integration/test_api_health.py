"""`/healthz` over real HTTP: what it answers, how fast, and what it tells strangers."""

from __future__ import annotations

import json
import threading

import httpx
import pytest
from sqlalchemy import Engine, text

from pricing_pipeline.api import health as health_routes
from pricing_pipeline.api.app import AT_ONCE_OF_ONE
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.operations.health import Part, Watch
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.replica import ON_PAIR, Pair
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks, waiting_for_locks
from pricing_pipeline_tests.support.working import PAIR, go_on, late, start


@pytest.fixture(autouse=True)
def unhurried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that does not hang is not away because the machine is busy; but for tests of one that does."""
    assert health_routes._PATIENCE_SECONDS == 1.8
    if "hangs" not in request.node.name:
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


@ON_PAIR
def test_b20_b23_a_read_replica_is_late(pair: Pair) -> None:
    with running_api(pair.standby, pair.primary.owner) as api:
        status, content = health(api)
    assert status == 503
    assert "database" in content["late"]  # type: ignore[operator]


def test_b23_a_database_that_hangs_is_late_within_two_seconds(
    engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure, answers = Watch.measure, threading.Event()

    def hang(watch: Watch) -> list[Part]:
        assert answers.wait(3 * PATIENCE), "longer than anyone who asks waits here"
        return measure(watch)

    monkeypatch.setattr(Watch, "measure", hang)
    with running_api(engine, owner_engine) as api:
        try:
            assert health(api) == (503, {"status": "late", "late": ["database"]})
        finally:
            answers.set()
        wait_until(lambda: health(api)[1]["late"] != ["database"])


@pytest.mark.own_sessions
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


def test_b23_check_calls_a_database_late_that_cannot_say_how_the_parts_are(
    api: RunningApi, cli: CommandLine, core: Core
) -> None:
    with core.owner.begin() as connection:
        connection.execute(text("LOCK TABLE pricing.schedule_walks IN ACCESS EXCLUSIVE MODE"))
        said = cli("status", "--check")
        assert (said.exit_code, said.stdout) == (
            1,
            "late: database: another session has locked what this needs. Try again; docs/operations.md, "
            '"Something is locked", tells how to find that session.\n',
        )
        assert json.loads(cli("status", "--json").stdout)["health"][0]["is_late"]
        assert health(api) == (503, {"status": "late", "late": ["database"]})
        connection.rollback()


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
    assert "late:        drain: work is there, and no drain has been at it since" in cli("status").stdout
    shown = {part["part"] for part in json.loads(cli("status", "--json").stdout)["health"] if part["is_late"]}
    assert shown == late(core)
