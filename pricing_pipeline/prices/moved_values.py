"""Read moved values from their files, with DuckDB.

db/functions/prices/history.sql gets them as an argument and merges them with the stored values. So one rule says what
was believed when, and how it is adjusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from pricing_pipeline.db.query_loader import named, query
from pricing_pipeline.domain.windows import Window, months_of
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import files
from pricing_pipeline.prices.files import ROW_GROUP_ROWS, Known, OtherFile, Store
from pricing_pipeline.settings import load_settings_as_guest

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyarrow import NativeFile
    from sqlalchemy import Connection, Row

T = TypeVar("T")

_NOT_INSTALLED = (
    "old months of this history are in files, and reading them needs DuckDB, which is not installed. The extra parquet "
    "brings it: in the folder of the clone, .venv/bin/python -m pip install -e '.[parquet]'"
)


@dataclass(frozen=True)
class Needed:
    """The part of a read that is in files: spans of days with moved values, and the files of their months."""

    spans: Sequence[Row[Any]]
    """By `first_day` and `last_day`."""
    written: dict[date, Known]


def needed(connection: Connection, wanted: Mapping[str, Any]) -> Needed | None:
    """The part of a read that is in files now; None if nothing is."""
    spans = connection.execute(query("exports.moved_spans"), wanted).all()
    if not spans:
        return None
    months = sorted({month for span in spans for month in months_of(Window(span.first_day, span.last_day))})
    written = known(connection, wanted["data_type"], months)
    return Needed(spans, {month: written.get(month, {}) for month in months})


def complete(connection: Connection, wanted: Sequence[Mapping[str, Any]], read: Callable[[str | None], T]) -> T:
    """The result of `read` with the moved values of some pairs, for `pricing.read_moved`; None if nothing has moved.

    It reads again if a file was written or a month was moved meanwhile: the files that it read may lack what the
    database no longer has. If nothing had moved before, the database refuses such a read.
    """

    def look() -> list[Needed | None]:
        return [needed(connection, one) for one in wanted]

    now = look()
    if any(now):
        connection.execute(query("exports.wait_for_files"))
    while True:
        before = now
        try:
            moved = [
                {"data_type": one["data_type"], "symbol": one["symbol"], "rows": load(one, files)}
                for one, files in zip(wanted, before, strict=True)
                if files is not None
            ]
            found = read(json.dumps(moved) if moved else None)
        except OtherFile:
            if (now := look()) == before:
                raise
        else:
            if not any(before) or (now := look()) == before:
                return found


def load(wanted: Mapping[str, Any], needed: Needed) -> list[dict[str, Any]]:
    """The moved values of a read.

    Raises OtherFile if a file was replaced in the meantime, and another PricingError if one cannot be read: the result
    would lack its values.
    """
    store = files.open_store(load_settings_as_guest())
    data_type, spans = wanted["data_type"], needed.spans
    arguments = [
        wanted["symbol"],
        [span.first_day for span in spans],
        [span.last_day + timedelta(days=1) for span in spans],
    ]
    values: list[dict[str, Any]] = []
    with _duckdb(store) as session:
        for month, written in needed.written.items():
            with store.reading(data_type, month, written) as source:
                session.register("filed", _rows(source))
                rows = session.execute(named("moved_values.of_symbol"), arguments)
                names = [column[0] for column in rows.description]
                values += [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
                session.unregister("filed")
    return values


def known(connection: Connection, data_type: str, months: list[date]) -> dict[date, Known]:
    """The files of months that the pipeline has written, or is about to put into their place."""
    rows = connection.execute(query("exports.known"), {"data_type": data_type, "months": months})
    return {row.month: row.known for row in rows}


def merged(store: Store, data_type: str, month: date, written: Known, stored: Any) -> Iterator[Any]:
    """The rows of a month's file and of the database, in batches, by symbol and time."""
    with store.reading(data_type, month, written) as source, _duckdb(store) as session:
        session.register("filed", _rows(source))
        session.register("arriving", stored)
        session.execute(named("moved_values.take"))
        yield from session.sql(named("moved_values.merged")).to_arrow_reader(ROW_GROUP_ROWS)


def _rows(source: NativeFile) -> Any:
    from pyarrow import dataset

    format_ = dataset.ParquetFileFormat()
    return dataset.FileSystemDataset([format_.make_fragment(source)], files.schema(), format_)


@contextmanager
def _duckdb(store: Store) -> Iterator[DuckDBPyConnection]:
    """A session of DuckDB that opens no file itself: it reads only the rows that it is given from this store."""
    try:
        import duckdb
    except ImportError as error:
        raise PricingError(_NOT_INSTALLED) from error

    with (
        files.translated_errors(store.root),
        duckdb.connect(config={"enable_external_access": "false", "threads": "2", "memory_limit": "256MB"}) as session,
    ):
        session.execute(named("moved_values.use_utc"))
        try:
            yield session
        except duckdb.Error as error:  # its text contains the store's error
            raise OSError(str(error)) from error
