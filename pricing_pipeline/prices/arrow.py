"""Years of one symbol's history as Arrow, column by column, for programs that compute with it.

price_reader.py reads the columns. Prices and volumes are written as the smallest decimals that hold them: many programs
compute wrongly, or not at all, with decimals of 38 digits. The import of pyarrow takes a second, so it stands where
pyarrow is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from pricing_pipeline.db import copying
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices.frames import BETWEEN, LEAST, MISSING, Columns, latest_columns

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray, DataType, RecordBatch, Schema, Table

    from pricing_pipeline.domain.bars import Column
    from pricing_pipeline.domain.prices import Price

NOT_INSTALLED = (
    "Arrow and Parquet need pyarrow, which is not installed. The extra parquet brings it: in the folder of the clone, "
    ".venv/bin/python -m pip install -e '.[parquet]'. CSV needs nothing."
)
DIGITS, DECIMALS = 38, 18
"""Of a price or volume while it is read: enough for any amount of 18 digits at any scale."""
PRICE_DECIMALS = 6
"""Of written prices, at least. Few prices have more, so most answers and files fit together; and programs that keep the
decimals of the dividend divide prices with enough of them."""
_PRICES = ("open", "high", "low", "close", "price")


@dataclass(slots=True)
class Digits:
    """How many digits some numbers have at most, before the point and after it."""

    whole: int
    decimals: int

    @property
    def type(self) -> DataType:
        """The smallest decimal for them: of 18 digits, a number of 64 bits, or else of 38."""
        import pyarrow as pa

        return pa.decimal128(18 if self.whole + self.decimals <= 18 else DIGITS, self.decimals)

    def count(self, numbers: Array | ChunkedArray) -> None:
        """Make room for these, which have DECIMALS decimals."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if (largest := pc.max(pc.abs(numbers)).as_py()) is None:
            return
        self.whole = max(self.whole, len(str(int(largest))))
        while self.decimals < DECIMALS:
            try:
                numbers.cast(pa.decimal128(DIGITS, self.decimals))
            except pa.ArrowInvalid:  # digits would be lost
                self.decimals += 1
            else:
                break


@dataclass(slots=True)
class TableDigits:
    """The digits of the prices of a table, which have one type, and of its volumes."""

    prices: Digits
    volumes: Digits

    def count(self, table: Table | RecordBatch) -> None:
        """Make room for the numbers of a table with DECIMALS decimals."""
        for name in table.schema.names:
            if name in _PRICES:
                self.prices.count(table.column(name))
            elif name == "volume":
                self.volumes.count(table.column(name))

    def fit(self, columns: Schema) -> Schema:
        """The same columns with these decimals."""
        for place, field in enumerate(columns):
            if field.name in _PRICES:
                columns = columns.set(place, field.with_type(self.prices.type))
            elif field.name == "volume":
                columns = columns.set(place, field.with_type(self.volumes.type))
        return columns


def least_digits() -> TableDigits:
    """What every table has room for."""
    return TableDigits(Digits(1, PRICE_DECIMALS), Digits(1, 0))


def fitted(table: Table) -> Table:
    """A table with the smallest decimals that hold its numbers."""
    digits = least_digits()
    digits.count(table)
    return table.cast(digits.fit(table.schema))


def fitted_batches(
    columns: Schema, batches: Iterable[RecordBatch], kept: IO[bytes]
) -> tuple[Schema, Iterator[RecordBatch]]:
    """The same for batches that do not fit in memory at once: `kept`, an empty file, has them meanwhile."""
    import pyarrow as pa

    digits = least_digits()
    with pa.ipc.new_stream(kept, columns) as writer:
        for batch in batches:
            digits.count(batch)
            writer.write_batch(batch)
    kept.seek(0)
    narrow = digits.fit(columns)
    return narrow, (batch.cast(narrow) for batch in pa.ipc.open_stream(kept))


