"""A step of the clock is noticed once, and every stored time is moved with it or left on purpose."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.clock_steps import HOUR, YEAR, tick, warned
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")


def test_b15_a_clock_that_is_set_back_is_noticed_once_and_said(core: Core, clock: Clock) -> None:
    tick(core)
    clock.advance(-HOUR)
    assert tick(core) == []
    assert len(warned(core)) == 1
    assert "set back by about 60 min" in warned(core)[0]
    for _ in range(3):
        tick(core)
    assert len(warned(core)) == 1


def test_b17_a_second_step_soon_after_the_first_is_followed_too(core: Core, clock: Clock) -> None:
    """Once the time as it would be without the first step hid the second until that time came."""
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    lease = (
        "SELECT extract(epoch FROM lease_until - pricing.clock())::float8 FROM pricing.api_call_queue_live"
    )
    before = core.one(lease)
    for seconds in (-25, -70):
        clock.advance(seconds)
        tick(core)
        tick(core)
    assert core.one(lease) <= before + 60
    assert len(warned(core)) == 2


@pytest.mark.parametrize("seconds", [-9, -1, 0, 1, HOUR, 23 * HOUR])
def test_b15_a_clock_that_is_well_costs_nothing(core: Core, clock: Clock, seconds: int) -> None:
    core.hold("ann", (QUOTE, "AAPL"))
    core.refresh()
    tick(core)
    before = core.rows("SELECT CAST(xmin AS text), ctid FROM pricing.demand")
    clock.advance(seconds)
    core.call("SELECT pricing.run_duties()")
    assert core.rows("SELECT CAST(xmin AS text), ctid FROM pricing.demand") == before
    assert warned(core) == []


def test_b15_rows_that_somebody_holds_are_moved_as_soon_as_they_are_free(
    core: Core, clock: Clock, database_url: str
) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    clock.advance(-YEAR)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM pricing.api_call_queue_live FOR UPDATE")
        thread = threading.Thread(target=tick, args=(core,))
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert "no other session has their rows locked" in warned(core)[-1]
    tick(core)
    assert core.one(
        "SELECT lease_until <= pricing.clock() + interval '1 minute' FROM pricing.api_call_queue_live"
    )


def test_b17_steps_that_cannot_be_followed_yet_add_up(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    lease = core.task("AAPL").lease_until
    with core.owner.begin() as connection:
        connection.execute(text("SELECT FROM pricing.provider_state FOR UPDATE"))
        for _ in range(2):
            clock.advance(-HOUR)
            core.one("SELECT pricing.run_duties()")
    tick(core)
    assert abs(lease - core.task("AAPL").lease_until - timedelta(seconds=2 * HOUR)) < timedelta(seconds=60)


def test_every_time_that_is_stored_is_decided_on() -> None:
    """docs/maintainers/state-machine.md says of each column of times whether it is moved with the clock."""
    schema = (ROOT / "docs/maintainers/schema.sql").read_text()
    stored: set[str] = set()
    table = ""
    for line in schema.splitlines():
        if line.startswith("CREATE "):
            table = line.split()[2].removeprefix("pricing.") if line.startswith("CREATE TABLE") else ""
        elif table and " timestamp with time zone" in line and line.startswith("    "):
            stored.add(f"{table}.{line.split()[0]}")
    page = (ROOT / "docs/maintainers/state-machine.md").read_text()
    section = page.split("## When the clock is set\n")[1].split("\n## ")[0]
    decided: set[str] = set()
    for row in section.splitlines():
        if row.startswith("| `"):
            name, columns = (cell.strip() for cell in row.split("|")[1:3])
            decided |= {f"{name.strip('`')}.{column.strip().strip('`')}" for column in columns.split(",")}
    stored = {name for name in stored if not name.startswith(("api_call_queue_", "alembic"))}
    assert decided == stored


def test_b11_a_locked_row_keeps_neither_duties_nor_later_looks_from_going_on(
    core: Core, clock: Clock
) -> None:
    """The step stays noted, and is followed once, as soon as the row is free."""
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    lease = core.task("AAPL").lease_until
    with core.owner.begin() as connection:
        connection.execute(text("SELECT FROM pricing.provider_state FOR UPDATE"))
        clock.advance(-HOUR)
        core.one("SELECT pricing.run_duties()")
        for _ in range(2):
            clock.advance(11)
            assert "recover_tasks" in core.one("SELECT pricing.run_duties()")
        assert core.task("AAPL").lease_until == lease, "nothing is half moved"
    for _ in range(3):
        clock.advance(5)
        tick(core)
    moved = core.task("AAPL")
    assert moved.status == "pending" or lease - moved.lease_until < timedelta(seconds=HOUR + 60)
    clock.advance(61)
    tick(core)
    assert core.task("AAPL").status == "pending"
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE message LIKE '%was set back by about%'") == 1
