"""`/v1/history`: years of values of one symbol, as JSON, CSV, Arrow or Parquet.

An answer is complete before its first byte is sent: a session of the database never waits for a slow reader, what goes
wrong is told as a problem, and a body is as long as it says. A long one is on disk meanwhile, never in memory.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from typing import IO, Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from starlette.types import Receive, Scope, Send

from pricing_pipeline.api.access import Database, Reader, ReadReplica
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.parameters import (
    Day,
    Moment,
    SymbolName,
    TypeName,
    require_instrument,
    type_of_prices,
)
from pricing_pipeline.api.problems import Refused
from pricing_pipeline.api.tags import is_known, not_modified, tag_of
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.answers import Adjust, Split
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import DatabaseError, UnknownDataType, UnknownSymbol
from pricing_pipeline.prices import arrow, lines, price_reader, untold_splits
from pricing_pipeline.prices.files import OtherFile
from pricing_pipeline.prices.frames import Columns

router = APIRouter(tags=["history"])

AT_ONCE = 2
"""So many histories are read at once; they would keep who reads latest prices waiting."""
IN_MEMORY = 4_000_000
"""Bytes. A longer answer is on disk until it is sent."""
_DEFAULT_DAYS = 30
_SENT_AT_ONCE = 256 * 1024

_limiter = CapacityLimiter(AT_ONCE)

Parts = Iterator[Columns]


class Value(Shape):
    """One value of history. Times are UTC; for quotes and NAVs open, high, low and volume are null."""

    observed_at: datetime
    """The source's time; midnight of its trading day for a daily value."""
    open: str | None
    high: str | None
    low: str | None
    close: str = Field(examples=["189.95"])
    volume: str | None
    currency: str | None = Field(examples=["USD"])
    adjustment: str = Field(examples=["raw"])
    """The basis of the numbers: raw, or adjusted for splits or for total return."""
    provider: str
    call_id: int
    """The call that brought it."""
    fetched_at: datetime
    """Since when it is believed."""
    quality: str | None
    """Which parts of a bar were dropped beside its close, and why; with `total`, which payments are not counted."""


class History(Shape):
    """Values between two UTC days, both included, oldest first."""

    symbol: str
    data_type: str
    from_: date = Field(alias="from")
    to: date
    as_of: datetime | None
    adjust: Adjust | None
    warnings: list[str]
    """Of daily bars with `splits` or `total`, without `as_of`: where the price steps like a split that is not known."""
    rows: list[Value]


class Format(StrEnum):
    """How a history is written."""

    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


_MEDIA_TYPES = {
    Format.JSON: "application/json",
    Format.CSV: "text/csv; charset=utf-8",
    Format.ARROW: "application/vnd.apache.arrow.stream",
    Format.PARQUET: "application/vnd.apache.parquet",
}
BINARY = (_MEDIA_TYPES[Format.ARROW], _MEDIA_TYPES[Format.PARQUET])
"""Media types that gain nothing from gzip."""


@dataclass(frozen=True, slots=True)
class _Selection:
    data_type: str
    symbol: str
    first: date | None
    last: date | None
    as_of: datetime | None
    adjust: Adjust | None
    format: Format


@router.get(
    "/history/{data_type}/{symbol:path}",
    response_model=History,
    responses={
        200: {"content": {media: {} for media in _MEDIA_TYPES.values()}},
        304: {"description": "The client has this answer already (If-None-Match)"},
        406: {"description": "None of the formats that Accept names"},
    },
)
async def read_history(
    request: Request,
    database: Database,
    replica: ReadReplica,
    caller: Reader,
    data_type: TypeName,
    symbol: SymbolName,
    first: Annotated[
        Day | None, Query(alias="from", description="First UTC day; 30 days before the last.")
    ] = None,
    last: Annotated[Day | None, Query(alias="to", description="Last UTC day; today.")] = None,
    as_of: Annotated[Moment | None, Query(description="As it was believed at this time.")] = None,
    adjust: Annotated[
        Adjust | None, Query(description="On which basis; without it each value as it is stored.")
    ] = None,
    format: Annotated[Format | None, Query(description="In place of the header Accept.")] = None,
) -> Response:
    """Values of one symbol between two days, with their lineage: as they are, or were believed, or adjusted.

    The header Accept, or `format`, chooses JSON, CSV, an Arrow IPC stream or Parquet. It queues nothing.
    """
    chosen = format or _accepted(request.headers.get("accept", ""))
    selection = _Selection(data_type, symbol, first, last, as_of, adjust, chosen)
    written = await to_thread.run_sync(_read, database, replica, selection, limiter=_limiter)
    headers = {"Vary": "Accept, Accept-Encoding"}
    if written.warnings:
        headers["X-Price-Warnings"] = str(len(written.warnings))
    if is_known(request, written.tag):
        written.file.close()
        return not_modified(written.tag, headers)
    headers |= {"Content-Length": str(written.length), "ETag": written.tag}
    headers["Cache-Control"] = "private, no-cache"
    return _Answer(written.file, media_type=_MEDIA_TYPES[chosen], headers=headers)


