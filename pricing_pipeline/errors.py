"""Every error this project raises on purpose, as one tree.

A message says what happened, to what, and what to do about it. Errors of a provider's
answer carry what the database needs to settle the call: HTTP status and wire bytes.

    PricingError
    ├── SettingsError             a setting is missing or wrong
    │   └── NoMasterKey           no master key has been made yet
    ├── DatabaseError             the database cannot be reached or refuses
    │   ├── ReadReplica           the database takes no writes: a replica, not the primary
    │   └── EmbeddedServerError   the PostgreSQL that we run ourselves
    ├── SupervisorError           a process cannot start, a port is taken, a home is in use
    ├── FilesError                months of history outside the database cannot be read or written
    ├── NotKnown                  a request names what is not there
    │   ├── UnknownDataType       ... a data type that is not in the registry
    │   ├── UnknownSymbol         ... a symbol that no instrument has
    │   ├── UnknownCommodity      ... a commodity that no list has named
    │   ├── UnknownTerminal       ... a terminal that no list has named
    │   ├── UnknownDemand         ... a subscription or a holding that is not there
    │   ├── UnknownTask           ... a task that is not in the queue
    │   ├── UnknownBackfill       ... a backfill that is not there
    │   ├── UnknownValue          ... a value that is not in the quarantine
    │   ├── UnknownAction         ... a split or dividend that is not there
    │   ├── UnknownCalendar       ... a trading calendar, or a correction of one, that is not there
    │   ├── UnknownRule           ... a route or a limit that is not there
    │   ├── UnknownPlan           ... a provider's plan that is not there
    │   ├── UnknownProvider       ... a provider that is not there
    │   ├── UnknownCredential     ... a stored key that is not there
    │   ├── UnknownRecipient      ... a recipient that is not there
    │   ├── UnknownOperation      ... a side effect that is not there
    │   ├── UnknownOperationType  ... a kind of side effect that is not there
    │   ├── UnknownAlertRule      ... a kind of alert that is not there
    │   ├── UnknownPriceAlert     ... a price alert that is not there
    │   ├── UnknownAlert          ... an alert that is not there
    │   ├── UnknownList           ... a list of symbols that is not there
    │   └── UnknownToken          ... a token of the HTTP API that is not there
    ├── OperationRefused          a side effect has no such type, or not the payload of its type
    ├── OperationFailed           an attempt at a side effect has failed (carries is_permanent, retry_after)
    ├── DagsterUnreachable        Dagster's webserver does not answer, or starts no run
    ├── InvalidRange              days are in the wrong order, or a time has no zone
    │   └── SessionsNotKnown      ... or the trading days of a calendar are not known yet
    ├── InvalidCurrency           there is no such currency to convert into
    ├── InvalidAdjustment         a history cannot be adjusted as asked
    │   └── UncountedPayments     ... because a total return cannot count some payments (carries payments)
    ├── CredentialError           a stored key cannot be opened
    │   ├── UnknownMasterKey      the master key that sealed it is not set
    │   └── SealBroken            its row was changed after sealing
    ├── DeclarationRefused        the declaration of a provider cannot be used
    ├── HoldingsFileRefused       a file of holdings cannot be read
    ├── PairsRefused              some pairs of a request are refused (carries pairs)
    ├── CapExceeded               a user asks for more pairs or price alerts than one user may have
    ├── LockUnavailable           another session has the lock and does the work
    ├── LockLost                  the lock's session ended during the work
    └── ProviderError             one call to a provider went wrong
        ├── Throttled             the provider says: too fast (carries retry_after)
        ├── Unfinished            it may not make all its requests (carries retry_after)
        │   └── WorkerStopped     its worker was stopped between two of them
        │       └── NotMade       its worker stood still before the first of them
        ├── KeyRefused            the provider does not accept the key
        ├── PlanRestricted        the key's plan does not include this
        ├── RequestRefused        the provider calls the request itself invalid
        ├── SchemaDrift           the answer is not what the provider promised
        ├── ProviderDown          no usable answer: timeout, connection, 5xx
        ├── Misconfigured         the setup allows no such call
        └── ClientFault           our own code failed on the call
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date


class PricingError(Exception):
    """Base of all errors of this project."""


class SettingsError(PricingError):
    """A setting is missing or has a value that cannot work."""


class NoMasterKey(SettingsError):
    """No master key is set, and none has been made yet."""


class DatabaseError(PricingError):
    """The database cannot be reached, or refuses a request."""


class ReadReplica(DatabaseError):
    """The database takes no writes: a read replica, which cannot judge staleness or change the queue."""


class EmbeddedServerError(DatabaseError):
    """The PostgreSQL server that the project runs itself cannot start or stop."""


class SupervisorError(PricingError):
    """A process cannot be started: a port is taken, the home is in use, a child died."""


class FilesError(PricingError):
    """Months of history outside the database cannot be read or written."""


class NotKnown(PricingError):
    """A request names what is not there."""


class UnknownDataType(NotKnown):
    """The registry has no active data type of this name."""


class UnknownSymbol(NotKnown):
    """No instrument of this symbol is known."""


class UnknownCommodity(NotKnown):
    """There is no such commodity."""


class UnknownTerminal(NotKnown):
    """There is no such terminal."""


class UnknownDemand(NotKnown):
    """The user does not watch this, or has never held it."""


class UnknownList(NotKnown):
    """The user has no list of this name."""


class UnknownTask(NotKnown):
    """The queue holds no task of this id."""


class UnknownBackfill(NotKnown):
    """There is no backfill of this id."""


class UnknownValue(NotKnown):
    """The quarantine holds no value of this id, or its answer is not kept any more."""


class UnknownAction(NotKnown):
    """No split or dividend of this instrument and day is known, or it cannot be one."""


class UnknownCalendar(NotKnown):
    """There is no trading calendar or exchange of this name, or nobody has corrected it on this day."""


class UnknownRule(NotKnown):
    """There is no such route or limit of a provider."""


class UnknownPlan(NotKnown):
    """A provider has no plan of this name, or no plan of it is in use."""


class UnknownProvider(NotKnown):
    """The database has no provider of this name."""


class UnknownCredential(NotKnown):
    """No key of this name is stored for the provider."""


class CredentialError(PricingError):
    """A stored key of a provider cannot be opened, and is not used."""


class UnknownMasterKey(CredentialError):
    """The master key that sealed a stored key is not among those that are set."""


class SealBroken(CredentialError):
    """A stored key was changed, or copied from another row, or its master key is another one."""


class UnknownRecipient(NotKnown):
    """No recipient has this name."""


class UnknownToken(NotKnown):
    """No token of the HTTP API has this name."""


class UnknownAlertRule(NotKnown):
    """No kind of alert has this name."""


class UnknownPriceAlert(NotKnown):
    """There is no price alert of this id."""


class UnknownAlert(NotKnown):
    """No alert of this id was raised."""


class UnknownOperation(NotKnown):
    """There is no side effect of this id."""


class UnknownOperationType(NotKnown):
    """No kind of side effect has this name."""


class OperationRefused(PricingError):
    """A side effect is not queued: its type is unknown, or its payload does not fit."""


class OperationFailed(PricingError):
    """An attempt at a side effect has failed. `retry_after` is how many seconds the receiver asks to wait."""

    def __init__(self, message: str, *, is_permanent: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent
        self.retry_after = retry_after


class DagsterUnreachable(PricingError):
    """The webserver does not answer, answers in an unknown form, or does not start a run."""


class InvalidRange(PricingError):
    """The days of a range are in the wrong order, or no data can exist there."""


class SessionsNotKnown(InvalidRange):
    """The trading days of an instrument's calendar are not known yet; a running pipeline writes them."""


