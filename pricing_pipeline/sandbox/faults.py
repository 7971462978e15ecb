"""Faults that the sandbox injects on request: declared as data, applied to single calls.

Only what is done to an answer belongs here; waiting and sending are done by the server.
"""

from __future__ import annotations

import json
import random
import threading
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pricing_pipeline.sandbox.calls import ProviderCall, Reply

PRICE_FIELDS = frozenset(
    {"open", "high", "low", "close", "price", "rate", "nav", "previous_close", "regularMarketPrice"}
    | {"original", "retail", "net", "originalPrice"}
    | {"price_buy", "price_sell"}
)
STAMP_FIELDS = frozenset({"timestamp", "last_quote_at", "regularMarketTime", "date_modified"})
_DAYS = frozenset({"date", "datetime"})
_PAGE = b"<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head><body>Please wait.</body></html>\n"

FaultKind = Literal[
    "delay", "hang", "status", "throttle", "truncate", "html", "other_symbol", "stale", "price", "times",
    "ahead", "currency", "crossed", "duplicate", "split", "redirect", "bomb", "drip", "cut", "browsers_only",
    "lost_rows",
]  # fmt: skip
_NEEDS = {
    "delay": "seconds", "drip": "seconds", "stale": "seconds", "ahead": "seconds", "status": "status",
    "price": "value", "currency": "value", "other_symbol": "answer", "times": "factor", "split": "factor",
    "bomb": "factor", "redirect": "location",
}  # fmt: skip


class Behaviour(BaseModel):
    """One fault: what it does, to which calls, how often.

    delay: answer `seconds` later. hang: no answer until the client leaves. status: `status` with `body` as
    text. throttle: 429 with `retry_after` as its Retry-After header, word for word. truncate: half of the
    body under a matching length. html: a web page with 200. other_symbol: the data of the symbol `answer`.
    stale: epoch stamps `seconds` older, dates of values by the whole days in it. price: every price replaced
    by the text `value` (NaN, -1.0, 0; a plausible one is a price that is frozen under fresh stamps). times: every
    price times `factor`. ahead: epoch stamps `seconds` newer, dates by the whole days in it. currency: every currency
    is `value`. crossed: high and low change places. duplicate: the first day comes twice, the second time with prices
    twice as high. split: prices of the older half of the days times `factor`, as if a split had not been applied.
    redirect: 302 to `location`. bomb: `factor` megabytes of nothing, packed by gzip. drip: the body byte by byte, one
    in `seconds`. cut: the body ends before the length that was announced. browsers_only: 429 in Yahoo's words to
    clients whose User-Agent is not a browser's. lost_rows: the second half of the rows of a page is missing, and its
    total is as before.
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
    """Ends after this number of calls; never when unset."""

    seconds: float | None = Field(None, ge=0)
    status: int | None = Field(None, ge=200, le=599)
    body: str | None = None
    retry_after: str | None = None
    answer: str | None = None
    value: str | None = None
    factor: int | None = None
    location: str | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Behaviour:
        if self.kind in _NEEDS and getattr(self, _NEEDS[self.kind]) is None:
            raise ValueError(f"{self.kind} needs {_NEEDS[self.kind]}")
        return self

    def means(self, symbol: str) -> bool:
        return symbol.startswith(self.symbols)

    def is_for(self, provider: str, call: ProviderCall) -> bool:
        return (
            self.provider in (None, provider)
            and call.endpoint.startswith(self.path)
            and (not self.symbols or any(self.means(symbol) for symbol in call.symbols))
        )


class _Active:
    """A fault in force, and how many calls it has hit."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.hits = 0
        self._random = random.Random(behaviour.seed)  # noqa: S311 - repeatable on purpose

    def draw(self) -> bool:
        is_hit = self._random.random() < self.behaviour.probability
        self.hits += is_hit
        return is_hit


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
        with self._lock:
            hit = [one for one in self._active if one.behaviour.is_for(provider, call) and one.draw()]
            self._active = [one for one in self._active if one.hits != one.behaviour.count]
        return [one.behaviour for one in hit]


def swapped(behaviours: Iterable[Behaviour], symbols: Iterable[str]) -> dict[str, str]:
    """The symbols to answer with the data of another symbol."""
    return {
        symbol: behaviour.answer
        for behaviour in behaviours
        if behaviour.kind == "other_symbol" and behaviour.answer
        for symbol in symbols
        if behaviour.means(symbol)
    }


def distorted(reply: Reply, behaviours: Iterable[Behaviour], call: ProviderCall) -> Reply:
    """The reply after all faults that change it."""
    for behaviour in behaviours:
        reply = _distorted(reply, behaviour, call)
    return reply


