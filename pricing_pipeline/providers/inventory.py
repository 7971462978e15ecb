"""The common part of providers of products and slots: calls, failures of a product, prices in minor units.

A slot that cannot be believed costs that slot alone (ListedSlots). Requests and shapes of answers are in octo.py and
headout.py.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import ClassVar, Generic, Protocol, TypeVar
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxOffer, Product, ProductDays, Slot, SlotName, can_be_id
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, SchemaDrift
from pricing_pipeline.providers.base import Dialogue, Question, Request, safe_words, unlike_schema
from pricing_pipeline.providers.currencies import CURRENCIES, digits_of
from pricing_pipeline.providers.values import Implausible, decimal_of, spelling

MAX_DAYS = 366
"""Days of one call: a year. Partners bound it, and none of those that were read says at how many."""
MAX_SLOTS = 20_000
"""The most slots of a product in one answer."""

Facts = Mapping[str, object]
"""The stored facts of a product: the `currency` of its instrument, its `time_zone`, and whether a person has set that
(`is_zone_set`).
"""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?")
_OFFSET = re.compile(r"Z|[+-][0-9]{2}:?[0-9]{2}")


class ProductFailed(Exception):
    """The product has no answer: `answer` says why. The call itself is in order."""

    def __init__(self, symbol: str, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.answer = Answer(failures=(SymbolFailure(symbol, kind, message),))


class ReadProduct(Protocol):
    """A product as its provider describes it."""

    @property
    def id(self) -> int | str:
        """The provider's id."""


ProductT = TypeVar("ProductT", bound=ReadProduct)


class InventoryProvider(ABC, Generic[ProductT]):
    """A provider of products and slots: it has a key, and a call is about one product.

    The product is asked for first, because slots name neither options nor bounds of units.
    """

    name: ClassVar[str]
    needs_key = True
    fetchers = frozenset({Fetcher.PRODUCT, Fetcher.SLOTS})

    def spell(self, symbol: str, asset_class: str) -> str:
        """Products have the provider's own ids."""
        return symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """One product."""
        return 1

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """A year of slots."""
        return MAX_DAYS if fetcher is Fetcher.SLOTS else None

    def ask(self, question: Question) -> Dialogue:
        """See SeveralRequests.ask."""
        if question.fetcher is Fetcher.SLOTS and question.window is None:
            raise InvalidRange(f"{self.name} has slots of days only. Say which.")
        return self._asked(question, question.window if question.fetcher is Fetcher.SLOTS else None)

    def _asked(self, question: Question, window: Window | None) -> Dialogue:
        symbol, now = question.symbol, question.now
        facts = question.known.get(symbol, {})
        try:
            response = yield Request(f"{self.product_path}{symbol}")
            read = self.read_product(symbol, response, now)
            product = self._product(symbol, read)
            if window is None:
                return Answer(records=(product,))
            listed = ListedSlots(product, days_where(product, facts, window, now), self.name)
            yield from self.ask_slots(read, listed, facts, now)
            return listed.answer()
        except ProductFailed as failed:
            return failed.answer

    def _product(self, symbol: str, read: ProductT) -> Product:
        what = f"{self.name}'s product {symbol}"
        if str(read.id) != symbol:
            raise implausible(what, symbol, Implausible(f"it is product {safe_words(str(read.id))}"))
        try:
            return self.product_of(read)
        except ValueError as fault:
            raise implausible(what, symbol, fault) from None

    product_path: ClassVar[str]
    """The path of a product, before its id."""

    @abstractmethod
    def read_product(self, symbol: str, response: Response, now: datetime) -> ProductT:
        """The product in an answer. Raises ProviderError and ProductFailed."""

    @abstractmethod
    def product_of(self, read: ProductT) -> Product:
        """The product as we store it. Raises ValueError for what the domain refuses."""

    @abstractmethod
    def ask_slots(
        self, read: ProductT, listed: ListedSlots, facts: Facts, now: datetime
    ) -> Generator[Request, Response, None]:
        """Ask for the slots of all options of a product. Raises ProviderError and ProductFailed."""


def is_id(symbol: str) -> bool:
    """Whether a symbol can be the id of a product: letters, digits, `_`, `.`, `:` and `-`; it may stand in a path."""
    return _ID.fullmatch(symbol) is not None


def days_where(product: Product, facts: Facts, window: Window, now: datetime) -> Window:
    """The days to ask for once the product is known: they were reckoned in the zone that was known, or else in UTC."""
    if product.time_zone is None or facts.get("is_zone_set"):
        return window
    known = ZoneInfo(str(facts.get("time_zone") or "UTC"))
    ahead = now.astimezone(ZoneInfo(product.time_zone)).date() - now.astimezone(known).date()
    return Window(window.start + ahead, window.end + ahead)


def unknown(provider: str, symbol: str, words: str) -> ProductFailed:
    """The provider does not sell the product, in its own words."""
    message = (
        f"{provider} has no product {symbol}: {safe_words(words).rstrip('.')}. Correct the symbol, or route it to "
        "another provider."
    )
    return ProductFailed(symbol, FailureKind.UNKNOWN_SYMBOL, message)


def implausible(what: str, symbol: str, fault: ValueError) -> ProductFailed:
    """Something of the answer cannot be true."""
    message = f"{what} cannot be true: {safe_words(str(fault))}. Nothing was stored; compare with another source."
    return ProductFailed(symbol, FailureKind.IMPLAUSIBLE, message)


