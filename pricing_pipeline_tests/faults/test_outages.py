"""G2, A8: through an outage of a provider pairs stay late, it is asked now and then, and all come back with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.errors import PlanRestricted
from pricing_pipeline.refresh.refresher import Pace
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.outage_world import GRACE, TTL, OutageWorld, freeze, fresh_world
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import running_sandbox

Make = Callable[..., OutageWorld]
LONG = 60 if is_thorough() else 20


@pytest.fixture
def world(core: Core) -> Make:
    return lambda count, batch_size=100: fresh_world(core, count, batch_size)


def dies(world: OutageWorld, seconds: float = 400) -> None:
    """So long an outage that tasks die in it."""
    world.trouble = "provider_down"
    world.pass_by(seconds, step=5)
    assert world.core.one("SELECT count(*) FROM pricing.api_call_queue_dead") > 0


def all_back_off(world: OutageWorld) -> None:
    """All tasks have died, and every pair backs off for nine minutes."""
    world.core.rows("DELETE FROM pricing.api_call_queue_live")
    world.core.rows(
        "UPDATE pricing.demand SET became_due_at = NULL, owed_since = pricing.clock() - interval '4 min',"
        " due_at = pricing.clock() + interval '9 min', backoff_until = pricing.clock() + interval '9 min'"
    )


@pytest.mark.parametrize(
    ("minutes", "pairs", "batch_size", "trouble"),
    [
        (3, 2, 1, "provider_down"),
        (10, 2, 100, "provider_down"),
        (10, 2, 1, "schema_drift"),
        (10, 2, 1, "key_refused"),
        (10, 2, 1, "request_refused"),
        (10, 2, 1, "client_fault"),
        (10, 200, 100, "provider_down"),
        (LONG, 2, 1, "provider_down"),
        (LONG, 200, 20, "provider_down"),
    ],
)
def test_g2_a8_an_outage_is_late_in_time_bounded_and_over_within_a_minute(
    world: Make, minutes: int, pairs: int, batch_size: int, trouble: str
) -> None:
    """The invariant: calm only while every pair was confirmed within its TTL and 30 s.

    While the outage lasts the provider is asked once a minute at least, and about three times a minute at most once
    all have failed; a minute after its return every pair is fresh.
    """
    there = world(pairs, batch_size)
    there.trouble = trouble
    began = there.now
    while there.now < began + timedelta(minutes=minutes):
        there.pass_by(5, step=5)
        row = there.freshness()
        assert row.watched == row.fresh + row.due + row.late == pairs, "none is called its own fault"
        if there.now > min(there.confirmed.values()) + TTL + GRACE:
            assert row.late > 0
            assert not row.is_calm, "never said to be fresh while a pair is late"
        if there.now > max(there.confirmed.values()) + TTL + GRACE + timedelta(seconds=5):
            assert row.late == pairs, "all of them stay late, whatever became of their tasks"
    down = [at for at, _ in there.asked if at > began + TTL]
    pauses = [later - earlier for earlier, later in zip(down, [*down[1:], there.now], strict=True)]
    # A key that was refused may be used again a minute later.
    assert max(pauses) <= timedelta(seconds=75)
    settled = began + timedelta(minutes=5)
    assert there.calls_since(settled) <= 3 * max(minutes - 5, 0)

    there.trouble = None
    # A key that was refused rests for 60 s, whatever waits for it.
    there.pass_by(75 if trouble == "key_refused" else 60)
    assert there.states() == dict.fromkeys(there.symbols, "fresh")
    assert there.freshness().is_calm
    there.pass_by(20)
    assert there.core.one("SELECT count(*) FROM pricing.outages") == 0
    assert there.core.one("SELECT count(*) FROM pricing.demand WHERE owed_since IS NOT NULL OR failures > 0") == 0


def test_g2_a8_the_finding_two_pairs_and_a_provider_that_answers_503(core: Core) -> None:
    """A real refresher on a real sandbox, of whose clocks only the database's is moved."""
    freeze(core)
    core.lift_limits()
    there = OutageWorld(core, ["AAPL", "IBM"])

    def calm() -> bool:
        return there.freshness().is_calm

    with (
        running_sandbox(clock=lambda: there.now) as sandbox,
        refreshing(core.engine, sandbox.url) as refresher,
    ):

        def after(seconds: float) -> Callable[[], bool]:
            """Move the clock whenever nothing is to do, until so much time has passed."""
            until = there.now + timedelta(seconds=seconds)

            def is_over() -> bool:
                if refresher._in_flight:
                    return False
                if there.now >= until:
                    return True
                there.move(10)
                core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
                refresher._checks = refresher._ticks = Pace(0.0)
                refresher._woken.set()
                return False

            return is_over

        work_until(refresher, after(10))
        assert calm()
        sandbox.behave("status", status=503, body="down")
        work_until(refresher, after(400))
        assert {task.failure_kind for task in core.tasks() if task.status == "failed"} == {"provider_down"}
        assert (there.freshness().late, calm()) == (2, False)
        asked = len(sandbox.calls())
        work_until(refresher, after(120))
        assert 2 <= len(sandbox.calls()) - asked <= 8
        sandbox.behave_well()
        work_until(refresher, after(60))
        assert (there.freshness().fresh, calm()) == (2, True)


