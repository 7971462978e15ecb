"""F1: a provider's list of all latest prices serves many at the price of one call, and never stops anybody."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy.exc import IntegrityError

from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

SPRING = (date(2026, 1, 1), date(2026, 2, 28))
LIST = "/mf/latest"


def codes(count: int, first: int = 118_000) -> list[str]:
    return [str(first + number) for number in range(count)]


def lift(core: Core, batch_from: int = 500) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 1000000")
    core.rows(
        "UPDATE pricing.provider_capabilities SET batch_from = :fewest WHERE provider = 'mfapi'",
        fewest=batch_from,
    )


def paths(sandbox: RunningSandbox) -> list[str]:
    return [call["path"] for call in sandbox.calls(MFAPI)]


def alone(symbols: list[str]) -> list[str]:
    return sorted(f"/mf/{code}/latest" for code in symbols)


def again(core: Core, clock: Clock) -> None:
    """What failed is tried once more."""
    clock.advance(145)
    core.promote()


def sizes(core: Core, max_calls: int = 10) -> list[int]:
    return [len(call.tasks) for call in core.claim(MFAPI, max_calls)]


# With a server


def test_f1_many_watched_navs_are_one_call_and_what_the_list_lacks_is_asked_for_alone(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    lift(core, batch_from=40)
    listed, lacking = codes(40), codes(2, first=200_000)
    core.heartbeat("ann", *((NAV, code) for code in listed + lacking))
    work_until(refresher, is_idle(core))
    assert paths(sandbox) == [LIST]
    assert core.one("SELECT count(*) FROM pricing.latest_prices WHERE data_type = 'mf_nav'") == 40
    failed = core.rows("SELECT symbol, failure_kind, errors FROM pricing.api_call_queue WHERE status = 'scheduled'")
    assert sorted(task.symbol for task in failed) == lacking
    assert {task.errors[0]["kind"] for task in failed} == {"schema_drift"}
    assert "asked for alone next" in failed[0].errors[0]["message"]

    again(core, clock)
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)[1:]) == alone(lacking)
    assert set(core.statuses().values()) == {"completed"}
    single = core.rows(
        "SELECT p.symbol, p.amount, p.scale, p.observed_at FROM pricing.latest_prices p WHERE p.symbol = '118032'"
    )
    core.enqueue(NAV, "118032")
    work_until(refresher, is_idle(core))
    assert paths(sandbox)[-1] == "/mf/118032/latest"
    assert single == core.rows(
        "SELECT p.symbol, p.amount, p.scale, p.observed_at FROM pricing.latest_prices p WHERE p.symbol = '118032'"
    ), "the list and the scheme's own answer say the same"
    audit(core)


def test_f1_few_watched_navs_are_asked_for_one_by_one(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    lift(core)
    core.heartbeat("ann", *((NAV, code) for code in codes(3)))
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)) == alone(codes(3))
    assert set(core.statuses().values()) == {"completed"}


@pytest.mark.parametrize(
    "fault", [{"kind": "status", "status": 500}, {"kind": "truncate"}, {"kind": "status", "status": 404}]
)
def test_b8_a_list_that_does_not_load_stops_nobody(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher, fault: dict[str, object]
) -> None:
    lift(core, batch_from=6)
    sandbox.behave(path="mf/latest", **fault)  # type: ignore[arg-type]
    core.enqueue(NAV, *codes(6))
    work_until(refresher, is_idle(core))
    assert paths(sandbox) == [LIST]
    assert set(core.statuses().values()) == {"scheduled"}
    again(core, clock)
    core.enqueue(NAV, *codes(2, first=119_000))
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)[1:]) == alone(codes(6) + codes(2, first=119_000))
    assert set(core.statuses().values()) == {"completed"}
    audit(core)


# What a claim makes of them


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(
    ("waiting", "expected"),
    [(19, [1] * 10), (20, [20]), (35, [35]), (50, [50]), (61, [50] + [1] * 9), (70, [50, 20])],
)
def test_f1_few_do_not_share_a_call_and_no_more_than_it_may_have(core: Core, waiting: int, expected: list[int]) -> None:
    lift(core, batch_from=20)
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 50 WHERE provider = 'mfapi'")
    core.enqueue(NAV, *codes(waiting))
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    assert sizes(core) == expected


@pytest.mark.usefixtures("still")
def test_f1_who_failed_is_alone_and_the_others_share_their_call(core: Core) -> None:
    lift(core, batch_from=2)
    core.enqueue(NAV, *codes(5))
    core.rows("UPDATE pricing.api_call_queue_live SET attempt = 1 WHERE symbol <= '118002'")
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    assert sizes(core) == [1, 1, 1, 2]


@pytest.mark.usefixtures("still")
def test_f1_a_claim_over_a_deep_backfill_locks_few_tasks(core: Core) -> None:
    """A list of 5,000 is no reason to lock thousands of spans for the sake of three calls."""
    lift(core, batch_from=50)
    core.enqueue(NAV, *codes(300), priority=-2, days=SPRING)

    def locked() -> int:
        # The server leaves the number of the transaction that locked a row.
        return core.one("SELECT count(*) FROM pricing.api_call_queue_live WHERE status = 'pending' AND xmax <> '0'")

    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    assert sizes(core, max_calls=3) == [1, 1, 1]
    assert locked() == 0
    core.enqueue(NAV, *codes(10, first=300_000))
    assert sizes(core, max_calls=3) == [1, 1, 1]
    assert locked() == 7, "of those that a list might have served"
    core.enqueue(NAV, *codes(60, first=400_000))
    assert sizes(core, max_calls=3) == [67], "they are more urgent than a backfill"
    assert locked() == 0


@pytest.mark.usefixtures("still")
def test_b10_a_probe_asks_for_one_though_a_list_would_serve_many(core: Core) -> None:
    lift(core, batch_from=2)
    core.enqueue(NAV, *codes(50))
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock(), breaker_openings = 1,"
        " breaker_until = pricing.clock() WHERE provider = 'mfapi'"
    )
    assert sizes(core) == [1]


# What else counts calls


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(("watched", "calls_a_round"), [(49, 49), (50, 1)])
def test_f2_what_is_watched_is_counted_in_the_calls_that_it_costs(
    core: Core, watched: int, calls_a_round: float
) -> None:
    lift(core, batch_from=50)
    core.heartbeat("ann", *((NAV, code) for code in codes(watched)))
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 1 WHERE data_type = 'mf_nav'")
    with core.engine.begin() as connection:
        (found,) = [row for row in limits.budgets(connection) if row.provider == MFAPI]
    assert (found.pairs, found.units_needed) == (watched, pytest.approx(calls_a_round))


@pytest.mark.parametrize(
    ("batch_from", "name"), [(0, "batch_from_is_positive"), (5001, "batch_from_is_at_most_batch_size")]
)
def test_f1_a_batch_that_nobody_could_fill_is_refused(core: Core, batch_from: int, name: str) -> None:
    with pytest.raises(IntegrityError, match=name):
        lift(core, batch_from)
