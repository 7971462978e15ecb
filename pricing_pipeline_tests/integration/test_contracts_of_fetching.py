"""The contracts of docs/maintainers/contracts.md that Python keeps: what is asked, read, stored and given up (B25).

Answers come from real HTTP servers and go to a real database. Those that the database keeps are in test_contracts.py.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import event

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import DEADLINE_SECONDS, ProviderClient
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import running_sandbox
from pricing_pipeline_tests.tools import provider_rules

CODE = "118632"


def is_idle(core: Core) -> Callable[[], bool]:
    """Nothing is pending or in work."""
    return lambda: not {"pending", "processing"} & set(core.statuses().values())


def day(core: Core, ago: int = 0) -> str:
    """A day as mfapi writes it."""
    return (core.clock() - timedelta(days=1 + ago)).strftime("%d-%m-%Y")


def fund(code: str, row: Mapping[str, object]) -> dict[str, Any]:
    """mfapi's answer for one fund."""
    return {"meta": {"scheme_code": int(code), "scheme_name": "A fund"}, "data": [row], "status": "SUCCESS"}


def asked(connection: Connection) -> str:
    """The fund that a request is about."""
    return connection.request.split(b"/mf/")[1].split(b"/")[0].decode()


def test_contract_05_only_what_has_shape_sense_and_the_asked_name_is_stored(core: Core) -> None:
    today, good = day(core), {"date": day(core), "nav": "10.50000"}
    answers: dict[str, tuple[object, str | None]] = {
        "100001": (fund("100001", good), None),
        "100002": (fund("100002", {"date": today}), "schema_drift"),
        "100003": (fund("100003", {"date": today, "nav": ["10.50000"]}), "schema_drift"),
        "100004": ("<html>Please wait</html>", "schema_drift"),
        "100005": (fund("100001", good), "implausible"),
        "100006": (fund("100006", {"date": today, "nav": "0.00000"}), "implausible"),
        "100007": (fund("100007", {"date": day(core, -9), "nav": "10.50000"}), "implausible"),
    }
    core.enqueue(NAV, *answers)
    with (
        ScriptedServer(lambda c: c.answer(json.dumps(answers[asked(c)][0]).encode())) as server,
        refreshing(core.engine, server.url) as refresher,
    ):
        work_until(refresher, is_idle(core))
    assert [row.symbol for row in core.rows("SELECT symbol FROM pricing.price_history")] == ["100001"]
    told = {task.symbol: task.errors[0]["kind"] if task.errors else None for task in core.tasks()}
    assert told == {code: kind for code, (_, kind) in answers.items()}
    with ProviderClient(PROVIDERS[MFAPI]) as client, pytest.raises(SettingsError, match="cannot fetch quote"):
        client.fetch(Fetcher.QUOTE, [CODE])


