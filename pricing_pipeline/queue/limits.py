"""Rate limits and quota of providers, shared by all workers through the database."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.errors import (
    ClientFault,
    KeyRefused,
    Misconfigured,
    PlanRestricted,
    PricingError,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
    Unfinished,
    WorkerStopped,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KEY_REFUSED_PAUSE = 60.0
_KINDS: tuple[tuple[type[ProviderError], FailureKind], ...] = (
    (Throttled, FailureKind.THROTTLED),
    (WorkerStopped, FailureKind.WORKER_STOPPED),
    (Unfinished, FailureKind.UNFINISHED),
    (KeyRefused, FailureKind.KEY_REFUSED),
    (PlanRestricted, FailureKind.PLAN_RESTRICTED),
    (RequestRefused, FailureKind.REQUEST_REFUSED),
    (SchemaDrift, FailureKind.SCHEMA_DRIFT),
    (ProviderDown, FailureKind.PROVIDER_DOWN),
    (Misconfigured, FailureKind.MISCONFIGURED),
    (ClientFault, FailureKind.CLIENT_FAULT),
)
_OF_PROVIDER = frozenset(
    {FailureKind.THROTTLED, FailureKind.KEY_REFUSED, FailureKind.SCHEMA_DRIFT, FailureKind.PROVIDER_DOWN}
)
"""The faults of the provider or its key. Of a call without a task, only these say something about the provider."""


@dataclass(frozen=True, slots=True)
class Key:
    """An API key by its name, and its limits now."""

    provider: str
    key_name: str
    is_active: bool
    units_left: int
    units_limit: int | None
    blocked_seconds: float | None
    blocked_reason: str | None


@dataclass(frozen=True, slots=True)
class KeyState:
    """Whether calls are made with a key, and until when (UTC) it pauses after a refusal."""

    is_active: bool
    blocked_until: datetime | None
    blocked_reason: str | None


_WINDOWS = {
    None: "today",
    1: "this second",
    60: "in the last minute",
    3600: "in the last hour",
    86400: "in the last 24 hours",
}


@dataclass(frozen=True, slots=True)
class ProviderState:
    """The state of a provider, and what it still allows. Bytes are of the last 720 hours; units are of all its keys.

    `state` is a word of `pricing.why_not_called`, `sentence` explains it, and `next_at` is when it ends, if known; all
    are None while it may be called. `outages` names the data types that it does not answer for. `limits` have the
    units used, the units allowed over all active keys, and the window in seconds (None = a calendar day).
    `blocked_seconds` is set while every key is blocked after a refusal. `breaker` is closed, open or half_open;
    `breaker_seconds` is the time until the next probe, or the time left for a running probe.
    """

    provider: str
    state: str | None
    sentence: str | None
    next_at: datetime | None
    outages: str | None
    quota_bytes: int
    used_bytes: int
    is_in_credits: bool
    limits: Sequence[Mapping[str, int | None]] | None
    units_left: int
    units_limit: int | None
    blocked_seconds: float | None
    blocked_reason: str | None
    keys: Sequence[Key]
    """Active or not; one named `default` if it has no row."""
    breaker: str
    breaker_seconds: float | None
    breaker_reason: str | None
    unannounced_calls: int
    """Answers of the last 24 hours that came without a Content-Length; their bytes were counted as they arrived."""

    @property
    def is_rate_limited(self) -> bool:
        """Whether only a limit that is used up stops it, which passes."""
        return self.state == "rate_limited"

    @property
    def is_spent(self) -> bool:
        """Whether its quota is used up for all work: even for viewers it ends at 95 %."""
        return self.used_bytes >= self.quota_bytes // 100 * 95

    @property
    def quota_left_bytes(self) -> int:
        return max(0, self.quota_bytes - self.used_bytes)

    @property
    def _faults(self) -> str:
        return "; ".join(fault.rstrip(".") for fault in (self.sentence, self.outages) if fault)

    @property
    def stop(self) -> str | None:
        """What more than a rate limit keeps it from being called or from answering, as a clause that names it."""
        is_well = self.outages is None and (self.state is None or self.is_rate_limited)
        return None if is_well else f"{self.provider}: {self._faults}"

    @property
    def words(self) -> str:
        """Why it is not called, in a sentence."""
        words = self._faults or "it is called as its limits allow"
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def units_words(self) -> str:
        """How much of its limits is used, such as "120 of 800 credits today"."""
        unit = "credits" if self.is_in_credits else "calls"
        spent = (
            f"{limit['used']:,} of {limit['units']:,} {unit} {_window(limit['window_seconds'])}"
            for limit in self.limits or ()
        )
        return ", ".join(spent) or "it has no rate limit"

    @property
    def quota_words(self) -> str:
        """How much of its quota is used."""
        return f"{bytes_words(self.used_bytes)} of {bytes_words(self.quota_bytes)} in the last 30 days"


def _window(seconds: int | None) -> str:
    return _WINDOWS.get(seconds, f"in the last {seconds} seconds")


def bytes_words(count: int) -> str:
    """A number of bytes for people, in powers of a thousand."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


