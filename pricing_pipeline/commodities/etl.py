"""The ETL of commodities: versions of the game, terminals, commodities and all prices, in four calls.

`sync` runs under an advisory lock, so two never overlap. Each call is claimed within the provider's limits and delay,
and logged. The list of each step is stored in one transaction, so a stop leaves whole lists or nothing. A step that
fails is noted in `etl_warnings`, and the others go on.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.commodities import storage
from pricing_pipeline.commodities.storage import ListStored
from pricing_pipeline.db.advisory_lock import AdvisoryLock, advisory_lock
from pricing_pipeline.db.errors import LOCKED_PAGE, is_conflict, is_locked, is_refusal, reason, transact
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.commodities import Listed, TerminalPrices
from pricing_pipeline.domain.words import counted
from pricing_pipeline.errors import LockLost, PricingError, ProviderDown, ProviderError, Throttled
from pricing_pipeline.prices import changes
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.uex_lists import ALL_PRICES, COMMODITIES, GAME_VERSIONS, TERMINALS, List
from pricing_pipeline.queue import limits

LOCK = "commodities_etl"
MAX_RETRIES = 3
FIRST_BACKOFF = 5.0
"""Seconds before the first retry of a call that the provider did not answer; doubled for each further one."""
LONGEST_WAIT = 300.0
"""Seconds that a sync may wait for the turns of its calls, all together. Where it would be longer, it does without."""
_SLICE = 5.0
"""Seconds between two looks at the lock while waiting."""
_LOG = logging.getLogger(__name__)
Wait = Callable[[float], object]
RowT = TypeVar("RowT")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step of a sync. `rejected` counts rows that could not be read; `failure` says why it failed."""

    name: str
    added: int = 0
    revised: int = 0
    vanished: int = 0
    rejected: int = 0
    calls: int = 0
    wire_bytes: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of a sync, step by step. `run` is its name in `etl_warnings` and, as the worker, in the call log."""

    run: str
    steps: Sequence[Step]

    @property
    def is_complete(self) -> bool:
        """Whether every step succeeded."""
        return not any(step.failure for step in self.steps)

    @property
    def has_prices(self) -> bool:
        """Whether the list of all prices was read and stored."""
        return any(step.name == ALL_PRICES.name and not step.failure for step in self.steps)


class _NotAllowed(PricingError):
    """No call may be made now, and not soon."""


class _Locked(PricingError):
    """Another session keeps a row locked that a step needs."""


class _NotStorable(PricingError):
    """The database refuses what a step stores."""


@dataclass(slots=True)
class _Run:
    """One sync under way."""

    engine: Engine
    client: ProviderClient
    lock: AdvisoryLock
    wait: Wait
    name: str
    data_types: Sequence[str]
    waited: float = 0.0
    calls: int = 0
    wire_bytes: int = 0
    steps: list[Step] = field(default_factory=list)


def sync(engine: Engine, client: ProviderClient, *, run: str | None = None, wait: Wait = time.sleep) -> SyncReport:
    """Read all lists of the provider and store them. Takes some seconds, and minutes where limits are in the way.

    Raises LockUnavailable at once if a sync is at work, LockLost as soon as the lock is lost (what was stored before
    stays), and PricingError if there is no data type to log the calls under. `wait` gets seconds.
    """
    run = run or f"sync-{uuid.uuid4().hex[:12]}"
    with advisory_lock(engine, LOCK) as lock:
        with engine.begin() as connection:
            data_types = storage.data_types(connection)
            limits.register_keys(connection, client.provider.name, client.key_names)
            connection.execute(query("commodities.forget_warnings"))
        if not data_types:
            raise PricingError(
                "no active data type has the fetcher terminal_prices, under which calls are logged. Add one: `pricing-"
                "pipeline type add commodity_price --fetcher terminal_prices --asset-class commodity --ttl 30`."
            )
        at_work = _Run(engine, client, lock, wait, run, data_types)
        try:
            for name, step in _STEPS:
                at_work.steps.append(_attempt(at_work, name, step))
        except LockLost as error:
            _warn(at_work, _STEPS[len(at_work.steps)][0], "lock_lost", str(error))
            raise
    return SyncReport(run, tuple(at_work.steps))


def _attempt(run: _Run, name: str, step: Callable[[_Run], tuple[ListStored, Sequence[str]]]) -> Step:
    """Do a step; if it fails, note why. Rows that could not be read are noted, too."""
    calls, wire_bytes = run.calls, run.wire_bytes
    try:
        stored, faults = _in_words(partial(step, run))
    except (ProviderError, _NotAllowed, _Locked, _NotStorable) as error:
        _warn(run, name, _kind_of(error), str(error))
        return Step(name, calls=run.calls - calls, wire_bytes=run.wire_bytes - wire_bytes, failure=str(error))
    if faults:
        message = f"{counted(len(faults), 'row')} could not be read; the first: {faults[0]}"
        _warn(run, name, "rejected_rows", message)
    return Step(
        name,
        stored.added,
        stored.revised,
        stored.vanished,
        len(faults),
        run.calls - calls,
        run.wire_bytes - wire_bytes,
    )


def _in_words(step: Callable[[], T]) -> T:
    """Do a step. Raises _Locked if a session is in the way, and _NotStorable if the database refuses what came."""
    try:
        return step()
    except DBAPIError as error:
        if is_locked(error) or is_conflict(error):
            raise _Locked(f"another session has locked a row of it: {reason(error)}; {LOCKED_PAGE}") from error
        if is_refusal(error):
            raise _NotStorable(f"the database refuses it: {reason(error)}") from error
        raise


def _kind_of(error: PricingError) -> str:
    if isinstance(error, _Locked):
        return str(FailureKind.DATABASE_CONFLICT)
    if isinstance(error, _NotStorable):
        return str(FailureKind.NOT_STORABLE)
    kind = limits.kind_of(error)
    return "refused" if kind is None else str(kind)


def _versions(run: _Run) -> tuple[ListStored, Sequence[str]]:
    versions, _ = _read(run, GAME_VERSIONS)
    return _commit(run, partial(storage.store_versions, live=versions.live, test=versions.ptu)), ()


def _terminals(run: _Run) -> tuple[ListStored, Sequence[str]]:
    listed, call_id = _read(run, TERMINALS)
    return _commit(run, partial(storage.store_terminals, call_id=call_id, listed=listed)), listed.faults


def _commodities(run: _Run) -> tuple[ListStored, Sequence[str]]:
    listed, call_id = _read(run, COMMODITIES)
    return _commit(run, partial(storage.store_commodities, call_id=call_id, listed=listed)), listed.faults


def _prices(run: _Run) -> tuple[ListStored, Sequence[str]]:
    if any(step.failure for step in run.steps if step.name == GAME_VERSIONS.name):
        raise _NotAllowed("the live version of the game could not be read, and the list of prices names none.")
    listed, call_id = _read(run, ALL_PRICES)
    return _commit(run, partial(_store_all, run=run, call_id=call_id, listed=listed)), listed.faults


def _store_all(connection: Connection, *, run: _Run, call_id: int, listed: Listed[TerminalPrices]) -> ListStored:
    provider = run.client.provider.name
    stored = storage.store_prices(connection, provider, call_id, listed.rows)
    confirmed = sorted(row.symbol for row in stored if not row.is_stale_source)
    added, revised = sum(row.added for row in stored), sum(row.revised for row in stored)
    for data_type in run.data_types:
        storage.confirm(connection, data_type, provider, call_id, confirmed)
    return ListStored(added, revised)


_STEPS: Sequence[tuple[str, Callable[[_Run], tuple[ListStored, Sequence[str]]]]] = (
    (GAME_VERSIONS.name, _versions),
    (TERMINALS.name, _terminals),
    (COMMODITIES.name, _commodities),
    (ALL_PRICES.name, _prices),
)


def _commit(run: _Run, store: Callable[[Connection], ListStored]) -> ListStored:
    """Store a list in one transaction, which is committed only while the lock is ours.

    Names and versions are news, too: they are shown with the prices.
    """

    def work(connection: Connection) -> ListStored:
        stored = store(connection)
        for data_type in run.data_types:
            changes.note_latest(connection, data_type, stored.added + stored.revised + stored.vanished)
        run.lock.check()
        return stored

    return transact(run.engine, work)


def _read(run: _Run, wanted: List[RowT]) -> tuple[RowT, int]:
    """Ask for a list, at most four times; returns it and the call that brought it.

    After a refusal the key pauses in the database, for every worker, as long as the provider says or for 5, 10, 20 s:
    the next claim waits for that.
    """
    retries = 0
    while True:
        claimed = _claim(run)
        try:
            return _call(run, wanted, claimed), claimed.call_id
        except (Throttled, ProviderDown) as error:
            if retries == MAX_RETRIES:
                raise
            _LOG.warning("%s of %s: %s", wanted.name, run.client.provider.name, error)
            if isinstance(error, ProviderDown):
                _pause(run, FIRST_BACKOFF * 2**retries)
            retries += 1


def _claim(run: _Run) -> Any:
    """Take one call, as soon as the provider's limits and delay allow it. Raises _NotAllowed if that is not soon."""
    while True:
        run.lock.check()
        with run.engine.begin() as connection:
            claimed = call_sql(
                connection,
                "claim_etl_call",
                run.client.provider.name,
                run.data_types[0],
                sorted(run.client.key_names),
                run.name,
            ).one()
        if claimed.call_id is not None:
            return claimed
        if run.waited + claimed.wait_seconds > LONGEST_WAIT:
            raise _NotAllowed(f"{run.client.provider.name} is not asked: {claimed.refusal.rstrip('.')}.")
        run.waited += claimed.wait_seconds
        _pause(run, claimed.wait_seconds)


