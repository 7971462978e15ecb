"""A client of the pipeline's HTTP API for Python programs. It needs httpx, and nothing of the pipeline.

Programs call `client`; it returns `shapes` and raises `problems`. `transport` sends requests; `events` reads streams.
"""

from pricing_client.client import PricingClient
from pricing_client.problems import (
    ApiError,
    HistoryWarning,
    NotAllowed,
    NotFound,
    RequestRefused,
    TooMuch,
    Unavailable,
)
from pricing_client.shapes import (
    AvailableDay,
    Bar,
    CommodityPrice,
    Holding,
    Imported,
    ImportedLines,
    Missing,
    Notice,
    Offer,
    Price,
    PriceAlert,
    Prices,
    Reason,
    Slot,
    Subscription,
    TradeRoute,
    Update,
    Why,
)

__all__ = [
    "ApiError",
    "AvailableDay",
    "Bar",
    "CommodityPrice",
    "HistoryWarning",
    "Holding",
    "Imported",
    "ImportedLines",
    "Missing",
    "NotAllowed",
    "NotFound",
    "Notice",
    "Offer",
    "Price",
    "PriceAlert",
    "Prices",
    "PricingClient",
    "Reason",
    "RequestRefused",
    "Slot",
    "Subscription",
    "TooMuch",
    "TradeRoute",
    "Unavailable",
    "Update",
    "Why",
]
