"""Keys that a provider repeats are blotted out, and nothing else is."""

from __future__ import annotations

import html
import json
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.providers.key_echoes import KeyEchoes

KEY = "aB3+xY9/qW7=eR5tZ2uI8oP4"

long_keys = st.text(string.ascii_letters + string.digits + "+/=_-.~%&<", min_size=16, max_size=64)
around = st.binary(max_size=20)


def escaped(signs: str, form: str) -> Callable[[str], str]:
    """Writes these signs by a form, such as `\\u{:04X}`, as some frameworks do."""
    return lambda key: "".join(form.format(ord(char)) if char in signs else char for char in key)


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "in capitals": str.upper,
    "in small letters": str.lower,
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON of PHP": lambda key: key.replace("/", "\\/"),
    "in a URL": lambda key: quote(key, safe=""),
    "in the path of a URL": quote,
    "in HTML": html.escape,
    "in JSON of .NET": escaped("+&<", r"\u{:04X}"),
    "in JSON of Go": escaped("&<", r"\u{:04x}"),
    "in JSON of Gson": escaped("&<=", r"\u{:04x}"),
    "in HTML of .NET": lambda key: html.escape(key).replace("+", "&#x2B;"),
    "in HTML of Go": lambda key: html.escape(key).replace("+", "&#43;"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(key=long_keys, before=around, after=around)
def test_a4_no_form_of_a_key_passes(form: Callable[[str], str], key: str, before: bytes, after: bytes) -> None:
    echo = form(key).encode()
    for blot in (KeyEchoes([key]).blot, KeyEchoes([key]).blot_body):
        blotted = blot(before + echo + after)
        assert echo not in blotted
        assert key.encode().lower() not in blotted.lower()
        assert b"***" in blotted


def test_a4_what_stands_around_a_key_stays() -> None:
    echoes = KeyEchoes([KEY, "another-key-of-twenty"])
    text = f'{{"message": "{KEY.upper()} and another-key-of-twenty", "price": "101.20"}}'.encode()
    assert echoes.blot_body(text) == b'{"message": "*** and ***", "price": "101.20"}'
    assert echoes.blot_text(f"é {KEY} é") == "é *** é"


def test_a4_of_two_keys_that_begin_alike_nothing_is_left() -> None:
    assert KeyEchoes([KEY, KEY + "more"]).blot_text(f"{KEY}more {KEY}") == "*** ***"


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), max_size=50), long_keys)
def test_a4_prices_are_left_as_they_are(prices: list[object], key: str) -> None:
    body = json.dumps([{"close": str(price), "at": "2024-02-29T00:00:00Z"} for price in prices]).encode()
    assert KeyEchoes([key, "1"]).blot_body(body) == body


def test_a4_a_short_key_is_blotted_where_people_read_and_not_where_prices_are() -> None:
    echoes = KeyEchoes(["101"])
    assert echoes.blot_body(b'{"price": 101.20}') == b'{"price": 101.20}'
    assert echoes.blot(b'{"price": 101.20}') == b'{"price": ***.20}'
    assert echoes.blot_text("key 101 is wrong") == "key *** is wrong"


def test_a4_without_keys_nothing_is_blotted() -> None:
    text = b"\x00\\u0041%41" * 10
    assert KeyEchoes([]).blot(text) == text