def test_a8_a_new_viewer_of_a_pair_in_trouble_waits_minutes_not_an_hour(world: Make) -> None:
    there = world(1)
    dies(there)
    there.core.heartbeat("bob", (QUOTE, "S0000"))
    pair = there.core.demand_of(QUOTE, "S0000")
    assert pair is not None
    assert pair.due_at - there.now <= timedelta(minutes=10)
    assert there.states() == {"S0000": "late"}


def test_a8_a_poisoned_symbol_is_not_asked_for_with_each_good_answer_of_others(world: Make) -> None:
    """What fails while the provider answers others comes back by its own pauses."""
    there = world(20 if is_thorough() else 8, batch_size=1)
    there.poisoned = {"S0007"}
    there.core.rows("UPDATE pricing.provider_state SET breaker_since = pricing.clock()")
    began = there.now
    there.pass_by(3600 if is_thorough() else 2400, step=5)
    tries = [at for at, asked in there.asked if "S0007" in asked and at > began]
    # Four attempts to a task, of which one may be at once; the pair backs off 1, 2, 4, 8, 10 min.
    assert 12 < len(tries) <= 4 * 8
    assert max(sum(at <= one < at + timedelta(minutes=10) for one in tries) for at in tries[12:]) <= 8
    assert there.states()["S0007"] == "late"
    assert there.core.one("SELECT count(*) FROM pricing.outages") <= 2


def test_a8_what_fails_for_good_beside_an_outage_keeps_its_own_pause(world: Make) -> None:
    there = world(3, batch_size=1)
    there.unknown = {"S0001"}
    there.pass_by(90)
    assert there.states() == {"S0000": "fresh", "S0001": "refused", "S0002": "fresh"}
    dies(there)
    assert there.states() == {"S0000": "late", "S0001": "refused", "S0002": "late"}
    there.trouble = None
    there.pass_by(60)
    assert there.states() == {"S0000": "fresh", "S0001": "refused", "S0002": "fresh"}
    assert there.freshness().is_calm
    assert sum("S0001" in asked for _, asked in there.asked) == 2, "its first price, and the refusal"


def test_a8_only_one_probe_is_made_and_for_the_pair_that_was_asked_for_longest_ago(world: Make) -> None:
    there = world(5, batch_size=1)
    dies(there, seconds=1200)
    all_back_off(there)
    last = {symbol: max(at for at, asked in there.asked if symbol in asked) for symbol in there.symbols}
    before = len(there.asked)
    there.pass_by(58)
    (at, (probed,)) = there.asked[before]
    assert last[probed] == min(last.values())
    assert [asked for when, asked in there.asked[before:] if when < at + timedelta(seconds=4)] == [(probed,)]


def test_a8_nobody_who_watches_no_probe(world: Make) -> None:
    there = world(2, batch_size=1)
    dies(there, seconds=600)
    there.core.unsubscribe("ann", *((QUOTE, symbol) for symbol in there.symbols))
    there.move(300)
    all_back_off(there)
    assert there.tend() == 0
    assert there.core.one("SELECT count(*) FROM pricing.demand WHERE due_at <= pricing.clock()") == 0


def test_a8_a_pair_that_somebody_holds_is_passed_over_and_comes_back_a_second_later(world: Make) -> None:
    """Nothing of the return waits for a lock, and nothing is lost by not waiting."""
    there = world(3)
    dies(there, seconds=1200)
    back = "SELECT count(*) FROM pricing.demand WHERE due_at <= pricing.clock()"
    all_back_off(there)
    there.core.rows("UPDATE pricing.outages SET answered_at = pricing.clock() + interval '1 second'")
    with there.core.engine.connect() as other:
        other.execute(text("SELECT FROM pricing.demand WHERE symbol = 'S0001' FOR UPDATE"))
        assert there.tend() == 2
    assert there.core.one(back) == 2
    there.move(1)
    assert there.tend() == 1
    there.move(16)
    there.tend()
    assert there.core.one("SELECT count(*) FROM pricing.outages") == 0


