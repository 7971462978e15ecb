"""The answers of the API as dataclasses: prices are exact Decimals, times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

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
    """The newest known price of a pair; `age_seconds` counts from `fetched_at`. `why` is None if it is fresh."""

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
class PairAnswer:
    """What became of a pair whose symbol was `given`: `outcome` is accepted, doubtful (with a warning) or refused.

    `symbol` is its canonical spelling, None if it is refused. `code` is the reason in one word, `proposal` another
    spelling or data type that would do. After `retry_after` seconds the same pair may be accepted; None if waiting does
    not help.
    """

    data_type: str
    given: str
    symbol: str | None
    outcome: str
    code: str | None
    reason: str | None
    proposal: str | None
    retry_after: int | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Warnings or refusals of one kind: how many pairs, and a sentence that names some of them."""

    outcome: str
    code: str
    pairs: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request about pairs. `changed` counts new pairs; `pairs` has those not accepted as written."""

    changed: int
    accepted: int
    doubtful: int
    refused: int
    pairs: list[PairAnswer]
    faults: list[Fault]


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
class Offer:
    """What a slot costs for a category, and how many units of it can be booked. None = not said, or no bound."""

    category_id: str
    category: str
    is_primary: bool
    minimum: int | None
    maximum: int | None
    remaining: int | None
    final: Decimal | None
    original: Decimal | None
    discount: Decimal | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class Slot:
    """A time at which an option of a product takes place. Local times are naive. `sellable`: `pax` people can book."""

    slot_id: str
    option_id: str
    option: str | None
    local_start: datetime
    local_end: datetime
    starts_at: datetime
    ends_at: datetime
    status: str
    remaining: int | None
    capacity: int | None
    sellable: bool
    provider: str
    recorded_at: datetime
    offers: list[Offer]


@dataclass(frozen=True, slots=True)
class AvailableDay:
    """A local day of a product. `fresh` is None for a day that no data type asks for, and for a time in the past."""

    day: date
    fetched_at: datetime | None
    fresh: bool | None
    slots: list[Slot]


@dataclass(frozen=True, slots=True)
class CommodityPrice:
    """A commodity at one terminal, for one SCU: `buy` is what a player pays, `sell` what a player gets.

    `quality` is empty if the source names none. None = not traded so, or amounts not reported.
    """

    commodity: str
    symbol: str
    terminal: str
    system: str | None
    place: str | None
    is_available: bool
    quality: str
    buy: Decimal | None
    sell: Decimal | None
    stock: int | None
    demand: int | None
    game_version: str | None
    is_of_other_version: bool
    modified_at: datetime | None
    recorded_at: datetime
    age_seconds: float
    provider: str


@dataclass(frozen=True, slots=True)
class TradeRoute:
    """Buy a commodity at one terminal and sell it at another. `total` is what the whole `quantity` earns."""

    commodity: str
    quality: str
    from_symbol: str
    from_terminal: str
    to_symbol: str
    to_terminal: str
    buy: Decimal
    sell: Decimal
    margin: Decimal
    margin_percent: Decimal
    quantity: int | None
    total: Decimal | None
    game_version: str | None
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Subscription:
    """A pair that the user watches."""

    user_id: str
    data_type: str
    symbol: str
    subscribed_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """A pair that the user holds, or held until `closed_at`."""

    user_id: str
    data_type: str
    symbol: str
    status: str
    since: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class PriceAlert:
    """A price alert of the user, and the last price it saw.

    `is_beyond` says that the last price was beyond the threshold, or that the pair was stale for too long.
    `is_fetched` is False when nobody watches or holds the pair, so that no price comes.
    """

    price_alert_id: int
    recipient: str
    recipient_is_active: bool
    user_id: str
    data_type: str
    symbol: str
    condition: str
    threshold: Decimal | None
    hysteresis: Decimal
    hysteresis_in: str
    lasts_seconds: int | None
    pace_seconds: int | None
    is_beyond: bool
    seen: Decimal | None
    seen_at: datetime | None
    reference: Decimal | None
    reference_at: datetime | None
    told_at: datetime | None
    created_at: datetime
    created_by: str
    is_fetched: bool


@dataclass(frozen=True, slots=True)
class ImportedLines:
    """The result for one instrument of an imported file, or for a line that names none.

    `outcome` is `new`, `held` (already), `refused` or `left_out`. `reason` says why, or what is doubtful about it.
    """

    lines: list[int]
    name: str
    outcome: Literal["new", "held", "refused", "left_out"]
    data_type: str | None
    symbol: str | None
    reason: str | None
    proposal: str | None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import of holdings; with `dry_run` nothing has changed."""

    format: str
    dry_run: bool
    new: int
    held: int
    refused: int
    left_out: int
    decisions: list[ImportedLines]


@dataclass(frozen=True, slots=True)
class Update:
    """An event of a pair.

    `kind` is `price` (a new price), `freshness` (it, or its reason, has changed), `missing` (there is no price) or
    `left` (the user no longer watches the pair). The last two have no price: its fields are None, and `fresh` is False.
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
    """An event about the stream itself.

    `ready`: the state of `pairs` pairs is sent, and only changes follow. `missed`: `events` events (None: an unknown
    number) are left out, for the reason in `detail`; the state of each pair follows. Pairs that are not told of before
    the next `ready` are watched no more. `lost`: the API is away, for the reason in `detail`. What was told may be old
    until the next `ready`, before which comes what has changed meanwhile.
    """

    kind: Literal["ready", "missed", "lost"]
    pairs: int | None = None
    events: int | None = None
    detail: str | None = None


def shaped(shape: Callable[..., T], content: Mapping[str, Any]) -> T:
    """A value of this shape from a JSON object. Fields that this client does not know are left out."""
    types = _types(shape)
    return shape(**{name: _value(types[name], content[name]) for name in types.keys() & content.keys()})


@cache
def _types(shape: Callable[..., Any]) -> Mapping[str, Any]:
    """The type of each field, without its None."""
    return {
        name: next(part for part in get_args(hint) if part is not NoneType)
        if get_origin(hint) is UnionType
        else hint
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
