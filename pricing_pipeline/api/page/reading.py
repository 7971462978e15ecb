"""What the page shows, read from the database in one transaction, and shared by all open pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Engine, Row

from pricing_pipeline.api.ids import MOST_IDS
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.demand import backfills, freshness
from pricing_pipeline.demand.backfills import Listed
from pricing_pipeline.demand.freshness import Freshness, Why
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import alerts, health
from pricing_pipeline.operations.health import Part
from pricing_pipeline.quarantine import opinions, quarantined_values
from pricing_pipeline.quarantine.opinions import Opinion
from pricing_pipeline.quarantine.quarantined_values import QuarantinedValue
from pricing_pipeline.queue import forecast, limits
from pricing_pipeline.queue.forecast import Forecast
from pricing_pipeline.queue.limits import ProviderState
from pricing_pipeline.registry import provider_rules

_MOST = 20
"""Rows of each kind; the page says how many more there are."""
_MOST_WATCHED = 500
_LATE_OF_EACH_TYPE = 3
_NEIGHBOURS = 20
_SHORTEST_SECONDS = 2.0
_OUTDATED_SECONDS = 10.0
"""How long an old reading is shown while another page reads."""
_PATIENCE_SECONDS = 5.0
"""How long a page waits for the reading of another one."""
_SHARE = 20
"""A reading is used for this multiple of the time it took: all open pages together take a twentieth of one session."""


@dataclass(frozen=True, slots=True)
class Quarter:
    """The worst of a quarter of an hour: the least fresh share of watched pairs (None: nobody watched), and how
    many were late."""

    at: datetime
    fresh: float | None
    late: int


@dataclass(frozen=True, slots=True)
class WatchedPair:
    """A watched pair, how it is served (a state of `pricing.watched_pairs`), and its price, if it has one.

    `contents` are those of its data type, which need not be prices.
    """

    data_type: str
    symbol: str
    state: str
    viewers: int
    contents: str
    price: Decimal | None
    currency: str | None
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined value, the stored values around it (oldest first), second opinions, and the ids of its level."""

    value: QuarantinedValue
    around: Sequence[tuple[datetime, Decimal]]
    opinions: Sequence[Opinion]
    level: Sequence[int]


