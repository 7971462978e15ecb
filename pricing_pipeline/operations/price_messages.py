"""Messages about prices. `data` is what a webhook gets beside the words, with exact strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Row


PRICES_PER_MESSAGE = 100
"""A message of a webhook is at most 64 kB. One price with the longest names takes less than half a kilobyte."""


@dataclass(frozen=True, slots=True)
class Price:
    """A new price. `observed_at` is UTC."""

    data_type: str
    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    provider: str
    call_id: int


@dataclass(frozen=True, slots=True)
class Split:
    """From `ex_on` on, so many new shares stand for so many old ones."""

    ex_on: date
    new_shares: Decimal
    old_shares: Decimal


@dataclass(frozen=True, slots=True)
class Message:
    """What one message says."""

    title: str
    body: str
    data: Mapping[str, object]

    def asked_by(self, user_id: str | None) -> Message:
        """The message, with the name of the user who set the alert over HTTP; unchanged without one."""
        if user_id is None:
            return self
        return Message(self.title, f"{self.body}\n{user_id!r} asked for it.", {**self.data, "user_id": user_id})


def crossed(
    id_: int,
    condition: str,
    threshold: Decimal,
    price: Price,
    splits: Sequence[Split] = (),
    *,
    back_at: Fraction | None = None,
    is_first: bool = False,
) -> Message:
    """A price has crossed a threshold. With a hysteresis, the next crossing is told after a price came `back_at`."""
    title = f"{price.symbol} is {condition} {_plain(threshold)}: {_amount(price)}"
    rules = [f"A message is sent once when the price goes {condition} {_plain(threshold)}."]
    if back_at is not None:
        way = "down to" if condition == "above" else "up to"
        rules = [f"{rules[0][:-1]}, and again after it came back {way} {_exact(back_at)}."]
    elif is_first:
        rules.append(
            "If the price fluctuates around that value, add the alert with --hysteresis 1% instead (hysteresis "
            "over HTTP): the next message then comes only after the price came back by that much."
        )
    return _message(id_, condition, title, [price], [*map(_split, splits), *rules])


def moved(
    id_: int,
    threshold: Decimal,
    percent: Fraction,
    price: Price,
    reference: Decimal,
    reference_at: datetime,
    splits: Sequence[Split],
) -> Message:
    """A price is a percentage above or below its reference, which is not divided by the splits since then."""
    way = "risen" if percent > 0 else "fallen"
    title = f"{price.symbol} has {way} by {_percent(abs(percent))} %: {_amount(price)}"
    since = f"It was {_plain(reference)} at {_time(reference_at)}."
    rule = f"A message is sent when the price has moved by {_plain(threshold)} % or more since the last time."
    return _message(id_, "moved", title, [price], [since, *map(_split, splits), rule])


def each(id_: int, data_type: str, prices: Sequence[Price]) -> Iterator[Message]:
    """New prices, as many messages as they need."""
    for start in range(0, len(prices), PRICES_PER_MESSAGE):
        some = prices[start : start + PRICES_PER_MESSAGE]
        title = f"{some[0].symbol}: {_amount(some[0])}" if len(some) == 1 else f"{len(some)} new prices of {data_type}"
        yield _message(id_, "each", title, some, ["A message is sent for each new price."])


def stale(row: Row[Any]) -> Message:
    """A pair has been stale for too long. The row is one of pricing.take_stale_pairs."""
    span = _span(row.lasts)
    title = f"{row.symbol} has been stale for {span}"
    known = []
    if row.price is not None:
        known = [Price(row.data_type, row.symbol, row.price, row.currency, row.observed_at, row.provider, row.call_id)]
    facts = [] if known else [f"{row.data_type} {row.symbol} has no price."]
    rule = f"A message is sent once when there is no fresh price for {span}."
    return _message(
        row.price_alert_id,
        "stale",
        title,
        known,
        [*facts, f"Stale since {_time(row.since)}. {row.sentence}", rule],
    )


def _message(id_: int, condition: str, title: str, prices: Sequence[Price], words: Sequence[str]) -> Message:
    end = f"To end it: pricing-pipeline price-alert remove {id_}"
    return Message(
        title,
        "\n".join([*map(_line, prices), *words, end]),
        {"price_alert": id_, "condition": condition, "prices": [_content(price) for price in prices]},
    )


def _line(price: Price) -> str:
    observed = f"observed {_time(price.observed_at)}, from {price.provider}"
    return f"{price.data_type} {price.symbol}: {_amount(price)}, {observed}."


def _content(price: Price) -> dict[str, object]:
    return {
        "data_type": price.data_type,
        "symbol": price.symbol,
        "price": _plain(price.price),
        "currency": price.currency,
        "observed_at": price.observed_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "provider": price.provider,
        "call_id": price.call_id,
    }


def _split(split: Split) -> str:
    return (
        f"A split of {_shares(split.new_shares)} for {_shares(split.old_shares)} on {split.ex_on} lies "
        "between this price and the one before."
    )


def _shares(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _amount(price: Price) -> str:
    return f"{_plain(price.price)} {price.currency}" if price.currency else _plain(price.price)


def _plain(number: Decimal) -> str:
    return format(number, "f")


def _exact(number: Fraction) -> str:
    """A sum or a product of decimals, with all its digits."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return format(Decimal(f"{int(number * 10**places)}e-{places}"), "f")


def _percent(percent: Fraction) -> str:
    """Rounded down, so that no message names a percentage that was not reached; two decimals, or more for a small
    one."""
    places = 2
    while percent and percent * 10**places < 1:
        places += 1
    return format(Decimal(int(percent * 10**places)).scaleb(-places), "f")


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    for size, unit in ((1440, "d"), (60, "h")):
        if minutes % size == 0:
            return f"{minutes // size} {unit}"
    return f"{minutes} min"
