"""The login of a declared provider: the request that brings a token, and how the token is read from its answer.

The client makes it, keeps the token, and hides it (client.py).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from pydantic import SecretStr

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import KeyRefused, SchemaDrift, SettingsError
from pricing_pipeline.providers.base import Request, Token, check_key, refusal, words_of
from pricing_pipeline.providers.bodies import decode_hint
from pricing_pipeline.providers.declaration import Login
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import line_of
from pricing_pipeline.providers.declared_refusals import Refusals, is_page
from pricing_pipeline.providers.json_paths import JsonPath

_LONGEST = 8192
"""Characters of a token. The signed ones of large services have up to 4000."""
_LEAST_SECONDS, _MOST_SECONDS = 1, 2_592_000
_USED = Decimal("0.9")
"""The share of its lifetime in which a token is used: a call with pages takes minutes."""
_REFUSED = (400, 401, 403)
"""OAuth 2 refuses a client by 400 and 401 (RFC 6749, 5.2)."""


class TokenLogin:
    """See LogIn in dialogue.py."""

    def __init__(self, declared: Declared, about: Login, refusals: Refusals) -> None:
        self._declared, self._about, self._refusals = declared, about, refusals
        self._name = declared.declaration.name
        self._token = JsonPath(about.token)
        self._lifetime = None if about.lifetime is None else JsonPath(about.lifetime)

    def secrets(self, key: str) -> list[str]:
        """Everything secret that a login sends. Raises SettingsError for a key with another number of parts."""
        return [*self._parts(key), *([] if self._about.basic is None else [_basic(key)])]

    def _parts(self, key: str) -> list[str]:
        return parts_of_key(self._name, key, self._about.parts or ["name", "password"])

    def request(self, key: str) -> Request:
        """The login, with the key."""
        about = self._about
        named = {} if about.parts is None else dict(zip(about.parts, self._parts(key), strict=True))
        headers = () if about.basic is None else (("Authorization", f"Basic {_basic(key)}"),)
        if about.form is None:
            return Request(about.path, method="POST", json={**(about.post or {}), **named}, headers=headers)
        return Request(about.path, method="POST", form=tuple({**about.form, **named}.items()), headers=headers)

    def token(self, response: Response, now: datetime) -> Token:
        """The token in the answer. No message quotes an answer that brings one."""
        failed = refusal(self._name, response, now=now)
        if failed is not None:
            words = self._refusals.words(decode_hint(self._name, response))
            if response.status in _REFUSED and not is_page(response):
                words = words or words_of(response) or "no explanation"
                raise KeyRefused(
                    f"{self._name} refused the login (HTTP {response.status}: {words.rstrip('.')}). "
                    f"{check_key(self._name)}"
                )
            raise refusal(self._name, response, now=now, detail=words) or failed
        body = decode_hint(self._name, response)
        found = self._token.search(body, {})
        if not isinstance(found, str) or not _is_token(found):
            raise self._drift("token", self._about.token, f"a text of 8 to {_LONGEST} characters without spaces")
        return Token(SecretStr(found), now + timedelta(seconds=float(self._seconds(body) * _USED)))

    def _seconds(self, body: object) -> Decimal:
        if self._lifetime is None:
            return Decimal(self._about.seconds or _LEAST_SECONDS)
        found = self._lifetime.search(body, {})
        if isinstance(found, str) and found.isascii() and found.isdigit():
            found = Decimal(found[:12])
        is_number = isinstance(found, int | Decimal) and not isinstance(found, bool)
        seconds = Decimal(str(found)) if is_number else Decimal()
        if seconds.is_nan() or seconds < _LEAST_SECONDS:
            raise self._drift("lifetime", str(self._about.lifetime), "a number of seconds")
        return min(seconds, Decimal(_MOST_SECONDS))

    def _drift(self, key: str, path: str, wanted: str) -> SchemaDrift:
        at = line_of(self._declared, ("login", key))
        return SchemaDrift(
            f"{self._name} answered the login, and `{path}` ({at}) does not lead to {wanted}. Correct the path, or the "
            "provider has changed its API; nothing was asked for."
        )


def parts_of_key(provider: str, key: str, names: Sequence[str]) -> list[str]:
    """The parts of a stored key. Raises SettingsError for another number of them."""
    parts = key.split(":", len(names) - 1)
    if len(parts) < len(names) or not all(parts):
        raise SettingsError(
            f"the key of {provider} has {len(names)} parts, for {' and '.join(names)}. Store them with a colon "
            f"between: `pricing-pipeline key set {provider}`."
        )
    return parts


def _is_token(text: str) -> bool:
    return 8 <= len(text) <= _LONGEST and text.isascii() and text.isprintable() and " " not in text


def _basic(key: str) -> str:
    return b64encode(key.encode()).decode()
