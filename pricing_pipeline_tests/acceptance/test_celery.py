"""Runs as Celery tasks on three hosts: one dies, one loses the database in mid-call, one has a wrong clock."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.core import MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.celery_workers import PACKAGES, ROOT, Machine, redis, why_no_celery
from pricing_pipeline_tests.support.hosts import hosts, why_no_hosts
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses
from pricing_pipeline_tests.support.programs import faketime
from pricing_pipeline_tests.support.sandbox_server import running_sandbox
from pricing_pipeline_tests.support.stock_dagster import dagster_database, rows, stock_dagster
from pricing_pipeline_tests.support.three_hosts import (
    LEASE,
    arrange,
    check_books,
    check_provider_side,
    open_calls,
    tasks_left,
    tasks_of_others,
)

WHY_NOT = why_no_celery() or why_no_hosts()
MOST = {TWELVEDATA: 4, MFAPI: 10, "yahoo": 10}
"""With slow calls this is work for three drains, once the first one has made some."""
LAUNCHER = (ROOT / "deploy/celery/launcher.yaml").read_text()

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.skipif(faketime() is None, reason="no faketime here (Debian: apt-get install faketime)"),
]


def test_b11_b17_celery_spreads_drains_over_hosts_and_survives_them(
    core: Core, clock: Clock, server: TestServer, database_url: str, tmp_path: Path
) -> None:
    """Dagster's own processes ask for three drains; the host whose clock is 30 s ahead finishes the work alone."""
    tasks = arrange(core, MOST, 400)
    clocks = {"LD_PRELOAD": str(faketime()), "FAKETIME": "+30s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with ExitStack() as stack:
        enter = stack.enter_context
        sandbox = enter(running_sandbox())
        # The work lasts until all drains have begun, and each call meets its deadline of 10 s.
        sandbox.behave("delay", seconds=6)
        processes = enter(PlainProcesses(tmp_path))
        broker = enter(redis(processes, tmp_path))
        made = [Machine(host, f"host-{number}") for number, host in enumerate(enter(hosts(3)), start=1)]
        queue = "redis://{}:{}".format(*broker)
        folder = tmp_path / "dagster"
        folder.mkdir()
        settings = {
            "CELERY_BROKER_URL": f"{queue}/0",
            "CELERY_RESULT_BACKEND": f"{queue}/1",
            "PRICING_MAX_DRAINS": "3",
            "PRICING_MAX_DRAIN_SECONDS": "600",
        }
        dagster_url = enter(dagster_database(server))
        dagster = enter(
            stock_dagster(
                folder,
                database_url,
                dagster_url,
                sandbox.url,
                settings=settings,
                instance=LAUNCHER,
                packages=PACKAGES,
            )
        )
        for machine in made:
            there = enter(machine.reaching(dagster.environment, broker, sandbox.url))
            machine.start(processes, there | (clocks if machine is made[2] else {}), tmp_path)
        wait_until(lambda: core.one("SELECT count(DISTINCT split_part(worker, ':', 1)) FROM pricing.drains") == 3)
        sandbox.behave_well()
        sandbox.behave("delay", seconds=1.5)
        killed, cut, _ = made
        wait_until(lambda: open_calls(core, killed.name) > 0)
        processes.kill(killed.name)
        wait_until(lambda: open_calls(core, cut.name) > 0)
        cut.host.cut(cut.host.database)

        wait_until(lambda: tasks_of_others(core, killed.name, cut.name) == 0)
        clock.advance(LEASE)
        wait_until(lambda: tasks_left(core) == 0)
        cut.host.mend(cut.host.database)
        core.enqueue(QUOTE, "LATE")
        wait_until(lambda: tasks_left(core) == 0)
        processes.require_running()
        dagster.processes.require_running()
        clock.advance(LEASE)
        core.rows("SELECT pricing.expire_calls()")
        check_provider_side(core, sandbox, MOST)
        made_calls = [call["symbols"] for call in sandbox.calls()]
        launched = rows(dagster_url, "SELECT FROM run_tags WHERE key = 'dagster-celery/task_id'")
        assert len(launched) >= 3
    check_books(core, made_calls, tasks + 1, (killed.name, cut.name))
