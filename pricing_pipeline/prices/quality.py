"""Measure stored values for people: gaps, outliers, agreement, revisions, and the data of plots.

Only reads, with `db/queries/checks.sql`. defs/checks.py decides what passes, and words it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.exact import to_decimal

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

_MOST_COUNTED = 100_000
"""How many rows are counted for an event, in about 50 ms: a month of quotes may have hundreds of millions."""
_MOST_COUNTED_ONCE = 3_000_000
"""How many rows are counted at the end of a drain with a backfill, in seconds: twenty years of 600 shares."""
_WORTH_ASKING = ("not_asked", "failed")
"""Kinds of gaps that a backfill may fill."""


@dataclass(frozen=True, slots=True)
class GapOfSymbol:
    """Trading days of a symbol in a row without a value, both days included; `kind` is one of `pricing.gaps`."""

    symbol: str
    first_day: date
    last_day: date
    sessions: int
    kind: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a daily type, between the first and last value of each of its `symbols` in the last year.

    `expected` counts all trading days, `sessions` those without a value, by the kinds of `pricing.gaps`; `lacking`
    counts symbols with days worth asking for. `closed_days` are holidays of the calendars, which need no value. Symbols
    `without_calendar` are not measured, and symbols with `calendar_ended` only until that day. `examples` has the days
    worth asking for first, then the newest.
    """

    data_type: str
    symbols: int
    without_calendar: int
    calendar_ended: int
    expected: int
    sessions: Mapping[str, int]
    closed_days: int
    lacking: int
    examples: Sequence[GapOfSymbol]

    @property
    def missing(self) -> int:
        """Days that a provider may have, and that were not requested or failed."""
        return sum(self.sessions.get(kind, 0) for kind in _WORTH_ASKING)


@dataclass(frozen=True, slots=True)
class Outliers:
    """Quarantined values of a type, the number of their symbols, and the oldest; `priced` symbols have a price.

    `unreported_splits` are steps of the last year's daily prices as traded that look like an unreported split,
    `without_rate` are payments of that year in another currency than the prices, without a stored rate of their day.
    """

    data_type: str
    quarantined: int
    symbols: int
    oldest: datetime | None
    kinds: Sequence[str] | None
    priced: int
    unreported_splits: Sequence[str] | None
    without_rate: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many instruments of a type have prices of two providers, and how many are `apart` by more than a tenth.

    `worst` is a factor.
    """

    data_type: str
    compared: int
    apart: int
    worst: float | None
    examples: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Revisions:
    """How many of a daily type's `stored` values of the last year were revised in the last 30 days."""

    data_type: str
    stored: int
    revised: int
    symbols: int
    examples: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Lacking:
    """How many `symbols` of a type's `instruments` lack days of a month that can be fetched by now."""

    symbols: int
    instruments: int


@dataclass(frozen=True, slots=True)
class PlotValue:
    """One value in a plot."""

    at: datetime
    price: Decimal
    is_revised: bool


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """The pair of a type with the most viewers, and its values of the last year (2,000 at most), oldest first.

    `gaps` are trading days in a row without a value, both days included; None without a calendar.
    """

    symbol: str
    currency: str | None
    values: Sequence[PlotValue]
    gaps: Sequence[tuple[date, date]] | None = None


@dataclass(frozen=True, slots=True)
class FreshnessSample:
    """How many watched pairs of a type were fresh, and how many late, at a moment."""

    at: datetime
    watched: int
    fresh: int
    late: int


def gaps(connection: Connection, data_types: Sequence[str]) -> list[Gaps]:
    """Gaps of the daily types among these."""
    return [
        Gaps(**{**row, "sessions": row["sessions"] or {}, "examples": _examples(row["examples"] or ())})
        for row in _rows(connection, "checks.gaps", data_types)
    ]


def outliers(connection: Connection, data_types: Sequence[str]) -> list[Outliers]:
    """The quarantined values of each type."""
    return [Outliers(**row) for row in _rows(connection, "checks.outliers", data_types)]


