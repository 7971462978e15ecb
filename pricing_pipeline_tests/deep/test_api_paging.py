"""Lists in pages: whatever comes, goes and changes between two pages, a row that stays is told once."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

ROWS = st.integers(0, 14)


@dataclass(frozen=True)
class Listing:
    """A list of the API, and how its rows come and go. Row n is called S<n>; its other keys repeat."""

    path: str
    insert: str
    """Ends before the FROM, which gives each n of the new rows."""
    table: str
    change: str = ""
    """What becomes of a row while pages are read: assignments."""
    params: dict[str, Any] = field(default_factory=dict)
    column: str = "symbol"
    name: Callable[[dict[str, Any]], str] = lambda row: str(row["symbol"])
    noun: str = ""

    @property
    def plural(self) -> str:
        return self.noun or self.path.replace("-", "_")

    def add(self, core: Core, numbers: set[int]) -> None:
        core.rows(f"{self.insert} FROM unnest(CAST(:numbers AS integer[])) n", numbers=sorted(numbers))

    def remove(self, core: Core, numbers: set[int]) -> None:
        names = [f"S{n}" for n in numbers]
        core.rows(f"DELETE FROM {self.table} WHERE {self.column} = ANY (:names)", names=names)

    def rise(self, core: Core, numbers: set[int]) -> None:
        if self.change:
            names = [f"S{n}" for n in numbers]
            core.rows(f"UPDATE {self.table} SET {self.change} WHERE {self.column} = ANY (:names)", names=names)


_TYPE = "CASE n % 2 WHEN 0 THEN 'equity_quote' ELSE 'equity_daily' END"
_AT = "pricing.clock() - make_interval(secs => n % 3)"
LISTINGS = (
    Listing(
        "subscriptions",
        "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol, subscribed_at, last_seen_at)"
        f" SELECT 'ann', {_TYPE}, 'S' || n, {_AT}, {_AT}",
        "pricing.active_subscriptions",
        "last_seen_at = pricing.clock()",
    ),
    Listing(
        "holdings",
        "INSERT INTO pricing.holdings (user_id, data_type, symbol, status, closed_at)"
        f" SELECT 'ann', {_TYPE}, 'S' || n, CASE n % 3 WHEN 0 THEN 'closed' ELSE 'active' END,"
        " CASE n % 3 WHEN 0 THEN pricing.clock() END",
        "pricing.holdings",
        "status = 'closed', closed_at = pricing.clock()",
        {"closed_too": True},
    ),
    Listing(
        "tasks",
        "INSERT INTO pricing.api_call_queue (data_type, symbol, provider, status, priority, finished_at, failure_kind)"
        f" SELECT {_TYPE}, 'S' || n, 'twelvedata', CASE n % 4 WHEN 0 THEN 'failed' ELSE 'pending' END, n % 2,"
        f" CASE n % 4 WHEN 0 THEN {_AT} END, CASE n % 4 WHEN 0 THEN 'provider_error' END",
        "pricing.api_call_queue",
        "priority = priority + 3, status = CASE status WHEN 'failed' THEN 'pending' ELSE 'failed' END,"
        " finished_at = CASE status WHEN 'failed' THEN NULL ELSE pricing.clock() END,"
        " failure_kind = CASE status WHEN 'failed' THEN NULL ELSE 'provider_error' END",
    ),
    Listing(
        "operations",
        "INSERT INTO pricing.async_operations (operation_type, payload, status, due_at, max_attempts, enqueued_at,"
        " finished_at) SELECT 'log', jsonb_build_object('title', 'S' || n),"
        f" CASE n % 4 WHEN 0 THEN 'failed' ELSE 'pending' END, {_AT}, 3, {_AT}, CASE n % 4 WHEN 0 THEN {_AT} END",
        "pricing.async_operations",
        "due_at = due_at - interval '1 hour', status = CASE status WHEN 'failed' THEN 'pending' ELSE 'failed' END,"
        " finished_at = CASE status WHEN 'failed' THEN NULL ELSE pricing.clock() END",
        column="payload ->> 'title'",
        name=lambda row: str(row["payload"]["title"]),
    ),
    Listing(
        "quarantine",
        "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, kind, value, reason, call_id,"
        f" recorded_at, last_seen_at, last_call_id)"
        f" SELECT {_TYPE}, 'S' || n, 'twelvedata', 'unit', '1', 'x', 1, {_AT}, {_AT}, 1",
        "pricing.quarantined_values",
        "last_seen_at = pricing.clock() + interval '1 second', times = times + 1",
        noun="values",
    ),
    Listing(
        "backfills",
        "INSERT INTO pricing.backfills (data_type, window_start, window_end, symbols, requested_at)"
        f" SELECT 'equity_daily', '2020-01-01', '2020-01-02', ARRAY['S' || n], {_AT}",
        "pricing.backfills",
        column="symbols[1]",
        name=lambda row: str(row["symbols"][0]),
    ),
    Listing(
        "alerts",
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at, resolved_at)"
        f" SELECT 'breaker_open', 'S' || n, 'P' || n % 3, 'x', {_AT}, {_AT}, {_AT}, CASE n % 4 WHEN 0 THEN {_AT} END",
        "pricing.alerts",
        "resolved_at = CASE WHEN resolved_at IS NULL THEN pricing.clock() END,"
        " severity = CASE severity WHEN 'P0' THEN 'P2' ELSE 'P0' END",
        {"past": True},
        column="subject",
        name=lambda row: str(row["subject"]),
    ),
)


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.plural)
def test_b7_paging_neither_repeats_nor_skips_a_row_that_stays(api: RunningApi, core: Core, listing: Listing) -> None:
    caller = api.caller(Scope.ADMIN, user="ann")

    @settings(max_examples=examples(30), deadline=None)
    @given(
        at_first=st.sets(ROWS, max_size=15),
        changes=st.lists(st.sets(ROWS, max_size=4), min_size=1),
        risen=st.lists(st.sets(ROWS, max_size=4), min_size=1),
        limits=st.lists(st.integers(1, 5), min_size=1),
    )
    def page_through(at_first: set[int], changes: list[set[int]], risen: list[set[int]], limits: list[int]) -> None:
        rows, stayed = set(at_first), set(at_first)
        listing.add(core, rows)
        told: list[str] = []
        params, cursor = dict(listing.params), None
        for page in range(100):
            limit = limits[page % len(limits)]
            found = caller.get(listing.path, **(params | {"limit": limit}))
            assert len(found[listing.plural]) <= limit
            told += map(listing.name, found[listing.plural])
            cursor = found["next"]
            if cursor is None:
                break
            assert len(found[listing.plural]) == limit
            params["cursor"] = cursor
            # A list to which rows are always added, as many as are shown, has no end.
            changed = changes[page % len(changes)] if page < 50 else set()
            listing.remove(core, rows & changed)
            listing.add(core, changed - rows)
            rows ^= changed
            stayed -= changed
            listing.rise(core, rows & risen[page % len(risen)])
        listing.remove(core, rows)
        assert cursor is None, "the list never ends"
        assert {name for name in told if told.count(name) > 1 and int(name[1:]) in stayed} == set()
        assert {f"S{n}" for n in stayed} <= set(told)

    page_through()


def test_b7_a_cursor_of_no_page_is_refused(api: RunningApi) -> None:
    caller = api.caller(Scope.ADMIN, user="ann")
    of_no_list = base64.urlsafe_b64encode(json.dumps(["other", "a", "b", "c"]).encode()).decode()
    for listing, cursor in product(LISTINGS, ("x", "!!!", "e30", of_no_list)):
        problem = caller.refusal("GET", listing.path, params={"cursor": cursor})
        assert (problem["status"], problem["type"]) == (422, "urn:pricing-pipeline:invalid-cursor"), cursor
        assert listing.plural in problem["detail"], cursor
