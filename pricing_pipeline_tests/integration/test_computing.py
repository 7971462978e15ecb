"""E9: other programs compute with the files of history, and with Arrow and Parquet over HTTP, and get it right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices import arrow, exporting
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.filing import export_all, keep, move_all

pytestmark = pytest.mark.usefixtures("still")

BARS = (("2020-03-02", "409.40", "411.23", "86300000"), ("2020-03-03", "411.23", "409.4", "1000"))
RATIO, PRODUCT, SUM = Decimal("411.23") / Decimal("409.4"), Decimal("35489149000"), Decimal("35489558400")
USUAL = (pa.decimal128(18, 6), pa.decimal128(18, 0))
SPAN = {"from": "2020-03-01", "to": "2020-04-30"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


def put(core: Core, day: str, open_: str | None, close: str, volume: str | None, data_type: str = DAILY) -> None:
    """Store a bar, with as many decimals as its close is written with."""
    scale = len(close.partition(".")[2])
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, scale, currency,"
        " volume, provider, call_id, fetched_at, adjustment) VALUES (:data_type, 'AAPL', :at, :amount, :open, :scale,"
        " 'USD', :volume, 'twelvedata', 7, '2020-05-01Z', 'raw')",
        data_type=data_type,
        at=(at := datetime.fromisoformat(day).replace(tzinfo=UTC)),
        amount=int(Decimal(close).scaleb(scale)),
        open=None if open_ is None else int(Decimal(open_).scaleb(scale)),
        scale=scale,
        volume=None if volume is None else Decimal(volume),
    )
    core.rows("SELECT pricing.note_changes(:data_type, ARRAY[:at])", data_type=data_type, at=at)


def ask_duckdb(asked: str, path: str) -> list[Any]:
    with duckdb.connect() as session:
        return session.execute(asked, [path]).fetchall()


def with_duckdb(path: str) -> Any:
    asked = "SELECT max(close / open), max(close * volume), sum(close * volume) FROM read_parquet(?)"
    return ask_duckdb(asked, path)[0]


def with_polars(path: str) -> Any:
    turnover = pl.col("close") * pl.col("volume")
    return (
        pl.read_parquet(path, hive_partitioning=False)
        .select(
            (pl.col("close") / pl.col("open")).max().alias("ratio"),
            turnover.max(),
            turnover.sum().alias("sum"),
        )
        .row(0)
    )


def with_pandas(path: str) -> Any:
    frame = pd.read_parquet(path, partitioning=None)
    turnover = frame["close"] * frame["volume"]
    return (frame["close"] / frame["open"]).max(), turnover.max(), turnover.sum()


PROGRAMS: list[Callable[[str], Any]] = [with_duckdb, with_polars, with_pandas]


def test_e9_programs_compute_with_files_and_answers(api: RunningApi, core: Core, store: Store, tmp_path: Path) -> None:
    for bar in BARS:
        put(core, *bar)
    export_all(core, store)
    caller = api.caller(Scope.READ)
    answer = caller.ask("GET", f"history/{DAILY}/AAPL", params={**SPAN, "format": "parquet"})
    (tmp_path / "answer.parquet").write_bytes(answer.content)
    stream = caller.ask("GET", f"history/{DAILY}/AAPL", params={**SPAN, "format": "arrow"}).content
    parquet.write_table(pa.ipc.open_stream(stream).read_all(), tmp_path / "stream.parquet")
    for path in (
        store.path(DAILY, date(2020, 3, 1)),
        tmp_path / "answer.parquet",
        tmp_path / "stream.parquet",
    ):
        for compute in PROGRAMS:
            ratio, product, total = compute(str(path))
            assert abs(Decimal(ratio) - RATIO) < Decimal("0.000001"), path
            assert (product, total) == (PRODUCT, SUM), path
        schema = parquet.read_schema(path)
        assert (schema.field("close").type, schema.field("volume").type) == USUAL
        assert parquet.read_table(path, partitioning=None)["date"].to_pylist() == [
            date(2020, 3, 2),
            date(2020, 3, 3),
        ]


def test_e9_a_quote_has_no_trading_day(core: Core, store: Store) -> None:
    put(core, "2020-03-02", None, "411.23", None, QUOTE)
    export_all(core, store, QUOTE)
    table = parquet.read_table(store.path(QUOTE, date(2020, 3, 1)), partitioning=None)
    assert (table["date"].to_pylist(), table["symbol"].to_pylist()) == ([None], ["AAPL"])


def test_e9_files_of_a_type_stay_readable_together(core: Core, store: Store, cli: CommandLine) -> None:
    """Where a month needs more digits, the others of its type are written again, moved ones too."""
    put(core, *BARS[0])
    for day in range(1, 32):  # the newest thirty stay in the database
        put(core, f"2020-07-{day:02}", None, "12.5", "3")
    keep(core, 3)
    export_all(core, store)
    assert move_all(core, store) > 0
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE observed_at < '2020-04-01Z'") == 0
    for close, volume, types in (
        ("63000.12345678", "0.001", (pa.decimal128(18, 8), pa.decimal128(18, 3))),
        ("99999999999.5", "1", (pa.decimal128(38, 8), pa.decimal128(18, 3))),
    ):
        put(core, f"2020-0{8 + (volume == '1')}-03", None, close, volume)
        done = cli("export", "run", "--type", DAILY, "--json", EXPORT_URL=store.root).json
        months = [month["month"] for month in done["months"]]
        assert months == [months[0], *sorted(set(months) - {months[0]})], "the new one, then all others"
        assert len(months) >= 3
        assert cli("export", "run", EXPORT_URL=store.root).stdout == "No month is due.\n"
        paths = sorted(map(str, Path(store.root).glob("data_type=*/month=*/*.parquet")))
        found = [parquet.read_schema(path) for path in paths]
        assert {(one.field("close").type, one.field("volume").type) for one in found} == {types}
        expected = sorted([Decimal("411.23"), *[Decimal("12.5")] * 31, Decimal("63000.12345678")])
        expected += [Decimal(close)] * (close > "9")
        pattern = f"{store.root}/data_type={DAILY}/*/*.parquet"
        read = (
            dataset.dataset(f"{store.root}/data_type={DAILY}", partitioning="hive").to_table()["close"].to_pylist(),
            [row[0] for row in ask_duckdb("SELECT close FROM read_parquet(?)", pattern)],
            pl.scan_parquet(pattern).collect()["close"].to_list(),
            list(pd.read_parquet(f"{store.root}/data_type={DAILY}")["close"]),
        )
        for closes in read:
            assert sorted(closes) == expected


def test_e9_between_two_exports_duckdb_reads_each_digit_by_name(core: Core, store: Store) -> None:
    """What docs/storage.md tells: without union_by_name it rounds to the decimals of its first file."""
    put(core, *BARS[0])
    put(core, "2020-04-01", None, "0.12345678", None)
    for month in (date(2020, 3, 1), date(2020, 4, 1)):
        assert exporting.export(core.engine, store, DAILY, month)
    pattern = f"{store.root}/*/*/*.parquet"
    with core.engine.connect() as connection:
        assert exporting.due(connection, DAILY) == [date(2020, 3, 1)]
    for by_name, last in ((True, "0.12345678"), (False, "0.123457")):
        asked = f"SELECT close FROM read_parquet(?, union_by_name = {by_name}) ORDER BY close"
        assert ask_duckdb(asked, pattern)[0] == (Decimal(last),)
    export_all(core, store)
    asked = "SELECT close FROM read_parquet(?) ORDER BY close"
    assert ask_duckdb(asked, pattern)[0] == (Decimal("0.12345678"),)


def test_e9_an_answer_has_room_for_its_longest_number_only(core: Core) -> None:
    wide = pa.decimal128(arrow.DIGITS, arrow.DECIMALS)
    for numbers, type_ in (
        ([], pa.decimal128(18, 6)),
        ([None], pa.decimal128(18, 6)),
        (["0"], pa.decimal128(18, 6)),
        (["999999999999.999999"], pa.decimal128(18, 6)),
        (["-1000000000000"], pa.decimal128(38, 6)),
        (["0.0000001", None, "12345678901"], pa.decimal128(18, 7)),
        (["0.0000001", "123456789012"], pa.decimal128(38, 7)),
        (["0.000000000000000001"], pa.decimal128(38, 18)),
    ):
        values = [None if number is None else Decimal(number) for number in numbers]
        found = arrow.fitted(pa.table({"close": pa.array(values, wide), "volume": pa.array(values, wide)}))
        assert (found["close"].type, found["close"].to_pylist()) == (type_, values)
        assert found["volume"].to_pylist() == values
