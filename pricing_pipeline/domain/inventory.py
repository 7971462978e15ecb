"""Products, their slots and the offers of a slot: what providers of inventory answer, not yet stored.

Money is an integer of minor units with the scale of its currency. Times are the local times of the product's place,
with the offset from UTC where the provider gives one. A value that cannot be true raises ValueError: the provider turns
it into a slot that is listed and not believed (ProductDays). What a partner may well say though
it looks odd is believed: a final price above the original (a surcharge), a slot that ends when it starts (an entrance),
a sold-out slot with places left (fewer than the smallest group).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TypeGuard

from pricing_pipeline.domain.exact import MAX_DIGITS
from pricing_pipeline.domain.time_zones import is_time_zone
from pricing_pipeline.domain.windows import Window

MAX_ID = 255
"""The most characters of an id: of a product, an option, a category, a slot."""
MAX_NAME = 500
"""The most characters of a name."""
MAX_PLACES = 2**31 - 1
_MAX_OFFSET = timedelta(hours=18)


class SlotStatus(StrEnum):
    """Whether a slot can be booked, as the partner says."""

    AVAILABLE = "available"
    FREESALE = "freesale"
    """Can be booked without a limit: `remaining` is usually None."""
    LIMITED = "limited"
    """Can be booked, but few places are left."""
    SOLD_OUT = "sold_out"
    CLOSED = "closed"
    """Not for sale, though places may be left."""
    VANISHED = "vanished"
    """No longer listed by the partner. Only stored slots are; no answer says so."""


@dataclass(frozen=True, slots=True)
class PaxCategory:
    """Whom a product is sold to: adults, children, a group of four. The id is unique within the product.

    `kind` is the provider's own word for the category, such as ADULT. Ages are in years, both ends included.
    `pax_count` is how many people one unit is for.
    """

    category_id: str
    name: str
    kind: str | None = None
    age_from: int | None = None
    age_to: int | None = None
    pax_count: int = 1

    def __post_init__(self) -> None:
        _check_id("category", self.category_id)
        _check_name("category", self.name)
        _check_order(f"category {self.category_id}", "age_from", self.age_from, "age_to", self.age_to)
        if not 1 <= self.pax_count <= MAX_PLACES:
            raise ValueError(f"category {self.category_id}: pax_count is {self.pax_count}, at least 1 is expected")


@dataclass(frozen=True, slots=True)
class Option:
    """A variant of a product, such as a language or a start time. The id is unique within the product."""

    option_id: str
    name: str
    is_default: bool = False

    def __post_init__(self) -> None:
        _check_id("option", self.option_id)
        _check_name("option", self.name)


@dataclass(frozen=True, slots=True)
class Product:
    """The record of fetcher `product`: a product with its variants, categories and time zone.

    `time_zone` is a name of the IANA database, None if the provider does not give it.
    """

    symbol: str
    name: str
    time_zone: str | None
    options: tuple[Option, ...] = ()
    categories: tuple[PaxCategory, ...] = ()

    def __post_init__(self) -> None:
        _check_id("product", self.symbol)
        _check_name("product", self.name)
        if self.time_zone is not None and not is_time_zone(self.time_zone):
            raise ValueError(f"product {self.symbol}: {self.time_zone!r} is not a time zone, such as Europe/London")
        _check_once(f"product {self.symbol}", "option", (option.option_id for option in self.options))
        _check_once(f"product {self.symbol}", "category", (category.category_id for category in self.categories))


@dataclass(frozen=True, slots=True)
class PaxOffer:
    """The price of a slot for one category, and how many of it can be booked.

    `final` and `original` are in minor units of the slot's currency, None if the provider names no price. `minimum` and
    `maximum` are units of one booking, `remaining` is how many units are left; None = the provider sets no bound.
    `name`, `pax_count` and the ages describe the category, unless the product itself does: see PaxCategory.
    """

    category_id: str
    name: str
    final: int | None = None
    original: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    remaining: int | None = None
    is_primary: bool = False
    pax_count: int = 1
    age_from: int | None = None
    age_to: int | None = None

    def __post_init__(self) -> None:
        _check_id("category", self.category_id)
        _check_name("category", self.name)
        of = f"category {self.category_id}"
        _check_order(of, "age_from", self.age_from, "age_to", self.age_to)
        for name, amount in (("final", self.final), ("original", self.original)):
            if amount is not None and not 0 <= amount < 10**MAX_DIGITS:
                raise ValueError(f"{of}: the {name} price is {amount}, from 0 to {MAX_DIGITS} digits are expected")
        _check_order(of, "minimum", self.minimum, "maximum", self.maximum)
        _check_places(of, "remaining", self.remaining)

    @property
    def has_price(self) -> bool:
        return self.final is not None or self.original is not None


@dataclass(frozen=True, slots=True)
class Slot:
    """A time at which an option of a product takes place. The id is unique within product and option.

    `local_start` and `local_end` are naive. `utc_offset` is the offset of the start, None if the provider gives none:
    then the product's time zone decides. `end_utc_offset` is the offset of the end where clocks change in between; None
    = the same. `bookable_until` is aware: the partner's last moment for a booking, if it names one. `remaining` and
    `capacity` are people; None = unknown or without a bound. `currency` is ISO 4217, and None only without prices.
    """

    slot_id: str
    option_id: str
    local_start: datetime
    local_end: datetime
    utc_offset: timedelta | None
    status: SlotStatus
    remaining: int | None
    capacity: int | None
    currency: str | None
    currency_scale: int
    offers: tuple[PaxOffer, ...] = ()
    end_utc_offset: timedelta | None = None
    bookable_until: datetime | None = None

    def __post_init__(self) -> None:
        _check_id("slot", self.slot_id)
        _check_id("option", self.option_id)
        of = f"slot {self.slot_id}"
        self._check_times(of)
        if self.status is SlotStatus.VANISHED:
            raise ValueError(f"{of}: an answer lists no vanished slots")
        _check_places(of, "remaining", self.remaining)
        _check_places(of, "capacity", self.capacity)
        if self.remaining is not None and self.capacity is not None and self.remaining > self.capacity:
            raise ValueError(f"{of}: {self.remaining} places are left of {self.capacity}")
        if self.currency is None and any(offer.has_price for offer in self.offers):
            raise ValueError(f"{of}: it has prices and no currency")
        if self.currency is not None and not _is_currency(self.currency):
            raise ValueError(f"{of}: {self.currency!r} is not a currency, such as EUR")
        if not 0 <= self.currency_scale <= MAX_DIGITS:
            raise ValueError(f"{of}: the scale of its currency is {self.currency_scale}")
        _check_once(of, "category", (offer.category_id for offer in self.offers))

    def _check_times(self, of: str) -> None:
        if self.local_start.tzinfo is not None or self.local_end.tzinfo is not None:
            raise ValueError(f"{of}: local times are naive, the offset is beside them")
        if self.utc_offset is None and self.end_utc_offset is not None:
            raise ValueError(f"{of}: its end has an offset from UTC and its start has none")
        for offset in (self.utc_offset, self.end_utc_offset):
            if offset is not None and abs(offset) > _MAX_OFFSET:
                raise ValueError(f"{of}: its offset from UTC is {offset}")
        if self.bookable_until is not None and self.bookable_until.tzinfo is None:
            raise ValueError(f"{of}: bookable_until has no time zone")
        start, end = self.local_start, self.local_end
        if self.utc_offset is not None and self.end_utc_offset is not None:
            start, end = start - self.utc_offset, end - self.end_utc_offset
        if end < start:
            raise ValueError(f"{of}: it ends at {self.local_end}, before it starts at {self.local_start}")


SlotName = tuple[str, str]
"""What identifies a slot of a product: the ids of its option and of itself."""


@dataclass(frozen=True, slots=True)
class ProductDays:
    """The record of fetcher `slots`: all slots of a product that start on the local days of `window`, and no others.

    A stored slot of these days that is not in it has vanished. `kept` are slots that the answer lists with values that
    are not believed: what is stored of them neither changes nor vanishes. `unread` are days of the window on which the
    answer lists a slot without a readable id: nothing of these days changes, and they do not count as listed.
    """

    symbol: str
    window: Window
    slots: tuple[Slot, ...]
    kept: frozenset[SlotName] = frozenset()
    unread: frozenset[date] = frozenset()

    def __post_init__(self) -> None:
        _check_id("product", self.symbol)
        of = f"product {self.symbol}"
        if self.window.end < self.window.start:
            raise ValueError(f"{of}: its days end on {self.window.end}, before they start on {self.window.start}")
        for slot in self.slots:
            if not self.window.start <= slot.local_start.date() <= self.window.end:
                raise ValueError(
                    f"{of}: slot {slot.slot_id} starts at {slot.local_start}, "
                    f"outside of {self.window.start} to {self.window.end}"
                )
            if slot.local_start.date() in self.unread:
                raise ValueError(f"{of}: slot {slot.slot_id} is on {slot.local_start.date()}, which is not read")
        names = [(slot.option_id, slot.slot_id) for slot in self.slots]
        _check_once(of, "slot", names)
        if not self.kept.isdisjoint(names):
            raise ValueError(f"{of}: a slot cannot be believed and kept as it was, too")
        if any(not self.window.start <= day <= self.window.end for day in self.unread):
            raise ValueError(f"{of}: a day that was not asked for cannot be unread")

    @property
    def needs_zone(self) -> bool:
        """Whether a slot has no offset, so that only the product's time zone can place it."""
        return any(slot.utc_offset is None for slot in self.slots)


