"""Export months of history to files, and move old months out of the database.

files.py knows the files. db/functions/prices/exports.sql decides which months are due, and which may move.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.engine import driver_lines
from pricing_pipeline.db.errors import is_conflict, is_locked, statement_error
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.errors import FilesError, PricingError
from pricing_pipeline.prices import moved_values
from pricing_pipeline.prices.arrow import PRICE_DECIMALS, Digits, TableDigits
from pricing_pipeline.prices.files import ROW_GROUP_ROWS, Known, OtherFile, Store, WrittenFile, schema

if TYPE_CHECKING:
    from pyarrow import Schema, Table
    from sqlalchemy import Connection, Engine

_LOG = logging.getLogger(__name__)
_BLOCK_BYTES = 4 * 1024 * 1024
_EARLIEST, _LATEST = date(1, 1, 1), date(9999, 1, 1)


@dataclass(frozen=True, slots=True)
class Month:
    """A UTC month of a type, by its first day, and how its file stands."""

    data_type: str
    month: date
    changes: int
    """How often values of it were ever added, changed or taken out."""
    is_due: bool
    """The file is missing, or the month has changed since it was written."""
    versions: int | None
    """Values in the file: believed ones, and revisions."""
    exported_at: datetime | None
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Exported:
    """The outcome of an export for a month."""

    month: Month
    versions: int
    """Values in the file."""
    file_bytes: int
    sha256: str
    is_new: bool
    """False if the file had the same bytes already, and stayed as it is."""


@dataclass(frozen=True, slots=True)
class Movable:
    """A month that is older than its type keeps in the database; `keeps` says why it stays for now, if it does."""

    data_type: str
    month: date
    versions: int
    keeps: str | None


def types(connection: Connection) -> list[str]:
    """Every type of prices, retired ones too."""
    return list(connection.execute(query("exports.types")).scalars())


def months(connection: Connection, data_type: str, wanted: Sequence[date] = ()) -> list[Month]:
    """Months of a type that ever changed or have a file; with `wanted` only those from its first to its last."""
    first, last = (min(wanted), max(wanted)) if wanted else (_EARLIEST, _LATEST)
    rows = call_sql(connection, "exports", data_type, first, last)
    return [Month(data_type, **row) for row in rows.mappings()]


def due(connection: Connection, data_type: str) -> list[date]:
    """The months of a type whose file is missing or old."""
    return [month.month for month in months(connection, data_type) if month.is_due]


def each_due(engine: Engine, data_type: str) -> Iterator[date]:
    """The months of a type whose file is missing or old, for a caller who writes each before taking the next.

    At the end come those that were written with fewer digits than a later month has needed; each month comes at most
    twice, also when its file cannot be written.
    """
    for _ in range(2):
        with engine.connect() as connection:
            months = due(connection, data_type)
        yield from months


def export(engine: Engine, store: Store, data_type: str, month: date) -> Exported | None:
    """Write the file of a month, as the database has it at one moment; None if there is nothing to write.

    The file of a moved month keeps its rows and gets those that have come since. If the bytes are those of the present
    file, that file stays as it is.
    """
    with _snapshot(engine) as connection:
        about = next(iter(months(connection, data_type, [month])), None)
        if about is None:
            return None
        digits = _digits(connection, data_type, month)
        stored = _stored(connection, data_type, month)
        known = moved_values.known(connection, data_type, [month]).get(month, {})
        tables = moved_values.merged(store, data_type, month, known, stored) if about.moved_at else stored
        columns = digits.fit(schema())
        written = store.write(columns, _row_groups(tables, columns))
    same = {written.sha256: written.file_bytes}
    is_new = written.sha256 not in known or not store.has(data_type, month, same)
    try:
        _replace(engine, store, about, known, written, digits, is_new=is_new)
    except BaseException:
        # One of these files is the only place that has the moved values.
        if about.moved_at is None or store.has(data_type, month, {**known, **same}):
            with suppress(PricingError):  # it may be in its place already
                store.drop(written)
        raise
    return Exported(about, written.rows, written.file_bytes, written.sha256, is_new)


def _replace(
    engine: Engine,
    store: Store,
    about: Month,
    known: Known,
    written: WrittenFile,
    digits: TableDigits,
    *,
    is_new: bool,
) -> None:
    """Publish a file, unless another export or a move has changed the month since it was read.

    Reads refuse a file that the database does not know, so it is noted beforehand, too. The first file of a month has
    no row that could be locked. Of two such exports the second fails at its note, before it moves its file. A file that
    the database did not know (`known`) when the month was read is set aside.
    """
    place = (about.data_type, about.month)
    file = (written.file_bytes, written.sha256)
    if is_new:
        with engine.begin() as connection:
            call_sql(connection, "announce_export", *place, *file)
    with _translated_conflicts(about.data_type, about.month), _snapshot(engine) as connection:
        before = call_sql(connection, "lock_export", *place).first()
        if (tuple(before) if before else (None, None)) != (about.exported_at, about.moved_at):
            raise _conflict(about.data_type, about.month)
        needed = (*astuple(digits.prices), *astuple(digits.volumes))
        call_sql(connection, "note_export", *place, written.rows, about.changes, *file, *needed)
        if is_new:
            _set_unknown_aside(store, about.data_type, about.month, known)
            store.publish(written, about.data_type, about.month)
        else:
            store.drop(written)
        store.make_durable(about.data_type, about.month)
        connection.commit()


def _set_unknown_aside(store: Store, data_type: str, month: date, known: Known) -> None:
    if store.has(data_type, month, known):
        return
    kept = store.set_aside(data_type, month)
    if kept is not None:
        _LOG.warning(
            "The file of %s for %s was not written by this database. It is kept as %s. Give each database "
            "a PRICING_EXPORT_URL of its own.",
            *(data_type, f"{month:%Y-%m}", kept),
        )


@contextmanager
def _translated_conflicts(data_type: str, month: date) -> Iterator[None]:
    """Raise FilesError if another session has changed, or keeps locked, what this one is about to change."""
    try:
        yield
    except statement_error() as error:
        if is_locked(error) or is_conflict(error):
            raise _conflict(data_type, month) from None
        raise


def _conflict(data_type: str, month: date) -> FilesError:
    return FilesError(
        f"another session has exported, moved or changed {data_type} for {month:%Y-%m} in the meantime, so nothing was "
        "done. The next run of the schedule does what is still to do."
    )


def movable(connection: Connection, data_type: str | None = None) -> list[Movable]:
    """Exported months that are older than their types keep in the database, oldest first by type."""
    rows = call_sql(connection, "months_to_move", data_type)
    return [Movable(**row) for row in rows.mappings()]


def move(engine: Engine, store: Store, data_type: str, month: date) -> int:
    """Delete the values of a month from the database after finding each of them in its file; returns how many rows.

    Values that come in the meantime stay. Raises PricingError, with nothing changed, if the file differs, if a value is
    corrected in the meantime, or if the month has moved already or has to stay.
    """
    with _translated_conflicts(data_type, month), _snapshot(engine) as connection:
        if not any(row.month == month and row.keeps is None for row in movable(connection, data_type)):
            raise PricingError(
                f"{data_type} for {month:%Y-%m} has moved already, or has to stay in the database: "
                "`pricing-pipeline export move --dry-run` shows which months may move."
            )
        # Not a file that an export has announced: from now on the month has one file.
        noted = connection.execute(query("exports.noted"), {"data_type": data_type, "month": month}).scalar_one()
        filed = store.groups(data_type, month, noted)
        try:
            stored = _row_groups(_stored(connection, data_type, month), schema())
            verified = _compare(stored, filed, data_type, month)
        except OtherFile as error:
            raise _differs(data_type, month) from error
        store.make_durable(data_type, month)
        deleted = call_sql(connection, "move_month", data_type, month, verified).scalar_one()
        connection.commit()
    return int(deleted)


def _compare(stored: Iterable[Table], filed: Iterable[Table], data_type: str, month: date) -> int:
    """How many rows there are. Raises PricingError unless both have the same ones, in the same order."""
    compared, others = 0, iter(filed)
    for table in stored:
        if (other := next(others, None)) is None or not table.equals(other.cast(table.schema)):
            raise _differs(data_type, month)
        compared += table.num_rows
    if next(others, None) is not None:
        raise _differs(data_type, month)
    return compared


def _differs(data_type: str, month: date) -> PricingError:
    return PricingError(
        f"the file of {data_type} for {month:%Y-%m} does not have what the database has, so the month stays in "
        f"the database. Write the file again: pricing-pipeline export run --type {data_type} --month {month:%Y-%m}"
    )


@contextmanager
def _snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction in which every query sees the database as it is at one moment."""
    with engine.execution_options(isolation_level="REPEATABLE READ").connect() as connection:
        connection.execute(query("exports.use_utc"))
        yield connection


