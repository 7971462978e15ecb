"""A call of several requests end to end: a real worker, a real server with pages, each request a call of its own.

All orders of events are in test_pages_model.py, the client's part is in unit/test_client_pages.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Row

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.errors import Unfinished
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.queue.pages import CallByHand, ClaimedPages
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import ANSWERED, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.paged_provider import NAME, Paged, PagedServer, paged_server, status
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.refreshing import Reports, work_until
from pricing_pipeline_tests.tools.audit import audit

KEY = SecretStr("canary-key-of-pages")
THREE = ("AAA", "BBB", "CCC")


@pytest.fixture
def paged(core: Core) -> Iterator[PagedServer]:
    """A provider with one symbol a page that serves all quotes, without limits yet."""
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('paged', 'https://paged.example')")
    core.rows(
        "INSERT INTO pricing.provider_capabilities"
        " (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol)"
        " VALUES ('paged', 'quote', 100, 1, 1, 0)"
    )
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = :type", type=QUOTE)
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider) VALUES (:type, 'paged')", type=QUOTE)
    with paged_server() as server:
        server.at = core.clock() - timedelta(minutes=5)
        yield server


@contextmanager
def working(core: Core, paged: PagedServer, reports: Reports | None = None) -> Iterator[Refresher]:
    with (
        ProviderClient(Paged(), paged.url, KEY, deadline=PATIENCE) as client,
        Refresher(
            core.engine,
            {NAME: client},
            worker="worker",
            on_report=reports if reports is not None else Reports(),
            report_every=0.5,
        ) as refresher,
    ):
        yield refresher


def limit(core: Core, name: str, units: int, seconds: int | None = None) -> None:
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds, day_timezone)"
        " VALUES ('paged', :name, :units, :seconds, CASE WHEN CAST(:seconds AS integer) IS NULL THEN 'UTC' END)",
        name=name,
        units=units,
        seconds=seconds,
    )


def calls(core: Core) -> Sequence[Row[Any]]:
    """The first requests and their pages, in the order they were made."""
    return core.rows(
        "SELECT call_id, page_of, outcome, http_status, wire_bytes, units, failure_kind, symbols, key_name, error,"
        " finished_at FROM pricing.collector_call_log WHERE provider = 'paged' ORDER BY call_id"
    )


def statuses_are(core: Core, *wanted: str) -> Callable[[], bool]:
    return lambda: set(core.statuses().values()) == set(wanted)


def test_a6_each_request_is_a_call_of_its_own(core: Core, paged: PagedServer) -> None:
    reports = Reports()
    core.enqueue(QUOTE, *THREE)
    with working(core, paged, reports) as refresher:
        work_until(refresher, statuses_are(core, "completed"))
    first, *pages = calls(core)
    assert paged.pages == [1, 2, 3]
    assert first.page_of is None
    assert [page.page_of for page in pages] == [first.call_id] * 2
    assert {(call.outcome, call.http_status, call.units, tuple(call.symbols)) for call in calls(core)} == {
        ("ok", 200, 1, THREE)
    }
    assert sum(call.wire_bytes for call in calls(core)) == paged.sent
    assert (reports.total("calls"), reports.total("latest_calls")) == (3, 3)
    assert reports.total("wire_bytes") == paged.sent
    assert {row.symbol for row in core.rows("SELECT symbol FROM pricing.latest_prices")} == set(THREE)
    learned = core.one("SELECT bytes FROM pricing.size_estimates WHERE provider = 'paged'")
    assert learned == pytest.approx(paged.sent / 3), "B13: of a symbol's share of all pages"
    assert core.one("SELECT sum(units) FROM pricing.api_data_usage WHERE provider = 'paged'") == 3
    audit(core, acknowledged=3)


def test_b12_a_page_missing_in_the_middle_stores_nothing_and_books_all(
    core: Core, clock: Clock, paged: PagedServer
) -> None:
    paged.instead[2] = status(503)
    core.enqueue(QUOTE, *THREE)
    with working(core, paged) as refresher:
        work_until(refresher, statuses_are(core, "scheduled"))
        assert not core.rows("SELECT FROM pricing.price_history")
        first, page = calls(core)
        assert (first.outcome, first.failure_kind, page.failure_kind) == ("failed", "provider_down", None)
        assert first.wire_bytes + page.wire_bytes == paged.sent
        assert not core.rows("SELECT FROM pricing.size_estimates WHERE provider = 'paged'")
        assert core.one("SELECT faults FROM pricing.calls_that_count('paged', '-infinity')") == 1
        assert core.one("SELECT calls FROM pricing.calls_that_count('paged', '-infinity')") == 1
        audit(core, acknowledged=3)
        del paged.instead[2]
        clock.advance(10)
        work_until(refresher, statuses_are(core, "completed"))
    assert len(core.rows("SELECT FROM pricing.price_history")) == 3


def test_c1_a_refusal_on_a_later_page_stops_the_key_as_long_as_it_says(
    core: Core, clock: Clock, paged: PagedServer
) -> None:
    paged.instead[2] = status(429, Retry_After="40")
    core.enqueue(QUOTE, *THREE)
    with working(core, paged) as refresher:
        work_until(refresher, statuses_are(core, "scheduled"))
    blocked = core.one("SELECT blocked_until - pricing.clock() FROM pricing.provider_keys WHERE provider = 'paged'")
    assert timedelta(seconds=20) < blocked <= timedelta(seconds=40)
    for task in core.tasks():
        assert task.attempt == 0, "it costs no attempt"
        assert task.run_after - core.clock() > timedelta(seconds=20)
    assert paged.pages == [1, 2]


def test_b11_a_worker_lost_between_two_requests_costs_nothing(core: Core, clock: Clock, paged: PagedServer) -> None:
    core.enqueue(QUOTE, *THREE)
    call = core.claim_one(NAME, worker="lost")
    ClaimedPages(core.engine, call).begin([600])  # and nobody hears of it again
    assert [one.outcome for one in calls(core)] == ["open", "open"]
    audit(core, acknowledged=3)
    clock.advance(62)
    with working(core, paged) as heir:
        work_until(heir, statuses_are(core, "completed"))
    core.rows("SELECT pricing.expire_calls()")
    assert [one.outcome for one in calls(core)] == ["unknown", "unknown", "ok", "ok", "ok"]
    assert {task.attempt for task in core.tasks()} == {2}
    audit(core, acknowledged=3)


def test_a_probe_with_pages_is_one_probe_and_ends_with_the_last(core: Core, paged: PagedServer) -> None:
    core.enqueue(QUOTE, "AAA")
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock() - interval '1 hour',"
        " breaker_until = pricing.clock(), breaker_openings = 5 WHERE provider = 'paged'"
    )
    probe = core.claim_one(NAME)
    pages = ClaimedPages(core.engine, probe)
    core.enqueue(QUOTE, "BBB")
    for _ in range(3):
        pages.begin([600])
        assert core.claim(NAME) == []
        assert core.one("SELECT breaker FROM pricing.provider_state WHERE provider = 'paged'") == "half_open"
        pages.end(ANSWERED)
    core.finish(probe)
    assert core.one("SELECT breaker FROM pricing.provider_state WHERE provider = 'paged'") == "closed"
    assert core.claim(NAME)


def test_a6_what_no_day_allows_burns_one_day_and_then_a_unit_a_try(
    core: Core, clock: Clock, paged: PagedServer
) -> None:
    """Three pages are needed, and two a day allowed: the first try cannot know, the others can."""
    clock.set(datetime(2026, 11, 27, 12, tzinfo=UTC))
    clock.stop()
    limit(core, "day", 2)
    spent = []
    for _ in range(4):
        core.enqueue(QUOTE, "AAA")
        call = core.claim_one(NAME)
        pages = ClaimedPages(core.engine, call)
        with pytest.raises(Unfinished, match='"day"') as ended:
            _make_all(pages)
        assert ended.value.retry_after is not None
        core.settle(call, outcome="failed", kind=FailureKind.UNFINISHED)
        core.fail(call, FailureKind.UNFINISHED, retry_after=ended.value.retry_after)
        spent.append(1 + pages.made)
        clock.advance(86_400)
        core.promote()
    assert spent == [2, 1, 1, 1]


def _make_all(pages: ClaimedPages) -> None:
    for _ in range(2):
        pages.begin([600])
        pages.end(ANSWERED)


def test_b23_the_pages_of_a_call_that_ends_in_vain_complete_nothing(
    core: Core, clock: Clock, paged: PagedServer
) -> None:
    """However many of its requests are answered, nothing is stored: health says so."""
    clock.stop()
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1 WHERE provider = 'paged'")
    core.enqueue(QUOTE, "AAA", "CCC")
    clock.advance(660)
    core.enqueue(QUOTE, "BBB", priority=2)
    call = core.claim_one(NAME)
    _make_all(ClaimedPages(core.engine, call))
    core.settle(call, outcome="failed", kind=FailureKind.UNFINISHED)
    core.fail(call, FailureKind.UNFINISHED)
    assert [tuple(row[:2]) for row in core.rows("SELECT * FROM pricing.stalled_providers()")] == [(NAME, 2)]
    core.finish(core.claim_one(NAME))
    assert core.rows("SELECT * FROM pricing.stalled_providers()") == []


def test_a_person_waits_a_minute_for_a_page_and_no_longer(core: Core, clock: Clock, paged: PagedServer) -> None:
    limit(core, "minute", 2, 60)
    row = core.rows(
        "SELECT call_id FROM pricing.claim_by_hand('paged', :type, 'quote', '{AAA}', NULL, 'a person')",
        type=QUOTE,
    )[0]
    pages = ClaimedPages(core.engine, CallByHand(row.call_id, NAME), seconds=60)
    pages.begin([600])
    pages.end(ANSWERED)
    with pytest.raises(Unfinished, match='"minute"'):
        pages.begin([600, 600])
    assert pages.made == 1
    clock.advance(61)
    with pytest.raises(Unfinished, match="as long as"):
        pages.begin([600, 600])
    core.rows("SELECT pricing.settle_call(:id, 'ok', 200, 600)", id=row.call_id)
    with pytest.raises(Unfinished, match="taken back"):
        pages.begin([600, 600])


def test_a6_a_call_by_hand_stands_back_for_a_page_that_waits(core: Core, clock: Clock, paged: PagedServer) -> None:
    """A person who calls again and again does not starve a call that has begun."""
    clock.stop()
    limit(core, "minute", 2, 10)
    core.enqueue(QUOTE, *THREE)
    call = core.claim_one(NAME)
    for page in (1, 2):
        said = _ask_page(core, call)
        for _ in range(20):
            if said.call_id is not None:
                break
            assert said.wait_seconds, said.refusal
            clock.advance(1)
            assert _by_hand(core).call_id is None
            said = _ask_page(core, call)
        assert said.call_id is not None, f"page {page} waits for ever"
        core.rows("SELECT pricing.settle_call(:id, 'ok', 200, 600)", id=said.call_id)
    core.finish(call)
    clock.advance(12)
    refused = _by_hand(core)
    assert refused.call_id is not None, refused.refusal


def _ask_page(core: Core, call: Call) -> Row[Any]:
    return core.rows(
        "SELECT * FROM pricing.claim_page(:call, CAST(:ids AS bigint[]), CAST(:token AS uuid), 10, 10, 285, 50)",
        call=call.id,
        ids=list(call.task_ids),
        token=str(call.claim_token),
    )[0]


def _by_hand(core: Core) -> Row[Any]:
    """A person asks for one symbol, and has the answer at once."""
    said = core.rows(
        "SELECT call_id, refusal FROM pricing.claim_by_hand('paged', :type, 'quote', '{ZZZ}', NULL, 'a person')",
        type=QUOTE,
    )[0]
    if said.call_id is not None:
        core.rows("SELECT pricing.settle_call(:id, 'ok', 200, 600)", id=said.call_id)
    return said


def test_a6_a_page_keeps_the_delay_between_two_calls(core: Core, clock: Clock, paged: PagedServer) -> None:
    clock.stop()
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 5000 WHERE provider = 'paged'")
    core.enqueue(QUOTE, *THREE)
    pages = ClaimedPages(core.engine, core.claim_one(NAME))
    asking = threading.Thread(target=pages.begin, args=([600],))
    asking.start()
    wait_until(lambda: core.one("SELECT page_until IS NOT NULL FROM pricing.provider_state WHERE provider = 'paged'"))
    assert pages.made == 0
    clock.advance(5)
    asking.join(PATIENCE)
    assert pages.made == 1


def test_the_quota_counts_a_page_in_flight(core: Core, paged: PagedServer) -> None:
    core.enqueue(QUOTE, "AAA")
    call = core.claim_one(NAME)
    before = core.allowance(NAME).used_bytes
    pages = ClaimedPages(core.engine, call)
    pages.begin([700])
    assert core.allowance(NAME).used_bytes == before + 700, "as much as the largest answer so far"
    pages.end(ANSWERED)
    assert core.allowance(NAME).used_bytes == before + 600
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000 WHERE provider = 'paged'")
    with pytest.raises(Unfinished, match="quota"):
        pages.begin([700, 600])
