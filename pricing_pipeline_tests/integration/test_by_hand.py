"""What a person does to tasks, and what ends a back-off: retry, cancel, retire, resolve."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from pricing_pipeline.domain.answers import FailureKind, RejectedValue
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.tools.audit import audit

SPRING = (date(2010, 3, 1), date(2010, 5, 31))
DAY = 86_400


def dead(core: Core, symbol: str = "AAPL", message: str = "no such symbol") -> int:
    """A watched pair whose task has died; returns the task's id."""
    core.heartbeat("ann", (QUOTE, symbol))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, message)
    task_id: int = core.tasks(symbol)[-1].id
    return task_id


def retry(core: Core, *ids: int) -> list[tuple[int, str, int | None]]:
    with core.engine.begin() as connection:
        return [(one.task_id, one.outcome, one.live_id) for one in task_queue.retry(connection, ids)]


def failed(core: Core) -> list[int]:
    with core.engine.begin() as connection:
        return task_queue.failed(connection, None, None)


def cancel(core: Core, *ids: int) -> list[tuple[int, str]]:
    with core.engine.begin() as connection:
        return [(one.task_id, one.outcome) for one in task_queue.cancel(connection, ids)]


def backoff_until(core: Core, symbol: str = "AAPL", data_type: str = QUOTE) -> object:
    pair = core.demand_of(data_type, symbol)
    assert pair is not None
    return pair.backoff_until


# Retry


def test_a8_a_retry_gives_back_every_attempt_and_ends_the_backoff(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    for _ in range(4):
        core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN, "HTTP 500")
        clock.advance(150)
        core.promote()
    died = core.task("AAPL")
    assert (died.status, died.attempt) == ("failed", 4)
    assert retry(core, died.id) == [(died.id, "retried", died.id)]
    task = core.task("AAPL")
    assert (task.id, task.status, task.attempt, task.failure_kind, task.finished_at) == (
        died.id,
        "pending",
        0,
        None,
        None,
    )
    assert [error["kind"] for error in task.errors] == ["provider_down"] * 4 + ["retried"]
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert (pair.failures, pair.backoff_until, pair.last_failure) == (0, None, None)
    assert pair.became_due_at is not None
    assert core.enqueue_due() == 0, "the task is live, so the pair waits for it"
    core.finish(core.claim_one())
    assert core.task("AAPL").status == "completed"
    audit(core, acknowledged=1)


def test_a8_of_several_deaths_of_one_pair_the_last_is_retried(core: Core, clock: Clock) -> None:
    first = dead(core)
    clock.advance(3601)
    core.enqueue_due()
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    second = core.tasks("AAPL")[-1].id
    assert retry(core, first, second) == [(first, "live_already", second), (second, "retried", second)]
    assert [task.status for task in core.tasks("AAPL")] == ["failed", "pending"]


def test_a8_a_retry_reports_what_it_cannot_do(core: Core) -> None:
    gone = dead(core)
    core.enqueue(QUOTE, "IBM")
    pending = core.task("IBM").id
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE data_type = 'fx_rate'")
    core.enqueue(FX, "EUR/USD")
    unrouted = core.task("EUR/USD").id
    assert retry(core, unrouted, pending, 999_999) == [
        (pending, "not_dead", None),
        (unrouted, "misconfigured", None),
        (999_999, "unknown", None),
    ]
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert retry(core, gone) == [(gone, "retired", None)]
    assert core.task("AAPL").status == "failed"


def test_a8_a_task_of_a_removed_instrument_is_not_retried(core: Core) -> None:
    gone = dead(core)
    assert failed(core) == [gone]
    core.rows("SELECT pricing.remove_instruments(ARRAY['AAPL'])")
    assert failed(core) == []
    assert retry(core, gone) == [(gone, "removed", None)]
    assert core.task("AAPL").status == "failed"


@pytest.mark.parametrize("days", [None, SPRING])
def test_d5_a_task_of_a_paused_instrument_is_not_retried(core: Core, days: tuple[date, date] | None) -> None:
    core.enqueue(DAILY, "AAPL", days=days)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    gone = core.task("AAPL").id
    core.pause("AAPL")
    assert retry(core, gone) == [(gone, "paused", None)]
    assert (core.task("AAPL").status, core.claim()) == ("failed", [])
    core.pause("AAPL", paused=False)
    assert retry(core, gone) == [(gone, "retried", gone)]


