"""Pausing an instrument, retiring a type: what they want stops, visibly; coming back it starts at once."""

from __future__ import annotations

from datetime import date

import pytest

from pricing_pipeline.demand import freshness, viewers
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

AAPL, IBM, BARS = (QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "AAPL")
MINUTE, DAY = 60, 86_400


def states(core: Core) -> set[tuple[str, str, str, str | None]]:
    return {(task.data_type, task.symbol, task.status, task.failure_kind) for task in core.tasks()}


def pending(core: Core) -> set[tuple[str, str]]:
    return {(task.data_type, task.symbol) for task in core.tasks() if task.status == "pending"}


def test_a7_what_waits_for_a_paused_instrument_is_cancelled_visibly(core: Core) -> None:
    core.heartbeat("ann", AAPL, IBM, BARS)
    core.enqueue(DAILY, "AAPL", priority=-2, days=(date(2010, 1, 1), date(2010, 1, 31)))
    (paused,) = core.pause("AAPL")
    assert (paused.asset_class, paused.symbol, paused.changed) == ("equity", "AAPL", True)
    assert states(core) == {
        (QUOTE, "AAPL", "cancelled", "paused"),
        (DAILY, "AAPL", "cancelled", "paused"),
        (QUOTE, "IBM", "pending", None),
    }
    assert core.tasks("AAPL")[0].errors[-1]["message"] == "the instrument is paused"
    audit(core, acknowledged=4)


def test_a7_what_waits_for_its_next_try_is_cancelled_too(core: Core) -> None:
    core.heartbeat("ann", AAPL)
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    core.pause("AAPL")
    assert states(core) == {(QUOTE, "AAPL", "cancelled", "paused")}


