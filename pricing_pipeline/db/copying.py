"""Write and read columns in PostgreSQL's binary formats: rows for COPY, arrays, and numbers side by side.

The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format"; its numeric is that of numeric_recv.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[Any]
    """One value for each row: one or more big-endian numbers."""

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_EPOCH_MICROSECONDS = 946_684_800_000_000
_NUMERIC_BASE, _NUMERIC_DIGITS = 10_000, 5


def file(parts: Iterable[bytes]) -> bytes:
    """The whole input of COPY, from the parts that `rows` makes."""
    return b"".join((_HEADER, *parts, _TRAILER))


def rows(count: int, fields: Sequence[bytes | Values | None]) -> bytes:
    """Some rows of a file; a field is a column of values, or the value of every row (None is NULL)."""
    import numpy as np

    row = bytearray(struct.pack(">h", len(fields)))
    columns: dict[int, Values] = {}
    for field in fields:
        if field is None:
            row += _NULL
        elif isinstance(field, bytes):
            row += struct.pack(">i", len(field)) + field
        else:
            width = field.nbytes // count
            row += struct.pack(">i", width)
            columns[len(row)] = field
            row += bytes(width)
    layout = np.dtype(
        {
            "names": [str(offset) for offset in columns],
            "formats": [(column.dtype, column.shape[1:]) for column in columns.values()],
            "offsets": list(columns),
            "itemsize": len(row),
        }
    )
    table = np.frombuffer(row * count, dtype=layout)
    for offset, column in columns.items():
        table[str(offset)] = column
    return table.tobytes()


class Array(bytes):
    """A column as a parameter that is an array."""

    __slots__ = ()


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return bytes(obj)


psycopg.adapters.register_dumper(Array, _ArrayDumper)


def array(values: Values, kind: str) -> Array:
    """Values as an array of this type, one of `_TYPES`."""
    import numpy as np

    layout = np.dtype([("width", ">i4"), ("value", values.dtype, values.shape[1:])])
    table = np.empty(len(values), dtype=layout)
    table["width"], table["value"] = values.nbytes // len(values), values
    return Array(struct.pack(">5i", 1, 0, _TYPES[kind], len(values), 1) + table.tobytes())


_TYPES = {"bigint": 20, "smallint": 21, "timestamptz": 1184, "numeric": 1700}
"""OIDs of PostgreSQL's own types, which never change."""


def bigints(numbers: NDArray[int64]) -> Values:
    """As bigint."""
    return numbers.astype(">i8")


def smallints(numbers: NDArray[int64]) -> Values:
    """As smallint."""
    return numbers.astype(">i2")


def times(microseconds: NDArray[int64]) -> Values:
    """Microseconds since 1970 UTC as timestamptz."""
    return bigints(microseconds - _EPOCH_MICROSECONDS)


def numerics(numbers: NDArray[int64]) -> Values:
    """Whole numbers from 0 as numeric: number of digits, weight, sign and scale, then digits to the base 10,000."""
    import numpy as np

    spelled = np.empty((len(numbers), 4 + _NUMERIC_DIGITS), dtype=">i2")
    spelled[:, :4] = (_NUMERIC_DIGITS, _NUMERIC_DIGITS - 1, 0, 0)
    rest = numbers
    for place in range(_NUMERIC_DIGITS - 1, -1, -1):
        rest, spelled[:, 4 + place] = np.divmod(rest, _NUMERIC_BASE)
    return spelled


def bigint(number: int) -> bytes:
    """One bigint."""
    return struct.pack(">q", number)


def time(at: datetime) -> bytes:
    """One timestamptz."""
    since = at - _EPOCH
    return bigint((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def text(value: str | None) -> bytes | None:
    """One text, or NULL."""
    return None if value is None else value.encode()


def read_bigints(sent: bytes) -> NDArray[int64]:
    """Numbers from the output of int8send, row after row."""
    import numpy as np

    return np.frombuffer(sent, dtype=">i8").astype(np.int64)


def read_smallints(sent: bytes) -> NDArray[int64]:
    """Numbers from the output of int2send, row after row."""
    import numpy as np

    return np.frombuffer(sent, dtype=">i2").astype(np.int64)


def read_times(sent: bytes) -> NDArray[int64]:
    """Times from the output of timestamptz_send, row after row, as microseconds since 1970 UTC."""
    return read_bigints(sent) + _EPOCH_MICROSECONDS
