"""Who wants what: heartbeats, holdings, pauses, the staleness check, and how fresh the watched pairs are."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import CapExceeded

_CAP = "53400"
"""SQLSTATE of a request that goes past a user's caps."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How one data type serves its viewers. Counts are of watched pairs; times are UTC.

    Each of the `watched` is in one state: `late` is owed a price for longer than max(30 s, TTL/4), or for longer than
    30 s if it has none or an outdated one, whatever keeps it away; `due` for less; `refused` backs off after a fault of
    its symbol; `paused` is an instrument that is paused; the others are `fresh`. A price of `confirmed` pairs is known;
    `missing` are due or late without one. `outdated` are due, with a price that was too old already when somebody came
    to look at it.
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
    missing: int
    outdated: int
    oldest_fetched_at: datetime | None

    @property
    def is_calm(self) -> bool:
        """True when a price is vouched for: none is late, some are fresh, and more than viewers have found outdated."""
        return self.late == 0 and self.fresh > self.outdated

    @property
    def is_merely_due(self) -> bool:
        """True when known prices are due for a moment, and nothing else is wrong."""
        return self.late == 0 and self.outdated == 0 and self.due > self.missing

    @property
    def is_on_time(self) -> bool:
        """True when nothing is to be mended: none is late, and not all that could be served is refused."""
        return self.late == 0 and (self.fresh + self.due > 0 or self.refused == 0)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a pair's price is as old as it is. Times are UTC.

    `state` is one word of docs/operations.md, `sentence` says it with times and what to do. It is so since
    `since`, and may change at `next_at`, where that is known.
    """

    data_type: str
    symbol: str
    state: str
    sentence: str
    observed_at: datetime | None
    fetched_at: datetime | None
    since: datetime | None
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Paused:
    """An instrument that was paused or resumed; `changed` is False when it was so before."""

    asset_class: str
    symbol: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument and who wants it. `state`: active, unverified (no provider has known it yet), paused or retired."""

    asset_class: str
    symbol: str
    name: str | None
    currency: str | None
    verified_at: datetime | None
    state: str
    viewers: int
    holders: int


@dataclass(frozen=True, slots=True)
class Removed:
    """An instrument that was taken out, and how many users watched or held it.

    `outcome` is removed; retired, where its history stays; or retired_already.
    """

    asset_class: str
    symbol: str
    outcome: str
    viewers: int
    holders: int


@dataclass(frozen=True, slots=True)
class Watching:
    """What is watched of a data type, or by a client; of all where both are None. `seen_at` is the last heartbeat."""

    data_type: str | None
    user_id: str | None
    subscriptions: int
    clients: int
    pairs: int
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class WaitingSchedule:
    """A schedule that could not queue some `instruments` since its last `slot`, because providers can take no more."""

    data_type: str
    slot: datetime
    instruments: int
    reason: str

    @property
    def words(self) -> str:
        return f"{self.instruments} instruments of {self.data_type} wait for their schedule: {self.reason}"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What decides whether a drain is needed. `held` says whether anybody holds anything.

    `now_epoch` is in Unix seconds, by the database's clock.
    """

    watched: bool
    held: bool
    queued: bool
    watched_types: list[str] | None
    queued_types: list[str] | None
    drain_id: UUID | None
    drain_seconds_left: float | None
    now_epoch: float
    registry_version: int


def heartbeat(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Say that a user looks at these (data type, symbol) pairs now; returns how many are new.

    Missing instruments are created, unverified until a provider's first valid answer; what is missing
    or stale is queued in the same transaction. Raises CapExceeded when these are too many for the user.
    """
    return _admitted(connection, "demand.heartbeat", _pairs(user_id, pairs))


