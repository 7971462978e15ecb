"""Freshness as Dagster shows it: calm while viewers are served on time, honest when they are not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.test_utils import freeze_time
from dagster._daemon.freshness import FreshnessDaemon
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.log import get_dagster_logger

from pricing_pipeline.domain import FailureKind
from pricing_pipeline_tests.fix_core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fix_dagster import Stage, a_daemon, an_instance, said
from pricing_pipeline_tests.fix_database import Clock

SENSOR = "report_freshness"

pytestmark = pytest.mark.usefixtures("still")


def told(tick: SensorExecutionData) -> list[str]:
    """The data types a tick vouches for. It never says anything else."""
    assert not tick.run_requests
    for event in tick.asset_events:
        assert isinstance(event, dg.AssetMaterialization)
        assert event.asset_key.path[0] == "latest_price"
        assert event.partition is None
    return [event.asset_key.path[1] for event in tick.asset_events]


def metadata(tick: SensorExecutionData, data_type: str) -> dict[str, Any]:
    (event,) = [event for event in tick.asset_events if event.asset_key.path[1] == data_type]
    return said(event)


def test_g2_nothing_stays_unknown_after_the_first_tick(stage: Stage) -> None:
    tick = stage.tick(SENSOR)
    assert told(tick) == [DAILY, QUOTE, FX, NAV]
    assert metadata(tick, QUOTE) == {
        "reason": "nobody watches this type, so nothing is owed",
        "watched": 0,
        "fresh": 0,
        "late": 0,
    }
    assert tick.skip_message == f"on time: {DAILY}, {QUOTE}, {FX}, {NAV}"


def test_g2_a_new_type_is_told_of_at_once(stage: Stage, core: Core) -> None:
    cursor = stage.tick(SENSOR).cursor
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('new_quote', 'quote', 5)"
    )
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    stage.reload()
    tick = stage.tick(SENSOR, cursor)
    assert told(tick) == ["new_quote"]
    assert NAV not in str(tick.cursor)


@pytest.mark.parametrize(
    ("minutes", "quiet_for", "told_by"),
    [(1, 28, 30), (2, 49, 60), (15, 439, 450), (1440, 43189, 43200)],
)
def test_g2_it_is_said_about_every_half_ttl_and_30_s_apart(
    stage: Stage, core: Core, clock: Clock, minutes: int, quiet_for: int, told_by: int
) -> None:
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = :ttl", ttl=minutes)
    stage.reload()
    first = stage.tick(SENSOR)
    clock.advance(quiet_for)
    quiet = stage.tick(SENSOR, first.cursor)
    assert told(quiet) == []
    assert quiet.skip_message == "nothing to say yet"
    clock.advance(told_by - quiet_for)
    assert told(stage.tick(SENSOR, quiet.cursor)) == [DAILY, QUOTE, FX, NAV]
    clock.advance(-told_by - 3600)
    assert told(stage.tick(SENSOR, quiet.cursor)) == [DAILY, QUOTE, FX, NAV], "the clock was set back"


@pytest.mark.parametrize(("data_type", "symbol", "bound"), [(QUOTE, "AAPL", 30), (FX, "EUR/USD", 225)])
def test_g2_no_word_while_a_watched_pair_is_late(
    stage: Stage, core: Core, clock: Clock, data_type: str, symbol: str, bound: int
) -> None:
    """Late is owed for more than max(30 s, TTL/4), whether or not a task waits for it."""
    core.heartbeat("ann", (data_type, symbol))
    clock.advance(bound - 2)
    calm = stage.tick(SENSOR)
    assert data_type in told(calm)
    assert metadata(calm, data_type)["reason"] == "1 of 1 watched pairs are being refreshed, none is late"
    clock.advance(3)
    tick = stage.tick(SENSOR)
    assert told(tick) == [name for name in (DAILY, QUOTE, FX, NAV) if name != data_type]
    assert f"late, so nothing is said: {data_type} (1)" in str(tick.skip_message)

    core.finish(core.claim_one())
    assert data_type in told(stage.tick(SENSOR, tick.cursor))


def test_g2_late_is_counted_again_for_each_refresh_owed(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    clock.advance(85)  # due for 25 s
    assert QUOTE in told(stage.tick(SENSOR))
    clock.advance(10)
    assert QUOTE not in told(stage.tick(SENSOR))
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.enqueue_due()
    assert QUOTE not in told(stage.tick(SENSOR))
    core.refresh()
    assert QUOTE in told(stage.tick(SENSOR))


def test_g2_it_says_what_it_knows(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh(price="101.50")
    oldest = core.one("SELECT min(fetched_at) FROM pricing.latest_prices")
    clock.advance(40)
    found = metadata(stage.tick(SENSOR), QUOTE)
    table = found.pop("latest_prices")
    assert found == {
        "reason": "every watched pair is within its TTL",
        "watched": 2,
        "fresh": 2,
        "late": 0,
        "oldest_price": oldest.timestamp(),
    }
    assert "| AAPL | 101.50 USD |" in table
    assert "| IBM | 101.50 USD |" in table


def test_g2_its_table_is_short_enough_to_be_shown(stage: Stage, core: Core) -> None:
    """Dagster shows Markdown inline only below 1,000 characters; long names leave room for fewer rows."""
    core.heartbeat("ann", *((QUOTE, letter * 40) for letter in "ABCDEFGHI"))
    core.refresh(price="1234567890.12345678")
    core.rows("UPDATE pricing.latest_prices SET provider = repeat('p', 48)")
    core.heartbeat("ann", *((FX, f"{letter}/USD") for letter in "ABCDEFGHI"))
    core.refresh()
    tick = stage.tick(SENSOR)
    for data_type, least, most in ((QUOTE, 5, 7), (FX, 8, 8)):
        table = metadata(tick, data_type)["latest_prices"]
        assert len(table) < 1000
        assert least <= len(table.splitlines()) - 2 <= most


def test_g2_a_pair_held_off_is_not_late_but_named(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "NOPE"), (QUOTE, "AAPL"))
    call = core.claim_one()
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = 'AAPL'")
    core.rows("DELETE FROM pricing.active_subscriptions WHERE symbol = 'AAPL'")
    core.rows("DELETE FROM pricing.demand WHERE symbol = 'AAPL'")
    core.rows("UPDATE pricing.api_call_queue_live SET attempt = max_attempts")
    core.fail(call, FailureKind.PROVIDER_DOWN)
    clock.advance(120)
    tick = stage.tick(SENSOR)
    assert QUOTE in told(tick)
    assert "1 of 1 watched pairs are held off after failures" in metadata(tick, QUOTE)["reason"]


def test_g2_dagster_warns_and_fails_when_it_stays_silent(
    environment: None, core: Core, clock: Clock, open_folder: Path
) -> None:
    """Dagster's own evaluation of a one-minute type, over what only our sensor's word changes."""
    key = dg.AssetKey(["latest_price", QUOTE])
    began = time.time()

    with an_instance(open_folder) as instance, a_daemon(instance) as daemon:

        def state_after(seconds: float, *, tick: bool = False) -> FreshnessState:
            with freeze_time(began + seconds):
                if tick:
                    list(execute_sensor_iteration(daemon, get_dagster_logger("daemon"), None, None))
                list(FreshnessDaemon().run_iteration(daemon))
            return instance.get_freshness_state_records([key])[key].freshness_state

        assert state_after(0) is FreshnessState.UNKNOWN
        assert state_after(0, tick=True) is FreshnessState.PASS
        core.heartbeat("ann", (QUOTE, "AAPL"))
        clock.advance(45)
        assert state_after(45, tick=True) is FreshnessState.PASS
        # What runs report meanwhile is no word on freshness.
        instance.report_runless_asset_event(dg.AssetObservation(key))
        instance.report_runless_asset_event(
            dg.AssetMaterialization(["price_history", QUOTE], partition="2010-03-01")
        )
        assert state_after(62) is FreshnessState.WARN
        assert state_after(122) is FreshnessState.FAIL
        core.finish(core.claim_one())
        clock.advance(10)
        assert state_after(140, tick=True) is FreshnessState.PASS
