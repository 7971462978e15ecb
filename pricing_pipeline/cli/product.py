"""`product list|show|availability|set-zone`: what is sold in slots. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli import arguments
from pricing_pipeline.cli.arguments import as_of_time, day
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import AsOf, Json, Limit, Symbol
from pricing_pipeline.cli.output import decimal, duration, iso, moment, print_json, print_lines, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zoned
from pricing_pipeline.demand import instruments
from pricing_pipeline.inventory import availability as slots
from pricing_pipeline.inventory import products

if TYPE_CHECKING:
    from pricing_pipeline.inventory.availability import Day, Offer, StoredSlot


noun = typer.Typer()


@noun.command("list")
@listing
def list_(at_most: Limit = 100, as_json: Json = False) -> None:
    """List products: their name, time zone, and when their slots were last confirmed.

    `instrument pause` stops fetching one, `instrument resume` restarts it.

    \b
    Example: pricing-pipeline product list
    """
    with open_connection() as connection:
        known = products.products(connection, at_most + 1)
    shown = known[:at_most]
    if as_json:
        print_json({"products": [asdict(product) for product in shown]})
        return
    print_table(
        ["symbol", "name", "state", "time zone", in_zone("slots confirmed"), "up to", "provider"],
        [
            (
                product.symbol,
                product.name,
                _state(product),
                product.time_zone,
                moment(product.fetched_at),
                product.last_day,
                product.provider,
            )
            for product in shown
        ],
        spare=["provider", "up to"],
        long="name",
    )
    if len(known) > at_most:
        hint("there are more; --limit shows them.")
    if not known:
        hint("no product is known yet. `pricing-pipeline instrument add SYMBOL --asset-class inventory` adds one.")


@noun.command()
@zoned
def show(symbol: Symbol, as_json: Json = False) -> None:
    """Show a product: its options, its categories, and its time zone.

    \b
    Example: pricing-pipeline product show OCT-1001
    """
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        product = products.product(connection, symbol)
        options = products.options(connection, symbol)
        categories = products.categories(connection, symbol)
        doubts = products.doubts(connection, symbol)
    if as_json:
        print_json(
            asdict(product)
            | {"options": [asdict(option) for option in options]}
            | {"categories": [asdict(category) for category in categories]}
            | {"doubts": [asdict(doubt) for doubt in doubts]}
        )
        return
    zone = f"{product.time_zone}{', set by hand' if product.is_set_by_hand else ''}"
    print_lines(
        {
            "product": symbol,
            "name": product.name,
            "state": _state(product),
            "provider": product.provider,
            "time zone": zone if product.time_zone else "not known",
            "known since": moment(product.recorded_at),
            "slots confirmed": moment(product.fetched_at),
            "options": ", ".join(f"{o.option_id} ({o.name or 'unnamed'}){_listed(o.is_listed)}" for o in options),
            "categories": ", ".join(f"{c.category_id} ({c.name}){_listed(c.is_listed)}" for c in categories),
        }
    )
    for doubt in doubts:
        hint(f"not believed: {doubt.reason} (`pricing-pipeline quarantine show {doubt.value_id}`)")


@noun.command()
@listing
def availability(
    symbol: Symbol,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="First local day; default: today where it is."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="DATE", help="Last local day; default: a week from the first."),
    ] = None,
    pax: Annotated[int, typer.Option("--pax", min=1, metavar="N", help="For this many people.")] = 1,
    currency: Annotated[
        str | None, typer.Option("--currency", metavar="CODE", help="Only what has prices in it.")
    ] = None,
    sellable: Annotated[bool, typer.Option("--sellable", help="Only slots that this many people can book.")] = False,
    believed_at: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the slots of a product: local times, places left, and the price of each category.

    Missing and stale days are requested. --as-of shows what was believed then.

    \b
    Example: pricing-pipeline product availability OCT-1001 --from 2026-12-24 --pax 2 --sellable
    """
    first = None if from_ is None else day(from_, "--from")
    last = None if to is None else day(to, "--to")
    as_of = as_of_time(believed_at)
    if currency is not None:
        currency = arguments.currency_code(currency)
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        product = products.product(connection, symbol)
        window = slots.days_of(connection, symbol, first, last, as_of)
        days = slots.read(connection, slots.Question(symbol, window, pax, currency, sellable, as_of))
        is_requested = as_of is None and slots.request(connection, symbol, window.end)
        doubts = products.doubts(connection, symbol) if as_of is None else []
        connection.commit()
    if as_json:
        past = {} if as_of is None else {"as_of": iso(as_of)}
        print_json({"symbol": symbol, "pax": pax, **past, "days": [_content(day) for day in days]})
        return
    _print(days)
    is_known = any(day.age_seconds is not None or as_of is not None for day in days)
    if is_known and not any(day.slots for day in days) and (sellable or currency):
        booked = f" that {pax} can book" if sellable else ""
        priced = f" with a price in {currency}" if currency else ""
        hint(f"there may be slots, but none{booked}{priced}. Leave out --sellable and --currency to see all.")
    if doubts:
        hint(
            f"the last answer has {len(doubts)} slots that are not believed; their earlier values stay. "
            f"`pricing-pipeline product show {symbol}` names them."
        )
    _hint_at(days, product, is_requested, as_of)


