"""The days of Yahoo's sandbox around each change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Question
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.spellings import of_yahoo
from pricing_pipeline_tests.support.sandbox_server import Asked

pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out


@pytest.mark.parametrize(
    ("change", "hours"), [("2026-03-08", "always"), ("2026-03-29", "exchange"), ("2026-10-04", "always")]
)
def test_our_client_reads_the_same_days_while_clocks_change(change: str, hours: str) -> None:
    """In New York, Berlin and Sydney. The newest day that is over may come an hour late."""
    start = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(days=2)
    asked, client = Asked(start, market_hours=hours), PROVIDERS["yahoo"]
    market = Market(asked.settings.seed, asked.settings.market_hours)
    read = 0
    for step in range(16):
        now = asked.now = start + timedelta(minutes=360 * step + 7)
        window = Window(now.date() - timedelta(days=6), now.date())
        for symbol in ("AAPL", "SAP.DE", "BHP.AX", "EURUSD=X"):
            request = client.build(Question(Fetcher.DAILY_BARS, [symbol], window, now))
            reply = asked.yahoo(request.path.lstrip("/"), **dict(request.params))
            made = {"date": format_datetime(now, usegmt=True)}
            answer = client.parse(
                Question(Fetcher.DAILY_BARS, [symbol], window, now),
                Response(reply.status, made, reply.body, len(reply.body)),
            )
            assert (answer.rejected, answer.failures) == ((), ())
            one = of_yahoo(symbol)
            assert one is not None
            over = market.final_bars(one, window.start, min(window.end, market.last_final_day(one, now)))
            days = [row.observed_at.date() for row in answer.observations]
            assert days in ([bar.day for bar in over], [bar.day for bar in over[:-1]]), (now, symbol)
            read += len(days)
    assert read > 150
