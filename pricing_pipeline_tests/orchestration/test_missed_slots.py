"""B14: a slot of a schedule that passed while Dagster or the database was away is caught up, once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from pricing_pipeline.defs.schedules import MissedSlots
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.domain.data_types import DataType, Fetcher
from pricing_pipeline_tests.fixtures.core import NAV, Core, utc
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.fixtures.database import Clock

FUNDS = {"118632", "119551", "120841", "125497"}
SENSOR = "refresh_watched"

pytestmark = pytest.mark.usefixtures("still")


def served(core: Core) -> datetime:
    slot: datetime = core.one("SELECT served_slot FROM pricing.schedule_walks WHERE data_type = 'mf_nav'")
    return slot.astimezone(UTC)


def finish_all(core: Core, clock: Clock) -> None:
    """Fetch what is queued; mfapi is asked for four funds a second."""
    while core.refresh("mfapi"):
        clock.advance(2)


def missed(cron: str, timezone: str) -> MissedSlots:
    kind = DataType(NAV, "", Fetcher.NAV, "fund", "latest_price_mf_nav", 1440, "scheduled", cron, timezone, None)
    return MissedSlots(RegistrySnapshot(1, (kind,), {}, {}))


def test_b14_a_slot_that_passed_unserved_is_served_once(stage: Stage, core: Core, clock: Clock) -> None:
    """23:30 in Kolkata is 18:00 in UTC."""
    clock.set(utc("2026-11-19 12:00"))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2026-11-18 18:00Z'")
    assert not stage.tick(SENSOR).run_requests
    clock.set(utc("2026-11-19 18:01"))
    assert not stage.tick(SENSOR).run_requests, "Dagster's own schedule has two minutes"
    clock.set(utc("2026-11-19 18:03"))
    assert len(stage.tick(SENSOR).run_requests or ()) == 1
    assert set(core.statuses()) == FUNDS
    assert served(core) == utc("2026-11-19 18:00")
    finish_all(core, clock)
    for _ in range(3):
        clock.advance(3600)
        stage.tick(SENSOR)
    assert set(core.statuses().values()) == {"completed"}
    assert len(core.tasks()) == 4


def test_b14_of_many_missed_slots_the_latest_is_served(stage: Stage, core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2026-10-18 18:00Z'")
    clock.set(utc("2026-11-19 12:00"))
    stage.tick(SENSOR)
    assert served(core) == utc("2026-11-18 18:00")
    assert len(core.tasks()) == 4
    finish_all(core, clock)
    stage.tick(SENSOR)
    assert len(core.tasks()) == 4


def test_b14_slots_before_the_schedule_was_there_are_not_owed(stage: Stage, core: Core, clock: Clock) -> None:
    clock.set(utc("2026-11-19 12:00"))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2026-11-18 18:00Z'")
    core.rows("UPDATE pricing.data_type_registry SET refresh_schedule = '0 9 * * *' WHERE data_type = 'mf_nav'")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class,"
        " refresh_strategy, refresh_schedule) VALUES ('new_nav', 'nav', 5, 'fund', 'scheduled', '0 11 * * *')"
    )
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'new_nav'")
    clock.set(utc("2026-11-20 00:30"))
    core.rows("UPDATE pricing.data_type_registry SET is_active = true WHERE data_type = 'new_nav'")
    stage.reload()
    stage.tick(SENSOR)
    assert core.tasks() == []
    clock.set(utc("2026-11-20 03:33"))
    stage.tick(SENSOR)
    assert {task.data_type for task in core.tasks()} == {NAV}, "9:00 in Kolkata"
    clock.set(utc("2026-11-20 11:03"))
    stage.tick(SENSOR)
    assert {task.data_type for task in core.tasks()} == {NAV, "new_nav"}


@pytest.mark.parametrize(
    ("cron", "served_until", "now", "slot"),
    [
        # Clocks go forward on 8 March 2026 at 2:00, and back on 1 November at 2:00.
        ("0 9 * * *", "2026-03-07 14:00", "2026-03-08 13:05", "2026-03-08 13:00"),
        ("30 2 * * *", "2026-03-07 07:30", "2026-03-08 07:05", "2026-03-08 07:00"),
        ("30 1 * * *", "2026-10-31 05:30", "2026-11-01 05:35", None),
        ("30 1 * * *", "2026-10-31 05:30", "2026-11-01 06:35", "2026-11-01 06:30"),
        ("30 1 * * *", "2026-11-01 06:30", "2026-11-01 23:00", None),
        ("0 9 * * *", "2026-10-31 13:00", "2026-11-01 13:05", None),
        ("0 9 * * *", "2026-10-31 13:00", "2026-11-01 14:05", "2026-11-01 14:00"),
    ],
)
def test_b14_slots_are_those_of_the_rows_zone_when_clocks_change(
    engine: Engine, core: Core, clock: Clock, cron: str, served_until: str, now: str, slot: str | None
) -> None:
    """And those of Dagster's own schedule, so that no slot is served twice under two names."""
    core.rows("UPDATE pricing.schedule_walks SET served_slot = :at", at=utc(served_until))
    clock.set(utc(now))
    expected = {} if slot is None else {NAV: utc(slot)}
    slots = missed(cron, "America/New_York")
    assert slots.serve(engine) == expected
    assert slots.serve(engine) == {}


def test_b14_one_bad_schedule_does_not_stop_the_others(engine: Engine, core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2026-10-18 18:00Z'")
    clock.set(utc("2026-11-19 12:00"))
    kinds = [
        DataType(name, "", Fetcher.NAV, "fund", "", 1440, "scheduled", cron, "UTC", None)
        for name, cron in (("bad", "nonsense"), ("gone", "0 9 * * *"), (NAV, "0 9 * * *"))
    ]
    assert set(MissedSlots(RegistrySnapshot(1, tuple(kinds), {}, {})).serve(engine)) == {NAV}


def test_b14_a_clock_that_is_ahead_cannot_swallow_slots(core: Core) -> None:
    core.call("SELECT pricing.enqueue_scheduled('mf_nav', 'infinity')")
    assert served(core) <= core.clock()


def test_b23_the_next_slot_is_written_down_so_that_its_lateness_shows(stage: Stage, core: Core, clock: Clock) -> None:
    def late() -> bool:
        return bool(core.one("SELECT is_late FROM pricing.health() WHERE part = 'schedules'"))

    clock.set(utc("2026-11-19 12:00"))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2026-11-18 18:00Z'")
    core.rows("SELECT pricing.note_life('start')")
    stage.tick(SENSOR)
    assert core.one("SELECT next_slot FROM pricing.schedule_walks") == utc("2026-11-19 18:00")
    clock.set(utc("2026-11-19 18:04:59"))
    assert not late()
    clock.set(utc("2026-11-19 18:05"))
    assert late(), "no sensor has ticked since"
    stage.tick(SENSOR)
    assert not late()
    stage.tick(SENSOR)
    assert core.one("SELECT next_slot FROM pricing.schedule_walks") == utc("2026-11-20 18:00")
