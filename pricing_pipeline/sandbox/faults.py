"""Faults that somebody asks the sandbox to commit: declared as data, applied to single calls.

Only what is done to an answer belongs here; waiting and sending are done by the server.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pricing_pipeline.sandbox.calls import ProviderCall, Reply

PRICE_FIELDS = frozenset(
    {"open", "high", "low", "close", "price", "rate", "nav", "previous_close", "regularMarketPrice"}
)
STAMP_FIELDS = frozenset({"timestamp", "last_quote_at", "regularMarketTime"})
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head><body>Please wait.</body></html>\n"
)

FaultKind = Literal[
    "delay", "hang", "status", "throttle", "truncate", "html", "other_symbol", "stale", "price", "times"
]


class Behaviour(BaseModel):
    """One fault: what it does, to which calls, how often. What a kind does not use must stay unset.

    delay: answer `seconds` later. hang: no answer until the client leaves. status: `status` with `body` as
    text. throttle: 429 with `retry_after` as its Retry-After header, word for word. truncate: half of the
    body under a matching length. html: a web page with 200. other_symbol: the data of the symbol `answer`.
    stale: epoch stamps `seconds` older, dates of values by the whole days in it. price: every price replaced
    by the text `value` (NaN, -1.0, 0). times: every price times `factor`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    provider: str | None = None
    """Only this provider's calls; all providers' when unset."""
    symbols: str = ""
    """Only symbols that begin so; a call is meant when any of its symbols is."""
    path: str = ""
    """Only endpoints that begin so, such as `quote` or `mf/latest`."""
    probability: float = Field(1.0, ge=0, le=1)
    seed: int = 0
    """Of the draw that `probability` decides by."""
    count: int | None = Field(None, ge=1)
    """Ends after so many calls; never when unset."""

    seconds: float | None = Field(None, ge=0)
    status: int | None = Field(None, ge=200, le=599)
    body: str | None = None
    retry_after: str | None = None
    answer: str | None = None
    value: str | None = None
    factor: int | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Behaviour:
        needs, may = _FIELDS[self.kind]
        given = {name for name in _ALL_FIELDS if getattr(self, name) is not None}
        if missing := needs - given:
            raise ValueError(f"{self.kind} needs {', '.join(sorted(missing))}")
        if surplus := given - needs - may:
            raise ValueError(f"{self.kind} does not use {', '.join(sorted(surplus))}")
        return self

    def means(self, symbol: str) -> bool:
        return symbol.startswith(self.symbols)

    def is_for(self, provider: str, call: ProviderCall) -> bool:
        return (
            self.provider in (None, provider)
            and call.endpoint.startswith(self.path)
            and (not self.symbols or any(self.means(symbol) for symbol in call.symbols))
        )


_NONE: frozenset[str] = frozenset()
_FIELDS: dict[FaultKind, tuple[frozenset[str], frozenset[str]]] = {
    "delay": (frozenset({"seconds"}), _NONE),
    "hang": (_NONE, _NONE),
    "status": (frozenset({"status"}), frozenset({"body"})),
    "throttle": (_NONE, frozenset({"retry_after", "body"})),
    "truncate": (_NONE, _NONE),
    "html": (_NONE, _NONE),
    "other_symbol": (frozenset({"answer"}), _NONE),
    "stale": (frozenset({"seconds"}), _NONE),
    "price": (frozenset({"value"}), _NONE),
    "times": (frozenset({"factor"}), _NONE),
}
_ALL_FIELDS = frozenset().union(*(needs | may for needs, may in _FIELDS.values()))


