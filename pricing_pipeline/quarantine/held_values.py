"""The former names of `quarantined_values`, for the command line alone."""

from __future__ import annotations

from pricing_pipeline.quarantine.quarantined_values import (
    Count,
    Decision,
    Neighbour,
    body,
    counts,
    level,
    neighbours,
    show,
)
from pricing_pipeline.quarantine.quarantined_values import QuarantinedValue as HeldValue
from pricing_pipeline.quarantine.quarantined_values import listed as held

__all__ = (
    "Count",
    "Decision",
    "HeldValue",
    "Neighbour",
    "body",
    "counts",
    "held",
    "level",
    "neighbours",
    "show",
)
