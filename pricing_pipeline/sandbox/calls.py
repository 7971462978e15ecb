"""One call as all dialects share it: what was asked, what goes back, and what was charged for it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
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

    def day(self, name: str) -> date | None:
        """A parameter that is a day, if it is given. Raises Invalid."""
        given = self.params.get(name)
        try:
            return None if given is None else datetime.fromisoformat(given).date()
        except ValueError:
            raise Invalid(name, given) from None

    def whole(self, name: str, usual: int, most: int, least: int = 0) -> int:
        """A parameter that is a whole number. Raises Invalid."""
        given = self.params.get(name, str(usual))
        if not (given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most):
            raise Invalid(name, given)
        return int(given)


class Invalid(Exception):
    """A parameter whose value cannot be answered."""

    def __init__(self, name: str, given: str | None = None) -> None:
        super().__init__(name, given)
        self.name, self.given = name, "" if given is None else given[:40]


def bearer(headers: Mapping[str, str], scheme: str = "Bearer") -> str | None:
    """The credential behind this scheme in an Authorization header."""
    given, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if given.lower() == scheme.lower() else None


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
    """An answer: status, body and the headers that are the provider's own."""

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


class Dialect(ABC):
    """One provider's API, as the accounts behind its keys see it."""

    name: ClassVar[str]
    roots: ClassVar[tuple[str, ...]] = ()
    """Parts of its real address that may stand before an endpoint here, too."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()

    def read(
        self,
        endpoint: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        now: datetime,
        method: str = "GET",
    ) -> ProviderCall:
        """Understand a request; never fails, because a provider charges what it cannot answer too."""
        for root in self.roots:
            endpoint = endpoint.removeprefix(root)
        endpoint = endpoint.strip("/")
        symbols, key = self.symbols(endpoint, params), self.key(params, headers)
        return ProviderCall(endpoint, params, symbols, key, now, headers=headers, method=method)

    @abstractmethod
    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        """The symbols that a request is about."""

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        """The key that a request carries."""
        return None

    @abstractmethod
    def answered(self, call: ProviderCall) -> Reply:
        """Answer an admitted call. Raises Refused and Invalid."""

    def answer(self, call: ProviderCall) -> Reply:
        """The answer to an admitted call, or what is said instead."""
        try:
            return self.answered(call)
        except Refused as refused:
            return refused.reply
        except Invalid as invalid:
            return self.invalid(invalid.name, invalid.given)

    def charge(self, call: ProviderCall) -> Charge | None:
        """Charge the plan; None for a wrong key."""
        return self.plan.charge(call.key, self.units(call), call.now.timestamp())

    def refusal(self, call: ProviderCall, charge: Charge | None) -> Reply | None:
        """The refusal of a call for its key or its cost, if there is one."""
        if charge is None:
            return self.wrong_key(call)
        return self.over_limit(charge, call) if charge.exceeds else None

    def units(self, call: ProviderCall) -> int:
        """The cost of a call, in the units of the plan."""
        return 1

    def limit_headers(self, charge: Charge) -> Mapping[str, str]:
        """Headers that say what was charged. They go on every answer but that to a wrong key."""
        return {}

    def wrong_key(self, call: ProviderCall) -> Reply:
        return Reply(401, b"")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        return Reply(429, b"")

    def invalid(self, name: str, given: str) -> Reply:
        """The refusal of a parameter's value."""
        return Reply(400, b"")