def _distorted(reply: Reply, behaviour: Behaviour, call: ProviderCall) -> Reply:
    match behaviour.kind:
        case "delay" | "hang" | "other_symbol" | "drip" | "cut":
            return reply
        case "status":
            body = behaviour.body or ""
            return Reply(behaviour.status or 500, body.encode(), _type_of(body))
        case "throttle":
            headers = {} if behaviour.retry_after is None else {"Retry-After": behaviour.retry_after}
            body = behaviour.body or "Too Many Requests"
            return Reply(429, body.encode(), _type_of(body), headers)
        case "browsers_only":
            is_browser = call.headers.get("user-agent", "").startswith("Mozilla/5.0 (")
            return reply if is_browser else Reply(429, b"Edge: Too Many Requests", "text/plain")
        case "html":
            return Reply(200, _PAGE, "text/html; charset=utf-8")
        case "truncate":
            return replace(reply, body=reply.body[: len(reply.body) // 2])
        case "redirect":
            return Reply(302, b"", "text/plain", {"Location": behaviour.location or ""})
        case "bomb":
            return replace(reply, body=_bomb(behaviour.factor or 1), headers={"Content-Encoding": "gzip"})
    return replace(reply, body=_changed_body(reply.body, behaviour, call))


def _bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    nothing = bytes(1_000_000)
    return b"".join(packer.compress(nothing) for _ in range(megabytes)) + packer.flush()


def _changed_body(body: bytes, behaviour: Behaviour, call: ProviderCall) -> bytes:
    """The body with its fields and rows changed, but for the members of symbols that are not meant.

    A batch's members stand under their symbols (Twelve Data) or in a list and name them (Yahoo, FMP).
    """
    spared = {symbol for symbol in call.symbols if not behaviour.means(symbol)}
    change = _change(behaviour)

    def walked(value: object, name: str = "") -> object:
        if isinstance(value, dict):
            if value.get("symbol") in spared:
                return value
            fields = _changed_object(value, behaviour)
            return {key: inner if key in spared else walked(inner, key) for key, inner in fields.items()}
        if isinstance(value, list):
            return [walked(inner, name) for inner in _changed_rows(value, behaviour)]
        return change(name, value)

    return json.dumps(walked(json.loads(body)), separators=(",", ":"), ensure_ascii=False).encode()


def _change(behaviour: Behaviour) -> Callable[[str, object], object]:
    later = round(behaviour.seconds or 0) * (1 if behaviour.kind == "ahead" else -1)

    def change(name: str, value: object) -> object:
        if behaviour.kind in ("stale", "ahead"):
            if name in STAMP_FIELDS and isinstance(value, int):
                return value + later
            if name in _DAYS and isinstance(value, str) and len(value) == len("2000-01-01"):
                spelling = "%d-%m-%Y" if value[2:3] == "-" else "%Y-%m-%d"
                days = timedelta(days=int(later / 86_400))
                return (datetime.strptime(value, spelling).date() + days).strftime(spelling)
        if behaviour.kind == "currency" and name == "currency":
            return behaviour.value
        if name not in PRICE_FIELDS:
            return value
        if behaviour.kind == "price" and behaviour.value is not None:
            return behaviour.value if isinstance(value, str) else float(behaviour.value)
        if behaviour.kind == "times" and behaviour.factor is not None:
            return _times(value, behaviour.factor)
        return value

    return change


def _changed_object(value: dict[str, object], behaviour: Behaviour) -> dict[str, object]:
    if behaviour.kind == "crossed" and {"high", "low"} <= value.keys():
        return value | {"high": value["low"], "low": value["high"]}
    if behaviour.kind == "lost_rows" and isinstance(rows := value.get("items"), list):
        return value | {"items": rows[: len(rows) // 2]}
    if behaviour.kind == "split" and {"timestamp", "indicators"} <= value.keys():
        return value | {"indicators": _half_times(value["indicators"], behaviour.factor or 1)}
    return value


def _changed_rows(rows: list[object], behaviour: Behaviour) -> list[object]:
    """Whole days changed for those kinds that do so."""
    days = [row for row in rows if isinstance(row, dict) and _DAYS & row.keys()]
    if days and len(days) == len(rows):
        if behaviour.kind == "duplicate":
            return [*days, _dearer(days[0], 2)]
        if behaviour.kind == "split":
            edge = sorted(map(_day_of, days))[len(days) // 2]
            return [_dearer(row, behaviour.factor or 1) if _day_of(row) < edge else row for row in days]
    return rows


def _half_times(value: object, factor: int) -> object:
    """Columns of prices with their first half, which is the older one, multiplied."""
    if isinstance(value, dict):
        return {name: _half_times(inner, factor) for name, inner in value.items() if name != "volume"} | {
            name: inner for name, inner in value.items() if name == "volume"
        }
    if isinstance(value, list) and all(isinstance(inner, (int, float, type(None))) for inner in value):
        return [_times(number, factor) if n < len(value) // 2 else number for n, number in enumerate(value)]
    return [_half_times(inner, factor) for inner in value] if isinstance(value, list) else value


def _dearer(row: dict[str, object], factor: int) -> dict[str, object]:
    return {name: _times(value, factor) if name in PRICE_FIELDS else value for name, value in row.items()}


def _day_of(row: dict[str, object]) -> str:
    """The day of a row, as text that sorts by time."""
    day = str(row.get("date") or row.get("datetime"))
    return "-".join(reversed(day.split("-"))) if day[2:3] == "-" else day


def _times(value: object, factor: int) -> object:
    """A price times a whole number, in its own spelling and without passing a float where it is text."""
    if not isinstance(value, str):
        return value * factor if isinstance(value, (int, float)) else value
    whole, dot, part = value.partition(".")
    digits = str(int(whole + part) * factor).rjust(len(part) + 1, "0")
    return f"{digits[: len(digits) - len(part)]}{dot}{digits[len(digits) - len(part) :]}"


def _type_of(body: str) -> str:
    return "application/json; charset=utf-8" if body.startswith(("{", "[")) else "text/plain; charset=utf-8"
