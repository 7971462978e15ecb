"""The keys that a client is given, checked before any call."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.providers.base import Provider, key_setting

DEFAULT_KEY_NAME = "default"


def checked_keys(
    provider: Provider, keys_given: SecretStr | Mapping[str, SecretStr] | None
) -> dict[str, SecretStr]:
    """The keys of a client by name; a key alone is named `default`. Raises SettingsError for one that cannot work."""
    if not provider.needs_key:
        return {}
    if keys_given is None:
        keys_given = SecretStr("")
    keys = {DEFAULT_KEY_NAME: keys_given} if isinstance(keys_given, SecretStr) else dict(keys_given)
    for key in keys.values():
        _check_key(provider, key.get_secret_value())
    return keys


def _check_key(provider: Provider, secret: str) -> None:
    if not secret:
        raise SettingsError(
            f"{provider.name} needs an API key, but {key_setting(provider.name)} is not set. "
            "Set it, or set PRICING_SANDBOX=true to ask the sandbox instead."
        )
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        # h11 would refuse the header with a message that shows the key.
        raise SettingsError(
            f"{key_setting(provider.name)} holds a space or a character that no HTTP header can carry. "
            "Copy the key again, without quotes or line ends."
        )
