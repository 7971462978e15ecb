"""Slots synced from the sandbox's partners, and how the database is compared with what they have, row by row."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pricing_pipeline import sample
from pricing_pipeline.db.migrate import run_script
from pricing_pipeline.domain.inventory import PaxOffer, ProductDays, Slot
from pricing_pipeline.domain.windows import Window
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import Reports, is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.tours import symbol_of, true_days

PRODUCT, TODAY, WEEK, MONTH = "product_details", "slots_today", "slots_week", "slots_month"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
UNLIMITED = {"partner_calls_per_minute": None}
TABLES = ("slots", "slot_prices", "pax_availability")

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Stored:
    """What the database has: the fields of each row, and which version of it, by what the row is about."""

    fields: dict[Row, Row]
    versions: dict[Row, Row]

    def written(self, before: Stored) -> int:
        return sum(before.versions.get(key) != version for key, version in self.versions.items())


def load_types(core: Core) -> None:
    """Load the sample's types of inventory."""
    with core.owner.begin() as connection:
        run_script(connection, (Path(sample.__file__).parent / "inventory.sql").read_text())


def sell(core: Core, provider: str, numbers: Sequence[int]) -> list[str]:
    """Products of a provider as instruments, routed to it, within no limit."""
    symbols = [symbol_of(provider, number) for number in numbers]
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, scale)"
        " SELECT 'inventory', unnest(CAST(:symbols AS text[])), 2 ON CONFLICT DO NOTHING",
        symbols=symbols,
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider) SELECT r.data_type, s, :provider"
        " FROM pricing.data_type_registry r, unnest(CAST(:symbols AS text[])) s WHERE r.contents = 'inventory'"
        " ON CONFLICT DO NOTHING",
        symbols=symbols,
        provider=provider,
    )
    core.rows("UPDATE pricing.provider_limits SET units = 1000000 WHERE provider = :provider", provider=provider)
    return symbols


def sync(core: Core, sandbox: RunningSandbox, data_type: str, symbols: Sequence[str]) -> Reports:
    """Ask for these products once, as a schedule does, until nothing is left to do."""
    reports = Reports()
    with refreshing(core.engine, sandbox.url, reports=reports) as refresher:
        for first in range(0, len(symbols), 10):  # a hundred would take longer than the patience for one wait
            core.enqueue(data_type, *symbols[first : first + 10], priority=-1)
            work_until(refresher, is_idle(core))
    return reports


def window_of(sandbox: RunningSandbox, number: int, days: int, now: datetime) -> Window:
    tour = sandbox.sandbox.tours.tour(number)
    assert tour is not None
    today = now.astimezone(tour.zone).date()
    return Window(today, today + timedelta(days=days - 1))


def partner(core: Core, sandbox: RunningSandbox, provider: str, numbers: Sequence[int], days: int) -> dict[Row, Row]:
    """What the partner has now, row by row, as the tables should have it."""
    now = sandbox.sandbox.now()
    rows: dict[Row, Row] = {}
    for number in numbers:
        window = window_of(sandbox, number, days, now)
        said = true_days(sandbox.sandbox, provider, number, window, now)
        tour = sandbox.sandbox.tours.tour(number)
        assert tour is not None
        for slot in said.slots:
            rows |= _rows(said, slot, slot.utc_offset or _offset(slot, tour.zone))
    return rows


def _offset(slot: Slot, zone: Any) -> timedelta:
    found = slot.local_start.replace(tzinfo=zone).utcoffset()
    assert found is not None
    return found


def _rows(said: ProductDays, slot: Slot, offset: timedelta) -> dict[Row, Row]:
    where = (said.symbol, slot.option_id, slot.slot_id)
    starts = (slot.local_start - offset).replace(tzinfo=UTC)
    fields = (slot.local_start, slot.local_end, starts, slot.status.value, slot.remaining, slot.capacity)
    rows: dict[Row, Row] = {("slots", *where): (*fields, slot.bookable_until)}
    for offer in slot.offers:
        rows[("slot_prices", *where, offer.category_id)] = _price(slot, offer)
        rows[("pax_availability", *where, offer.category_id)] = (
            *(offer.minimum, offer.maximum, offer.remaining, offer.is_primary),
        )
    return rows


def _price(slot: Slot, offer: PaxOffer) -> Row:
    return offer.final, offer.original, slot.currency, slot.currency_scale


def database(core: Core, sandbox: RunningSandbox, numbers: Sequence[int], provider: str, days: int) -> Stored:
    """What is stored of these products on their next days, but for what has vanished."""
    now = sandbox.sandbox.now()
    windows = [window_of(sandbox, number, days, now) for number in numbers]
    given = {
        "symbols": [symbol_of(provider, number) for number in numbers],
        "first": [window.start for window in windows],
        "last": [window.end for window in windows],
    }
    asked = (
        "JOIN unnest(CAST(:symbols AS text[]), CAST(:first AS date[]), CAST(:last AS date[]))"
        " AS a (symbol, first, last) ON s.symbol = a.symbol AND s.local_day BETWEEN a.first AND a.last"
        " AND s.status <> 'vanished'"
    )
    key = "s.symbol, s.option_id, s.slot_id"
    offers = f"JOIN pricing.slots s USING (slot_key) JOIN pricing.pax_categories c USING (category_key) {asked}"
    queries = {
        "slots": (
            3,
            f"SELECT {key}, s.local_start, s.local_end, s.starts_at, s.status, s.remaining, s.capacity,"
            f" s.bookable_until, s.ctid::text, s.xmin::text FROM pricing.slots s {asked}",
        ),
        "slot_prices": (
            4,
            f"SELECT {key}, c.category_id, t.final_price, t.original_price, t.currency, t.scale, t.ctid::text,"
            f" t.xmin::text FROM pricing.slot_prices t {offers} WHERE t.final_price IS NOT NULL",
        ),
        "pax_availability": (
            4,
            f"SELECT {key}, c.category_id, t.minimum, t.maximum, t.remaining, t.is_primary, t.ctid::text,"
            f" t.xmin::text FROM pricing.pax_availability t {offers} WHERE t.is_offered",
        ),
    }
    stored = Stored({}, {})
    for table, (width, sql) in queries.items():
        for row in core.rows(sql, **given):
            where = (table, *row[:width])
            stored.fields[where], stored.versions[where] = tuple(row[width:-2]), tuple(row[-2:])
    return stored


def all_versions(core: Core) -> set[Row]:
    """Every row version of current belief: each write makes another one."""
    return {
        (table, *row) for table in TABLES for row in core.rows(f"SELECT ctid::text, xmin::text FROM pricing.{table}")
    }


class moving:
    """The clock goes on by so many seconds, ten times a second, while a worker waits for limits and pauses."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.1):
            self._clock.advance(self._seconds)