def unsubscribe(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """A user stops looking at these pairs; returns how many subscriptions ended."""
    return int(connection.execute(query("demand.unsubscribe"), _pairs(user_id, pairs)).scalar_one())


def hold(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """A user holds these pairs from now on; returns how many of the holdings are new.

    Held pairs are fetched when they have no price, and kept fresh by the background TTL. Missing instruments
    are created as by a heartbeat. Raises CapExceeded when these are too many for the user.
    """
    return _admitted(connection, "demand.hold", _pairs(user_id, pairs))


def release(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """A user no longer holds these pairs; returns how many holdings ended."""
    return int(connection.execute(query("demand.release"), _pairs(user_id, pairs)).scalar_one())


def pause_instruments(
    connection: Connection, symbols: Sequence[str], *, paused: bool, asset_class: str | None = None
) -> list[Paused]:
    """Pause or resume the instruments of these symbols, of one class or of all; returns those that exist.

    Of a paused instrument nothing is fetched and what waits is cancelled; of a resumed one what is watched
    is due at once.
    """
    parameters = {"symbols": sorted(set(symbols)), "paused": paused, "asset_class": asset_class}
    rows = connection.execute(query("demand.pause_instruments"), parameters)
    return [Paused(row.asset_class, row.symbol, row.changed) for row in rows]


def instruments(
    connection: Connection, symbols: Sequence[str] | None, asset_class: str | None, at_most: int
) -> list[Instrument]:
    """Instruments by class and symbol: of one class or all, of some symbols or all."""
    parameters = {"symbols": symbols, "asset_class": asset_class, "at_most": at_most}
    return [
        Instrument(**row) for row in connection.execute(query("demand.instruments"), parameters).mappings()
    ]


def remove_instruments(
    connection: Connection, symbols: Sequence[str], asset_class: str | None = None
) -> list[Removed]:
    """Remove instruments of these symbols that have no history, and retire the others; returns those that exist.

    What is watched and held of them ends, and what waits is cancelled.
    """
    parameters = {"symbols": sorted(set(symbols)), "asset_class": asset_class}
    rows = connection.execute(query("demand.remove_instruments"), parameters).mappings()
    return [Removed(**row) for row in rows]


def spelled(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[str]:
    """Symbols of a data type as their instruments are spelled: aapl is AAPL where nothing is called aapl."""
    parameters = {"data_type": data_type, "symbols": list(symbols)}
    return list(connection.execute(query("demand.spelled"), parameters).scalar_one())


def known_symbols(
    connection: Connection, data_types: Sequence[str], symbols: Sequence[str]
) -> dict[str, list[str]]:
    """The instruments of each data type that are meant by symbols, as they are spelled; none of those that have none.

    The database refuses, in a sentence, a symbol that no one of the data types has.
    """
    parameters = {"data_types": list(data_types), "symbols": list(symbols)}
    known: dict[str, list[str]] = {data_type: [] for data_type in data_types}
    for row in connection.execute(query("demand.known_symbols"), parameters):
        known[row.data_type].append(row.symbol)
    return known


def spelled_anywhere(connection: Connection, symbol: str) -> str:
    """A symbol as its instruments are spelled, whatever class they are of."""
    return str(connection.execute(query("demand.spelled_anywhere"), {"symbol": symbol}).scalar_one())


def enqueue_due(connection: Connection) -> int:
    """Queue every pair that is due and stale; returns how many. Checks at once share the data types between them."""
    return int(connection.execute(query("demand.enqueue_due")).scalar_one())


def serve_requests(connection: Connection) -> int:
    """Serve what clients have asked for since; returns how many pairs are queued. `enqueue_due` does it, too."""
    return int(connection.execute(query("demand.serve_requests")).scalar_one())


def enqueue_scheduled(connection: Connection, data_type: str, slot: datetime | None = None) -> int | None:
    """Serve a slot of a scheduled type, or queue its instruments now; behind on-demand work, in chunks.

    Returns how many of the first chunk are new; None when the slot was served before or there is no such type.
    """
    parameters = {"data_type": data_type, "slot": slot}
    queued: int | None = connection.execute(query("demand.enqueue_scheduled"), parameters).scalar_one()
    return queued


def waiting_schedules(connection: Connection) -> list[WaitingSchedule]:
    """The schedules that cannot queue some of their instruments now, and why."""
    return [
        WaitingSchedule(**row) for row in connection.execute(query("demand.waiting_schedules")).mappings()
    ]


def served_slots(connection: Connection) -> dict[str, datetime]:
    """Up to which slot of its schedule each active scheduled type is served."""
    return {row.data_type: row.served_slot for row in connection.execute(query("demand.served_slots"))}


def run_duties(connection: Connection) -> list[str]:
    """Run the periodic duties that are overdue; returns their names."""
    return list(connection.execute(query("demand.run_duties")).scalar_one())


def freshness(connection: Connection, data_types: Sequence[str] | None = None) -> list[Freshness]:
    """How each active data type (or those named) serves its viewers."""
    parameters = {"data_types": list(data_types) if data_types is not None else None}
    return [Freshness(**row) for row in connection.execute(query("demand.freshness"), parameters).mappings()]


def why(connection: Connection, symbol: str, data_type: str | None = None) -> list[Why]:
    """Why the prices of a symbol are as old as they are, in one data type or in each that applies to it."""
    parameters = {"symbol": symbol, "data_type": data_type}
    return [Why(**row) for row in connection.execute(query("demand.why"), parameters).mappings()]


def why_late(connection: Connection, data_type: str, at_most: int) -> list[Why]:
    """Why watched pairs of a data type are late; those that are owed a price for longest."""
    parameters = {"data_type": data_type, "at_most": at_most}
    return [Why(**row) for row in connection.execute(query("demand.why_late"), parameters).mappings()]


def watching(connection: Connection) -> list[Watching]:
    """Who watches what: all, each data type and each client, those with the most subscriptions first."""
    return [Watching(**row) for row in connection.execute(query("demand.watching")).mappings()]


def outlook(connection: Connection) -> Outlook:
    """What decides whether a drain is needed now."""
    return Outlook(**connection.execute(query("demand.outlook")).mappings().one())


def drains_begun(connection: Connection, runs: Collection[str]) -> set[str]:
    """Which of these runs have begun a drain, whether or not it is still at work."""
    return set(connection.execute(query("drains.begun"), {"runs": list(runs)}).scalars())


def warn_of_run(connection: Connection, job: str, run_id: str, why: str) -> None:
    """Note that a run has failed, for `status` and whoever reads warnings."""
    connection.execute(query("drains.warn_of_run"), {"job": job, "message": f"run {run_id}: {why}"})


def _admitted(connection: Connection, name: str, parameters: dict[str, object]) -> int:
    try:
        return int(connection.execute(query(name), parameters).scalar_one())
    except DBAPIError as error:
        diagnostics = getattr(error.orig, "diag", None)
        if getattr(error.orig, "sqlstate", None) != _CAP or diagnostics is None:
            raise
        detail = json.loads(diagnostics.message_detail)
        room, retry_after = detail["room"], detail.get("retry_after")
        when = f" and for the rest in {retry_after} s" if retry_after is not None else ""
        raise CapExceeded(
            f"{diagnostics.message_primary}. There is room for {room} of them now{when}. {diagnostics.message_hint}",
            room=room,
            retry_after=retry_after,
        ) from error


def _pairs(user_id: str, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    ordered = sorted(set(pairs))
    return {
        "user_id": user_id,
        "data_types": [data_type for data_type, _ in ordered],
        "symbols": [symbol for _, symbol in ordered],
    }


def fetch_now(connection: Connection, data_type: str, symbols: Sequence[str] | None = None) -> list[int]:
    """Queue what people watch or hold of a data type, or some of it, however fresh it is; returns the tasks.

    What is paused, backs off or finds no room in a quota is left out.
    """
    parameters = {"data_type": data_type, "symbols": None if symbols is None else list(symbols)}
    return list(connection.execute(query("demand.fetch_now"), parameters).scalar_one())


def how_far(connection: Connection, tasks: Sequence[int]) -> tuple[int, int, int]:
    """Of some tasks: how many there are, how many are not finished, and how many failed."""
    row = connection.execute(query("demand.how_far"), {"tasks": list(tasks)}).one()
    return len(tasks), row.open, row.failed
