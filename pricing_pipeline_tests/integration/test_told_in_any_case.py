"""Somebody is told whatever stands in the way: locks, floods, clocks, sleep, and trouble that comes in hundreds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import alerts, operation_queue, price_watch, recipients
from pricing_pipeline.operations.alert_rules import AWAKE_AFTER
from pricing_pipeline.operations.last_resort import LastResort, Watch
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import (
    keep_looking,
    open_breaker,
    run_duties,
    use_quota,
)
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.receivers import Receiver, receiving
from pricing_pipeline_tests.support.storing import next_call

pytestmark = pytest.mark.usefixtures("still")

HOUR = 3600


def bodies(core: Core) -> list[str]:
    rows = core.rows("SELECT payload FROM pricing.async_operations WHERE operation_type = 'log' ORDER BY id")
    return [row.payload["body"] for row in rows]


def watch_of(receiver: Receiver, signs: SignsOfLife, home: Path, away_after: float) -> Watch:
    resort = LastResort(SecretStr(receiver.url), SecretStr("a secret of sixteen or more"), True)
    return Watch(resort, signs, home, "postgresql://here", away_after=away_after)


def test_b21_an_alert_that_a_person_has_locked_keeps_no_other_from_being_told(core: Core, clock: Clock) -> None:
    use_quota(0.95)(core, clock)
    alerts.look(core.engine)
    with core.owner.connect() as person:
        person.execute(text("SELECT FROM pricing.alerts FOR UPDATE"))
        open_breaker(core, clock)
        assert alerts.look(core.engine) == 1
        assert "section breaker_open" in bodies(core)[-1]
        core.rows("DELETE FROM pricing.api_data_usage")
        clock.advance(301)
        run_duties(core, clock)
        assert alerts.look(core.engine) == 0, "the end of a locked one waits"
    assert alerts.look(core.engine) == 1
    assert "Over: quota_short" in bodies(core)[-1]


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


@pytest.mark.parametrize(
    "obstacle",
    [
        "LOCK TABLE pricing.async_operations_live IN EXCLUSIVE MODE",
        "DROP FUNCTION pricing.queue_operation(pricing.operation_types, jsonb, timestamptz, integer)",
        "REVOKE INSERT ON pricing.async_operations_live FROM pricing_worker",
    ],
)
def test_b21_b27_what_cannot_be_queued_now_is_not_noted_as_told(core: Core, clock: Clock, obstacle: str) -> None:
    """As while an index is made, or before the database is upgraded."""
    core.rows(
        "INSERT INTO pricing.price_alerts (recipient, data_type, symbol, condition, threshold, created_at, created_by)"
        " VALUES ('mailbox', 'equity_quote', 'AAPL', 'above', 200, pricing.clock(), 'ann')"
    )
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "210", core.clock()))
    open_breaker(core, clock)
    with core.owner.connect() as person:
        person.execute(text(obstacle))
        if "LOCK" not in obstacle:
            person.commit()
        with pytest.raises(DBAPIError):
            alerts.look(core.engine)
        with pytest.raises(DBAPIError):
            price_watch.watch(core.engine)
    assert core.rows("SELECT FROM pricing.alerts WHERE told_at IS NOT NULL") == []
    assert core.rows("SELECT FROM pricing.price_alerts WHERE told_at IS NOT NULL") == []
    if "LOCK" in obstacle:
        assert (alerts.look(core.engine), price_watch.watch(core.engine)) == (1, 1)


def test_b21_the_last_resort_tells_that_nobody_can_look_though_messages_go_out(core: Core, tmp_path: Path) -> None:
    signs, stop = SignsOfLife(), threading.Event()
    runner = OperationRunner(core.engine, {}, worker="here", signs=signs)
    with receiving(lambda post: post.answer(204)) as receiver, core.owner.connect() as person:
        person.execute(text("LOCK TABLE pricing.alerts IN ACCESS EXCLUSIVE MODE"))
        threads = [
            threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05}),
            threading.Thread(
                target=alerts.keep_looking,
                args=(core.engine, stop),
                kwargs={"every_seconds": 0.05, "signs": signs},
            ),
            threading.Thread(
                target=watch_of(receiver, signs, tmp_path, 2.0).keep_watching,
                args=(stop,),
                kwargs={"every_seconds": 0.05},
            ),
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(receiver.posted) == 1)
        assert b"no other trouble is reported" in receiver.posted[0].body
        person.rollback()
        wait_until(lambda: len(receiver.posted) == 2)
        stop.set()
        for thread in threads:
            thread.join()
    runner.close()


def test_b21_a_turn_that_nobody_uses_is_told(core: Core, clock: Clock) -> None:
    alerts.look(core.engine, is_noted=True)
    with core.engine.begin() as other:
        other.exec_driver_sql("SELECT pricing.take_turn('look_for_alerts')")
        assert alerts.look(core.engine, is_noted=True) == 0
        clock.advance(121)
        with pytest.raises(DatabaseError, match="another session has the turn to look for alerts"):
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
