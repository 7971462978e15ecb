"""The shape of a price: what `/v1/prices`, the live stream, `--json`, CSV, frames and the Python client say about one.

The client has a copy of this file, which `make pages` writes. So it imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

Day = date
"""A trading day of an exchange."""

OF_CONVERTED = {"of": "converted"}
"""Marks a field that only converted prices have. JSON omits it when it is None."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a price is as old as it is, or missing.

    `state` is a word of docs/operations.md, `sentence` explains it. It began at `since` and may change at `next_at`, if
    these are known. Times are UTC.
    """

    state: str
    sentence: str
    since: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The newest known price of a pair, exact, in whole units of `currency` (None if the source names none).

    `date` is the exchange's trading day, of daily values only. `observed_at` is the source's time, for daily values
    midnight UTC of that day; `fetched_at` is when a provider last confirmed the price, and `age_seconds` counts from
    it. Times are UTC.

    `state` is `fresh` (within its TTL), `stale`, `unjudged` or `source_old`; docs/operations.md explains these words.
    `paused` says that its instrument is not fetched, and `provider_active` is False if the provider that sent it has
    been switched off. Since `frozen_since`, by the source's time, the value has been suspiciously the same. `why`
    explains why a price is not fresh (None for a fresh price). `rate` names the stored rates, and their times, by which
    a price was converted into another currency.
    """

    symbol: str
    data_type: str
    date: Day | None
    price: Decimal
    currency: str | None
    observed_at: datetime
    fetched_at: datetime
    age_seconds: float
    state: str
    fresh: bool
    paused: bool
    provider: str
    provider_active: bool
    frozen_since: datetime | None
    why: Reason | None
    rate: str | None = field(default=None, metadata=OF_CONVERTED)


@dataclass(frozen=True, slots=True)
class Missing:
    """A pair without a price. Without a data type, a symbol that is unknown, or to which no data type applies."""

    symbol: str
    data_type: str | None
    why: Reason


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices that are stored, and the pairs without one."""

    prices: list[Price]
    missing: list[Missing]


@dataclass(frozen=True, slots=True)
class Bar:
    """One exact value of history, in whole units of `currency`. Quotes and NAVs have a close only.

    `date` is the exchange's trading day, of daily values only, whatever the zone of the reader. `observed_at` is the
    source's time, for daily values midnight UTC of that day. `volume` is in shares or contracts. `adjustment` is `raw`,
    `splits` or `total`. The value is believed since `fetched_at`, and the call `call_id` brought it. Times are UTC.
    `quality` says which parts of a bar were dropped beside its close, and why, and on the basis of total return, which
    later payments are not counted; None if there is nothing to say. `rate` names the stored rates, and their times, by
    which a value was converted into another currency; where none is stored, it says so, and there is no `close`.
    """

    date: Day | None
    observed_at: datetime
    open: Decimal | None
    high: Decimal | None
    low: Decimal | None
    close: Decimal | None
    volume: Decimal | None
    currency: str | None
    adjustment: str
    provider: str
    call_id: int
    fetched_at: datetime
    quality: str | None
    rate: str | None = field(default=None, metadata=OF_CONVERTED)


def shaped(shape: Callable[..., T], content: Mapping[str, Any]) -> T:
    """A value of this shape from a JSON object. Fields that the shape does not have are left out."""
    types = _types(shape)
    return shape(**{name: _value(types[name], content[name]) for name in types.keys() & content.keys()})


@cache
def _types(shape: Callable[..., Any]) -> Mapping[str, Any]:
    """The type of each field, without its None."""
    return {
        name: next(part for part in get_args(hint) if part is not NoneType) if get_origin(hint) is UnionType else hint
        for name, hint in get_type_hints(shape).items()
    }


def _value(kind: Any, content: Any) -> Any:
    if content is None:
        return None
    if get_origin(kind) is list:
        (part,) = get_args(kind)
        return [_value(part, each) for each in content]
    if is_dataclass(kind):
        return shaped(cast("Callable[..., Any]", kind), content)
    if kind in (datetime, date):
        return kind.fromisoformat(content)
    return kind(content) if kind in (Decimal, float, int) else content
