"""Months of history as Parquet files, in a folder or a bucket: their columns, their paths, and how one is published.

exporting.py fills them, archive.py reads them. The database says what is in a month, and when its file is due.
This module alone knows file systems. It imports pyarrow, which takes a second, when it is used.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices.arrow import DECIMALS, DIGITS, NOT_INSTALLED
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from pyarrow import Schema, Table
    from pyarrow.fs import FileSystem

ROW_GROUP_ROWS = 100_000
"""Rows of a row group. One group is in memory at a time, and a reader of one symbol skips the others."""
_UNFINISHED = "_unfinished"
"""Folder of files that are being written. Readers of partitioned folders skip names that begin with _."""
_ABANDONED = timedelta(days=2)
NOT_SET = (
    "months of history have no place outside the database: PRICING_EXPORT_URL is not set. Set it to a folder, or to "
    "s3://bucket/prefix?region=..."
)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that is complete, but not in its place yet."""

    path: str
    rows: int
    file_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Store:
    """Where all files are: `data_type=<type>/month=<YYYY-MM>/prices.parquet` under a root."""

    filesystem: FileSystem
    root: str

    def path(self, data_type: str, month: date) -> str:
        """Where the file of a month is, or will be."""
        return f"{self.root}/data_type={data_type}/month={month:%Y-%m}/prices.parquet"

    def write(self, tables: Iterable[Table]) -> WrittenFile:
        """Write rows to a file that no reader finds."""
        from pyarrow import parquet

        path = f"{self.root}/{_UNFINISHED}/{uuid.uuid4().hex}.parquet"
        rows = 0
        with translated_errors(self.root):
            self._make_folder(path)
            try:
                with self.filesystem.open_output_stream(path) as stream:
                    hashing = _HashingStream(stream)
                    with parquet.ParquetWriter(hashing, schema(), compression="zstd") as writer:
                        for table in tables:
                            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
                            rows += table.num_rows
            except BaseException:
                with suppress(OSError):
                    self.filesystem.delete_file(path)
                raise
        return WrittenFile(path, rows, hashing.size, hashing.digest.hexdigest())

    def publish(self, written: WrittenFile, data_type: str, month: date) -> None:
        """Put a file into its place, in one step: a reader finds the old one or the new one."""
        path = self.path(data_type, month)
        with translated_errors(self.root):
            self._make_folder(path)
            self.filesystem.move(written.path, path)

    def drop(self, written: WrittenFile) -> None:
        """Remove a file that was not published."""
        with translated_errors(self.root):
            self.filesystem.delete_file(written.path)

    def drop_abandoned(self) -> None:
        """Remove files that a process did not finish days ago."""
        from pyarrow import fs

        with translated_errors(self.root):
            selector = fs.FileSelector(f"{self.root}/{_UNFINISHED}", allow_not_found=True)
            for file in self.filesystem.get_file_info(selector):
                if file.is_file and file.mtime is not None and file.mtime < datetime.now(UTC) - _ABANDONED:
                    self.filesystem.delete_file(file.path)

    def groups(self, data_type: str, month: date) -> Iterator[Table]:
        """The rows of a file, in the groups in which they were written."""
        from pyarrow import parquet

        with (
            translated_errors(self.root),
            self.filesystem.open_input_file(self.path(data_type, month)) as source,
        ):
            file = parquet.ParquetFile(source)
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)

    def has(self, data_type: str, month: date) -> bool:
        """Whether there is a file of a month."""
        with translated_errors(self.root):
            return bool(self.filesystem.get_file_info(self.path(data_type, month)).is_file)

    def _make_folder(self, path: str) -> None:
        if self.filesystem.type_name == "local":  # a bucket has no folders
            self.filesystem.create_dir(str(PurePosixPath(path).parent), recursive=True)


class _HashingStream:
    """A stream that counts and hashes the bytes that are written to it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.size = 0
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.size += len(data)
        self._stream.write(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True


def open_store(settings: Settings) -> Store:
    """The store that PRICING_EXPORT_URL names. Raises PricingError where none is named, or pyarrow is missing."""
    if settings.export_url is None:
        raise PricingError(NOT_SET)
    return _store_at(settings.export_url)


@cache
def _store_at(url: str) -> Store:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise PricingError(NOT_INSTALLED) from error

    if "://" not in url:
        return Store(fs.LocalFileSystem(), url.rstrip("/"))
    with translated_errors(url.partition("?")[0]):
        filesystem, root = fs.FileSystem.from_uri(url)
    return Store(filesystem, root.rstrip("/"))


@contextmanager
def translated_errors(where: str) -> Iterator[None]:
    """Raise PricingError where a store raises an error of its own; `where` names the store in the message."""
    try:
        yield
    except FileNotFoundError as error:
        raise PricingError(
            f"a file of history is not where it was written, under {where}: {error}. PRICING_EXPORT_URL must name the "
            "place with all files; bring back those that are missing from a backup."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a file that is no Parquet any more
        raise PricingError(
            f"the files of history under {where} cannot be read or written: {error}. Check PRICING_EXPORT_URL, that "
            "the folder or bucket exists, and what its key may do."
        ) from error


@cache
def schema() -> Schema:
    """The columns of a file. A row is a value that is, or was, believed from `recorded_at` until `revised_at`."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise PricingError(NOT_INSTALLED) from error

    number, time = pa.decimal128(DIGITS, DECIMALS), pa.timestamp("us", tz="UTC")
    return pa.schema(
        [
            pa.field("symbol", pa.string(), nullable=False),
            pa.field("observed_at", time, nullable=False),
            *(pa.field(name, number) for name in ("open", "high", "low")),
            pa.field("close", number, nullable=False),
            pa.field("scale", pa.int16(), nullable=False),
            pa.field("volume", number),
            pa.field("volume_scale", pa.int16()),
            *(pa.field(name, pa.string()) for name in ("currency", "adjustment", "quality", "source_text")),
            pa.field("provider", pa.string(), nullable=False),
            pa.field("call_id", pa.int64(), nullable=False),
            pa.field("recorded_at", time, nullable=False),
            pa.field("revised_at", time),
            pa.field("revised_by", pa.int64()),
        ]
    )
