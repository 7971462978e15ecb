"""What one hostile answer can write is bounded by what was asked for, from the socket to the tables.

Of a symbol, one call stores a value, a revision or a doubt for each day that was asked for, and a hundred refused
values and their number. The rest is a constant: the call, its task, its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from pricing_pipeline_tests.fixtures.core import DAILY, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.server import ScriptedServer
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until

pytestmark = pytest.mark.usefixtures("still")

FIRST, DAYS = date(2024, 1, 1), 31
WINDOW = (FIRST, FIRST + timedelta(days=DAYS - 1))
ROWS = 600
"""Several times as many as may be kept of one answer."""
CONSTANT = 20

Rows = Callable[[int], dict[str, object]]


def bar(day: str, close: object = "1.5", **more: object) -> dict[str, object]:
    return {"datetime": day, "open": "1.5", "high": "1.5", "low": "1.5", "close": close} | more


def inside(n: int) -> str:
    return str(FIRST + timedelta(days=n % DAYS))


ANSWERS: dict[str, Rows] = {
    "one day with ever other prices": lambda n: bar("2024-01-02", str(1 + n / 1000)),
    "all days with ever other prices": lambda n: bar(inside(n), str(1 + n / 1000)),
    "days that nobody asked for": lambda n: bar(str(date(1900, 1, 1) + timedelta(days=n))),
    "prices that are none": lambda n: bar(inside(n), f"none{n}"),
    "levels that jump": lambda n: bar(inside(n), str(10 ** (n % DAYS % 9))),
    "parts that are none": lambda n: bar(inside(n % DAYS), open=f"none{n}"),
    "fields that nobody knows": lambda n: bar("2024-01-02", **{f"field{n}": n}),
    "good days, then junk": lambda n: bar(inside(n)) if n < DAYS else bar("2024-01-02", [n]),
}


def count_rows(core: Core) -> int:
    """Rows of all tables, those that are written when a worker starts left out."""
    tables = core.rows("SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r'")
    return sum(core.one(f"SELECT count(*) FROM pricing.{row.relname}") for row in tables)


def ask(core: Core, engine: Engine, body: bytes, days: tuple[date, date] | None = WINDOW) -> int:
    """Have a refresher ask a server that answers this; returns how many bytes it sent."""
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", days=days)
    with ScriptedServer(lambda c: c.answer(body)) as server:
        with refreshing(engine, server.url) as refresher:
            work_until(refresher, is_idle(core))
        assert len(server.requests) == 1
        return server.sent


@pytest.mark.parametrize("rows", ANSWERS.values(), ids=ANSWERS)
def test_fault_11_what_an_answer_writes_is_bounded_by_what_was_asked_for(
    core: Core, engine: Engine, rows: Rows
) -> None:
    meta = {"symbol": "AAPL", "interval": "1day", "currency": "USD"}
    body = json.dumps({"meta": meta, "values": [rows(n) for n in range(ROWS)], "status": "ok"}).encode()
    before = count_rows(core)
    sent = ask(core, engine, body)
    assert count_rows(core) - before <= 3 * DAYS + 102 + CONSTANT
    quarantined = core.one("SELECT count(*) FROM pricing.quarantined_values")
    assert quarantined <= DAYS + 101
    assert core.one("SELECT wire_bytes FROM pricing.collector_call_log") == sent
    booked = core.one("SELECT sum(bytes) FROM pricing.api_data_usage WHERE provider = :p", p=TWELVEDATA)
    assert booked == sent
    assert core.one("SELECT coalesce(max(length(reason)), 0) FROM pricing.quarantined_values") <= 500


def test_fault_11_what_is_not_kept_one_by_one_is_counted_where_people_look(core: Core, engine: Engine) -> None:
    meta = {"symbol": "AAPL", "interval": "1day", "currency": "USD"}
    values: list[Any] = [bar("2024-01-02", str(1 + n / 1000)) for n in range(ROWS)]
    ask(core, engine, json.dumps({"meta": meta, "values": values, "status": "ok"}).encode())
    reasons = [row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values ORDER BY 1")]
    assert [reason for reason in reasons if reason.startswith(f"{ROWS - 100} more values cannot be true")]
    assert core.one("SELECT size FROM pricing.quarantined_bodies") > ROWS * 60


def test_fault_11_a_storm_of_interim_answers_books_what_came_and_is_tried_again(core: Core, engine: Engine) -> None:
    core.enqueue(DAILY, "AAPL", days=WINDOW)

    def storm(c: Any) -> None:
        while True:
            c.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    with ScriptedServer(storm) as server, refreshing(engine, server.url) as refresher:
        work_until(refresher, lambda: core.one("SELECT count(finished_at) FROM pricing.collector_call_log") > 0)
    call = core.rows("SELECT wire_bytes, outcome, failure_kind FROM pricing.collector_call_log ORDER BY call_id")[0]
    assert (call.outcome, call.failure_kind) == ("failed", "schema_drift")
    assert 256 * 1024 < call.wire_bytes <= 256 * 1024 + 65536
    assert core.one("SELECT count(*) FROM pricing.price_history") == 0
