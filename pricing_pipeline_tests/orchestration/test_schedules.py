"""Scheduled data types: when they are asked for, and what one tick of their schedule does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._scheduler.scheduler import launch_scheduled_runs
from dagster._utils.schedules import cron_string_iterator
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.operations import dagster_failures, health
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, an_instance
from pricing_pipeline_tests.fixtures.database import Clock

FUNDS = {"118632", "119551", "120841", "125497"}
SLOT = datetime(2026, 3, 31, 18, 0, tzinfo=UTC)
"""Long ago, and the last of its month: a tick may come late."""


@pytest.fixture
def kept_runs(stage: Stage, core: Core, tmp_path: Path) -> Iterator[Stage]:
    """A schedule looks at runs only where they are kept. No slot is served yet."""
    core.rows("UPDATE pricing.schedule_walks SET served_slot = :slot", slot=SLOT - timedelta(days=1))
    with an_instance(tmp_path) as stage.instance:
        yield stage


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


@pytest.mark.parametrize("cron", ["nonsense", "0 1 31 2 *"])
def test_b14_b8_a_bad_schedule_from_before_they_were_judged_takes_nothing_else_down(
    stage: Stage, core: Core, clock: Clock, cron: str
) -> None:
    """It had vanished from Dagster without a word."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class)"
        " VALUES ('bad_nav', 'nav', 5, 'fund')",
    )
    core.unjudged_schedule("bad_nav", cron)
    stage.reload()
    assert {one.name for one in stage.repository.schedule_defs} == {"mf_nav_schedule", "check_prices"}
    description = stage.spec("latest_price", "bad_nav").description or ""
    assert "Its schedule is not followed" in description
    assert escaped(f"invalid cron schedule '{cron}'") in description
    assert "not followed" not in str(stage.spec("latest_price", NAV).description)
    # People are told, in two ways.
    stage.tick("note_failures")
    with core.engine.connect() as connection:
        failing = dagster_failures.noted(connection, dagster_failures.Kind.TICK)
    assert failing.keys() == {"bad_nav_schedule"}
    assert f"invalid cron schedule '{cron}'" in failing["bad_nav_schedule"]
    stage.tick("refresh_watched")
    clock.advance(301)
    with core.engine.connect() as connection:
        (part,) = (part for part in health.measure(connection) if part.part == "schedules")
    assert part.is_late
    assert "the schedule of bad_nav could not be read" in str(part.says)
    # It can be retired as it is, and mended.
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'bad_nav'")
    core.rows(
        "UPDATE pricing.data_type_registry SET is_active = true, refresh_schedule = '0 1 * * *'"
        " WHERE data_type = 'bad_nav'"
    )
    stage.reload()
    stage.tick("note_failures")
    with core.engine.connect() as connection:
        assert dagster_failures.noted(connection, dagster_failures.Kind.TICK) == {}


