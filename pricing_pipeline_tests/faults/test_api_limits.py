"""What one caller can take of the HTTP API: a flood of wrong tokens, and requests that all wait for a lock."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, event, text

from pricing_pipeline.api import access, limits
from pricing_pipeline.api.app import AT_ONCE, AT_ONCE_OF_ONE
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks, waiting_for_locks

pytestmark = pytest.mark.usefixtures("still")

PAIR = {"pairs": [{"data_type": QUOTE, "symbol": "AAPL"}]}


def test_b7_wrong_tokens_cost_their_sender_and_nobody_else(
    engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of guesses is put off, asks the database for none of them alone, and holds up no right token."""
    monkeypatch.setattr(limits, "WRONG_TOKENS", 0.2)
    with running_api(engine, owner_engine) as api:
        _flood(api, engine)


def _flood(api: RunningApi, engine: Engine) -> None:
    reader = api.caller(Scope.READ)
    reader.get("tasks")
    asked = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    began = time.monotonic()
    statuses = [api.stranger(f"pp_{number:043d}").ask("GET", "tasks").status_code for number in range(100)]
    took = time.monotonic() - began
    assert statuses.count(401) <= 2 + 0.2 * (took + 1)
    assert statuses.count(429) == len(statuses) - statuses.count(401) > 0
    assert len([sql for sql in asked if "api_tokens" in sql]) <= took / access._PAUSE_SECONDS + 2
    assert reader.get("tasks")["tasks"] == []
    newcomer = api.caller(Scope.READ)
    assert newcomer.get("tasks")["tasks"] == []


@pytest.mark.own_sessions
def test_b7_one_slow_caller_leaves_threads_for_the_others(api: RunningApi, core: Core) -> None:
    """More requests of one token than there are threads wait for a lock; another token is answered meanwhile."""
    wait_for_locks(core)
    slow, other = api.caller(Scope.WATCH, user="ann"), api.caller(Scope.READ)
    other.get("tasks")
    slow.get("subscriptions")
    with core.owner.begin() as lock, ThreadPoolExecutor(2 * AT_ONCE) as pool:
        lock.execute(text("LOCK TABLE pricing.user_allowances IN ACCESS EXCLUSIVE MODE"))
        waiting = [pool.submit(slow.ask, "POST", "heartbeat", json=PAIR) for _ in range(2 * AT_ONCE)]
        wait_until(lambda: waiting_for_locks(core) == AT_ONCE_OF_ONE)
        for _ in range(20):
            assert other.get("tasks")["tasks"] == []
        assert sum(future.done() for future in waiting) <= 2 * AT_ONCE - AT_ONCE_OF_ONE
        assert waiting_for_locks(core) <= AT_ONCE_OF_ONE
        lock.rollback()
        for future in waiting:
            assert future.result().status_code in (200, 503)
    assert slow.get("subscriptions")["subscriptions"] is not None
