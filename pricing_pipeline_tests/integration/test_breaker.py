"""B16: one breaker for each provider, that sees every call; one probe across all workers; pauses of keys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.operations import alerts
from pricing_pipeline.queue.limits import ProviderState
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import is_thorough

pytestmark = pytest.mark.usefixtures("still")

DOWN = FailureKind.PROVIDER_DOWN


@pytest.fixture(autouse=True)
def lots_to_do(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, *(f"S{number:04d}" for number in range(400 if is_thorough() else 120)))


def settle(core: Core, call: Call, kind: FailureKind | None) -> None:
    """What a worker does with the outcome, the queue's side included."""
    if kind is None:
        core.complete(call)
        core.settle(call)
    else:
        core.fail(call, kind, retry_after=0)
        core.settle(call, 300, "failed", kind=kind)


def calls(core: Core, *outcomes: FailureKind | None) -> None:
    for kind in outcomes:
        settle(core, core.claim_one(), kind)


def breaker(core: Core) -> str:
    return core.allowance().breaker


def opened(core: Core) -> ProviderState:
    calls(core, *[DOWN] * 10)
    assert breaker(core) == "open"
    return core.allowance()


def test_b16_ten_faults_that_are_half_of_all_calls_open_it(core: Core) -> None:
    calls(core, *[None, DOWN] * 9)
    assert breaker(core) == "closed", "nine faults are too few"
    calls(core, None, None, DOWN)
    assert breaker(core) == "closed", "ten of 21 calls are less than half"
    calls(core, DOWN)
    allowance = core.allowance()
    assert allowance.breaker == "open", "eleven of 22"
    assert allowance.breaker_seconds == pytest.approx(60)
    assert allowance.breaker_reason == "11 of 22 calls failed, the last one: it was provider_down"
    assert core.claim(max_calls=10) == []


def test_b16_what_is_older_than_ten_minutes_is_forgotten(core: Core, clock: Clock) -> None:
    calls(core, *[DOWN] * 9)
    clock.advance(601)
    calls(core, *[DOWN] * 9)
    assert breaker(core) == "closed"
    calls(core, DOWN)
    assert breaker(core) == "open"


FAULTS = {FailureKind.PROVIDER_DOWN, FailureKind.SCHEMA_DRIFT, FailureKind.THROTTLED}


def test_b16_faults_of_the_provider_count_and_ours_do_not(core: Core) -> None:
    """A wrong key, symbol, plan or request is ours; snoozed refusals for speed are the provider's."""
    is_fault = "SELECT pricing.is_provider_fault(:kind)"
    assert {kind for kind in FailureKind if core.one(is_fault, kind=kind.value)} == FAULTS
    for kind, state in ((FailureKind.KEY_REFUSED, "closed"), (FailureKind.THROTTLED, "open")):
        for call in core.claim(max_calls=10):
            core.settle(call, 300, "failed", kind=kind)
        assert breaker(core) == state


def test_b8_other_providers_go_on(core: Core) -> None:
    core.enqueue(NAV, "118632")
    opened(core)
    assert len(core.claim(MFAPI)) == 1
    assert core.allowance(MFAPI).breaker == "closed"


def test_b16_b21_a_breaker_is_told_since_it_opened_first(core: Core, clock: Clock) -> None:
    opened(core)
    began = core.one("SELECT breaker_began_at FROM pricing.provider_state WHERE provider = 'twelvedata'")
    for pause in (61, 121):
        clock.advance(pause)
        calls(core, DOWN)
    state = core.rows("SELECT breaker_began_at, breaker_since FROM pricing.provider_state WHERE breaker = 'open'")[0]
    assert state.breaker_since > state.breaker_began_at == began
    alerts.look(core.engine)
    says = core.one("SELECT says FROM pricing.alerts WHERE rule = 'breaker_open'")
    assert f"are stopped since {core.one('SELECT pricing.format_time(:at)', at=began)}: the last probe failed" in says
    clock.advance(241)
    calls(core, None)
    assert core.rows("SELECT FROM pricing.provider_state WHERE breaker_began_at IS NOT NULL") == []


