"""What becomes of an answer about latest quotes: stored, finished and booked at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.prices import price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import ANSWERED, QUOTE, Core, observation
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")


def settle(core: Core, call: Call, *values: Observation) -> int:
    answer = Answer(Rows(values))
    return settle_answer(core.engine, call, Fetched(answer, http_status=200, wire_bytes=600)).added


def refreshed(core: Core, price: str, at: datetime) -> None:
    """AAPL and IBM have a price."""
    call = core.claimed(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        price_writer.store(connection, call, Rows([observation(symbol, price, at) for symbol in call.symbols]))
        task_queue.finish(connection, call, call.task_ids, ANSWERED)


def test_b8_quotes_are_stored_finished_and_booked(core: Core) -> None:
    before = core.clock() - timedelta(minutes=5)
    refreshed(core, "100.00", before)
    call = core.claimed(QUOTE, "AAPL", "IBM")
    at = core.clock() - timedelta(seconds=1)
    values = [observation("AAPL", "101.50000", at), observation("IBM", "99.123450", at)]
    assert settle(core, call, *values) == 2
    assert {task.status for task in core.tasks()} == {"completed"}
    stored = core.rows(
        "SELECT symbol, amount, scale, currency, source_text, call_id, changed_at, adjustment FROM"
        " pricing.latest_prices ORDER BY 1"
    )
    assert [tuple(row) for row in stored] == [
        ("AAPL", 10150, 2, "USD", "101.50000", call.id, at, "raw"),
        ("IBM", 9912345, 5, "USD", "99.123450", call.id, at, "raw"),
    ]
    history = core.rows(
        "SELECT observed_at, amount, scale, provider, call_id FROM pricing.price_history WHERE symbol ="
        " 'IBM' ORDER BY 1"
    )
    assert [tuple(row) for row in history[1:]] == [(at, 9912345, 5, "twelvedata", call.id)]
    assert core.one(f"SELECT outcome FROM pricing.collector_call_log WHERE call_id = {call.id}") == "ok"
    assert core.one("SELECT sum(bytes) FROM pricing.api_data_usage") == 1200
    assert not core.rows("SELECT FROM pricing.price_revisions")
    audit(core)


def test_b8_the_first_quote_of_an_instrument_verifies_it(core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET verified_at = NULL, currency = NULL")
    assert settle(core, call := core.claimed(QUOTE, "AAPL"), observation("AAPL", "0.128348", core.clock())) == 1
    assert core.one("SELECT currency FROM pricing.instruments WHERE symbol = 'AAPL'") == "USD"
    assert core.one("SELECT verified_at IS NOT NULL FROM pricing.instruments WHERE symbol = 'AAPL'")
    latest = core.latest("AAPL")
    assert latest is not None
    assert str(latest.price) == "0.128348"
    assert call.fetcher is Fetcher.QUOTE


def test_f3_the_same_quote_again_confirms_it_and_writes_no_history(core: Core) -> None:
    at = core.clock() - timedelta(minutes=5)
    refreshed(core, "100.00", at)
    call = core.claimed(QUOTE, "AAPL", "IBM")
    assert settle(core, call, *[observation(symbol, "100.000", at) for symbol in call.symbols]) == 0
    assert core.one("SELECT count(*) FROM pricing.price_history") == 2
    assert (
        core.one(
            "SELECT count(*) FROM pricing.latest_prices WHERE call_id = :id AND changed_at = :at",
            id=call.id,
            at=at,
        )
        == 2
    )
    audit(core)


def test_b8_of_a_call_that_lost_a_task_only_the_other_quotes_are_stored(core: Core) -> None:
    call = core.claimed(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        task_queue.cancel(connection, [core.task("IBM").id])
    values = [observation(symbol, "5.00", core.clock()) for symbol in call.symbols]
    assert settle(core, call, *values) == 1
    assert core.latest("AAPL") is not None
    assert core.latest("IBM") is None
    audit(core)


@pytest.mark.parametrize(
    ("price", "currency"), [("1000.00", "USD"), ("10.00", "USD"), ("10000.00", "USD"), ("100.50", "EUR")]
)
def test_b18_a_quote_that_is_not_believed_leaves_its_neighbour_alone(core: Core, price: str, currency: str) -> None:
    now = core.clock()
    refreshed(core, "100.00", now - timedelta(minutes=5))
    call = core.claimed(QUOTE, "AAPL", "IBM")
    doubtful = replace(observation("IBM", price, now), currency=currency)
    assert settle(core, call, observation("AAPL", "100.10", now), doubtful) == 1
    prices = {symbol: core.latest(symbol) for symbol in call.symbols}
    assert {symbol: latest and str(latest.price) for symbol, latest in prices.items()} == {
        "AAPL": "100.10",
        "IBM": "100.00",
    }
    assert core.one("SELECT count(*) FROM pricing.quarantined_values WHERE symbol = 'IBM'") == 1
    audit(core)
