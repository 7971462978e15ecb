"""Periodic duties and warnings: one process at a time, nothing stops anything else, and all of it is seen."""

from __future__ import annotations

import threading

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, MFAPI, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("still")

EVERY_MINUTE = {"clean_subscriptions", "repair_demand", "retire_tasks", "resolve_tasks"}
EVERYTHING = {"recover_tasks", "expire_calls", "prune"} | EVERY_MINUTE


def run(core: Core) -> set[str]:
    ran: list[str] = core.call("SELECT pricing.run_duties()")
    assert len(ran) == len(set(ran))
    return set(ran)


def failed(core: Core) -> set[str]:
    return {row.duty for row in core.rows("SELECT duty FROM pricing.duties WHERE last_failure_at IS NOT NULL")}


def break_duty(core: Core, name: str) -> None:
    core.rows(
        f"CREATE OR REPLACE FUNCTION pricing.{name}() RETURNS integer LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''out of order''; END'"
    )


def warnings(core: Core) -> list[tuple[str, str, str | None, str]]:
    rows = core.rows("SELECT source, subject, sqlstate, message FROM pricing.warnings ORDER BY warning_id")
    return [tuple(row) for row in rows]  # type: ignore[misc]


def test_b15_duties_run_when_they_are_overdue_and_one_process_at_a_time(
    core: Core, clock: Clock, database_url: str
) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pricing.take_turn('run_duties')")
        assert run(core) == set()
    assert run(core) >= EVERYTHING
    assert run(core) == set()
    clock.advance(11)
    assert run(core) & EVERYTHING == {"recover_tasks"}
    clock.advance(50)
    assert run(core) & EVERYTHING == EVERYTHING - {"prune"}


def test_b15_a_clock_that_was_set_back_stops_no_duty(core: Core, clock: Clock) -> None:
    break_duty(core, "resolve_tasks")
    ran = run(core)
    clock.advance(-3600)
    assert run(core) == set(), "it is noticed"
    assert run(core) == set(), "and what was done is not overdue"
    clock.advance(11)
    assert "recover_tasks" in run(core)
    clock.advance(3600)
    assert run(core) == ran - {"clean_subscriptions"}, "viewers have time for a heartbeat"
    clock.advance(121)
    assert "clean_subscriptions" in run(core)


