"""Which provider gets a thread of the refresher: priority decides, and each provider has a fair share (B17, A2)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Any, cast

import pytest
from sqlalchemy import text

from pricing_pipeline.errors import ProviderDown
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import fair_order
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.patience import PATIENCE

PROVIDERS = ("alpha", "beta", "gamma", "omega")


class Slow:
    """A provider that answers a call only when it is let go."""

    has_key = True
    key_names = frozenset({"default"})

    def __init__(self) -> None:
        self._let_go = threading.Semaphore(0)

    def make(self, *arguments: Any, **more: Any) -> Fetched:
        assert self._let_go.acquire(timeout=PATIENCE)
        raise ProviderDown("it is slow and then down")

    def let_go(self, count: int = 1) -> None:
        self._let_go.release(count)


@pytest.fixture
def slow(core: Core) -> Iterator[tuple[Refresher, dict[str, Slow]]]:
    """A refresher and four slow providers, each asked for one symbol a call."""
    for provider in PROVIDERS:
        core.rows(
            "INSERT INTO pricing.data_collectors (provider, base_url) VALUES (:p, 'https://x.example')",
            p=provider,
        )
        core.rows(
            "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
            " VALUES (:p, 'quote', 1, 1)",
            p=provider,
        )
    clients = {provider: Slow() for provider in PROVIDERS}
    with Refresher(core.engine, cast(dict[str, ProviderClient], clients), worker="w") as refresher:
        yield refresher, clients
        for client in clients.values():
            client.let_go(100)
        refresher._own.close()


def enqueue(core: Core, provider: str, count: int, priority: int = 1) -> None:
    core.rows(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority)"
        " SELECT :type, :p || '-' || :priority || '-' || n, :p, :priority FROM generate_series(1, :count) AS n",
        type=QUOTE,
        p=provider,
        count=count,
        priority=priority,
    )


def in_flight(refresher: Refresher) -> Counter[str]:
    return Counter(one.call.provider for one in refresher._in_flight.values())


def end_one(refresher: Refresher, client: Slow) -> None:
    """One of the provider's calls ends, and the free thread is handed on."""
    client.let_go()
    wait(refresher._in_flight, timeout=PATIENCE, return_when=FIRST_COMPLETED)
    refresher._collect(0.0)
    refresher._start_calls()


def test_a2_a_viewer_behind_three_busy_providers_gets_the_next_free_threads(
    core: Core, slow: tuple[Refresher, dict[str, Slow]]
) -> None:
    """Threads went to providers by their names: with three busy ones ahead the fourth got none in 40 s."""
    refresher, clients = slow
    for provider in PROVIDERS[:3]:
        enqueue(core, provider, 30)
    refresher._start_calls()
    assert in_flight(refresher) == {"alpha": 4, "beta": 3, "gamma": 3}
    enqueue(core, "omega", 5, priority=5)
    for served, busy in enumerate(("alpha", "beta", "gamma", "alpha"), start=1):
        end_one(refresher, clients[busy])
        assert in_flight(refresher)["omega"] == served
    end_one(refresher, clients["beta"])
    assert in_flight(refresher) == {"alpha": 2, "beta": 2, "gamma": 2, "omega": 4}, "the others keep their share"


def test_b17_background_work_of_a_provider_has_its_share_beside_viewers_of_others(
    core: Core, slow: tuple[Refresher, dict[str, Slow]]
) -> None:
    refresher, clients = slow
    enqueue(core, "alpha", 30, priority=9)
    enqueue(core, "omega", 30, priority=-2)
    refresher._start_calls()
    assert in_flight(refresher) == {"alpha": 5, "omega": 5}
    end_one(refresher, clients["omega"])
    assert in_flight(refresher) == {"alpha": 5, "omega": 5}, "each keeps its share"


def test_b17_what_one_provider_leaves_goes_to_the_most_urgent_work(
    core: Core, slow: tuple[Refresher, dict[str, Slow]]
) -> None:
    refresher, _ = slow
    enqueue(core, "alpha", 30, priority=1)
    enqueue(core, "beta", 30, priority=3)
    enqueue(core, "omega", 1, priority=-2)
    refresher._start_calls()
    assert in_flight(refresher) == {"alpha": 3, "beta": 6, "omega": 1}


def test_b8_providers_that_are_locked_keep_nobody_from_the_others(
    core: Core, slow: tuple[Refresher, dict[str, Slow]]
) -> None:
    """One round waited for one lock and ended: with six of nine providers locked, three that were free had no call."""
    refresher, _ = slow
    for provider in PROVIDERS:
        enqueue(core, provider, 3, priority=1 if provider == "omega" else 9)
    with core.owner.begin() as connection:
        connection.execute(
            text("SELECT FROM pricing.provider_state WHERE provider IN ('alpha', 'beta', 'gamma') FOR UPDATE")
        )
        refresher._start_calls()
        assert in_flight(refresher) == {"omega": 3}
    for passed in ("alpha", "beta", "gamma"):
        assert refresher._order._passed_over[passed].seconds == fair_order._SHORT_SECONDS, "asked once"
    waits = "SELECT 'lock_timeout=200ms' = ANY (proconfig) FROM pg_proc WHERE proname = 'claim_calls'"
    assert core.one(waits), "of three providers that are locked a round waits for 0.6 s"


def test_a2_what_is_left_over_goes_to_what_can_be_called_most_urgently(
    core: Core, slow: tuple[Refresher, dict[str, Slow]]
) -> None:
    """The most urgent task of alpha cannot be paid for: that lends its backfills no place."""
    refresher, _ = slow
    enqueue(core, "alpha", 1, priority=99)
    core.rows("UPDATE pricing.api_call_queue_live SET est_bytes = 1000000000000")
    enqueue(core, "alpha", 30, priority=-2)
    enqueue(core, "beta", 30, priority=5)
    enqueue(core, "omega", 30, priority=4)
    refresher._start_calls()
    assert in_flight(refresher) == {"alpha": 3, "beta": 4, "omega": 3}


def test_b17_with_more_providers_than_threads_each_has_one_in_the_end(
    core: Core, slow: tuple[Refresher, dict[str, Slow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    refresher, clients = slow
    monkeypatch.setattr("pricing_pipeline.refresh.refresher.MAX_IN_FLIGHT", 3)
    for provider in PROVIDERS:
        enqueue(core, provider, 30, priority=4 if provider == "omega" else 5)
    refresher._start_calls()
    end_one(refresher, clients["alpha"])
    assert in_flight(refresher) == {"alpha": 1, "beta": 1, "gamma": 1}, "priority decides"
    monkeypatch.setattr(fair_order, "_PATIENCE_SECONDS", 0.0)
    end_one(refresher, clients["alpha"])
    assert in_flight(refresher) == {"omega": 1, "beta": 1, "gamma": 1}, "who has waited too long comes first"
