"""A9: a price whose answer says `null` for its currency is in that of its instrument, where earlier values show it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.values import without_currency
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")


def bring(core: Core, clock: Clock, price: str, *, is_named: bool) -> Tally:
    core.lift_limits()
    clock.advance(60)
    core.enqueue(QUOTE, "AAPL")
    row = observation("AAPL", price, core.clock() - timedelta(seconds=1))
    if not is_named:
        row = without_currency(observation("AAPL", price, row.observed_at, currency=None))
    call = core.claim_one()
    return settling.settle_answer(core.engine, call, Fetched(Answer(observations=Rows([row])), 200, 2, body=b"{}"))


def test_a9_a_null_currency_is_that_of_a_known_instrument_and_is_noted(core: Core, clock: Clock) -> None:
    bring(core, clock, "72.50", is_named=True)
    assert bring(core, clock, "72.60", is_named=False).added == 1
    (row,) = core.rows(
        "SELECT h.currency, h.quality, l.amount FROM pricing.price_history h"
        " JOIN pricing.latest_prices l USING (data_type, symbol, observed_at)"
    )
    assert row.currency == "USD"
    assert row.quality == ("its answer names no currency, so it is taken to be in USD, that of its instrument")
    assert row.amount == Decimal(7260)


def test_a9_a_null_currency_that_hides_another_unit_is_not_believed(core: Core, clock: Clock) -> None:
    bring(core, clock, "72.50", is_named=True)
    assert bring(core, clock, "7250", is_named=False).quarantined == 1
    assert core.one("SELECT amount FROM pricing.latest_prices") == 7250
    assert core.one("SELECT scale FROM pricing.latest_prices") == 2


def test_a9_a_null_currency_of_an_instrument_without_a_price_is_refused(core: Core, clock: Clock) -> None:
    assert bring(core, clock, "72.50", is_named=False).failed == 1
    assert core.rows("SELECT FROM pricing.price_history") == []
    error = core.one("SELECT errors -> -1 ->> 'message' FROM pricing.api_call_queue_live")
    assert "names no currency" in error
    assert "nothing was stored" in error
