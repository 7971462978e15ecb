"""`/v1/history`: years of values of one symbol, or of several, as JSON, CSV, Arrow or Parquet.

An answer is complete before its first byte is sent: no database session waits for a slow reader, errors are reported as
problems, and a body is as long as announced. A long answer waits on disk, not in memory.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import IO, TYPE_CHECKING, Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from starlette.types import Receive, Scope, Send

from pricing_pipeline.api import feeds
from pricing_pipeline.api.access import Caller, Database, FeedReader, ReadReplica
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.formats import (
    MEDIA_TYPES,
    NOT_ACCEPTABLE,
    Currency,
    Decimal,
    Format,
    Wanted,
    chosen,
)
from pricing_pipeline.api.parameters import (
    Day,
    Moment,
    SomeSymbols,
    SymbolName,
    TypeName,
    each_of,
    require_instrument,
    type_of_prices,
)
from pricing_pipeline.api.problems import Refused, invalid
from pricing_pipeline.api.tags import is_known, not_modified, tag_of
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain import cells
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.prices import Bar
from pricing_pipeline.errors import DatabaseError, UnknownDataType, UnknownSymbol
from pricing_pipeline.prices import arrow, conversion, lines, price_reader, unreported_splits
from pricing_pipeline.prices.files import OtherFile
from pricing_pipeline.prices.frames import Columns

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

router = APIRouter(tags=["history"])

AT_ONCE = 2
"""So many histories are read at once; they would keep who reads latest prices waiting."""
IN_MEMORY = 4_000_000
"""Bytes. A longer answer is on disk until it is sent."""
_SENT_AT_ONCE = 256 * 1024

_limiter = CapacityLimiter(AT_ONCE)


MOST_HISTORIES = 50
"""Symbols whose histories one answer has."""


class History(Shape):
    """Values of a symbol between two UTC days, both included, oldest first."""

    symbol: str
    data_type: str
    from_: date = Field(alias="from")
    to: date
    as_of: datetime | None
    adjust: Adjust | None
    warnings: list[str]
    """Of daily bars with `splits` or `total`, without `as_of`: where the price steps like a split that is not known."""
    rows: list[Bar]


class Histories(Shape):
    """The histories of several symbols, in the order of the request."""

    histories: list[History]


@dataclass(frozen=True, slots=True)
class _Selection:
    """What is read, and how it is written. JSON of one history is not in a list."""

    data_type: str
    symbols: Sequence[str]
    is_list: bool
    first: date | None
    last: date | None
    as_of: datetime | None
    adjust: Adjust | None
    format: Format
    decimals: Decimals
    into: conversion.Target | None = None


First = Annotated[Day | None, Query(alias="from", description="First UTC day; default: 30 days before the last.")]
Last = Annotated[Day | None, Query(alias="to", description="Last UTC day; default: today.")]
AsOf = Annotated[Moment | None, Query(description="As it was believed at this time.")]
Basis = Annotated[Adjust | None, Query(description="The adjustment; default: each value as stored.")]
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media: {} for media in MEDIA_TYPES.values()}},
    304: {"description": "The client has this answer already (If-None-Match)"},
    **NOT_ACCEPTABLE,
}


@router.get("/history/{data_type}", response_model=Histories, responses=_RESPONSES)
async def read_histories(
    request: Request,
    database: Database,
    replica: ReadReplica,
    caller: FeedReader,
    data_type: TypeName,
    symbols: SomeSymbols = None,
    list_: feeds.ListName = None,
    first: First = None,
    last: Last = None,
    as_of: AsOf = None,
    adjust: Basis = None,
    format: Wanted = None,
    decimal: Decimal = Decimals.POINT,
    currency: Currency = None,
) -> Response:
    """The histories of up to 50 symbols in one answer, as of one symbol. It queues nothing. With the token of a feed,
    which may be in the URL, those of the feed may be left out. A `list` of the user may name them.
    """
    wanted = chosen(request.headers.get("accept", ""), format, MEDIA_TYPES)
    each: Sequence[str]
    if list_ is not None:
        if symbols is not None:
            raise invalid("name symbols or a list, but not both")
        each = [symbol for _, symbol in await feeds.listed(database, caller, list_, data_type)]
    else:
        if symbols is None and not caller.token.is_feed:
            raise invalid("parameter symbols: it is missing")
        each = await _readable(database, caller, data_type, None if symbols is None else each_of(symbols))
    if len(each) > MOST_HISTORIES:
        raise invalid(
            f"the parameter symbols: these are {len(each)}, and a request may name {MOST_HISTORIES} histories"
        )
    selection = _Selection(data_type, each, True, first, last, as_of, adjust, wanted, decimal, _target(currency))
    return await _answered(request, database, replica, selection)


@router.get("/history/{data_type}/{symbol:path}", response_model=History, responses=_RESPONSES)
async def read_history(
    request: Request,
    database: Database,
    replica: ReadReplica,
    caller: FeedReader,
    data_type: TypeName,
    symbol: SymbolName,
    first: First = None,
    last: Last = None,
    as_of: AsOf = None,
    adjust: Basis = None,
    format: Wanted = None,
    decimal: Decimal = Decimals.POINT,
    currency: Currency = None,
) -> Response:
    """Values of one symbol between two days, with their lineage: as they are, or were believed, or adjusted.

    The header Accept, or `format`, chooses JSON, CSV, an Arrow IPC stream or Parquet. It queues nothing.
    """
    wanted = chosen(request.headers.get("accept", ""), format, MEDIA_TYPES)
    each = await _readable(database, caller, data_type, [symbol])
    selection = _Selection(data_type, each, False, first, last, as_of, adjust, wanted, decimal, _target(currency))
    return await _answered(request, database, replica, selection)


def _target(currency: str | None) -> conversion.Target | None:
    return None if currency is None else conversion.Target.named(currency)


async def _readable(database: Engine, caller: Caller, data_type: str, symbols: Sequence[str] | None) -> Sequence[str]:
    """The symbols that a request names; of a feed, its own. Raises Refused for others."""
    if not caller.token.is_feed:
        return symbols or ()
    named = None if symbols is None else [(data_type, symbol) for symbol in symbols]
    pairs = await to_thread.run_sync(feeds.narrowed, database, caller.token, named, data_type)
    return [symbol for _, symbol in pairs]


async def _answered(request: Request, database: Engine, replica: Replica | None, selection: _Selection) -> Response:
    written = await to_thread.run_sync(_read, database, replica, selection, limiter=_limiter)
    headers = {"Vary": "Accept, Accept-Encoding"}
    if written.warnings:
        headers["X-Price-Warnings"] = str(written.warnings)
    if is_known(request, written.tag):
        written.file.close()
        return not_modified(written.tag, headers)
    headers |= {"Content-Length": str(written.length), "ETag": written.tag}
    headers["Cache-Control"] = "private, no-cache"
    return _Answer(written.file, media_type=MEDIA_TYPES[selection.format], headers=headers)


class _Answer(StreamingResponse):
    """A response that closes its file however sending ends. A client that leaves would otherwise keep the file open."""

    def __init__(self, file: IO[bytes], media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(iter(partial(file.read, _SENT_AT_ONCE), b""), media_type=media_type, headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and close it."""
        with self._file:
            await super().__call__(scope, receive, send)


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
    except OtherFile:  # a month may have been rewritten since the read began
        return _write(database, selection)


