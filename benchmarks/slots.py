"""How long does it take to read a month of one product among a million slots, and to store a day that has changed?

Ours are the product's own read and store, with history, freshness and lineage. The peers read the same rows by a bare
indexed query, and write everything that an answer lists into plain tables of the same columns and keys.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Engine

from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.answers import Answer, Stored
from pricing_pipeline.domain.calls import Call, Task
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxOffer, ProductDays, Slot, SlotStatus
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.inventory import availability, storage
from pricing_pipeline.inventory.availability import Question

FIRST = date(2031, 3, 3)
DAYS, A_DAY = 30, 10
_SEED = 7
_PLACES = 1_000_000
"""Enough that a slot never has the same number left twice."""
_calls = count(2)


@dataclass(frozen=True, slots=True)
class Size:
    """Products with 300 slots each; how often each way to read and to store is measured."""

    products: int
    rounds: int


FULL = Size(products=3_334, rounds=200)
QUICK = Size(products=200, rounds=50)
TINY = Size(products=3, rounds=2)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Reads, then changed and unchanged days, each of another product; the peers in turns with ours."""
    url = server.migrated("slots", as_superuser=True)
    chance = random.Random(_SEED)  # noqa: S311 - which product comes next is no secret
    engine = make_engine(url)
    with psycopg.connect(url, autocommit=True) as connection:
        slots = _fill(connection, size.products)
        server.checkpoint()

        def any_product() -> str:
            return f"P{chance.randint(1, size.products)}"

        read = _medians(
            {
                "ours": lambda: _read(engine, any_product()),
                "bare_query": lambda: _read_bare(connection, any_product()),
            },
            size.rounds,
        )
        stored = _medians(
            {
                "ours": lambda: _store(engine, any_product(), chance),
                "upsert_everything": lambda: _upsert(connection, any_product(), chance),
            },
            size.rounds,
        )
        symbol = any_product()
        _store(engine, symbol, random.Random(1))  # noqa: S311
        same = _medians(
            {"ours": lambda: _store(engine, symbol, random.Random(1), changes=0)},  # noqa: S311
            size.rounds,
        )
    engine.dispose()
    million = f"{slots:,} slots"
    return [
        _row("availability_ms", f"ms for {DAYS} days of a product, {million}", read),
        _row("changed_day_ms", f"ms to store a changed day of {A_DAY} slots, durably", stored),
        _row("unchanged_day_ms", "ms to find that nothing of a day has changed", same),
    ]


def _row(metric: str, unit: str, found: dict[str, float]) -> Row:
    peers = {name: value for name, value in found.items() if name != "ours"}
    return Row(metric, unit, found["ours"], peers, lower_is_better=True)


def _medians(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds of each way, measured warm and with its plan made."""
    for way in ways.values():
        way()
    return medians({name: lambda way=way: _timed(way) for name, way in ways.items()}, rounds)  # type: ignore[misc]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _fill(connection: psycopg.Connection[Any], products: int) -> int:
    connection.execute(statement("slots.arrange"))
    connection.execute(statement("slots.products"), {"products": products})
    connection.execute(statement("slots.slots"), {"first": FIRST, "days": DAYS})
    for name in ("availability", "prices", "plain_tables", "analyze"):
        connection.execute(statement(f"slots.{name}"))
    ((slots,),) = connection.execute(statement("slots.count")).fetchall()
    return int(slots)


def _read(engine: Engine, symbol: str) -> None:
    """As the command and the HTTP API read it, with what can be booked and how fresh each day is."""
    window = Window(FIRST, FIRST + timedelta(days=DAYS - 1))
    with engine.connect() as connection:
        found = availability.read(connection, Question(symbol, window, pax=2))
    if sum(len(day.slots) for day in found) != DAYS * A_DAY:
        raise RuntimeError(f"not all slots of {symbol} were read")


def _read_bare(connection: psycopg.Connection[Any], symbol: str) -> None:
    asked = {"symbol": symbol, "first_day": FIRST, "last_day": FIRST + timedelta(days=DAYS - 1)}
    if len(connection.execute(statement("slots.bare_query"), asked).fetchall()) != 2 * DAYS * A_DAY:
        raise RuntimeError(f"not all slots of {symbol} were read")


def _store(engine: Engine, symbol: str, chance: random.Random, changes: int = A_DAY) -> None:
    """An answer about a day: each slot has fewer places, and one of its two categories fewer units."""
    day = FIRST + timedelta(days=chance.randrange(DAYS))
    slots = tuple(_slot(day, hour, chance.randint(0, _PLACES)) for hour in range(8, 8 + A_DAY))
    call = Call(
        *(next(_calls), "partner", "default", "slots_of_thirty_days", Fetcher.SLOTS, None),
        tasks=(Task(1, symbol, 1, 1),),
        claim_token=UUID(int=0),
        claimed_at=datetime.now(UTC),
    )
    with engine.begin() as connection:
        done = storage.store(connection, call, Answer(records=(ProductDays(symbol, Window(day, day), slots),)))
    if done != [Stored(symbol, 0, changes)]:
        raise RuntimeError(f"{done} was stored, and {changes} slots had changed")


def _slot(day: date, hour: int, left: int) -> Slot:
    start = datetime(day.year, day.month, day.day, hour)
    offers = (
        PaxOffer("ADULT", "Adult", 2500, 3000, 1, 9, left, is_primary=True),
        PaxOffer("CHILD", "Child", 2500, 3000, 1, 9, 9),
    )
    return Slot(
        slot_id=start.isoformat(),
        option_id="DEFAULT",
        local_start=start,
        local_end=start + timedelta(hours=1),
        utc_offset=timedelta(0),
        status=SlotStatus.AVAILABLE,
        remaining=left,
        capacity=_PLACES,
        currency="EUR",
        currency_scale=2,
        offers=offers,
    )


def _upsert(connection: psycopg.Connection[Any], symbol: str, chance: random.Random) -> None:
    """The same day into plain tables: every row is written, whatever has changed."""
    day = FIRST + timedelta(days=chance.randrange(DAYS))
    starts: Sequence[datetime] = [datetime(day.year, day.month, day.day, hour) for hour in range(8, 8 + A_DAY)]
    asked = {"symbol": symbol, "starts": starts, "remaining": [chance.randint(0, _PLACES) for _ in starts]}
    with connection.transaction():
        keys = [key for (key,) in connection.execute(statement("slots.upsert_slots"), asked).fetchall()]
        connection.execute(statement("slots.upsert_offers"), {**asked, "keys": keys})