@dataclass(frozen=True, slots=True)
class LowerLimit:
    """A limit that a provider has shown to a key, lower than the `units` that are written down.

    `correction` is the command that writes it down, and `words` are the whole sentence.
    """

    provider: str
    key_name: str
    name: str
    units: int
    shown_units: int
    shown_at: datetime
    words: str
    correction: str


@dataclass(frozen=True, slots=True)
class Unqueued:
    """Pairs of a data type that are due and not queued, because their provider's quota is used up."""

    provider: str
    data_type: str
    pairs: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The units and bytes that watched and held pairs need at their TTLs, and those that the provider allows.

    Units are per minute (`units_allowed` is None without a limit), bytes per 30 days.
    """

    provider: str
    pairs: int
    units_needed: float
    units_allowed: float | None
    bytes_needed: int
    bytes_allowed: int

    @property
    def excess(self) -> float:
        """Need divided by allowance; 1 or less is enough."""
        of_units = self.units_needed / self.units_allowed if self.units_allowed else 0.0
        if self.bytes_allowed == 0:  # a quota of a few bytes
            return math.inf if self.bytes_needed else of_units
        return max(of_units, self.bytes_needed / self.bytes_allowed)

    @property
    def warning(self) -> str | None:
        """By how much the allowance is too small, and what to do; None if it is enough."""
        faults = []
        if self.units_allowed is not None and self.units_needed > self.units_allowed:
            faults.append(
                f"{_few_digits(self.units_needed)} units a minute, and {_few_digits(self.units_allowed)} are allowed"
            )
        if self.bytes_needed > self.bytes_allowed:
            faults.append(f"{self.bytes_needed:,} bytes in 30 days, and its quota leaves {self.bytes_allowed:,}")
        if not faults:
            return None
        lateness = (
            "not be refreshed at all"
            if self.excess == math.inf
            else f"be up to {_few_digits(self.excess)} times as old as promised"
        )
        return (
            f"{self.provider} cannot serve the {self.pairs} watched or held pairs at their TTLs: they need "
            f"{'; and '.join(faults)}. Prices will {lateness}. "
            "Watch less, raise TTLs (`pricing-pipeline type set-ttl`), add a key, or take a larger plan."
        )


def _few_digits(figure: float) -> str:
    """Three significant digits, and never an exponent."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def settle(
    connection: Connection,
    call_id: int,
    receipt: Receipt,
    *,
    is_owned: bool = True,
) -> None:
    """Close a call and book its bytes on the wire, once, as the last step of a transaction.

    The receipt changes the provider's breaker, pauses and units left only if the claim still owns a task.
    """
    if is_owned and not receipt.was_sent:
        call_sql(connection, "settle_unsent", call_id, receipt.error)
        return
    connection.execute(
        query("limits.settle"),
        {
            "call_id": call_id,
            "outcome": "ok" if receipt.error is None else "failed",
            "error": receipt.error,
            # Without a task a call neither opens a breaker nor begins an outage. A refused key is no outage.
            "kind": receipt.kind if is_owned or receipt.kind is FailureKind.KEY_REFUSED else None,
            "is_owned": is_owned,
            **receipt.parameters,
        },
    )


def settle_failed(
    connection: Connection,
    call_id: int,
    provider: str,
    key_name: str,
    error: PricingError,
    message: str,
    *,
    is_owned: bool = True,
) -> None:
    """Close a failed call that has no task, as `settle` does, and pause the key if it was refused."""
    kind = kind_of(error)
    receipt = receipt_of(error, kind if kind in _OF_PROVIDER else None, message)
    settle(connection, call_id, receipt, is_owned=is_owned)
    if isinstance(error, Throttled | KeyRefused):
        throttle(connection, provider, key_name, pause_of(error), message)


