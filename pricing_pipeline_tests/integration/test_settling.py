"""An answer of which all is believed is settled by one statement: what it does, what it refuses, what it reads."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.prices import context as contexts
from pricing_pipeline.prices import price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import (
    ANSWERED,
    QUOTE,
    Core,
    observation,
    rows_read,
)
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")


def settle(core: Core, call: Call, price: str = "5.00") -> tuple[int, int] | None:
    values = Rows(observation(symbol, price, core.clock() - timedelta(seconds=1)) for symbol in call.symbols)
    with core.engine.begin() as connection:
        known = contexts.known_values(connection, call, values)
        return price_writer.settle(connection, call, values, known, ANSWERED)


def test_b8_one_statement_stores_finishes_and_books(core: Core) -> None:
    assert settle(core, core.claimed(QUOTE, "AAPL", "IBM")) == (2, 0)
    assert core.statuses() == {"AAPL": "completed", "IBM": "completed"}
    latest = core.latest("IBM")
    assert latest is not None
    assert str(latest.price) == "5.00"
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "ok"
    assert core.one("SELECT bytes FROM pricing.api_data_usage") == 600
    audit(core)


def test_b8_a_claim_that_lost_one_task_stores_none_that_way(core: Core) -> None:
    """The others are settled one step after the other, as any answer that is not good throughout."""
    call = core.claimed(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        task_queue.cancel(connection, [core.task("IBM").id])
    assert settle(core, call) is None
    assert core.latest("AAPL") is None
    assert core.task("AAPL").status == "processing"
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "open"

    values = Rows(observation(symbol, "5.00", core.clock()) for symbol in call.symbols)
    tally = settle_answer(core.engine, call, Fetched(Answer(values), http_status=200, wire_bytes=600))
    assert (tally.added, tally.symbols) == (1, {"AAPL"})
    assert core.latest("IBM") is None
    assert core.statuses() == {"AAPL": "completed", "IBM": "cancelled"}


def test_f3_a_price_older_than_the_stored_one_undoes_the_statement(core: Core) -> None:
    settle(core, core.claimed(QUOTE, "IBM"))
    call = core.claimed(QUOTE, "AAPL", "IBM")
    values = Rows(observation(symbol, "6.00", core.clock() - timedelta(hours=1)) for symbol in call.symbols)
    with core.engine.connect() as connection:
        known = contexts.known_values(connection, call, values)
        with pytest.raises(DBAPIError, match="the price of IBM is older"):
            price_writer.settle(connection, call, values, known, ANSWERED)
    assert core.latest("AAPL") is None

    settle_answer(core.engine, call, Fetched(Answer(values), http_status=200, wire_bytes=600))
    assert core.latest("AAPL") is not None
    assert {task.status: task.errors for task in core.tasks("IBM")}["scheduled"][-1]["kind"] == "stale_source"


def test_a9_what_values_are_judged_by_is_found_without_reading_all_prices(core: Core) -> None:
    """Nobody has counted the rows of a new database: all latest prices of the type were read for each call."""
    core.rows(
        "INSERT INTO pricing.latest_prices"
        " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at, source_text)"
        " SELECT 'equity_quote', 'S' || n, timestamptz '2026-01-01', 100, 2, 'twelvedata', 1, pricing.clock(), '1.00'"
        " FROM generate_series(1, 5000) AS n"
    )
    call = core.claimed(QUOTE, *(f"S{number}" for number in range(1, 51)))
    assert call.fetcher is Fetcher.QUOTE
    values = Rows(observation(symbol, "1.01", core.clock()) for symbol in call.symbols)
    with core.engine.begin() as connection:
        before = rows_read(connection)
        assert len(contexts.known_values(connection, call, values)) == 50
        assert rows_read(connection) - before < 500
