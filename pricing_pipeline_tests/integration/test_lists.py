"""F1: a provider's list of all latest prices serves many at the price of one call, and never stops anybody."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy.exc import IntegrityError

from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, Core
from pricing_pipeline_tests.support.refreshing import is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

SPRING = (date(2026, 1, 1), date(2026, 2, 28))


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


def sizes(core: Core, max_calls: int = 10) -> list[int]:
    return [len(call.tasks) for call in core.claim(MFAPI, max_calls)]


# With a server


def test_f1_few_watched_navs_are_asked_for_one_by_one(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    lift(core)
    core.heartbeat("ann", *((NAV, code) for code in codes(3)))
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)) == alone(codes(3))
    assert set(core.statuses().values()) == {"completed"}


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
