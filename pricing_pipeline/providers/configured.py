"""Clients of all active providers, for the sandbox or the real services, by the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTHING_STORED: Mapping[str, Mapping[str, SecretStr]] = {}

SANDBOX_KEY = SecretStr("sandbox-key")
"""The key that our own sandbox expects, and the beginning of further ones; no secret."""


@contextmanager
def configured_clients(
    settings: Settings,
    base_urls: Mapping[str, str],
    stored: Mapping[str, Mapping[str, SecretStr]] = _NOTHING_STORED,
) -> Iterator[dict[str, ProviderClient]]:
    """Open a client for each provider in `base_urls` (name to address), and close them at the end.

    `stored` are the keys in the database, by provider and name. The calls of a provider without a key are refused until
    it has one. Providers without a client in this version are left out: their tasks wait for a worker that has one.
    """
    with ExitStack() as stack:
        clients = {}
        for name in (name for name in PROVIDERS if name in base_urls):
            provider, base_url = PROVIDERS[name], base_urls[name]
            address = call_url(settings, name, base_url)
            keys = keys_in_use(settings, name, stored.get(name, {}))
            client = ProviderClient(provider, address, keys, user_agent=settings.user_agent)
            clients[name] = stack.enter_context(client)
        yield clients


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


def call_url(settings: Settings, provider: str, base_url: str) -> str:
    """Where calls to a provider go: to its own address `base_url`, or to the sandbox that answers in its place."""
    return f"{sandbox_url(settings)}/{provider}" if settings.sandbox else base_url


def sandbox_url(settings: Settings) -> str:
    """Where the sandbox answers."""
    return settings.sandbox_url or f"http://127.0.0.1:{settings.sandbox_port}"
