"""Somebody is told though rows are locked and nothing can be queued."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.operations import alerts, price_watch
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_told_in_any_case import bodies, watch_of
from pricing_pipeline_tests.support.alert_causes import (
    open_breaker,
    run_duties,
    use_quota,
)
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.receivers import receiving
from pricing_pipeline_tests.support.storing import next_call

pytestmark = pytest.mark.usefixtures("still")


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
