"""Somebody else may write to the place of the files of history: what is theirs is never read as a price of ours."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting, files
from pricing_pipeline.prices.files import Store, open_store, schema
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_history_files import closes, days, move_days, put
from pricing_pipeline_tests.support.filing import export_all, keep

MARCH = date(2020, 3, 1)


@pytest.fixture
def store(core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder with moved months."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    found = open_store(load_settings())
    move_days(core, found, 70)
    return found


def _forge(path: Path) -> bytes:
    """The same file with another price."""
    table = parquet.read_table(path, partitioning=None)
    row = table.schema.get_field_index("close")
    prices = pa.array([Decimal("666.66")] * table.num_rows, table.schema.field(row).type)
    sink = pa.BufferOutputStream()
    parquet.write_table(table.set_column(row, table.schema.field(row), prices), sink, compression="zstd")
    return bytes(sink.getvalue())


def _swapped(path: Path) -> None:
    path.write_bytes((path.parents[1] / "month=2020-04" / path.name).read_bytes())


def _forged(path: Path) -> None:
    path.write_bytes(_forge(path))


def _linked(path: Path) -> None:
    elsewhere = path.parents[3] / "elsewhere.parquet"
    elsewhere.write_bytes(_forge(path))
    path.unlink()
    path.symlink_to(elsewhere)


def _endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_f12_a_file_that_the_pipeline_has_not_written_is_not_read(
    core: Core, store: Store, request: pytest.FixtureRequest
) -> None:
    """Whether forged, that of another month, a link, a terabyte of nothing or a pipe; and the API says not where."""
    path = Path(store.path(DAILY, MARCH))
    kept = path.read_bytes()
    reader = request.getfixturevalue("api").caller(Scope.READ)
    for attack in (_forged, _swapped, _linked, _endless, _piped):
        assert closes(core)[MARCH] == Decimal("10.50")
        attack(path)
        with pytest.raises(PricingError):
            pytest.fail(f"{attack.__name__} was read: {closes(core)[MARCH]}")
        answer = reader.ask("GET", f"history/{DAILY}/AAPL?from=2020-03-01&to=2020-03-05")
        assert answer.status_code == 503, attack.__name__
        assert str(path.parents[2]) not in answer.text, attack.__name__
        path.unlink()
        path.write_bytes(kept)


def test_f12_a_forged_file_is_noticed_also_after_the_right_one_was_read(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A digest that is remembered is that of bytes that nobody has changed since, whatever their time and size."""
    path = Path(store.path(DAILY, MARCH))
    monkeypatch.setattr(files, "_SETTLED_SECONDS", 0.0)
    time.sleep(0.01)
    before = closes(core)
    there, kept = path.stat(), path.read_bytes()
    path.write_bytes(kept[:-40] + b"x" * 40)
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))
    with pytest.raises(PricingError, match="is not the file that the pipeline has written"):
        closes(core)
    path.write_bytes(kept)
    assert closes(core) == before