class Behaviours:
    """The faults in force. They are asked about from one server, and set from anywhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: list[_Active] = []

    def add(self, behaviour: Behaviour) -> None:
        with self._lock:
            self._active.append(_Active(behaviour))

    def clear(self) -> None:
        with self._lock:
            self._active.clear()

    def listed(self) -> list[dict[str, object]]:
        """Faults in force, with how many calls each has hit."""
        with self._lock:
            return [one.behaviour.model_dump(exclude_none=True) | {"hits": one.hits} for one in self._active]

    def drawn(self, provider: str, call: ProviderCall) -> list[Behaviour]:
        """The faults that this call is to suffer, in the order they were set; each hit is counted."""
        if not self._active:
            return []
        with self._lock:
            hit = [one for one in self._active if one.behaviour.is_for(provider, call) and one.draw()]
            self._active = [one for one in self._active if not one.is_spent]
        return [one.behaviour for one in hit]


class _Active:
    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.hits = 0
        self._random = random.Random(behaviour.seed)  # noqa: S311 - repeatable on purpose

    @property
    def is_spent(self) -> bool:
        return self.behaviour.count is not None and self.hits >= self.behaviour.count

    def draw(self) -> bool:
        is_hit = self._random.random() < self.behaviour.probability
        self.hits += is_hit
        return is_hit


def swapped(behaviours: Iterable[Behaviour], symbols: Iterable[str]) -> dict[str, str]:
    """Which symbols are to be answered with which other one's data."""
    return {
        symbol: one.answer
        for one in behaviours
        if one.kind == "other_symbol" and one.answer
        for symbol in symbols
        if one.means(symbol)
    }


def distorted(reply: Reply, behaviours: Iterable[Behaviour], call: ProviderCall) -> Reply:
    """The reply after all faults that change it."""
    for one in behaviours:
        match one.kind:
            case "status":
                reply = Reply(one.status or 500, (one.body or "").encode(), _type_of(one.body or ""))
            case "throttle":
                headers = {} if one.retry_after is None else {"Retry-After": one.retry_after}
                body = one.body or "Too Many Requests"
                reply = Reply(429, body.encode(), _type_of(body), headers)
            case "html":
                reply = Reply(200, _PAGE, "text/html; charset=utf-8")
            case "truncate":
                half = reply.body[: len(reply.body) // 2]
                reply = Reply(reply.status, half, reply.content_type, reply.headers)
            case "stale" | "price" | "times":
                body_ = _changed_body(reply.body, one, call).encode()
                reply = Reply(reply.status, body_, reply.content_type, reply.headers)
            case "delay" | "hang" | "other_symbol":
                pass
    return reply


def _changed_body(body: bytes, behaviour: Behaviour, call: ProviderCall) -> str:
    spared = frozenset(symbol for symbol in call.symbols if not behaviour.means(symbol))
    parsed = _walked(json.loads(body), _change(behaviour), spared)
    return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)


def _change(behaviour: Behaviour) -> Callable[[str, object], object]:
    def change(name: str, value: object) -> object:
        if behaviour.kind == "stale" and name in STAMP_FIELDS and isinstance(value, int):
            return value - round(behaviour.seconds or 0)
        if behaviour.kind == "stale" and name == "date" and isinstance(value, str):
            spelling = "%d-%m-%Y" if value[2:3] == "-" else "%Y-%m-%d"
            earlier = timedelta(days=(behaviour.seconds or 0) // 86_400)
            return (datetime.strptime(value, spelling).date() - earlier).strftime(spelling)
        if name not in PRICE_FIELDS:
            return value
        if behaviour.kind == "price" and behaviour.value is not None:
            return behaviour.value if isinstance(value, str) else float(behaviour.value)
        if behaviour.kind == "times" and behaviour.factor is not None:
            return _times(value, behaviour.factor)
        return value

    return change


def _times(value: object, factor: int) -> object:
    """A price times a whole number, in its own spelling and without passing a float where it is text."""
    if not isinstance(value, str):
        return value * factor if isinstance(value, (int, float)) else value
    whole, dot, part = value.partition(".")
    digits = str(int(whole + part) * factor).rjust(len(part) + 1, "0")
    return f"{digits[: len(digits) - len(part)]}{dot}{digits[len(digits) - len(part) :]}"


def _walked(
    value: object, change: Callable[[str, object], object], spared: frozenset[str], name: str = ""
) -> object:
    """The value with its fields changed, but for the members of spared symbols.

    A batch's members stand under their symbols (Twelve Data) or in a list and name them (Yahoo, FMP).
    """
    if isinstance(value, dict):
        if value.get("symbol") in spared:
            return value
        return {
            key: inner if key in spared else _walked(inner, change, spared, key)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_walked(inner, change, spared, name) for inner in value]
    return change(name, value)


def _type_of(body: str) -> str:
    return "application/json; charset=utf-8" if body.startswith(("{", "[")) else "text/plain; charset=utf-8"