FIELDS = ("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7)


def item(random: Random, lowest: int, highest: int, names: list[str]) -> str:
    """What may stand between two commas of a field."""
    first = random.randint(lowest, highest)
    last = random.randint(first, highest)
    step, among = random.randint(1, highest - lowest), random.randint(1, max(last - first, 1))
    words = ["*", str(first), f"{first}-{last}", f"*/{step}", f"{first}-{last}/{among}", f"{first:02}"]
    return random.choice([*words, *names, f"{names[0]}-{names[-1]}"] if names else words)


def any_cron(random: Random) -> str:
    months = ["jan", "feb", "MAR", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    weekdays = ["sun", "mon", "tue", "Wed", "thu", "fri", "sat"]
    names = {"month": months, "weekday": weekdays}
    return " ".join(
        ",".join(item(random, low, high, names.get(name, [])) for _ in range(random.choice([1, 1, 1, 2, 3])))
        for name, low, high in FIELDS
    )


def test_b14_what_the_registry_takes_dagster_follows(core: Core) -> None:
    """One that Dagster does not load, or warns of, must not be taken."""
    random = Random(41)
    for _ in range(80):
        cron = any_cron(random)
        fault = core.one("SELECT pricing.cron_fault(:cron)", cron=cron)
        assert fault is None or fault.startswith("names a day that never comes"), cron
        if fault is None:
            schedule = dg.ScheduleDefinition(name="one", job_name="a_job", cron_schedule=cron)
            slots = schedule_slots(cron)
            assert schedule.cron_schedule == cron
            assert slots == schedule_slots(cron), "the same in each process"


def schedule_slots(cron: str) -> list[datetime]:
    """The first times of a schedule, as Dagster's scheduler finds them."""
    found = cron_string_iterator(SLOT.timestamp(), cron, "Europe/Amsterdam")
    return [next(found) for _ in range(3)]


REFUSED = (
    *("0 18 15W * *", "R R * * *", "0 0 L * *", "0 0 * * 5#2", "0 0 * * L5", "0 0 ? * *", "H * * * *", "@daily"),
    *("* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *"),
    *("*/0 * * * *", "*/60 * * * *", "1,,2 * * * *", ", * * * *", "1- * * * *", "* * * foo *", "* * * * monday"),
    *("* * * sun *", "-1 * * * *", "1.5 * * * *", "", " ", "0  0 * * *", "0 0 * * *\n", "* * * * 0-6/7"),
    *("0 0 30 feb *", "0 0 31 4,6 1"),
)


def test_b14_a_schedule_that_dagster_cannot_follow_is_refused(core: Core) -> None:
    for cron in REFUSED:
        assert core.one("SELECT pricing.cron_fault(:cron)", cron=cron), cron
    for statement in (
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, refresh_strategy,"
        " refresh_schedule, asset_class) VALUES ('bad_nav', 'nav', 5, 'scheduled', :cron, 'fund')",
        "UPDATE pricing.data_type_registry SET refresh_schedule = :cron WHERE data_type = 'mf_nav'",
    ):
        for cron in ("0 18 15W * *", "0 0 30 feb *"):
            with pytest.raises(DBAPIError, match=r"is not a cron expression|names a day that never comes"):
                core.rows(statement, cron=cron)


def test_b14_no_name_of_a_type_collides_with_ours(stage: Stage, core: Core) -> None:
    for name in ("watched", "refresh", "prices", "check_prices", "refresh_watched"):
        core.rows(
            "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, refresh_strategy,"
            " refresh_schedule, asset_class) VALUES (:name, 'nav', 5, 'scheduled', '0 1 * * *', 'fund')",
            name=name,
        )
    stage.reload()
    assert len(stage.repository.schedule_defs) == 7
    # A job for each schedule would be most of what a load costs where many types have one.
    assert {job.name for job in stage.repository.get_all_jobs()} == {"refresh", "check_prices", "__ASSET_JOB"}


def test_b14_a_tick_queues_all_active_instruments_behind_live_work(kept_runs: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = '125497'")
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = '120841'")
    tick = evaluated(kept_runs, "mf_nav_schedule")
    assert not tick.run_requests
    assert tick.skip_message == "queued 2; a drain takes them"
    assert {task.symbol: (task.data_type, task.priority) for task in core.tasks()} == {
        "118632": (NAV, -1),
        "119551": (NAV, -1),
    }


def test_b14_a_second_tick_queues_nothing(kept_runs: Stage, core: Core) -> None:
    assert str(evaluated(kept_runs, "mf_nav_schedule").skip_message).startswith("queued 4")
    queued = core.tasks()
    assert {task.symbol for task in queued} == FUNDS
    again = evaluated(kept_runs, "mf_nav_schedule")
    assert not again.run_requests
    assert again.skip_message == "the slot 2026-03-31 18:00 UTC was served before, or the type is retired"
    later = evaluated(kept_runs, "mf_nav_schedule", SLOT + timedelta(hours=1))
    assert not later.run_requests
    assert later.skip_message == "every instrument of the type is queued or fetched already, or there is none"
    assert core.tasks() == queued


def test_b14_b17_what_is_queued_has_the_sensor_request_a_drain(kept_runs: Stage, core: Core) -> None:
    evaluated(kept_runs, "mf_nav_schedule")
    assert {task.symbol for task in core.tasks()} == FUNDS
    (request,) = kept_runs.tick("refresh_watched").run_requests or ()
    assert request.tags["pricing/drain"] == "true"


def test_b14_a_tick_that_can_queue_nothing_says_why(kept_runs: Stage, core: Core) -> None:
    """It said that every instrument was queued."""
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000 WHERE provider = 'mfapi'")
    core.rows("INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES ('mfapi', pricing.clock(), 910)")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 10")
    tick = evaluated(kept_runs, "mf_nav_schedule")
    assert not tick.run_requests
    assert str(tick.skip_message).startswith(
        "4 instruments of mf_nav wait for their schedule: the quota of mfapi leaves nothing for schedules"
    )


def test_b14_a_watched_fund_keeps_its_viewers_priority(kept_runs: Stage, core: Core) -> None:
    core.heartbeat("ann", (NAV, "118632"))
    assert str(evaluated(kept_runs, "mf_nav_schedule").skip_message).startswith("queued 3")
    assert {task.symbol: task.priority for task in core.tasks()} == {
        "118632": 1,
        **dict.fromkeys(FUNDS - {"118632"}, -1),
    }


@pytest.mark.parametrize(("pairs", "runs"), [([], 0), ([(QUOTE, "AAPL"), (DAILY, "IBM")], 1)])
def test_g2_checks_run_every_six_hours_while_anyone_watches(
    kept_runs: Stage, core: Core, pairs: list[tuple[str, str]], runs: int
) -> None:
    assert kept_runs.repository.get_schedule_def("check_prices").cron_schedule == "17 */6 * * *"
    if pairs:
        core.heartbeat("ann", *pairs)
    tick = evaluated(kept_runs, "check_prices")
    assert len(tick.run_requests or ()) == runs
    assert bool(tick.skip_message) == (not runs)


def test_b14_dagsters_scheduler_queues_the_type_and_makes_no_run(kept_runs: Stage, core: Core) -> None:
    with a_daemon(kept_runs.instance) as workspace:
        for moment in (SLOT - timedelta(hours=1), SLOT + timedelta(minutes=1)):
            list(launch_scheduled_runs(workspace, logging.getLogger(), moment, iteration_times={}))
    assert {task.symbol for task in core.tasks()} == FUNDS
    assert "mf_nav_schedule" not in {run.tags["dagster/schedule_name"] for run in kept_runs.instance.get_runs()}


def test_g1_each_history_names_its_own_schedule_and_lists_no_other(kept_runs: Stage, core: Core) -> None:
    """All of them were listed with each history, because they shared a job that selects all."""
    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_strategy = 'scheduled', refresh_schedule = '0 1 * * *'"
        " WHERE data_type = 'equity_daily'"
    )
    kept_runs.reload()
    named = {name: kept_runs.spec("price_history", name).metadata.get("schedule") for name in (NAV, DAILY, QUOTE)}
    assert named == {
        NAV: "mf_nav_schedule: 30 23 * * * (Asia/Kolkata)",
        DAILY: "equity_daily_schedule: 0 1 * * * (America/New_York)",
        QUOTE: None,
    }
    with a_daemon(kept_runs.instance) as workspace:
        location = workspace.create_request_context().get_code_location("pricing_pipeline")
        (repository,) = location.get_repositories().values()
        for name in named:
            key = dg.AssetKey(["price_history", name])
            assert repository.get_schedules_targeting(key) == set()
            assert repository.get_sensors_targeting(key) == set()
