"""Exports, moves, reads and stores of one month at the same moment: no read lacks a value, and no file is unknown."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import Engine

from pricing_pipeline.errors import FilesError, PricingError
from pricing_pipeline.prices import exporting, moved_values, price_reader
from pricing_pipeline.prices.files import Store, WrittenFile, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_history_files import (
    MARCH,
    closes,
    days,
    due,
    is_there,
    move_days,
    put,
)
from pricing_pipeline_tests.support.filing import FIRST, LAST, export_all, keep, lose, move_all
from pricing_pipeline_tests.support.patience import PATIENCE

APRIL = date(2020, 4, 1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


def after_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, happens: Callable[[], object]) -> None:
    """Let something happen once, right after a function has returned."""
    original = getattr(owner, name)

    def interrupted(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        monkeypatch.setattr(owner, name, original)
        happens()
        return found

    monkeypatch.setattr(owner, name, interrupted)


def frame(core: Core) -> dict[date, Decimal]:
    with core.engine.connect() as connection:
        found = price_reader.history(connection, "AAPL", DAILY, FIRST, LAST)
    return {at.date(): close for at, close in zip(found.index, found["close"], strict=True)}


def adjusted(core: Core) -> dict[date, Decimal]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, FIRST, LAST, adjust="splits")
    return {bar.observed_at.date(): bar.close for bar in found}


@pytest.mark.parametrize("read", [closes, frame, adjusted])
def test_f12_a_read_beside_a_move_lacks_nothing(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch, read: Callable[[Core], dict[date, Decimal]]
) -> None:
    """It had read the file of March when April left: it had April neither from a file nor from the database."""
    put(core, *days(MARCH, 100))
    keep(core, 3)
    export_all(core, store)
    exporting.move(core.engine, store, DAILY, MARCH)
    before = read(core)
    assert len(before) == 100
    after_once(monkeypatch, moved_values, "load", lambda: exporting.move(core.engine, store, DAILY, APRIL))
    assert read(core) == before
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE observed_at < '2020-05-01'") == 0


def test_f12_a_read_beside_an_export_of_what_it_reads_goes_on(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knew the file that was there before, found another one, and was refused."""
    move_days(core, store, 100)
    put(core, (MARCH, 7777))
    before = closes(core)
    after_once(monkeypatch, moved_values, "known", lambda: exporting.export(core.engine, store, DAILY, MARCH))
    assert closes(core) == before
    assert due(core) == []


