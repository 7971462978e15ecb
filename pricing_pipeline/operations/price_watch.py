"""Look at new prices for price alerts, and queue their messages.

Taking new prices, noting what was seen and queueing the messages are one transaction: a crash neither loses a message
nor sends it twice. Several notifiers may watch: an alert that one of them has locked is passed over by the others.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import DatabaseError, OperationRefused
from pricing_pipeline.operations import price_messages, recipients
from pricing_pipeline.operations.life import PRICES, SignsOfLife
from pricing_pipeline.operations.price_messages import Message, Price, Split

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row

_LOG = logging.getLogger(__name__)
_ALERTS_AT_ONCE = 100
"""Alerts whose prices are looked at in one transaction."""
_STALE_EVERY = 15.0
"""Seconds between two looks for stale pairs."""


@dataclass(frozen=True, slots=True)
class WatchedAlert:
    """A price alert while its new prices are looked at. See the columns of pricing.price_alerts."""

    price_alert_id: int
    condition: str
    threshold: Decimal | None
    is_beyond: bool
    seen_at: datetime | None
    reference: Decimal | None
    reference_at: datetime | None
    splits: tuple[Split, ...] = ()
    hysteresis: Decimal = Decimal(0)
    hysteresis_in: str = "amount"
    is_first: bool = False
    """Whether its recipient has had no message yet."""

    @property
    def back_at(self) -> Fraction:
        """The price at which, or beyond which, a price has come back, so that the next crossing is told."""
        threshold = Fraction(self.threshold or 0)
        way = Fraction(self.hysteresis)
        if self.hysteresis_in == "percent":
            way *= abs(threshold) / 100
        return threshold - way if self.condition == "above" else threshold + way


def watch(engine: Engine, advance: Callable[[], None] = lambda: None) -> int:
    """Look at all new prices once; returns how many messages are queued. It calls `advance` as it goes on."""
    queued = 0
    while True:
        advance()
        with engine.begin() as connection:
            rows = call_sql(connection, "take_price_events", _ALERTS_AT_ONCE).all()
            queued += _look(connection, rows)
        if not rows:
            return queued


def watch_stale(engine: Engine) -> int:
    """Look once which pairs have become stale; returns how many messages are queued."""
    with engine.begin() as connection:
        rows = call_sql(connection, "take_stale_pairs").all()
        return sum(_sent(connection, row, price_messages.stale(row)) for row in rows)


def keep_watching(
    engine: Engine, stop: threading.Event, *, every_seconds: float = 1.0, signs: SignsOfLife | None = None
) -> None:
    """Watch until `stop` is set. While the database is away there are no new prices."""
    signs = signs or SignsOfLife()
    stale_looked_at = -_STALE_EVERY
    while not stop.is_set():
        try:
            watch(engine, partial(signs.advance, PRICES))
            if time.monotonic() >= stale_looked_at + _STALE_EVERY:
                watch_stale(engine)
                stale_looked_at = time.monotonic()
        except (DatabaseError, statement_error()) as error:
            _LOG.warning("price alerts are not checked while the database fails: %s", reason(error))
        stop.wait(every_seconds)


def judge(watched: WatchedAlert, price: Price) -> tuple[WatchedAlert, Message | None]:
    """The state of an alert on one symbol after a price, and the message to its recipient, if any."""
    between = _splits_between(watched.splits, watched.seen_at, price.observed_at)
    after = replace(watched, seen_at=price.observed_at)
    threshold = watched.threshold
    assert threshold is not None  # noqa: S101 - each of these conditions is stored with one
    if watched.condition != "moved":
        limit = watched.back_at if watched.is_beyond else Fraction(threshold)
        now = Fraction(price.price)
        is_beyond = now > limit if watched.condition == "above" else now < limit
        after = replace(after, is_beyond=is_beyond)
        if watched.is_beyond or not is_beyond:
            return after, None
        message = price_messages.crossed(
            watched.price_alert_id,
            watched.condition,
            threshold,
            price,
            between,
            back_at=watched.back_at if watched.hysteresis else None,
            is_first=watched.is_first,
        )
        return replace(after, is_first=False), message
    anew = replace(after, reference=price.price, reference_at=price.observed_at)
    if not watched.reference or watched.reference_at is None:  # nothing is a percentage of 0
        return anew, None
    since = _splits_between(watched.splits, watched.reference_at, price.observed_at)
    reference = Fraction(watched.reference)
    for split in since:
        reference *= Fraction(split.old_shares) / Fraction(split.new_shares)
    moved = (Fraction(price.price) - reference) * 100 / abs(reference)
    if abs(moved) < Fraction(threshold):
        return after, None
    told = price_messages.moved(
        watched.price_alert_id, threshold, moved, price, watched.reference, watched.reference_at, since
    )
    return anew, told


def _look(connection: Connection, rows: Sequence[Row[Any]]) -> int:
    looks, told = [], 0
    for id_, group in groupby(rows, attrgetter("price_alert_id")):
        of_alert = list(group)
        first = of_alert[0]
        prices = [_price(row) for row in of_alert]
        messages, state = _judged(first, prices)
        looks.append({"price_alert_id": id_, **state, "is_told": bool(messages) and first.is_told})
        if first.is_told:
            told += sum(_sent(connection, first, message) for message in messages)
    if looks:
        connection.execute(query("price_alerts.note_looks"), {"looks": json.dumps(looks, default=str)})
    return told


def _judged(row: Row[Any], prices: Sequence[Price]) -> tuple[list[Message], dict[str, object]]:
    """The message of an alert about its new prices, and what it has then seen."""
    newest = prices[-1]
    seen = {"seen": newest.price, "seen_at": newest.observed_at}
    if row.condition == "each":
        messages = list(price_messages.each(row.price_alert_id, row.data_type, prices))
        return messages, {"is_beyond": False, "reference": None, "reference_at": None, **seen}
    watched = WatchedAlert(
        row.price_alert_id,
        row.condition,
        row.threshold,
        row.is_beyond,
        row.seen_at,
        row.reference,
        row.reference_at,
        tuple(map(Split, row.split_days or (), row.split_new or (), row.split_old or ())),
        row.hysteresis,
        row.hysteresis_in,
        is_first=row.told_at is None,
    )
    messages = []
    for price in prices:
        watched, message = judge(watched, price)
        messages += [message] if message else []
    state = {
        "is_beyond": watched.is_beyond,
        "reference": watched.reference,
        "reference_at": watched.reference_at,
    }
    return messages, state | seen


def _splits_between(splits: Iterable[Split], before: datetime | None, after: datetime) -> tuple[Split, ...]:
    """The splits between two prices: first traded after the day of the first, and not after the day of the second."""
    if before is None:
        return ()
    first, last = before.astimezone(UTC).date(), after.astimezone(UTC).date()
    return tuple(split for split in splits if first < split.ex_on <= last)


def _price(row: Row[Any]) -> Price:
    return Price(row.data_type, row.symbol, row.price, row.currency, row.observed_at, row.provider, row.call_id)


def _sent(connection: Connection, alert: Row[Any], message: Message) -> int:
    message = message.asked_by(alert.user_id)
    try:
        with connection.begin_nested():
            recipients.send(connection, alert.recipient, message.title, message.body, data=message.data)
    except OperationRefused as error:  # the others are still told
        _LOG.error("%s cannot be sent price alert %d: %s", alert.recipient, alert.price_alert_id, error)
        return 0
    return 1