@dataclass(frozen=True, slots=True)
class _Written:
    """The whole answer as a file at its beginning, its length, its tag, and how many warnings it has."""

    file: IO[bytes]
    length: int
    tag: str
    warnings: int


def _write(database: Engine, selection: _Selection) -> _Written:
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - who sends it closes it
    try:
        # One snapshot for all parts: a history that is being restated is the old one or the new one.
        with database.execution_options(isolation_level="REPEATABLE READ").connect() as connection:
            heads = _heads(connection, selection)
            _WRITERS[selection.format](file, _Histories(connection, selection, heads))
        length = file.tell()
        file.seek(0)
        tag = tag_of(hashlib.file_digest(file, "sha256").digest())
        file.seek(0)
    except OSError as error:
        file.close()
        raise Refused(
            503,
            "no-room",
            f"this answer cannot be kept in {tempfile.gettempdir()} until it is sent: {error.strerror or error}. Make "
            "room there, or read fewer years",
            {"Retry-After": "60"},
        ) from error
    except BaseException:
        file.close()
        raise
    return _Written(file, length, tag, sum(len(head.warnings) for head in heads))


def _heads(connection: Connection, selection: _Selection) -> list[History]:
    """What is read of each symbol, without rows. Raises UnknownDataType, UnknownSymbol and InvalidRange."""
    type_ = type_of_prices(connection, selection.data_type)
    symbols = list(dict.fromkeys(instruments.all_spelled_anywhere(connection, selection.symbols)))
    for symbol in symbols:
        require_instrument(connection, type_, symbol)
    days = price_reader.days(connection, selection.first, selection.last)
    as_of, adjust = selection.as_of, selection.adjust
    return [
        History.model_validate(
            {
                "symbol": symbol,
                "data_type": type_.data_type,
                "from": days.start,
                "to": days.end,
                "as_of": as_of,
                "adjust": adjust,
                "warnings": unreported_splits.warnings(connection, type_, symbol, days, adjust, as_of),
                "rows": [],
            }
        )
        for symbol in symbols
    ]


