"""Freshness as Dagster and its sensor tell it over hours."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.test_utils import freeze_time
from dagster._daemon.freshness import FreshnessDaemon
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.log import get_dagster_logger

from pricing_pipeline_tests.fixtures.core import FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, an_instance
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.orchestration.test_freshness import NOTHING_PAUSED, SENSOR, cursor, judged, told

pytestmark = pytest.mark.usefixtures("still")


@pytest.mark.parametrize("is_retired", [False, True])
def test_g2_a_type_that_was_late_when_its_last_viewer_left_stays_red_for_nobody(
    stage: Stage, core: Core, clock: Clock, is_retired: bool
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    tick = stage.tick(SENSOR)
    stage.instance.report_runless_asset_event(dg.AssetMaterialization(["freshness", QUOTE]))
    clock.advance(120)
    tick = stage.tick(SENSOR, tick.cursor)
    assert told(tick) == []
    assert stage.materializations("freshness", QUOTE), "late, and red"
    if is_retired:
        core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = :name", name=QUOTE)
        stage.reload()
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    clock.advance(31)
    stage.tick(SENSOR, tick.cursor)
    assert stage.materializations("freshness", QUOTE) == []


@pytest.mark.parametrize(
    ("minutes", "quiet_for", "told_by"),
    [(1, 28, 30), (15, 448, 450)],
)
def test_g2_it_is_said_about_every_half_ttl_and_30_s_apart(
    stage: Stage, core: Core, clock: Clock, minutes: int, quiet_for: int, told_by: int
) -> None:
    # The end of a month would be reported, too.
    clock.set(core.one("SELECT date_trunc('month', pricing.clock()) + interval '1 month 14 days'"))
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = :ttl", ttl=minutes)
    stage.reload()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    first = stage.tick(SENSOR)
    assert told(first) == [QUOTE]
    clock.advance(quiet_for)
    quiet = stage.tick(SENSOR, first.cursor)
    assert told(quiet) == []
    assert quiet.skip_message == "nobody watches: 3 data types"
    clock.advance(told_by - quiet_for)
    assert told(stage.tick(SENSOR, quiet.cursor)) == [QUOTE]
    clock.advance(-told_by - 3600)
    core.rows("UPDATE pricing.latest_prices SET fetched_at = pricing.clock()")
    assert told(stage.tick(SENSOR, quiet.cursor)) == [QUOTE], "the clock was set back"


@pytest.mark.parametrize(("data_type", "symbol", "bound"), [(QUOTE, "AAPL", 30), (FX, "EUR/USD", 225)])
def test_g2_no_word_while_a_watched_pair_is_late(
    stage: Stage, core: Core, clock: Clock, data_type: str, symbol: str, bound: int
) -> None:
    """Late is owed for more than max(30 s, TTL/4), whether or not a task waits for it."""
    core.heartbeat("ann", (data_type, symbol))
    core.refresh()
    told_at_first = stage.tick(SENSOR)
    assert told(told_at_first) == [data_type]
    ttl = core.one("SELECT default_ttl_minutes * 60 FROM pricing.data_type_registry WHERE data_type = :t", t=data_type)
    clock.advance(ttl + bound - 2)
    due = stage.tick(SENSOR, told_at_first.cursor)
    assert (told(due), judged(due), cursor(due)) == ([], {}, cursor(told_at_first)), "merely due"
    assert str(due.skip_message).startswith(f"being fetched, so nothing is reported: {data_type} (1)")
    clock.advance(3)
    tick = stage.tick(SENSOR, told_at_first.cursor)
    assert (told(tick), cursor(tick)) == (
        [],
        {"at": {data_type: 0.0}, "late": [data_type], **NOTHING_PAUSED},
    ), "a type that is late is reported at once when it is fresh"
    assert judged(tick) == {data_type: False}, "and its check fails at once"
    assert judged(stage.tick(SENSOR, tick.cursor)) == {}, "once"
    assert str(tick.skip_message).startswith(f"late, so nothing is reported: {data_type} (1)")

    core.heartbeat("ann", (data_type, symbol))
    core.enqueue_due()
    core.finish(core.claim_one())
    back = stage.tick(SENSOR, tick.cursor)
    assert told(back) == [data_type], "and told of at once when it is fresh again"
    assert judged(back) == {data_type: True}


@pytest.mark.parametrize("every", [5, 10])
def test_g2_a_minutes_pair_that_is_fetched_in_time_stays_green(
    stage: Stage, core: Core, clock: Clock, every: int
) -> None:
    """Normal life: a pair of a minute, fetched two seconds after it fell due. Events come in time, no check turns.

    Dagster's own daemon ticks every five seconds, that of `up` every ten.
    """
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    tick, events, since, fetched_at = stage.tick(SENSOR), 1, 0, 0
    for second in range(every, 191, every):
        if second - fetched_at >= 62:
            fetched_at += 62
            clock.advance(fetched_at - (second - every))
            core.heartbeat("ann", (QUOTE, "AAPL"))
            core.enqueue_due()
            core.refresh()
            clock.advance(second - fetched_at)
        else:
            clock.advance(every)
        tick = stage.tick(SENSOR, tick.cursor)
        assert judged(tick) == {}
        since = 0 if told(tick) else since + every
        events += len(told(tick))
        assert since < 60
    assert events <= 8


def test_g2_dagster_warns_and_fails_when_it_stays_silent(
    environment: None, core: Core, clock: Clock, open_folder: Path
) -> None:
    """Dagster's own evaluation of a one-minute type, over what only our sensor's word changes."""
    key = dg.AssetKey(["freshness", QUOTE])
    began = time.time()

    with an_instance(open_folder) as instance, a_daemon(instance, SENSOR) as daemon:

        def state_after(seconds: float, *, tick: bool = False) -> FreshnessState:
            with freeze_time(began + seconds):
                if tick:
                    list(execute_sensor_iteration(daemon, get_dagster_logger("daemon"), None, None))
                list(FreshnessDaemon().run_iteration(daemon))
            return instance.get_freshness_state_records([key])[key].freshness_state

        assert state_after(0) is FreshnessState.UNKNOWN
        assert state_after(0, tick=True) is FreshnessState.UNKNOWN, "nobody watches it"
        core.heartbeat("ann", (QUOTE, "AAPL"))
        core.refresh()
        assert state_after(5, tick=True) is FreshnessState.PASS
        # What runs report meanwhile is no word on freshness.
        instance.report_runless_asset_event(dg.AssetObservation(key))
        instance.report_runless_asset_event(dg.AssetMaterialization(["price_history", QUOTE], partition="2010-03-01"))
        clock.advance(91)
        core.enqueue_due()
        assert state_after(96, tick=True) is FreshnessState.WARN
        assert state_after(127, tick=True) is FreshnessState.FAIL
        core.finish(core.claim_one())
        assert state_after(140, tick=True) is FreshnessState.PASS
        core.unsubscribe("ann", (QUOTE, "AAPL"))
        clock.advance(31)
        assert state_after(171, tick=True) is FreshnessState.UNKNOWN, "nobody watches it any more"
