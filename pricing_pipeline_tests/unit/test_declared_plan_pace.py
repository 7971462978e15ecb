"""How fresh quotes of a declared provider can be by its plan (F11)."""

from __future__ import annotations

import pytest

from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.registry.plans import declared_plans

FILE = """
name: pace
base_url: https://pace.example.com
limits: {l: LIMIT}
plans: {free: {title: free, limits: {l: LIMIT}, types: {q: {asset_class: equity, fetcher: quote, at_least: 1}}}}
symbols: {equity: {}}
fetchers:
  quote:
    COST
    latest:
      path: /{symbols}
      most: MOST
      answer:
        rows: "@"
        symbol: s
        time: {at: fetch}
        price: p
        currency: {code: EUR}
"""
MINUTE, DAY, MONTH = "{units: 60, seconds: 60}", "{units: 500, day: UTC}", "{units: 500, seconds: 2592000}"


@pytest.mark.parametrize(
    ("limit", "cost", "most", "minutes"),
    [
        (MINUTE, "units_per_call: 1", 1, 1),
        (MINUTE, "units_per_call: 10", 1, 4),
        (MINUTE, "units_per_call: 10", 20, 1),
        (MINUTE, "{units_per_call: 0, units_per_symbol: 9}", 20, 3),
        (DAY, "units_per_call: 1", 1, 21),
        (DAY, "units_per_call: 1", 20, 2),
        (MONTH, "units_per_call: 1", 1, 608),
        (MONTH, "units_per_call: 1", 20, 31),
        ("{units: 500, seconds: 86400}", "units_per_call: 1", 1, 21),
    ],
)
def test_f11_the_pace_of_twenty_quotes_is_what_their_units_and_the_limit_allow(
    limit: str, cost: str, most: int, minutes: int
) -> None:
    """Of a day's units eight tenths come in a session of 405 minutes; a month has those of thirty days."""
    named = cost.strip("{}").replace(", ", "\n    ")
    text = FILE.replace("LIMIT", limit).replace("COST", named).replace("MOST", str(most))
    plan = declared_plans(read_text(text, "pace.yaml").declaration)["free"]
    assert plan.refresh_minutes(20) == minutes