def test_f12_of_two_first_exports_at_once_the_file_is_the_one_that_is_known(
    core: Core, clock: Clock, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no row yet that both could lock. The file of one was in place, and the digest of the other was noted."""
    put(core, *days(MARCH, 31))
    has_published, may_end = threading.Event(), threading.Event()
    publish = Store.publish

    def waiting(self: Store, written: WrittenFile, data_type: str, month: date) -> None:
        publish(self, written, data_type, month)
        if threading.current_thread().name == "older-export":
            has_published.set()
            may_end.wait(PATIENCE)

    monkeypatch.setattr(Store, "publish", waiting)
    older = threading.Thread(target=_try_to_export, args=(core.engine, store), name="older-export")
    older.start()
    assert has_published.wait(PATIENCE)
    clock.advance(60)
    put(core, (MARCH, 7777))
    _try_to_export(core.engine, store)
    may_end.set()
    older.join()
    there = is_there(store, MARCH)
    assert there is not None
    assert core.one("SELECT sha256 FROM pricing.exported_months") == hashlib.sha256(there).hexdigest()
    export_all(core, store)
    assert due(core) == []
    assert len(pd.read_parquet(store.path(DAILY, MARCH), partitioning=None)) == 32
    assert list((Path(store.root) / "_unfinished").iterdir()) == []


def _try_to_export(engine: Engine, store: Store) -> None:
    with suppress(PricingError):  # another one came between
        exporting.export(engine, store, DAILY, MARCH)


@pytest.mark.parametrize("meanwhile", ["a correction", "another move", "another export"])
def test_f12_a_move_that_another_session_crosses_changes_nothing_and_says_so(
    core: Core, clock: Clock, store: Store, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """An error of the database ended the run of the schedule, and the months after this one waited for a day."""
    put(core, *days(MARCH, 100))
    keep(core, 3)
    export_all(core, store)
    happens: dict[str, Callable[[], object]] = {
        "a correction": lambda: put(core, (MARCH, 7777)),
        "another move": lambda: exporting.move(core.engine, store, DAILY, MARCH),
        "another export": lambda: exporting.export(core.engine, store, DAILY, MARCH),
    }
    clock.advance(60)
    after_once(monkeypatch, Store, "make_durable", happens[meanwhile])
    with pytest.raises(PricingError, match="another session"):
        exporting.move(core.engine, store, DAILY, MARCH)
    before = {MARCH: Decimal("77.77")} if meanwhile == "a correction" else {}
    export_all(core, store)
    move_all(core, store)
    assert closes(core) == {day: Decimal(cents) / 100 for day, cents in days(MARCH, 100)} | before


def test_f12_a_month_that_has_left_neither_leaves_nor_is_lost_once_more(core: Core, store: Store) -> None:
    """Two moves find the same months, and a person may choose a month of which the database has nothing."""
    move_days(core, store, 100)
    before = closes(core)
    with pytest.raises(PricingError, match="has moved already"):
        exporting.move(core.engine, store, DAILY, MARCH)
    again = exporting.export(core.engine, store, DAILY, MARCH)
    assert again is not None
    assert (again.versions, again.is_new) == (31, False)
    assert closes(core) == before


def test_f12_a_month_whose_values_are_gone_gets_an_empty_file(core: Core, store: Store) -> None:
    put(core, *days(MARCH, 40))
    export_all(core, store)
    lose(core, "observed_at >= '2020-04-01'")
    assert [(one.month.month, one.versions) for one in export_all(core, store)] == [(APRIL, 0)]
    assert due(core) == []


@pytest.mark.parametrize("fails_at", [1, 2])
def test_f12_a_file_is_on_the_disk_before_it_takes_the_place_of_the_only_one(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """With its name, before the database knows it: a machine that loses its power has the old one or the new one."""
    move_days(core, store, 100)
    put(core, (MARCH, 7777))
    before = closes(core)
    file = Path(store.path(DAILY, MARCH))
    there, forced = is_there(store, MARCH), list[tuple[str, bool]]()

    def full_disk(descriptor: int) -> None:
        forced.append((os.readlink(f"/proc/self/fd/{descriptor}"), is_there(store, MARCH) == there))
        if len(forced) == fails_at:
            raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FilesError, match="the disk is full"):
        exporting.export(core.engine, store, DAILY, MARCH)
    assert closes(core) == before
    assert due(core) == [MARCH]
    export_all(core, store)
    monkeypatch.undo()
    first, *places = forced[fails_at if fails_at == 1 else 0 :]
    assert (Path(first[0]).parent.name, first[1]) == ("_unfinished", True)
    own_and_folders = [str(file), str(file.parent), str(file.parent.parent), store.root]
    assert [place for place, _ in places[-4:]] == own_and_folders
    assert not any(is_old for _, is_old in places)


def test_f12_what_was_stored_before_the_clock_was_set_back_stays_in_the_file(
    core: Core, clock: Clock, store: Store
) -> None:
    """The file is the only place that has it."""
    move_days(core, store, 100)
    clock.advance(-3600)
    put(core, (MARCH, 7777))
    export_all(core, store)
    found = pd.read_parquet(store.path(DAILY, MARCH), partitioning=None)
    first = found[found["observed_at"] < pd.Timestamp(MARCH + timedelta(days=1), tz="UTC")]
    assert [str(close)[:5] for close in first["close"]] == ["10.50", "77.77"]
    assert closes(core)[MARCH] == Decimal("77.77")


def test_f12_a_month_moves_to_the_file_that_is_noted_and_to_no_other(
    core: Core, clock: Clock, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export had died before its note, and the move took its file: reads accepted the one before it, too."""
    put(core, *days(MARCH, 70))
    keep(core, 3)
    export_all(core, store)
    older = is_there(store, MARCH)
    assert older is not None
    clock.advance(60)
    put(core, (MARCH, 7777))
    before = closes(core)
    with monkeypatch.context() as patch:
        after_once(patch, Store, "publish", _die)
        with pytest.raises(KeyboardInterrupt):
            exporting.export(core.engine, store, DAILY, MARCH)
    with pytest.raises(PricingError, match="does not have what the database has"):
        exporting.move(core.engine, store, DAILY, MARCH)
    export_all(core, store)
    _announce_another(core)
    move_all(core, store)
    assert closes(core) == before
    Path(store.path(DAILY, MARCH)).write_bytes(older)
    with pytest.raises(FilesError, match="is not the file that the pipeline has written"):
        closes(core)
    assert core.one("SELECT DISTINCT coming::text FROM pricing.exported_months WHERE moved_at IS NOT NULL") == "{}"


def _die() -> None:
    raise KeyboardInterrupt


def _announce_another(core: Core) -> None:
    core.call("SELECT pricing.announce_export('equity_daily', '2020-03-01', 7, 'another')::text")
