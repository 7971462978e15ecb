"""Keys that a provider repeats are masked, and nothing else."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.providers.key_echoes import KeyEchoes

KEY = "aB3+xY9/qW7=eR5tZ2uI8oP4"

long_keys = st.text(string.ascii_letters + string.digits + "+/=_-.~%&<>'\"!:$@", min_size=16, max_size=64)


def test_a4_what_stands_around_a_key_stays() -> None:
    echoes = KeyEchoes([KEY, "another-key-of-twenty"])
    text = f'{{"message": "{KEY.upper()} and another-key-of-twenty", "price": "101.20"}}'.encode()
    assert echoes.mask_body(text) == b'{"message": "*** and ***", "price": "101.20"}'
    assert echoes.mask_text(f"é {KEY} é") == "é *** é"


def test_a4_of_two_keys_that_begin_alike_nothing_is_left() -> None:
    assert KeyEchoes([KEY, KEY + "more"]).mask_text(f"{KEY}more {KEY}") == "*** ***"


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), max_size=50), long_keys)
def test_a4_prices_are_left_as_they_are(prices: list[object], key: str) -> None:
    body = json.dumps([{"close": str(price), "at": "2024-02-29T00:00:00Z"} for price in prices]).encode()
    assert KeyEchoes([key, "1"]).mask_body(body) == body


def test_a4_a_short_key_is_masked_where_people_read_and_not_where_prices_are() -> None:
    echoes = KeyEchoes(["101"])
    assert echoes.mask_body(b'{"price": 101.20}') == b'{"price": 101.20}'
    assert echoes.mask(b'{"price": 101.20}') == b'{"price": ***.20}'
    assert echoes.mask_text("key 101 is wrong") == "key *** is wrong"


def test_a4_without_keys_nothing_is_masked() -> None:
    text = b"\x00\\u0041%41" * 10
    assert KeyEchoes([]).mask(text) == text


@pytest.mark.parametrize("start", ["\\", "\\/", "&", "&amp;", "%", "%25", "\\u002f", "&#38;"])
def test_a4_a_token_of_escapes_is_looked_for_in_no_time(start: str) -> None:
    """A service chooses the token of a login, and its answers: together they must not stop a worker."""
    echoes = KeyEchoes([start * 40 + "!"])
    for text in (start, start.replace("\\", "\\" * 4), start.replace("&", "&amp;"), start.replace("%", "%25")):
        assert echoes.mask_text(text * 39 + "~" * 400).endswith("~")
    assert echoes.mask_text(f"{start * 40}! {json.dumps(start * 40)[1:-1]}!") == "*** ***"
