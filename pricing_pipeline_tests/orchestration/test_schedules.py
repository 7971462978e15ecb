"""Scheduled data types: when they are asked for, and what one tick of their schedule does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._scheduler.scheduler import launch_scheduled_runs

from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, an_instance

FUNDS = {"118632", "119551", "120841", "125497"}
SLOT = datetime(2026, 3, 31, 18, 0, tzinfo=UTC)
"""Long ago, and the last of its month: a tick may come late."""


@pytest.fixture(autouse=True)
def kept_runs(stage: Stage, tmp_path: Path) -> Iterator[None]:
    """A schedule looks at runs only where they are kept."""
    with an_instance(tmp_path) as instance:
        stage.instance = instance
        yield


@pytest.fixture(autouse=True)
def nothing_is_served_yet(core: Core) -> None:
    core.rows("UPDATE pricing.schedule_walks SET served_slot = :slot", slot=SLOT - timedelta(days=1))


def evaluated(stage: Stage, schedule: str, slot: datetime = SLOT) -> ScheduleExecutionData:
    return stage.slot(schedule, slot)


def test_b14_the_schedule_is_the_registrys_row(stage: Stage, core: Core) -> None:
    schedule = stage.repository.get_schedule_def("mf_nav_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 23 * * *", "Asia/Kolkata")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert {one.name for one in stage.repository.schedule_defs} == {"mf_nav_schedule", "check_prices"}

    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_schedule = '0 9 * * 1-5',"
        " schedule_timezone = 'America/New_York' WHERE data_type = 'mf_nav'"
    )
    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_strategy = 'scheduled', refresh_schedule = '0 1 * * *'"
        " WHERE data_type = 'equity_daily'"
    )
    stage.reload()
    schedule = stage.repository.get_schedule_def("mf_nav_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 9 * * 1-5", "America/New_York")
    assert stage.repository.get_schedule_def("equity_daily_schedule").execution_timezone == "America/New_York"


@pytest.mark.parametrize("cron", ["nonsense", "61 * * * *", "0 1 31 2 *", "0 1 31 4,6 *", "0 0 * * * *", ""])
def test_b14_b8_one_bad_cron_expression_takes_nothing_else_down(stage: Stage, core: Core, cron: str) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, refresh_strategy,"
        " refresh_schedule, asset_class) VALUES ('bad_nav', 'nav', 5, 'scheduled', :cron, 'fund')",
        cron=cron,
    )
    stage.reload()
    assert {one.name for one in stage.repository.schedule_defs} == {"mf_nav_schedule", "check_prices"}
    description = stage.spec("latest_price", "bad_nav").description or ""
    assert "Its schedule is not followed" in description
    assert escaped(f"invalid cron schedule '{cron}'") in description
    assert "not followed" not in str(stage.spec("latest_price", NAV).description)


def test_b14_no_name_of_a_type_collides_with_ours(stage: Stage, core: Core) -> None:
    for name in ("watched", "refresh", "prices", "check_prices", "refresh_watched"):
        core.rows(
            "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, refresh_strategy,"
            " refresh_schedule, asset_class) VALUES (:name, 'nav', 5, 'scheduled', '0 1 * * *', 'fund')",
            name=name,
        )
    stage.reload()
    assert len(stage.repository.schedule_defs) == 7


def test_b14_a_tick_queues_all_active_instruments_behind_live_work(stage: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = '125497'")
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = '120841'")
    tick = evaluated(stage, "mf_nav_schedule")
    assert not tick.run_requests
    assert tick.skip_message == "queued 2; a drain takes them"
    assert {task.symbol: (task.data_type, task.priority) for task in core.tasks()} == {
        "118632": (NAV, -1),
        "119551": (NAV, -1),
    }


def test_b14_a_second_tick_queues_nothing(stage: Stage, core: Core) -> None:
    assert str(evaluated(stage, "mf_nav_schedule").skip_message).startswith("queued 4")
    queued = core.tasks()
    assert {task.symbol for task in queued} == FUNDS
    again = evaluated(stage, "mf_nav_schedule")
    assert not again.run_requests
    assert again.skip_message == "the slot 2026-03-31 18:00 UTC was served before, or the type is retired"
    later = evaluated(stage, "mf_nav_schedule", SLOT + timedelta(hours=1))
    assert not later.run_requests
    assert later.skip_message == "every instrument of the type is queued or fetched already, or there is none"
    assert core.tasks() == queued


def test_b14_b17_what_is_queued_has_the_sensor_request_a_drain(stage: Stage, core: Core) -> None:
    evaluated(stage, "mf_nav_schedule")
    assert {task.symbol for task in core.tasks()} == FUNDS
    (request,) = stage.tick("refresh_watched").run_requests or ()
    assert request.tags["pricing/drain"] == "true"


def test_b14_a_tick_that_can_queue_nothing_says_why(stage: Stage, core: Core) -> None:
    """It said that every instrument was queued."""
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000 WHERE provider = 'mfapi'")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES ('mfapi', pricing.clock(), 910)"
    )
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 10")
    tick = evaluated(stage, "mf_nav_schedule")
    assert not tick.run_requests
    assert str(tick.skip_message).startswith(
        "4 instruments of mf_nav wait for their schedule: the quota of mfapi leaves nothing for schedules"
    )


def test_b14_a_watched_fund_keeps_its_viewers_priority(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (NAV, "118632"))
    assert str(evaluated(stage, "mf_nav_schedule").skip_message).startswith("queued 3")
    assert {task.symbol: task.priority for task in core.tasks()} == {
        "118632": 1,
        **dict.fromkeys(FUNDS - {"118632"}, -1),
    }


@pytest.mark.parametrize(("pairs", "runs"), [([], 0), ([(QUOTE, "AAPL"), (DAILY, "IBM")], 1)])
def test_g2_checks_run_hourly_while_anyone_watches(
    stage: Stage, core: Core, pairs: list[tuple[str, str]], runs: int
) -> None:
    assert stage.repository.get_schedule_def("check_prices").cron_schedule == "17 * * * *"
    if pairs:
        core.heartbeat("ann", *pairs)
    tick = evaluated(stage, "check_prices")
    assert len(tick.run_requests or ()) == runs
    assert bool(tick.skip_message) == (not runs)


def test_b14_dagsters_scheduler_queues_the_type_and_makes_no_run(stage: Stage, core: Core) -> None:
    with a_daemon(stage.instance) as workspace:
        for moment in (SLOT - timedelta(hours=1), SLOT + timedelta(minutes=1)):
            list(launch_scheduled_runs(workspace, logging.getLogger(), moment, iteration_times={}))
    assert {task.symbol for task in core.tasks()} == FUNDS
    assert "mf_nav_schedule" not in {run.tags["dagster/schedule_name"] for run in stage.instance.get_runs()}


def test_g1_each_history_shows_its_own_schedule_and_no_other(stage: Stage, core: Core) -> None:
    """All of them were listed with each history, because they shared a job that selects all."""
    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_strategy = 'scheduled', refresh_schedule = '0 1 * * *'"
        " WHERE data_type = 'equity_daily'"
    )
    stage.reload()
    with a_daemon(stage.instance) as workspace:
        location = workspace.create_request_context().get_code_location("pricing_pipeline")
        (repository,) = location.get_repositories().values()

        def shown(*path: str) -> set[str]:
            key = dg.AssetKey(path)
            return {
                *(one.name for one in repository.get_schedules_targeting(key)),
                *(one.name for one in repository.get_sensors_targeting(key)),
            }

        assert shown("price_history", NAV) == {"mf_nav_schedule"}
        assert shown("price_history", DAILY) == {"equity_daily_schedule"}
        assert shown("price_history", QUOTE) == set()
