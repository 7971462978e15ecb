"""Faults that somebody asks the sandbox to commit: declared as data, applied to single calls.

Only what is done to an answer belongs here; waiting and sending are done by the server.
"""

from __future__ import annotations

import json
import random
import threading
import zlib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pricing_pipeline.sandbox.calls import ProviderCall, Reply

PRICE_FIELDS = frozenset(
    {"open", "high", "low", "close", "price", "rate", "nav", "previous_close", "regularMarketPrice"}
    | {"original", "retail", "net", "originalPrice"}
    | {"price_buy", "price_sell"}
)
_DAYS = frozenset({"date", "datetime"})
_DAY_LENGTH = 10
STAMP_FIELDS = frozenset({"timestamp", "last_quote_at", "regularMarketTime", "date_modified"})
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head><body>Please wait.</body></html>\n"
)
_BROWSER = "Mozilla/5.0 ("

FaultKind = Literal[
    "delay", "hang", "status", "throttle", "truncate", "html", "other_symbol", "stale", "price", "times",
    "ahead", "currency", "crossed", "duplicate", "split", "redirect", "bomb", "drip", "cut", "browsers_only",
    "lost_rows",
]  # fmt: skip


class Behaviour(BaseModel):
    """One fault: what it does, to which calls, how often. What a kind does not use must stay unset.

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
    clients whose User-Agent is not a browser's. lost_rows: the
    second half of the rows of a page is missing, and its total is as before.
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
    location: str | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Behaviour:
        needs, may = _FIELDS[self.kind]
        present = {name for name in _ALL_FIELDS if getattr(self, name) is not None}
        if missing := needs - present:
            raise ValueError(f"{self.kind} needs {', '.join(sorted(missing))}")
        if surplus := present - needs - may:
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
    "ahead": (frozenset({"seconds"}), _NONE),
    "currency": (frozenset({"value"}), _NONE),
    "crossed": (_NONE, _NONE),
    "duplicate": (_NONE, _NONE),
    "split": (frozenset({"factor"}), _NONE),
    "redirect": (frozenset({"location"}), _NONE),
    "bomb": (frozenset({"factor"}), _NONE),
    "drip": (frozenset({"seconds"}), _NONE),
    "cut": (_NONE, _NONE),
    "browsers_only": (_NONE, _NONE),
    "lost_rows": (_NONE, _NONE),
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
            return [
                active.behaviour.model_dump(exclude_none=True) | {"hits": active.hits}
                for active in self._active
            ]

    def drawn(self, provider: str, call: ProviderCall) -> list[Behaviour]:
        """The faults that this call is to suffer, in the order they were set; each hit is counted."""
        if not self._active:
            return []
        with self._lock:
            hit = [
                active for active in self._active if active.behaviour.is_for(provider, call) and active.draw()
            ]
            self._active = [active for active in self._active if not active.is_spent]
        return [active.behaviour for active in hit]


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
        match behaviour.kind:
            case "status":
                reply = Reply(
                    behaviour.status or 500, (behaviour.body or "").encode(), _type_of(behaviour.body or "")
                )
            case "throttle":
                headers = {} if behaviour.retry_after is None else {"Retry-After": behaviour.retry_after}
                body = behaviour.body or "Too Many Requests"
                reply = Reply(429, body.encode(), _type_of(body), headers)
            case "browsers_only":
                if not call.agent.startswith(_BROWSER):
                    reply = Reply(429, b"Edge: Too Many Requests", "text/plain")
            case "html":
                reply = Reply(200, _PAGE, "text/html; charset=utf-8")
            case "truncate":
                half = reply.body[: len(reply.body) // 2]
                reply = Reply(reply.status, half, reply.content_type, reply.headers)
            case "redirect":
                reply = Reply(302, b"", "text/plain", {"Location": behaviour.location or ""})
            case "bomb":
                reply = Reply(
                    reply.status,
                    _bomb(behaviour.factor or 1),
                    reply.content_type,
                    {"Content-Encoding": "gzip"},
                )
            case (
                "stale"
                | "ahead"
                | "price"
                | "times"
                | "currency"
                | "crossed"
                | "duplicate"
                | "split"
                | "lost_rows"
            ):
                body_ = _changed_body(reply.body, behaviour, call).encode()
                reply = Reply(reply.status, body_, reply.content_type, reply.headers)
            case "delay" | "hang" | "other_symbol" | "drip" | "cut":
                pass
    return reply


def _changed_body(body: bytes, behaviour: Behaviour, call: ProviderCall) -> str:
    spared = frozenset(symbol for symbol in call.symbols if not behaviour.means(symbol))
    parsed = _walked(
        json.loads(body), _change(behaviour), spared, lambda value: _restructured(value, behaviour)
    )
    return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)


def _bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    nothing = bytes(1_000_000)
    return b"".join(packer.compress(nothing) for _ in range(megabytes)) + packer.flush()


def _change(behaviour: Behaviour) -> Callable[[str, object], object]:
    later = round(behaviour.seconds or 0) * (1 if behaviour.kind == "ahead" else -1)

    def change(name: str, value: object) -> object:
        if behaviour.kind in ("stale", "ahead"):
            if name in STAMP_FIELDS and isinstance(value, int):
                return value + later
            if name in ("date", "datetime") and isinstance(value, str) and len(value) == _DAY_LENGTH:
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


def _restructured(value: object, behaviour: Behaviour) -> object:
    """Whole days, and the prices within one, changed for those kinds that do so."""
    if isinstance(value, dict):
        if behaviour.kind == "crossed" and {"high", "low"} <= value.keys():
            return value | {"high": value["low"], "low": value["high"]}
        if behaviour.kind == "lost_rows" and isinstance(rows := value.get("items"), list):
            return value | {"items": rows[: len(rows) // 2]}
        if behaviour.kind == "split" and {"timestamp", "indicators"} <= value.keys():
            return value | {"indicators": _half_times(value["indicators"], behaviour.factor or 1)}
    if (
        isinstance(value, list)
        and value
        and all(isinstance(row, dict) and _DAYS & row.keys() for row in value)
    ):
        if behaviour.kind == "duplicate":
            return [*value, _dearer(value[0], 2)]
        if behaviour.kind == "split":
            edge = sorted(map(_day_of, value))[len(value) // 2]
            return [_dearer(row, behaviour.factor or 1) if _day_of(row) < edge else row for row in value]
    return value


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


def _walked(
    value: object,
    change: Callable[[str, object], object],
    spared: frozenset[str],
    restructure: Callable[[object], object],
    name: str = "",
) -> object:
    """The value with its fields changed, but for the members of spared symbols.

    A batch's members stand under their symbols (Twelve Data) or in a list and name them (Yahoo, FMP).
    """
    if isinstance(value, dict):
        if value.get("symbol") in spared:
            return value
        value = restructure(value)
        assert isinstance(value, dict)  # noqa: S101 - for the type checker
        return {
            key: inner if key in spared else _walked(inner, change, spared, restructure, key)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        rows = restructure(value)
        assert isinstance(rows, list)  # noqa: S101 - for the type checker
        return [_walked(inner, change, spared, restructure, name) for inner in rows]
    return change(name, value)


def _type_of(body: str) -> str:
    return "application/json; charset=utf-8" if body.startswith(("{", "[")) else "text/plain; charset=utf-8"