def can_be_id(text: object) -> TypeGuard[str]:
    """Whether it can be the id of a product, an option, a category or a slot."""
    return isinstance(text, str) and 1 <= len(text) <= MAX_ID and text.isprintable()


def _is_currency(text: str) -> bool:
    return len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()


def _check_id(noun: str, text: str) -> None:
    if not can_be_id(text):
        raise ValueError(f"a {noun} has the id {text[:60]!r}: 1 to {MAX_ID} printable characters are expected")


def _check_name(noun: str, text: str) -> None:
    if len(text) > MAX_NAME or "\0" in text:
        raise ValueError(f"a {noun} has the name {text[:60]!r}: at most {MAX_NAME} characters are expected")


def _check_places(of: str, name: str, count: int | None) -> None:
    if count is not None and not 0 <= count <= MAX_PLACES:
        raise ValueError(f"{of}: {name} is {count}, from 0 to {MAX_PLACES} is expected")


def _check_order(of: str, low_name: str, low: int | None, high_name: str, high: int | None) -> None:
    _check_places(of, low_name, low)
    _check_places(of, high_name, high)
    if low is not None and high is not None and low > high:
        raise ValueError(f"{of}: {low_name} {low} is above {high_name} {high}")


def _check_once(of: str, noun: str, ids: Iterable[Hashable]) -> None:
    twice = [id_ for id_, count in Counter(ids).items() if count > 1]
    if twice:
        raise ValueError(f"{of}: {noun} {twice[0]!r} comes twice")
