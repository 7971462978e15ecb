"""Price alerts: who asked is told of prices, once, exactly, and never at the cost of whoever stores them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import Connection, text

from pricing_pipeline.operations import price_alerts, price_watch
from pricing_pipeline.operations.price_alerts import Wanted
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.storing import next_call

pytestmark = pytest.mark.usefixtures("still")

DAY = 86400
STORE = (
    "SELECT pricing.merge_prices('equity_quote', 'twelvedata', 1, true, ARRAY[:symbol], ARRAY[pricing.clock()],"
    " ARRAY[CAST(:amount AS bigint)], ARRAY[NULL::bigint], ARRAY[NULL::bigint], ARRAY[NULL::bigint],"
    " ARRAY[2::smallint], ARRAY['USD'], ARRAY[NULL::numeric], ARRAY[NULL::text], ARRAY['raw'])"
)


def asked(
    core: Core, condition: str, value: str | None = None, symbol: str | None = "AAPL", to: str = "mailbox"
) -> int:
    """Add an alert; the value is its threshold, or its span in seconds."""
    spans = {"stale": "lasts", "each": "pace"}
    more = {spans.get(condition, "threshold"): Decimal(value) if value else 60}
    with core.engine.begin() as connection:
        wanted = Wanted(to, QUOTE, symbol, condition, **more)  # type: ignore[arg-type]
        return price_alerts.add(connection, wanted, "ann").price_alert_id


def priced(core: Core, clock: Clock, *amounts: str, symbol: str = "AAPL") -> None:
    """Store prices, a second after each other."""
    for amount in amounts:
        clock.advance(1)
        call = next_call(core, QUOTE, symbol)
        core.store(call, observation(symbol, amount, core.clock()))


@contextmanager
def storing(core: Core, amount: int, symbol: str = "AAPL") -> Iterator[Connection]:
    """A transaction that has stored a price and is not committed yet."""
    with core.engine.begin() as connection:
        connection.execute(text(STORE), {"symbol": symbol, "amount": amount})
        yield connection


def titles(core: Core) -> list[str]:
    return [
        row.title
        for row in core.rows("SELECT payload ->> 'title' AS title FROM pricing.async_operations ORDER BY id")
    ]


def told(core: Core) -> list[str]:
    """What is new since it was asked last."""
    price_watch.watch(core.engine)
    found = titles(core)
    core.rows("DELETE FROM pricing.async_operations")
    return found


def test_b27_a_crossing_is_told_once(core: Core, clock: Clock) -> None:
    asked(core, "above", "200")
    asked(core, "below", "150.5")
    priced(core, clock, "199.99", "200.00")
    assert told(core) == [], "200 is not above 200"
    priced(core, clock, "200.01", "230", "199", "150.50", "150.49", "151", "201")
    assert told(core) == [
        "AAPL is above 200: 200.01 USD",
        "AAPL is above 200: 201.00 USD",
        "AAPL is below 150.5: 150.49 USD",
    ]
    assert told(core) == []


def test_b27_what_is_beyond_already_is_told_at_once(core: Core, clock: Clock) -> None:
    priced(core, clock, "210")
    asked(core, "above", "200")
    asked(core, "moved", "1")
    assert told(core) == ["AAPL is above 200: 210.00 USD"]
    priced(core, clock, "211", "212.10")
    assert told(core) == ["AAPL has risen by 1.00 %: 212.10 USD"]
