"""Which prices somebody wants to be told of: added, listed and ended. Looking at prices is in price_watch.py."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import PricingError, UnknownPriceAlert
from pricing_pipeline.operations import recipients

CONDITIONS = ("above", "below", "moved", "stale", "each")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A price alert that is to be added. `threshold` is a price, or for `moved` a percentage; spans are seconds.

    A `symbol` of None means all symbols of the data type, which only `each` may have.
    """

    recipient: str
    data_type: str
    symbol: str | None
    condition: str
    threshold: Decimal | None = None
    lasts: float | None = None
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class PriceAlert:
    """A price alert and what it has seen. Times are UTC; `seen` and `reference` are exact prices.

    `is_beyond` says that the last price was beyond the threshold, or that the pair was stale for too long.
    `is_fetched` is False when nobody watches or holds what it asks for, so that no price comes.
    """

    price_alert_id: int
    recipient: str
    recipient_is_active: bool
    data_type: str
    symbol: str | None
    condition: str
    threshold: Decimal | None
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


def add(connection: Connection, wanted: Wanted, login: str) -> PriceAlert:
    """Add a price alert. Raises UnknownRecipient, and PricingError when the recipient has the same one already."""
    recipients.find(connection, wanted.recipient)
    parameters: dict[str, Any] = {**asdict(wanted), "created_by": login}
    added = connection.execute(query("price_alerts.add"), parameters).scalar_one_or_none()
    if added is None:
        same = connection.execute(query("price_alerts.same"), parameters).scalar_one_or_none()
        raise PricingError(
            f"{wanted.recipient} has this price alert already{f': {same}' if same else ''}. "
            "`pricing-pipeline price-alert list` shows all. Nothing has changed."
        )
    return find(connection, added)


def listed(
    connection: Connection, recipient: str | None, most: int, after_id: int | None = None
) -> list[PriceAlert]:
    """Price alerts of one recipient, or all, in the order in which they were added, after the one of an id."""
    parameters = {"recipient": recipient, "id": None, "most": most, "after_id": after_id}
    return [
        PriceAlert(**row) for row in connection.execute(query("price_alerts.list"), parameters).mappings()
    ]


def find(connection: Connection, id_: int) -> PriceAlert:
    """The price alert of this id. Raises UnknownPriceAlert."""
    parameters = {"recipient": None, "id": id_, "most": 1, "after_id": None}
    row = connection.execute(query("price_alerts.list"), parameters).mappings().one_or_none()
    if row is None:
        raise UnknownPriceAlert(
            f"there is no price alert {id_}. `pricing-pipeline price-alert list` shows those there are."
        )
    return PriceAlert(**row)


def remove(connection: Connection, id_: int) -> PriceAlert:
    """End a price alert; returns what it was. Raises UnknownPriceAlert."""
    was = find(connection, id_)
    if connection.execute(query("price_alerts.remove"), {"id": id_}).scalar_one_or_none() is None:
        return find(connection, id_)
    return was
