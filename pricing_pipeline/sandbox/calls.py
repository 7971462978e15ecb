"""One call as all dialects share it: what was asked, what goes back, and what was charged for it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from pricing_pipeline.sandbox.limits import Charge, Plan

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A request of a client, and its time (UTC)."""

    endpoint: str
    """Path under the provider's root, without the leading slash."""
    params: Mapping[str, str]
    """The parameters of the query, and of a JSON object in the body; values that are not text are JSON."""
    symbols: tuple[str, ...]
    """As the client spelt them, in its order."""
    key: str | None
    now: datetime
    answers: Mapping[str, str] = field(default_factory=dict)
    """Symbols that are to be answered with another symbol's data: a fault somebody asked for."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By names in small letters."""
    method: str = "GET"


def fields_of(body: str | bytes) -> dict[str, str]:
    """The parameters in the body of a POST; none if it is not a JSON object."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return {}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def listed(text: str) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: status, body and the headers that are the provider's own."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def json_reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Reply(status, text.encode(), JSON, headers or {})


class Refused(Exception):
    """A call that the provider does not answer, with what it says instead."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body.decode())
        self.reply = reply


@dataclass(frozen=True, slots=True)
class Admission:
    """The charge for a call, and the refusal that ends it, if any. `headers` go on every answer to it."""

    units: int
    refusal: Reply | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_over_limit: bool = False
    """Whether the refusal is for asking too much, and not for a wrong key."""
    key_name: str | None = None
    """Name of the key whose plan was charged; None for providers and calls without a key that is known."""


class Dialect(ABC):
    """One provider's API, as the accounts behind its keys see it."""

    name: ClassVar[str]

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()

    @abstractmethod
    def read(self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime) -> ProviderCall:
        """Understand a request; never fails, because a provider charges what it cannot answer too."""

    @abstractmethod
    def answered(self, call: ProviderCall) -> Reply:
        """Answer an admitted call. Raises Refused."""

    def answer(self, call: ProviderCall) -> Reply:
        """The answer to an admitted call, or what is said instead."""
        try:
            return self.answered(call)
        except Refused as refused:
            return refused.reply

    def admit(self, call: ProviderCall) -> Admission:
        """Check the key and charge the plan."""
        charge = self.plan.charge(call.key, self.units(call), call.now.timestamp())
        if charge is None:
            return Admission(0, self.wrong_key(call))
        refusal = self.over_limit(charge, call) if charge.exceeds else None
        return Admission(charge.units, refusal, self.told(charge), refusal is not None, charge.key_name)

    def units(self, call: ProviderCall) -> int:
        """The cost of a call, in the units of the plan."""
        return 1

    def told(self, charge: Charge) -> Mapping[str, str]:
        """Headers that say what was charged."""
        return {}

    def wrong_key(self, call: ProviderCall) -> Reply:
        return Reply(401, b"")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        return Reply(429, b"")
