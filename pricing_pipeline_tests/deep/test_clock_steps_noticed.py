"""A step of the clock is noticed once, and every stored time is moved with it or left on purpose."""

from __future__ import annotations

import re
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
    lease = "SELECT extract(epoch FROM lease_until - pricing.clock())::float8 FROM pricing.api_call_queue_live"
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
    assert core.one("SELECT lease_until <= pricing.clock() + interval '1 minute' FROM pricing.api_call_queue_live")


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


ALWAYS_KEPT = {"created_at", "recorded_at", "revised_at", "modified_at", "vanished_at"}
"""Columns that say when something happened, whatever table they are in."""
KEPT = {
    "alerts": "raised_at resolved_at end_told_at acknowledged_at",
    "api_call_queue": "resolved_at",
    "api_tokens": "last_used_at expires_at",
    "async_operations": "finished_at",
    "backfills": "requested_at finished_at cancelled_at",
    "calendar_disagreements": "found_at",
    "calendar_sessions": "opens_at closes_at",  # the exchange's times
    "collector_call_log": "started_at finished_at",  # moved_to has its time on the clock of today
    "corporate_action_pairs": "fetched_at",
    "corporate_actions": "judged_at",
    "drains": "finished_at requested_at",
    "etl_warnings": "warned_at",
    "exported_months": "exported_at moved_at",
    "freshness_samples": "at",
    "game_versions": "seen_at live_since live_until",
    "holdings": "since closed_at",
    "instruments": "verified_at",
    "latest_prices": "observed_at changed_at",
    "pair_requests": "requested_at",  # more than a minute ahead counts as past
    "past_calls": "started_at finished_at",
    "plausibility_bounds": "jumps_trusted_until",  # a person's time
    "price_alerts": "seen_at reference_at",
    "price_events": "observed_at stored_at",
    "price_history": "observed_at fetched_at",
    "price_revisions": "observed_at",
    "provider_credentials": "replaced_at sealed_at",
    "provider_state": "page_until",  # more than 5 s ahead holds nobody back
    "provider_symbols": "given_at",
    "provisional_bars": "observed_at",
    "quarantined_values": "observed_at last_seen_at resolved_at",
    "read_charges": "charged_at",  # future ones do not count
    "restatements": "last_seen_at reopened_at",
    "schedule_walks": "next_slot",  # the sensor writes it anew
    "second_opinions": "asked_at answered_at observed_at",
    "size_estimates": "last_overrun_at",
    "slot_windows": "fetched_at",  # more than a minute ahead counts as stale
    "slots": "starts_at ends_at bookable_until",
    "stream_events": "noted_at observed_at fetched_at since next_at",
    "streamed_pairs": "judge_at wanted_until observed_at fetched_at since next_at",  # compared anew by the next look
    "task_times": "counted_until",  # a future one counts as now
    "ttl_stretches": "ends_at noted_at",  # worked out anew with the next duties
    "warning_counts": "since last_at",
    "warnings": "at",
}
"""Times that keep their value when the clock is set back: evidence, or what readers know how to judge."""


def moved_times() -> set[str]:
    """Columns as table.column, and tables as table.*, that follow_clock changes when the clock was set back."""
    files = (ROOT / "pricing_pipeline/db/functions").rglob("*.sql")
    parts = re.split(
        r"CREATE OR REPLACE FUNCTION pricing\.(\w+)", "\n".join(file.read_text() for file in sorted(files))
    )
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = set()
    for table, columns in re.findall(r"\('(\w+)', '[\w, ]+', '\w+',\s+'([\w, ]+)', '", bodies["move_times"]):
        found |= {f"{re.sub('(?<=queue|tions)_(live|dead)', '', table)}.{name}" for name in columns.split(", ")}
    for name in ("note_step", "move_times", "move_calls", "move_days"):
        for statement in bodies[name].split(";"):
            if emptied := re.search(r"DELETE FROM pricing\.(\w+)", statement):
                found.add(f"{emptied[1]}.*")
            if changed := re.search(r"UPDATE pricing\.(\w+)", statement):
                found |= {f"{changed[1]}.{column}" for column in re.findall(r"[\s(](\w+) = ", statement)}
    return found


def test_every_time_that_is_stored_is_moved_with_the_clock_or_kept_on_purpose() -> None:
    schema = (ROOT / "docs/maintainers/schema.sql").read_text()
    stored: set[str] = set()
    table = ""
    for line in schema.splitlines():
        if line.startswith("CREATE "):
            table = line.split()[2].removeprefix("pricing.") if line.startswith("CREATE TABLE") else ""
        elif table and " timestamp with time zone" in line and line.startswith("    "):
            stored.add(f"{table}.{line.split()[0]}")
    stored = {
        name
        for name in stored
        if not name.startswith(("api_call_queue_", "alembic")) and name.split(".")[1] not in ALWAYS_KEPT
    }
    moved = moved_times()
    kept = {f"{table}.{column}" for table, columns in KEPT.items() for column in columns.split()}
    changed = {name for name in stored if name in moved or f"{name.split('.')[0]}.*" in moved}
    assert stored - changed == kept


def test_b11_a_locked_row_keeps_neither_duties_nor_later_looks_from_going_on(core: Core, clock: Clock) -> None:
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
