"""A database with one of each trouble that the operations page shows, as real events bring it about."""

from __future__ import annotations

from datetime import date, timedelta

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.operations import alerts, operation_queue
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support import alert_causes
from pricing_pipeline_tests.support.quarantining import bring, one_call
from pricing_pipeline_tests.support.working import start

DOUBTED = "7250"
"""A price of AAPL in the wrong unit."""


def be_fresh(core: Core) -> None:
    """A pipeline that has just started, three watched pairs with prices, and a notifier at work."""
    start(core)
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    alerts.look(core.engine, is_noted=True)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"), (QUOTE, "IBM"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    price(core, "AAPL", "72.50")
    price(core, "MSFT", "412.10")
    price(core, "IBM", "120")


def price(core: Core, symbol: str, value: str, data_type: str = QUOTE) -> None:
    """A provider's answer for a pair, whether it is believed or not."""
    call = one_call(core, data_type, symbol)
    bring(core, call, observation(symbol, value, core.clock() - timedelta(seconds=1)))


def doubt(core: Core, clock: Clock) -> None:
    """A price that is not believed, among some that are."""
    for value in ("72.9", "73.4", "73.1"):
        clock.advance(61)
        price(core, "AAPL", value)
    clock.advance(61)
    price(core, "AAPL", DOUBTED)


def begin_backfill(core: Core) -> None:
    """A backfill that is under way."""
    refresher = Refresher(core.engine, {}, worker="planner")
    refresher.plan_backfill(DAILY, Window(date(2010, 1, 1), date(2012, 12, 31)), None)


def serve_a_day(core: Core) -> None:
    """What the samples of a day say: well, with one bad hour."""
    core.rows(
        "INSERT INTO pricing.freshness_samples (data_type, at, watched, fresh, late)"
        " SELECT t, pricing.clock() - make_interval(mins => 5 * n), 8, CASE WHEN n BETWEEN 100 AND 112 THEN n - 100"
        " ELSE 8 - (n * 7 % 11 = 0)::integer END, CASE WHEN n BETWEEN 100 AND 106 THEN 3 ELSE 0 END"
        " FROM generate_series(0, 287) n, unnest(ARRAY['equity_quote', 'fx_rate']) t"
    )
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes) SELECT 'twelvedata',"
        " date_trunc('hour', pricing.clock()) - make_interval(hours => n), 4000000 + 3000000 * (n / 24 % 7)"
        " FROM generate_series(1, 700) n"
    )


def be_ill(core: Core, clock: Clock) -> None:
    """All troubles at once."""
    serve_a_day(core)
    be_fresh(core)
    doubt(core, clock)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.heartbeat("ann", (QUOTE, "NVDA"), (FX, "EUR/USD"))
    alert_causes.kill_message(core, clock)
    while calls := core.claim(max_calls=1):
        core.fail(calls[0], FailureKind.UNKNOWN_SYMBOL, "the provider knows no such symbol")
    core.heartbeat("ann", (QUOTE, "GOOG"))
    alert_causes.open_breaker(core, clock)
    begin_backfill(core)
    clock.advance(95)
    for _ in range(2):
        alerts.look(core.engine, is_noted=True)
        clock.advance(61)
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    alerts.look(core.engine, is_noted=True)
