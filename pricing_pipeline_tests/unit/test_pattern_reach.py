"""F11: a pattern that no symbol can have is told from one that some symbol has, whatever it looks like."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pricing_pipeline.domain.pattern_reach import ALPHABET, can_match, produced
from pricing_pipeline.providers.declaration_texts import SAFE_SYMBOL

PIECES = st.recursive(
    st.sampled_from(["A", "B", "[A-C]", "[^A]", "1", r"\d", ".", "-", "A|B", "(?:)"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=5,
)


@given(one=PIECES, other=PIECES)
def test_f11_two_patterns_meet_if_some_short_text_is_of_both(one: str, other: str) -> None:
    """All texts of up to three characters are tried: what is found there is told, and what is told not is not there."""
    chars = "AB1-c"
    texts = ["", *chars, *(a + b for a in chars for b in chars)]
    texts += [a + b + c for a in chars for b in chars for c in chars]
    both = [text for text in texts if re.fullmatch(one, text) and re.fullmatch(other, text)]
    assert can_match(one, other) == can_match(other, one)
    assert can_match(one, other) or not both


@given(data=st.data(), pattern=PIECES)
def test_f11_what_is_of_a_pattern_shows_that_it_can_match(data: st.DataObject, pattern: str) -> None:
    text = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    assume(set(text) <= ALPHABET)
    assert can_match(pattern, re.escape(text))
    assert not can_match(pattern, re.escape(text), re.escape(text + "A"))


@pytest.mark.parametrize(
    ("pattern", "spelling", "can"),
    [
        ("[A-Z]{3}/[A-Z]{3}", "{base}/{quote}", True),
        ("[A-Z]{3}/[A-Z]{3}", "{base}-{quote}", False),
        ("[A-Z]{6}", "{base}{quote}", True),
        ("XAU/USD|XAG/USD", "{base}/{quote}", True),
        ("(?i)xau/usd", "{base}/{quote}", True),
        ("[a-z]+", "{symbol}", True),
        ("[a-z]+", "{symbol}.L", False),
        ("[A-Z]+[.]L", "{symbol}.L", True),
        ("[A-Z&]+", "{symbol}", True),
        ("[#?,]+", "{symbol}", False),
        ("", "{symbol}", False),
        (".{63}A", "{symbol}", True),
        (".{65,}A{64}", "{symbol}", False),
        (r"\p{Lu}+", "{symbol}", True),
    ],
)
def test_f11_patterns_against_spellings(pattern: str, spelling: str, *, can: bool) -> None:
    parts = {"symbol": SAFE_SYMBOL, "base": "[A-Z0-9]+", "quote": "[A-Z0-9]+"}
    assert can_match(pattern, SAFE_SYMBOL, produced(spelling, parts)) is can
