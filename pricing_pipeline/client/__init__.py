"""A client of the HTTP API for Python programs. It needs httpx, and nothing else of this project.

Programs call `pricing_client`; it returns `shapes` and raises `problems`. `transport` sends requests; `events` reads
streams.
"""

from pricing_pipeline.client.pricing_client import PricingClient
from pricing_pipeline.client.problems import (
    ApiError,
    HistoryWarning,
    NotAllowed,
    NotFound,
    RequestRefused,
    TooMuch,
    Unavailable,
)
from pricing_pipeline.client.shapes import (
    Answer,
    AvailableDay,
    Bar,
    CommodityPrice,
    Fault,
    Missing,
    Notice,
    Offer,
    PairAnswer,
    Price,
    Prices,
    Reason,
    Slot,
    TradeRoute,
    Update,
    Why,
)

__all__ = [
    "Answer",
    "ApiError",
    "AvailableDay",
    "Bar",
    "CommodityPrice",
    "Fault",
    "HistoryWarning",
    "Missing",
    "NotAllowed",
    "NotFound",
    "Notice",
    "Offer",
    "PairAnswer",
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
