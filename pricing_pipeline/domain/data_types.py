"""Kinds of requests, and the rows of the registry of data types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


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

    @property
    def is_document(self) -> bool:
        """Whether answers are documents and not prices. `pricing.is_document` is the same in SQL."""
        return self in _DOCUMENTS


_DOCUMENTS = frozenset(
    {Fetcher.PROFILE, Fetcher.EARNINGS, Fetcher.INCOME_STATEMENT, Fetcher.DIVIDENDS, Fetcher.SPLITS}
)


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
