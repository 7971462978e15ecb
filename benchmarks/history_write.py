"""How many daily bars a second are stored, and what does it cost to read twenty years of one symbol?

Ours is what settling a backfill's call does with its values: load what is known, judge each bar, merge with what is
stored. The peers write the same rows unjudged into a table of the same columns and key: COPY, and pandas.to_sql.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from operator import add, sub
from statistics import median
from uuid import UUID

import psycopg
from sqlalchemy import Engine

from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.calls import Call, Task
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.answers import judge
from pricing_pipeline.prices import context as contexts
from pricing_pipeline.prices import price_reader, price_writer
from pricing_pipeline.providers import flat
from pricing_pipeline.providers.values import plain_bars

TYPE = "equity_daily"
FIRST = date(2004, 1, 1)
DAYS_OF_20_YEARS = 5040
_COLUMNS = [
    *("data_type", "symbol", "observed_at", "amount", "open_amount", "high_amount", "low_amount", "scale"),
    *("currency", "volume", "provider", "call_id", "fetched_at"),
]


@dataclass(frozen=True, slots=True)
class Size:
    """Symbols and days that a round writes; `frame_rows` that pandas writes; `reads` of each kind."""

    rounds: int
    symbols: int
    days: int
    frame_rows: int
    reads: int


FULL = Size(rounds=5, symbols=40, days=DAYS_OF_20_YEARS, frame_rows=20_000, reads=20)
QUICK = Size(rounds=3, symbols=6, days=DAYS_OF_20_YEARS, frame_rows=2_000, reads=10)
TINY = Size(rounds=1, symbols=2, days=60, frame_rows=50, reads=2)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Measures first loads and repeated loads in turns with the peers, then reads of the stored rows."""
    url = server.migrated("history", as_superuser=True)
    engine = make_engine(url)
    answers = {f"H{n}": bars(f"H{n}", size.days, n) for n in range(size.symbols)}
    tuples = [_as_tuple(row) for found in answers.values() for row in found]
    rows = len(tuples)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("history_write.plain_table"))
        connection.execute(statement("history_write.instruments"), {"symbols": size.symbols})
        again: list[float] = []

        def ours() -> float:
            connection.execute(statement("history_write.empty_ours"))
            server.checkpoint()
            first = _timed(lambda: store_all(engine, answers))
            before = connection.execute(statement("history_write.versions")).fetchone()
            again.append(rows / _timed(lambda: store_all(engine, answers)))
            if connection.execute(statement("history_write.versions")).fetchone() != before:
                raise RuntimeError("the same values again wrote something; they must not")
            return rows / first

        def copied() -> float:
            connection.execute(statement("history_write.empty_plain"))
            server.checkpoint()
            return rows / _timed(lambda: copy_all(connection, tuples))

        def framed() -> float:
            connection.execute(statement("history_write.empty_plain"))
            return size.frame_rows / _timed(lambda: to_sql(engine, tuples[: size.frame_rows]))

        rates = medians({"ours": ours, "copy": copied, "pandas_to_sql": framed}, size.rounds)
        read = _reads(engine, connection, size.reads)
    engine.dispose()
    return [
        Row(
            "rows_per_second",
            "bars/s, first load",
            rates["ours"],
            {k: rates[k] for k in ("copy", "pandas_to_sql")},
        ),
        Row("rows_per_second_again", "bars/s, nothing to write", median(again), {"first_load": rates["ours"]}),
        Row(
            "read_ms",
            "ms for 20 years as a frame",
            read["frame"],
            {"bare_query": read["bare"]},
            lower_is_better=True,
        ),
        Row(
            "as_of_ms",
            "ms as believed at a time",
            read["as_of"],
            {"current": read["frame"]},
            lower_is_better=True,
        ),
    ]


