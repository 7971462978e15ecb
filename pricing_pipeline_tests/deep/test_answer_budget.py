"""What one hostile answer may cost in memory: refused early, or bounded."""

from __future__ import annotations

import contextlib
import itertools
import json
import string
import tracemalloc
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError, SchemaDrift
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import MAX_ROWS, MAX_VALUES, Question, decode_json, decode_rows
from pricing_pipeline.providers.client import MAX_BYTES

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(date(2024, 1, 1), date(2024, 12, 31))


def filled(before: bytes, repeated: bytes, after: bytes, *, is_within: bool = False) -> bytes:
    """As many repetitions as one answer may have bytes; or `is_within`, bytes and values."""
    most = (MAX_BYTES - len(before) - len(after)) // len(repeated)
    values = sum(repeated.count(sign) for sign in (b",", b"[", b"{", b":"))
    if is_within and values:
        rows = repeated.count(b"{")
        most = min(most, max((MAX_VALUES - 100) // values, 1), MAX_ROWS // rows - 3 if rows else most)
    return before + repeated * most + after


def peak_of(body: bytes) -> int:
    """The most bytes that reading the body takes, beyond the body itself."""
    response = Response(status=200, headers={}, body=body, wire_bytes=len(body))
    tracemalloc.start()
    with contextlib.suppress(ProviderError):
        PROVIDERS["twelvedata"].parse(Question(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, NOW), response)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def named(value: bytes, room: int) -> bytes:
    """The inside of an object whose names all differ, as long as there is room."""
    names = map(bytes, itertools.product(string.ascii_lowercase.encode(), repeat=5))
    few = itertools.islice(names, room // (9 + len(value)))
    return b'"' + (b'":' + value + b',"').join(few) + b'":' + value


def listed(count: int) -> bytes:
    """mfapi's list of all schemes."""
    row = {
        "schemeName": "HDFC Balanced Advantage Fund - Direct Plan - Monthly Income Distribution",
        "fundHouse": "HDFC Mutual Fund",
        "schemeType": "Open Ended Schemes",
        "schemeCategory": "Balanced Advantage Fund",
        "isinGrowth": "INF179K01BB2",
        "isinDivReinvestment": "INF179K01BC0",
        "nav": "48.56700",
        "date": "26-10-2024",
    }
    return json.dumps([{"schemeCode": 100_000 + n} | row for n in range(count)], separators=(",", ":")).encode()


def test_the_list_of_all_schemes_is_read_also_when_it_has_grown() -> None:
    body = listed(55_000)
    response = Response(status=200, headers={}, body=body, wire_bytes=len(body))
    answer = PROVIDERS["mfapi"].parse(Question(Fetcher.NAV, ["100001", "154999"], None, NOW), response)
    assert [one.symbol for one in answer.observations] == ["100001", "154999"]


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


@pytest.mark.parametrize("read", [decode_json, lambda provider, answer: decode_rows(provider, answer, "values")])
@pytest.mark.parametrize(
    "made",
    [
        lambda: '{"values":[{"x":"🦊",'.encode() + named(b"1.1", 14_000_000) + b"}]}",
        lambda: b'{"values":[{' + named(b'"1"', 14_000_000) + b"}]}",
        lambda: filled(b'{"values":[{"":-9', b',"":-9', b"}]}"),
        lambda: filled(b'{"values":[{"":"1"}', b',{"":"1"}', b"]}"),
    ],
    ids=["numbers", "figures", "one name", "rows"],
)
def test_fault_11_names_and_rows_are_counted_before_any_is_read(
    made: Callable[[], bytes], read: Callable[..., object]
) -> None:
    """An object's names take as much as its values, and were not counted; nor was a list of plain figures."""
    body = made()
    response = Response(status=200, headers={}, body=body, wire_bytes=len(body))
    tracemalloc.start()
    with pytest.raises(SchemaDrift, match="that one answer may have"):
        read("twelvedata", response)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_fault_11_nor_are_they_read_beside_a_list_of_plain_figures() -> None:
    rows = b'"values":[{"datetime":"2024-01-02","close":"1.5"}]'
    body = filled(b'{"junk": [', b"[],", b"0], " + rows + b"}")
    with pytest.raises(SchemaDrift, match="values that one answer may have"):
        decode_rows("twelvedata", Response(status=200, headers={}, body=body, wire_bytes=0), "values")


BAR = b'{"datetime": "2024-01-02", "close": "1.5"}'
# Made when they are needed: every process of a test run reads this module.
BODIES: dict[str, Callable[[], tuple[bytes, bytes, bytes]]] = {
    "lists in lists": lambda: (b"[", b"[],", b"0]"),
    "objects in objects": lambda: (b"[", b'{"a":{}},', b"0]"),
    "numbers": lambda: (b"[", b"1.1,", b"0]"),
    "names of one object": lambda: (b"{", named(b"1.1", 7_000_000), b"}"),
    "names of a row": lambda: (b'{"values":[{', named(b'"1"', 7_000_000), b"}]}"),
    "numbers beside wide text": lambda: (b"[" + b"1.1," * 1_199_000 + b'"', b"a", '🦊"]'.encode()),
    "wide text": lambda: (b'["', "🦊".encode(), b'"]'),
    "many short texts": lambda: (b"[", b'"abcdefghijk",', b"0]"),
    "rows of nothing": lambda: (b'{"values": [', b"{},", b"{}]}"),
    "bars": lambda: (
        b'{"meta": {"symbol": "AAPL", "currency": "USD"}, "values": [',
        BAR + b",",
        BAR + b"]}",
    ),
}


@pytest.mark.parametrize("parts", BODIES.values(), ids=BODIES)
def test_fault_11_whatever_ten_answers_hold_they_fit_into_memory(
    parts: Callable[[], tuple[bytes, bytes, bytes]],
) -> None:
    """Of a provider's ten calls one at a time reads a large body. docs/security.md tells what that comes to."""
    assert peak_of(filled(*parts(), is_within=True)) < 260_000_000
