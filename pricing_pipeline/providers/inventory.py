"""What providers of products and slots share: checks before a call, failures of a product, prices in minor units.

A product's days are stored whole or not at all, so one slot that cannot be read costs the whole answer: without it, it
would seem to have vanished. Requests and shapes of answers are in octo.py and headout.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxOffer, Product
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange
from pricing_pipeline.providers.base import Provider, check_window, require_fetcher, safe_words
from pricing_pipeline.providers.currencies import CURRENCIES, digits_of
from pricing_pipeline.providers.values import Implausible, decimal_of, spelling

MAX_DAYS = 366
"""Days of one call: a year. Partners bound it, and none of those that were read says at how many."""
MAX_SLOTS = 20_000
"""The most slots of a product in one answer."""

Facts = Mapping[str, object]
"""What is stored of a product: the `currency` of its instrument, its `time_zone`, and whether a person has set that
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


class InventoryProvider:
    """What the providers of products and slots have in common: a key, and one product in a call."""

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


def is_id(symbol: str) -> bool:
    """Whether a symbol can be the id of a product: letters, digits, `_`, `.`, `:` and `-`; it may stand in a path."""
    return _ID.fullmatch(symbol) is not None


def check_ask(provider: Provider, fetcher: Fetcher, symbols: Sequence[str], window: Window | None) -> None:
    """Raise SettingsError, ValueError or InvalidRange for what cannot be asked: one product, and slots of its days."""
    require_fetcher(provider, fetcher)
    if len(symbols) != 1:
        raise ValueError(f"{provider.name} takes 1 product in a call, not {len(symbols)}")
    if fetcher is not Fetcher.SLOTS:
        return
    if window is None:
        raise InvalidRange(f"{provider.name} has slots of days only. Say which.")
    check_window(provider.name, window, MAX_DAYS)


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
    message = (
        f"{what} cannot be true: {safe_words(str(fault))}. Nothing was stored; compare with another source."
    )
    return ProductFailed(symbol, FailureKind.IMPLAUSIBLE, message)


def local_time(raw: str) -> tuple[datetime, timedelta | None]:
    """A local time, naive, and its offset from UTC if it names one. Raises Implausible."""
    found = _LOCAL.match(raw)
    rest = raw[found.end() :] if found else ""
    if found is None or (rest and not _OFFSET.fullmatch(rest)):
        raise Implausible(f"{spelling(raw)!r} is no local time, such as 2026-11-23T09:00:00+01:00")
    try:
        at = datetime.fromisoformat(raw)
    except ValueError:
        raise Implausible(f"{spelling(raw)!r} is no time of the calendar") from None
    return at.replace(tzinfo=None), at.utcoffset()


def known_currency(code: str) -> str:
    """The code, if it is a currency's. Raises Implausible."""
    if code not in CURRENCIES:
        raise Implausible(f"currency {spelling(code)!r} is no code of ISO 4217")
    return code


def minor_units(raw: object, currency: str, what: str) -> int:
    """A decimal price in minor units of its currency, exactly. Raises Implausible for more digits than these."""
    value = decimal_of(raw, what)
    scaled = value.scaleb(digits_of(currency))
    amount = int(scaled)
    if amount != scaled or value < 0:
        raise Implausible(f"{what} {spelling(raw)!r} is no amount of {currency}")
    return amount


def with_primary(offers: Iterable[tuple[PaxOffer, str | None]]) -> tuple[PaxOffer, ...]:
    """The offers, each given with its kind, in their order; the first one of adults is primary, or the first of all."""
    listed = list(offers)
    primary = next((n for n, (_, kind) in enumerate(listed) if (kind or "").upper() == "ADULT"), 0)
    return tuple(replace(offer, is_primary=n == primary) for n, (offer, _) in enumerate(listed))