def _digits(connection: Connection, data_type: str, month: date) -> TableDigits:
    """The digits that all files of a type have room for, with that of a month."""
    found = connection.execute(
        query("exports.digits"), {"data_type": data_type, "month": month, "price_decimals": PRICE_DECIMALS}
    ).one()
    return TableDigits(
        Digits(found.price_whole, found.price_decimals), Digits(found.volume_whole, found.volume_decimals)
    )


def _stored(connection: Connection, data_type: str, month: date) -> Any:
    """What the database has of a month: a reader of batches."""
    columns = schema()
    import pyarrow as pa
    from pyarrow import csv

    parameters = {"data_type": data_type, "month": month}
    lines = driver_lines(connection, driver_query("exports.copy_month"), parameters)
    source = io.BufferedReader(_ByteStream(lines), _BLOCK_BYTES)
    if not source.peek(1):  # which is not CSV to pyarrow
        return pa.RecordBatchReader.from_batches(columns, [])
    return csv.open_csv(
        source,
        csv.ReadOptions(column_names=columns.names, block_size=_BLOCK_BYTES, use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types=columns, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


class _ByteStream(io.RawIOBase):
    """Pieces of bytes as one file to read."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        taken = min(len(buffer), len(self._rest))
        buffer[:taken], self._rest = self._rest[:taken], self._rest[taken:]
        return taken


def _row_groups(batches: Iterable[Any], columns: Schema) -> Iterator[Table]:
    """The rows of some batches, with these columns, as tables of ROW_GROUP_ROWS rows; the last one has the rest."""
    import pyarrow as pa

    kept: list[Any] = []
    rows = 0
    for batch in batches:
        kept.append(pa.Table.from_batches([batch]).cast(columns))
        rows += batch.num_rows
        while rows >= ROW_GROUP_ROWS:
            table = pa.concat_tables(kept)
            yield table.slice(0, ROW_GROUP_ROWS).combine_chunks()
            kept = [table.slice(ROW_GROUP_ROWS)]
            rows -= ROW_GROUP_ROWS
    if rows:
        yield pa.concat_tables(kept).combine_chunks()
