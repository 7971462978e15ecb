"""Drains on several hosts: one is killed, one cut off from the database in mid-call, one has a wrong clock."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.core import MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.hosts import (
    HostWorker,
    forwarded,
    hosts,
    seen_from,
    server_of,
    why_no_hosts,
)
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.programs import faketime
from pricing_pipeline_tests.support.sandbox_server import running_sandbox
from pricing_pipeline_tests.support.three_hosts import (
    LEASE,
    arrange,
    check_books,
    check_provider_side,
    forget_unasked,
    open_calls,
    tasks_left,
    tasks_of_others,
    want_three_drains,
)

WHY_NOT = why_no_hosts()
MOST = {TWELVEDATA: 4, MFAPI: 3, "yahoo": 4}

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.skipif(faketime() is None, reason="no faketime here (Debian: apt-get install faketime)"),
]


def test_b11_b17_three_hosts_lose_one_to_death_and_one_to_the_network(
    core: Core, clock: Clock, database_url: str
) -> None:
    """The one whose clock is 30 s ahead finishes the work; limits hold over all of them; the books are right."""
    tasks = arrange(core, MOST, 20)
    want_three_drains(core)
    clocks = {"LD_PRELOAD": str(faketime()), "FAKETIME": "+30s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with ExitStack() as stack:
        sandbox = stack.enter_context(running_sandbox())
        sandbox.behave("delay", seconds=1.5)
        made = stack.enter_context(hosts(3))
        workers = []
        for number, host in enumerate(made, start=1):
            database = stack.enter_context(forwarded(host.database, server_of(database_url)))
            there = make_url(sandbox.url)
            provider = stack.enter_context(forwarded(host.provider, (str(there.host), int(there.port or 0))))
            worker = HostWorker(
                host,
                clocks if number == 3 else {},
                url=seen_from(database_url, host.database, database),
                provider=[host.provider, provider],
                seconds=600,
                name=f"host {number}",
                halt="",
                most=3,
            )
            workers.append(stack.enter_context(worker))
        assert [worker.hear() for worker in workers] == ["ready"] * 3
        for worker in workers:
            worker.go()
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.drains") == 3)
        forget_unasked(core)
        killed, cut, ahead = workers
        wait_until(lambda: open_calls(core, "host 1") > 0)
        killed.kill()
        wait_until(lambda: open_calls(core, "host 2") > 0)
        made[1].cut(made[1].database)

        # The third does what the others are not asking for; then their leases end.
        wait_until(lambda: tasks_of_others(core, "host 1", "host 2") == 0)
        assert tasks_left(core) > 0
        clock.advance(LEASE)
        wait_until(lambda: tasks_left(core) == 0)
        assert cut.is_alive
        assert ahead.is_alive

        made[1].mend(made[1].database)
        alive = "SELECT lease_until > pricing.clock() FROM pricing.drains WHERE worker = 'host 2'"
        core.enqueue(QUOTE, "LATE")  # keeps the drains at work
        wait_until(lambda: core.one(alive))
        wait_until(lambda: tasks_left(core) == 0)
        clock.advance(LEASE)
        core.rows("SELECT pricing.expire_calls()")
        check_provider_side(core, sandbox, MOST)
        made_calls = [call["symbols"] for call in sandbox.calls()]
    check_books(core, made_calls, tasks + 1, ("host 1", "host 2"))
