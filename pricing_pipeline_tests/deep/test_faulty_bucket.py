"""A bucket that fails half-way, answers with other bytes, or says that it has what it has not: no value is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting, moved_values, price_reader
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_history_files import MARCH, closes, due, move_days, put
from pricing_pipeline_tests.support.bucket_server import OPTIONS, Bucket, Request, serving
from pricing_pipeline_tests.support.filing import FIRST, LAST, export_all


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket on loopback, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    there = Bucket()
    with serving(there) as address:
        monkeypatch.setenv("PRICING_EXPORT_URL", f"s3://history/prices?{OPTIONS}{address}")
        yield there


@pytest.fixture
def store(core: Core, bucket: Bucket) -> Store:
    """A bucket with moved months."""
    found = open_store(load_settings())
    move_days(core, found, 70)
    return found


def once(kind: str, fault: str, number: int = 0) -> Callable[[Request], str | None]:
    """One request of a kind fails: the first, or a later one."""
    asked = count()
    return lambda request: fault if request.kind == kind and next(asked) == number else None


def test_f12_other_bytes_are_read_neither_as_values_nor_as_values_of_later_reads(
    core: Core, bucket: Bucket, store: Store
) -> None:
    """Whichever answer has them, the first time and when the file is known: the read fails in words or has all."""
    before = closes(core)
    for fault in ("flipped", "short", "cut", "busy"):
        for number in (*range(6), *range(4)):
            bucket.fault = once("GET", fault, number)
            with suppress(PricingError):
                assert closes(core) == before
            bucket.fault = lambda _: None
            assert closes(core) == before, (fault, number)
            if number == 5:
                bucket.age += 60  # as if nobody had read the files
                for key, (body, _) in list(bucket.objects.items()):
                    bucket.put(key, body)


@pytest.mark.parametrize("kind", ["PART", "COMPLETE", "COPY", "DELETE"])
def test_f12_what_a_bucket_has_not_taken_takes_the_place_of_no_moved_month(
    core: Core, clock: Clock, bucket: Bucket, store: Store, kind: str
) -> None:
    """Half of the new file took the place of the only one that had the values, and the export said it was done."""
    for cents, fault in enumerate(("half", "ignored", "unheard", "late error", "busy"), 7000):
        clock.advance(60)
        put(core, (MARCH, cents))
        before = closes(core)
        bucket.fault = once(kind, fault)
        with suppress(PricingError):
            exporting.export(core.engine, store, DAILY, MARCH)
        bucket.fault = lambda _: None
        assert closes(core) == before, fault
        assert before[MARCH] == Decimal(cents) / 100
        export_all(core, store)
        assert closes(core) == before, fault
        assert due(core) == []


def test_f12_other_bytes_of_a_moved_month_get_into_no_new_file(
    core: Core, clock: Clock, bucket: Bucket, store: Store
) -> None:
    """An export writes what it reads from the old file. One other byte took three days out of a history for good."""
    for step in range(1, 9):
        clock.advance(60)
        put(core, (MARCH, 7000 + step))
        before = closes(core)
        bucket.fault, bucket.flipped_at = once("GET", "flipped", 1), step / 40
        with suppress(PricingError):
            exporting.export(core.engine, store, DAILY, MARCH)
        bucket.fault = lambda _: None
        assert closes(core) == before, step
        export_all(core, store)
        assert closes(core) == before, step


def test_f12_a_file_whose_copies_are_all_damaged_stays_where_it_was_written(
    core: Core, clock: Clock, bucket: Bucket, store: Store
) -> None:
    """It is the only one with the moved values, and the message says where it is."""
    clock.advance(60)
    put(core, (MARCH, 7777))
    before = closes(core)
    bucket.fault = lambda request: "half" if request.kind == "COPY" else None
    with pytest.raises(PricingError, match="was copied to") as refused:
        exporting.export(core.engine, store, DAILY, MARCH)
    source, path = str(refused.value).split(" times")[0].split(" was copied to ")
    with pytest.raises(PricingError, match="is not the file"):
        closes(core)
    bucket.put(path.rsplit(" ", 1)[0], bucket.objects[source][0])
    assert closes(core) == before


def test_f12_a_list_with_files_that_are_gone_stops_no_export(bucket: Bucket, store: Store) -> None:
    """Each run first removes what is abandoned; one that another run had removed was said to be missing."""
    assert any("/_unfinished/" in key for key in bucket.deleted)
    bucket.fault = once("LIST", "old")
    store.drop_abandoned()


def test_f12_a_read_may_wait_for_a_slow_bucket(core: Core, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database ended the session after 30 s, and the read said that the database did not answer."""
    load, waits = moved_values.load, list[str]()
    with core.engine.connect() as connection:

        def slow(*args: Any) -> str:
            waits.append(connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one())
            return load(*args)

        monkeypatch.setattr(moved_values, "load", slow)
        assert len(price_reader.bars(connection, "AAPL", DAILY, FIRST, LAST)) == 70
        connection.commit()
        after = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one()
    assert (waits, after) == (["10min"], "30s")
