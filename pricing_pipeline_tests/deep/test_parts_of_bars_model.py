"""One day comes again and again, with whatever parts: it stays consistent, and no belief is lost (B18, F5)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_parts_of_bars import bar, bring, stored
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

TEXTS = st.sampled_from(("9.80", "10.00", "10.20", "10.40", "104.00", "0.01"))
BARS = st.tuples(st.sampled_from(("10.00", "10.20")), *[st.none() | TEXTS] * 3)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(BARS, min_size=1, max_size=6), is_latest=st.booleans())
def test_b18_f5_whatever_comes_again_a_day_stays_consistent_and_no_belief_is_lost(
    core: Core, clock: Clock, said: list[tuple[Any, ...]], is_latest: bool
) -> None:
    """What is stored has the close that came last, agrees with it, and each of its parts came with that close; what was
    stored before is a revision; an answer that only lacks parts changes nothing.
    """
    for table in (
        "price_history",
        "price_revisions",
        "latest_prices",
        "quarantined_values",
        "provisional_bars",
        "restatements",
    ):
        core.rows(f"DELETE FROM pricing.{table}")
    beliefs: list[tuple[Any, ...]] = []
    for number, (close, *parts) in enumerate(said):
        clock.advance(1)
        bring(core, bar(2, close, *parts), latest=is_latest)
        (now,) = stored(core)
        amounts = [None if one is None else Decimal(one) for one in now[:4]]
        assert amounts[0] == Decimal(close)
        sent = [one[1:] for one in said[: number + 1] if one[0] == close]
        for place, value in enumerate(amounts[1:]):
            assert value is None or any(one[place] is not None and Decimal(one[place]) == value for one in sent)
        high, low = amounts[2] or Decimal("Infinity"), amounts[3] or Decimal(0)
        assert low <= Decimal(close) <= high
        assert amounts[1] is None or low <= amounts[1] <= high
        if not beliefs or beliefs[-1] != now:
            beliefs.append(now)
        assert stored(core, "price_revisions") == beliefs[:-1]