def agreement(connection: Connection, data_types: Sequence[str]) -> list[Agreement]:
    """How prices of each type agree with those of other types, and quarantined values with second opinions."""
    return [Agreement(**row) for row in _rows(connection, "checks.agreement", data_types)]


def revisions(connection: Connection, data_types: Sequence[str]) -> list[Revisions]:
    """Revisions of the daily types among these."""
    return [Revisions(**row) for row in _rows(connection, "checks.revisions", data_types)]


def _rows(connection: Connection, name: str, data_types: Sequence[str]) -> Sequence[RowMapping]:
    return connection.execute(query(name), {"data_types": list(data_types)}).mappings().all()


def _examples(gaps: Sequence[Mapping[str, Any]]) -> list[GapOfSymbol]:
    days = ("first_day", "last_day")
    return [GapOfSymbol(**{**gap, **{day: date.fromisoformat(gap[day]) for day in days}}) for gap in gaps]


def month_rows(
    connection: Connection, data_type: str, months: Sequence[date], *, is_once: bool = False
) -> dict[date, int]:
    """The number of rows of a type in UTC months, by their first days; empty if the count would take long.

    With `is_once`, for a rare question, it may take some seconds.
    """
    at_most = _MOST_COUNTED_ONCE if is_once else _MOST_COUNTED
    parameters = {"data_type": data_type, "months": list(months), "at_most": at_most}
    return {row.month: row.rows for row in connection.execute(query("checks.month_rows"), parameters)}


def total_rows(connection: Connection, data_type: str, *, is_once: bool = False) -> int | None:
    """The number of rows of a type's history, or of its documents; None if the count would take long.

    `is_once` is as for `month_rows`.
    """
    at_most = _MOST_COUNTED_ONCE if is_once else _MOST_COUNTED
    parameters = {"data_type": data_type, "at_most": at_most}
    rows = int(connection.execute(query("checks.total_rows"), parameters).scalar_one())
    return rows if rows <= at_most else None


def lacking(connection: Connection, data_type: str, months: Sequence[date]) -> dict[date, Lacking]:
    """How many symbols of a type lack days of UTC months, by the months' first days."""
    rows = connection.execute(query("checks.lacking"), {"data_type": data_type, "months": list(months)})
    return {row.month: Lacking(row.lacking, row.instruments) for row in rows}


def is_anything_stored(connection: Connection) -> bool:
    """True once there is a price."""
    return bool(connection.execute(query("databases.has_prices")).scalar_one())


def fetched(connection: Connection, data_types: Sequence[str]) -> set[str]:
    """The types among these that were ever fetched."""
    return set(connection.execute(query("checks.fetched_types"), {"data_types": list(data_types)}).scalars())


def plot_series(connection: Connection, data_type: str) -> PlotSeries | None:
    """The data of a type's plot; None while it has no price."""
    rows = connection.execute(query("checks.plot_series"), {"data_type": data_type}).all()
    if not rows:
        return None
    values = [PlotValue(row.observed_at, to_decimal(row.amount, row.scale), row.is_revised) for row in rows]
    parameters = {
        "data_type": data_type,
        "symbol": rows[-1].symbol,
        "first_day": values[0].at.date(),
        "last_day": values[-1].at.date(),
    }
    known = connection.execute(query("checks.plot_gaps"), parameters).all()
    gaps = [(row.first_day, row.last_day) for row in known if row.first_day is not None] if known else None
    return PlotSeries(rows[-1].symbol, rows[-1].currency, values, gaps)


def served(connection: Connection, data_type: str) -> list[FreshnessSample]:
    """The service of a type to its viewers over the last day, every five minutes, oldest first."""
    rows = connection.execute(query("checks.freshness_samples"), {"data_type": data_type}).mappings()
    return [FreshnessSample(**row) for row in rows]
