"""API keys of providers in the database: store, list, open, reseal and remove them.

Only sealed keys go to the database. The owner may write; a worker reads sealed rows and opens them with master keys
that the database never sees. `sealing` explains how keys are sealed, `master_keys` where master keys are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import CredentialError, PricingError, UnknownCredential, UnknownProvider
from pricing_pipeline.keys.sealing import LONGEST_SECRET, Keyring, Sealed

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LEAST_TELLING = 16
"""The shortest secret whose last two characters may be shown."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A sealed key, with the facts that are known without opening it. Times are in UTC.

    `created_at`: when a key of this name was first stored; `replaced_at`: when it was last replaced by another;
    `sealed_at`: when it was last encrypted. Calls are made with it if it `is_active`.
    """

    sealed: Sealed
    created_at: datetime
    replaced_at: datetime | None
    sealed_at: datetime
    is_active: bool

    @property
    def provider(self) -> str:
        return self.sealed.provider

    @property
    def key_name(self) -> str:
        return self.sealed.key_name


@dataclass(frozen=True, slots=True)
class Resealed:
    """The result of `reseal`: the number of resealed keys, the faults of others, and the master keys in use."""

    done: int
    faults: tuple[CredentialError, ...]
    in_use: frozenset[str]


def checked_secret(text: str) -> SecretStr:
    """The text as a secret. Raises PricingError, without repeating it, if an HTTP header cannot carry it."""
    if not text:
        raise PricingError("no key was given: the line is empty. Nothing has changed.")
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise PricingError(
            "the key holds a space or a character that no HTTP header can carry. Copy it again, without quotes. "
            "Nothing has changed."
        )
    if len(text) > LONGEST_SECRET:
        raise PricingError(f"a key has at most {LONGEST_SECRET} characters. Nothing has changed.")
    return SecretStr(text)


def store(
    connection: Connection,
    keyring: Keyring,
    provider: str,
    key_name: str,
    secret: SecretStr,
    limits: Mapping[str, int] | None = None,
) -> bool:
    """Store a key under the newest master key and make its name usable; True when it replaced another.

    `limits` are the units of its own plan, by the name of the provider's limit; others stay. Raises UnknownProvider.
    """
    sealed = keyring.seal(provider, key_name, _next_version(connection, provider), secret)
    replaced = bool(call_sql(connection, "store_credential", *astuple(sealed)).scalar_one())
    if limits:
        parameters = {
            "provider": provider,
            "key_name": key_name,
            "names": list(limits),
            "units": list(limits.values()),
        }
        connection.execute(query("credentials.set_limits"), parameters)
    return replaced


def remove(connection: Connection, provider: str, key_name: str, *, keep_name: bool = False) -> None:
    """Delete a stored key and, unless `keep_name`, make its name inactive. Raises UnknownCredential."""
    if not call_sql(connection, "remove_credential", provider, key_name).scalar_one():
        raise UnknownCredential(
            f"no key {key_name!r} of {provider!r} is stored. `pricing-pipeline key list` lists those that are."
        )
    if keep_name:
        connection.execute(query("credentials.use_name"), {"provider": provider, "key_name": key_name})


def stored(connection: Connection, provider: str | None = None) -> list[Stored]:
    """The sealed keys of a provider, or of all, by provider and name. Raises UnknownProvider."""
    if provider is not None:
        require_provider(connection, provider)
    keys = []
    for row in connection.execute(query("credentials.stored"), {"provider": provider}).mappings():
        facts = dict(row)
        sealed = Sealed(**{name: facts.pop(name) for name in Sealed.__slots__})
        keys.append(Stored(sealed, **facts))
    return keys


def open_all(
    keyring: Keyring, rows: Iterable[Stored]
) -> tuple[dict[tuple[str, str], SecretStr], dict[tuple[str, str], CredentialError]]:
    """Open keys; returns the opened ones and the faults of the others, by provider and name."""
    opened: dict[tuple[str, str], SecretStr] = {}
    faults: dict[tuple[str, str], CredentialError] = {}
    for row in rows:
        try:
            opened[row.provider, row.key_name] = keyring.open(row.sealed)
        except CredentialError as error:
            faults[row.provider, row.key_name] = error
    return opened, faults


def reseal(engine: Engine, keyring: Keyring) -> Resealed:
    """Reseal with the newest master key every key that is under another one; as the owner.

    Each row is its own transaction, which replaces only the version that it has read. So readers always find a whole
    row, the next run resumes an interrupted one, and several runs at once do no harm.
    """
    done, faults = 0, []
    with engine.connect() as connection:
        rows = stored(connection)
    for old in (row.sealed for row in rows if row.sealed.master_key_id != keyring.newest):
        try:
            secret = keyring.open(old)
        except CredentialError as error:
            faults.append(error)
            continue
        with engine.begin() as connection:
            new = keyring.seal(old.provider, old.key_name, _next_version(connection, old.provider), secret)
            parameters = {**asdict(new), "found_version": old.row_version}
            done += bool(connection.execute(query("credentials.reseal"), parameters).scalar_one_or_none())
    with engine.connect() as connection:
        in_use = frozenset(row.sealed.master_key_id for row in stored(connection))
    return Resealed(done, tuple(faults), in_use)


def warn(connection: Connection, about: str, message: str) -> None:
    """Write a warning that a stored key cannot be used; `status` shows it."""
    call_sql(connection, "warn", "provider key", about, message, "XX001")


def hint(secret: SecretStr) -> str:
    """The part of a key by which a person recognizes it: its last two characters, if it is long."""
    text = secret.get_secret_value()
    return f"…{text[-2:]}" if len(text) >= _LEAST_TELLING else "…"


def _next_version(connection: Connection, provider: str) -> int:
    version = connection.execute(query("credentials.next_version"), {"provider": provider}).scalar_one_or_none()
    if version is None:
        require_provider(connection, provider)
    return int(version or 0)


def require_provider(connection: Connection, provider: str) -> None:
    """Raise UnknownProvider, which lists the known ones, for a name that is not a provider's."""
    known = connection.execute(query("credentials.providers")).scalars().all()
    if provider not in known:
        names = ", ".join(known) or "none"
        if len(provider) >= _LEAST_TELLING:
            raise UnknownProvider(
                f"no provider has this name. Known: {names}. If that was an API key, it is in your shell's history: "
                "remove it there, and give keys to the prompt or on standard input."
            )
        raise UnknownProvider(f"no provider is called {provider!r}. Known: {names}.")
