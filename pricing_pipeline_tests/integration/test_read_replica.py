"""A real streaming standby: prices can be read from it, the queue is worked on the primary only (B20)."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline.demand import staleness
from pricing_pipeline.errors import ReadReplica
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.replica import ON_PAIR, Pair
from pricing_pipeline_tests.support.patience import wait_until


@ON_PAIR
def test_b20_a_read_replica_shows_prices_and_refuses_the_queue(pair: Pair) -> None:
    core = pair.primary
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    core.enqueue(QUOTE, "IBM")

    def replicated() -> bool:
        with pair.standby.connect() as standby:
            return len(task_queue.tasks(standby, ["pending", "completed"], 9)) == 2

    wait_until(replicated)
    replica = Core(pair.standby, pair.standby)
    price = replica.latest("AAPL")
    assert price is not None
    assert str(price.price) == "146.55"
    assert replica.one("SELECT pg_is_in_recovery()")

    before = core.tasks()
    works = [staleness.run_duties, staleness.enqueue_due, task_queue.promote]
    for work in [*works, lambda connection: task_queue.claim(connection, TWELVEDATA, "w", 1, None)]:
        with pytest.raises(ReadReplica, match="it is a read replica"), pair.standby.begin() as connection:
            work(connection)  # type: ignore[operator]
    with Refresher(pair.standby, {}, worker="lost") as refresher:
        with pytest.raises(ReadReplica) as refusal:
            refresher.drain(5)
        with pytest.raises(ReadReplica):
            refresher._work_until(lambda: False)
    assert "***" in str(refusal.value), "the password is not shown"
    for function in ("require_primary", "run_duties", "enqueue_due"):
        with pair.standby.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="works on the primary only"):
                driver.execute(f"SELECT pricing.{function}()")
    assert core.tasks() == before
    with core.engine.begin() as connection:
        connection.execute(text("SELECT pricing.require_primary()"))
