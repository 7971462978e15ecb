"""What the API answers, as plain values: prices are exact Decimals, times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from inspect import signature
from typing import Any, Literal, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a price is as old as it is, or missing. `state` is one word of docs/operations.md."""

    state: str
    sentence: str
    since: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The newest known price of a pair; `age_seconds` counts from `fetched_at`. `why` is None of a fresh one."""

    data_type: str
    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    fetched_at: datetime
    age_seconds: float
    fresh: bool
    paused: bool
    provider: str
    provider_active: bool
    frozen_since: datetime | None
    why: Reason | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A pair without a price; without a data type, a symbol that is no instrument."""

    data_type: str | None
    symbol: str
    why: Reason


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices that are stored, and the pairs without one."""

    prices: list[Price]
    missing: list[Missing]


@dataclass(frozen=True, slots=True)
class Why:
    """Why the price of a pair is as old as it is; without a data type, that a symbol is no instrument."""

    data_type: str | None
    symbol: str
    state: str
    sentence: str
    since: datetime | None
    next_at: datetime | None
    observed_at: datetime | None
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One value of history, believed since `fetched_at`; `call_id` is the call that brought it.

    Quotes and NAVs have a close only. `quality` says which parts were dropped beside the close, and why.
    """

    observed_at: datetime
    open: Decimal | None
    high: Decimal | None
    low: Decimal | None
    close: Decimal
    volume: Decimal | None
    currency: str | None
    provider: str
    fetched_at: datetime
    call_id: int
    adjustment: str
    quality: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """What a stream tells of a pair.

    `kind` is `price`, a new price; `freshness`, which has changed, or the reason of it; `missing`, there is no price;
    or `left`, the user does not watch the pair any more. The last two have no price and nothing that belongs to one.
    """

    kind: Literal["price", "freshness", "missing", "left"]
    data_type: str
    symbol: str
    price: Decimal | None = None
    currency: str | None = None
    observed_at: datetime | None = None
    fetched_at: datetime | None = None
    provider: str | None = None
    fresh: bool = False
    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """What a stream tells of itself.

    `ready`: all that holds of `pairs` pairs is told, and what follows is what changes. `missed`: `events` events (None:
    an unknown number) are not told, for the reason in `detail`; what holds now follows.
    """

    kind: Literal["ready", "missed"]
    pairs: int | None = None
    events: int | None = None
    detail: str | None = None


_TIMES = frozenset({"observed_at", "fetched_at", "since", "next_at", "frozen_since"})
_NUMBERS = frozenset({"price", "open", "high", "low", "close", "volume"})


def shaped(shape: Callable[..., T], given: Mapping[str, Any]) -> T:
    """A value of this shape from an object of JSON. What the API has added since is left out."""
    names = signature(shape).parameters.keys() & given.keys()
    return shape(**{name: _value(name, given[name]) for name in names})


def _value(name: str, given: Any) -> Any:
    if given is None:
        return None
    if name in _NUMBERS:
        return Decimal(given)
    if name in _TIMES:
        return datetime.fromisoformat(given)
    return shaped(Reason, given) if name == "why" else given