@noun.command("set-zone")
def set_zone(
    symbol: Symbol,
    zone: Annotated[str, typer.Argument(metavar="ZONE", help="Its time zone, such as Europe/London, or none.")],
    as_json: Json = False,
) -> None:
    """Set the time zone of a product, instead of its provider's; none undoes this.

    Coming slots without an offset get new times. `task retry` repeats tasks that failed without a zone.

    \b
    Example: pricing-pipeline product set-zone OCT-1001 Europe/London
    """
    time_zone = None if zone == "none" else zone
    with open_engine() as engine, engine.begin() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        moved = products.set_zone(connection, symbol, time_zone)
    if as_json:
        print_json({"symbol": symbol, "time_zone": time_zone, "moved": moved})
        return
    outcome = f"is in {time_zone}" if time_zone else "is where its provider says"
    typer.echo(f"{symbol} {outcome}; {moved} coming slots were moved.")


def _content(day: Day) -> dict[str, Any]:
    """A day as JSON tells it."""
    slots = [slot._asdict() | {"offers": [offer._asdict() for offer in slot.offers]} for slot in day.slots]
    return {"day": day.day, "fetched_at": day.fetched_at, "fresh": day.fresh, "slots": slots}


def _state(product: products.StoredProduct) -> str:
    if product.paused:
        return "paused"
    if product.is_listed:
        return "active"
    return "no longer listed" if product.provider else "unknown to its provider"


def _listed(is_listed: bool) -> str:
    return "" if is_listed else ", no longer listed"


def _print(days: Sequence[Day]) -> None:
    """A line for each slot and category."""
    rows = [_line(slot, offer) for day in days for slot in day.slots for offer in slot.offers or (None,)]
    print_table(
        ["local start", "option", "status", "left", "category", "instead of", "price", "", "bookable"],
        rows,
        right=["left", "instead of", "price"],
        spare=["instead of", "option"],
    )


def _line(slot: StoredSlot, offer: Offer | None) -> tuple[Any, ...]:
    about = (f"{slot.local_start:%Y-%m-%d %H:%M}", slot.option or slot.option_id, slot.status, slot.remaining)
    bookable = "yes" if slot.sellable else "no"
    if offer is None:
        return (*about, "", "", "", "", bookable)
    price, original = ("" if amount is None else decimal(amount) for amount in (offer.final, offer.original))
    return (*about, offer.category, original if original != price else "", price, offer.currency, bookable)


def _hint_at(days: Sequence[Day], product: products.StoredProduct, is_requested: bool, as_of: datetime | None) -> None:
    """Say how old this is, and what will come."""
    if as_of is not None:
        if not any(day.slots for day in days):
            hint(
                f"no such slot was known then from {days[0].day} to {days[-1].day}. Only what had been fetched was "
                "known; --from and --to name other days."
            )
        return
    ages = [day.age_seconds for day in days if day.age_seconds is not None]
    missing = sum(day.age_seconds is None and day.data_type is not None for day in days)
    unasked = sum(day.age_seconds is None and day.data_type is None for day in days)
    if ages:
        hint(f"Confirmed {' to '.join(dict.fromkeys((duration(min(ages)), duration(max(ages)))))} ago.")
    if missing:
        hint(f"nothing is known yet of {missing} of {len(days)} days.")
    if unasked:
        hint(
            f"nothing is known of {unasked} of {len(days)} days, and no data type asks for them: they are past, or "
            "further ahead than any type reaches (`pricing-pipeline type list`)."
        )
    if not product.is_listed:
        hint(f"none of these can be booked: {product.provider or 'its provider'} does not list the product.")
    if product.paused:
        hint("nothing newer comes: the product is paused. `pricing-pipeline instrument resume` ends that.")
    elif is_requested:
        hint("A newer answer is queued; a running pipeline fetches it in a moment.")
