"""Two sessions store other values of one new time: the second is a revision of the first, never silent (F3, F5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, text

from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.prices import price_writer
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.support.sessions import joined, meanwhile, wait_for_locks
from pricing_pipeline_tests.support.storing import next_call

MARCH = (date(2010, 3, 1), date(2010, 3, 31))
AT = midnight(date(2010, 3, 2))


@pytest.fixture(autouse=True)
def patient(core: Core) -> None:
    """The second session waits until the first is done, however long that takes."""
    wait_for_locks(core)


def store(call: Call, price: str, *others: str) -> Callable[[Connection], Any]:
    rows = [observation("AAPL", one, midnight(date(2010, 3, 2 + n))) for n, one in enumerate((price, *others))]
    return lambda connection: price_writer.store(connection, call, Rows(rows))


def beliefs(core: Core) -> list[tuple[str, Any, Any]]:
    """What was believed of AT, from when until when, oldest first."""
    rows = core.rows(
        "SELECT amount * ('1e-' || scale)::numeric AS price, fetched_at AS since, NULL::timestamptz AS until"
        " FROM pricing.price_history WHERE symbol = 'AAPL' AND observed_at = :at UNION ALL"
        " SELECT amount * ('1e-' || scale)::numeric, recorded_at, revised_at FROM pricing.price_revisions"
        " WHERE symbol = 'AAPL' AND observed_at = :at ORDER BY 2",
        at=AT,
    )
    return [(str(row.price), row.since, row.until) for row in rows]


def is_chain(found: list[tuple[str, Any, Any]]) -> bool:
    """Each belief lasts some time and ends when the next one begins; the last one goes on."""
    ends = [until for _, _, until in found]
    begins = [since for _, since, _ in found]
    return ends == [*begins[1:], None] and all(until is None or since < until for _, since, until in found)


@pytest.mark.parametrize(
    ("data_type", "days", "before"),
    [(DAILY, None, ()), (QUOTE, None, ("99.00",)), (DAILY, MARCH, ("99.00",)), (QUOTE, MARCH, ())],
)
def test_f3_the_second_of_two_values_of_one_moment_is_a_revision(
    core: Core, data_type: str, days: tuple[date, date] | None, before: tuple[str, ...]
) -> None:
    """Invariant: whatever two sessions store at once, history keeps all of it as a chain of beliefs."""
    for price in before:
        with core.engine.begin() as connection:
            store(next_call(core, data_type, "AAPL", days=days), price)(connection)
    one, other = (next_call(core, data_type, "AAPL", days=days) for _ in range(2))
    with core.engine.begin() as connection:
        store(one, "100.00")(connection)
        thread, faults = meanwhile(core.engine, store(other, "101.00", "102.00"))
    joined(thread, faults)
    found = beliefs(core)
    assert [price for price, _, _ in found] == [*before, "100.00", "101.00"]
    assert is_chain(found)
    if days is None:
        latest = core.latest("AAPL", data_type)
        assert latest is not None
        assert str(latest.price) == "102.00"


@pytest.mark.own_sessions
def test_f3_four_sessions_at_once_leave_one_chain(core: Core) -> None:
    calls = [next_call(core, DAILY, "AAPL", days=MARCH) for _ in range(4)]
    with core.engine.begin() as connection:
        store(calls[0], "100.00")(connection)
        running = [meanwhile(core.engine, store(call, f"10{n}.00")) for n, call in enumerate(calls[1:], 1)]
    for thread, faults in running:
        joined(thread, faults)
    found = beliefs(core)
    assert {price for price, _, _ in found} == {f"10{n}.00" for n in range(4)}
    assert is_chain(found)


@pytest.mark.parametrize("days", [None, MARCH], ids=["latest", "past"])
def test_f3_of_a_time_that_comes_twice_in_one_answer_both_are_kept(core: Core, days: tuple[date, date] | None) -> None:
    call = next_call(core, DAILY, "AAPL", days=days)
    with core.engine.begin() as connection:
        price_writer.store(connection, call, Rows([observation("AAPL", price, AT) for price in ("100.00", "101.00")]))
    found = beliefs(core)
    assert sorted(price for price, _, _ in found) == ["100.00", "101.00"]
    assert is_chain(found)


ENTER = text("SELECT pricing.enter_action('equity', 'AAPL', DATE '2010-03-02', 'split', :new, 1, NULL, NULL, :who)")
MERGE = text("SELECT pricing.merge_actions('equity_daily', 'yahoo', :call, CAST(:said AS jsonb), '{}', '{}')")


def enter(new: int, who: str) -> Callable[[Connection], Any]:
    return lambda connection: connection.execute(ENTER, {"new": new, "who": who}).scalar_one()


def tell(new: int, call: int) -> Callable[[Connection], Any]:
    said = [{"symbol": "AAPL", "ex_on": "2010-03-02", "kind": "split", "new_shares": new, "old_shares": 1}]
    return lambda connection: connection.execute(MERGE, {"call": call, "said": json.dumps(said)}).scalar_one()


@pytest.mark.parametrize(
    ("first", "second"),
    [(enter(4, "ann"), enter(2, "bob")), (tell(4, 1), tell(2, 2)), (tell(4, 1), enter(2, "bob"))],
    ids=["by hand", "told", "told, then by hand"],
)
def test_f5_the_second_of_two_splits_of_one_day_is_a_revision(core: Core, first: Any, second: Any) -> None:
    core.heartbeat("ann", (DAILY, "AAPL"))
    with core.owner.begin() as connection:
        first(connection)
        thread, faults = meanwhile(core.owner, second)
    joined(thread, faults)
    rows = core.rows(
        "SELECT new_shares, recorded_at AS since, NULL::timestamptz AS until FROM pricing.corporate_actions UNION ALL"
        " SELECT (old->>'new_shares')::numeric, recorded_at, revised_at FROM pricing.revisions ORDER BY 2"
    )
    found = [(str(row.new_shares), row.since, row.until) for row in rows]
    assert [shares for shares, _, _ in found] == ["4", "2"]
    assert is_chain(found)


def test_f5_what_another_source_has_told_in_this_moment_stands(core: Core) -> None:
    core.heartbeat("ann", (DAILY, "AAPL"))
    with core.owner.begin() as connection:
        enter(4, "ann")(connection)
        thread, faults = meanwhile(core.owner, tell(2, 1))
    joined(thread, faults)
    assert core.one("SELECT new_shares FROM pricing.corporate_actions") == Decimal(4)
    assert core.rows("SELECT FROM pricing.revisions") == []