@dataclass(frozen=True, slots=True)
class _Histories:
    """The histories that an answer has, read part by part."""

    connection: Connection
    selection: _Selection
    heads: Sequence[History]

    def parts(self, head: History) -> Iterator[Columns]:
        """The values of one, some ten thousand rows at a time."""
        return price_reader.history_parts(
            self.connection,
            head.symbol,
            head.data_type,
            head.from_,
            head.to,
            as_of=head.as_of,
            adjust=head.adjust,
            into=self.selection.into,
        )

    def all_parts(self) -> Generator[tuple[History, Columns], None, None]:
        """The parts of all: each is read from the database while the one before is written. It must be closed."""
        parts = ((head, part) for head in self.heads for part in self.parts(head))
        with ThreadPoolExecutor(1, "history") as ahead:
            coming = ahead.submit(next, parts, None)
            while (part := coming.result()) is not None:
                coming = ahead.submit(next, parts, None)
                yield part

    @contextmanager
    def fitted(self) -> Iterator[tuple[Schema, Iterator[RecordBatch]]]:
        """The same of all for Arrow, with decimals that are known when all values are."""
        columns = arrow.schema(_metadata(self.heads), is_converted=self.selection.into is not None)
        with closing(self.all_parts()) as parts, tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
            batches = (arrow.make_batch(columns, head.symbol, part) for head, part in parts)
            yield arrow.fitted_batches(columns, batches, kept)


def _write_json(file: IO[bytes], histories: _Histories) -> None:
    is_list = histories.selection.is_list
    file.write(b'{"histories":[\n' * is_list)
    for place, head in enumerate(histories.heads):
        text = head.model_dump_json(by_alias=True, exclude={"rows"})
        file.write(b",\n" * (place > 0) + f'{text[:-1]},"rows":[\n'.encode())
        for number, columns in enumerate(histories.parts(head)):
            file.write((",\n" * (number > 0) + lines.as_json(columns)).encode())
        file.write(b"\n]}\n")
    file.write(b"]}\n" * is_list)


def _write_csv(file: IO[bytes], histories: _Histories) -> None:
    decimals = histories.selection.decimals
    names = lines.COLUMNS if histories.selection.into is None else lines.OF_CONVERTED
    file.write(cells.table([names], decimals).encode())
    with closing(histories.all_parts()) as parts:
        for head, columns in parts:
            file.write(lines.as_csv(head.symbol, columns, decimals).encode())


def _write_arrow(file: IO[bytes], histories: _Histories) -> None:
    with histories.fitted() as (columns, batches):
        import pyarrow as pa

        with pa.ipc.new_stream(file, columns) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _write_parquet(file: IO[bytes], histories: _Histories) -> None:
    with histories.fitted() as (columns, batches):
        from pyarrow import parquet

        with parquet.ParquetWriter(file, columns, store_decimal_as_integer=True) as writer:
            for batch in batches:
                writer.write_batch(batch)


_WRITERS: Mapping[Format, Callable[[IO[bytes], _Histories], None]] = {
    Format.JSON: _write_json,
    Format.CSV: _write_csv,
    Format.ARROW: _write_arrow,
    Format.PARQUET: _write_parquet,
}


def _metadata(heads: Sequence[History]) -> dict[str, str]:
    """A file's metadata; with one symbol, also which one."""
    about = json.loads(heads[0].model_dump_json(by_alias=True, exclude={"rows", "warnings"}, exclude_none=True))
    if len(heads) > 1:
        del about["symbol"]
    warnings = "\n".join(warning for head in heads for warning in head.warnings)
    return {name: str(value) for name, value in about.items()} | ({"warnings": warnings} if warnings else {})
