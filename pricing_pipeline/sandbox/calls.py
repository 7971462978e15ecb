"""The shape of one call as all providers of the sandbox share it. Dialects and limits are not here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """What a client asked for, at what time (UTC)."""

    endpoint: str
    """Path under the provider's root, without the leading slash."""
    params: Mapping[str, str]
    """Of the query, and of a JSON body that is an object: what is no text in it is here as JSON."""
    symbols: tuple[str, ...]
    """As the client spelt them, in its order."""
    key: str | None
    now: datetime
    answers: Mapping[str, str] = field(default_factory=dict)
    """Symbols that are to be answered with another symbol's data: a fault somebody asked for."""
    agent: str = ""
    """The client's User-Agent."""
    method: str = "GET"


def fields_of(body: str | bytes) -> dict[str, str]:
    """The parameters in the body of a POST. A body that is no JSON object is a parameter that no provider has."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return {"(a body that is no JSON object)": ""}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: status, body and the headers that are the provider's own."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admission:
    """What a call was charged, and the refusal that ends it, if any. `headers` go on every answer to it."""

    units: int
    refusal: Reply | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_over_limit: bool = False
    """Whether the refusal is for asking too much, and not for a wrong key."""
    key_name: str | None = None
    """Name of the key whose plan was charged; None for providers and calls without a key that is known."""


class Provider(Protocol):
    """One provider's dialect and plan."""

    name: str

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        """Understand a request; never fails, because a provider charges what it cannot answer too."""

    def admit(self, call: ProviderCall) -> Admission:
        """Check the key and charge the plan."""

    def answer(self, call: ProviderCall) -> Reply:
        """Answer an admitted call."""

    def plan(self) -> dict[str, object]:
        """The limits in force, for people and auditors."""

    def reset(self) -> None:
        """Forget what was charged."""
