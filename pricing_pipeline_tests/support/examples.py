"""How many examples properties are tried with: half of them, unless PRICING_TEST_EXAMPLES is `all`."""

from __future__ import annotations

import os

_ALL = os.environ.get("PRICING_TEST_EXAMPLES") == "all"


def examples(number: int) -> int:
    """All of them, or half where somebody waits for the result. Each run draws others, so few runs draw as many."""
    return number if _ALL else (number + 1) // 2


def is_thorough() -> bool:
    """Whether the largest cases are to be tried, too."""
    return _ALL
