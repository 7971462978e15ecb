"""Prices and histories as lines of text, JSON or CSV, with every digit as it is stored.

They are made from the columns of `history.adjusted_columns`: an object for each number would take many times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import repeat, starmap
from typing import Any

from pricing_pipeline.db import copying
from pricing_pipeline.domain import cells
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.prices import Bar, Price
from pricing_pipeline.prices import digits
from pricing_pipeline.prices.frames import BETWEEN, MISSING, Columns

OF_CONVERTED = ("symbol", *Bar.__slots__)
"""Columns of CSV of a history in another currency."""
COLUMNS = OF_CONVERTED[:-1]
"""Columns of CSV of a history that is not converted: without `rate`."""
OF_PRICES = tuple(name for name in Price.__slots__ if name not in ("fresh", "rate"))
"""Columns of CSV of latest prices."""
_OF_WORDS = frozenset({"symbol", "data_type", "currency", "provider", "why", "rate"})
"""Columns of prices with texts from outside."""
_WIDTH = 8
"""Bytes of a number or a time in PostgreSQL's binary form."""


def as_json(sent: Columns) -> str:
    """Rows as JSON objects, with commas between them: prices and volumes are strings, times ISO 8601."""

    def number(spelled: str) -> str:
        return f'"{spelled}"' if spelled else "null"

    def ended(currency: str, adjustment: str, provider: str, call: str, fetched: str, quality: str) -> str:
        return (
            f'"currency":{currency},"adjustment":{adjustment},"provider":{provider},"call_id":{call},'
            f'"fetched_at":"{fetched}","quality":{quality}{"}" if sent.rate is None else ""}'
        )

    numbers = [spelled.split(" ") for spelled in _numbers(sent)]
    ends = _ends(sent, json.dumps, "null", ended)
    if sent.rate is not None:  # no word of it needs an escape
        rates = sent.rate.replace(BETWEEN, b'"\0"').decode("latin-1")
        each = f'"{rates}"'.replace(f'"{MISSING.decode("latin-1")}"', "null").split("\0")
        ends = [f'{end},"rate":{rate}}}' for end, rate in zip(ends, each, strict=True)]
    rows = zip(_times(sent.observed_at), *numbers, ends, strict=True)
    return ",\n".join(
        f'{{"date":{number(time[:10]) if sent.is_daily else "null"},"observed_at":"{time}","open":{number(open_)},'
        f'"high":{number(high)},"low":{number(low)},"close":{number(close)},"volume":{number(volume)},{end}'
        for time, open_, high, low, close, volume, end in rows
    )


def as_csv(symbol: str, sent: Columns, decimals: Decimals) -> str:
    """Rows as lines of CSV, without a header. Columns are joined: csv.writer, or code for each row, takes longer."""
    times = _times(sent.observed_at)
    days = [time[:10] for time in times] if sent.is_daily else [""] * len(times)
    numbers = [cells.number(spelled, decimals).split(" ") for spelled in _numbers(sent)]
    join = cells.between(decimals).join
    ends = _ends(sent, partial(cells.cell, decimals=decimals), "", lambda *end: join(end))
    symbols = repeat(cells.cell(symbol, decimals), len(times))
    # Rates stay as they are: none needs quotes.
    rates = [] if sent.rate is None else [sent.rate.replace(MISSING, b"").decode().split(BETWEEN.decode())]
    return cells.lines(zip(symbols, days, times, *numbers, ends, *rates, strict=True), decimals)


def prices_as_csv(told: Mapping[str, Any], decimals: Decimals, *, is_converted: bool = False) -> str:
    """An answer of prices (JSON) as CSV: a header, a line for each price, and one for each missing pair.

    `why` is the sentence of the reason, and the state of a missing pair is `missing`. With `is_converted` the last
    column is `rate`.
    """
    names = (*OF_PRICES, "rate") if is_converted else OF_PRICES
    rows = [*told["prices"], *({**pair, "state": "missing"} for pair in told["missing"])]

    def column(name: str) -> Iterable[str]:
        found = [row.get(name) for row in rows]
        match name:
            case "price" | "age_seconds":
                return cells.numbers(["" if one is None else str(one) for one in found], decimals)
            case "paused" | "provider_active":
                return map({True: "true", False: "false", None: ""}.__getitem__, found)
            case "why":
                found = [one and one["sentence"] for one in found]
        filled = ["" if one is None else one for one in found]
        return cells.texts(filled, decimals) if name in _OF_WORDS else filled

    # csv.writer, which looks at each cell, takes more than twice as long.
    return cells.lines([names, *zip(*map(column, names), strict=True)], decimals)


def _numbers(sent: Columns) -> list[str]:
    """Open, high, low, close and volume, each a text with spaces between the numbers."""
    prices = (sent.open, sent.high, sent.low, sent.close)
    return [*(digits.spelled(each, sent.scale) for each in prices), sent.volume]


def _ends(sent: Columns, text: Callable[[str], str], missing: str, ended: Callable[..., str]) -> Iterable[str]:
    """The end of each row: currency, adjustment, provider, call, its time, and quality.

    One call has brought most histories. Then all rows end alike, and the end is spelled once.
    """
    rows = len(sent.call_id) // _WIDTH
    texts = (sent.currency, sent.adjustment, sent.provider, sent.quality)
    firsts = [column.partition(BETWEEN)[0] for column in texts]
    call_id, fetched_at = sent.call_id[:_WIDTH], sent.fetched_at[:_WIDTH]
    if (
        sent.call_id == call_id * rows
        and sent.fetched_at == fetched_at * rows
        and all(column == BETWEEN.join([first] * rows) for column, first in zip(texts, firsts, strict=True))
    ):
        currency, adjustment, provider, quality = firsts
        one = sent._replace(
            currency=currency,
            adjustment=adjustment,
            provider=provider,
            call_id=call_id,
            fetched_at=fetched_at,
            quality=quality,
        )
        return list(_each_end(one, text, missing, ended)) * rows
    return _each_end(sent, text, missing, ended)


def _each_end(sent: Columns, text: Callable[[str], str], missing: str, ended: Callable[..., str]) -> Iterator[str]:
    @cache
    def read(spelled: bytes) -> str:
        return missing if spelled == MISSING else text(spelled.decode())

    currencies, adjustments, providers, qualities = (
        map(read, column.split(BETWEEN)) for column in (sent.currency, sent.adjustment, sent.provider, sent.quality)
    )
    calls = map(str, copying.read_bigints(sent.call_id).tolist())
    rows = zip(currencies, adjustments, providers, calls, _times(sent.fetched_at), qualities, strict=True)
    return starmap(ended, rows)


def _times(sent: bytes) -> list[str]:
    """ISO 8601 in UTC with a final Z; with microseconds only where there are any."""
    import numpy as np

    times = copying.read_times(sent)
    if not (times % 1_000_000).any():
        return list(np.datetime_as_string(times.view("datetime64[us]"), unit="s", timezone="UTC").tolist())
    exact = np.datetime_as_string(times.view("datetime64[us]"), unit="us")
    return [f"{time.removesuffix('.000000')}Z" for time in exact.tolist()]
