"""How long after its first start does a pipeline have a price?

`up` runs as `make run` starts it, in a new home, with the sandbox, the sample and the demo viewer.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial

from benchmarks import pipeline
from benchmarks.report import Row
from benchmarks.server import BenchmarkServer


@dataclass(frozen=True, slots=True)
class Size:
    """Number of starts, one after the other."""

    starts: int


FULL = Size(starts=7)
QUICK = Size(starts=2)
TINY = Size(starts=1)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Seconds from the command until the pages are served and a price is stored. The given server is not used."""
    pages: list[float] = []
    prices: list[float] = []
    for _ in range(size.starts):
        with pipeline.running({}) as started:
            pages.append(time.time() - started.began)
            prices.append(_first_price(started) - started.began)
    return [
        Row("pages_seconds", "s after the command", statistics.median(pages), lower_is_better=True),
        Row("first_price_seconds", "s after the command", statistics.median(prices), lower_is_better=True),
        Row("slowest_first_price_seconds", "s after the command", max(prices), lower_is_better=True),
    ]


def _first_price(started: pipeline.Pipeline) -> float:
    """When the first price was stored, in Unix seconds; waits for it."""
    stored = partial(pipeline.value, started.connection, "first_start.first_price")
    pipeline.wait_until(lambda: stored() is not None, "no price came")
    return float(stored())