def bars(symbol: str, days: int, seed: int) -> Bars:
    """Daily bars of a random walk with small steps, as a parser returns them."""
    cents, closes, wides = 5_000 + 100 * seed, [], []
    for number in range(days):
        cents += (number * 7919 + seed * 31) % 101 - 50 if cents > 2_000 else 60
        closes.append(cents)
        wides.append(cents // 100)

    def spelled(amounts: Iterable[int]) -> list[str]:
        return [f"{amount // 100}.{amount % 100:02}000" for amount in amounts]

    dates = [FIRST + timedelta(days=number * 7 // 5) for number in range(days)]
    columns = {
        "date": map(str, dates),
        "open": spelled(close - 1 for close in closes),
        "high": spelled(map(add, closes, wides)),
        "low": spelled(map(sub, closes, wides)),
        "close": spelled(closes),
        "volume": (str(100_000 + number) for number in range(days)),
    }
    lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
    read = flat.read(json.dumps({"bars": lines}, separators=(",", ":")).encode(), "bars")
    found = read and plain_bars(symbol, "USD", read[1], Window(dates[0], dates[-1]))
    if found is None:
        raise RuntimeError("the parser takes these bars for odd ones")
    return found


def store_all(engine: Engine, answers: dict[str, Bars]) -> None:
    """What settling does with a call's values, a call and a transaction for each symbol."""
    for number, (symbol, rows) in enumerate(answers.items()):
        window = Window(rows[0].observed_at.date(), rows[-1].observed_at.date())
        call = Call(
            *(number, "twelvedata", "default", TYPE, Fetcher.DAILY_BARS, window),
            tasks=(Task(number, symbol, -2, 1),),
            claim_token=UUID(int=0),
            claimed_at=datetime.now(UTC),
        )
        answer = Answer(observations=rows)
        with engine.begin() as connection:
            judged = judge(contexts.load(connection, call, answer, {symbol}))
            good = judged.verdicts[symbol].good
            if len(good) != len(rows):
                raise RuntimeError(f"of {symbol} {len(rows) - len(good)} bars were quarantined; none should be")
            price_writer.store(connection, call, good, judged.known)


def copy_all(connection: psycopg.Connection[tuple[object, ...]], rows: Sequence[tuple[object, ...]]) -> None:
    """One COPY of everything, in one transaction."""
    with connection.cursor() as cursor, cursor.copy(statement("history_write.copy")) as copy:
        for row in rows:
            copy.write_row(row)


def to_sql(engine: Engine, rows: Sequence[tuple[object, ...]]) -> None:
    """The peer that writes with pandas."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.DataFrame(rows, columns=_COLUMNS)
        frame.to_sql("copied", engine, if_exists="append", index=False)


def _as_tuple(row: Observation) -> tuple[object, ...]:
    cents = [None if price is None else int(price.scaleb(2)) for price in (row.close, row.open, row.high, row.low)]
    return (
        TYPE,
        row.symbol,
        row.observed_at,
        *cents,
        2,
        "USD",
        int(row.volume or 0),
        "twelvedata",
        0,
        datetime.now(UTC),
    )


def _reads(engine: Engine, connection: psycopg.Connection[tuple[object, ...]], times: int) -> dict[str, float]:
    """Median milliseconds of each way to read."""
    last = FIRST + timedelta(days=30 * 366)
    now = datetime.now(UTC)

    def frame(as_of: datetime | None) -> Callable[[], object]:
        def read() -> None:
            with engine.connect() as session:
                found = price_reader.history(session, "H0", TYPE, FIRST, last, as_of=as_of)
            if found.empty:
                raise RuntimeError("nothing was stored to be read")

        return read

    ways: dict[str, Callable[[], object]] = {
        "bare": lambda: connection.execute(statement("history_write.bare_query")).fetchall(),
        "frame": frame(None),
        "as_of": frame(now),
    }
    for way in ways.values():
        way()
    return medians({name: lambda way=way: _timed(way) * 1000 for name, way in ways.items()}, times)  # type: ignore[misc]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
