"""B14: a scheduled type walks over its instruments by key, bit by bit, behind all on-demand work."""

from __future__ import annotations

import pytest

from pricing_pipeline.demand import drains
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import NAV, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def funds(core: Core) -> list[str]:
    """1,700 funds, in the order a walk has them."""
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, verified_at)"
        " SELECT 'fund', lpad(n::text, 5, '0'), pricing.clock() FROM generate_series(1, 1700) AS n"
    )
    return [f"{number:05}" for number in range(1, 1701)]


def queued(core: Core) -> list[str]:
    return [row.symbol for row in core.rows("SELECT symbol FROM pricing.api_call_queue_live ORDER BY id")]


def drop(core: Core, count: int) -> None:
    """The oldest tasks are served."""
    core.rows(
        "DELETE FROM pricing.api_call_queue_live WHERE id IN"
        " (SELECT id FROM pricing.api_call_queue_live ORDER BY id LIMIT :count)",
        count=count,
    )


def is_walking(core: Core) -> bool:
    walking: bool = core.one("SELECT walk_slot IS NOT NULL FROM pricing.schedule_walks")
    return walking


def test_b14_a_walk_goes_in_chunks_and_waits_at_a_thousand_tasks(core: Core, funds: list[str]) -> None:
    assert core.enqueue_scheduled(NAV) == 500
    assert core.enqueue_due() == 500
    assert core.enqueue_due() == 0, "a thousand are queued"
    assert queued(core) == funds[:1000]
    drop(core, 200)
    assert core.enqueue_due() == 200
    drop(core, 1000)
    assert core.enqueue_due() == 500
    assert queued(core) == funds[1200:]
    assert is_walking(core), "it does not know yet that these were the last"
    assert core.enqueue_due() == 0
    assert not is_walking(core)


def test_b14_backfills_do_not_hold_a_walk_up(core: Core, funds: list[str]) -> None:
    core.rows(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority, window_start, window_end)"
        " SELECT 'equity_daily', 'S' || n, 'twelvedata', -2, '2010-01-01', '2010-01-31'"
        " FROM generate_series(1, 3000) AS n"
    )
    assert core.enqueue_scheduled(NAV) == 500
    assert core.enqueue_due() == 500


def test_b14_viewers_go_first_while_a_walk_is_under_way(core: Core, funds: list[str]) -> None:
    core.heartbeat("ann", *((NAV, f"9{number:04}") for number in range(800)))
    assert core.enqueue_scheduled(NAV) == 200, "what people want of the same provider counts, too"
    core.rows("UPDATE pricing.api_call_queue_live SET priority = 0 WHERE symbol LIKE '9%'")
    core.heartbeat("ann", (NAV, funds[-1]))
    assert core.one("SELECT max(priority) FROM pricing.api_call_queue_live WHERE provider = 'mfapi'") == 1
    assert core.claim_one("mfapi").symbols[0] == funds[-1]
    assert core.enqueue_due() == 0


def test_b14_the_next_slot_lets_a_walk_go_on_where_it_is(core: Core, funds: list[str], clock: Clock) -> None:
    """Else a slow queue would never see the instruments at the end."""
    core.enqueue_scheduled(NAV)
    core.enqueue_due()
    seen = queued(core)
    drop(core, 1000)
    clock.advance(3600)
    assert core.enqueue_scheduled(NAV) == 500
    seen += queued(core)
    for _ in range(10):
        drop(core, 1000)
        core.enqueue_due()
        seen += queued(core)
    assert not is_walking(core)
    assert seen == funds + funds[:1000]


def test_b14_a_walk_takes_active_instruments_that_do_not_back_off(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (NAV, "118632"), (NAV, "999999"))
    core.fail(core.claim_one("mfapi"), FailureKind.UNKNOWN_SYMBOL)
    core.unsubscribe("ann", (NAV, "999999"))
    clock.advance(90)
    core.clean()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.pause("119551")
    assert core.enqueue_scheduled(NAV) == 3
    assert queued(core) == ["120841", "125497", "999999"]


def test_b14_a_walk_ends_with_its_type(core: Core, funds: list[str]) -> None:
    core.enqueue_scheduled(NAV)
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    assert not is_walking(core)
    assert core.enqueue_due() == 0
    assert queued(core) == []
    assert core.enqueue_scheduled(NAV) is None


def test_b14_one_walk_that_fails_does_not_stop_the_others(core: Core, funds: list[str]) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class,"
        " refresh_strategy, refresh_schedule) VALUES ('a_nav', 'nav', 5, 'fund', 'scheduled', '0 11 * * *')"
    )
    core.rows("UPDATE pricing.schedule_walks SET walk_slot = pricing.clock()")
    core.rows("ALTER TABLE pricing.api_call_queue_live ADD CONSTRAINT broken CHECK (data_type <> 'a_nav')")
    assert core.enqueue_due() == 500
    assert queued(core) == funds[:500]
    with core.engine.connect() as connection:
        assert drains.outlook(connection).queued
