"""A client of the pipeline's HTTP API for Python programs. It needs httpx, and nothing of the pipeline.

Programs call `client`; it returns `shapes` and raises `problems`. `transport` sends requests; `events` reads streams.
"""

from pricing_client.client import PricingClient
from pricing_client.prices import Bar, Missing, Price, Prices, Reason
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
    Answer,
    AvailableDay,
    CommodityPrice,
    Fault,
    Holding,
    Imported,
    ImportedLines,
    Notice,
    Offer,
    PairAnswer,
    PriceAlert,
    Slot,
    Subscription,
    TradeRoute,
    Update,
    VagueNumber,
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
    "Holding",
    "Imported",
    "ImportedLines",
    "Missing",
    "NotAllowed",
    "NotFound",
    "Notice",
    "Offer",
    "PairAnswer",
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
    "VagueNumber",
    "Why",
]
