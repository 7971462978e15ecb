"""Paths into answers (F11): exact numbers, and no expression that computes with floats."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.providers.base import decode_json
from pricing_pipeline.providers.json_paths import JsonPath, UnreadablePath


def found(path: str, data: object, **parts: str) -> Any:
    return JsonPath(path).search(data, parts)


@pytest.mark.parametrize("text", ["1.10", "0.1", "123456789012345678", "1e-7", "0.30000000000000004", "100", "5E+2"])
@pytest.mark.parametrize("path", ["a.b", "a.*|[0]", "a.b || c", "values(a)[-1]", "not_null(c, a.b)"])
def test_a9_a_number_passes_a_path_without_a_change(text: str, path: str) -> None:
    body = f'{{"a": {{"b": {text}}}}}'.encode()
    value = found(path, decode_json("p", Response(200, {}, body, len(body))))
    assert type(value) in (int, Decimal)
    assert value == Decimal(text)
    assert str(value) == str(Decimal(text)) or type(value) is int


@given(
    path=st.text("ab.[]*?|&!`'\"{}@,:()0<>= -", max_size=30),
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.decimals() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        max_leaves=8,
    ),
)
def test_f11_any_path_is_refused_or_reads_any_answer(path: str, data: object) -> None:
    try:
        checked = JsonPath(path)
    except UnreadablePath:
        return
    assert not isinstance(checked.search(data, {}), float)


def test_f11_a_placeholder_is_a_key_and_never_an_expression() -> None:
    rates = {"rates": {"USD": 1, 'x" || rates || "': 2}, "secret": 3}
    assert found('rates."{quote}"', rates, quote="USD") == 1
    assert found('rates."{quote}"', rates, quote='x" || secret || "') is None
    assert found("rates == '{quote}'", {"rates": "USD"}, quote="USD") is True


@pytest.mark.parametrize(
    "path",
    [
        "sum(a)",
        "to_number(a)",
        "`1.5`",
        "a[",
        "",
        "`1e400`",
        "x" * 201,
        "foo(a)",
    ],
)
def test_a9_what_computes_with_floats_is_refused(path: str) -> None:
    with pytest.raises(UnreadablePath):
        JsonPath(path)


def test_f11_what_does_not_fit_together_leads_to_nothing() -> None:
    data = {"a": "x", "n": Decimal("NaN"), "l": [1, "x", None]}
    for path in (
        "a < `1`",
        "n < `1`",
        "length(n)",
        "contains(a, `1`)",
        "l[?@ > 'a']",
        "keys(l)",
        "a.b.c",
        "l[9]",
        "l[::0]",
    ):
        json.dumps(found(path, data), default=str)
