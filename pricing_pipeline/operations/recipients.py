"""Who is told, by which channel and when. Addresses are stored sealed, as the keys of providers are.

The owner may write; a worker reads sealed rows and opens them with master keys that the database never sees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, time
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pricing_pipeline.db.errors import is_of_values, reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import CredentialError, OperationRefused, PricingError, UnknownRecipient
from pricing_pipeline.keys.credentials import Resealed
from pricing_pipeline.keys.sealing import Keyring, Sealed

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_SEALED_AS = "recipient"
"""The name that a sealed address has in place of a provider's."""
_SEALED_COLUMNS = ("row_version", "master_key_id", "key_nonce", "wrapped_key", "secret_nonce", "ciphertext")


ADDRESSED = ("email", "sms", "chat", "webhook")
"""Channels whose recipients have an address. `log` sends nothing, and a handler of the user's own knows where."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message goes, and the secret that signs it (webhooks only)."""

    url: SecretStr
    secret: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody who is told. Quiet hours are local times of `time_zone`; `created_at` is UTC.

    One of `user_id`, or of any user, takes price alerts that users ask for over HTTP, and no alerts about trouble: its
    `least_severity` is None.
    """

    recipient: str
    channel: str
    least_severity: str | None = "P1"
    quiet_from: time | None = None
    quiet_until: time | None = None
    time_zone: str = "UTC"
    allows_private: bool = False
    is_active: bool = True
    created_at: datetime | None = None
    sealed: Sealed | None = None
    user_id: str | None = None
    takes_any_user: bool = False

    def takes(self, user_id: str) -> bool:
        """Whether this user may have price alerts sent to it."""
        return self.takes_any_user or self.user_id == user_id


@dataclass(frozen=True, slots=True)
class Unreached:
    """An active recipient whose messages do not arrive, and how many of them wait. Times are UTC."""

    recipient: str
    channel: str
    channel_is_active: bool
    since: datetime | None
    failures: int | None
    breaker_until: datetime | None
    is_dead: bool
    last_error: str | None
    waiting: int

    @property
    def words(self) -> str:
        """Why its messages do not arrive, in a sentence."""
        if not self.channel_is_active:
            return (
                f"the channel {self.channel} is inactive, and {self.waiting} messages to {self.recipient} wait. "
                f"`pricing-pipeline operation-type change {self.channel} --active` sends them"
            )
        since = f"{self.since:%Y-%m-%d %H:%M}" if self.since is not None else "a while ago"
        until = f", the next attempt is at {self.breaker_until:%H:%M:%S} UTC" if self.breaker_until is not None else ""
        return (
            f"{self.recipient} has not been reached by {self.channel} since {since} UTC (failed attempts: "
            f"{self.failures}{until}; waiting messages: {self.waiting}): {self.last_error}"
        )


def unreached(connection: Connection) -> list[Unreached]:
    """Recipients that cannot be reached, and those whose channel is inactive while messages wait."""
    return [Unreached(**row) for row in connection.execute(query("recipients.unreached")).mappings()]


def stored(connection: Connection, name: str | None = None) -> list[Recipient]:
    """All recipients by name, or the one of this name, if there is one."""
    found = []
    for row in connection.execute(query("recipients.all"), {"recipient": name}).mappings():
        facts = dict(row)
        sealed = {column: facts.pop(column) for column in _SEALED_COLUMNS}
        place = Sealed(_SEALED_AS, facts["recipient"], **sealed) if sealed["ciphertext"] is not None else None
        found.append(Recipient(**facts, sealed=place))
    return found


def find(connection: Connection, name: str) -> Recipient:
    """The recipient of this name. Raises UnknownRecipient."""
    for recipient in stored(connection, name):
        return recipient
    names = ", ".join(recipient.recipient for recipient in stored(connection)) or "none yet"
    raise UnknownRecipient(f"no recipient is called {name!r}. There are: {names}.")


def find_for(connection: Connection, user_id: str, name: str) -> Recipient:
    """The recipient of this name, if it takes price alerts of a user. Raises UnknownRecipient, which names no other."""
    takers = [recipient for recipient in stored(connection) if recipient.takes(user_id)]
    for recipient in takers:
        if recipient.recipient == name:
            return recipient
    names = ", ".join(recipient.recipient for recipient in takers) or "none yet"
    raise UnknownRecipient(
        f"no recipient {name!r} takes price alerts of {user_id!r}. There are: {names}. The owner adds one with "
        "`pricing-pipeline recipient add`, --user or --any-user."
    )


def add(
    connection: Connection,
    recipient: Recipient,
    address: Address | None = None,
    keyring: Keyring | None = None,
) -> None:
    """Add a recipient, whose address, if its channel wants one, is sealed by the newest master key.

    Raises PricingError when one of this name already exists, or when the database refuses a value.
    """
    sealed = dict.fromkeys(_SEALED_COLUMNS) | {"row_version": 0}
    if address is not None and keyring is not None:
        sealed = _columns(_seal(connection, keyring, recipient.recipient, address))
    settings = {field.name: getattr(recipient, field.name) for field in fields(recipient)}
    added = connection.execute(query("recipients.add"), settings | sealed).scalar_one_or_none()
    if added is None:
        raise PricingError(
            f"a recipient {recipient.recipient!r} already exists. `recipient change` changes it. Nothing has changed."
        )


def change(connection: Connection, recipient: Recipient) -> None:
    """Change when a recipient is told, and what; its address stays. Waiting messages follow the change."""
    connection.execute(query("recipients.change"), asdict(recipient))
    connection.execute(query("recipients.try_anew"), {"recipient": recipient.recipient})


def readdress(connection: Connection, keyring: Keyring, recipient: Recipient, address: Address) -> bool:
    """Seal another address, or the same one again; False when somebody else has replaced it meanwhile."""
    version = recipient.sealed.row_version if recipient.sealed else 0
    columns = _columns(_seal(connection, keyring, recipient.recipient, address))
    parameters = {"recipient": recipient.recipient, "found_version": version, **columns}
    connection.execute(query("recipients.try_anew"), {"recipient": recipient.recipient})
    return connection.execute(query("recipients.readdress"), parameters).scalar_one_or_none() is not None


def remove(connection: Connection, name: str) -> None:
    """Forget a recipient, and cancel what waits for it or has failed. Raises UnknownRecipient."""
    connection.execute(query("recipients.withdraw"), {"recipient": name})
    connection.execute(query("recipients.try_anew"), {"recipient": name})
    if connection.execute(query("recipients.remove"), {"recipient": name}).scalar_one_or_none() is None:
        find(connection, name)


def open_address(keyring: Keyring, recipient: Recipient) -> Address:
    """The address of a recipient. Raises CredentialError if it does not open."""
    if recipient.sealed is None:
        raise CredentialError(f"{recipient.recipient} has no address: its channel takes none.")
    opened = json.loads(keyring.open(recipient.sealed).get_secret_value())
    secret = opened.get("secret")
    return Address(SecretStr(opened["url"]), None if secret is None else SecretStr(secret))


def reseal(engine: Engine, keyring: Keyring) -> Resealed:
    """Reseal with the newest master key every address that is under another one; as the owner."""
    done, faults = 0, []
    with engine.connect() as connection:
        recipients = stored(connection)
    for recipient in recipients:
        if recipient.sealed is None or recipient.sealed.master_key_id == keyring.newest:
            continue
        try:
            address = open_address(keyring, recipient)
        except CredentialError as error:
            faults.append(error)
            continue
        with engine.begin() as connection:
            done += readdress(connection, keyring, recipient, address)
    with engine.connect() as connection:
        in_use = frozenset(r.sealed.master_key_id for r in stored(connection) if r.sealed is not None)
    return Resealed(done, tuple(faults), in_use)


def send(
    connection: Connection,
    name: str,
    title: str,
    body: str,
    *,
    is_urgent: bool = False,
    goes_first: bool = False,
    data: Mapping[str, Any] | None = None,
) -> int:
    """Queue a message to a recipient with the caller's transaction; returns the operation's id.

    In the recipient's quiet hours, and while it cannot be reached, a message waits, unless it is urgent. An urgent
    message, or one that `goes_first`, is sent before other messages that are due. `data` is for webhooks alone. Raises
    OperationRefused.
    """
    try:
        return int(
            call_sql(
                connection,
                "enqueue_message",
                name,
                title,
                body,
                is_urgent,
                None if data is None else json.dumps(data),
                goes_first,
            ).scalar_one()
        )
    except statement_error() as error:
        # A caller that accepts a refusal must not mistake a lock for one: the message would be lost.
        if not is_of_values(error):
            raise
        raise OperationRefused(f"no message is queued: {reason(error)}") from error


def _seal(connection: Connection, keyring: Keyring, name: str, address: Address) -> Sealed:
    version = int(connection.execute(query("recipients.next_version")).scalar_one())
    content = {"url": address.url.get_secret_value()}
    if address.secret is not None:
        content["secret"] = address.secret.get_secret_value()
    return keyring.seal(_SEALED_AS, name, version, SecretStr(json.dumps(content)))


def _columns(sealed: Sealed) -> dict[str, object]:
    return {column: getattr(sealed, column) for column in _SEALED_COLUMNS}
