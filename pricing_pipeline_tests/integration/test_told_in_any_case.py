"""Somebody is told whatever stands in the way: locks, floods, clocks, sleep, and trouble that comes in hundreds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import alerts, operation_queue, recipients
from pricing_pipeline.operations.alert_rules import AWAKE_AFTER
from pricing_pipeline.operations.last_resort import LastResort, Watch
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import (
    keep_looking,
    open_breaker,
    run_duties,
)
from pricing_pipeline_tests.support.receivers import Receiver, receiving

pytestmark = pytest.mark.usefixtures("still")

HOUR = 3600


def bodies(core: Core) -> list[str]:
    rows = core.rows("SELECT payload FROM pricing.async_operations WHERE operation_type = 'log' ORDER BY id")
    return [row.payload["body"] for row in rows]


def watch_of(receiver: Receiver, signs: SignsOfLife, home: Path, away_after: float) -> Watch:
    resort = LastResort(SecretStr(receiver.url), SecretStr("a secret of sixteen or more"), True)
    return Watch(resort, signs, home, "postgresql://here", away_after=away_after)


def test_b21_more_alerts_than_fit_into_a_message_are_all_told_whole(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.dagster_failures (kind, name, run_id, reason, failed_at)"
        " SELECT 'run', 'job ' || n, gen_random_uuid()::text, repeat(E'\\u00e9\\u0001\\U0001F4A5', 130),"
        " pricing.clock() FROM generate_series(1, 40) n"
    )
    messages = alerts.look(core.engine)
    told = bodies(core)
    assert 1 < messages == len(told) < 20
    assert all("What to do" in body.splitlines()[-1] for body in told), "none is cut off"
    assert all(f" of job {number} failed" in "\n".join(told) for number in range(1, 41))
    with_message = "SELECT count(*) FROM pricing.alerts WHERE cardinality(message_ids) = 1"
    assert core.one(with_message) == 40


def test_b21_an_alert_goes_before_a_flood_of_other_messages(core: Core, clock: Clock) -> None:
    """A receiver that hangs holds a message for its time limit, and so thousands of them for hours."""
    with core.engine.begin() as connection:
        for number in range(10):
            recipients.send(connection, "mailbox", f"Price {number}", "It has moved.")
    open_breaker(core, clock)
    alerts.look(core.engine)
    with core.engine.begin() as connection:
        (first,) = operation_queue.claim(connection, ["log"], 1, "here")
    assert "breaker open" in first.payload["title"]


def test_b21_an_alert_that_goes_first_waits_in_quiet_hours_all_the_same(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.recipients SET quiet_from = (l.at - interval '1 hour')::time,"
        " quiet_until = (l.at + interval '1 hour')::time FROM (SELECT pricing.clock() AT TIME ZONE 'UTC' AS at) l"
    )
    open_breaker(core, clock)
    assert alerts.look(core.engine) == 1
    with core.engine.begin() as connection:
        assert operation_queue.claim(connection, ["log"], 1, "here") == []
    clock.advance(HOUR + 1)
    with core.engine.begin() as connection:
        assert len(operation_queue.claim(connection, ["log"], 1, "here")) == 1


def test_b21_what_stood_still_while_nothing_ran_is_no_alert(core: Core, clock: Clock) -> None:
    """After a night in which the machine slept, or the pipeline was off, the notifier may look before Dagster works."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.enqueue(QUOTE, "AAPL")
    run_duties(core, clock)
    alerts.look(core.engine)
    clock.advance(8 * HOUR)
    alerts.look(core.engine)
    clock.advance(15)
    run_duties(core, clock)
    alerts.look(core.engine)
    assert bodies(core) == []


def test_b21_what_was_seen_before_a_night_has_not_lasted_through_it(core: Core, clock: Clock) -> None:
    run_duties(core, clock)
    clock.advance(601)
    alerts.look(core.engine)
    clock.advance(8 * HOUR)
    alerts.look(core.engine)
    assert bodies(core) == []
    keep_looking(core, clock, AWAKE_AFTER)
    assert "the duty expire_calls has not run since" in bodies(core)[0].lower()


def test_b15_b21_a_clock_that_is_set_back_hides_no_dead_dagster(core: Core, clock: Clock) -> None:
    run_duties(core, clock)
    clock.advance(601)
    keep_looking(core, clock, AWAKE_AFTER)
    assert len(bodies(core)) == 1
    clock.advance(-24 * HOUR)
    keep_looking(core, clock, 900)
    assert [body for body in bodies(core) if body.startswith("Over")] == []
    assert core.one("SELECT says FROM pricing.alerts WHERE resolved_at IS NULL").startswith("Late: ")


def test_b21_what_no_channel_takes_is_told_when_one_does(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'log'")
    open_breaker(core, clock)
    assert alerts.look(core.engine) == 0
    core.rows("UPDATE pricing.operation_types SET is_active = true WHERE operation_type = 'log'")
    assert alerts.look(core.engine) == 1


def test_b21_a_turn_that_nobody_uses_is_told(core: Core, clock: Clock) -> None:
    alerts.look(core.engine, is_noted=True)
    with core.engine.begin() as other:
        other.exec_driver_sql("SELECT pricing.take_turn('look_for_alerts')")
        assert alerts.look(core.engine, is_noted=True) == 0
        clock.advance(121)
        with pytest.raises(DatabaseError, match="another session has the turn to check for alerts"):
            alerts.look(core.engine, is_noted=True)


def test_b21_a_notifier_that_was_frozen_blames_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)

    class Stop(threading.Event):
        """Waits by moving the clock; the second wait takes ten minutes, as that of a process that is stopped."""

        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now
            self.waits += 1
            now += 600 if self.waits == 2 else timeout or 0
            return self.waits > self.last

    with receiving(lambda post: post.answer(204)) as receiver:
        for last, told in ((50, 0), (70, 1)):
            stop = Stop()
            stop.last = last  # type: ignore[attr-defined]
            signs = SignsOfLife()
            watch_of(receiver, signs, tmp_path, 60.0).keep_watching(stop)
            assert len(receiver.posted) == told
