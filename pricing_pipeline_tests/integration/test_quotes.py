"""Quotes that raise no question are settled by one statement; any other makes it do nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Adjustment, Answer, Observation
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.prices import known_values, price_writer, quotes
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline.quarantine import judgement
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")


def settle(core: Core, call: Call, *values: Observation) -> int | None:
    with core.engine.begin() as connection:
        return quotes.settle(connection, call, values, http_status=200, wire_bytes=600, units_left=None)


def refreshed(core: Core, price: str, at: datetime) -> None:
    """AAPL and IBM have a price, by the long way."""
    call = core.claimed(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        price_writer.store(connection, call, [observation(symbol, price, at) for symbol in call.symbols])
        task_queue.finish(connection, call, call.task_ids, http_status=200, wire_bytes=600)


def test_b8_quotes_near_the_last_are_stored_finished_and_booked_by_one_statement(core: Core) -> None:
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
    assert (
        settle(core, call := core.claimed(QUOTE, "AAPL"), observation("AAPL", "0.128348", core.clock())) == 1
    )
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


def _bound(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.plausibility_bounds (data_type, symbol, highest) VALUES (:t, NULL, 100)", t=QUOTE
    )


def _stored_already(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider,"
        " call_id, fetched_at)"
        " VALUES (:t, 'IBM', pricing.clock(), 10000, 2, 'twelvedata', 1, pricing.clock())",
        t=QUOTE,
    )


def _only_bars_known(core: Core) -> None:
    core.rows("DELETE FROM pricing.latest_prices WHERE symbol = 'IBM'")
    core.rows(
        "INSERT INTO pricing.latest_prices (data_type, symbol, observed_at, amount, scale, provider,"
        " call_id, fetched_at,"
        " source_text) VALUES (:t, 'IBM', pricing.clock(), 10000, 2, 'twelvedata', 1, pricing.clock(),"
        " '100')",
        t=DAILY,
    )


@pytest.mark.parametrize(
    ("price", "changes", "arrange"),
    [
        ("100.50", {"currency": "EUR"}, None),
        ("131.00", {}, None),
        ("76.00", {}, None),
        ("10000.00", {}, None),
        ("100.50", {"observed_at": timedelta(hours=-1)}, None),
        ("100.50", {"observed_at": timedelta(minutes=-5)}, None),
        ("100.50", {"adjustment": Adjustment.SPLITS}, None),
        ("100.50", {}, _bound),
        ("100.50", {}, _stored_already),
        ("100.50", {}, _only_bars_known),
        ("100.12345678901234567", {}, None),
    ],
    ids=[
        *(
            "currency",
            "far_above",
            "far_below",
            "unit",
            "older",
            "revised",
            "basis",
            "bounds",
            "stored_already",
        ),
        *("first_beside_bars", "digits"),
    ],
)
def test_b18_one_quote_that_must_be_looked_at_leaves_the_whole_call_to_the_long_way(
    core: Core, price: str, changes: dict[str, Any], arrange: Callable[[Core], None] | None
) -> None:
    now = core.clock()
    refreshed(core, "100.00", now - timedelta(minutes=5))
    call = core.claimed(QUOTE, "AAPL", "IBM")
    if arrange is not None:
        arrange(core)
        now = (
            core.one("SELECT max(observed_at) FROM pricing.price_history")
            if arrange is _stored_already
            else now
        )
    changes = {name: now + value if name == "observed_at" else value for name, value in changes.items()}
    doubtful = replace(observation("IBM", price, now), **changes)
    plain = replace(observation("AAPL", "100.10", now), adjustment=doubtful.adjustment)
    before = core.rows("SELECT * FROM pricing.latest_prices ORDER BY data_type, symbol")
    kept = core.one("SELECT count(*) FROM pricing.price_history")
    assert settle(core, call, plain, doubtful) is None
    assert core.rows("SELECT * FROM pricing.latest_prices ORDER BY data_type, symbol") == before
    assert core.one("SELECT count(*) FROM pricing.price_history") == kept
    assert {task.status for task in core.tasks() if task.id in call.task_ids} == {"processing"}
    assert (
        core.one("SELECT outcome FROM pricing.collector_call_log WHERE call_id = :id", id=call.id) == "open"
    )


def test_b8_a_claim_that_lost_one_task_stores_no_quote_that_way(core: Core) -> None:
    call = core.claimed(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        task_queue.cancel(connection, [core.task("IBM").id])
    values = [observation(symbol, "5.00", core.clock()) for symbol in call.symbols]
    assert settle(core, call, *values) is None
    assert core.latest("AAPL") is None
    tally = settle_answer(core.engine, call, Fetched(Answer(tuple(values)), http_status=200, wire_bytes=600))
    assert (tally.added, tally.symbols) == (1, {"AAPL"})
    audit(core)


def test_b18_no_quote_is_stored_at_once_that_the_rules_would_hold(core: Core) -> None:
    """The statement may leave to the rules what they then believe, never the other way round."""
    core.lift_limits(batch_size=1)
    at = core.clock() - timedelta(seconds=1)
    ratios = [
        "0.5",
        "0.76999",
        "0.77",
        "0.7701",
        "0.7711",
        "0.9",
        "1",
        "1.2989",
        "1.2999",
        "1.3",
        "1.30001",
        "2",
        "100",
    ]
    for number in range(len(ratios)):
        core.rows(
            "INSERT INTO pricing.latest_prices (data_type, symbol, observed_at, amount, scale, provider,"
            " call_id,"
            " fetched_at, source_text) VALUES (:t, :symbol, :at, :amount, :scale, 'twelvedata', 1,"
            " pricing.clock(), 'x')",
            t=QUOTE,
            symbol=f"S{number}",
            at=at - timedelta(minutes=1),
            amount=123 * 10**number,
            scale=number,
        )
        core.enqueue(QUOTE, f"S{number}")
    stored = 0
    for call in core.claim(max_calls=len(ratios)):
        ratio = ratios[int(call.symbols[0][1:])]
        row = observation(call.symbols[0], str(123 * int(float(ratio) * 10**5 + 0.5)) + "E-5", at)
        with core.engine.begin() as connection:
            known = known_values.load(connection, call, [row])
        held = judgement.verdicts(call, [row], known)[row.symbol].held
        accepted = settle(core, call, row) is not None
        assert not (accepted and held), (ratio, held)
        stored += accepted
    assert stored == 4