def test_f12_an_export_neither_takes_over_nor_loses_what_somebody_else_has_written(
    core: Core, clock: Clock, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The file of a moved month is not extended; that of a month in the database is written again."""
    clock.advance(60)
    put(core, (MARCH, 7777), (date(2020, 6, 4), 8888))
    path = Path(store.path(DAILY, MARCH))
    kept = path.read_bytes()
    _forged(path)
    with pytest.raises(PricingError, match="is not the file that the pipeline has written"):
        exporting.export(core.engine, store, DAILY, MARCH)
    path.write_bytes(kept)
    export_all(core, store)
    june = Path(store.path(DAILY, date(2020, 6, 1)))
    written = june.read_bytes()
    _forged(june)
    others = june.read_bytes()
    again = exporting.export(core.engine, store, DAILY, date(2020, 6, 1))
    assert again is not None
    assert again.is_new
    assert june.read_bytes() == written
    # It may be the file of another database with the same PRICING_EXPORT_URL, and the only one with its moved values.
    (aside,) = Path(store.root).glob("_set_aside/data_type=equity_daily/month=2020-06/*.parquet")
    assert aside.read_bytes() == others
    assert str(aside) in caplog.text
    clock.advance(60)
    put(core, (date(2020, 6, 4), 8889))
    export_all(core, store)
    assert len(list(Path(store.root).glob("_set_aside/**/*.parquet"))) == 1, "its own files are replaced"


def test_f12_reads_go_on_while_a_month_is_written_anew_and_after_an_export_that_died(
    core: Core, clock: Clock, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, between and after its steps; two exports at once leave a file that is known, too."""
    before = closes(core) | {MARCH: Decimal("77.77")}
    clock.advance(60)
    put(core, (MARCH, 7777))
    publish = Store.publish

    def dying(self: Store, written: files.WrittenFile, data_type: str, month: date) -> None:
        assert closes(core) == before
        publish(self, written, data_type, month)
        assert closes(core) == before
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "publish", dying)
        with pytest.raises(KeyboardInterrupt):
            exporting.export(core.engine, store, DAILY, MARCH)
    assert closes(core) == before
    clock.advance(60)
    put(core, (date(2020, 3, 2), 9999))
    threads = [
        threading.Thread(target=_try_to_export, args=(core, store), name=f"export-{number}") for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert closes(core) == before | {date(2020, 3, 2): Decimal("99.99")}
    export_all(core, store)
    assert closes(core) == before | {date(2020, 3, 2): Decimal("99.99")}


def _try_to_export(core: Core, store: Store) -> None:
    with suppress(PricingError):  # another one came between
        exporting.export(core.engine, store, DAILY, MARCH)


def test_f12_nothing_is_written_or_removed_where_a_link_leads(core: Core, store: Store, tmp_path: Path) -> None:
    """Who may write to the folder could make the pipeline remove its own home, or write elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mine = [elsewhere / "master.key", elsewhere / f"{'0' * 32}.parquet"]
    for path in mine:
        path.write_text("mine")
        os.utime(path, (0, 0))
    unfinished = Path(store.root) / "_unfinished"
    other = unfinished / "notes.txt"
    other.write_text("theirs")
    os.utime(other, (0, 0))
    store.drop_abandoned()
    assert other.exists()
    other.unlink()
    unfinished.rmdir()
    unfinished.symlink_to(elsewhere)
    with pytest.raises(PricingError, match="is a link"):
        store.drop_abandoned()
    with pytest.raises(PricingError, match="is a link"):
        store.write(schema(), [])
    unfinished.unlink()
    june = Path(store.path(DAILY, date(2020, 6, 1))).parent
    june.symlink_to(elsewhere)
    put(core, (date(2020, 6, 1), 5))
    with pytest.raises(PricingError, match="is a link"):
        exporting.export(core.engine, store, DAILY, date(2020, 6, 1))
    assert sorted(elsewhere.iterdir()) == sorted(mine)


def test_f12_what_a_worker_can_delete_is_bounded_by_the_owners_policy(core: Core) -> None:
    """A worker says itself what it has compared, so it can delete old months; never those that a type keeps."""
    put(core, *days(MARCH, 70))
    forge = "SELECT pricing.note_export('equity_daily', :month, 1, 0, 1, 'nothing', 1, 6, 1, 0)::text"
    months = [date(2020, 3, 1), date(2020, 4, 1), date(2020, 5, 1)]
    for month in months:
        core.call(forge, month=month)
    isolated = core.engine.execution_options(isolation_level="REPEATABLE READ")

    def move(verified: int) -> int:
        with isolated.connect() as connection:
            left = connection.exec_driver_sql(
                f"SELECT pricing.move_month('equity_daily', '2020-03-01', {verified})"
            ).scalar_one()
            connection.commit()
            return int(left)

    with pytest.raises(DBAPIError, match="must not move"):
        move(31)
    keep(core, 3)
    assert move(31) == 31
    assert core.one("SELECT count(*) FROM pricing.price_history") == 39
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 0
