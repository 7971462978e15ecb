"""Measure the freshness of watched pairs, and explain why a price is old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import query

if TYPE_CHECKING:
    from sqlalchemy import Connection

AnyPair = tuple[str | None, str]
"""A data type and a symbol; None = each data type that applies to the symbol."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of one data type's watched pairs. All counts are of watched pairs; times are UTC.

    Each of the `watched` is in one state. `late`: due for longer than max(30 s, TTL/4), or for longer than 30 s if it
    has no price or an outdated one, for any reason. `due`: due for less time. `refused`: backing off after a fault
    of its symbol. `paused`: its instrument is paused. `source_old`: confirmed in time, by a source that has nothing as
    new as it should. The others are `fresh`. TTL is that of the pair. `confirmed` pairs have a price; `missing` ones
    are due or late without one. `outdated` ones are due, and their price was too old when the viewer came.
    """

    data_type: str
    default_ttl_minutes: int
    watched: int
    confirmed: int
    fresh: int
    due: int
    late: int
    refused: int
    paused: int
    source_old: int
    missing: int
    outdated: int
    oldest_fetched_at: datetime | None

    @property
    def is_idle(self) -> bool:
        """True if nobody watches the type, or no watched pair can be fetched: its prices get older."""
        return self.watched == self.paused + self.refused

    @property
    def is_calm(self) -> bool:
        """True if the type counts as fresh: no pair is late, and more pairs are confirmed in time than outdated."""
        return self.late == 0 and self.fresh + self.source_old > self.outdated

    @property
    def is_merely_due(self) -> bool:
        """True if stored prices are due for a moment, and nothing else is wrong."""
        return self.late == 0 and self.outdated == 0 and self.due > self.missing

    @property
    def is_on_time(self) -> bool:
        """True if nothing is wrong: no pair is late, and not all pairs are refused."""
        return self.late == 0 and (self.fresh + self.source_old + self.due > 0 or self.refused == 0)


_STOPS = frozenset(
    {
        *("retired", "provider_off", "no_client", "breaker_open"),
        *("key_refused", "throttled", "quota_spent", "rate_limited"),
    }
)
"""States in which no provider is asked until they end: that of a retired data type, and those of `why_not_called`."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why a pair's price is as old as it is. Times are UTC.

    `state` is one word of docs/operations.md; `sentence` explains it, with times and what to do. The state began at
    `since` and may change at `next_at`, if these are known.
    """

    data_type: str
    symbol: str
    state: str
    sentence: str
    observed_at: datetime | None
    fetched_at: datetime | None
    since: datetime | None
    next_at: datetime | None

    @property
    def is_stopped(self) -> bool:
        """True while no provider is asked: a limit is used up, a provider is stopped, its data type is retired."""
        return self.state in _STOPS


def measure(connection: Connection, data_types: Sequence[str] | None = None) -> list[Freshness]:
    """The freshness of each active data type, or of the named ones."""
    parameters = {"data_types": list(data_types) if data_types is not None else None}
    return [Freshness(**row) for row in connection.execute(query("demand.freshness"), parameters).mappings()]


def why(connection: Connection, symbol: str, data_type: str | None = None) -> list[Why]:
    """Why the prices of a symbol are as old as they are, in one data type or in each that has it."""
    return why_pairs(connection, [(data_type, symbol)])


def why_pairs(connection: Connection, pairs: Sequence[AnyPair]) -> list[Why]:
    """The same of several pairs or symbols, in the order in which they are named, and by data type."""
    rows = connection.execute(query("demand.why"), _parameters(pairs)).mappings()
    return [Why(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class UnknownSymbol:
    """An unknown symbol, or one that does not fit its data type; why, in one word and a sentence."""

    data_type: str | None
    symbol: str
    state: str
    sentence: str


def unknown_symbols(connection: Connection, pairs: Sequence[AnyPair]) -> list[UnknownSymbol]:
    """Those of the pairs or symbols that are unknown, or do not fit their data type."""
    rows = connection.execute(query("demand.unknown_symbols"), _parameters(pairs)).mappings()
    return [UnknownSymbol(**row) for row in rows]


def _parameters(pairs: Sequence[AnyPair]) -> dict[str, list[str] | list[str | None]]:
    return {"symbols": [symbol for _, symbol in pairs], "data_types": [data_type for data_type, _ in pairs]}


def why_late(connection: Connection, data_type: str, at_most: int) -> list[Why]:
    """Why watched pairs of a data type are late; those that are late for longest."""
    parameters = {"data_type": data_type, "at_most": at_most}
    return [Why(**row) for row in connection.execute(query("demand.why_late"), parameters).mappings()]