def test_a7_what_is_resumed_is_active_again(core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET is_active = false, update_mode = 'manual' WHERE symbol = 'AAPL'")
    core.pause("AAPL", paused=False)
    (row,) = core.rows("SELECT is_active, update_mode FROM pricing.instruments WHERE symbol = 'AAPL'")
    assert tuple(row) == (True, "api")


@pytest.mark.parametrize("column", ["update_mode = 'manual'", "is_active = false"])
def test_a7_a_paused_instrument_is_not_queued_by_anything(core: Core, clock: Clock, column: str) -> None:
    core.rows(f"UPDATE pricing.instruments SET {column} WHERE symbol IN ('AAPL', '118632')")
    core.heartbeat("ann", AAPL, (NAV, "118632"))
    core.hold("bob", AAPL)
    core.rows("SELECT pricing.enqueue_scheduled('mf_nav')")
    core.read("AAPL")
    for _ in range(3):
        clock.advance(5 * MINUTE)
        core.heartbeat("ann", AAPL)
        core.enqueue_due()
    assert {symbol for _, symbol in pending(core)} == {"119551", "120841", "125497"}
    with core.engine.begin() as connection:
        rows = connection.exec_driver_sql(
            "SELECT pricing.plan_backfill('equity_daily', '2010-01-01', '2010-01-31', '{AAPL}')"
        ).all()
    assert rows
    assert "AAPL" not in {symbol for _, symbol in pending(core)}


def test_a7_a_call_under_way_is_finished(core: Core) -> None:
    core.heartbeat("ann", AAPL)
    call = core.claim_one()
    core.pause("AAPL")
    core.finish(call)
    assert core.latest("AAPL") is not None
    assert core.enqueue_due() == 0


def test_a7_what_a_worker_gives_back_of_a_paused_instrument_is_stopped(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    call = core.claim_one()
    core.pause("AAPL")
    core.return_tasks(call)
    assert states(core) == {(QUOTE, "AAPL", "cancelled", "paused")}


@pytest.mark.parametrize("kind", [FailureKind.PROVIDER_DOWN, FailureKind.THROTTLED, FailureKind.UNKNOWN_SYMBOL])
def test_d5_what_fails_after_the_pause_is_not_claimed_again(core: Core, clock: Clock, kind: FailureKind) -> None:
    """It was asked for again after seven seconds, or at once of the next provider of its route."""
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)")
    core.heartbeat("ann", AAPL, IBM)
    calls = core.claim()
    core.pause("AAPL")
    for call in calls:
        core.fail(call, kind)
    found = {task.symbol: (task.status, task.failure_kind) for task in core.tasks()}
    assert found["AAPL"] == ("cancelled", "paused")
    assert found["IBM"][0] in ("pending", "scheduled")
    audit(core, acknowledged=2)


def test_d5_what_a_lost_worker_had_of_a_paused_instrument_is_not_claimed_again(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.claim_one()
    core.pause("AAPL")
    clock.advance(MINUTE + 1)
    core.rows("SELECT pricing.recover_tasks()")
    assert states(core) == {(QUOTE, "AAPL", "cancelled", "paused")}
    core.pause("AAPL", paused=False)
    core.heartbeat("ann", AAPL)
    core.enqueue_due()
    assert pending(core) == {AAPL}


def test_a7_resuming_makes_what_is_watched_due_at_once(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, IBM)
    core.refresh()
    core.pause("AAPL")
    clock.advance(2 * MINUTE)
    assert core.enqueue_due() == 1
    assert pending(core) == {IBM}
    (resumed,) = core.pause("AAPL", paused=False)
    assert resumed.changed
    assert core.enqueue_due() == 1
    assert pending(core) == {AAPL, IBM}
    assert not core.pause("AAPL", paused=False)[0].changed


def test_a7_a_pause_is_neither_due_nor_late(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, IBM)
    core.refresh()
    core.pause("AAPL")
    clock.advance(50)
    core.enqueue(*IBM)
    core.refresh()
    clock.advance(50)
    core.enqueue_due()
    with core.engine.connect() as connection:
        (row,) = freshness.measure(connection, [QUOTE])
    assert (row.watched, row.fresh, row.due, row.late, row.paused) == (2, 1, 0, 0, 1)


def test_a7_the_command_pauses_and_resumes(cli: CommandLine, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, IBM)
    core.refresh()
    said = cli("instrument", "pause", "AAPL", "IBM", "--asset-class", "equity", "--json")
    assert said.json == {
        "paused": [{"asset_class": "equity", "symbol": symbol, "changed": True} for symbol in ("AAPL", "IBM")]
    }
    assert cli("instrument", "pause", "AAPL").stdout == "AAPL (equity) is paused already.\n"
    assert "paused" in cli("price", "show", "AAPL").stdout
    assert cli("price", "show", "AAPL", "--json").json["prices"][0]["paused"] is True
    content = cli("status", "--json").json
    assert (content["paused"], content["types"][QUOTE]["paused"]) == (2, 2)
    assert cli("instrument", "resume", "AAPL").stdout == "AAPL (equity) is resumed.\n"
    assert cli("instrument", "resume", "AAPL").stdout == "AAPL (equity) was not paused.\n"
    assert cli("price", "show", "AAPL", "--json").json["prices"][0]["paused"] is False


def test_a7_the_command_names_what_it_does_not_know(cli: CommandLine, core: Core) -> None:
    assert "no instrument is called NOPE, NOPE2" in cli("instrument", "pause", "AAPL", "NOPE", "NOPE2").error
    assert "no fx instrument is called AAPL" in cli("instrument", "pause", "AAPL", "--asset-class", "fx").error
    assert core.rows("SELECT FROM pricing.instruments WHERE update_mode <> 'api'") == []
    cli("instrument", "pause", "GBP/USD")
    assert "GBP/USD has no price yet. It is paused" in cli("price", "show", "GBP/USD").stderr


def test_b1_a_retired_types_tasks_stop_and_a_revived_ones_start(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, BARS)
    core.hold("bob", IBM)
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert states(core) == {
        (QUOTE, "AAPL", "cancelled", "retired"),
        (QUOTE, "IBM", "cancelled", "retired"),
        (DAILY, "AAPL", "pending", None),
    }
    for _ in range(3):
        clock.advance(MINUTE)
        with core.engine.begin() as connection:
            answer = viewers.heartbeat(connection, "ann", [AAPL, BARS])
        assert [pair.code for pair in answer.pairs] == ["retired_type"]
        core.rows("SELECT pricing.run_duties()")
        assert core.enqueue_due() == 0
    core.rows("UPDATE pricing.data_type_registry SET is_active = true WHERE data_type = 'equity_quote'")
    core.heartbeat("ann", AAPL)
    core.enqueue_due()
    assert pending(core) == {AAPL, IBM, BARS}


def test_d5_who_retries_a_task_of_a_paused_instrument_is_told_to_resume_it(api: RunningApi, core: Core) -> None:
    operator = api.caller(Scope.OPERATE, Scope.READ)
    core.fail(core.claimed(QUOTE, "AAPL", "MSFT"), FailureKind.UNKNOWN_SYMBOL)
    core.pause("AAPL")
    problem = operator.refusal("POST", "tasks/retry", json={"ids": [core.task("AAPL").id]})
    assert "its instrument is paused; resume it first" in problem["detail"]
    told = operator.post("tasks/retry", {"ids": [core.task("AAPL").id, core.task("MSFT").id]})
    assert told["counts"] == {"paused": 1, "retried": 1}, "one keeps no other one out, as of all_failed"
    assert core.statuses() == {"AAPL": "failed", "MSFT": "pending"}