def test_contract_06a_usage_is_counted_on_the_wire(core: Core) -> None:
    body = gzip.compress(json.dumps(fund(CODE, {"date": day(core), "nav": "10.5"}) | {"pad": "x" * 9000}).encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"

    def unannounced(connection: Connection) -> None:
        connection.send(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")

    core.enqueue(NAV, CODE)
    with ScriptedServer(unannounced) as server, refreshing(core.engine, server.url) as refresher:
        work_until(refresher, is_idle(core))
        assert core.task(CODE).status == "completed"
        assert core.allowance(MFAPI).used_bytes == server.sent < 9000
        assert core.allowance(MFAPI).unannounced_calls == 1, "an operator sees it in status"
    with ScriptedServer(unannounced) as server, ProviderClient(PROVIDERS[MFAPI], server.url) as client:
        assert client.fetch(Fetcher.NAV, [CODE]).content_length_missing, "and a size that is kept back is noticed"
    plain = json.dumps(fund(CODE, {"date": day(core), "nav": "10.5"})).encode()
    with (
        ScriptedServer(lambda connection: connection.answer(plain)) as server,
        refreshing(core.engine, server.url) as refresher,
    ):
        core.enqueue(NAV, CODE)
        work_until(refresher, is_idle(core))
    assert core.allowance(MFAPI).unannounced_calls == 1


def test_contract_14_old_data_under_a_fresh_answer_is_refused(core: Core, clock: Clock) -> None:
    """An equal time with an equal value is not refused: outside trading hours it is all there is."""
    answers = iter([(0, "10.5"), (1, "9.9"), (0, "10.5")])

    def next_answer(connection: Connection) -> None:
        ago, nav = next(answers)
        connection.answer(json.dumps(fund(CODE, {"date": day(core, ago), "nav": nav})).encode())

    with ScriptedServer(next_answer) as server, refreshing(core.engine, server.url) as refresher:
        core.enqueue(NAV, CODE)
        work_until(refresher, is_idle(core))
        fetched = core.latest(CODE, NAV)
        core.enqueue(NAV, CODE)
        work_until(refresher, is_idle(core))
        refused, after = core.tasks(CODE)[-1], core.latest(CODE, NAV)
        assert (refused.status, refused.errors[0]["kind"]) == ("scheduled", "stale_source")
        assert fetched is not None
        assert after is not None
        assert (after.price, after.fetched_at) == (fetched.price, fetched.fetched_at), "not laundered"
        assert len(core.rows("SELECT FROM pricing.price_history")) == 1, "nothing of it is believed"
        clock.advance(10)
        work_until(refresher, lambda: core.tasks(CODE)[-1].status == "completed")
    confirmed = core.latest(CODE, NAV)
    assert confirmed is not None
    assert confirmed.fetched_at > fetched.fetched_at


def test_contract_17_a_deadlock_gives_the_task_back_at_no_cost(core: Core) -> None:
    core.rows(
        "CREATE FUNCTION pricing.deadlock() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''deadlock detected'' USING ERRCODE = ''40P01''; END'"
    )
    core.rows(
        "CREATE TRIGGER deadlock BEFORE INSERT ON pricing.latest_prices FOR EACH ROW"
        " EXECUTE FUNCTION pricing.deadlock()"
    )
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    answer = Fetched(Answer(Rows([observation("AAPL", "146.55", core.clock())])), 200, 600)
    settle_answer(core.engine, call, answer)
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.failure_kind) == ("pending", 0, None), "at once, not by its lease"
    assert [error["kind"] for error in task.errors] == ["database_conflict"]
    core.rows("DROP TRIGGER deadlock ON pricing.latest_prices")
    settle_answer(core.engine, core.claim_one(), answer)
    assert (core.task("AAPL").status, core.task("AAPL").attempt) == ("completed", 1)


def test_contract_19_one_process_and_one_pool_make_all_calls(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    core.enqueue(QUOTE, *(f"S{number:04}" for number in range(25)))
    core.enqueue(NAV, *(str(118_000 + number) for number in range(15)))
    lock, sessions, busiest = threading.Lock(), Counter[str](), 0

    def count(by: int) -> None:
        nonlocal busiest
        with lock:
            sessions["now"] += by
            busiest = max(busiest, sessions["now"])

    event.listen(core.engine, "checkout", lambda *_: count(1))
    event.listen(core.engine, "checkin", lambda *_: count(-1))
    processes: set[int] = set()
    with running_sandbox() as sandbox, refreshing(core.engine, sandbox.url) as refresher:
        sandbox.behave("delay", seconds=0.1)

        def is_done() -> bool:
            processes.update(child.pid for child in psutil.Process().children())
            return is_idle(core)()

        processes.update(before := {child.pid for child in psutil.Process().children()})
        work_until(refresher, is_done)
        spans = [(call["monotonic"], call["monotonic"] + call["milliseconds"] / 1000) for call in sandbox.calls()]
    assert len(spans) == 40
    assert 1 < max(sum(begin <= at < end for begin, end in spans) for at, _ in spans) <= 10
    assert busiest <= 12, "ten calls, the drain, and what looks on"
    assert processes == before, "no call has a process of its own"


def test_contract_20_make_check_refuses_a_provider_that_goes_its_own_way(tmp_path: Path) -> None:
    (tmp_path / "rogue.py").write_text(
        "import httpx\n"
        "from pricing_pipeline.domain.answers import Answer, Observation\n"
        "from pricing_pipeline.domain.calls import Response\n"
        "def parse(symbol: str, response: Response) -> Answer:\n"
        "    data = httpx.Response(200, content=response.body).json()\n"
        "    return Answer((Observation(symbol, data['at'], data['price'], 'unchecked'),))\n"
    )
    faults = provider_rules.faults(tmp_path)
    assert [fault.split(": ")[0] for fault in faults] == ["rogue.py:1", "rogue.py:5", "rogue.py:6"]
    assert provider_rules.faults() == []
    check = (ROOT / "Makefile").read_text().split("\ncheck:")[1].split("\n\n")[0]
    assert "-m pricing_pipeline_tests.tools.provider_rules" in check


@pytest.mark.parametrize("pace", ["silence", "a byte now and then"])
def test_contract_21_a_slow_answer_is_a_failure_and_soon(core: Core, pace: str) -> None:
    slow: Mapping[str, Callable[[Connection], None]] = {
        "silence": lambda connection: connection.hang(),
        "a byte now and then": lambda connection: connection.drip(b"HTTP/1.1 200 OK\r\n" * 99, 0.05),
    }
    assert DEADLINE_SECONDS == 10, "far less than the lease of 60 s and the drain of 120 s"
    core.enqueue(NAV, CODE)
    with ScriptedServer(slow[pace]) as server, refreshing(core.engine, server.url, deadline=0.4) as refresher:
        work_until(refresher, is_idle(core))
    task = core.task(CODE)
    assert (task.status, task.attempt, task.errors[0]["kind"]) == ("scheduled", 1, "provider_down")
    assert core.one("SELECT failure_kind FROM pricing.collector_call_log") == "provider_down", "the breaker sees it"
    took = core.one("SELECT finished_at - started_at FROM pricing.collector_call_log")
    assert took < timedelta(seconds=60), "0.4 s were allowed; all bytes take longer, and silence does not end"


def test_contract_22_every_fetcher_fills_every_column_from_answer_to_table(core: Core) -> None:
    """What a migration adds must come from an answer, or be said to be ours; test_columns.py compares the names."""
    by_people, of_faults = {"cache_ttl_minutes"}, {"quality"}
    bars_only = {"open_amount", "high_amount", "low_amount", "volume"}
    core.enqueue(QUOTE, "AAPL")
    core.enqueue(DAILY, "AAPL")
    core.enqueue(NAV, CODE)
    with running_sandbox() as sandbox, refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, is_idle(core))
    assert {(task.data_type, task.status) for task in core.tasks()} == {
        (data_type, "completed") for data_type in (QUOTE, DAILY, NAV)
    }
    for table in ("latest_prices", "price_history"):
        rows = [dict(row._mapping) for row in core.rows(f"SELECT * FROM pricing.{table}")]
        assert {row["data_type"] for row in rows} == {QUOTE, DAILY, NAV}
        for row in rows:
            empty = {name for name, value in row.items() if value is None}
            if table == "price_history":
                empty -= {"source_text"}  # where the stored digits are the spelling
            assert empty - by_people - of_faults == (set() if row["data_type"] == DAILY else bars_only & row.keys())
    assert {row.provider for row in core.rows("SELECT provider FROM pricing.latest_prices")} == {
        TWELVEDATA,
        MFAPI,
    }
