"""Who wants what, and what comes of it: heartbeats, leaving, clean-up, what the sensor sees.

What counts as stale is in test_staleness.py, many sessions at once in faults/test_contention.py, assets and sensors
in orchestration/.
"""

from __future__ import annotations

import pytest

from pricing_pipeline.demand import drains, schedules, viewers
from pricing_pipeline.errors import PairsRefused
from pricing_pipeline_tests.fixtures.core import DAILY, FX, MFAPI, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

AAPL, IBM = (QUOTE, "AAPL"), (QUOTE, "IBM")
MINUTE, DAY = 60, 86_400


# Viewers


def test_b6_many_viewers_cause_one_task_that_goes_before_others(core: Core) -> None:
    core.heartbeat("lonely", IBM)
    for number in range(20):
        core.heartbeat(f"user {number}", AAPL)
    assert core.enqueue_due() == 0
    assert {task.symbol: task.priority for task in core.tasks()} == {"AAPL": 20, "IBM": 1}


def test_b6_priority_is_the_number_of_viewers_when_a_pair_becomes_due(core: Core, clock: Clock) -> None:
    for number in range(7):
        core.heartbeat(f"user {number}", AAPL)
    core.heartbeat("user 0", AAPL)
    core.refresh()
    core.unsubscribe("user 6", AAPL)
    clock.advance(MINUTE + 1)
    assert core.enqueue_due() == 1
    assert core.tasks("AAPL")[-1].priority == 6


def test_a2_a_first_viewer_lifts_what_the_schedule_has_queued(core: Core) -> None:
    core.rows("SELECT pricing.enqueue_scheduled('mf_nav')")
    core.heartbeat("ann", (NAV, "120841"))
    assert {task.symbol: task.priority for task in core.tasks()} == {
        "118632": -1,
        "119551": -1,
        "120841": 1,
        "125497": -1,
    }


@pytest.mark.parametrize("routes", ["common", "own"])
def test_a2_a_check_lifts_what_the_schedule_has_queued(core: Core, routes: str) -> None:
    """The check takes for granted that what is due has no task. Where it has one, that serves the viewers too."""
    if routes == "own":
        core.rows(
            "INSERT INTO pricing.provider_routing (data_type, symbol, provider) VALUES ('mf_nav', '119551', 'mfapi')"
        )
    core.heartbeat("ann", (NAV, "120841"), AAPL)
    core.refresh()
    core.refresh(MFAPI)
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '2 days'")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    core.rows("SELECT pricing.enqueue_scheduled('mf_nav')")
    core.enqueue_due()
    live = {task.symbol: task.priority for task in core.tasks() if task.status == "pending"}
    assert live == {"118632": -1, "119551": -1, "120841": 1, "125497": -1, "AAPL": 1}
    assert core.enqueue_due() == 0
    assert core.rows("SELECT FROM pricing.warnings") == []


def test_b7_the_first_heartbeat_queues_what_is_missing_in_many_types_at_once(core: Core) -> None:
    """Scheduled types too: somebody waits for them now."""
    assert core.heartbeat("ann", AAPL, (DAILY, "AAPL"), (FX, "EUR/USD"), (NAV, "118632")) == 4
    assert {(task.data_type, task.symbol, task.priority) for task in core.tasks()} == {
        (QUOTE, "AAPL", 1),
        (DAILY, "AAPL", 1),
        (FX, "EUR/USD", 1),
        (NAV, "118632", 1),
    }


def test_b7_the_first_heartbeat_queues_what_is_stale_and_not_what_is_fresh(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.enqueue(DAILY, "AAPL")
    core.refresh()
    clock.advance(MINUTE + 1)
    core.heartbeat("ann", AAPL, (DAILY, "AAPL"))
    live = [task for task in core.tasks() if task.status == "pending"]
    assert [(task.data_type, task.symbol) for task in live] == [(QUOTE, "AAPL")]
    assert DAY - 2 * MINUTE - 5 < core.due_in(DAILY, "AAPL") < DAY - MINUTE


@pytest.mark.own_database  # whether a page has room depends on what was there before
def test_b5_heartbeats_stay_heap_only(core: Core, clock: Clock) -> None:
    """An index on last_seen_at would make every heartbeat write to all indexes."""
    counts = "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'active_subscriptions'"
    core.heartbeat("ann", AAPL)
    with core.engine.begin() as connection:
        # The session may still count updates of the transactions before.
        hot_before, updates_before = connection.exec_driver_sql(counts).one()
        for _ in range(5):
            viewers.heartbeat(connection, "ann", [AAPL])
        hot, updates = connection.exec_driver_sql(counts).one()
    assert hot - hot_before == updates - updates_before == 5


def test_b5_a_new_symbol_becomes_an_unverified_instrument(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "BRK.A"), (DAILY, "BRK.A"))
    (found,) = core.rows("SELECT * FROM pricing.instruments WHERE symbol = 'BRK.A'")
    assert (found.asset_class, found.verified_at, found.is_active, found.scale) == ("equity", None, True, 2)
    core.refresh()
    assert core.one("SELECT verified_at IS NOT NULL FROM pricing.instruments WHERE symbol = 'BRK.A'")


