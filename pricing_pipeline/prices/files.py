"""Months of history as Parquet files, in a folder or a bucket: their columns, their paths, and how one is published.

exporting.py fills them, moved_values.py reads them. The database says what is in a month, and when its file is due.
This module alone knows file systems. It imports pyarrow, which takes a second, when it is used.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pricing_pipeline.errors import FilesError, PricingError
from pricing_pipeline.prices.arrow import DECIMALS, DIGITS, NOT_INSTALLED
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from pyarrow import NativeFile, Schema, Table
    from pyarrow.fs import FileSystem

ROW_GROUP_ROWS = 100_000
"""Rows of a row group. One group is in memory at a time, and a reader of one symbol skips the others."""
_UNFINISHED = "_unfinished"
"""Folder of files that are being written. Readers of partitioned folders pass over names that begin with _."""
_SET_ASIDE = "_set_aside"
"""Folder for unknown files that were found where a month belongs."""
_NAMES_OF_UNFINISHED = re.compile(r"[0-9a-f]{32}\.parquet")
_ABANDONED = timedelta(days=2)
_MOST_COPIES = 3
_BLOCK_BYTES = 1024 * 1024
_MOST_BLOCKS = 4
"""Blocks of a file that are kept while it is read: parts that are read one after another share them."""
_SETTLED_SECONDS = 60
"""What has changed more recently may change again without a sign: times of files have steps."""
_MOST_REMEMBERED = 10_000
NOT_SET = (
    "months of history have no place outside the database: PRICING_EXPORT_URL is not set. Set it to a folder, or to "
    "s3://bucket/prefix?region=..."
)


class OtherFile(FilesError):
    """A file of history that is not one that the pipeline has written."""


Known = Mapping[str, int]
"""Digests of the files that may be in a place, with their sizes."""


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

    def write(self, columns: Schema, tables: Iterable[Table]) -> WrittenFile:
        """Write rows with these columns to a file that no reader finds."""
        from pyarrow import parquet

        path = f"{self.root}/{_UNFINISHED}/{uuid.uuid4().hex}.parquet"
        rows = 0
        with translated_errors(self.root):
            self._make_folders(path)
            try:
                with self.filesystem.open_output_stream(path) as stream:
                    hashing = _HashingStream(stream)
                    with parquet.ParquetWriter(
                        hashing, columns, compression="zstd", store_decimal_as_integer=True
                    ) as writer:
                        for table in tables:
                            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
                            rows += table.num_rows
            except BaseException:
                with suppress(OSError):
                    self.filesystem.delete_file(path)
                raise
        return WrittenFile(path, rows, hashing.size, hashing.digest.hexdigest())

    def publish(self, written: WrittenFile, data_type: str, month: date) -> None:
        """Put a file into its place, in one step: a reader finds the old one or the new one.

        That also holds after a power failure, once `make_durable` has returned. The old file may be the only place that
        has its values.
        """
        path = self.path(data_type, month)
        with translated_errors(self.root):
            self._make_folders(path)
            if self.filesystem.type_name == "local":
                self._force_to_disk(Path(written.path))
                self.filesystem.move(written.path, path)
            else:
                self._copy(written, path)

    def _copy(self, written: WrittenFile, path: str) -> None:
        """Publish a file of a bucket. The bucket may wrongly report success, so the file is read back."""
        if not self._is_whole(written, written.path):
            raise FilesError(
                f"the bucket does not have what was written to {written.path}, so nothing was done. The next run of "
                "the schedule writes the file again."
            )
        for _ in range(_MOST_COPIES):
            self.filesystem.copy_file(written.path, path)
            if self._is_whole(written, path):
                self.filesystem.delete_file(written.path)
                return
        raise FilesError(
            f"{written.path} was copied to {path} {_MOST_COPIES} times, and each time the bucket has other bytes "
            f"there. Copy it within {_ABANDONED.days} days; then it is removed."
        )

    def set_aside(self, data_type: str, month: date) -> str | None:
        """Move a file that occupies a month's place, and return where; None if there is no file.

        It may be the file of another database that was given the same place, and the only one with its moved values.
        """
        from pyarrow import fs

        path = self.path(data_type, month)
        folder = f"{self.root}/{_SET_ASIDE}/data_type={data_type}/month={month:%Y-%m}"
        kept = f"{folder}/{uuid.uuid4().hex}.parquet"
        with translated_errors(self.root):
            if self.filesystem.get_file_info(path).type is fs.FileType.NotFound:
                return None
            self._make_folders(kept)
            if self.filesystem.type_name == "local":
                self.filesystem.move(path, kept)
            else:
                self.filesystem.copy_file(path, kept)
        return kept

    def _is_whole(self, written: WrittenFile, path: str) -> bool:
        with self.filesystem.open_input_file(path) as source:
            contents = _read_contents(source, written.file_bytes)
        return contents is not None and contents.sha256 == written.sha256

    def drop(self, written: WrittenFile) -> None:
        """Remove a file that was not published."""
        with translated_errors(self.root):
            self.filesystem.delete_file(written.path)

    def drop_abandoned(self) -> None:
        """Remove files that a process left unfinished days ago; files of others stay."""
        from pyarrow import fs

        with translated_errors(self.root):
            self._refuse_links(f"{self.root}/{_UNFINISHED}")
            selector = fs.FileSelector(f"{self.root}/{_UNFINISHED}", allow_not_found=True)
            for file in self.filesystem.get_file_info(selector):
                is_ours = file.is_file and _NAMES_OF_UNFINISHED.fullmatch(file.base_name)
                if is_ours and file.mtime is not None and file.mtime < datetime.now(UTC) - _ABANDONED:
                    with suppress(FileNotFoundError):  # another run has removed it, or the list is old
                        self.filesystem.delete_file(file.path)

    def groups(self, data_type: str, month: date, known: Known) -> Iterator[Table]:
        """The rows of a file, in the groups in which they were written. Raises what `reading` raises."""
        from pyarrow import parquet

        with self.reading(data_type, month, known) as source:
            file = parquet.ParquetFile(source)
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)

    def has(self, data_type: str, month: date, known: Known) -> bool:
        """Whether the file of a month is there, and no other in its place."""
        try:
            with self.reading(data_type, month, known):
                return True
        except PricingError:
            return False

    @contextmanager
    def reading(self, data_type: str, month: date, known: Known) -> Iterator[NativeFile]:
        """The file of a month, while it is one that the pipeline has written; nothing is parsed before that is known.

        All its bytes are read for that once in a process, and again when the store says that it has changed. A store
        may give other bytes the next time, so each block that is parsed is compared with the one that was read then.
        Raises OtherFile for any other file, also when it takes the place of the right one meanwhile.
        """
        import pyarrow as pa

        path = self.path(data_type, month)
        with translated_errors(self.root), ExitStack() as opened:
            source, descriptor = self._open(path, opened)
            version = self._version(path, descriptor)
            contents = _contents(path, version, source, known)
            if contents is None:
                raise _other(path)
            file = _ComparedFile(source, version.size, contents.blocks)
            try:
                yield opened.enter_context(pa.PythonFile(file, mode="r"))
            except Exception as error:
                if file.is_other:
                    raise _other(path) from error
                raise
            if self._version(path, descriptor) != version:
                raise _other(path)

    def make_durable(self, data_type: str, month: date) -> None:
        """Wait until the file of a month, with its folders, is on the disk. A bucket keeps what it has taken.

        The system writes to the disk some seconds later. A machine that loses its power in between loses the file.
        """
        path = Path(self.path(data_type, month))
        with translated_errors(self.root):
            self._force_to_disk(path, path.parent, path.parent.parent, Path(self.root))

    def _force_to_disk(self, *places: Path) -> None:
        if self.filesystem.type_name != "local":
            return
        for place in places:
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _open(self, path: str, opened: ExitStack) -> tuple[NativeFile, int | None]:
        """A file, and where it is a local one its descriptor: names may lead elsewhere at the next look."""
        if self.filesystem.type_name != "local":
            return opened.enter_context(self.filesystem.open_input_file(path)), None
        import pyarrow as pa

        # Something that is not a file, such as a pipe without a writer, must not keep a reader waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        file = opened.enter_context(os.fdopen(descriptor, "rb", buffering=0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _other(path)
        return opened.enter_context(pa.PythonFile(file, mode="r")), descriptor

    def _version(self, path: str, descriptor: int | None) -> _Version:
        if descriptor is not None:
            there = os.fstat(descriptor)
            return _Version(there.st_size, there.st_ctime_ns, (there.st_dev, there.st_ino, there.st_mtime_ns))
        info = self.filesystem.get_file_info(path)
        return _Version(info.size or 0, info.mtime_ns or 0, ())

    def _make_folders(self, path: str) -> None:
        if self.filesystem.type_name == "local":  # a bucket has no folders
            folder = str(PurePosixPath(path).parent)
            self._refuse_links(folder)
            self.filesystem.create_dir(folder, recursive=True)

    def _refuse_links(self, folder: str) -> None:
        """Refuse folders below the root that lead elsewhere: somebody else has made them."""
        if self.filesystem.type_name != "local":
            return
        for part in (Path(folder), *Path(folder).parents):
            if part == Path(self.root):
                return
            if part.is_symlink():
                raise FilesError(
                    f"{part} is a link, and the pipeline makes none there: files would be written or removed "
                    "elsewhere. Remove it, and let nobody else write to the folder of PRICING_EXPORT_URL."
                )


@dataclass(frozen=True, slots=True)
class _Version:
    """The store's mark of a file's version. A writer of the file cannot choose it."""

    size: int
    changed_ns: int
    identity: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Contents:
    """The digest of a file, and those of its blocks."""

    sha256: str
    blocks: Sequence[bytes]


_remembered: dict[tuple[str, _Version], _Contents] = {}


def _contents(path: str, version: _Version, source: NativeFile, known: Known) -> _Contents | None:
    """The digests of a file and its blocks; None if it is not a known one.

    Only digests of a known file are remembered: a store may give wrong bytes once, and the right ones the next time.
    """
    kept = _remembered.get((path, version))
    if kept is None or kept.sha256 not in known:
        kept = _read_contents(source, max(known.values(), default=0))
        if kept is None or known.get(kept.sha256) != version.size:
            return None
    if time.time() - version.changed_ns / 1e9 > _SETTLED_SECONDS:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[path, version] = kept
    return kept


def _read_contents(source: NativeFile, at_most: int) -> _Contents | None:
    """The digests of a file and its blocks; None if it is larger than it may be."""
    digest, blocks, size = hashlib.sha256(), list[bytes](), 0
    while block := source.read(_BLOCK_BYTES):
        digest.update(block)
        blocks.append(hashlib.sha256(block).digest())
        size += len(block)
        if size > at_most:
            return None
    return _Contents(digest.hexdigest(), blocks)


class _ComparedFile(io.RawIOBase):
    """A file whose blocks all have the expected digests."""

    def __init__(self, source: NativeFile, size: int, blocks: Sequence[bytes]) -> None:
        self._source = source
        self._size = size
        self._blocks = blocks
        self._at = 0
        self._block = lru_cache(_MOST_BLOCKS)(self._read_block)
        self.is_other = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        until = self._size if size < 0 else min(self._at + size, self._size)
        if until <= self._at:
            return b""
        first, last = self._at // _BLOCK_BYTES, (until - 1) // _BLOCK_BYTES
        found = b"".join(map(self._block, range(first, last + 1)))
        start = first * _BLOCK_BYTES
        found = found[self._at - start : until - start]
        self._at = until
        return found

    def _read_block(self, number: int) -> bytes:
        self._source.seek(number * _BLOCK_BYTES)
        block = self._source.read(_BLOCK_BYTES)
        if hashlib.sha256(block).digest() != self._blocks[number]:
            self.is_other = True
            raise OSError(f"block {number} has other bytes than before")
        return bytes(block)


def _other(path: str) -> OtherFile:
    return OtherFile(
        f"{path} is not the file that the pipeline has written there: its digest is not the one that the database has, "
        "so its values are not read. If it was replaced just now, read again; else bring it back from a backup. "
        'docs/storage.md, "A file is not the one that was written", has the rest.'
    )


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
        raise FilesError(
            f"a file of history is not where it was written, under {where}: {error}. PRICING_EXPORT_URL must name the "
            "place with all files; bring back those that are missing from a backup."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a file that is not Parquet any more
        raise FilesError(
            f"the files of history under {where} cannot be read or written: {error}. Check PRICING_EXPORT_URL, that "
            "the folder or bucket exists, and what its key may do."
        ) from error


@cache
def schema() -> Schema:
    """The columns of a file as it is read: it is written with fewer digits, see arrow.TableDigits.

    A row is a value that is, or was, believed from `recorded_at` until `revised_at`.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise PricingError(NOT_INSTALLED) from error

    number, time = pa.decimal128(DIGITS, DECIMALS), pa.timestamp("us", tz="UTC")
    return pa.schema(
        [
            pa.field("symbol", pa.string(), nullable=False),
            pa.field("date", pa.date32()),
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
