"""Each transition of tasks in docs/maintainers/state-machine.md, made once by the function that it names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.pages import ROOT, table

pytestmark = pytest.mark.usefixtures("still")

DAY = 86_400
Step = Callable[[Core, Clock], object]


def listed() -> set[tuple[str, str, str]]:
    """(from, to, function) of each row of the page's table."""
    page = (ROOT / "docs/maintainers/state-machine.md").read_text()
    ends = {"nothing": "[*]", "gone": "[*]"}
    return {
        (ends.get(start, start), ends.get(end, end), function.strip("`"))
        for starts, end, function, *_ in table(page, "from")
        for start in starts.split(", ")
    }


# How a task comes to be in a state. Its pair is watched, as most are.


def nothing(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "OTHER"))


def pending(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))


def processing(core: Core, clock: Clock) -> None:
    pending(core, clock)
    core.claim_one()


def scheduled(core: Core, clock: Clock) -> None:
    pending(core, clock)
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)


def completed(core: Core, clock: Clock) -> None:
    pending(core, clock)
    core.finish(core.claim_one())


def failed(core: Core, clock: Clock) -> None:
    pending(core, clock)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)


def cancelled(core: Core, clock: Clock) -> None:
    pending(core, clock)
    by_id("cancel_tasks")(core, clock)


STATES: dict[str, Step] = {
    "[*]": nothing,
    **{step.__name__: step for step in (pending, processing, scheduled, completed, failed, cancelled)},
}


# What takes it on.


def by_claim(call: str) -> Step:
    """A verb of the worker that has claimed it."""
    sql = f"SELECT pricing.{call} FROM pricing.api_call_queue_live WHERE symbol = 'AAPL'"
    return lambda core, clock: core.call(sql)


def by_id(name: str) -> Step:
    sql = f"SELECT outcome FROM pricing.{name}(ARRAY(SELECT id FROM pricing.api_call_queue WHERE symbol = 'AAPL'))"
    return lambda core, clock: core.call(sql)


def later(seconds: float, sql: str) -> Step:
    def step(core: Core, clock: Clock) -> None:
        clock.advance(seconds)
        core.call(sql)

    return step


def last_attempt(step: Step) -> Step:
    def act(core: Core, clock: Clock) -> None:
        core.rows("UPDATE pricing.api_call_queue_live SET attempt = max_attempts")
        step(core, clock)

    return act


