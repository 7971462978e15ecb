"""Lists of plain figures by columns are what a decoder finds in them, and nothing else is taken for one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.providers import flat
from pricing_pipeline.providers.base import decode_rows
from pricing_pipeline_tests.support.examples import examples

ROW = '{"day":"2026-11-20","close":"12.50","volume":"7"}'
OTHER = '{"day":"2026-11-21","close":"112.5","volume":"123456789012345678"}'


def body(*rows: str, name: str = "rows", before: str = '"meta":{"symbol":"A"},', behind: str = "") -> bytes:
    return f'{{{before}"{name}":[{",".join(rows)}]{behind}}}'.encode()


def decoded(text: bytes) -> list[dict[str, str]]:
    """What is read of a list, as a decoder would give it; fails where nothing is."""
    read = flat.read(text, "rows")
    assert read is not None
    _, rows = read
    columns = {name: list(rows.texts(name)) for name in rows.names}
    for name, texts in columns.items():
        figures = [int("".join(filter(str.isdigit, text))) for text in texts]
        assert rows.numbers(name).tolist() == figures
        assert rows.lengths(name).tolist() == list(map(len, texts))
        assert np.array(rows.texts(name), dtype=np.bytes_).tolist() == [text.encode() for text in texts]
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("rows", [(ROW,), (ROW, OTHER), (ROW, OTHER, ROW)])
def test_b18_a_list_of_figures_is_read_by_columns(rows: tuple[str, ...]) -> None:
    text = body(*rows, behind=',"status":"ok"')
    assert decoded(text) == json.loads(text)["rows"]
    found = decode_rows("fmp", Response(status=200, headers={}, body=text, wire_bytes=0), "rows")
    assert found is not None
    assert found[0] == json.loads(text) | {"rows": []}


def test_names_may_stand_apart_as_long_as_all_rows_are_alike() -> None:
    apart = ROW.replace(",", ", ").replace(":", ": ")
    assert decoded(body(apart, apart)) == [json.loads(ROW)] * 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        body(),
        body("[]"),
        body("{}"),
        body(ROW, "{}"),
        body(ROW, OTHER.replace("day", "close")),
        body(ROW, OTHER.replace('"112.5"', "112.5")),
        body(ROW, OTHER.replace('"112.5"', "null")),
        body(ROW, OTHER.replace("112.5", "")),
        body(ROW, OTHER.replace("112.5", "-")),
        body(ROW, OTHER.replace("112.5", "1e5")),
        body(ROW, OTHER.replace("112.5", "\u0661")),
        body(ROW, OTHER.replace("112.5", "1234567890.123456789")),
        body(ROW, OTHER.replace('"112.5"', '"112.5"5')),
        body(ROW, OTHER.replace("112.5", r"\u0031")),
        body(ROW + ",", OTHER),
        body(f"{ROW} ", OTHER),
        body(ROW.replace('"volume":"7"', '"name":"x1"'), '{"day":"2026-11-21","close":"1","name":"x"11}'),
        body(ROW.replace("volume", "close"), OTHER.replace("volume", "close")),
        body(ROW.replace("volume", "v1"), OTHER.replace("volume", "v2")),
        body(ROW, behind=',"rows":[]'),
        body(ROW, before=f'"meta":{{"rows":[{ROW}]}},'),
    ],
)
def test_b18_what_is_otherwise_is_left_to_the_decoder(text: bytes) -> None:
    assert flat.read(text, "rows") is None


def test_b18_a_list_of_the_name_elsewhere_is_not_taken_for_it() -> None:
    for text in (
        body(ROW, before='"a":1,', behind=',"b":{"rows" : []}'),
        f'{{"meta":{body(ROW).decode()},"rows": []}}'.encode(),
        f"[{body(ROW).decode()}]".encode(),
        body(ROW, before='"rows": 5, "a":[', behind="]"),
    ):
        found = decode_rows("fmp", Response(status=200, headers={}, body=text, wire_bytes=0), "rows")
        assert found is None or json.loads(text)["rows"] == [json.loads(ROW)]


@given(
    st.lists(st.sampled_from((ROW, OTHER)), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from('0123456789.-",:{}[]\\ ab\u00e9\n'), st.integers(0, 2)),
        max_size=3,
    ),
)
@settings(max_examples=examples(400), deadline=None)
def test_b18_whatever_is_spoilt_nothing_is_read_that_a_decoder_would_not_find(
    rows: list[str], spoilt: list[tuple[int, str, int]]
) -> None:
    """Letters are put in, taken out and exchanged anywhere."""
    text = body(*rows).decode()
    for place, letter, cut in spoilt:
        text = text[: place % len(text)] + letter * (cut != 1) + text[place % len(text) + (cut > 0) :]
    found = decode_rows("fmp", Response(status=200, headers={}, body=text.encode(), wire_bytes=0), "rows")
    if found is None:
        assert spoilt
        return
    whole = json.loads(text)
    assert found[0] | {"rows": whole["rows"]} == whole
    assert decoded(text.encode()) == whole["rows"]
