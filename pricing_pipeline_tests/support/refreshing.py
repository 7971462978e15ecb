"""A real `Refresher` with real clients on a sandbox, in this process or, halting at a named point, in another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr
from sqlalchemy import Engine, event, text

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.providers.dialogue import Pages
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox


class Reports(list[Tally]):
    """What was reported, in the order it came."""

    def __call__(self, tallies: Sequence[Tally]) -> None:
        self.extend(tallies)

    def total(self, name: str) -> int:
        return sum(getattr(tally, name) for tally in self)


@contextmanager
def refreshing(
    engine: Engine,
    sandbox_url: str,
    *,
    worker: str = "worker",
    run_id: str | None = None,
    key: SecretStr = SANDBOX_KEY,
    reports: Reports | None = None,
    client: Callable[..., ProviderClient] = ProviderClient,
    deadline: float = PATIENCE,
    listening: Engine | None = None,
) -> Iterator[Refresher]:
    """A refresher on clients of the sample's providers, closed with them."""
    with (
        client(PROVIDERS["twelvedata"], f"{sandbox_url}/twelvedata", key, deadline=deadline) as twelvedata,
        client(PROVIDERS["mfapi"], f"{sandbox_url}/mfapi", deadline=deadline) as mfapi,
        client(PROVIDERS["yahoo"], f"{sandbox_url}/yahoo", deadline=deadline) as yahoo,
        client(PROVIDERS["fmp"], f"{sandbox_url}/fmp", key, deadline=deadline) as fmp,
        client(PROVIDERS["octo"], f"{sandbox_url}/octo", key, deadline=deadline) as octo,
        client(PROVIDERS["headout"], f"{sandbox_url}/headout", key, deadline=deadline) as headout,
        Refresher(
            engine,
            {
                "twelvedata": twelvedata,
                "mfapi": mfapi,
                "yahoo": yahoo,
                "fmp": fmp,
                "octo": octo,
                "headout": headout,
            },
            worker=worker,
            run_id=run_id,
            on_report=reports if reports is not None else Reports(),
            report_every=0.5,
            listening=listening,
        ) as refresher,
    ):
        yield refresher


def holding(provider: str, released: threading.Event) -> type[ProviderClient]:
    """A client that keeps back what this provider has answered until it is released."""

    class Holding(ProviderClient):
        def fetch(self, *arguments: Any, **more: Any) -> Fetched:
            fetched = super().fetch(*arguments, **more)
            assert self.provider.name != provider or released.wait(PATIENCE)
            return fetched

    return Holding


def work_until(refresher: Refresher, is_done: Callable[[], bool]) -> None:
    """Work until something has come about, looking after each round; fails when it does not.

    A drain would work on for whole seconds. What is special about drains is tested with drains.
    """
    deadline = time.monotonic() + PATIENCE

    def is_over() -> bool:
        assert time.monotonic() < deadline, "it did not come about in time"
        return is_done()

    refresher._work_until(is_over)


def is_idle(core: Core) -> Callable[[], bool]:
    """Nothing is pending or in work."""
    return lambda: core.one(
        "SELECT NOT EXISTS (SELECT FROM pricing.api_call_queue_live WHERE status IN ('pending', 'processing'))"
    )


def calls(sandbox: RunningSandbox, provider: str) -> list[tuple[str, int, int | None]]:
    """Path, units and status of each call, as the sandbox saw it."""
    return [(call["path"], call["units"], call["status"]) for call in sandbox.calls(provider)]


def run_worker(
    say: Callable[[str], None],
    url: str,
    sandbox_url: str,
    seconds: float,
    name: str,
    halt: str,
    idle: str = "",
    most: int = 1,
) -> dict[str, Any]:
    """Drain for a while as a process of its own; returns what it reported."""
    engine = make_engine(url)
    if idle:
        shorten_idling(engine, idle)
    point = Point(engine, halt, say)
    reports = Reports()
    try:
        with refreshing(engine, sandbox_url, worker=name, reports=reports, client=point.client) as refresher:
            refresher.drain(int(seconds), most=most)
    finally:
        engine.dispose()
    return {
        "clock": datetime.now(UTC).isoformat(),
        "calls": reports.total("calls"),
        "added": reports.total("added"),
        "symbols": sorted(symbol for tally in reports for symbol in tally.symbols),
    }


def shorten_idling(engine: Engine, idle: str) -> None:
    @event.listens_for(engine, "connect")
    def set_it(dbapi: Any, record: object) -> None:
        dbapi.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [idle])
        dbapi.commit()


def work_beside_others(url: str, sandbox_url: str, seconds: float, name: str, until: str) -> None:
    """Work at the queue as a backfill does beside drains: until the query says true, and so many seconds longer."""
    engine = make_engine(url)
    over: float | None = None

    def is_over() -> bool:
        nonlocal over
        if over is None:
            with engine.connect() as connection:
                if connection.execute(text(until)).scalar_one():
                    over = time.monotonic() + seconds
        return over is not None and time.monotonic() > over

    try:
        with refreshing(engine, sandbox_url, worker=name) as refresher:
            refresher._work_until(is_over)
    finally:
        engine.dispose()


class Point:
    """Says "halted" when a call has come to the named point, and waits there to be killed or let go on.

    The points: claimed (the call is not made yet), page (a further request of it is claimed, and not made yet), paged
    (that is answered), answered (in full), stored (not committed yet), committed.
    """

    def __init__(self, engine: Engine, halt: str, say: Callable[[str], None]) -> None:
        self._halt = halt
        self._say = say
        self._call = threading.local()
        event.listen(engine, "commit", lambda connection: self._pass_settling("stored"))
        event.listen(engine, "checkin", lambda dbapi, record: self._pass_settling("committed"))

    def client(self, *arguments: Any, **more: Any) -> ProviderClient:
        point = self

        class Halting(ProviderClient):
            def fetch(self, *arguments: Any, pages: Pages | None = None, **more: Any) -> Fetched:
                point._call.is_settling = False
                point.reach("claimed")
                fetched = super().fetch(*arguments, pages=pages and _HaltingPages(pages, point), **more)
                point.reach("answered")
                point._call.is_settling = True
                return fetched

        return Halting(*arguments, **more)

    def _pass_settling(self, name: str) -> None:
        # Only the thread that makes a call halts: the one that claims goes on, as it would beside a slow call.
        if getattr(self._call, "is_settling", False):
            self.reach(name)

    def reach(self, name: str) -> None:
        if name == self._halt:
            self._say("halted")
            time.sleep(600)


class _HaltingPages:
    """The further requests of a call, which may halt before or after each."""

    def __init__(self, pages: Pages, point: Point) -> None:
        self._pages, self._point = pages, point

    def begin(self, spent: Sequence[int]) -> None:
        self._pages.begin(spent)
        self._point.reach("page")

    def end(self, receipt: Receipt) -> None:
        self._pages.end(receipt)
        self._point.reach("paged")
