"""Years of one symbol's history as a pandas frame, column by column.

price_reader.py reads it. With an object for each row or number, making the frame would take longer than its query.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from pricing_pipeline.db import copying

if TYPE_CHECKING:
    from pandas import DataFrame, DatetimeIndex

    from pricing_pipeline.domain.bars import Column
    from pricing_pipeline.domain.prices import Price

COLUMNS = {
    "date": "object",
    "open": "object",
    "high": "object",
    "low": "object",
    "close": "object",
    "volume": "object",
    "currency": "str",
    "adjustment": "str",
    "provider": "str",
    "call_id": "int64",
    "fetched_at": "datetime64[us, UTC]",
    "quality": "str",
}
"""Columns of a frame and their dtypes; objects are days and Decimals, or None."""

LATEST = {
    "symbol": "str",
    "data_type": "str",
    "date": "object",
    "price": "object",
    "currency": "str",
    "observed_at": "datetime64[us, UTC]",
    "fetched_at": "datetime64[us, UTC]",
    "age_seconds": "float64",
    "state": "str",
    "fresh": "bool",
    "paused": "bool",
    "provider": "str",
    "provider_active": "bool",
    "frozen_since": "datetime64[us, UTC]",
}
"""Columns of a frame of latest prices, which are the fields of a Price but `why`, and their dtypes."""

_ENOUGH = Context(prec=30)
"""Enough digits for any amount at any scale, independent of the caller's precision of decimal."""
LEAST = -(2**63)
"""Stands for a missing amount: no amount has this many digits."""
MISSING, BETWEEN = b"\xff", b"\0"
"""A missing text, and what stands between two."""


class Columns(NamedTuple):
    """The columns of a query in `db/queries/history.sql`, as they are sent, of at least one row."""

    observed_at: bytes
    fetched_at: bytes
    open: Any
    """Prices: amounts as bytes, which `scale` belongs to; or all in digits, as text with spaces between."""
    high: Any
    low: Any
    close: Any
    scale: bytes | None
    volume: str
    currency: bytes
    adjustment: bytes
    provider: bytes
    call_id: bytes
    quality: bytes
    is_daily: bool
    rate: bytes | None = None
    """The rates of converted prices, or why a rate is missing."""


def make_frame(
    observed_at: bytes | None,
    fetched_at: bytes | None,
    opens: bytes | str | None,
    highs: bytes | str | None,
    lows: bytes | str | None,
    closes: bytes | str | None,
    scales: bytes | None,
    volumes: str | None,
    currencies: bytes | None,
    adjustments: bytes | None,
    providers: bytes | None,
    call_ids: bytes | None,
    qualities: bytes | None,
    is_daily: bool,
    rates: bytes | None = None,
) -> DataFrame:
    """The frame of the columns of a query in `db/queries/history.sql`; each column is None if there are no rows.

    With `rates`, those of converted prices, it has the column `rate`.
    """
    from pandas import DataFrame

    index = _times(observed_at).rename("observed_at")
    rows, places = len(index), copying.read_smallints(scales or b"")
    columns: dict[str, Any] = {
        "date": _objects(index.values.astype("datetime64[D]").tolist() if is_daily else [None] * rows, rows),
        "open": _prices(opens, places, rows),
        "high": _prices(highs, places, rows),
        "low": _prices(lows, places, rows),
        "close": _prices(closes, places, rows),
        "volume": _decimals(volumes, rows),
        "currency": _texts(currencies, rows),
        "adjustment": _texts(adjustments, rows),
        "provider": _texts(providers, rows),
        "call_id": copying.read_bigints(call_ids or b""),
        "fetched_at": _times(fetched_at),
        "quality": _texts(qualities, rows),
    }
    if rates is not None:
        columns["rate"] = _texts(rates or None, rows)
    return DataFrame(columns, index=index, copy=False)


