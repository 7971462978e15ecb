"""Months of history as files: what is in them, when they are due, and that reads find moved values."""

from __future__ import annotations

import errno
import hashlib
import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import FilesError, PricingError, SettingsError
from pricing_pipeline.prices import exporting, price_reader
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.filing import (
    FIRST,
    LAST,
    export_all,
    keep,
    lose,
    move_all,
)

SYMBOLS = ("FA", "fa.X")
MARCH = date(2020, 3, 1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


def put(core: Core, *days_and_amounts: tuple[date, int], symbol: str = "AAPL", call: int = 8) -> None:
    """Store values as an answer does; others in the place of what is there."""
    while core.call(
        "SELECT is_overtaken FROM pricing.store_rows('equity_daily', :call, (SELECT array_agg(ROW('equity_daily',"
        " :symbol, at, amount, NULL, NULL, NULL, 2, 'USD', NULL, 'twelvedata', :call, NULL, 'raw', NULL, NULL)"
        "::pricing.price_history) FROM unnest(CAST(:times AS timestamptz[]), CAST(:amounts AS bigint[])) AS u (at,"
        " amount)))",
        symbol=symbol,
        times=[midnight(day) for day, _ in days_and_amounts],
        amounts=[amount for _, amount in days_and_amounts],
        call=call,
    ):
        pass


def days(first: date, count: int, amount: int = 1050) -> list[tuple[date, int]]:
    return [(first + timedelta(days=day), amount + day) for day in range(count)]


def move_days(core: Core, store: Store, count: int) -> None:
    """Store values of so many days since the first of March, and move what may move of them."""
    put(core, *days(MARCH, count))
    keep(core, 3)
    export_all(core, store)
    move_all(core, store)


def closes(core: Core, as_of: datetime | None = None, symbol: str = "AAPL") -> dict[date, Decimal]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, symbol, DAILY, FIRST, LAST, as_of=as_of)
    return {bar.observed_at.date(): bar.close for bar in found}


def due(core: Core) -> list[date]:
    with core.engine.connect() as connection:
        return [month.month for month in exporting.months(connection, DAILY) if month.is_due]


def is_there(store: Store, month: date) -> bytes | None:
    path = Path(store.path(DAILY, month))
    return path.read_bytes() if path.exists() else None


def test_f12_an_unchanged_month_is_left_alone_and_a_changed_one_is_due_again(
    core: Core, clock: Clock, store: Store
) -> None:
    put(core, *days(MARCH, 40))
    assert due(core) == [MARCH, date(2020, 4, 1)]
    first = export_all(core, store)
    assert [(one.month.month, one.versions, one.is_new) for one in first] == [
        (MARCH, 31, True),
        (date(2020, 4, 1), 9, True),
    ]
    assert due(core) == []
    there = is_there(store, MARCH)
    assert there is not None
    assert hashlib.sha256(there).hexdigest() == first[0].sha256
    stamp = Path(store.path(DAILY, MARCH)).stat().st_mtime_ns
    again = exporting.export(core.engine, store, DAILY, MARCH)
    assert again is not None
    assert not again.is_new
    assert Path(store.path(DAILY, MARCH)).stat().st_mtime_ns == stamp
    clock.advance(60)
    put(core, (MARCH, 1111))
    assert due(core) == [MARCH]
    assert [(one.versions, one.is_new) for one in export_all(core, store)] == [(32, True)]
    lose(core, "observed_at = '2020-04-02Z'")
    assert due(core) == [date(2020, 4, 1)]
    unfinished = Path(store.root) / "_unfinished"
    assert list(unfinished.iterdir()) == []


def test_f12_a_file_has_every_digit_and_its_lineage_for_pandas_and_duckdb(
    core: Core, clock: Clock, store: Store
) -> None:
    put(core, (MARCH, 123456789012345678))
    believed = core.clock()
    clock.advance(60)
    put(core, (MARCH, 1050), call=9)
    export_all(core, store)
    frame = pd.read_parquet(store.path(DAILY, MARCH), partitioning=None)
    assert [str(value) for value in frame["close"]] == [
        "1234567890123456.780000",
        "10.500000",
    ]
    assert list(frame["call_id"]) == [8, 9]
    assert list(frame["provider"]) == ["twelvedata"] * 2
    assert frame["revised_at"].isna().tolist() == [False, True]
    assert frame["recorded_at"][0].to_pydatetime() <= believed
    found = duckdb.sql(
        "SELECT data_type, month, close::VARCHAR"
        f" FROM read_parquet('{store.root}/*/*/*.parquet', hive_partitioning = true) WHERE revised_at IS NULL"
    )
    assert found.fetchall() == [(DAILY, "2020-03", "10.500000")]


