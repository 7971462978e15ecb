"""Checks requests before they are sent: keys and User-Agent in their places, and no key anywhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from pydantic import SecretStr

from pricing_pipeline.errors import SchemaDrift, SettingsError
from pricing_pipeline.providers.base import Provider, Request, give_key
from pricing_pipeline.providers.dialogue import OwnKeys
from pricing_pipeline.providers.key_echoes import MASK, KeyEchoes

DEFAULT_KEY_NAME = "default"


def checked_keys(provider: Provider, keys_given: SecretStr | Mapping[str, SecretStr] | None) -> dict[str, SecretStr]:
    """The keys by name, none for a provider without. Raises SettingsError for one that no header can carry."""
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
            f"{provider.name} needs an API key, and none is stored or set. {give_key(provider.name)} "
            "With PRICING_SANDBOX=true the sandbox is asked instead."
        )
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        # h11 would refuse the header with a message that shows the key.
        raise SettingsError(
            f"the API key of {provider.name} holds a space or a character that no HTTP header can carry. "
            f"Copy it again, without quotes or line ends. {give_key(provider.name)}"
        )


def echoes_of(
    keys: Iterable[SecretStr], provider: Provider | None = None, tokens: Iterable[SecretStr] = ()
) -> KeyEchoes:
    """A finder of these keys, of each part of them, and of the tokens that they have brought."""
    whole = [key.get_secret_value() for key in keys]
    own = provider if isinstance(provider, OwnKeys) else None
    parts: list[str] = [] if own is None else [part for key in whole for part in own.secrets(key)]
    return KeyEchoes([*whole, *parts, *(token.get_secret_value() for token in tokens)])


def check_agent(agent: str | None, echoes: KeyEchoes) -> None:
    """Raise SettingsError, without the text, for a chosen User-Agent with a key in it: all providers get it."""
    if agent is not None and echoes.mask_text(agent) != agent:
        raise SettingsError("PRICING_USER_AGENT contains an API key. Take it out: it is sent to every provider.")


def holds_key(request: Request, echoes: KeyEchoes) -> bool:
    """Whether a key, or what has replaced it, is in path, query or body of a request.

    In a URL, any of its characters may be escaped.
    """
    sent = "\n".join([request.path, *(f"{name}={value}" for name, value in request.params)])
    sent += "" if request.json is None else json.dumps(request.json, ensure_ascii=False)
    return any(MASK.decode() in text or echoes.mask_text(text) != text for text in (sent, unquote(sent)))


def key_leak(provider: str) -> SchemaDrift:
    """The error of a provider whose answer leads to a request that holds a key."""
    return SchemaDrift(
        f"{provider} names a next page with its API key in the address or the body, where logs show it. That page was "
        "not asked for, and nothing was stored. Correct `pages` of its declaration, or tell the provider that its "
        "answers repeat keys."
    )