def test_a8_an_answer_to_a_call_from_before_the_outage_does_not_end_it(world: Make) -> None:
    there = world(3, batch_size=1)
    there.move(61)
    there.core.enqueue_due()
    early, other, _ = there.core.claim(TWELVEDATA, max_calls=3)
    there.move(1)
    there.core.rows(
        "UPDATE pricing.collector_call_log SET started_at = pricing.clock() WHERE call_id = :id", id=other.id
    )
    there.trouble = "provider_down"
    there._answer(other)
    there.core.finish(early)
    assert there.core.one("SELECT answered_at FROM pricing.outages") is None


def test_a8_an_endpoint_that_the_plan_leaves_out_is_no_fault_of_a_symbol(core: Core) -> None:
    """The pair stays late; it is asked for once an hour, because each try costs a call of the plan."""
    freeze(core)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    call = core.claim_one()
    settle_failure(core.engine, call, PlanRestricted("403: not in your plan", is_whole_endpoint=True))
    assert {(task.status, task.failure_kind) for task in core.tasks()} == {("failed", "endpoint_restricted")}
    there = OutageWorld(core, ["AAPL", "IBM"])
    there.move(31)
    assert there.states() == {"AAPL": "late", "IBM": "late"}
    assert core.due_in(QUOTE, "AAPL") == pytest.approx(29, abs=1)


def test_a8_a_refusal_of_one_symbols_call_for_the_plan_is_not_the_symbols_fault(core: Core) -> None:
    """Of a symbol a provider says so in its answer. A page that says 403 may mean us all."""
    freeze(core)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    settle_failure(core.engine, core.claim_one(), PlanRestricted("403: forbidden"))
    assert core.task("AAPL").failure_kind == "endpoint_restricted"


def test_a8_the_back_off_by_kind(core: Core) -> None:
    for kind in FailureKind:
        own = core.one("SELECT pricing.is_symbol_fault(:kind)", kind=kind)
        assert own is (kind in (FailureKind.UNKNOWN_SYMBOL, FailureKind.PLAN_RESTRICTED))
        minutes = [
            core.one("SELECT extract(epoch FROM pricing.backoff_interval(:kind, :n)) / 60", kind=kind, n=n)
            for n in range(7)
        ]
        if own:
            assert minutes == [60, 120, 240, 480, 960, 1440, 1440]
        else:
            assert minutes == [1, 2, 4, 8, 10, 10, 10]


def test_a8_a_cancel_by_hand_is_a_wish_and_counts_as_no_trouble(world: Make) -> None:
    there = world(1)
    dies(there)
    there.core.rows("SELECT pricing.look_again('equity_quote')")
    there.core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), backoff_until = NULL")
    there.core.enqueue_due()
    there.core.rows("SELECT pricing.cancel_tasks(array_agg(id)) FROM pricing.api_call_queue_live")
    assert there.states() == {"S0000": "refused"}


def test_g2_a_pause_and_a_resume_owe_nothing_of_before(world: Make) -> None:
    there = world(1)
    dies(there)
    assert there.states() == {"S0000": "late"}
    there.core.pause("S0000")
    assert there.states() == {"S0000": "paused"}
    there.pass_by(700, step=10)
    assert there.core.one("SELECT owed_since FROM pricing.demand") is None
    there.core.pause("S0000", paused=False)
    assert there.states() == {"S0000": "due"}
    there.pass_by(40)
    assert there.states() == {"S0000": "late"}


def test_f4_why_says_that_a_pair_in_trouble_is_late_and_what_it_waits_for(world: Make) -> None:
    there = world(1)
    dies(there, seconds=300)
    all_back_off(there)
    with there.core.engine.connect() as connection:
        (late,) = freshness.why_late(connection, QUOTE, 5)
    assert late.state == "backing_off"
    assert "owed since 2026-03-10 15:0" in late.sentence
    assert "or at once when twelvedata answers; its task failed at" in late.sentence
    assert "as provider_down (twelvedata answered 503)" in late.sentence
    there.core.one("SELECT pricing.open_breaker('twelvedata', '10 of 10 calls failed')")
    with there.core.engine.connect() as connection:
        (late,) = freshness.why_late(connection, QUOTE, 5)
    assert late.state == "breaker_open"


@pytest.mark.parametrize("back", [3600, 3 * 86_400])
def test_a8_an_outage_during_which_the_clock_was_set_back_ends_for_all_pairs_at_once(world: Make, back: int) -> None:
    """Deaths of the time ahead hid the later ones, and pairs stayed old for minutes."""
    there = world(4, batch_size=1)
    there.trouble = "provider_down"

    def pass_by(seconds: int) -> None:
        for _ in range(seconds // 5):
            there.pass_by(5, step=5)
            there.core.call("SELECT pricing.run_duties()")

    pass_by(1200)
    there.move(-back)
    there.core.call("SELECT pricing.run_duties()")
    there._beaten_at = there.now - timedelta(hours=1)
    pass_by(300)
    there.trouble = None
    pass_by(90)
    assert set(there.states().values()) == {"fresh"}
