"""Price alerts: added, listed and ended. Looking at prices is in price_watch.py."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import instruments, viewers
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError, UnknownPriceAlert
from pricing_pipeline.operations import recipients
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection

CONDITIONS = ("above", "below", "moved", "stale", "each")
USUAL_PACE = 60.0
"""Seconds."""
_HAVE_PRICES = (Fetcher.QUOTE, Fetcher.DAILY_BARS, Fetcher.NAV)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A price alert that is to be added. `threshold` is a price, or for `moved` a percentage; spans are seconds.

    `hysteresis`, of `above` and `below`: how far beyond the threshold a price must come back before a crossing is told
    again, as an amount or in percent of the threshold.

    A `symbol` of None means all symbols of the data type, which only `each` may have. A `user_id` of None: the owner of
    the pipeline wants it, and no cap counts it.
    """

    recipient: str
    data_type: str
    symbol: str | None
    condition: str
    threshold: Decimal | None = None
    lasts: float | None = None
    pace: float | None = None
    user_id: str | None = None
    hysteresis: Decimal = Decimal(0)
    hysteresis_in: Literal["amount", "percent"] = "amount"


@dataclass(frozen=True, slots=True)
class PriceAlert:
    """A price alert and what it has seen. Times are UTC; `seen` and `reference` are exact prices.

    `is_beyond` says that the last price was beyond the threshold, or that the pair was stale for too long.
    `is_fetched` is False when nobody watches or holds what it asks for, so that no price comes.
    """

    price_alert_id: int
    recipient: str
    user_id: str | None
    recipient_is_active: bool
    data_type: str
    symbol: str | None
    condition: str
    threshold: Decimal | None
    hysteresis: Decimal
    hysteresis_in: str
    lasts: timedelta | None
    pace: timedelta | None
    is_beyond: bool
    seen: Decimal | None
    seen_at: datetime | None
    reference: Decimal | None
    reference_at: datetime | None
    told_at: datetime | None
    created_at: datetime
    created_by: str
    is_fetched: bool

    @property
    def content(self) -> dict[str, object]:
        """All of it for programs: spans are seconds."""
        content = asdict(self)
        for name in ("lasts", "pace"):
            span = content.pop(name)
            content[f"{name}_seconds"] = None if span is None else int(span.total_seconds())
        return content


def add(connection: Connection, wanted: Wanted, created_by: str) -> PriceAlert:
    """Add a price alert. Its symbol is stored as its instrument is spelled.

    Raises UnknownRecipient, also for one that is not for its user; UnknownDataType; PricingError if there are no prices
    to watch, or the recipient has the same one already; and CapExceeded.
    """
    if wanted.user_id is None:
        recipients.find(connection, wanted.recipient)
    else:
        recipients.find_for(connection, wanted.user_id, wanted.recipient)
    type_ = data_type_registry.active_data_type(connection, wanted.data_type)
    if type_.fetcher not in _HAVE_PRICES:
        raise PricingError(f"{wanted.data_type} has no prices, so it takes no price alerts.")
    parameters: dict[str, Any] = {**asdict(wanted), "created_by": created_by}
    if wanted.symbol is not None:
        parameters["symbol"] = _spelled(connection, wanted.data_type, wanted.symbol)
    added = connection.execute(query("price_alerts.add"), parameters).scalar_one_or_none()
    if added is None:
        same = connection.execute(query("price_alerts.same"), parameters).scalar_one_or_none()
        raise PricingError(
            f"{wanted.recipient} has this price alert already{f': {same}' if same else ''}. Nothing has changed."
        )
    if wanted.user_id is not None:
        viewers.within_caps(connection, "admit_price_alert", wanted.user_id)
    return find(connection, added)


def listed(
    connection: Connection,
    recipient: str | None,
    most: int,
    after_id: int | None = None,
    user_id: str | None = None,
) -> list[PriceAlert]:
    """Price alerts in the order in which they were added, after the one of an id; None does not choose."""
    parameters = {"recipient": recipient, "user_id": user_id, "id": None, "most": most, "after_id": after_id}
    return [PriceAlert(**row) for row in connection.execute(query("price_alerts.list"), parameters).mappings()]


def find(connection: Connection, id_: int, user_id: str | None = None) -> PriceAlert:
    """The price alert of this id, if it is of this user (None = of any). Raises UnknownPriceAlert."""
    parameters = {"recipient": None, "user_id": user_id, "id": id_, "most": 1, "after_id": None}
    row = connection.execute(query("price_alerts.list"), parameters).mappings().one_or_none()
    if row is None:
        whose = "" if user_id is None else f" of {user_id!r}"
        raise UnknownPriceAlert(f"there is no price alert {id_}{whose}. The list of price alerts lists them.")
    return PriceAlert(**row)


def remove(connection: Connection, id_: int, user_id: str | None = None) -> PriceAlert:
    """End a price alert, if it is of this user; returns what it was. Raises UnknownPriceAlert."""
    was = find(connection, id_, user_id)
    parameters = {"id": id_, "user_id": user_id}
    if connection.execute(query("price_alerts.remove"), parameters).scalar_one_or_none() is None:
        return find(connection, id_, user_id)
    return was


def _spelled(connection: Connection, data_type: str, symbol: str) -> str:
    """The symbol as its instrument is spelled; the database refuses impossible ones with a sentence."""
    (spelled,) = instruments.spelled(connection, data_type, [symbol])
    connection.execute(query("demand.check_new"), {"data_type": data_type, "symbols": [spelled]})
    return spelled
