"""A locked row keeps back what needs it and nothing else: answers, duties, claims and checks go on without it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, text

from pricing_pipeline.domain.calls import Call
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_commodities_etl import Table, table
from pricing_pipeline_tests.integration.test_duties import failed, warnings
from pricing_pipeline_tests.support.open_sessions import AAPL, BOUND, good, waited
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

__all__ = ["table"]


def asked_again(core: Core, clock: Clock, names: list[str]) -> Call:
    """A call for the prices of these symbols, which are watched, stored, and stale by now."""
    core.lift_limits(batch_size=len(names))
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.refresh()
    clock.advance(120)
    core.enqueue(QUOTE, *names)
    return core.claim_one()


def test_fault_27_an_answer_is_stored_but_for_what_is_locked_and_that_waits_ten_seconds(
    core: Core, clock: Clock, sessions: Any
) -> None:
    """The provider is not asked again each second, no attempt is lost, and the neighbours are served."""
    names = [f"S{number}" for number in range(8)]
    clock.stop()
    call = asked_again(core, clock, names)
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.latest_prices WHERE symbol = 'S3' FOR UPDATE")
    tally = settle_answer(core.engine, call, good(core, call))
    assert tally.symbols == {*names} - {"S3"}
    live = {task.symbol: task for task in core.tasks() if task.status != "completed"}
    assert set(live) == {"S3"}
    assert (live["S3"].status, live["S3"].attempt) == ("scheduled", 0)
    assert (live["S3"].run_after - core.clock()).total_seconds() == 10
    assert live["S3"].errors[-1]["kind"] == "database_conflict"
    holder.rollback()
    audit(core)


def test_fault_27_an_answer_that_meets_locks_is_stored_out_of_turn(core: Core, clock: Clock, sessions: Any) -> None:
    """Four answers are stored at a time. Eight with locked rows kept all others waiting for eight seconds."""
    names = [f"S{number}" for number in range(60)]
    call = asked_again(core, clock, names)
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.latest_prices FOR UPDATE")
    is_turn = False
    parts: list[bool] = []

    @contextmanager
    def turn() -> Iterator[None]:
        nonlocal is_turn
        is_turn = True
        try:
            yield
        finally:
            is_turn = False

    event.listen(core.engine, "savepoint", lambda connection, name: parts.append(is_turn))
    settle_answer(core.engine, call, good(core, call), turn=turn())
    assert len(parts) > 1, "it was stored part by part"
    assert not any(parts), "a turn ends with the first lock that is refused, after half a second"
    assert {task.status for task in core.tasks() if task.status != "completed"} == {"scheduled"}


def test_fault_27_a_call_that_brought_prices_is_settled_once_its_provider_is_free(core: Core, sessions: Any) -> None:
    """Its prices were stored, and it stayed open until it counted as lost."""
    core.heartbeat("ann", AAPL)
    call = core.claim_one("twelvedata")
    holder = sessions("owner")
    holder.execute("LOCK TABLE pricing.provider_state IN ACCESS EXCLUSIVE MODE")
    release = threading.Timer(2.0, holder.rollback)
    release.start()
    settle_answer(core.engine, call, good(core, call))
    release.join()
    assert core.one("SELECT outcome FROM pricing.collector_call_log WHERE call_id = :id", id=call.id) == "ok"
    assert core.one("SELECT call_id FROM pricing.latest_prices WHERE symbol = 'AAPL'") == call.id


def test_fault_27_a_locked_row_of_duties_stops_no_duty_and_no_look(core: Core, clock: Clock, sessions: Any) -> None:
    """After a pause of five minutes each look wanted to note something there, waited for two seconds and failed."""
    core.call("SELECT pricing.run_duties()")
    holder = sessions("owner")
    holder.execute("UPDATE pricing.duties SET last_error = NULL WHERE duty IN ('clean_subscriptions', 'follow_clock')")
    for step in (300, -3600, 86400 * 2):
        clock.advance(step)
        for _ in range(3):
            clock.advance(20)
            assert waited(core, lambda: core.call("SELECT pricing.run_duties()")) < BOUND
        holder.execute("SELECT 1")
    clock.advance(20)
    assert "recover_tasks" in core.call("SELECT pricing.run_duties()")


def test_fault_27_a_provider_that_is_locked_is_passed_over_and_said_once(
    core: Core, sandbox: RunningSandbox, sessions: Any, caplog: pytest.LogCaptureFixture
) -> None:
    core.heartbeat("ann", AAPL, (NAV, "118632"))
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.provider_state WHERE provider = 'twelvedata' FOR UPDATE")
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, lambda: core.task("118632").status == "completed")
        work_until(refresher, lambda: "is passed over" in caplog.text)
        assert core.task("AAPL").status == "pending"
        holder.rollback()
        work_until(refresher, lambda: core.task("AAPL").status == "completed")
    said = [record.message for record in caplog.records if "is passed over" in record.message]
    assert len(said) == 1
    assert "twelvedata" in said[0]


def test_fault_27_a_check_that_is_not_committed_stops_no_other(core: Core, sessions: Any) -> None:
    """Another session has checked the type and does not commit, so it has the type's mark locked."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.rows("UPDATE pricing.demand SET became_due_at = NULL")
    core.rows("DELETE FROM pricing.api_call_queue_live")
    assert core.enqueue_due() == 1
    names = [f"S{number:03}" for number in range(20)]
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET became_due_at = NULL")
    holder = sessions("owner")
    assert holder.execute("UPDATE pricing.check_marks SET queued_until = '-infinity'").rowcount == 1
    assert waited(core, core.enqueue_due) < BOUND
    assert set(core.statuses()) == {*names}