def test_b5_an_unknown_or_retired_type_is_refused_by_name(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'fx_rate'")
    for data_type, words in (
        ("equity_qoute", "no data type is called equity_qoute; `pricing-pipeline type list` lists them"),
        (FX, "the data type fx_rate is retired, .* pricing-pipeline type revive fx_rate"),
    ):
        with pytest.raises(PairsRefused, match=words):
            core.heartbeat("ann", (data_type, "EUR/USD"))


def test_b5_users_see_to_their_own_subscriptions_only(core: Core) -> None:
    core.heartbeat("ann", AAPL, IBM)
    core.heartbeat("bob", AAPL)
    assert core.unsubscribe("bob", AAPL, IBM) == 1
    left = core.rows("SELECT user_id, symbol FROM pricing.active_subscriptions ORDER BY 2")
    assert [tuple(row) for row in left] == [("ann", "AAPL"), ("ann", "IBM")]


# Leaving


def test_b5_viewers_silent_for_five_minutes_are_forgotten(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    clock.advance(10)
    core.heartbeat("bob", AAPL)
    clock.advance(5 * MINUTE - 5)
    before = core.rows("SELECT last_seen_at FROM pricing.active_subscriptions WHERE user_id = 'bob'")
    assert core.clean() == 1
    left = core.rows("SELECT user_id, last_seen_at FROM pricing.active_subscriptions")
    assert [row.user_id for row in left] == ["bob"]
    assert [row.last_seen_at for row in left] == [row.last_seen_at for row in before]
    clock.advance(15)
    assert core.clean() == 1


def test_a7_demand_without_viewers_is_not_refreshed_and_is_removed(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.unsubscribe("ann", AAPL)
    clock.advance(MINUTE + 1)
    assert core.enqueue_due() == 0
    core.clean()
    assert core.demand_of(*AAPL) is None
    assert [task.status for task in core.tasks()] == ["completed"]


def test_b5_demand_without_viewers_outlives_its_first_minute(core: Core, clock: Clock) -> None:
    """A viewer who comes and goes, page by page, does not start everything anew."""
    core.heartbeat("ann", AAPL)
    core.unsubscribe("ann", AAPL)
    clock.advance(MINUTE - 1)
    core.clean()
    assert core.demand_of(*AAPL) is not None
    clock.advance(2)
    core.clean()
    assert core.demand_of(*AAPL) is None


def test_b5_coming_back_within_the_grace_is_served_too(core: Core, clock: Clock) -> None:
    """The pair is still known, and the check that saw it without viewers had put it aside."""
    core.heartbeat("ann", AAPL)
    core.refresh()
    clock.advance(2 * MINUTE)
    core.unsubscribe("ann", AAPL)
    assert core.enqueue_due() == 0
    core.heartbeat("ann", AAPL)
    clock.advance(1)
    core.enqueue_due()
    assert core.tasks("AAPL")[-1].status == "pending"


def test_a7_unwatched_pairs_of_on_demand_types_are_never_queued(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    clock.advance(MINUTE + 1)
    core.heartbeat("ann", AAPL)
    core.enqueue_due()
    for data_type in (QUOTE, DAILY, FX):
        core.rows("SELECT pricing.enqueue_scheduled(:data_type)", data_type=data_type)
    assert {(task.data_type, task.symbol) for task in core.tasks()} == {AAPL}


def test_b14_the_schedule_queues_active_instruments_behind_all_else(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = '118632'")
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = '119551'")
    with core.engine.begin() as connection:
        assert schedules.enqueue_scheduled(connection, NAV) == 2
    clock.advance(1)
    with core.engine.begin() as connection:
        assert schedules.enqueue_scheduled(connection, NAV) == 0
        assert schedules.enqueue_scheduled(connection, "no_such_type") is None
    assert {task.symbol: task.priority for task in core.tasks()} == {"120841": -1, "125497": -1}


# What the sensor sees


def test_b17_outlook_says_whether_a_drain_is_needed(core: Core, clock: Clock) -> None:
    def outlook() -> drains.Outlook:
        with core.engine.connect() as connection:
            return drains.outlook(connection)

    idle = outlook()
    assert (idle.watched, idle.queued, idle.drain_id) == (False, False, None)
    core.heartbeat("ann", AAPL)
    busy = outlook()
    assert (busy.watched, busy.queued, busy.watched_types) == (True, True, [QUOTE])
    begun = core.one("SELECT pricing.begin_drain('w', 'run 1', 120)")
    assert outlook().drain_id == begun
    assert outlook().drain_seconds_left == pytest.approx(120)
    assert core.one("SELECT pricing.begin_drain('x', 'run 2', 120)") is None
    clock.advance(16)
    assert outlook().drain_id is None, "a drain that says nothing for 15 s is dead"
    assert core.one("SELECT pricing.begin_drain('x', 'run 2', 120)") is not None