def test_b16_exactly_one_probe_whose_success_closes_it(core: Core, clock: Clock) -> None:
    opened(core)
    clock.advance(55)
    assert core.claim() == []
    clock.advance(6)
    core.lift_limits(batch_size=100)
    (probe,) = core.claim(max_calls=10, worker="a")
    assert len(probe.tasks) == 1, "a probe risks no batch"
    assert breaker(core) == "half_open"
    assert [core.claim(max_calls=10, worker=worker) for worker in "bcd"] == [[], [], []]
    settle(core, probe, None)
    assert breaker(core) == "closed"
    assert len(core.claim_one().tasks) == 100
    assert core.allowance().breaker_reason is None


def test_b16_a_failed_probe_doubles_the_wait_up_to_ten_minutes(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.api_call_queue_live SET priority = 0")
    opened(core)
    for wait in (60, 120, 240, 480, 600, 600):
        assert core.allowance().breaker_seconds == pytest.approx(wait)
        clock.advance(wait - 8)
        assert core.claim() == []
        clock.advance(9)
        calls(core, DOWN)
    clock.advance(601)
    calls(core, None)
    clock.advance(1)
    opened(core)
    assert core.allowance().breaker_seconds == pytest.approx(60), "a success resets the doubling"


def test_b16_while_a_viewer_waits_a_probe_is_made_within_every_minute(core: Core, clock: Clock) -> None:
    """So viewers have their prices within a minute of the provider's return."""
    opened(core)
    clock.advance(61)
    calls(core, DOWN)
    for wait in (120, 240, 480, 600):
        until = core.one("SELECT breaker_until FROM pricing.provider_state WHERE provider = 'twelvedata'")
        assert (until - core.clock()).total_seconds() == pytest.approx(wait), "the wait for others doubles"
        assert core.allowance().breaker_seconds == pytest.approx(45), "and viewers are told of theirs"
        clock.advance(44)
        assert core.claim(max_calls=10) == []
        clock.advance(1)
        (probe,) = core.claim(max_calls=10)
        assert len(probe.tasks) == 1
        assert core.claim(max_calls=10) == [], "one across all workers"
        settle(core, probe, DOWN)
    clock.advance(60)
    calls(core, None)
    assert breaker(core) == "closed"


def test_b16_what_failed_before_it_closed_does_not_open_it_again(core: Core, clock: Clock) -> None:
    opened(core)
    clock.advance(61)
    calls(core, None)
    calls(core, *[DOWN] * 9)
    assert breaker(core) == "closed"


def test_b16_a_probe_that_finds_a_fault_of_ours_closes_it(core: Core, clock: Clock) -> None:
    """The provider answered, and properly: it is up."""
    opened(core)
    clock.advance(61)
    calls(core, FailureKind.UNKNOWN_SYMBOL)
    assert breaker(core) == "closed"


def test_b16_a_lost_probe_does_not_keep_it_half_open(core: Core, clock: Clock) -> None:
    """Recovery of stuck work runs first, and makes room for another probe at once."""
    opened(core)
    clock.advance(61)
    lost = core.claim_one(worker="killed")
    clock.advance(61)
    core.call("SELECT pricing.run_duties()")
    core.call("SELECT pricing.expire_calls()")
    assert breaker(core) == "open"
    probe = core.claim_one(worker="other")
    core.settle(lost)
    assert breaker(core) == "half_open", "a late word of the lost one decides nothing"
    settle(core, probe, None)
    assert breaker(core) == "closed"


def test_b16_even_without_recovery_a_lost_probe_counts_no_longer_than_its_lease(core: Core, clock: Clock) -> None:
    opened(core)
    clock.advance(61)
    lost = core.claim_one()
    clock.advance(58)
    assert core.claim() == []
    clock.advance(3)
    probe = core.claim_one()
    settle(core, lost, DOWN)
    assert breaker(core) == "half_open"
    settle(core, probe, None)
    assert breaker(core) == "closed"


def test_b16_calls_that_were_under_way_when_it_opened_decide_nothing(core: Core, clock: Clock) -> None:
    first, second = core.claim(max_calls=2)
    until = opened(core).breaker_seconds
    settle(core, first, None)
    settle(core, second, DOWN)
    allowance = core.allowance()
    assert (allowance.breaker, allowance.breaker_seconds) == ("open", pytest.approx(until))


def test_b16_a_late_worker_says_nothing_about_its_provider(core: Core) -> None:
    """0 late writes to the breaker."""
    for call in core.claim(max_calls=10):
        core.settle(call, 300, "failed", kind=DOWN, is_owned=False)
    assert core.one("SELECT count(*) FROM pricing.collector_call_log WHERE outcome = 'failed'") == 10
    calls(core, DOWN)
    assert breaker(core) == "closed"


def test_b16_why_a_provider_is_left_alone_is_said_in_words(core: Core, clock: Clock) -> None:
    assert core.allowance().stop is None
    opened(core)
    stop = core.allowance().stop
    assert stop is not None
    assert stop.startswith("twelvedata: the breaker of twelvedata is open since ")
    assert "(10 of 10 calls failed" in stop
    assert "; the next probe is made at " in stop
    clock.advance(61)
    assert "the next task is the probe" in (core.allowance().stop or "")
    core.claim_one()
    assert "a probe is under way" in (core.allowance().stop or "")


def test_c1_after_a_pause_one_call_feels_the_way(core: Core, clock: Clock) -> None:
    """No wave follows a block, however many workers wait for its end."""
    core.throttle(TWELVEDATA, 20)
    assert core.claim(max_calls=10) == []
    clock.advance(21)
    (feeler,) = core.claim(max_calls=10)
    assert [core.claim(max_calls=10) for _ in range(3)] == [[], [], []]
    core.throttle(TWELVEDATA, None)
    settle(core, feeler, FailureKind.THROTTLED)
    assert core.claim(max_calls=10) == [], "refused again: a longer pause"
    clock.advance(61)
    settle(core, core.claim_one(), None)
    assert len(core.claim(max_calls=10)) == 10, "answered: all go on"


def test_c1_a_feeler_whose_worker_died_stops_nobody_for_long(core: Core, clock: Clock) -> None:
    core.throttle(TWELVEDATA, 5)
    clock.advance(6)
    core.claim_one(worker="killed")
    clock.advance(58)
    assert core.claim() == []
    clock.advance(3)
    assert len(core.claim()) == 1


def test_b16_the_breaker_reads_failed_calls_and_only_once_it_matters_all(core: Core) -> None:
    """Deciding after a fault must not cost a scan of the log, of which a month is kept."""
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at, finished_at, outcome)"
        " SELECT 'twelvedata', 'equity_quote', '{}', '-infinity', 'infinity', 1, 600, 'w',"
        " pricing.clock() - n * interval '1 minute', pricing.clock(), 'ok' FROM generate_series(11, 5000) AS n"
    )
    core.rows("ANALYZE pricing.collector_call_log")
    plan = "\n".join(
        row[0]
        for row in core.rows(
            "EXPLAIN SELECT count(*) FROM pricing.collector_call_log c WHERE c.provider = 'twelvedata'"
            " AND c.started_at > pricing.clock() - interval '10 minutes' AND c.failure_kind IS NOT NULL"
        )
    )
    assert "collector_call_log_failed" in plan or "collector_call_log_rate" in plan
    assert "Seq Scan" not in plan
    calls(core, *[DOWN] * 10)
    assert breaker(core) == "open"
    assert core.clock() - timedelta(minutes=1) < core.one(
        "SELECT breaker_since FROM pricing.provider_state WHERE provider = 'twelvedata'"
    )
