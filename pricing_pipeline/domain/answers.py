"""What an answer of a provider says: frozen values, checked but not yet stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a task brought no price. Each kind has its own consequence in the queue."""

    UNKNOWN_SYMBOL = "unknown_symbol"
    PLAN_RESTRICTED = "plan_restricted"
    ENDPOINT_RESTRICTED = "endpoint_restricted"
    KEY_REFUSED = "key_refused"
    REQUEST_REFUSED = "request_refused"
    MISCONFIGURED = "misconfigured"
    IMPLAUSIBLE = "implausible"
    STALE_SOURCE = "stale_source"
    SCHEMA_DRIFT = "schema_drift"
    THROTTLED = "throttled"
    PROVIDER_DOWN = "provider_down"
    NOT_STORABLE = "not_storable"
    CLIENT_FAULT = "client_fault"
    WORKER_LOST = "worker_lost"
    WORKER_STOPPED = "worker_stopped"
    DATABASE_CONFLICT = "database_conflict"

    @property
    def is_permanent(self) -> bool:
        """True when asking again cannot help until a person or the provider changes something."""
        return self in _PERMANENT


_PERMANENT = frozenset(
    {
        FailureKind.UNKNOWN_SYMBOL,
        FailureKind.PLAN_RESTRICTED,
        FailureKind.ENDPOINT_RESTRICTED,
        FailureKind.MISCONFIGURED,
    }
)


class Adjustment(StrEnum):
    """What prices of the past were divided by after they were made. Dividends never count here."""

    RAW = "raw"
    """Nothing: as they were traded on their day."""
    SPLITS = "splits"
    """Every split from their day until the day of the answer."""


class Adjust(StrEnum):
    """On which basis history is read."""

    RAW = "raw"
    """As traded on its day."""
    SPLITS = "splits"
    """Divided by every split since."""
    TOTAL = "total"
    """That, and without the part of each price that later dividends paid out: for total return."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of one symbol as a provider gave it, checked but not yet stored.

    `close` is the price, the close of the bar, or the NAV. `observed_at` is the source's time in
    UTC; for daily values it is midnight UTC of the trading day. `text` keeps the source's own
    spelling of the price. `currency` is ISO 4217 or a coin, or None where the source does not say.
    `adjustment` is of the four prices and, the other way round, of the volume. `quality` says which of the others
    were dropped beside the close, and why; None where none was.
    """

    symbol: str
    observed_at: datetime
    close: Decimal
    text: str
    currency: str | None = None
    open: Decimal | None = None
    high: Decimal | None = None
    low: Decimal | None = None
    volume: Decimal | None = None
    adjustment: Adjustment = Adjustment.RAW
    quality: str | None = None


SAME_ACTION = timedelta(days=7)
"""How far two days of one split or dividend may be apart: sources differ about the first one without it."""


@dataclass(frozen=True, slots=True)
class Split:
    """From `ex_on` on, `new_shares` are what `old_shares` were before. Both are above zero, and may be fractions."""

    symbol: str
    ex_on: date
    new_shares: Decimal
    old_shares: Decimal

    @property
    def shares(self) -> float:
        """New shares for an old one: a double is exact enough to compare."""
        return float(self.new_shares / self.old_shares)


@dataclass(frozen=True, slots=True)
class Dividend:
    """Cash for one share as it was on `ex_on`, the first day that trades without it; all of one day in one.

    `currency` is ISO 4217 or a coin, or None where the source does not say.
    """

    symbol: str
    ex_on: date
    amount: Decimal
    currency: str | None = None


CorporateAction = Split | Dividend


Scalar = str | int | Decimal | bool | None
"""A value in a document; never a float."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a provider says about a symbol and one fiscal period, checked but not yet stored.

    `period` is the day that the provider files it under, None for a document that is about no period. `body` is
    flat and has the provider's own field names.
    """

    symbol: str
    period: date | None
    body: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one symbol's values. `is_stale_source`: the source's time is older than what we have."""

    symbol: str
    added: int
    revised: int
    is_stale_source: bool = False


@dataclass(frozen=True, slots=True)
class SymbolFailure:
    """Why one symbol of a call has no value, in words a person can act on."""

    symbol: str
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """One value of a longer answer that cannot be true: dropped, yet kept visible.

    `observed_at` is None when the row does not even name a day of the calendar. `text` is the
    source's own spelling. `count` is how many values it stands for.
    """

    symbol: str
    observed_at: datetime | None
    reason: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call brought. Every symbol asked for is in exactly one of values, failures and empty.

    Values are `observations`, or `documents` where the fetcher asks for such; there may be many of one
    symbol. `empty` names symbols for which the provider validly says that it has nothing in the window.
    `rejected` holds single bad days or periods of symbols that have values or, when no good one is left,
    are in `failures`. `unread` are days of the window without a value, of symbols of which one came that could not be
    read: those that it names, or all where it names none. `actions` are splits and dividends that came along: of
    symbols in `actions_since` all of them from that day until the answer was made. `unsplit` names symbols of which the
    provider says that they are of a kind that is never split. `unconfirmed` is how else the answer may have to be read.
    """

    observations: Sequence[Observation] = ()
    failures: tuple[SymbolFailure, ...] = ()
    empty: frozenset[str] = field(default_factory=frozenset)
    rejected: tuple[RejectedValue, ...] = ()
    documents: tuple[Document, ...] = ()
    actions: tuple[CorporateAction, ...] = ()
    actions_since: Mapping[str, date] = field(default_factory=dict)
    unread: Mapping[str, frozenset[date]] = field(default_factory=dict)
    unsplit: frozenset[str] = field(default_factory=frozenset)
    unconfirmed: Unconfirmed | None = None


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """Splits of one symbol that only a person is believed about, and what their answer says if they are true."""

    splits: tuple[Split, ...]
    answer: Answer


def storable(text: str) -> str:
    """The text with what no text of the database holds as escapes: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