@dataclass(slots=True)
class ListedSlots:
    """The rows of an answer about a product's slots: those that are believed, and those that are not.

    What is not believed of a slot costs that slot: what is stored of it neither changes nor vanishes. A row that names
    no readable id costs its day, because it may be any slot of that day. A row that names no readable day costs the
    answer, and so does an answer without a believed row.
    """

    product: Product
    window: Window
    provider: str
    _slots: dict[SlotName, Slot] = field(default_factory=dict)
    _kept: set[SlotName] = field(default_factory=set)
    _unread: set[date] = field(default_factory=set)
    _rejected: list[RejectedValue] = field(default_factory=list)
    _drifts: int = 0

    def read(self, option_id: str, rows: Sequence[object], start: str, make: Callable[[object], Slot]) -> None:
        """Read the rows of an option. `start` names the field of the local start; `make` raises ValueError.

        Raises SchemaDrift and ProductFailed for a row without a readable day.
        """
        for row in rows:
            try:
                slot = make(row)
                self._check(slot)
            except (ValueError, OverflowError) as fault:
                self._doubt(option_id, row, start, fault)
                continue
            name = (option_id, slot.slot_id)
            if name in self._slots or name in self._kept:
                self._keep(name, f"on {slot.local_start.date()}: it comes twice")
            else:
                self._slots[name] = slot

    def answer(self) -> Answer:
        """The answer about the product. Raises SchemaDrift and ProductFailed if no row is believed."""
        slots = [slot for slot in self._slots.values() if slot.local_start.date() not in self._unread]
        if self._rejected and not slots:
            first = self._rejected[0].reason
            if self._drifts == len(self._rejected):
                raise SchemaDrift(
                    f"no slot of {self.provider}'s product {self.product.symbol} is like its schema; the first: "
                    f"{first}. The provider may have changed its API; nothing was stored."
                )
            raise implausible(self._what, self.product.symbol, Implausible(first))
        on_unread = self._slots.keys() - {(slot.option_id, slot.slot_id) for slot in slots}
        days = ProductDays(
            self.product.symbol,
            self.window,
            tuple(slots),
            frozenset(self._kept | on_unread),
            frozenset(self._unread),
        )
        return Answer(records=(self.product, days), rejected=tuple(self._rejected))

    @property
    def _what(self) -> str:
        return f"{self.provider}'s slots of {self.product.symbol}"

    def _check(self, slot: Slot) -> None:
        if not self.window.start <= slot.local_start.date() <= self.window.end:
            raise Implausible(f"it starts at {slot.local_start}, outside of {self.window.start} to {self.window.end}")

    def _doubt(self, option_id: str, row: object, start: str, fault: ValueError | OverflowError) -> None:
        is_drift = isinstance(fault, ValidationError)
        why = f"it has {unlike_schema(fault, row)}" if isinstance(fault, ValidationError) else str(fault)
        named = row if isinstance(row, dict) else {}
        day = _day_of(named.get(start))
        if day is None and is_drift:
            raise SchemaDrift(
                f"a slot among {self._what} has no readable day: {why}. The provider may have changed its API; "
                "nothing was stored."
            )
        if day is None:
            raise implausible(self._what, self.product.symbol, Implausible(why))
        self._drifts += is_drift
        slot_id = named.get("id")
        if can_be_id(slot_id):
            self._keep((option_id, slot_id), f"on {day}: {why.removeprefix(f'slot {slot_id}: ')}")
            return
        if self.window.start <= day <= self.window.end:
            self._unread.add(day)
        words = f"a slot of option {safe_words(option_id)} on {day} has no readable id: {safe_words(why)}"
        self._rejected.append(RejectedValue(self.product.symbol, None, words, f"{option_id} on {day}"))

    def _keep(self, name: SlotName, why: str) -> None:
        self._kept.add(name)
        self._slots.pop(name, None)
        option_id, slot_id = name
        words = f"slot {safe_words(slot_id)} of option {safe_words(option_id)} {safe_words(why)}"
        self._rejected.append(RejectedValue(self.product.symbol, None, words, f"{option_id} {slot_id}"))


def _day_of(raw: object) -> date | None:
    """The local day of a time, if it can be read."""
    try:
        return local_time(raw)[0].date() if isinstance(raw, str) else None
    except Implausible:
        return None


def local_time(raw: str) -> tuple[datetime, timedelta | None]:
    """A local time, naive, and its offset from UTC if it names one. Raises Implausible."""
    found = _LOCAL.match(raw)
    rest = raw[found.end() :] if found else ""
    if found is None or (rest and not _OFFSET.fullmatch(rest)):
        raise Implausible(f"{spelling(raw)!r} is not a local time, such as 2026-11-23T09:00:00+01:00")
    try:
        at = datetime.fromisoformat(raw)
    except ValueError:
        raise Implausible(f"{spelling(raw)!r} is not a time of the calendar") from None
    return at.replace(tzinfo=None), at.utcoffset()


def known_currency(code: str) -> str:
    """The code, if it is a currency's. Raises Implausible."""
    if code not in CURRENCIES:
        raise Implausible(f"currency {spelling(code)!r} is not a code of ISO 4217")
    return code


def minor_units(raw: object, currency: str, what: str) -> int:
    """A decimal price in minor units of its currency, exactly. Raises Implausible for more digits than these."""
    value = decimal_of(raw, what)
    scaled = value.scaleb(digits_of(currency))
    amount = int(scaled)
    if amount != scaled or value < 0:
        raise Implausible(f"{what} {spelling(raw)!r} is not an amount of {currency}")
    return amount


def with_primary(offers: Iterable[tuple[PaxOffer, str | None]]) -> tuple[PaxOffer, ...]:
    """The offers, each given with its kind, in their order; the first one of adults is primary, or the first of all."""
    listed = list(offers)
    primary = next((n for n, (_, kind) in enumerate(listed) if (kind or "").upper() == "ADULT"), 0)
    return tuple(replace(offer, is_primary=n == primary) for n, (offer, _) in enumerate(listed))
