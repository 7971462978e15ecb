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
    Missing,
    Notice,
    Offer,
    Price,
    Prices,
    Reason,
    Slot,
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
    "Missing",
    "NotAllowed",
    "NotFound",
    "Notice",
    "Offer",
    "Price",
    "Prices",
    "PricingClient",
    "Reason",
    "RequestRefused",
    "Slot",
    "TooMuch",
    "TradeRoute",
    "Unavailable",
    "Update",
    "Why",
]
