"""Years of one symbol's history as lines of text, JSON or CSV, with every digit as it is stored.

price_reader.py reads the columns, of `history.adjusted_columns`. With an object for each number it would take many
times as long.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pricing_pipeline.db import copying
from pricing_pipeline.domain import cells
from pricing_pipeline.prices.frames import BETWEEN, MISSING, Columns

COLUMNS = (
    *(
        "observed_at",
        "open",
        "high",
        "low",
        "close",
        "volume",
        "currency",
        "adjustment",
        "provider",
        "call_id",
    ),
    *("fetched_at", "quality"),
)


def as_json(sent: Columns) -> str:
    """Rows as JSON objects, with commas between them: prices and volumes are strings, times ISO 8601."""
    text = cache(json.dumps)

    def number(spelled: str) -> str:
        return f'"{spelled}"' if spelled else "null"

    return ",\n".join(
        f'{{"observed_at":"{row[0]}","open":{number(row[1])},"high":{number(row[2])},"low":{number(row[3])},'
        f'"close":"{row[4]}","volume":{number(row[5])},"currency":{text(row[6])},"adjustment":{text(row[7])},'
        f'"provider":{text(row[8])},"call_id":{row[9]},"fetched_at":"{row[10]}","quality":{text(row[11])}}}'
        for row in _rows(sent, str)
    )


def as_csv(sent: Columns) -> str:
    """Rows as lines of CSV (RFC 4180), without a head; what is missing is empty."""
    file = io.StringIO()
    # It quotes only what is part of its own line ends.
    csv.writer(file, lineterminator="\r\n").writerows(_rows(sent, cells.safe))
    return file.getvalue()


def _rows(sent: Columns, text: Callable[[str], str]) -> Iterator[tuple[Any, ...]]:
    """Rows of the columns that `COLUMNS` names: strings, None for a missing text, and numbers of calls."""

    @cache
    def read(spelled: bytes) -> str | None:
        return None if spelled == MISSING else text(spelled.decode())

    numbers = (column.split(" ") for column in (sent.open, sent.high, sent.low, sent.close, sent.volume))
    texts = (map(read, column.split(BETWEEN)) for column in (sent.currency, sent.adjustment, sent.provider))
    return zip(
        _times(sent.observed_at),
        *numbers,
        *texts,
        copying.read_bigints(sent.call_id).tolist(),
        _times(sent.fetched_at),
        map(read, sent.quality.split(BETWEEN)),
        strict=True,
    )


def _times(sent: bytes) -> list[str]:
    """ISO 8601 in UTC with a final Z; with microseconds only where there are any."""
    import numpy as np

    exact = np.datetime_as_string(copying.read_times(sent).view("datetime64[us]"), unit="us")
    return [f"{time.removesuffix('.000000')}Z" for time in exact.tolist()]
