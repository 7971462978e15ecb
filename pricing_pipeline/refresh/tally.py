"""The work for a data type, counted call by call and reported together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date


@dataclass(slots=True)
class Tally:
    """The work for one data type since the last report.

    `latest_calls` are those of the `calls` that asked for latest prices; the others asked for spans of days. `months`
    counts rows of prices by the UTC month's first day, `records` what else came, such as documents; `quarantined`
    counts values that are not believed, `trimmed` bars that are believed without some of their parts.
    """

    data_type: str
    calls: int = 0
    latest_calls: int = 0
    wire_bytes: int = 0
    added: int = 0
    revised: int = 0
    failed: int = 0
    quarantined: int = 0
    trimmed: int = 0
    records: int = 0
    symbols: set[str] = field(default_factory=set)
    months: Counter[date] = field(default_factory=Counter)
    providers: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        self.calls += other.calls
        self.latest_calls += other.latest_calls
        self.wire_bytes += other.wire_bytes
        self.added += other.added
        self.revised += other.revised
        self.failed += other.failed
        self.quarantined += other.quarantined
        self.trimmed += other.trimmed
        self.records += other.records
        self.symbols |= other.symbols
        self.months.update(other.months)
        self.providers |= other.providers
