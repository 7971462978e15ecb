"""A worker's provider clients, with keys from settings and database; they follow changes while the worker runs.

Providers that are declared meanwhile get a client, and one that is declared again gets a new one. Only this module
connects stored keys and clients. `sealing` seals keys, `credentials` stores them, and `providers.client` uses them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from pricing_pipeline.errors import CredentialError, SealBroken, SettingsError
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.providers.base import Provider
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import client_if_possible, configured_clients, keys_in_use
from pricing_pipeline.providers.sent import check_agent, echoes_of
from pricing_pipeline.registry import data_type_registry, declarations
from pricing_pipeline.registry.prices_from import require_prices_from
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOOK_SECONDS = 10.0
"""How often stored keys and declarations are read: a running drain follows a change within this time."""

_LOG = logging.getLogger(__name__)
_UNOPENED = SecretStr("")
"""Stands for a stored key while the sandbox is used: it needs no real key."""


@contextmanager
def open_clients(
    settings: Settings, engine: Engine, *, look_seconds: float = LOOK_SECONDS
) -> Iterator[dict[str, ProviderClient]]:
    """Open a client for each active provider, and close them at the end. They follow the database meanwhile.

    A stored key that cannot be opened is left out, with a warning in the log and in the database. Raises SettingsError
    if the prices of this database come from the sandbox and the settings ask for the real providers, or the reverse.
    """
    require_prices_from(engine, settings)
    keys = StoredKeys(settings, engine)
    base_urls, providers, stored = _look(engine, keys)
    if settings.user_agent is not None:
        # Every provider gets the User-Agent, including those whose keys it does not contain.
        secrets = [secret for of_provider in stored.values() for secret in of_provider.values()]
        check_agent(settings.user_agent, echoes_of(secrets))
    with (
        configured_clients(settings, base_urls, stored, providers) as clients,
        _followed(settings, engine, clients, keys, look_seconds),
    ):
        yield clients


class _Seen(NamedTuple):
    """Addresses and providers by name, and keys by provider and name: all of one moment."""

    base_urls: Mapping[str, str]
    providers: Mapping[str, Provider]
    stored: Mapping[str, Mapping[str, SecretStr]]


def _look(engine: Engine, keys: StoredKeys) -> _Seen:
    """The addresses, providers and keys in the database now. A key goes to the host for which it was given, so both are
    read in one snapshot."""
    with engine.execution_options(isolation_level="REPEATABLE READ").connect() as connection:
        base_urls = data_type_registry.provider_urls(connection)
        providers = declarations.known_providers(connection)
        rows = credentials.stored(connection)
    return _Seen(base_urls, providers, keys.opened(rows))


class StoredKeys:
    """The active keys of the database at the last look, opened only in memory. For one thread at a time."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._opened: dict[tuple[str, str], tuple[int, SecretStr]] = {}
        self._reported: set[tuple[str, int]] = set()

    def opened(self, stored: Iterable[credentials.Stored]) -> dict[str, dict[str, SecretStr]]:
        """The active ones of the stored keys, by provider and name. Only changed keys are opened."""
        rows = [row for row in stored if row.is_active]
        known = {place: self._opened.get(place) for place in ((row.provider, row.key_name) for row in rows)}
        changed = [row for row in rows if (known[row.provider, row.key_name] or (0,))[0] != row.sealed.row_version]
        opened, faults = self._open(changed)
        versions = {(row.provider, row.key_name): row.sealed.row_version for row in rows}
        opened_keys = {place: key for place, key in known.items() if key is not None}
        opened_keys |= {place: (versions[place], secret) for place, secret in opened.items()}
        for place, fault in faults.items():
            # A working key is dropped for a forged row, but not for a missing master key.
            if isinstance(fault, SealBroken):
                opened_keys.pop(place, None)
            self._report(place, versions[place], fault)
        self._opened = opened_keys
        keys: dict[str, dict[str, SecretStr]] = {}
        for (provider, name), (_, secret) in opened_keys.items():
            keys.setdefault(provider, {})[name] = secret
        return keys

    def _open(
        self, rows: list[credentials.Stored]
    ) -> tuple[dict[tuple[str, str], SecretStr], Mapping[tuple[str, str], CredentialError | SettingsError]]:
        if self._settings.sandbox or not rows:
            return {(row.provider, row.key_name): _UNOPENED for row in rows}, {}
        try:
            # Loaded after the rows: a new master key is in its file before a row is sealed with it.
            keyring = master_keys.load(self._settings)
        except SettingsError as error:
            return {}, {(row.provider, row.key_name): error for row in rows}
        return credentials.open_all(keyring, rows)

    def _report(self, place: tuple[str, str], version: int, fault: Exception) -> None:
        about = "/".join(place)
        if (about, version) in self._reported:
            return
        self._reported.add((about, version))
        _LOG.error("%s", fault)
        with self._engine.begin() as connection:
            credentials.warn(connection, about, str(fault))


@contextmanager
def _followed(
    settings: Settings, engine: Engine, clients: dict[str, ProviderClient], keys: StoredKeys, seconds: float
) -> Iterator[None]:
    is_over = threading.Event()

    def follow(opened: ExitStack) -> None:
        while not is_over.wait(seconds):
            try:
                seen = _look(engine, keys)
                _follow_declarations(settings, clients, seen, opened)
            except Exception as error:  # what is known stays in use, and the next look may succeed
                _LOG.warning("the stored keys could not be read, or declarations: %s", error)
                continue
            _replace_keys(settings, clients, seen)

    with ExitStack() as opened:
        thread = threading.Thread(target=follow, name="stored-keys", args=(opened,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _replace_keys(settings: Settings, clients: Mapping[str, ProviderClient], seen: _Seen) -> None:
    for provider, client in list(clients.items()):
        # The keys of a declaration that this worker cannot follow are for its host, not for that of the older one.
        is_current = seen.providers.get(provider) is client.provider
        stored = seen.stored.get(provider, {}) if is_current else {}
        try:
            client.replace_keys(keys_in_use(settings, provider, stored))
        except SettingsError as error:  # those of the others are still used
            _LOG.warning("the keys of %s stay as they were: %s", provider, error)


def _follow_declarations(
    settings: Settings, clients: dict[str, ProviderClient], seen: _Seen, opened: ExitStack
) -> None:
    """Give each provider that was declared or switched on meanwhile a client, also in place of an older declaration's.

    So does one whose client could not be made before. Where it still cannot, the client of the older declaration stays.
    A client that is replaced is closed with the others, at the end: calls may be under way. That of a provider that is
    no longer declared stays, because nothing claims calls of it.
    """
    for name in seen.providers.keys() & seen.base_urls.keys():
        provider = seen.providers[name]
        if name in clients and clients[name].provider is provider:
            continue
        client = client_if_possible(settings, provider, seen.base_urls[name], seen.stored.get(name, {}))
        if client is not None:
            clients[name] = opened.enter_context(client)