class InvalidCurrency(PricingError):
    """There is no such currency."""


class InvalidAdjustment(PricingError):
    """Prices cannot be read on the basis that was asked for."""


@dataclass(frozen=True, slots=True)
class UncountedPayment:
    """A payment that a total return cannot count.

    `reason` is `no_rate`, where no rate of that day from its `currency` into that of the prices (`into`) is stored, or
    `not_below_close`, where the payments of the day are not below the last price before it.
    """

    ex_on: date
    reason: str
    kind: str | None = None
    amount: str | None = None
    currency: str | None = None
    into: str | None = None


class UncountedPayments(InvalidAdjustment):
    """A total return is refused: payments between its days cannot be counted, so its growth would be wrong."""

    def __init__(self, message: str, payments: Sequence[UncountedPayment]) -> None:
        super().__init__(message)
        self.payments = tuple(payments)


class DeclarationRefused(PricingError):
    """The declaration of a provider cannot be read or used, with the line of each fault. Nothing was changed."""


class HoldingsFileRefused(PricingError):
    """A file of holdings cannot be read: it is not a table, or its format is unknown."""


class PairsRefused(PricingError):
    """Some pairs of a request are refused. `pairs` has the answer to each that is not accepted as written."""

    def __init__(self, message: str, pairs: Sequence[Mapping[str, object]]) -> None:
        super().__init__(message)
        self.pairs = pairs


