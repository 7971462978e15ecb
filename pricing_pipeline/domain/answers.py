"""The content of a provider's answer: frozen values, checked but not yet stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

from pricing_pipeline.domain.observations import Observations, Rows


class FailureKind(StrEnum):
    """Why a task brought no price. The queue handles each kind differently."""

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
    UNFINISHED = "unfinished"
    PROVIDER_DOWN = "provider_down"
    NOT_STORABLE = "not_storable"
    CLIENT_FAULT = "client_fault"
    WORKER_LOST = "worker_lost"
    WORKER_STOPPED = "worker_stopped"
    DATABASE_CONFLICT = "database_conflict"

    @property
    def is_permanent(self) -> bool:
        """Whether a retry is useless until a person or the provider changes something."""
        return self in _PERMANENT


_PERMANENT = frozenset(
    {
        FailureKind.UNKNOWN_SYMBOL,
        FailureKind.PLAN_RESTRICTED,
        FailureKind.ENDPOINT_RESTRICTED,
        FailureKind.MISCONFIGURED,
    }
)


class Adjust(StrEnum):
    """The basis on which history is read."""

    RAW = "raw"
    """As traded on its day."""
    SPLITS = "splits"
    """Divided by every split since."""
    TOTAL = "total"
    """Divided by every split since, and less the dividends paid since: for total return."""


SAME_ACTION = timedelta(days=7)
"""How far two days of one split or dividend may be apart: sources differ about its first day."""


@dataclass(frozen=True, slots=True)
class Split:
    """From `ex_on` on, `old_shares` have become `new_shares`. Both are above zero, and may be fractions."""

    symbol: str
    ex_on: date
    new_shares: Decimal
    old_shares: Decimal

    @property
    def shares(self) -> float:
        """New shares for one old share; a double is exact enough to compare."""
        return float(self.new_shares / self.old_shares)


@dataclass(frozen=True, slots=True)
class SpinOff(Split):
    """Shares of another company were distributed. Providers report it as a split, or not at all.

    Like a split it divides the prices before it, by `new_shares` for `old_shares`. The number of shares stays the same,
    so it changes no volume.
    """


@dataclass(frozen=True, slots=True)
class Dividend:
    """One payment of cash for one share on `ex_on`, the first trading day without it. A day may have several.

    `currency` is ISO 4217 or a coin, and may differ from that of the prices. It is None if the source does not name it.
    """

    symbol: str
    ex_on: date
    amount: Decimal
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class CapitalGain(Dividend):
    """Realized gains that a fund pays out to its holders. They lower the price as a dividend does."""


CorporateAction = Split | SpinOff | Dividend | CapitalGain


class Record(Protocol):
    """An answer about one symbol, other than prices: a frozen dataclass, checked but not yet stored."""

    @property
    def symbol(self) -> str:
        """The symbol that it is about."""


Scalar = str | int | Decimal | bool | None
"""A value in a document; never a float."""


@dataclass(frozen=True, slots=True)
class Document:
    """A provider's document about a symbol and one fiscal period, checked but not yet stored.

    `period` is the day under which the provider files it, None for a document about no period. `body` is flat and has
    the provider's own field names.
    """

    symbol: str
    period: date | None
    body: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of storing one symbol's values. `is_stale_source`: the source's time is older than the stored one."""

    symbol: str
    added: int
    revised: int
    is_stale_source: bool = False


@dataclass(frozen=True, slots=True)
class SymbolFailure:
    """Why one symbol of a call has no value, in words that a person can act on."""

    symbol: str
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """One value of an answer that cannot be true: it is not stored as a price, but people can see it.

    `observed_at` is None if the row names no day of the calendar. `text` is the source's own spelling. `count` is how
    many values it stands for. `unasked` are the sound values that it stands for because nobody asked for their days.
    """

    symbol: str
    observed_at: datetime | None
    reason: str
    text: str
    count: int = 1
    unasked: Rows = field(default_factory=Rows)


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of one call's answer. Every requested symbol is in exactly one of values, failures and empty.

    Values are `observations` for fetchers of prices, and `records` for all others (documents, slots); a symbol may have
    many. `empty` names symbols that have nothing in the window by the provider's valid answer. `rejected` has single
    bad days or periods of symbols with other values; if a symbol has no good value, it is also in `failures`. `unread`
    has, for symbols with an unreadable value, the days of the window without a value: the days that the value names, or
    all if it names none. `actions` are the corporate actions in the answer; for symbols in `actions_since` all splits
    and dividends are among them from that day until the time of the answer, and for those in `gains_reported` all
    capital gains too. `unsplit` names symbols that are never split, by their kind at the provider. `unconfirmed` is
    another way to read the answer. `left_out` counts sound rows that came beside the asked ones: earlier or repeated.
    """

    observations: Observations = field(default_factory=Rows)
    failures: tuple[SymbolFailure, ...] = ()
    empty: frozenset[str] = field(default_factory=frozenset)
    rejected: tuple[RejectedValue, ...] = ()
    records: tuple[Record, ...] = ()
    actions: tuple[CorporateAction, ...] = ()
    actions_since: Mapping[str, date] = field(default_factory=dict)
    gains_reported: frozenset[str] = field(default_factory=frozenset)
    unread: Mapping[str, frozenset[date]] = field(default_factory=dict)
    unsplit: frozenset[str] = field(default_factory=frozenset)
    unconfirmed: Unconfirmed | None = None
    left_out: int = 0

    def of(self, symbols: Container[str]) -> Answer:
        """The answer about these symbols alone. Another way to read it stays as it is."""
        return replace(
            self,
            observations=self.observations.of(symbols),
            failures=tuple(failure for failure in self.failures if failure.symbol in symbols),
            empty=frozenset(symbol for symbol in self.empty if symbol in symbols),
            rejected=tuple(value for value in self.rejected if value.symbol in symbols),
            records=tuple(record for record in self.records if record.symbol in symbols),
            actions=tuple(action for action in self.actions if action.symbol in symbols),
            actions_since={symbol: day for symbol, day in self.actions_since.items() if symbol in symbols},
            gains_reported=frozenset(symbol for symbol in self.gains_reported if symbol in symbols),
            unread={symbol: days for symbol, days in self.unread.items() if symbol in symbols},
            unsplit=frozenset(symbol for symbol in self.unsplit if symbol in symbols),
        )

    @property
    def failure(self) -> FailureKind | None:
        """The most frequent failure of an answer that brought nothing; None if it brought something."""
        if self.observations or self.records or self.empty or not self.failures:
            return None
        return Counter(failure.kind for failure in self.failures).most_common(1)[0][0]


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """Splits of one symbol that only a person can confirm, and the answer as it reads if they are true."""

    splits: tuple[Split, ...]
    answer: Answer


def storable(text: str) -> str:
    """The text with escapes for characters that the database cannot store: NUL, and halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
