"""Clients of all active providers, as the settings want them: against the sandbox or the real services."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX_KEY = SecretStr("sandbox-key")
"""The key that our own sandbox expects; no secret."""


@contextmanager
def configured_clients(
    settings: Settings, base_urls: Mapping[str, str]
) -> Iterator[dict[str, ProviderClient]]:
    """Open a client for each provider in `base_urls` (name to address), and close them at the end.

    Providers that this version has no client for are left out: their tasks wait for a worker that has.
    Raises SettingsError when a provider's key is missing.
    """
    with ExitStack() as stack:
        clients = {}
        for name, base_url in base_urls.items():
            if name not in PROVIDERS:
                continue
            provider = PROVIDERS[name]
            address = f"{sandbox_url(settings)}/{name}" if settings.sandbox else base_url
            key = SANDBOX_KEY if settings.sandbox else getattr(settings, f"{name}_api_key", None)
            clients[name] = stack.enter_context(ProviderClient(provider, address, key))
        yield clients


def sandbox_url(settings: Settings) -> str:
    """Where the sandbox answers."""
    return settings.sandbox_url or f"http://127.0.0.1:{settings.sandbox_port}"
