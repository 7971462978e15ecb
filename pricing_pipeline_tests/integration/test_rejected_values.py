"""What a person has rejected stays rejected, whatever comes beside it.

Invariant: a value (symbol, time, number) of a provider that a person has rejected is never stored from that provider
again, in whatever company and spelling it comes, and waits for nobody a second time; other values are judged as if it
had not come.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.judging.knowledge import Doubt, Known, Point
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.support import quarantining
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")


def bring(core: Core, *rows: Observation, data_type: str = DAILY, past: bool = False) -> Tally:
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    days = (min(row.observed_at for row in rows).date(), max(row.observed_at for row in rows).date())
    core.enqueue(data_type, "AAPL", days=days if past else None)
    fetched = Fetched(Answer(observations=Rows(rows)), 200, 2, body=b"{}")
    return settling.settle_answer(core.engine, core.claim_one(), fetched)


def bar(core: Core, days_ago: int, price: str) -> Observation:
    return observation("AAPL", price, midnight(core.clock().date()) - timedelta(days=days_ago))


def reject(core: Core) -> None:
    for row in core.rows("SELECT value_id FROM pricing.quarantined_values WHERE status = 'quarantined'"):
        assert quarantining.reject(core, row.value_id, "ann", "wrong").outcome == "rejected"


def stored(core: Core, data_type: str = DAILY) -> list[str]:
    rows = core.rows(
        "SELECT (amount * ('1e-' || scale)::numeric)::text AS price FROM pricing.price_history"
        " WHERE symbol = 'AAPL' AND data_type = :type ORDER BY observed_at",
        type=data_type,
    )
    return [f"{float(row.price):g}" for row in rows]


def states(core: Core) -> list[Any]:
    return [
        (row.value, row.status, row.times)
        for row in core.rows("SELECT value, status, times FROM pricing.quarantined_values ORDER BY value_id")
    ]


def test_f6_later_days_on_its_level_do_not_undo_a_rejection(core: Core) -> None:
    bring(core, bar(core, 9, "100"), bar(core, 8, "101"), bar(core, 7, "100.5"))
    bring(core, bar(core, 7, "100.5"), bar(core, 6, "330"))
    reject(core)
    bring(core, bar(core, 7, "100.5"), bar(core, 6, "330"), *(bar(core, n, "331") for n in (5, 4, 3)))
    assert stored(core) == ["100", "101", "100.5", "331", "331", "331"]
    assert states(core) == [("330", "rejected", 2)]
    audit(core)


def test_f6_a_rejected_value_is_the_same_in_another_spelling(core: Core) -> None:
    calm = [bar(core, n, "100") for n in range(30, 10, -1)]
    bring(core, *calm[:10], bar(core, 20, "250"), *calm[11:], past=True)
    reject(core)
    bring(core, bar(core, 20, "250.00"), past=True)
    core.rows(
        "INSERT INTO pricing.plausibility_bounds (data_type, symbol, highest, jumps_trusted_until)"
        " VALUES (:type, 'AAPL', 1000, pricing.clock() + interval '1 day')",
        type=DAILY,
    )
    bring(core, bar(core, 20, "250.000"), past=True)
    assert "250" not in stored(core)
    assert states(core) == [("250", "rejected", 3)]


def test_f6_a_rejected_quote_is_not_stored_on_the_short_way(core: Core) -> None:
    def at(seconds: int, price: str) -> Observation:
        return observation("AAPL", price, core.clock() - timedelta(seconds=seconds))

    bring(core, at(600, "100"), data_type=QUOTE)
    wrong = at(60, "330")
    bring(core, wrong, data_type=QUOTE)
    reject(core)
    core.rows("UPDATE pricing.latest_prices SET amount = 33100 WHERE symbol = 'AAPL' AND data_type = :t", t=QUOTE)
    bring(core, wrong, data_type=QUOTE)
    assert stored(core, QUOTE) == ["100"]
    assert states(core) == [("330", "rejected", 2)]


prices = st.sampled_from(("100", "101", "100.0", "330", "331", "330.00", "33000"))


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    given_rows=st.lists(prices, min_size=1, max_size=12),
    rejected=st.sets(st.integers(0, 11)),
    is_trusted=st.booleans(),
    is_latest=st.booleans(),
)
def test_f6_no_company_makes_a_rejected_value_believed(
    given_rows: list[str], rejected: set[int], *, is_trusted: bool, is_latest: bool
) -> None:
    """Others are judged as if it had not come."""
    start = datetime(2026, 3, 2, tzinfo=UTC)
    rows = [observation("AAPL", price, start + timedelta(days=n)) for n, price in enumerate(given_rows, 1)]
    wrong = frozenset((rows[n].observed_at, rows[n].close) for n in rejected if n < len(rows))
    anchors = (Point(start, Decimal(100)),)
    known = Known(anchors=anchors, newest_at=start, are_jumps_trusted=is_trusted, rejected=wrong)
    verdict = judge(known, rows, Fetcher.DAILY_BARS, is_latest=is_latest)
    left = [row for row in rows if (row.observed_at, row.close) not in wrong]
    expected = judge(
        Known(anchors=anchors, newest_at=start, are_jumps_trusted=is_trusted),
        left,
        Fetcher.DAILY_BARS,
        is_latest=is_latest,
    )
    assert list(verdict.good) == list(expected.good)
    assert {one.observation.observed_at for one in verdict.doubted if one.kind is Doubt.REFUSED} == {
        at for at, _ in wrong
    }
