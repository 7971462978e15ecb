"""Clients of all active providers, as the settings want them: against the sandbox or the real services."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import DEFAULT_KEY_NAME, ProviderClient
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX_KEY = SecretStr("sandbox-key")
"""The key that our own sandbox expects, and the beginning of further ones; no secret."""


@contextmanager
def configured_clients(
    settings: Settings, base_urls: Mapping[str, str]
) -> Iterator[dict[str, ProviderClient]]:
    """Open a client for each provider in `base_urls` (name to address), and close them at the end.

    Providers that this version has no client for are left out, and so are those whose key is missing while another
    one has a key: their tasks wait for a worker that has. Raises SettingsError when all keys are missing.
    """
    needy = [name for name in PROVIDERS if name in base_urls and PROVIDERS[name].needs_key]
    keyless = {name for name in needy if not settings.sandbox and not configured_keys(settings, name)}
    if keyless == set(needy):
        keyless = set()
    with ExitStack() as stack:
        clients = {}
        for name in (name for name in PROVIDERS if name in base_urls and name not in keyless):
            provider, base_url = PROVIDERS[name], base_urls[name]
            address = f"{sandbox_url(settings)}/{name}" if settings.sandbox else base_url
            keys = sandbox_keys(settings, name) if settings.sandbox else configured_keys(settings, name)
            clients[name] = stack.enter_context(ProviderClient(provider, address, keys))
        yield clients


def configured_keys(settings: Settings, provider: str) -> dict[str, SecretStr]:
    """The API keys of a provider by name, as they are set."""
    keys = dict(getattr(settings, f"{provider}_api_keys", {}))
    alone = getattr(settings, f"{provider}_api_key", None)
    return keys if alone is None else {DEFAULT_KEY_NAME: alone, **keys}


def sandbox_keys(settings: Settings, provider: str) -> dict[str, SecretStr]:
    """Keys of the same names that the sandbox accepts; it counts each on its own. Real keys stay here."""
    further = sorted(configured_keys(settings, provider).keys() - {DEFAULT_KEY_NAME})
    secret = SANDBOX_KEY.get_secret_value()
    return {DEFAULT_KEY_NAME: SANDBOX_KEY} | {name: SecretStr(f"{secret}-{name}") for name in further}


def sandbox_url(settings: Settings) -> str:
    """Where the sandbox answers."""
    return settings.sandbox_url or f"http://127.0.0.1:{settings.sandbox_port}"