def test_a5_a_retry_follows_the_route_of_today(core: Core) -> None:
    """Unrouted when it was queued; its days and its backfill are kept."""
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE data_type = 'equity_daily'")
    core.enqueue(DAILY, "AAPL", days=SPRING, priority=-2)
    task = core.task("AAPL")
    assert (task.status, task.provider, task.priority, task.first_day) == ("failed", None, -2, SPRING[0])
    core.rows("UPDATE pricing.provider_routing SET is_active = true")
    assert retry(core, task.id) == [(task.id, "retried", task.id)]
    task = core.task("AAPL")
    assert (task.status, task.provider, (task.first_day, task.last_day)) == ("pending", TWELVEDATA, SPRING)


def test_a5_a_retry_asks_those_again_who_had_refused_it(core: Core) -> None:
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)")
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    core.fail(core.claim_one("yahoo"), FailureKind.UNKNOWN_SYMBOL)
    died = core.task("AAPL")
    assert died.status == "failed"
    assert retry(core, died.id) == [(died.id, "retried", died.id)]
    assert core.task("AAPL").provider == "twelvedata"
    assert core.rows("SELECT FROM pricing.route_refusals") == []


def test_a8_a_retried_task_of_a_backfill_opens_it_again(core: Core) -> None:
    planned = core.one(
        "SELECT backfill_id FROM pricing.plan_backfill('equity_daily', '2010-01-01', '2010-01-31', '{AAPL}') LIMIT 1"
    )
    core.fail(core.claim_one(), FailureKind.REQUEST_REFUSED)
    core.rows("UPDATE pricing.backfills SET finished_at = pricing.clock()")
    retry(core, core.task("AAPL").id)
    assert core.one("SELECT finished_at FROM pricing.backfills WHERE backfill_id = :id", id=planned) is None


def test_c1_a_retried_task_may_be_snoozed_for_a_day_again(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    clock.advance(DAY + 1)
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=40)
    died = core.task("AAPL")
    assert died.status == "failed"
    retry(core, died.id)
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=40)
    assert core.task("AAPL").status == "scheduled"


def test_a8_all_failed_can_be_chosen_by_type_and_provider(core: Core) -> None:
    first = dead(core)
    core.enqueue(NAV, "118632")
    core.fail(core.claim_one(MFAPI), FailureKind.UNKNOWN_SYMBOL)
    second = core.task("118632").id
    cancelled = core.enqueue(QUOTE, "IBM") and core.task("IBM").id
    cancel(core, cancelled)

    def failed(data_type: str | None = None, provider: str | None = None) -> list[int]:
        with core.engine.connect() as connection:
            return task_queue.failed(connection, data_type, provider)

    assert failed() == [first, second]
    assert failed(QUOTE) == failed(provider=TWELVEDATA) == [first]
    assert failed(NAV, MFAPI) == [second]
    assert failed(NAV, TWELVEDATA) == []


# Cancel


def scheduled(core: Core) -> None:
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=60)


def processing(core: Core) -> None:
    core.claim_one()


@pytest.mark.parametrize(
    "prepare", [lambda core: None, scheduled, processing], ids=["pending", "scheduled", "processing"]
)
def test_e4_a_live_task_is_cancelled_and_kept_in_view(core: Core, prepare: object) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    prepare(core)  # type: ignore[operator]
    task_id = core.task("AAPL").id
    assert cancel(core, task_id, 999_999) == [(task_id, "cancelled"), (999_999, "unknown")]
    task = core.task("AAPL")
    assert (task.id, task.status, task.failure_kind) == (task_id, "cancelled", "cancelled")
    assert (task.errors[-1]["kind"], task.errors[-1]["message"]) == ("cancelled", "cancelled by hand")
    assert cancel(core, task_id) == [(task_id, "finished")]
    audit(core, acknowledged=1)


