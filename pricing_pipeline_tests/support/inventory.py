"""Products, slots and answers about them, and a database that knows a provider of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from pricing_pipeline.domain.answers import Answer, Record, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call, Task
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxOffer, ProductDays, Slot, SlotStatus
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.inventory import availability, storage
from pricing_pipeline.inventory.availability import Day, Question
from pricing_pipeline_tests.fixtures.core import Core

PARTNER = "partner"
PRODUCT, TODAY, WEEK, MONTH = "partner_product", "slots_today", "slots_week", "slots_month"
DAYS = {TODAY: 1, WEEK: 7, MONTH: 30}
TOUR = "TOUR-1"
MONDAY = date(2031, 3, 3)
"""Ahead of any clock of a test."""

TABLES = ("products", "product_options", "pax_categories", "slots", "slot_prices", "pax_availability")

_calls = count(1_000_000)


def add_partner(core: Core, *products: str) -> None:
    """Make a provider of slots known, its four data types, and products."""
    core.rows(
        "INSERT INTO pricing.data_collectors (provider, description, base_url)"
        " VALUES (:name, 'slots', 'http://partner.invalid')",
        name=PARTNER,
    )
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds) VALUES (:name, 'minute', 30, 60)",
        name=PARTNER,
    )
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, window_batch_size, units_per_call,"
        " units_per_symbol, max_window_days, bytes_per_day, routes_new_types)"
        " VALUES (:name, 'product', 1, 1, 1, 0, 1, 0, true), (:name, 'slots', 1, 1, 1, 0, 1, 0, true)",
        name=PARTNER,
    )
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, asset_class, default_ttl_minutes, days_ahead)"
        " VALUES ('partner_product', 'product', 'inventory', 1440, NULL), ('slots_today', 'slots', 'inventory', 15, 1),"
        " ('slots_week', 'slots', 'inventory', 240, 7), ('slots_month', 'slots', 'inventory', 1440, 30)"
    )
    core.rows(
        "UPDATE pricing.provider_routing SET provider = :name WHERE data_type ~ '^(slots|partner)_'",
        name=PARTNER,
    )
    for product in products or (TOUR,):
        add_product(core, product)


def add_product(core: Core, symbol: str) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('inventory', :symbol)", symbol=symbol)


def offer(category: str = "ADULT", final: int | None = 2500, **more: Any) -> PaxOffer:
    """What a category pays; its name is its id in small letters."""
    given: dict[str, Any] = {
        "name": category.lower(),
        "original": final,
        "minimum": 1,
        "maximum": 9,
        "remaining": 9,
    }
    return PaxOffer(category, final=final, **(given | more))


def slot(day: date = MONDAY, hour: int = 9, *offers: PaxOffer, **more: Any) -> Slot:
    """A slot of two hours in UTC+1, named by its start."""
    start = datetime.combine(day, time(hour))
    given: dict[str, Any] = {
        "slot_id": start.isoformat(),
        "option_id": "DEFAULT",
        "local_start": start,
        "local_end": start + timedelta(hours=2),
        "utc_offset": timedelta(hours=1),
        "status": SlotStatus.AVAILABLE,
        "remaining": 9,
        "capacity": 10,
        "currency": "EUR",
        "currency_scale": 2,
        "offers": offers or (offer(),),
    }
    return Slot(**(given | more))


def naive(a_slot: Slot) -> Slot:
    """The same slot without its offset."""
    return replace(a_slot, utc_offset=None, end_utc_offset=None)


def days(*slots: Slot, symbol: str = TOUR, first: date = MONDAY, length: int = 1) -> ProductDays:
    return ProductDays(symbol, Window(first, first + timedelta(days=length - 1)), slots)


def call_of(data_type: str, *symbols: str, number: int | None = None, window: Window | None = None) -> Call:
    """A call as a claim makes it, without one: its tasks do not matter to storage."""
    return Call(
        next(_calls) if number is None else number,
        PARTNER,
        "default",
        data_type,
        Fetcher.PRODUCT if data_type == PRODUCT else Fetcher.SLOTS,
        window,
        tuple(Task(1, symbol, 1, 1) for symbol in symbols),
        UUID(int=1),
        datetime.now(UTC),
        "inventory",
    )


def store(
    core: Core, *records: Record, data_type: str = MONTH, number: int | None = None, **more: Any
) -> Sequence[Stored | SymbolFailure]:
    """Store an answer in a transaction of the worker."""
    call = call_of(data_type, *{record.symbol for record in records}, number=number)
    with core.engine.begin() as connection:
        return storage.store(connection, call, Answer(records=records, **more))


def read(core: Core, symbol: str = TOUR, first: date = MONDAY, length: int = 1, **question: Any) -> list[Day]:
    window = Window(first, first + timedelta(days=length - 1))
    with core.engine.begin() as connection:
        return availability.read(connection, Question(symbol, window, **question))


def versions(core: Core, symbol: str = TOUR) -> dict[str, set[tuple[str, str]]]:
    """The row versions of each table of current belief: they differ after any write, even of equal values."""
    by_slot = "JOIN pricing.slots s USING (slot_key) WHERE s.symbol = :symbol"
    found = {}
    for table in TABLES:
        which = by_slot if table in ("slot_prices", "pax_availability") else "WHERE t.symbol = :symbol"
        rows = core.rows(f"SELECT t.ctid::text, t.xmin::text FROM pricing.{table} t {which}", symbol=symbol)
        found[table] = {(row.ctid, row.xmin) for row in rows}
    return found


def revisions(core: Core) -> dict[str, int]:
    """How many revisions there are of the rows of each table."""
    count_of = "SELECT count(*) FROM pricing.revisions WHERE kind = :table"
    return {table: core.one(count_of, table=table) for table in TABLES}