def test_f12_nothing_leaves_the_database_that_the_file_does_not_have(core: Core, clock: Clock, store: Store) -> None:
    """Neither by default, nor from a file that is damaged, missing or older, nor what comes meanwhile."""
    put(core, *days(MARCH, 70))
    export_all(core, store)
    assert move_all(core, store) == 0
    keep(core, 3)
    rows = core.one("SELECT count(*) FROM pricing.price_history")
    there = is_there(store, MARCH)
    assert there is not None
    path = Path(store.path(DAILY, MARCH))
    clock.advance(60)
    put(core, (MARCH, 999))
    with pytest.raises(PricingError, match=r"does not have what the database has.*export run --type equity_daily"):
        exporting.move(core.engine, store, DAILY, MARCH)
    export_all(core, store)
    newer = path.read_bytes()
    path.write_bytes(there)  # as from an old backup
    with pytest.raises(PricingError, match="does not have what the database has"):
        exporting.move(core.engine, store, DAILY, MARCH)
    path.write_bytes(newer[:-100])
    with pytest.raises(PricingError):
        exporting.move(core.engine, store, DAILY, MARCH)
    path.unlink()
    with pytest.raises(PricingError, match="not where it was written"):
        exporting.move(core.engine, store, DAILY, MARCH)
    assert core.one("SELECT count(*) FROM pricing.price_history") == rows
    with pytest.raises(DBAPIError, match="REPEATABLE READ"):
        core.call("SELECT pricing.move_month('equity_daily', '2020-03-01', 32)")