def _call(run: _Run, wanted: List[RowT], claimed: Any) -> RowT:
    """Make a claimed call and settle it."""
    provider = run.client.provider.name
    run.calls += 1
    try:
        content, receipt = run.client.read(
            wanted.request, wanted.read, now=claimed.claimed_at, key_name=claimed.key_name
        )
    except PricingError as error:
        run.wire_bytes += getattr(error, "wire_bytes", 0)
        with run.engine.begin() as connection:
            message = limits.message_of(connection, provider, error)
            limits.settle_failed(connection, claimed.call_id, provider, claimed.key_name, error, message)
        raise
    run.wire_bytes += receipt.wire_bytes
    with run.engine.begin() as connection:
        limits.settle(connection, claimed.call_id, receipt)
    return content


def _pause(run: _Run, seconds: float) -> None:
    """Wait, and look at the lock meanwhile."""
    left = seconds
    while left > 0:
        run.wait(min(left, _SLICE))
        left -= _SLICE
        run.lock.check()


def _warn(run: _Run, step: str, kind: str, message: str) -> None:
    _LOG.warning("sync %s, %s: %s", run.name, step, message)
    with run.engine.begin() as connection:
        parameters = {"etl": "commodities", "run": run.name, "step": step, "kind": kind, "message": message}
        connection.execute(query("commodities.warn"), parameters)
