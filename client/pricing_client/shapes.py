"""The answers of the API as dataclasses: prices are exact Decimals, times are aware and in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from pricing_client.prices import Price, Reason


@dataclass(frozen=True, slots=True)
class Why:
    """Why the price of a pair is as old as it is; without a data type, that a symbol is unknown."""

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
    """The result for a pair whose symbol was `given`: `outcome` is accepted, doubtful (with a warning) or refused.

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
class Offer:
    """What a slot costs for a category, in whole units of `currency`, and how many units of it can be booked.

    None means unknown, or without a bound. `discount` is `original` less `final`; below zero it is a surcharge.
    """

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
    """A time at which an option of a product takes place.

    `local_start` and `local_end` are naive, by the clock of the place. `sellable`: the requested people can book it.
    """

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
    """A commodity at one terminal: `buy` is what a player pays, `sell` what a player gets, in game money for one SCU.

    `stock` and `demand` are in SCU. None means not traded in this direction, or not reported. `quality` is empty if
    the source names none.
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
    """A pair that the user holds, or held until `closed_at`. An unknown `quantity` is None."""

    user_id: str
    data_type: str
    symbol: str
    quantity: Decimal | None
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
    `quantity` is the total in the file; it replaces the stored `held_quantity`. To name the symbol of a refused line,
    give `own_names` of `import_holdings` its `identifier` with a symbol, such as one of the `candidates`.
    `lacks_type_of` is its asset class if no data type has prices of that; `advice` says how to correct an unreadable
    line.
    """

    lines: list[int]
    name: str
    outcome: Literal["new", "held", "refused", "left_out"]
    data_type: str | None
    symbol: str | None
    quantity: Decimal | None
    held_quantity: Decimal | None
    reason: str | None
    identifier: str | None
    candidates: list[str]
    lacks_type_of: str | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class VagueNumber:
    """A number such as 1.000, counted as `counted`. With the other decimal mark it is `otherwise`: name the mark."""

    line: int
    text: str
    counted: Decimal
    otherwise: Decimal


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
    vague_numbers: list[VagueNumber]


@dataclass(frozen=True, slots=True)
class Update:
    """An event of a pair.

    `kind` is `price` (a new price), `freshness` (it, or its reason, has changed), `missing` (there is no price, for the
    reason in `why`) or `left` (the user no longer watches the pair). Of the last two, `price` is None.
    """

    kind: Literal["price", "freshness", "missing", "left"]
    data_type: str
    symbol: str
    price: Price | None = None
    why: Reason | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """An event about the stream itself.

    `ready`: the state of `pairs` pairs is sent, and only changes follow. `missed`: `events` events (None: an unknown
    number) are left out, for the reason in `detail`; the state of each pair follows. Pairs that do not
    come before the next `ready` are no longer watched. `lost`: the API is away, for the reason in `detail`. Earlier
    updates may be outdated until the next `ready`, before which all changes come.
    """

    kind: Literal["ready", "missed", "lost"]
    pairs: int | None = None
    events: int | None = None
    detail: str | None = None
