"""What one hostile answer may cost in memory (FAULTS 11): refused early, or bounded."""

from __future__ import annotations

import contextlib
import tracemalloc
from datetime import UTC, date, datetime

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError, SchemaDrift
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import MAX_VALUES, decode_json, decode_rows
from pricing_pipeline.providers.client import MAX_BYTES

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(date(2024, 1, 1), date(2024, 12, 31))


def filled(before: bytes, repeated: bytes, after: bytes, *, is_within: bool = False) -> bytes:
    """As many repetitions as one answer may have bytes; or `is_within`, bytes and values."""
    most = (MAX_BYTES - len(before) - len(after)) // len(repeated)
    values = sum(repeated.count(sign) for sign in (b",", b"[", b"{"))
    if is_within and values:
        most = min(most, (MAX_VALUES - 10) // values)
    return before + repeated * most + after


def peak_of(body: bytes) -> int:
    """The most bytes that reading the body takes, beyond the body itself."""
    response = Response(status=200, headers={}, body=body, wire_bytes=len(body))
    tracemalloc.start()
    with contextlib.suppress(ProviderError):
        PROVIDERS["fmp"].parse(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, response, now=NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("repeated", [b"[],", b'{"a":{}},', b"1,", b'"",'])
def test_fault_11_more_values_than_any_answer_has_are_refused_unread(repeated: bytes) -> None:
    body = filled(b"[", repeated, b"0]")
    response = Response(status=200, headers={}, body=body, wire_bytes=len(body))
    tracemalloc.start()
    with pytest.raises(SchemaDrift, match=f"more than the {MAX_VALUES} values"):
        decode_json("fmp", response)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_fault_11_nor_are_they_read_beside_a_list_of_plain_figures() -> None:
    rows = b'"values":[{"datetime":"2024-01-02","close":"1.5"}]'
    body = filled(b'{"junk": [', b"[],", b"0], " + rows + b"}")
    with pytest.raises(SchemaDrift, match="values that one answer may have"):
        decode_rows("twelvedata", Response(status=200, headers={}, body=body, wire_bytes=0), "values")


BAR = b'{"datetime": "2024-01-02", "close": "1.5"}'
BODIES = {
    name: filled(before, repeated, after, is_within=True)
    for name, (before, repeated, after) in {
        "lists in lists": (b"[", b"[],", b"0]"),
        "objects in objects": (b"[", b'{"a":{}},', b"0]"),
        "numbers": (b"[", b"1.1,", b"0]"),
        "wide text": (b'["', "🦊".encode(), b'"]'),
        "many short texts": (b"[", b'"abcdefghijk",', b"0]"),
        "rows of nothing": (b'{"values": [', b"{},", b"{}]}"),
        "bars": (b'{"meta": {"symbol": "AAPL", "currency": "USD"}, "values": [', BAR + b",", BAR + b"]}"),
    }.items()
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_fault_11_whatever_ten_answers_hold_they_fit_into_memory(body: bytes) -> None:
    """Ten calls may run at a time. docs/security.md tells what that comes to."""
    assert peak_of(body) < 150_000_000
