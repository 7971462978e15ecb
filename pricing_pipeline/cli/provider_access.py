"""How a command that calls a provider itself reaches it: its address and its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.cli.database import with_sandbox
from pricing_pipeline.errors import PricingError
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.providers.configured import call_url, keys_in_use
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME, check_agent, echoes_of
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.registry.declarations import provider_named

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Engine

    from pricing_pipeline.providers.base import Provider
    from pricing_pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Access:
    """How a provider is asked: its address, and its keys by name. `new_key` is not stored yet."""

    service: Provider
    base_url: str
    keys: dict[str, SecretStr]
    new_key: SecretStr | None = None
    is_from_environment: bool = False

    @property
    def key_name(self) -> str:
        """The key that is tried."""
        return min(self.keys, default=DEFAULT_KEY_NAME)


def access_to(engine: Engine, settings: Settings, provider: str) -> Access:
    """The address and the keys of a provider; no key if none is stored or needed. Raises CredentialError."""
    with engine.connect() as connection:
        (about,) = provider_rules.providers(connection, provider)
        known = credentials.stored(connection, provider)
        service = provider_named(connection, provider)
    if service is None:
        raise PricingError(f"this version has no client of {provider}.")
    rows = [row for row in known if row.is_active]
    if known and not rows and not settings.sandbox:
        use_again = f"pricing-pipeline key change {provider} --name {known[0].key_name} --active"
        raise PricingError(f"no key of {provider} is active. `{use_again}` activates it again.")
    _check_agent(engine, settings)
    needs_key = service.needs_key
    address = call_url(with_sandbox(settings), service, about.base_url)
    if address is None:
        raise PricingError(
            f"PRICING_SANDBOX is on, and the sandbox does not know {provider}: nothing can be asked. Its "
            "declaration may name a dialect of the sandbox; `provider try` asks the real service."
        )
    if settings.sandbox:
        return Access(service, address, keys_in_use(settings, provider, {}) if needs_key else {})
    if not needs_key:
        return Access(service, address, {})
    stored, faults = credentials.open_all(master_keys.load(settings), rows) if rows else ({}, {})
    for fault in faults.values():
        raise fault
    keys = keys_in_use(settings, provider, {key_name: secret for (_, key_name), secret in stored.items()})
    return Access(service, address, keys, is_from_environment=bool(keys) and not stored)


def _check_agent(engine: Engine, settings: Settings) -> None:
    """Raise SettingsError if the User-Agent contains a stored key of any provider: all would learn it."""
    if settings.user_agent is None or settings.sandbox:
        return
    with engine.connect() as connection:
        rows = credentials.stored(connection)
    opened, _ = credentials.open_all(master_keys.load(settings), rows) if rows else ({}, {})
    check_agent(settings.user_agent, echoes_of(opened.values()))
