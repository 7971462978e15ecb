"""How many drains have work: by backlog, limits and measured calls; and that no more begin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support import backlogs

pytestmark = pytest.mark.usefixtures("still")


def wanted(core: Core, most: int = 5) -> int:
    count: int = core.call("SELECT pricing.wanted_drains(:most)", most=most)
    return count


def begin(core: Core, most: int) -> str | None:
    began: str | None = core.call("SELECT pricing.begin_drain('w', NULL, 120, NULL, :most)", most=most)
    return began


def test_b17_thirty_calls_at_once_are_work_for_three_drains(core: Core) -> None:
    backlogs.work_for_three(core)
    assert [wanted(core, most) for most in (1, 2, 3, 5)] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("change", "drains"),
    [
        ("UPDATE pricing.data_collectors SET max_in_flight = 3", 1),
        ("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'fmp'", 2),
        ("UPDATE pricing.provider_limits SET units = 1 WHERE provider <> 'twelvedata'", 2),
        ("DELETE FROM pricing.api_call_queue_live WHERE provider <> 'fmp'", 1),
        (
            "UPDATE pricing.api_call_queue_live SET status = 'scheduled', run_after = pricing.clock() + '1 min'",
            1,
        ),
        # Such calls are done before another drain has started.
        ("UPDATE pricing.collector_call_log SET finished_at = started_at + interval '0.1 s'", 1),
        ("UPDATE pricing.collector_call_log SET outcome = 'failed'", 1),
        ("DELETE FROM pricing.collector_call_log", 1),
        ("UPDATE pricing.collector_call_log SET units = 0, symbols = '{}'", 3),
    ],
)
def test_b17_a_drain_is_wanted_only_for_what_providers_would_take(core: Core, change: str, drains: int) -> None:
    """max_in_flight, switched off, limits, backlog, what waits for later, quick calls, failed calls, no call yet."""
    backlogs.work_for_three(core)
    core.rows(change)
    assert wanted(core) == drains


def test_b17_calls_that_ask_for_many_symbols_need_fewer_drains(core: Core) -> None:
    backlogs.work_for_three(core)
    core.rows("UPDATE pricing.collector_call_log SET symbols = CAST(:many AS text[])", many=["OLD"] * 10)
    assert wanted(core) == 1


def test_b17_as_many_drains_begin_as_have_work_however_many_try(core: Core) -> None:
    """Those of one moment, too: none is sent away because another begins."""
    backlogs.work_for_three(core)
    with ThreadPoolExecutor(5) as pool:
        begun = list(pool.map(lambda _: begin(core, 4), range(5)))
    assert sum(drain is not None for drain in begun) == 3
    assert begin(core, 4) is None
    assert core.one("SELECT pricing.lasting_drains()") == 3


def test_b17_a_drain_that_died_or_is_about_to_end_makes_room_for_one(core: Core, clock: Clock) -> None:
    backlogs.work_for_three(core)
    died, ending, well = (str(begin(core, 3)) for _ in range(3))
    core.rows("UPDATE pricing.drains SET ends_at = ends_at - interval '1 minute' WHERE drain_id = :id", id=ending)
    clock.advance(14)
    core.call("SELECT count(pricing.extend_drain(d)) FROM unnest(CAST(:ids AS uuid[])) AS d", ids=[ending, well])
    assert begin(core, 3) is None
    clock.advance(2)
    assert core.one("SELECT pricing.lasting_drains()") == 2, died
    assert begin(core, 3) is not None
    lives = "UPDATE pricing.drains SET lease_until = pricing.clock() + interval '1 minute' WHERE drain_id <> :died"
    core.rows(lives, died=died)
    assert begin(core, 3) is None
    clock.advance(30)
    assert begin(core, 3) is not None, "the successor of one that ends in 14 s"