def receipt_of(error: PricingError, kind: FailureKind | None, message: str) -> Receipt:
    """The receipt of a failed call."""
    return Receipt(
        getattr(error, "http_status", None),
        getattr(error, "wire_bytes", 0),
        kind=kind,
        error=message,
        shown=error.shown if isinstance(error, Throttled) else None,
        was_sent=getattr(error, "was_sent", True),
    )


def pause_of(error: PricingError) -> float | None:
    """For how many seconds a key pauses after a refusal; None if its provider does not say."""
    return error.retry_after if isinstance(error, Throttled) else _KEY_REFUSED_PAUSE


def kind_of(error: PricingError) -> FailureKind | None:
    """The kind of a failed call; None if the error is not a provider's."""
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), None)


def key_states(connection: Connection, provider: str) -> dict[str, KeyState]:
    """The state of each key of a provider that a worker has registered, by its name."""
    rows = connection.execute(query("limits.key_states"), {"provider": provider})
    return {row.key_name: KeyState(row.is_active, row.blocked_until, row.blocked_reason) for row in rows}


def add_keys(connection: Connection, provider: str, names: Collection[str]) -> None:
    """Write rows for keys that no worker has registered yet; the others stay as they are."""
    connection.execute(query("limits.add_keys"), {"provider": provider, "names": sorted(names)})


def change_key(connection: Connection, provider: str, key_name: str, *, is_active: bool | None, unblock: bool) -> None:
    """Use a key or stop using it (None = as it is), and end its pause and what was shown of its limits."""
    parameters = {
        "provider": provider,
        "key_name": key_name,
        "is_active": is_active,
        "unblock": unblock,
    }
    connection.execute(query("limits.change_key"), parameters)
    if unblock:
        names = {"provider": provider, "key_name": key_name}
        connection.execute(query("limits.forget_shown"), names)


def throttle(connection: Connection, provider: str, key_name: str, retry_after: float | None, reason: str) -> float:
    """Stop all workers' calls with a key for a while; returns the pause in seconds."""
    parameters = {"provider": provider, "key_name": key_name, "retry_after": retry_after, "reason": reason}
    return float(connection.execute(query("limits.throttle"), parameters).scalar_one())


def limit_batch(connection: Connection, call_id: int, most: int) -> None:
    """Remember that a call had more symbols than its provider takes: the next ones have `most` at most."""
    call_sql(connection, "store_shown_batch", call_id, most)


def message_of(connection: Connection, provider: str, error: PricingError) -> str:
    """The message of a failed call. Some refusals mean something else while a provider has never answered."""
    better = error.if_never_answered if isinstance(error, ProviderError) else None
    if better is None:
        return str(error)
    return str(error) if has_answered(connection, provider) else better


def has_answered(connection: Connection, provider: str) -> bool:
    """Whether a provider has answered a call of the last weeks, as long as the log of calls is kept."""
    return bool(call_sql(connection, "has_answered", provider).scalar_one())


def register_keys(connection: Connection, provider: str, names: Collection[str]) -> int:
    """Register the keys of a worker, so that claims can use them; returns how many are new."""
    return int(call_sql(connection, "register_keys", provider, sorted(names)).scalar_one())


def standings(connection: Connection, providers: Collection[str] | None = None) -> list[ProviderState]:
    """The state of each active provider, or of those that are named, also inactive ones."""
    named = None if providers is None else sorted(providers)
    rows = connection.execute(query("limits.standings"), {"providers": named}).mappings()
    return [ProviderState(**{**row, "keys": [Key(**key) for key in row["keys"]]}) for row in rows]


def shown(connection: Connection) -> list[LowerLimit]:
    """Limits that providers have shown to be lower than what is written down."""
    return [LowerLimit(**row) for row in connection.execute(query("limits.shown")).mappings()]


def unqueued(connection: Connection) -> list[Unqueued]:
    """Due pairs that are not queued because a quota is used up."""
    return [Unqueued(**row) for row in call_sql(connection, "unqueued_pairs").mappings()]


def budgets(connection: Connection) -> list[Budget]:
    """The need of watched and held pairs, and the allowance of each active provider."""
    return [Budget(**row) for row in call_sql(connection, "budget").mappings()]
