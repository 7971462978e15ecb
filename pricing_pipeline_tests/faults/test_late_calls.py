"""A worker that stands still between its claim and its call makes no call late: its units count no more by then."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

import psycopg

from pricing_pipeline.domain.calls import boot_seconds
from pricing_pipeline.queue.pages import ClaimedPages
from pricing_pipeline_tests.faults.test_storm import most_units
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import WEEK, load_types, sell
from pricing_pipeline_tests.support.workers import Worker
from pricing_pipeline_tests.tools.audit import audit

UNITS = 4
STANDSTILL = 7.0


def test_a6_claims_that_a_slow_disk_has_kept_waiting_are_not_called_all_at_once(
    core: Core, owner_url: str, database_url: str
) -> None:
    """As when a synchronous standby is away for a while: each of three workers has claimed the units of a second."""
    core.rows(
        "UPDATE pricing.provider_limits SET units = :units, window_seconds = 1 WHERE provider = 'twelvedata'",
        units=UNITS,
    )
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void LANGUAGE sql SET lock_timeout = 0"
        " AS 'SELECT pg_advisory_xact_lock_shared(42)'"
    )
    core.enqueue(QUOTE, *symbols(200))
    claimed = "SELECT count(DISTINCT worker) FROM pricing.collector_call_log"
    made = "SELECT count(*) > 20 FROM pricing.collector_call_log"
    arguments = {"url": database_url, "seconds": 2.5, "until": made}
    with running_sandbox() as sandbox, ExitStack() as stack:
        disk = stack.enter_context(psycopg.connect(owner_url))
        disk.execute("SELECT pg_advisory_lock(42)")
        workers = [
            stack.enter_context(Worker("work_for", sandbox=sandbox.url, number=number, **arguments).start())
            for number in range(3)
        ]
        wait_until(lambda: core.one(claimed) == 3)
        time.sleep(STANDSTILL)
        assert sandbox.calls(TWELVEDATA) == []
        disk.execute("SELECT pg_advisory_unlock(42)")
        for worker in workers:
            worker.result()
        calls = sandbox.calls(TWELVEDATA)
    assert calls
    assert most_units(calls, 0.9) <= UNITS
    audit(core)


def test_b16_a_probe_that_was_not_made_shows_nothing_of_its_provider(core: Core, sandbox: RunningSandbox) -> None:
    """Its tasks wait for nobody, and the breaker does not close."""
    core.enqueue(QUOTE, "AAPL")
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_until = pricing.clock() - interval '1 s'"
        " WHERE provider = 'twelvedata'"
    )
    call = replace(core.claim_one(), asked_at=boot_seconds() - STANDSTILL)
    with refreshing(core.engine, sandbox.url) as refresher:
        refresher._make(call, ClaimedPages(core.engine, call))
    assert sandbox.calls(TWELVEDATA) == []
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors[0]["kind"]) == ("pending", 0, "worker_stopped")
    assert core.allowance().breaker == "half_open"
    audit(core)


def test_b19_a_call_that_cannot_be_prepared_fails_at_once(core: Core, sandbox: RunningSandbox) -> None:
    """What is stored does not change by waiting: the end of the lease would only repeat it, four times."""
    load_types(core)
    (product,) = sell(core, "octo", [1])
    core.rows("INSERT INTO pricing.products (symbol, provider, recorded_at) VALUES (:p, 'octo', now())", p=product)
    core.rows("UPDATE pricing.products SET time_zone = 'Mars/Phobos'")
    core.enqueue(WEEK, product)
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, lambda: bool(core.task(product).errors))
    (error,) = core.task(product).errors
    assert (error["kind"], 'time zone "Mars/Phobos" not recognized' in error["message"]) == (
        "client_fault",
        True,
    )
    assert sandbox.calls("octo") == []