def release(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.api_call_queue_live SET errors = jsonb_set(errors, '{-1,kind}', '\"implausible\"')")
    core.call("SELECT pricing.end_waits(:type, '{AAPL}')", type=QUOTE)


def leave(core: Core, clock: Clock) -> None:
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    clock.advance(100)
    core.clean()


def retire(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")


def unroute(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.provider_routing SET is_active = false")
    core.enqueue(QUOTE, "AAPL")


SECOND = (
    "INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('second', 'http://127.0.0.1:1')",
    "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
    " VALUES ('second', 'quote', 1, 1)",
    "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'second', 2)",
)


def fail_trial(core: Core, clock: Clock) -> None:
    """The provider does not know the instrument, as another data type shows."""
    core.rows("UPDATE pricing.instruments SET verified_at = NULL")
    core.fail(core.claimed(DAILY, "AAPL"), FailureKind.UNKNOWN_SYMBOL)


def refuse(core: Core, clock: Clock) -> None:
    for sql in SECOND:
        core.rows(sql)
    by_claim("fail_tasks(ARRAY[id], claim_token, 'plan_restricted', 'why', true)")(core, clock)


def reroute(core: Core, clock: Clock) -> None:
    for sql in SECOND:
        core.rows(sql)
    core.rows("UPDATE pricing.provider_state SET trouble = 'its quota is spent' WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.reroute_waiting()")


def outage(*, is_over: bool) -> Step:
    """A second later its provider does not answer, or does so again."""

    def step(core: Core, clock: Clock) -> None:
        clock.advance(1)
        core.rows("UPDATE pricing.collector_call_log SET outcome = 'failed', finished_at = pricing.clock()")
        core.rows(
            "INSERT INTO pricing.outages (provider, data_type, since, last_fault_at, answered_at)"
            " SELECT 'twelvedata', 'equity_quote', n.at - interval '1 min', n.at - interval '1 min',"
            " CASE WHEN :is_over THEN n.at END FROM (SELECT pricing.clock() AS at) n",
            is_over=is_over,
        )
        core.call("SELECT pricing.tend_outages()")

    return step


def forget(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = finished_at")
    clock.advance(100 * DAY)
    core.call("SELECT pricing.prune()")


def forbid(core: Core, clock: Clock) -> None:
    core.rows("DELETE FROM pricing.provider_capabilities WHERE fetcher = 'quote'")
    core.call("SELECT pricing.fail_impossible_tasks()")


RECOVER = later(61, "SELECT pricing.recover_tasks()")
TAKEN: dict[tuple[str, str, str], Step] = {
    ("[*]", "pending", "queue_stale"): pending,
    ("[*]", "pending", "enqueue_pairs"): lambda core, clock: core.enqueue(QUOTE, "AAPL"),
    ("[*]", "failed", "enqueue_pairs"): unroute,
    ("pending", "processing", "claim_calls"): lambda core, clock: core.claim_one(),
    ("processing", "completed", "complete_tasks"): by_claim("complete_tasks(ARRAY[id], claim_token)"),
    ("processing", "scheduled", "fail_tasks"): by_claim(
        "fail_tasks(ARRAY[id], claim_token, 'provider_down', 'why', false)"
    ),
    ("processing", "failed", "fail_tasks"): by_claim(
        "fail_tasks(ARRAY[id], claim_token, 'unknown_symbol', 'why', true)"
    ),
    ("processing", "pending", "fail_tasks"): refuse,
    **{(state, "failed", "fail_tasks"): fail_trial for state in ("pending", "scheduled")},
    ("scheduled", "pending", "reroute_tasks"): reroute,
    ("processing", "processing", "extend_tasks"): by_claim("extend_tasks(ARRAY[id], claim_token)"),
    ("processing", "pending", "return_tasks"): by_claim("return_tasks(ARRAY[id], claim_token)"),
    ("processing", "scheduled", "return_tasks"): by_claim("return_tasks(ARRAY[id], claim_token, pause => '10 s')"),
    ("processing", "pending", "recover_tasks"): RECOVER,
    ("processing", "failed", "recover_tasks"): last_attempt(RECOVER),
    ("scheduled", "pending", "promote_tasks"): later(7, "SELECT pricing.promote_tasks()"),
    ("scheduled", "pending", "end_waits"): release,
    ("scheduled", "pending", "return_waiting"): outage(is_over=True),
    ("scheduled", "pending", "probe_outage"): outage(is_over=False),
    ("pending", "cancelled", "stop_tasks"): leave,
    ("scheduled", "cancelled", "stop_tasks"): leave,
    **{(state, "cancelled", "cancel_tasks"): by_id("cancel_tasks") for state in ("pending", "scheduled", "processing")},
    **{(state, "cancelled", "retire_tasks"): retire for state in ("pending", "scheduled", "processing")},
    **{(state, "failed", "fail_impossible_tasks"): forbid for state in ("pending", "scheduled")},
    **{(state, "pending", "retry_tasks"): by_id("retry_tasks") for state in ("failed", "cancelled")},
    **{(state, "[*]", "prune"): forget for state in ("completed", "failed", "cancelled")},
}


def test_every_transition_of_the_page_is_taken_here() -> None:
    assert TAKEN.keys() == listed()


@pytest.mark.parametrize(("start", "end", "function"), TAKEN)
def test_a_transition_ends_where_the_page_says(core: Core, clock: Clock, start: str, end: str, function: str) -> None:
    def state() -> str:
        tasks = core.tasks("AAPL")
        return tasks[0].status if tasks else "[*]"

    STATES[start](core, clock)
    assert state() == start
    TAKEN[start, end, function](core, clock)
    assert state() == end
    for error in (error for task in core.tasks("AAPL") for error in task.errors):
        assert error.keys() == {"at", "attempt", "kind", "message"}
        assert error["message"]


# What each way of failing leaves behind


HISTORY: dict[str, tuple[Step, str]] = {
    "a failure": (TAKEN["processing", "scheduled", "fail_tasks"], "provider_down"),
    "the last failure": (last_attempt(TAKEN["processing", "scheduled", "fail_tasks"]), "provider_down"),
    "a lost worker at the last attempt": (last_attempt(RECOVER), "worker_lost"),
    "a worker that stops": (TAKEN["processing", "pending", "return_tasks"], "worker_stopped"),
    "a cancel": (by_id("cancel_tasks"), "cancelled"),
    "a retired type": (retire, "retired"),
}


@pytest.mark.parametrize("how", HISTORY)
def test_a8_every_way_to_fail_is_in_the_tasks_history(core: Core, clock: Clock, how: str) -> None:
    step, kind = HISTORY[how]
    processing(core, clock)
    core.rows(
        "UPDATE pricing.api_call_queue_live SET errors ="
        """ '[{"at": "2026-01-01T00:00:00Z", "attempt": 0, "kind": "old", "message": "earlier"}]'"""
    )
    step(core, clock)
    task = core.task("AAPL")
    assert [error["kind"] for error in task.errors] == ["old", kind], "what was there before stays"
    newest = task.errors[-1]
    assert newest.keys() == {"at", "attempt", "kind", "message"}
    assert newest["attempt"] == (4 if "last" in how else 1)
    assert newest["message"]
    assert core.one("SELECT pricing.clock() - CAST(:at AS timestamptz) < interval '10 s'", at=newest["at"])


def test_a8_tasks_that_failed_together_do_not_come_back_together(core: Core) -> None:
    core.enqueue(QUOTE, *(f"S{number:03d}" for number in range(60)))
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    waits = sorted(task.run_after for task in core.tasks())
    assert len(set(waits)) > 50
    assert 0.5 < (waits[-1] - waits[0]).total_seconds() <= 1.0


# Kinds and their consequence

DEAD, AGAIN, SNOOZED, AT_ONCE = ("failed", 1), ("scheduled", 1), ("scheduled", 0), ("pending", 0)
CONSEQUENCE: dict[FailureKind, tuple[str, int]] = {
    FailureKind.UNKNOWN_SYMBOL: DEAD,
    FailureKind.PLAN_RESTRICTED: DEAD,
    FailureKind.ENDPOINT_RESTRICTED: DEAD,
    FailureKind.REQUEST_REFUSED: AGAIN,
    FailureKind.MISCONFIGURED: DEAD,
    FailureKind.THROTTLED: SNOOZED,
    FailureKind.UNFINISHED: SNOOZED,
    FailureKind.KEY_REFUSED: SNOOZED,
    FailureKind.IMPLAUSIBLE: AGAIN,
    FailureKind.STALE_SOURCE: AGAIN,
    FailureKind.SCHEMA_DRIFT: AGAIN,
    FailureKind.PROVIDER_DOWN: AGAIN,
    FailureKind.NOT_STORABLE: AGAIN,
    FailureKind.CLIENT_FAULT: AGAIN,
    FailureKind.WORKER_LOST: ("pending", 1),
    FailureKind.WORKER_STOPPED: AT_ONCE,
    FailureKind.DATABASE_CONFLICT: AT_ONCE,
}


@pytest.mark.parametrize("kind", FailureKind)
def test_a8_each_kind_has_its_consequence(core: Core, clock: Clock, kind: FailureKind) -> None:
    pending(core, clock)
    if kind is FailureKind.WORKER_LOST:
        core.claim_one()
        RECOVER(core, clock)
    elif CONSEQUENCE[kind] == AT_ONCE:
        call = core.claim_one()
        core.call(
            "SELECT pricing.return_tasks(CAST(:ids AS bigint[]), CAST(:token AS uuid), :kind, 'why')",
            ids=call.task_ids,
            token=call.claim_token,
            kind=kind.value,
        )
    else:
        core.fail(core.claim_one(), kind, "why")
    task = core.task("AAPL")
    assert (task.status, task.attempt) == CONSEQUENCE[kind]
    assert [error["kind"] for error in task.errors] == [kind.value]
    assert (task.failure_kind is not None) is (task.status == "failed")
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert (pair.backoff_until is not None) is (task.status == "failed"), "only the dead back off"