def schema(about: Mapping[str, str], *, is_converted: bool = False) -> Schema:
    """The columns of a history as it is read, with `about` as metadata. Raises PricingError without pyarrow.

    Of prices in another currency a `close` may be missing, and `rate` says why, or by which rates it was converted.
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
            pa.field("close", number, nullable=is_converted),
            pa.field("volume", number),
            pa.field("currency", pa.string()),
            pa.field("adjustment", pa.string(), nullable=False),
            pa.field("provider", pa.string(), nullable=False),
            pa.field("call_id", pa.int64(), nullable=False),
            pa.field("fetched_at", time, nullable=False),
            pa.field("quality", pa.string()),
            *([pa.field("rate", pa.string())] if is_converted else []),
        ],
        metadata=dict(about),
    )


def make_batch(columns: Schema, symbol: str, sent: Columns) -> RecordBatch:
    """The rows of some columns of a symbol. Raises PricingError for a number of too many digits."""
    import pyarrow as pa

    times = copying.read_times(sent.observed_at)
    rows, places = len(times), copying.read_smallints(sent.scale or b"")
    time = columns.field("observed_at").type
    try:
        at = pa.array(times, type=time)
        arrays = [
            pa.repeat(pa.scalar(symbol), rows),
            at.cast(pa.date32()) if sent.is_daily else pa.nulls(rows, pa.date32()),
            at,
            *(_prices(column, places) for column in (sent.open, sent.high, sent.low, sent.close)),
            _decimals(sent.volume),
            *(_texts(column, rows) for column in (sent.currency, sent.adjustment, sent.provider)),
            pa.array(copying.read_bigints(sent.call_id)),
            pa.array(copying.read_times(sent.fetched_at), type=time),
            _texts(sent.quality, rows),
            *([] if sent.rate is None else [pa.array(sent.rate, pa.string())]),
        ]
    except pa.ArrowInvalid as error:
        raise PricingError(
            f"a number of this history does not fit decimal({DIGITS}, {DECIMALS}): {error}. Read it as JSON or CSV."
        ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def joined(parts: Iterable[tuple[str, Columns]], *, is_converted: bool = False) -> Table:
    """The columns of several symbols as one table."""
    columns = schema({}, is_converted=is_converted)
    import pyarrow as pa

    return fitted(pa.Table.from_batches([make_batch(columns, symbol, part) for symbol, part in parts], columns))


def table_of_latest(prices: Iterable[Price], *, is_converted: bool = False) -> Table:
    """Latest prices as a table, one row a price. Raises PricingError without pyarrow."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise PricingError(NOT_INSTALLED) from error

    time = pa.timestamp("us", tz="UTC")
    kinds = {
        "object": pa.decimal128(DIGITS, DECIMALS),
        "str": pa.string(),
        "datetime64[us, UTC]": time,
        "float64": pa.float64(),
        "bool": pa.bool_(),
    }
    dtypes = latest_columns(is_converted=is_converted)
    columns = pa.schema(
        [pa.field(name, pa.date32() if name == "date" else kinds[dtype]) for name, dtype in dtypes.items()]
    )
    rows = [{name: getattr(price, name) for name in dtypes} for price in prices]
    return fitted(pa.Table.from_pylist(rows, schema=columns))


def _prices(sent: bytes | str, scales: Column) -> Array:
    """Decimals from amounts with scales, or from text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(sent, bytes):
        return _decimals(sent)
    amounts = copying.read_bigints(sent)
    found = None
    for scale in np.unique(scales).tolist():
        there = pa.array((scales == scale) & (amounts != LEAST))
        found = pc.if_else(there, _scaled(amounts, scale), found if found is not None else _none())
    return found


def _none() -> Any:
    import pyarrow as pa

    return pa.scalar(None, pa.decimal128(DIGITS, DECIMALS))


def _scaled(amounts: Column, scale: int) -> Array:
    """Each amount as a decimal: two numbers of 64 bits side by side are Arrow's one of 128."""
    import numpy as np
    import pyarrow as pa

    wide = np.empty((len(amounts), 2), dtype="<i8")
    wide[:, 0], wide[:, 1] = amounts, amounts >> 63
    exact = pa.Array.from_buffers(
        pa.decimal128(DIGITS - DECIMALS + scale, scale), len(amounts), [None, pa.py_buffer(wide)]
    )
    return exact.cast(pa.decimal128(DIGITS, DECIMALS))


def _decimals(spelled: str) -> Array:
    """Decimals from a text with single spaces between them; an empty part means a missing one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(spelled.split(" "))
    return pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.decimal128(DIGITS, DECIMALS))


def _texts(sent: bytes, rows: int) -> Array:
    """A column of texts, which are mostly the same in all rows."""
    import pyarrow as pa

    first, *_ = sent.split(BETWEEN, 1)
    if sent == BETWEEN.join([first] * rows):
        return pa.repeat(pa.scalar(_text(first), pa.string()), rows)
    return pa.array([_text(text) for text in sent.split(BETWEEN)], type=pa.string())


def _text(sent: bytes) -> str | None:
    return None if sent == MISSING else sent.decode()