def joined(histories: Iterable[tuple[str, DataFrame]], *, is_converted: bool = False) -> DataFrame:
    """The frames of several symbols as one, with the symbol and the time as its first columns."""
    from pandas import concat

    def frame_of(symbol: str, history: DataFrame) -> DataFrame:
        frame, rows = history.reset_index(), len(history)
        frame.insert(0, "date", frame.pop("date"))
        frame.insert(0, "symbol", _texts(BETWEEN.join([symbol.encode()] * rows) if rows else None, rows))
        return frame

    found = [frame_of("", make_frame(*(None,) * 13, False, b"" if is_converted else None))]
    found += [frame_of(symbol, history) for symbol, history in histories if len(history)]
    return concat(found[1:] or found, ignore_index=True)


def latest_columns(*, is_converted: bool) -> dict[str, str]:
    """The columns of a frame of latest prices."""
    return LATEST | {"rate": "str"} if is_converted else LATEST


def frame_of_latest(prices: Iterable[Price], *, is_converted: bool = False) -> DataFrame:
    """Latest prices as a frame, one row a price."""
    from pandas import DataFrame

    rows, dtypes = list(prices), latest_columns(is_converted=is_converted)
    columns = {name: [getattr(price, name) for price in rows] for name in dtypes}
    return DataFrame(columns, dtype="object").astype(dtypes)


def exact_amounts(sent: bytes | str, scales: bytes | None) -> tuple[Any, Any]:
    """Whole numbers and their scales, from amounts or from text; LEAST stands for a missing one.

    They are Python's numbers if some exceed 64 bits.
    """
    import numpy as np

    if isinstance(sent, bytes):
        return copying.read_bigints(sent), copying.read_smallints(scales or b"")
    if "." not in sent:  # as volumes: in a fifth of the time
        whole = np.fromstring(sent, dtype=np.int64, sep=" ")
        if len(whole) > sent.count(" ") and whole.max() < -LEAST - 1:  # none is missing or too large
            return whole, np.zeros_like(whole)
    parts = [number.partition(".") for number in sent.split(" ")]
    amounts = [int(whole + fraction) if whole else LEAST for whole, _, fraction in parts]
    places = np.array([len(fraction) for _, _, fraction in parts])
    try:
        return np.array(amounts, dtype=np.int64), places
    except OverflowError:
        return np.array(amounts, dtype=object), places


def _times(sent: bytes | None) -> DatetimeIndex:
    from pandas import DatetimeIndex

    return DatetimeIndex(copying.read_times(sent or b"").view("datetime64[us]")).tz_localize("UTC")


def _prices(sent: bytes | str | None, scales: Column, rows: int) -> Any:
    """Decimals from amounts with scales, or from text."""
    if not isinstance(sent, bytes):
        return _decimals(sent, rows)
    amounts = copying.read_bigints(sent)
    units = {scale: Decimal(1).scaleb(-scale) for scale in set(scales.tolist())}
    is_missing = amounts == LEAST
    if is_missing.all():
        return _objects([None] * rows, rows)
    with localcontext(_ENOUGH):
        if len(units) == 1:
            (unit,) = units.values()
            decimals = _objects(map(unit.__mul__, amounts.tolist()), rows)
        else:
            decimals = _objects(map(mul, map(units.__getitem__, scales.tolist()), amounts.tolist()), rows)
    decimals[is_missing] = None
    return decimals


def _decimals(spelled: str | None, rows: int) -> Any:
    """Decimals from a text with single spaces between them; an empty part means a missing one."""
    texts = spelled.split(" ") if rows and spelled is not None else []
    return _objects(map(Decimal, texts) if all(texts) else (Decimal(text) if text else None for text in texts), rows)


def _objects(items: Iterable[object], rows: int) -> Any:
    import numpy as np

    return np.fromiter(items, dtype=object, count=rows)


def _texts(sent: bytes | None, rows: int) -> Any:
    """A column of texts, which are mostly the same in all rows."""
    import numpy as np
    from pandas import array

    first, *_ = (sent or b"").split(BETWEEN, 1)
    if rows and sent == BETWEEN.join([first] * rows):
        return array([_text(first)], dtype="str").take(np.zeros(rows, dtype=np.intp))
    return array([_text(text) for text in sent.split(BETWEEN)] if sent is not None else [], dtype="str")


def _text(sent: bytes) -> str | None:
    return None if sent == MISSING else sent.decode()