def test_fault_27_a_check_passes_over_the_one_task_that_is_not_committed(core: Core, sessions: Any) -> None:
    """Of 200 pairs that fell due one is in the way: the others are queued within a second, and it is warned of."""
    names = [f"S{number:03}" for number in range(200)]
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET became_due_at = NULL")
    holder = sessions("owner")
    holder.execute("SELECT pricing.enqueue('equity_quote', '{S123}', '{1}')")
    assert waited(core, core.enqueue_due) < BOUND
    assert set(core.statuses()) == {*names} - {"S123"}
    (said,) = core.rows("SELECT subject, message, sqlstate FROM pricing.warnings")
    assert said == (QUOTE, "S123 is passed over: another session has locked it", "55P03")
    holder.rollback()
    assert core.enqueue_due() == 1


@pytest.mark.usefixtures("still")
def test_b9_a_duty_that_waits_for_a_lock_gives_up_after_a_second(core: Core, database_url: str) -> None:
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at, created_at)"
        " VALUES ('fx_rate', 'EUR/USD', 'infinity', pricing.clock() - interval '1 hour')"
    )
    ran: set[str] = set()
    with psycopg.connect(database_url) as other, core.engine.connect() as connection:
        other.execute("LOCK TABLE pricing.demand")
        connection.execute(text(f"SET statement_timeout = '{PATIENCE:.0f}s'"))  # or it would hang
        for _ in range(9):
            before = failed(core)
            ran |= set(connection.execute(text("SELECT pricing.run_duties()")).scalar_one())
            connection.commit()
            assert len(failed(core) - before) <= 1, "one duty that has waited ends the round"
    assert "repair_demand" in failed(core)
    assert "repair_demand" not in ran
    assert {"expire_calls", "prune"} <= ran, "the next look goes on with the others"
    assert {state for _, subject, state, _ in warnings(core) if subject == "repair_demand"} == {"55P03"}


@pytest.mark.usefixtures("still")
def test_fault_27_a_row_that_another_session_has_locked_costs_its_list_and_no_other(table: Table) -> None:
    conflict = "database_conflict"
    locked = {
        "commodities WHERE commodity_id = 1": [("commodities", conflict)],
        "terminals WHERE symbol = 'UEX:1'": [("terminals", conflict), ("prices", conflict)],
        "provider_state WHERE provider = 'uex'": [
            ("game versions", conflict),
            ("terminals", conflict),
            ("commodities", conflict),
            ("prices", "refused"),
        ],
    }
    table.sync()
    told = []
    for row, expected in locked.items():
        table.core.rows("UPDATE pricing.terminals SET name = 'x'")
        table.core.rows("UPDATE pricing.commodities SET name = 'x'")
        with table.core.owner.begin() as other:
            other.exec_driver_sql(f"SELECT FROM pricing.{row} FOR UPDATE")
            table.sync()
        told += expected
        assert table.warnings() == told, row
    assert table.sync().is_complete
    assert not table.core.rows("SELECT FROM pricing.terminals WHERE name = 'x'")
    assert not table.core.rows("SELECT FROM pricing.commodities WHERE name = 'x'")
