"""How many examples properties are tried with: a quarter of them, unless PRICING_TEST_EXAMPLES is `all`."""

from __future__ import annotations

import os

_ALL = os.environ.get("PRICING_TEST_EXAMPLES") == "all"


def examples(number: int) -> int:
    """All of them, or a quarter where somebody waits for the result. Each run draws others: few runs draw as many."""
    return number if _ALL else min(number, max(5, number // 4))


def is_thorough() -> bool:
    """Whether the largest cases are to be tried, too."""
    return _ALL
