"""Clients of all active providers, for the sandbox or the real services, by the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Provider
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)
_NOTHING_STORED: Mapping[str, Mapping[str, SecretStr]] = {}

SANDBOX_KEY = SecretStr("sandbox-key")
"""The key that our own sandbox expects, and the beginning of further ones; no secret."""


@contextmanager
def configured_clients(
    settings: Settings,
    base_urls: Mapping[str, str],
    stored: Mapping[str, Mapping[str, SecretStr]] = _NOTHING_STORED,
    providers: Mapping[str, Provider] = PROVIDERS,
) -> Iterator[dict[str, ProviderClient]]:
    """Open a client for each provider in `base_urls` (name to address), and close them at the end.

    `stored` are the keys in the database, by provider and name. The calls of a provider without a key are refused until
    it has one. Providers without a client in this version, those whose client cannot be made, and those that the
    sandbox does not imitate, are left out: their tasks wait for a worker that can ask them.
    """
    with ExitStack() as stack:
        clients = {}
        for name in (name for name in providers if name in base_urls):
            client = client_if_possible(settings, providers[name], base_urls[name], stored.get(name, {}))
            if client is not None:
                clients[name] = stack.enter_context(client)
        yield clients


def client_if_possible(
    settings: Settings, provider: Provider, base_url: str, stored: Mapping[str, SecretStr]
) -> ProviderClient | None:
    """The client of one provider as `client_of` makes it; None, with an error in the log, if it cannot be made.

    A fault of one provider, such as an unreadable host name, does not affect the others.
    """
    try:
        return client_of(settings, provider, base_url, stored)
    except Exception as error:
        _log_once(provider.name, str(error))
        return None


@lru_cache(maxsize=256)
def _log_once(provider: str, why: str) -> None:
    """Say it once, because workers try again every ten seconds."""
    _LOG.error(
        "%s is not called, or called with its earlier settings, because its client cannot be made: %s "
        "Its tasks wait. Correct that, or switch it off: pricing-pipeline provider change %s --inactive",
        provider,
        why,
        provider,
    )


def client_of(
    settings: Settings, provider: Provider, base_url: str, stored: Mapping[str, SecretStr]
) -> ProviderClient | None:
    """The client of one provider, which the caller closes; None if the sandbox is on and does not imitate it."""
    address = call_url(settings, provider, base_url)
    if address is None:
        return None
    keys = keys_in_use(settings, provider.name, stored)
    return ProviderClient(provider, address, keys, user_agent=settings.user_agent)


def keys_in_use(settings: Settings, provider: str, stored: Mapping[str, SecretStr]) -> dict[str, SecretStr]:
    """The keys for calls, by name: a stored key replaces a key of that name in the settings.

    With the sandbox on, these are the sandbox's own keys with the same names; it counts each separately. Real keys are
    not sent there, and need not be opened.
    """
    keys = {**configured_keys(settings, provider), **stored}
    return sandbox_keys(keys) if settings.sandbox else keys


def configured_keys(settings: Settings, provider: str) -> dict[str, SecretStr]:
    """The API keys of a provider in the settings, by name."""
    keys = dict(getattr(settings, f"{provider}_api_keys", {}))
    alone = getattr(settings, f"{provider}_api_key", None)
    return keys if alone is None else {DEFAULT_KEY_NAME: alone, **keys}


def sandbox_keys(names: Iterable[str]) -> dict[str, SecretStr]:
    """Keys of these names for the sandbox, and always one named `default`."""
    further = sorted(set(names) - {DEFAULT_KEY_NAME})
    secret = SANDBOX_KEY.get_secret_value()
    return {DEFAULT_KEY_NAME: SANDBOX_KEY} | {name: SecretStr(f"{secret}-{name}") for name in further}


def call_url(settings: Settings, provider: Provider, base_url: str) -> str | None:
    """Where calls to a provider go: to its address `base_url`, or to the sandbox that answers in its place.

    Keys go nowhere but to the host of the declaration, so that is the address of a declared provider. None if it is
    declared without a place in the sandbox, and the sandbox is on.
    """
    declared = provider if isinstance(provider, DeclaredProvider) else None
    if settings.sandbox:
        dialect = provider.name if declared is None else declared.sandbox
        return None if dialect is None else f"{sandbox_url(settings)}/{dialect}"
    return base_url if declared is None else declared.base_url


def sandbox_url(settings: Settings) -> str:
    """Where the sandbox answers."""
    return settings.sandbox_url or f"http://127.0.0.1:{settings.sandbox_port}"
