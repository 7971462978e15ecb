"""The primary is killed under load, and its standby takes its place: by the URL with both hosts the work goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.replica import Servers, replicating
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

PRICES = "SELECT symbol, observed_at, amount, scale FROM pricing.price_history"


@dataclass
class Acknowledged:
    """A plain model of what the database has said is done."""

    tasks: dict[str, float] = field(default_factory=dict)
    """Symbols whose enqueue was committed, and when."""
    prices: dict[tuple[object, ...], float] = field(default_factory=dict)
    """Prices that somebody has read, and when first."""


@pytest.fixture
def servers(open_folder: Path) -> Iterator[Servers]:
    with replicating(open_folder, for_tests=False) as servers:
        yield servers


@pytest.fixture
def core(servers: Servers) -> Iterator[Core]:
    """The core by the URL with both hosts."""
    engine, owner = make_engine(servers.both_url()), make_engine(servers.both_url("owner"))
    yield Core(engine, owner)
    engine.dispose()
    owner.dispose()


@contextmanager
def loaded(core: Core, servers: Servers, sandbox: RunningSandbox) -> Iterator[Acknowledged]:
    """Somebody queues symbols, a worker fetches them, and somebody reads."""
    known, stop = Acknowledged(), threading.Event()
    core.lift_limits(batch_size=4)

    def queue() -> None:
        number = 0
        while not stop.wait(0.01):
            symbol = f"S{number:05d}"
            try:
                core.enqueue(QUOTE, symbol)
            except (DatabaseError, DBAPIError):
                continue  # it may be queued or not: the same is asked again
            known.tasks[symbol] = time.monotonic()
            number += 1

    def read() -> None:
        while not stop.wait(0.05):
            try:
                rows = core.rows(PRICES)
            except (DatabaseError, DBAPIError):
                continue
            now = time.monotonic()
            for row in rows:
                known.prices.setdefault(tuple(row), now)

    with refreshing(core.engine, sandbox.url) as refresher:
        work = [
            threading.Thread(target=queue),
            threading.Thread(target=read),
            threading.Thread(target=work_until, args=(refresher, stop.is_set)),
        ]
        for thread in work:
            thread.start()
        try:
            yield known
        finally:
            stop.set()
            for thread in work:
                thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in work)
        with Clock(servers.standby_url("owner")) as clock:
            clock.advance(61)  # the lease of what was in work
            wanted = "SELECT count(*) FROM pricing.api_call_queue_live"
            work_until(refresher, lambda: core.one(wanted) == 0)


def fail_over(servers: Servers, known: Acknowledged) -> float:
    """Kill the primary and promote the standby; returns after how long all was at work again."""
    servers.kill_primary()
    died = time.monotonic()
    servers.on_standby("SELECT pg_promote()")
    promoted = time.monotonic()
    wait_until(lambda: max(known.tasks.values()) > promoted and max(known.prices.values()) > promoted)
    return time.monotonic() - died


def lost(core: Core, known: Acknowledged) -> tuple[dict[str, float], dict[tuple[object, ...], float]]:
    """What was acknowledged and is not there."""
    tasks = {row.symbol for row in core.rows("SELECT symbol FROM pricing.api_call_queue")}
    prices = {tuple(row) for row in core.rows(PRICES)}
    return (
        {symbol: at for symbol, at in known.tasks.items() if symbol not in tasks},
        {price: at for price, at in known.prices.items() if price not in prices},
    )


def test_b11_with_synchronous_replication_a_failover_loses_nothing_acknowledged(
    core: Core, servers: Servers, sandbox: RunningSandbox
) -> None:
    servers.wait_for_commits()
    with loaded(core, servers, sandbox) as known:
        wait_until(lambda: len(known.tasks) >= 60 and len(known.prices) >= 40)
        before = len(known.tasks), len(known.prices)
        took = fail_over(servers, known)
    print(f"{before} tasks and prices acknowledged before; at work again after {took:.1f} s")
    assert lost(core, known) == ({}, {})
    assert set(core.statuses().values()) == {"completed"}
    core.rows("SELECT pricing.expire_calls()")
    audit(core)


def test_b11_without_it_only_what_the_standby_had_not_got_is_lost(
    core: Core, servers: Servers, sandbox: RunningSandbox
) -> None:
    """The standby is cut off first. What was acknowledged before is there, and the books agree."""
    with loaded(core, servers, sandbox) as known:
        wait_until(lambda: len(known.tasks) >= 60 and len(known.prices) >= 40)
        # The standby keeps what it has got.
        sent = time.monotonic()
        servers.wait_for_standby()
        servers.on_standby("ALTER SYSTEM SET primary_conninfo = ''")
        servers.on_standby("SELECT pg_reload_conf()")
        with_all = len(known.tasks)
        wait_until(lambda: len(known.tasks) > with_all + 100)
        fail_over(servers, known)
    tasks, prices = lost(core, known)
    assert len(tasks) > 0
    assert all(at > sent for at in (*tasks.values(), *prices.values()))
    # The next look at it brings it back.
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in tasks))
    assert {symbol for symbol in tasks if core.statuses().get(symbol) == "pending"} == set(tasks)
    core.rows("SELECT pricing.expire_calls()")
    audit(core)
