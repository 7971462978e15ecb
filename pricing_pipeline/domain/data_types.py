"""Kinds of requests, and rows of the data type registry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Contents(StrEnum):
    """The contents of a data type. Each has its own storage (refresh/storages.py) and its own assets in Dagster."""

    PRICES = "prices"
    DOCUMENTS = "documents"
    INVENTORY = "inventory"
    """Products, and their slots."""
    COMMODITIES = "commodities"
    """What terminals of a game buy and sell."""


class Fetcher(StrEnum):
    """A kind of request to a provider. The registry names one for each data type."""

    QUOTE = "quote"
    """The latest price, stamped by the source."""
    DAILY_BARS = "daily_bars"
    """Open, high, low, close and volume per trading day, unadjusted."""
    NAV = "nav"
    """One net asset value per day."""
    PROFILE = "profile"
    """A company's profile: one document."""
    EARNINGS = "earnings"
    """A company's actual and expected earnings per share: a document for each report."""
    INCOME_STATEMENT = "income_statement"
    """A company's annual income statements: a document for each fiscal year."""
    DIVIDENDS = "dividends"
    """A share's dividends: a document for each ex-dividend day. They are corporate actions, too."""
    SPLITS = "splits"
    """A share's splits: a document for each day with one. They are corporate actions, too."""

    PRODUCT = "product"
    """A product of an inventory: its options, categories of guests and time zone."""
    SLOTS = "slots"
    """The slots of a product on the next days."""
    TERMINAL_PRICES = "terminal_prices"
    """All that a terminal of a game buys and sells."""

    @property
    def contents(self) -> Contents:
        """What the answers consist of. The table `pricing.fetchers` says the same."""
        return _CONTENTS[self]

    @property
    def is_daily(self) -> bool:
        """Whether the answers are prices, one for each trading day."""
        return self in (Fetcher.DAILY_BARS, Fetcher.NAV)


_CONTENTS = {
    Fetcher.QUOTE: Contents.PRICES,
    Fetcher.DAILY_BARS: Contents.PRICES,
    Fetcher.NAV: Contents.PRICES,
    Fetcher.PROFILE: Contents.DOCUMENTS,
    Fetcher.EARNINGS: Contents.DOCUMENTS,
    Fetcher.INCOME_STATEMENT: Contents.DOCUMENTS,
    Fetcher.DIVIDENDS: Contents.DOCUMENTS,
    Fetcher.SPLITS: Contents.DOCUMENTS,
    Fetcher.PRODUCT: Contents.INVENTORY,
    Fetcher.SLOTS: Contents.INVENTORY,
    Fetcher.TERMINAL_PRICES: Contents.COMMODITIES,
}


@dataclass(frozen=True, slots=True)
class DataType:
    """A row of the registry, as far as Python needs it. TTLs are in minutes."""

    data_type: str
    description: str
    fetcher: Fetcher
    asset_class: str
    table_name: str
    default_ttl_minutes: int
    refresh_strategy: str
    refresh_schedule: str | None
    schedule_timezone: str
    history_from: date | None
    background_ttl_minutes: int = 1440
    owner: str | None = None
    days_ahead: int | None = None
    """For how many days of a product's calendar slots are asked for; only of the fetcher slots."""
    has_own_table: bool = False
    """Whether a table or view that the user has made has its values, instead of the pipeline's own view."""

    @property
    def contents(self) -> Contents:
        """What the type consists of."""
        return self.fetcher.contents
