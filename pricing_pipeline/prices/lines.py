"""Prices and histories as lines of text, JSON or CSV, with every digit as it is stored.

price_reader.py reads the columns, of `history.adjusted_columns`. With an object for each number it would take many
times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from pricing_pipeline.db import copying
from pricing_pipeline.domain import cells
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.prices import Bar, Price
from pricing_pipeline.prices.frames import BETWEEN, MISSING, Columns

COLUMNS = ("symbol", *Bar.__slots__)
"""Columns of CSV of a history."""
OF_CONVERTED = (*COLUMNS, "rate")
"""The same of prices in another currency."""
OF_PRICES = tuple(name for name in Price.__slots__ if name != "fresh")
"""Columns of CSV of latest prices."""


def _same(value: Any) -> Any:
    return value


def as_json(sent: Columns) -> str:
    """Rows as JSON objects, with commas between them: prices and volumes are strings, times ISO 8601."""
    text = cache(json.dumps)

    def number(spelled: str) -> str:
        return f'"{spelled}"' if spelled else "null"

    def day(time: str) -> str:
        return f'"{time[:10]}"' if sent.is_daily else "null"

    def rate(row: tuple[Any, ...]) -> str:
        # No word of it needs an escape.
        return "" if sent.rate is None else f',"rate":{number(row[12] or "")}'

    return ",\n".join(
        f'{{"date":{day(row[0])},"observed_at":"{row[0]}","open":{number(row[1])},"high":{number(row[2])},'
        f'"low":{number(row[3])},"close":{number(row[4])},"volume":{number(row[5])},"currency":{text(row[6])},'
        f'"adjustment":{text(row[7])},"provider":{text(row[8])},"call_id":{row[9]},"fetched_at":"{row[10]}",'
        f'"quality":{text(row[11])}{rate(row)}}}'
        for row in _rows(sent, str)
    )


def as_csv(symbol: str, sent: Columns, decimals: Decimals) -> str:
    """Rows as lines of CSV, without a head. Joined, which costs less than csv.writer."""
    named = ("open", "high", "low", "close", "volume")
    numbers: dict[str, Any] = {name: cells.number(getattr(sent, name), decimals) for name in named}
    name, between = cells.cell(symbol, decimals), cells.between(decimals)
    rows = (
        between.join((name, row[0][:10] if sent.is_daily else "", *row[:9], str(row[9]), *row[10:]))
        for row in _rows(sent._replace(**numbers), partial(cells.cell, decimals=decimals), missing="")
    )
    return "\r\n".join((*rows, ""))


def prices_as_csv(told: Mapping[str, Any], decimals: Decimals, *, is_converted: bool = False) -> str:
    """A line for each price, and one for each missing pair, of a Prices as JSON has it, below the names of the columns.

    In a price `why` is the sentence of its reason. The state of a missing pair is `missing`. With `is_converted` the
    last column is `rate`.
    """
    names = (*OF_PRICES, "rate") if is_converted else OF_PRICES

    text = cache(lambda value: value and cells.safe(value))
    spelled: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(("symbol", "data_type", "currency", "provider"), text),
        **dict.fromkeys(("paused", "provider_active"), {True: "true", False: "false"}.get),
        "price": lambda price: price and cells.number(price, decimals),
        "age_seconds": lambda seconds: seconds and cells.number(str(seconds), decimals),
        "why": lambda reason: reason and cells.safe(reason["sentence"]),
    }
    rows = [*told["prices"], *({**pair, "state": "missing"} for pair in told["missing"])]
    # Column by column, which takes half as long as cell by cell.
    columns = (map(spelled.get(name, _same), [row.get(name) for row in rows]) for name in names)
    return cells.table([names, *zip(*columns, strict=True)], decimals)


def _rows(sent: Columns, text: Callable[[str], str], missing: str | None = None) -> Iterator[tuple[Any, ...]]:
    """Rows of the `COLUMNS` after `symbol` and `date`: strings, `missing` for a missing text, and numbers of calls."""

    @cache
    def read(spelled: bytes) -> str | None:
        return missing if spelled == MISSING else text(spelled.decode())

    numbers = (column.split(" ") for column in (sent.open, sent.high, sent.low, sent.close, sent.volume))
    texts = (map(read, column.split(BETWEEN)) for column in (sent.currency, sent.adjustment, sent.provider))
    return zip(
        _times(sent.observed_at),
        *numbers,
        *texts,
        copying.read_bigints(sent.call_id).tolist(),
        _times(sent.fetched_at),
        map(read, sent.quality.split(BETWEEN)),
        *([] if sent.rate is None else [[missing if told is None else told for told in sent.rate]]),
        strict=True,
    )


def _times(sent: bytes) -> list[str]:
    """ISO 8601 in UTC with a final Z; with microseconds only where there are any."""
    import numpy as np

    exact = np.datetime_as_string(copying.read_times(sent).view("datetime64[us]"), unit="us")
    return [f"{time.removesuffix('.000000')}Z" for time in exact.tolist()]
