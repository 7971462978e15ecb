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
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices.frames import BETWEEN, LEAST, MISSING, Columns, exact_amounts, latest_columns

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
_NARROW = 18
"""Digits that a decimal of 64 bits can have."""
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
        """The smallest type of decimal that holds them."""
        import pyarrow as pa

        return pa.decimal128(_NARROW if self.whole + self.decimals <= _NARROW else DIGITS, self.decimals)

    def count(self, numbers: Array | ChunkedArray) -> None:
        """Make room for these decimals."""
        amounts, scale = _amounts(numbers), numbers.type.scale
        if not len(amounts):
            return
        largest = max(abs(int(amounts.min())), abs(int(amounts.max())))
        self.whole = max(self.whole, len(str(largest // 10**scale)))
        while self.decimals < scale and (amounts % 10 ** (scale - self.decimals)).any():
            self.decimals += 1


@dataclass(slots=True)
class TableDigits:
    """The digits of the prices of a table, which have one type, and of its volumes."""

    prices: Digits
    volumes: Digits

    def count(self, table: Table | RecordBatch) -> None:
        """Make room for the numbers of a table."""
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

    digits, count = least_digits(), 0
    for batch in batches:
        digits.count(batch)
        with pa.ipc.new_stream(kept, batch.schema) as writer:  # one for each: their decimals differ
            writer.write_batch(batch)
        count += 1
    kept.seek(0)
    narrow = digits.fit(columns)
    tables = (pa.ipc.open_stream(kept).read_all().cast(narrow) for _ in range(count))
    return narrow, (batch for table in tables for batch in table.to_batches())


def schema(about: Mapping[str, str], *, is_converted: bool = False) -> Schema:
    """The columns of a history, with `about` as metadata and the widest decimals. Raises PricingError without pyarrow.

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
    """The rows of some columns of a symbol; decimals have a type that holds these rows.

    Raises PricingError for a number of too many digits.
    """
    import pyarrow as pa

    times = copying.read_times(sent.observed_at)
    rows = len(times)
    time = columns.field("observed_at").type
    try:
        at = pa.array(times, type=time)
        arrays = [
            pa.repeat(pa.scalar(symbol), rows),
            at.cast(pa.date32()) if sent.is_daily else pa.nulls(rows, pa.date32()),
            at,
            *(_decimals(column, sent.scale) for column in (sent.open, sent.high, sent.low, sent.close)),
            _decimals(sent.volume, None, 0),
            *(_texts(column, rows) for column in (sent.currency, sent.adjustment, sent.provider)),
            pa.array(copying.read_bigints(sent.call_id)),
            pa.array(copying.read_times(sent.fetched_at), type=time),
            _texts(sent.quality, rows),
            *([] if sent.rate is None else [_texts(sent.rate, rows)]),
        ]
    except pa.ArrowInvalid as error:
        raise PricingError(
            f"a number of this history does not fit decimal({DIGITS}, {DECIMALS}): {error}. Read it as JSON or CSV."
        ) from error
    return pa.RecordBatch.from_arrays(arrays, names=columns.names)


def joined(parts: Iterable[tuple[str, Columns]], *, is_converted: bool = False) -> Table:
    """The columns of several symbols as one table."""
    columns = schema({}, is_converted=is_converted)
    import pyarrow as pa

    batches, digits = [make_batch(columns, symbol, part) for symbol, part in parts], least_digits()
    for batch in batches:
        digits.count(batch)
    narrow = digits.fit(columns)
    return pa.Table.from_batches([batch.cast(narrow) for batch in batches], narrow)


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


def _decimals(sent: bytes | str, sent_scales: bytes | None, least: int = PRICE_DECIMALS) -> Array:
    """Decimals, of at least so many places."""
    import numpy as np
    import pyarrow as pa

    amounts, scales = exact_amounts(sent, sent_scales)
    is_there = amounts != LEAST
    finest = max(int(scales.max()), least)
    exact, units = np.where(is_there, amounts, 0), 10 ** (finest - scales)
    if float(np.abs(exact).max()) * float(units.max()) < 10**_NARROW:
        return _scaled(exact * units, finest, is_there)
    pairs = zip(amounts.tolist(), scales.tolist(), strict=True)
    decimals = [None if amount == LEAST else to_decimal(amount, scale) for amount, scale in pairs]
    return pa.array(decimals, pa.decimal128(DIGITS, DECIMALS))


def _scaled(amounts: Column, scale: int, is_there: Column) -> Array:
    """Each amount as a decimal: two numbers of 64 bits side by side are Arrow's one of 128."""
    import numpy as np
    import pyarrow as pa

    wide = np.empty((len(amounts), 2), dtype="<i8")
    wide[:, 0], wide[:, 1] = amounts, amounts >> 63
    known = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(_NARROW, scale), len(amounts), [known, pa.py_buffer(wide)])


def _amounts(decimals: Array | ChunkedArray) -> Any:
    """The whole numbers behind decimals, without missing ones; Python's numbers if some exceed 64 bits."""
    import numpy as np
    import pyarrow as pa

    there = decimals.drop_null()
    if isinstance(there, pa.ChunkedArray):
        there = there.combine_chunks()
    wide = np.frombuffer(there.buffers()[1] or b"", dtype="<i8").reshape(-1, 2)[there.offset :][: len(there)]
    low, high = wide.T
    if (high == low >> 63).all():
        return low
    return high.astype(object) * 2**64 + low.astype("<u8").astype(object)


def _texts(sent: bytes, rows: int) -> Array:
    """A column of texts, which are mostly the same in all rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    first, *_ = sent.split(BETWEEN, 1)
    if sent == BETWEEN.join([first] * rows):
        return pa.repeat(pa.scalar(None if first == MISSING else first.decode(), pa.string()), rows)
    characters = np.frombuffer(sent + BETWEEN, dtype="u1")
    is_between = characters == ord(BETWEEN)
    offsets = np.append(0, np.flatnonzero(is_between) - np.arange(rows)).astype("<i4")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters[~is_between])]
    texts = pa.Array.from_buffers(pa.binary(), rows, buffers)
    return pc.if_else(pc.equal(texts, MISSING), None, texts).cast(pa.string())
