"""Prices can be read from a streaming standby; the queue is worked on the primary only (B20)."""

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
from pricing_pipeline_tests.support.api_server import running_api
from pricing_pipeline_tests.support.patience import wait_until


@ON_PAIR
def test_contract_10_a_read_replica_shows_prices_and_refuses_the_queue(pair: Pair) -> None:
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

    refused = "it is a read replica.*Point PRICING_DATABASE_URL at the primary"
    works = [staleness.run_duties, staleness.enqueue_due, task_queue.promote]
    for work in [*works, lambda connection: task_queue.claim(connection, TWELVEDATA, "w", 1, None)]:
        with core.engine.begin() as primary:
            work(primary)  # type: ignore[operator]
        with pytest.raises(ReadReplica, match=refused), pair.standby.begin() as connection:
            work(connection)  # type: ignore[operator]
    before = core.tasks()
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


@ON_PAIR
def test_contract_10_a_read_replica_is_late(pair: Pair) -> None:
    with running_api(pair.standby, pair.primary.owner) as api:
        answer = api.client.get("/healthz")
    assert answer.status_code == 503
    assert "database" in answer.json()["late"]
