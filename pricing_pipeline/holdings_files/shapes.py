"""How identifiers look. The database checks an ISIN's check digit (pricing.judge_symbols)."""

from __future__ import annotations

import re

_ISIN = re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")


def is_isin(text: str) -> bool:
    """Whether a text has the shape of an ISIN."""
    return _ISIN.fullmatch(text) is not None