class CapExceeded(PricingError):
    """One user asks for more pairs or price alerts than one user may have, or for too many new pairs a minute.

    Nothing of the request was done. `room` of its new pairs would have been admitted. Ask for the rest in `retry_after`
    seconds; it is None if only leaving other pairs or closing other holdings helps.
    """

    def __init__(self, message: str, *, room: int, retry_after: float | None) -> None:
        super().__init__(message)
        self.room = room
        self.retry_after = retry_after


class LockUnavailable(PricingError):
    """Another session has the advisory lock and does the work."""


class LockLost(PricingError):
    """The session with the advisory lock has ended: another process may have begun the same work."""


class ProviderError(PricingError):
    """A call to a provider brought no usable answer.

    `http_status` is None when no status line arrived; `wire_bytes` counts what did arrive. `most_symbols` is how many
    symbols the next calls may ask for, if the provider takes fewer than this one had. `if_never_answered` is a better
    message if the provider has never answered a call; the client does not know whether it has. `was_sent` is False when
    it is certain that nothing of the request has left, so that it cost nothing.
    """

    was_sent: bool = True
    most_symbols: int | None = None
    if_never_answered: str | None = None

    def __init__(self, message: str, *, http_status: int | None = None, wire_bytes: int = 0) -> None:
        super().__init__(message)
        self.http_status = http_status
        self.wire_bytes = wire_bytes


class Throttled(ProviderError):
    """The provider refuses because of its rate limit.

    `retry_after` is in seconds, and `shown` is the limit (`domain.calls.ShownLimit`), if it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        shown: tuple[int, int | None] | None = None,
        http_status: int | None = None,
        wire_bytes: int = 0,
    ) -> None:
        super().__init__(message, http_status=http_status, wire_bytes=wire_bytes)
        self.retry_after = retry_after
        self.shown = shown


class Unfinished(ProviderError):
    """A call has made requests, and may not make the others that it needs: nothing of it is stored.

    `retry_after` is in seconds; an earlier try would end the same way.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        http_status: int | None = None,
        wire_bytes: int = 0,
    ) -> None:
        super().__init__(message, http_status=http_status, wire_bytes=wire_bytes)
        self.retry_after = retry_after


class WorkerStopped(Unfinished):
    """The worker was stopped between two requests of a call, which says nothing about its symbols."""


class NotMade(WorkerStopped):
    """The worker stood still between the claim and the call, so its units may no longer count."""


class KeyRefused(ProviderError):
    """The provider does not accept the API key."""


class PlanRestricted(ProviderError):
    """The key's plan does not include what was asked for.

    `is_whole_endpoint`: the plan includes no symbol there, so none of the call is tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        is_whole_endpoint: bool = False,
        http_status: int | None = None,
        wire_bytes: int = 0,
    ) -> None:
        super().__init__(message, http_status=http_status, wire_bytes=wire_bytes)
        self.is_whole_endpoint = is_whole_endpoint


class RequestRefused(ProviderError):
    """The provider calls the request invalid; asking again will not help."""


class SchemaDrift(ProviderError):
    """The answer does not have the shape the provider promises."""


class ProviderDown(ProviderError):
    """No usable answer: deadline passed, connection failed, or a server error."""


class Misconfigured(ProviderError):
    """The setup allows no such call: a missing setting, a span that no provider takes."""


class ClientFault(ProviderError):
    """Our own code failed on the call, before it was made or while its answer was read."""