@dataclass(frozen=True, slots=True)
class Provider:
    """An active provider: what stops it, its limits, how long its quota lasts, and the bytes of each of the last 30
    days, oldest first."""

    standing: ProviderState
    forecast: Forecast
    by_day: Sequence[tuple[date, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """One moment of the pipeline. Times are UTC, by the database's clock. `alerts` are all open ones."""

    at: datetime
    types: Sequence[Freshness]
    quarters: Mapping[str, Sequence[Quarter]]
    late_pairs: Sequence[Why]
    watched: Sequence[WatchedPair]
    watched_count: int
    providers: Sequence[Provider]
    live_tasks: Sequence[Row[Any]]
    failing_tasks: Sequence[Row[Any]]
    dead_tasks: Sequence[Row[Any]]
    alerts: Sequence[Mapping[str, Any]]
    operations: Sequence[Row[Any]]
    failing_recipients: Sequence[Row[Any]]
    quarantined: Sequence[Quarantined]
    quarantined_count: int
    backfills: Sequence[Listed]
    late_parts: Sequence[Part]
    no_provider: str | None

    @property
    def shown_alerts(self) -> Sequence[Mapping[str, Any]]:
        """The alerts that get a row, unacknowledged ones first."""
        return sorted(self.alerts, key=is_heard)[:_MOST]

    def total(self, name: str) -> int:
        """A count of Freshness over all data types."""
        return sum(int(getattr(type_, name)) for type_ in self.types)


def is_heard(alert: Mapping[str, Any]) -> bool:
    """Whether somebody looks after an alert, or has silenced it."""
    return alert["acknowledged_at"] is not None or alert["silenced_until"] is not None


class Readings:
    """The newest reading. However many pages are open, the database is read by one of them at a time."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._turn = threading.Lock()
        self._last: tuple[Reading, float] | None = None
        self._began_at = float("-inf")

    def newest(self, *, anew: bool = False) -> Reading:
        """A reading of the last seconds, or one of this moment: after a click people want to see what it did.

        Raises DatabaseError when the last one is old, and another page waits for the database.
        """
        last = self._last
        asked = self._clock()
        if not anew and last is not None and asked < last[1]:
            return last[0]
        if not self._turn.acquire(blocking=False):
            # While another page reads, the previous reading is good enough for some seconds.
            if not anew and last is not None and asked < last[1] + _OUTDATED_SECONDS:
                return last[0]
            self._wait(anew=anew)
        # Another page has read meanwhile, so two readings serve any number of waiting clicks.
        if self._last is not None and (self._began_at > asked or (not anew and self._last[1] > asked)):
            self._turn.release()
            return self._last[0]
        try:
            began = self._clock()
            reading = self._read()
            ended = self._clock()
            self._last = reading, ended + max(_SHORTEST_SECONDS, _SHARE * (ended - began))
            self._began_at = began
            return reading
        finally:
            self._turn.release()

    def _wait(self, *, anew: bool) -> None:
        """Wait for the turn. Raises DatabaseError after some seconds, unless somebody has clicked."""
        if not self._turn.acquire(timeout=-1 if anew else _PATIENCE_SECONDS):
            raise DatabaseError(
                "another page has waited for the state for seconds, without an answer. "
                "The database may be busy, or something in it is locked."
            )

    def _read(self) -> Reading:
        with self._engine.begin() as connection:
            connection.execute(query("page.read_alike"))
            return read(connection)


def read(connection: Connection) -> Reading:
    """Read everything that the page shows."""
    now = call_sql(connection, "clock").scalar_one()
    values = quarantined_values.listed(connection, None, None, _MOST)
    watched = _rows(connection, "watched", most=_MOST_WATCHED)
    counts = quarantined_values.counts(connection)
    return Reading(
        at=now,
        types=freshness.measure(connection),
        quarters=_quarters(connection),
        late_pairs=_late_pairs(connection),
        watched=list(map(_watched, watched)),
        watched_count=watched[0].total if watched else 0,
        providers=_providers(connection, now),
        live_tasks=_rows(connection, "live_tasks"),
        failing_tasks=_rows(connection, "failing_tasks", most=_MOST),
        dead_tasks=_rows(connection, "dead_tasks", most=_MOST, most_ids=MOST_IDS),
        alerts=_alerts(connection),
        operations=_rows(connection, "operations", most=_MOST),
        failing_recipients=_rows(connection, "failing_recipients", most=_MOST),
        quarantined=_quarantined(connection, values),
        quarantined_count=sum(count.quarantined for count in counts),
        backfills=backfills.recent(connection, 8),
        late_parts=health.late(health.measure(connection)),
        no_provider=provider_rules.no_provider(connection),
    )


def _rows(connection: Connection, name: str, **parameters: object) -> Sequence[Row[Any]]:
    return connection.execute(query(f"page.{name}"), parameters).all()


def _quarters(connection: Connection) -> dict[str, list[Quarter]]:
    rows = _rows(connection, "quarters")
    return {
        data_type: [Quarter(row.at, row.fresh, row.late) for row in own]
        for data_type, own in groupby(rows, key=lambda row: str(row.data_type))
    }


def _late_pairs(connection: Connection) -> list[Why]:
    parameters = {"of_each": _LATE_OF_EACH_TYPE, "most": _MOST}
    return [Why(**row) for row in connection.execute(query("page.late_pairs"), parameters).mappings()]


def _watched(row: Row[Any]) -> WatchedPair:
    return WatchedPair(
        row.data_type,
        row.symbol,
        row.state,
        row.viewers,
        row.contents,
        None if row.amount is None else to_decimal(row.amount, row.scale),
        row.currency,
        row.fetched_at,
    )


def _providers(connection: Connection, now: datetime) -> list[Provider]:
    forecasts = {ahead.provider: ahead for ahead in forecast.forecasts(connection)}
    by_day: dict[str, dict[date, int]] = {}
    for row in _rows(connection, "bytes_by_day"):
        by_day.setdefault(row.provider, {})[row.day] = row.bytes
    days = [now.astimezone(UTC).date() - timedelta(days=ago) for ago in range(29, -1, -1)]
    return [
        Provider(
            standing,
            forecasts[standing.provider],
            [(day, by_day.get(standing.provider, {}).get(day, 0)) for day in days],
        )
        for standing in limits.standings(connection)
    ]


def _alerts(connection: Connection) -> list[dict[str, Any]]:
    """Open alerts, each with its `place` in the Dagster UI."""
    open_alerts = alerts.listed(connection, None)
    parameters = {"alert_ids": [alert["alert_id"] for alert in open_alerts]}
    places = {row.alert_id: row.place for row in connection.execute(query("page.alert_places"), parameters)}
    return [{**alert, "place": places.get(alert["alert_id"])} for alert in open_alerts]


def _quarantined(connection: Connection, values: Sequence[QuarantinedValue]) -> list[Quarantined]:
    ids = [value.value_id for value in values]
    opinions_of = opinions.of(connection, ids)
    levels = {row.value_id: row.level for row in _rows(connection, "levels", value_ids=ids)}
    around: dict[int, list[tuple[datetime, Decimal]]] = {}
    for row in _rows(connection, "around", value_ids=ids, most=_NEIGHBOURS):
        around.setdefault(row.value_id, []).append((row.observed_at, to_decimal(row.amount, row.scale)))
    return [
        Quarantined(value, around.get(value.value_id, []), opinions_of.get(value.value_id, []), levels[value.value_id])
        for value in values
    ]