def test_f12_a_file_is_on_the_disk_before_its_values_leave(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its folders: a machine that loses its power must have the values in one place or the other."""
    put(core, *days(MARCH, 70))
    export_all(core, store)
    keep(core, 3)
    on_disk: list[str] = []

    def full_disk(descriptor: int) -> None:
        on_disk.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        if len(on_disk) == 4:
            raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FilesError, match="the disk is full"):
        exporting.move(core.engine, store, DAILY, MARCH)
    file = Path(store.path(DAILY, MARCH))
    assert on_disk == [str(file), str(file.parent), str(file.parent.parent), store.root]
    assert core.one("SELECT count(*) FROM pricing.price_history") == 70
    monkeypatch.undo()
    assert exporting.move(core.engine, store, DAILY, MARCH) == 31


def test_f12_a_worker_moves_no_month_that_its_type_keeps(core: Core, store: Store) -> None:
    """The rights are the function's: only months that the owner's policy names, and only as they were compared."""
    put(core, *days(MARCH, 70))
    export_all(core, store)
    isolated = core.engine.execution_options(isolation_level="REPEATABLE READ")

    def forced(verified: int) -> str:
        with isolated.connect() as connection, pytest.raises(DBAPIError) as refused:
            connection.exec_driver_sql(f"SELECT pricing.move_month('equity_daily', '2020-03-01', {verified})")
        return str(refused.value)

    assert "must not move" in forced(31)
    keep(core, 3)
    assert "30 values" in forced(30)
    for statement in (
        "DELETE FROM pricing.price_history",
        "DELETE FROM pricing.moved_days",
        "DELETE FROM pricing.exported_months",
    ):
        with core.engine.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
            connection.exec_driver_sql(statement)


def test_f12_a_correction_of_a_month_that_has_left_is_read_and_exported(core: Core, clock: Clock, store: Store) -> None:
    """What is believed since is the new value; what was believed until then is the one in the file."""
    put(core, *days(MARCH, 70))
    keep(core, 3)
    export_all(core, store)
    then = core.clock()
    before = closes(core)
    move_all(core, store)
    clock.advance(3600)
    put(core, (MARCH, 7777))
    assert closes(core) == before | {MARCH: Decimal("77.77")}
    assert closes(core, then) == before
    assert due(core) == [MARCH]
    assert [one.versions for one in export_all(core, store)] == [32]
    assert due(core) == []
    assert closes(core) == before | {MARCH: Decimal("77.77")}
    assert closes(core, then) == before
    frame = pd.read_parquet(store.path(DAILY, MARCH), partitioning=None)
    assert [str(close) for close in frame["close"][:2]] == ["10.500000", "77.770000"]
    assert frame["revised_at"][0] == frame["recorded_at"][1]


def test_f12_what_rests_on_old_values_goes_on_after_they_have_left(core: Core, store: Store) -> None:
    """No gap opens, no day is asked for again, a pair keeps its newest values, and its first day stays known."""
    put(core, *(one for one in days(date(2020, 1, 1), 120) if one[0].day != 7))
    sessions = [day for day, _ in days(date(2020, 1, 1), 120)]
    core.call(
        "SELECT pricing.store_sessions('XNYS', '2020-01-01', '2020-12-31', :days, :opens, :closes)::text",
        days=sessions,
        opens=[midnight(day) + timedelta(hours=14) for day in sessions],
        closes=[midnight(day) + timedelta(hours=20) for day in sessions],
    )
    span = (date(2020, 1, 1), date(2020, 4, 29))
    asked = {
        "gaps": "SELECT count(*) FROM pricing.gaps('equity_daily', 'AAPL', :first, :last)",
        "windows": "SELECT count(*) FROM pricing.missing_windows('equity_daily', :first, :last, ARRAY['AAPL'])",
        "standing": "SELECT pricing.history_standing('equity_daily', :first, :last, ARRAY['AAPL'])::text",
        "listed": "SELECT pricing.listed_from('equity_daily', 'AAPL')::text",
    }
    core.rows("INSERT INTO pricing.history_coverage VALUES ('equity_daily', 'AAPL', '{[2019-12-01,2020-01-05)}')")

    def answers() -> dict[str, Any]:
        return {
            name: core.one(sql, **(dict(zip(("first", "last"), span, strict=True)) if ":first" in sql else {}))
            for name, sql in asked.items()
        }

    before = answers()
    keep(core, 3)
    export_all(core, store)
    assert before["gaps"] == 4
    assert move_all(core, store) == 86
    assert answers() == before
    newest = core.one("SELECT array_agg(observed_at ORDER BY observed_at) FROM pricing.price_history")
    assert [at.date() for at in newest] == [day for day in sessions if day.day != 7][-30:]


def test_f12_a_read_that_would_lack_values_fails(core: Core, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In SQL alone, without the place of the files, or without a file: a sentence, never a shorter history."""
    put(core, *days(MARCH, 70))
    keep(core, 3)
    export_all(core, store)
    move_all(core, store)
    with pytest.raises(DBAPIError, match="have moved to files"):
        core.rows("SELECT FROM pricing.history('equity_daily', 'AAPL', '2020-03-01', '2020-05-31')")
    assert len(core.rows("SELECT FROM pricing.history('equity_daily', 'AAPL', '2020-05-01', '2020-05-31')")) == 9
    Path(store.path(DAILY, MARCH)).unlink()
    with pytest.raises(PricingError, match="not where it was written"):
        closes(core)
    monkeypatch.delenv("PRICING_EXPORT_URL")
    with pytest.raises(PricingError, match="PRICING_EXPORT_URL is not set"):
        closes(core)


def test_f12_the_command_and_http_read_what_has_left(
    core: Core, store: Store, cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    """`price history`, all four formats over HTTP, and frames give the same before and after."""
    put(core, *days(MARCH, 70))
    typed = partial(cli, export_url=store.root)
    reader = request.getfixturevalue("api").caller(Scope.READ)
    span = "from=2020-03-01&to=2020-05-31"

    def everything() -> list[Any]:
        said = typed(
            "price",
            "history",
            "AAPL",
            "--type",
            DAILY,
            "--from",
            "2020-03-01",
            "--to",
            "2020-05-31",
            "--json",
        )
        with core.engine.connect() as connection:
            frame = price_reader.history(connection, "AAPL", DAILY, FIRST, LAST, adjust="total")
        formats = ("json", "csv", "arrow", "parquet")
        bodies = [reader.ask("GET", f"history/{DAILY}/AAPL?{span}&format={name}").content for name in formats]
        return [said.json, frame.to_csv(), *bodies[:2], pa_rows(bodies[2]), parquet_rows(bodies[3])]

    before = everything()
    assert typed("type", "change", DAILY, "--keep-months", "3").exit_code == 0
    assert [row["values"] for row in typed("export", "run", "--json").json["months"]] == [31, 30, 9]
    (dry, *_) = typed("export", "move", "--dry-run", "--json").json["months"]
    assert (dry["month"], dry["values"], dry["rows_left_database"]) == ("2020-03", 31, None)
    assert core.one("SELECT count(*) FROM pricing.price_history") == 70
    assert "moved 31 rows" in typed("export", "move").stdout
    assert core.one("SELECT count(*) FROM pricing.price_history") == 30
    assert "2020-03" in typed("export", "list", "--type", DAILY).stdout
    assert everything() == before


def pa_rows(body: bytes) -> list[dict[str, Any]]:
    import pyarrow as pa

    return pa.ipc.open_stream(body).read_all().to_pylist()


def parquet_rows(body: bytes) -> list[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    return parquet.read_table(pa.BufferReader(body)).to_pylist()


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:secret@bucket/prefix",
        "s3://bucket/prefix?access_key=key&secret_key=secret",
        "gs://bucket/prefix",
        "https://bucket/prefix",
    ],
)
def test_f12_a_place_with_a_key_in_it_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Settings are shown; a key is not."""
    monkeypatch.setenv("PRICING_EXPORT_URL", url)
    with pytest.raises(SettingsError, match="PRICING_EXPORT_URL") as refused:
        load_settings()
    assert "secret" not in str(refused.value).lower().replace("aws_secret_access_key", "")