class _Answer(StreamingResponse):
    """A file that is closed however its sending ends: a client that goes away leaves an iterator that nothing ends."""

    def __init__(self, file: IO[bytes], media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(iter(partial(file.read, _SENT_AT_ONCE), b""), media_type=media_type, headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and close it."""
        with self._file:
            await super().__call__(scope, receive, send)


def _accepted(header: str) -> Format:
    """The format that a client likes best. Raises Refused if it takes none."""
    liked: list[tuple[float, Format]] = []
    for entry in header.split(",") if header.strip() else ["*/*"]:
        media, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        for format_, ours in _MEDIA_TYPES.items():
            plain = ours.partition(";")[0]
            if media in (plain, f"{plain.partition('/')[0]}/*", "*/*"):
                liked.append((_number(quality), format_))
                break
    best = max(liked, key=lambda choice: choice[0], default=(0.0, Format.JSON))
    if best[0] <= 0:
        raise Refused(
            406,
            "not-acceptable",
            f"a history is one of: {', '.join(_MEDIA_TYPES.values())}. Name one as Accept, or by ?format=",
        )
    return best[1]


def _number(quality: str) -> float:
    try:
        return float(quality)
    except ValueError:
        return 0.0


def _read(database: Engine, replica: Replica | None, selection: _Selection) -> _Written:
    """What `_write` returns, from the replica while it is used, and from the primary when that fails."""
    if replica is not None and replica.is_used:
        try:
            return _write(replica.engine, selection)
        except (DatabaseError, DBAPIError):
            replica.mark_unavailable()
        except (UnknownSymbol, UnknownDataType, OtherFile):
            pass  # the primary may know it already
    try:
        return _write(database, selection)
    except OtherFile:  # a month may have been written anew since the read began
        return _write(database, selection)


@dataclass(frozen=True, slots=True)
class _Written:
    """The whole answer as a file at its beginning, its length, its tag, and its warnings."""

    file: IO[bytes]
    length: int
    tag: str
    warnings: Sequence[str]


def _write(database: Engine, selection: _Selection) -> _Written:
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - who sends it closes it
    try:
        # One snapshot for all parts: a history that is being restated is the old one or the new one.
        with database.execution_options(isolation_level="REPEATABLE READ").connect() as connection:
            about = _about(connection, selection)
            parts = price_reader.history_parts(
                connection,
                about.symbol,
                about.data_type,
                about.from_,
                about.to,
                as_of=selection.as_of,
                adjust=selection.adjust,
                in_digits=selection.format in (Format.JSON, Format.CSV),
            )
            _WRITERS[selection.format](file, about, parts)
        length = file.tell()
        file.seek(0)
        tag = tag_of(hashlib.file_digest(file, "sha256").digest())
        file.seek(0)
    except OSError as error:
        file.close()
        raise Refused(
            503,
            "no-room",
            f"this history cannot be kept in {tempfile.gettempdir()} until it is sent: {error.strerror or error}. Make "
            "room there, or read fewer years",
            {"Retry-After": "60"},
        ) from error
    except BaseException:
        file.close()
        raise
    return _Written(file, length, tag, about.warnings)


def _about(connection: Connection, selection: _Selection) -> History:
    """What is read, without rows. Raises UnknownDataType, UnknownSymbol and InvalidRange."""
    type_ = type_of_prices(connection, selection.data_type)
    symbol = instruments.spelled_anywhere(connection, selection.symbol)
    require_instrument(connection, type_, symbol)
    days = price_reader.days(connection, selection.first, selection.last, _DEFAULT_DAYS)
    is_adjusted = selection.adjust in (Adjust.SPLITS, Adjust.TOTAL) and selection.as_of is None
    untold: list[Split] = []
    if is_adjusted and type_.fetcher is Fetcher.DAILY_BARS:
        untold = untold_splits.read(connection, type_.data_type, symbol, days.start, days.end)
    return History.model_validate(
        {
            "symbol": symbol,
            "data_type": type_.data_type,
            "from": days.start,
            "to": days.end,
            "as_of": selection.as_of,
            "adjust": selection.adjust,
            "warnings": list(map(untold_splits.warning, untold)),
            "rows": [],
        }
    )


def _write_json(file: IO[bytes], about: History, parts: Parts) -> None:
    head = about.model_dump_json(by_alias=True, exclude={"rows"})
    file.write(f'{head[:-1]},"rows":[\n'.encode())
    for number, columns in enumerate(parts):
        file.write((",\n" * (number > 0) + lines.as_json(columns)).encode())
    file.write(b"\n]}\n")


def _write_csv(file: IO[bytes], _: History, parts: Parts) -> None:
    file.write(f"{','.join(lines.COLUMNS)}\r\n".encode())
    for columns in parts:
        file.write(lines.as_csv(columns).encode())


def _write_arrow(file: IO[bytes], about: History, parts: Parts) -> None:
    columns = arrow.schema(_metadata(about))
    import pyarrow as pa

    with pa.ipc.new_stream(file, columns) as writer:
        for part in parts:
            writer.write_batch(arrow.make_batch(columns, part))


def _write_parquet(file: IO[bytes], about: History, parts: Parts) -> None:
    columns = arrow.schema(_metadata(about))
    from pyarrow import parquet

    with parquet.ParquetWriter(file, columns) as writer:
        for part in parts:
            writer.write_batch(arrow.make_batch(columns, part))


_WRITERS: Mapping[Format, Callable[[IO[bytes], History, Parts], None]] = {
    Format.JSON: _write_json,
    Format.CSV: _write_csv,
    Format.ARROW: _write_arrow,
    Format.PARQUET: _write_parquet,
}


def _metadata(about: History) -> dict[str, str]:
    """What a file says of itself."""
    head = json.loads(about.model_dump_json(by_alias=True, exclude={"rows"}, exclude_none=True))
    warnings = "\n".join(head.pop("warnings"))
    return {name: str(value) for name, value in head.items()} | ({"warnings": warnings} if warnings else {})
