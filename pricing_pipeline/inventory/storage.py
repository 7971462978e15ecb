"""Store products and slots, and say what a request needs to know of them. Reads: availability.py and products.py."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import Answer, FailureKind, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call, Preparation
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxOffer, Product, ProductDays, Slot
from pricing_pipeline.domain.windows import Window

if TYPE_CHECKING:
    from sqlalchemy import Connection

_Row = Mapping[str, object]


def store(connection: Connection, call: Call, answer: Answer) -> list[Stored | SymbolFailure]:
    """Store the products or slots of an answer within the caller's transaction, and confirm their pairs.

    Unchanged values write nothing; changed ones leave the old belief as a revision. Slots that an answer no
    longer lists have vanished; those that it lists with values that are not believed stay as they are. A product whose
    slots nothing can place is a failure, and no slot of it is stored. A product that its provider does not know is no
    longer listed: its slots stay, and cannot be booked.
    """
    _unlist(connection, call, answer.failures)
    products = [record for record in answer.records if isinstance(record, Product)]
    if call.fetcher is Fetcher.PRODUCT:
        answered = {product.symbol for product in products} | answer.empty
        return [*_store_products(connection, call, products, answered)]
    # A provider may also request and return the product. Only the pair of the slots is confirmed.
    _store_products(connection, call, products, ())
    return _store_slots(connection, call, answer)


def prepare(connection: Connection, call: Call) -> Preparation:
    """The local days that a call asks for, and what is known of its products.

    The days begin today where the product is. Of several products, they are the days of all. A product that is asked
    for the first time has no zone, so its today is the UTC day. Its provider asks for the product first, and moves the
    days to where it is.
    """
    parameters = {"data_type": call.data_type, "symbols": call.symbols}
    rows = connection.execute(query("inventory.known"), parameters)
    rows_by_symbol = {row.symbol: row for row in rows}
    known = {
        symbol: {"currency": row.currency, "time_zone": row.time_zone, "is_zone_set": row.is_zone_set}
        for symbol, row in rows_by_symbol.items()
    }
    if call.fetcher is Fetcher.PRODUCT:
        return Preparation(None, known)
    days = connection.execute(query("inventory.days_ahead"), {"data_type": call.data_type}).scalar_one()
    today = [row.today for row in rows_by_symbol.values()]
    return Preparation(Window(min(today), max(today) + timedelta(days=days - 1)), known)


def _store_products(
    connection: Connection, call: Call, products: Sequence[Product], answered: Collection[str]
) -> list[Stored]:
    """Store products, and confirm the pairs of those that are answered for."""
    if not products and not answered:
        return []
    merged = call_sql(
        connection,
        "merge_products",
        call.data_type,
        call.provider,
        call.id,
        sorted(answered),
        _json({"symbol": product.symbol, "name": product.name, "time_zone": product.time_zone} for product in products),
        _json(
            {
                "symbol": product.symbol,
                "option_id": option.option_id,
                "name": option.name,
                "is_default": option.is_default,
            }
            for product in products
            for option in product.options
        ),
        _json(
            {
                "symbol": product.symbol,
                "category_id": category.category_id,
                "name": category.name,
                "kind": category.kind,
                "age_from": category.age_from,
                "age_to": category.age_to,
                "pax_count": category.pax_count,
            }
            for product in products
            for category in product.categories
        ),
    )
    return [Stored(row.symbol, row.added, row.revised) for row in merged]


def _store_slots(connection: Connection, call: Call, answer: Answer) -> list[Stored | SymbolFailure]:
    answers = [record for record in answer.records if isinstance(record, ProductDays)]
    if answer.empty:
        # Which days are empty is not known, so none of their slots has vanished.
        _confirm(connection, call, answer.empty)
    failures = _placeless(connection, answers)
    lost = {failure.symbol for failure in failures}
    answers = [days for days in answers if days.symbol not in lost]
    confirmed = [Stored(symbol, 0, 0) for symbol in sorted(answer.empty)]
    if not answers:
        return [*confirmed, *failures]
    slots = [(days.symbol, slot) for days in answers for slot in days.slots]
    merged = call_sql(
        connection,
        "merge_slots",
        call.data_type,
        call.provider,
        call.id,
        _json(_days(days) for days in answers),
        _json(_slot(number, symbol, slot) for number, (symbol, slot) in enumerate(slots)),
        _json(_offer(number, offer) for number, (_, slot) in enumerate(slots) for offer in slot.offers),
    )
    return [*(Stored(row.symbol, row.added, row.revised) for row in merged), *confirmed, *failures]


def _unlist(connection: Connection, call: Call, failures: Sequence[SymbolFailure]) -> None:
    unknown = sorted(failure.symbol for failure in failures if failure.kind is FailureKind.UNKNOWN_SYMBOL)
    if unknown:
        call_sql(connection, "unlist_products", unknown, call.provider, call.id)


def _confirm(connection: Connection, call: Call, symbols: Collection[str]) -> None:
    call_sql(connection, "confirm_pairs", call.data_type, sorted(symbols), call.provider, call.id)


def _placeless(connection: Connection, answers: Sequence[ProductDays]) -> list[SymbolFailure]:
    """The products whose slots have no offset from UTC, and no known zone either."""
    symbols = [days.symbol for days in answers if days.needs_zone]
    if not symbols:
        return []
    lost = connection.execute(query("inventory.placeless"), {"symbols": symbols}).scalars()
    return [
        SymbolFailure(
            symbol,
            FailureKind.MISCONFIGURED,
            f"the slots of {symbol} have no offset from UTC, and no time zone of the product is known. Set it with "
            f"`pricing-pipeline product set-zone {symbol} ZONE`, such as Europe/London, and retry the task.",
        )
        for symbol in lost
    ]


def _days(days: ProductDays) -> _Row:
    return {
        "symbol": days.symbol,
        "first_day": str(days.window.start),
        "last_day": str(days.window.end),
        "unread": [str(day) for day in sorted(days.unread)],
        "kept": [{"option_id": option_id, "slot_id": slot_id} for option_id, slot_id in sorted(days.kept)],
    }


def _slot(number: int, symbol: str, slot: Slot) -> _Row:
    return {
        "n": number,
        "symbol": symbol,
        "option_id": slot.option_id,
        "slot_id": slot.slot_id,
        "local_start": slot.local_start.isoformat(),
        "local_end": slot.local_end.isoformat(),
        "utc_offset": _seconds(slot.utc_offset),
        "end_utc_offset": _seconds(slot.end_utc_offset),
        "bookable_until": slot.bookable_until.isoformat() if slot.bookable_until else None,
        "status": slot.status,
        "remaining": slot.remaining,
        "capacity": slot.capacity,
        "currency": slot.currency,
        "scale": slot.currency_scale,
    }


def _offer(number: int, offer: PaxOffer) -> _Row:
    return {
        "n": number,
        "category_id": offer.category_id,
        "name": offer.name,
        "minimum": offer.minimum,
        "maximum": offer.maximum,
        "remaining": offer.remaining,
        "is_primary": offer.is_primary,
        "pax_count": offer.pax_count,
        "age_from": offer.age_from,
        "age_to": offer.age_to,
        "final_price": offer.final,
        "original_price": offer.original,
    }


def _seconds(offset: timedelta | None) -> int | None:
    return None if offset is None else round(offset.total_seconds())


def _json(rows: Iterable[_Row]) -> str:
    return json.dumps([*rows])
