"""B18: quotes and daily bars of one day are judged by each other when they are stored, too."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.observations import Observation
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.quarantining import bring, one_call, quarantined

AFTERNOON = timedelta(hours=20)


@pytest.fixture(autouse=True)
def afternoon(clock: Clock) -> None:
    clock.stop()
    clock.set(midnight(clock.now().date()) + AFTERNOON)


def today(core: Core) -> Observation:
    at = midnight(core.clock().date())
    return replace(observation("AAPL", "530.00", at), open=Decimal(528), high=Decimal(533), low=Decimal(527))


def quote(core: Core, price: str) -> Observation:
    return observation("AAPL", price, core.clock() - timedelta(minutes=1))


def times(bar: Observation, factor: int) -> Observation:
    parts = {name: getattr(bar, name) * factor for name in ("open", "high", "low", "close")}
    return replace(bar, **parts)


@pytest.mark.parametrize("factor", [4, 200])
def test_b18_a_daily_bar_that_contradicts_the_quote_of_its_day_is_quarantined(core: Core, factor: int) -> None:
    """A history until 2013 lets a first new day step by any factor."""
    days = (date(2010, 3, 1), date(2010, 3, 31))
    bring(
        core,
        one_call(core, DAILY, "AAPL", days=days),
        observation("AAPL", "210.00", midnight(date(2010, 3, 1))),
    )
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "531.00"))
    tally = bring(core, one_call(core, DAILY, "AAPL"), times(today(core), factor))
    assert (tally.quarantined, tally.added) == (1, 0)
    assert core.latest("AAPL", DAILY) is None
    (row,) = quarantined(core)
    assert row.data_type == DAILY
    assert "equity_quote has 531" in row.reason


def test_b18_a_quote_that_contradicts_the_bar_of_its_day_is_quarantined_and_true_ones_are_not(
    core: Core, clock: Clock
) -> None:
    bring(core, one_call(core, DAILY, "AAPL"), today(core))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "531.00"))
    assert quarantined(core) == []
    # A last quote that is near takes no part of this: the bar does.
    core.rows("UPDATE pricing.latest_prices SET amount = amount * 4 WHERE data_type = 'equity_quote'")
    clock.advance(60)
    tally = bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "2130.00"))
    assert (tally.quarantined, tally.added) == (1, 0)
    (row,) = quarantined(core)
    assert (row.data_type, row.kind) == (QUOTE, "jump")
    assert "equity_daily has 530" in row.reason


def test_b18_a_split_that_is_known_explains_a_quote_of_the_old_shares(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', :day, 'split', 4, 1, 'yahoo', 1, pricing.clock())",
        day=core.clock().date(),
    )
    bring(core, one_call(core, DAILY, "AAPL"), today(core))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "2120.00"))
    assert quarantined(core) == []
    core.rows("DELETE FROM pricing.latest_prices WHERE data_type = 'equity_daily'")
    core.rows("DELETE FROM pricing.price_history WHERE data_type = 'equity_daily'")
    bring(core, one_call(core, DAILY, "AAPL"), today(core))
    assert quarantined(core) == []
