"""Calls of several requests while one of them waits: nobody else is held up, and no task is lost."""

from __future__ import annotations

import pytest

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.refresh.refresher import MAX_IN_FLIGHT, Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_pages import KEY, THREE, calls, limit, paged, statuses_are, working
from pricing_pipeline_tests.support.paged_provider import NAME, Paged, PagedServer
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

__all__ = ["paged"]

WAITS_NOW = (
    "SELECT coalesce(page_until > pricing.clock() + interval '4 seconds', false)"
    " FROM pricing.provider_state WHERE provider = 'paged'"
)
WAITS = "SELECT page_until IS NOT NULL FROM pricing.provider_state WHERE provider = 'paged'"


def test_a6_a_page_waits_for_its_limit_and_goes_before_new_calls(core: Core, clock: Clock, paged: PagedServer) -> None:
    clock.stop()  # else a waiter that a busy machine holds up for some seconds would seem to wait no more
    limit(core, "minute", 2, 60)
    core.enqueue(QUOTE, *THREE)
    seen: list[list[int]] = []
    with working(core, paged) as refresher:

        def is_done() -> bool:
            if not seen and core.one(WAITS):
                seen.append(list(paged.pages))
                held = core.rows(
                    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
                    " AND state_change < clock_timestamp() - interval '0.5 s'"
                )
                assert not held, "nobody waits in a transaction"
                core.enqueue(QUOTE, "DDD", priority=100)
                core.rows("UPDATE pricing.api_call_queue_live SET lease_until = lease_until + interval '1 minute'")
                clock.advance(54)
            elif core.one(WAITS_NOW):
                clock.advance(2)  # step by step: who waits has to say so again
            return core.statuses()["CCC"] == "completed"

        work_until(refresher, is_done)
        assert seen == [[1, 2]]
        assert paged.pages[:3] == [1, 2, 3], "the page goes before what is more urgent"
        clock.advance(61)
        work_until(refresher, statuses_are(core, "completed"))
    audit(core)


def test_b17_calls_that_wait_for_their_next_request_hold_nobody_up(
    core: Core, clock: Clock, paged: PagedServer, sandbox: RunningSandbox
) -> None:
    """Ten calls of a provider had all threads, and every other provider waited a minute for its limit."""
    clock.stop()
    served_beside: list[int] = []
    limit(core, "minute", 10, 60)
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 2 WHERE provider = 'paged'")
    core.enqueue(QUOTE, *(f"P{number:02}" for number in range(20)))
    with (
        ProviderClient(Paged(), paged.url, KEY, deadline=PATIENCE) as client,
        ProviderClient(PROVIDERS["mfapi"], f"{sandbox.url}/mfapi", deadline=PATIENCE) as other,
        Refresher(core.engine, {NAME: client, "mfapi": other}, worker="worker") as refresher,
    ):

        def is_done() -> bool:
            are_waiting = sum(one.pages.is_waiting for one in refresher._in_flight.values())
            if are_waiting == MAX_IN_FLIGHT and "118632" not in core.statuses():
                core.enqueue("mf_nav", "118632")
            elif core.statuses().get("118632") == "completed" and not served_beside:
                served_beside.append(are_waiting)
                core.rows("UPDATE pricing.api_call_queue_live SET lease_until = lease_until + interval '2 minutes'")
                clock.advance(54)
            elif served_beside and core.one(WAITS_NOW):
                clock.advance(2)  # step by step: who waits has to say so again
            return set(core.statuses().values()) == {"completed"}

        work_until(refresher, is_done)
    assert served_beside == [MAX_IN_FLIGHT]
    assert len(calls(core)) == 20
    audit(core)


def test_d2_a_worker_that_stops_while_a_page_waits_gives_its_tasks_back(
    core: Core, clock: Clock, paged: PagedServer
) -> None:
    limit(core, "minute", 2, 60)
    core.enqueue(QUOTE, *THREE)

    def interrupt() -> bool:
        if core.one(WAITS):
            raise KeyboardInterrupt
        return False

    with working(core, paged) as refresher, pytest.raises(KeyboardInterrupt):
        work_until(refresher, interrupt)
    assert {(task.status, task.attempt) for task in core.tasks()} == {("pending", 0)}
    assert {error["kind"] for task in core.tasks() for error in task.errors} == {"worker_stopped"}
    assert not core.rows("SELECT FROM pricing.price_history")
    assert all(call.finished_at is not None for call in calls(core)), "none is left open"
    assert sum(call.wire_bytes for call in calls(core)) == paged.sent
    audit(core, acknowledged=3)
    # The stop was not the fault of what was asked for, so nothing pauses longer than the limit.
    core.rows("DELETE FROM pricing.provider_limits WHERE provider = 'paged'")
    with working(core, paged) as heir:
        work_until(heir, statuses_are(core, "completed"))
    assert [call.symbols for call in calls(core)] == [list(THREE)] * 5, "one call of three requests again"
    audit(core, acknowledged=3)