def test_b8_one_failing_duty_does_not_stop_the_others(core: Core, clock: Clock) -> None:
    break_duty(core, "clean_subscriptions")
    assert run(core) & EVERYTHING == EVERYTHING - {"clean_subscriptions"}
    duties = {row.duty: row for row in core.rows("SELECT * FROM pricing.duties")}
    failed = duties["clean_subscriptions"]
    assert (failed.last_success_at, failed.last_error) == (None, "out of order")
    assert failed.last_failure_at is not None
    assert duties["prune"].last_success_at is not None
    assert duties["prune"].last_failure_at is None
    assert ("run_duties", "clean_subscriptions", "P0001", "out of order") in warnings(core)

    clock.advance(1)
    assert run(core) == set(), "it stays overdue, and is tried again when its time has come"
    tried = "SELECT last_failure_at FROM pricing.duties WHERE duty = 'clean_subscriptions'"
    assert core.one(tried) == failed.last_failure_at
    clock.advance(60)
    core.rows("CREATE OR REPLACE FUNCTION pricing.clean_subscriptions() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    assert "clean_subscriptions" in run(core)
    (after,) = core.rows("SELECT * FROM pricing.duties WHERE duty = 'clean_subscriptions'")
    assert after.last_success_at > after.last_failure_at


@pytest.mark.parametrize(
    ("work", "end"),
    [
        ("run_duties", "a duty that fails"),
        ("run_duties", "a session that is cut off"),
        ("enqueue_due", "success"),
        ("enqueue_due", "rollback"),
    ],
)
def test_b15_the_lock_is_free_afterwards_whatever_happened(core: Core, database_url: str, work: str, end: str) -> None:
    if end == "a duty that fails":
        break_duty(core, "repair_demand")
    with core.engine.connect() as other:
        other.execute(text(f"SELECT pricing.{work}()"))
        if end == "rollback":
            other.rollback()
        elif end == "a session that is cut off":
            pid = other.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
            with psycopg.connect(database_url, autocommit=True) as killer:
                killer.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            other.invalidate()
        else:
            other.commit()
        assert core.one("SELECT bool_and(pricing.take_turn(name)) FROM pricing.turns")
        assert (
            core.one(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            == 0
        ), "any login can take an advisory lock, so no duty has one"


# Warnings


def test_b8_a_type_whose_check_fails_is_seen_and_stops_no_other(core: Core, clock: Clock, cli: CommandLine) -> None:
    core.heartbeat("ann", (FX, "EUR/USD"), (QUOTE, "AAPL"))
    core.refresh()
    core.break_judge(FX)
    for _ in range(3):
        clock.advance(20)
        core.rows("UPDATE pricing.demand SET due_at = pricing.clock() WHERE became_due_at IS NULL")
        core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 hour'")
        assert core.enqueue_due() == 2
        core.refresh()
    said = "staleness cannot be judged, so due pairs count as stale: no such calendar"
    assert warnings(core) == [("enqueue_due", FX, "22012", said)], "once a minute is enough"
    clock.advance(45)
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() WHERE became_due_at IS NULL")
    core.enqueue_due()
    # Two are kept; the program that has heard all four writes so a second later.
    counted = "SELECT sum(times) FROM pricing.warning_counts WHERE subject = :type"
    wait_until(lambda: core.one(counted, type=FX) == 4)
    (row,) = cli("status", "--json").json["warnings"]
    assert row | {"last_at": None} == {
        "source": "enqueue_due",
        "subject": FX,
        "times": 4,
        "last_at": None,
        "sqlstate": "22012",
        "message": said,
    }
    assert "no such calendar" in cli("status").stdout
    clock.advance(86_400)
    assert cli("status", "--json").json["warnings"] == []


@pytest.mark.parametrize(
    ("table", "days"), [("collector_call_log", 35), ("drains", 7), ("api_data_usage", 400), ("warnings", 30)]
)
def test_b9_what_is_past_its_keeping_time_is_forgotten_and_no_earlier(
    core: Core, clock: Clock, table: str, days: int
) -> None:
    core.rows("SELECT pricing.begin_drain('w', NULL, 120)")
    core.rows("SELECT pricing.warn('run_duties', 'prune', 'why', NULL)")
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one())
    known = f"SELECT count(*) FROM pricing.{table}"
    clock.advance((days - 1) * 86_400)
    core.rows("SELECT pricing.prune()")
    assert core.one(known) == 1
    clock.advance(2 * 86_400)
    core.rows("SELECT pricing.prune()")
    assert core.one(known) == 0


def test_b9_old_calls_of_all_providers_are_forgotten_but_open_ones(core: Core, clock: Clock) -> None:
    """Also those that were made before the clock was set back, which are in an index of their own."""
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.enqueue(NAV, "118632")
    core.finish(core.claim_one())
    core.finish(core.claim_one(MFAPI))
    core.rows("UPDATE pricing.collector_call_log SET moved_to = started_at WHERE provider = 'mfapi'")
    core.enqueue(QUOTE, "MSFT")
    core.claim_one()
    clock.advance(36 * 86_400)
    assert core.call("SELECT pricing.prune_calls()") == 2
    assert core.rows("SELECT outcome FROM pricing.collector_call_log") == [("open",)]
    assert core.one("SELECT count(*) FROM pricing.past_calls") == 2


def test_b22_those_who_warn_of_the_same_do_not_wait_for_each_other(core: Core, database_url: str) -> None:
    with psycopg.connect(database_url) as first:
        first.execute("SELECT pricing.warn('enqueue_due', 'fx_rate', 'why', '22012')")
        thread = threading.Thread(
            target=core.rows, args=("SELECT pricing.warn('enqueue_due', 'fx_rate', 'why', '22012')",)
        )
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