def test_e4_a_running_tasks_finish_is_refused_and_its_call_still_settles(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    call = core.claim_one()
    cancel(core, core.task("AAPL").id)
    core.finish(call)
    assert core.statuses() == {"AAPL": "cancelled", "IBM": "completed"}
    assert core.latest("AAPL") is None
    assert core.latest("IBM") is not None
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "ok"
    assert core.allowance().used_bytes == 600
    audit(core, acknowledged=2)


def test_e4_what_was_cancelled_is_not_started_again_for_an_hour(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    cancel(core, core.task("AAPL").id)
    clock.advance(3500)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.rows("SELECT pricing.repair_demand()")
    assert core.enqueue_due() == 0
    clock.advance(110)
    assert core.enqueue_due() == 1


def test_e4_nothing_else_starts_what_was_cancelled_within_the_hour(core: Core, clock: Clock) -> None:
    """A read, a change of the TTL, and leaving and coming back would, if the pair were not backing off."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    cancel(core, core.task("AAPL").id)
    clock.advance(120)
    core.read("AAPL")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 2 WHERE data_type = 'equity_quote'")
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    core.clean()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.enqueue_due()
    assert [task.status for task in core.tasks("AAPL") if task.data_type == QUOTE] == ["cancelled"]


def test_e4_a_cancelled_task_can_be_retried(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    task_id = core.task("AAPL").id
    cancel(core, task_id)
    assert retry(core, task_id) == [(task_id, "retried", task_id)]
    assert backoff_until(core) is None
    core.finish(core.claim_one())
    assert core.task("AAPL").status == "completed"


# What else ends a back-off


def test_a8_a_change_of_route_ends_the_backoff_of_its_pairs(core: Core) -> None:
    for symbol in ("AAPL", "IBM"):
        dead(core, symbol)
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider)"
        " VALUES ('equity_quote', 'IBM', 'twelvedata')"
    )
    assert backoff_until(core, "IBM") is None
    assert backoff_until(core, "AAPL") is not None
    assert core.enqueue_due() == 1
    core.rows(
        "UPDATE pricing.provider_routing SET provider = 'mfapi' WHERE data_type = 'equity_quote' AND symbol IS NULL"
    )
    assert backoff_until(core, "AAPL") is None
    dead_again = core.demand_of(QUOTE, "AAPL")
    assert dead_again is not None
    assert dead_again.due_at <= core.clock()


def test_a8_a_deleted_route_ends_the_backoff_too(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider)"
        " VALUES ('equity_quote', 'IBM', 'twelvedata')"
    )
    dead(core, "IBM")
    core.rows("DELETE FROM pricing.provider_routing WHERE symbol = 'IBM'")
    assert backoff_until(core, "IBM") is None


def test_a8_switching_a_provider_ends_the_backoff_of_what_is_routed_to_it(core: Core) -> None:
    dead(core)
    core.heartbeat("ann", (NAV, "118632"))
    core.fail(core.claim_one(MFAPI), FailureKind.UNKNOWN_SYMBOL)
    core.rows("UPDATE pricing.data_collectors SET description = 'same as before'")
    assert backoff_until(core) is not None
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'twelvedata'")
    assert backoff_until(core) is None
    assert backoff_until(core, "118632", NAV) is not None


# Retire


def test_b1_tasks_of_a_retired_type_are_cancelled_and_not_fetched(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (NAV, "118632"))
    core.lift_limits(batch_size=1)
    running = core.claim_one()
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert core.statuses() == {"AAPL": "cancelled", "IBM": "cancelled", "118632": "pending"}
    assert {task.failure_kind for task in core.tasks() if task.data_type == QUOTE} == {"retired"}
    assert core.complete(running) == set()
    assert core.claim() == []
    assert core.enqueue(QUOTE, "META") == 0, "nor is anything of it queued"
    assert core.tasks("META") == []
    core.rows("UPDATE pricing.data_type_registry SET is_active = true")
    core.rows("SELECT pricing.repair_demand()")
    assert core.enqueue_due() == 2, "back in use, its viewers are served again"


def test_b1_a_task_that_slipped_in_while_its_type_was_retired_is_found(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.rows("ALTER TABLE pricing.data_type_registry DISABLE TRIGGER type_retired")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert core.task("AAPL").status == "pending"
    assert "retire_tasks" in core.one("SELECT pricing.run_duties()")
    assert core.task("AAPL").status == "cancelled"


# Resolved, and how long the dead are kept


def resolved(core: Core, symbol: str) -> object:
    return core.one("SELECT resolved_at FROM pricing.api_call_queue WHERE symbol = :symbol LIMIT 1", symbol=symbol)


def is_kept_after(core: Core, clock: Clock, days: int) -> bool:
    """Whether the first task of AAPL is still there when so many days have passed, and the queue was pruned."""
    first = core.tasks("AAPL")[0].id
    clock.advance(days * DAY)
    core.one("SELECT pricing.resolve_tasks()")
    core.one("SELECT pricing.prune()")
    return first in {task.id for task in core.tasks("AAPL")}


def test_b9_what_nobody_has_settled_is_kept(core: Core, clock: Clock) -> None:
    dead(core)
    assert is_kept_after(core, clock, 400)


def test_b9_a_cancelled_task_is_kept_ninety_days(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    cancel(core, core.task("AAPL").id)
    assert resolved(core, "AAPL") is not None
    assert is_kept_after(core, clock, 89)
    assert not is_kept_after(core, clock, 2)


def test_b9_a_failed_task_is_kept_ninety_days_after_its_pair_was_refreshed(core: Core, clock: Clock) -> None:
    dead(core)
    clock.advance(50 * DAY)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.enqueue_due()
    core.finish(core.claim_one())
    clock.advance(1)
    assert core.one("SELECT pricing.resolve_tasks()") == 1
    assert core.one("SELECT pricing.resolve_tasks()") == 0
    assert is_kept_after(core, clock, 89)
    assert not is_kept_after(core, clock, 2)


def test_b9_tasks_of_a_removed_instrument_need_nobody(core: Core, cli: CommandLine) -> None:
    dead(core)
    assert cli("status", "--json").json["queue"]["dead"] == 1
    cli("instrument", "remove", "AAPL")
    assert resolved(core, "AAPL") is not None
    assert cli("status", "--json").json["queue"]["dead"] == 0


def test_b9_tasks_of_an_instrument_that_went_by_sql_need_nobody(core: Core) -> None:
    dead(core)
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = 'AAPL'")
    assert core.one("SELECT pricing.resolve_tasks()") == 1


def test_b9_a_failed_span_is_resolved_when_its_days_are_covered(core: Core, clock: Clock) -> None:
    core.enqueue(DAILY, "AAPL", days=SPRING, priority=-2)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    core.rows("SELECT pricing.cover('equity_daily', '{AAPL}', '2010-03-02', '2010-12-31')")
    assert core.one("SELECT pricing.resolve_tasks()") == 0, "a day of it is still missing"
    core.rows("SELECT pricing.cover('equity_daily', '{AAPL}', '2010-03-01', '2010-03-01')")
    assert core.one("SELECT pricing.resolve_tasks()") == 1


def test_b9_a_failed_span_is_resolved_though_a_day_of_it_came_unreadable(core: Core) -> None:
    core.enqueue(DAILY, "AAPL", days=SPRING, priority=-2)
    call = core.claim_one()
    core.fail(call, FailureKind.UNKNOWN_SYMBOL)
    core.rows("SELECT pricing.cover('equity_daily', '{AAPL}', '2010-03-02', '2010-12-31')")
    with core.engine.begin() as connection:
        broken = RejectedValue("AAPL", datetime(2010, 3, 1, tzinfo=UTC), "close 'NaN' is not a number", "NaN")
        quarantined_values.quarantine(connection, call, [broken], b"", 200)
    assert core.one("SELECT pricing.resolve_tasks()") == 1


def test_b9_pruning_waits_a_moment_for_a_reader_and_tries_again_later(core: Core, clock: Clock) -> None:
    """A reader of last month's tasks holds up neither those who finish tasks nor the rest of the pruning."""
    core.enqueue(QUOTE, "OLD")
    core.complete(core.claim_one())
    core.enqueue(QUOTE, "GONE")
    cancel(core, core.task("GONE").id)
    clock.advance(91 * DAY)
    leaf = core.one("SELECT tableoid::regclass::text FROM pricing.api_call_queue WHERE symbol = 'OLD'")
    with core.engine.begin() as reader:
        reader.exec_driver_sql(f"SELECT FROM {leaf}")
        before = core.one("SELECT clock_timestamp()")
        core.one("SELECT pricing.prune()")
        took = core.one("SELECT clock_timestamp()") - before
        assert timedelta(seconds=0.09) < took < timedelta(seconds=PATIENCE)
        assert core.statuses() == {"OLD": "completed"}
        core.enqueue(QUOTE, "NEW")
        core.complete(core.claim_one())
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"NEW": "completed"}


# Priority


def test_a2_a_keener_demand_raises_a_task_that_waits_for_its_time(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", priority=-1)
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=600)
    core.enqueue(QUOTE, "AAPL", priority=3)
    assert (core.task("AAPL").status, core.task("AAPL").priority) == ("scheduled", 3)
    for user in ("ann", "bob", "cem", "dan", "eve"):
        core.heartbeat(user, (QUOTE, "AAPL"))
    assert (core.task("AAPL").status, core.task("AAPL").priority) == ("scheduled", 5)


def test_b11_a_calls_other_tasks_are_untouched_by_what_is_done_to_one(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    call: Call = core.claim_one()
    cancel(core, core.task("IBM").id)
    assert core.extend(call) == {core.task("AAPL").id}
    assert core.complete(call) == {core.task("AAPL").id}
