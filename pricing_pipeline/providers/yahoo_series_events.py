"""The events in Yahoo's price charts, each read separately, so that a broken one costs no other.

They are splits, spin-offs (told as splits), dividends and the capital gains of funds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from pydantic import Field

from pricing_pipeline.domain.answers import CapitalGain, Dividend, RejectedValue, Split
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Schema, check_count, validate
from pricing_pipeline.providers.exchange_days import day_of
from pricing_pipeline.providers.noise import without_noise
from pricing_pipeline.providers.splits import Splits, undivided, without_repeats
from pricing_pipeline.providers.values import (
    Implausible,
    UnconfirmedSplit,
    in_major_unit,
    major_unit,
    midnight,
    price_of,
    spelling,
    split_of,
)

_MOST_SPLITS = 200
"""No company splits this often; an answer with more has another form than ours."""


class _Split(Schema):
    date: object
    numerator: object
    denominator: object


class _Payment(Schema):
    """With a currency of its own its amount is in that one; without, in the unit of the prices."""

    date: object
    amount: object
    currency: str | None = None


class Events(Schema):
    """Each is validated separately."""

    splits: dict[str, object] = Field(default_factory=dict)
    dividends: dict[str, object] = Field(default_factory=dict)
    gains: dict[str, object] = Field(default_factory=dict, alias="capitalGains")


@dataclass(frozen=True, slots=True)
class ReportedSplits:
    """`broken` cannot be read or be true; `early` are to come, and divide nothing yet.

    `unconfirmed` are those of the broken, or of the believed ones, that only a person is believed about.
    """

    believed: list[Split] = field(default_factory=list)
    broken: list[RejectedValue] = field(default_factory=list)
    early: list[RejectedValue] = field(default_factory=list)
    unconfirmed: list[Split] = field(default_factory=list)


def splits_of(
    symbol: str, events: Events | None, zone: ZoneInfo, now: datetime, *, are_confirmed: bool
) -> ReportedSplits:
    """The splits of a chart. With `are_confirmed`, splits larger than any usual one are believed, too."""
    raws = events.splits if events else {}
    if len(raws) > _MOST_SPLITS:
        raise SchemaDrift(f"yahoo tells {len(raws)} splits of {symbol}; nothing was stored.")
    reported, splits = ReportedSplits(), []
    for raw in raws.values():
        day, text = None, ""
        try:
            event = validate(_Split, raw, "a split")
            text, day = f"{spelling(event.numerator)}:{spelling(event.denominator)}", day_of(event.date, zone)
            check_past(day, zone, now)
            new, old = meant(event.numerator, "its numerator"), meant(event.denominator, "its denominator")
            if new != old:
                splits.append(split_of(symbol, day, new, old))
        except _ToCome as fault:
            reported.early.append(refused(symbol, "split", day, str(fault), text))
        except UnconfirmedSplit as fault:
            reported.unconfirmed.append(fault.split)
            if are_confirmed:
                splits.append(fault.split)
            else:
                reported.broken.append(refused(symbol, "split", day, str(fault), text))
        except (Implausible, SchemaDrift) as fault:
            reported.broken.append(refused(symbol, "split", day, str(fault), text))
    once, twice = without_repeats(splits)
    reported.believed.extend(once)
    for split, other in twice:
        why = f"it is reported twice, with that of {other.ex_on}: nobody knows whether prices are divided by both"
        text = f"{split.new_shares:f}:{split.old_shares:f}"
        reported.broken.append(refused(symbol, "split", split.ex_on, why, text))
    return reported


def payments_of(
    symbol: str,
    events: Events | None,
    splits: Splits,
    unit: tuple[str | None, int],
    zone: ZoneInfo,
    now: datetime,
) -> tuple[list[Dividend], list[RejectedValue]]:
    """The dividends and capital gains of a chart as they were paid, and those that cannot be read or be true.

    Yahoo divides them by the splits that followed, as it divides prices. `unit` is that of the prices.
    """
    paid: dict[Dividend, None] = {}
    rejected = []
    told = ((Dividend, events.dividends), (CapitalGain, events.gains)) if events else ()
    for kind, raws in told:
        word = "dividend" if kind is Dividend else "capital gain"
        check_count(len(raws), f"yahoo's list of {word}s of {symbol}")
        for raw in raws.values():
            day, cash = None, ""
            try:
                event = validate(_Payment, raw, f"a {word}")
                cash, day = spelling(event.amount), day_of(event.date, zone)
                check_past(day, zone, now)
                currency, power = unit if event.currency is None else major_unit(event.currency)
                whole = undivided(meant(event.amount, "its amount"), splits.of_prices(day))
                # The same amount of one currency twice a day is one payment.
                paid[kind(symbol, day, in_major_unit(whole, power), currency)] = None
            except (Implausible, SchemaDrift) as fault:
                rejected.append(refused(symbol, word, day, str(fault), cash))
    return sorted(paid, key=lambda payment: payment.ex_on), rejected


class _ToCome(Implausible):
    """An event of a day that is to come."""


def check_past(day: date, zone: ZoneInfo, now: datetime) -> None:
    if day > now.astimezone(zone).date():
        raise _ToCome("it is in the future; until then its day may move, and it changes nothing")


def refused(symbol: str, what: str, day: date | None, why: str, text: str) -> RejectedValue:
    at = None if day is None else midnight(day)
    return RejectedValue(symbol, at, f"the {what} of {day or 'an unknown day'}: {why}", text)


def meant(raw: object, what: str) -> Decimal:
    """The price without binary noise. Raises Implausible if it is not a price."""
    return price_of(without_noise(raw) if isinstance(raw, Decimal) else raw, what)
