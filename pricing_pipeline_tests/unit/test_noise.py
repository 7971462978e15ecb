"""A9: what a binary float made of a price is undone exactly, and what no float has touched stays as it is."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pricing_pipeline.providers.noise import before_division, without_noise


def as_binary32(value: Decimal) -> Decimal:
    """As a source that keeps binary32 numbers would spell it. Only tests may use floats."""
    return Decimal(repr(struct.unpack("f", struct.pack("f", float(value)))[0]))


@pytest.mark.parametrize(
    ("literal", "meant"),
    [
        ("129.0399932861328", "129.04"),
        ("45.38813018798828", "45.38813"),
        ("1.1220825910568237", "1.1220826"),
        ("0.1283479928970337", "0.128348"),
        ("11887.099609375", "11887.1"),
        ("188.25", "188.25"),
        ("-37.630001068115234", "-37.63"),
        # Exact as they are: no float of 32 bits is behind them.
        ("745000.12", "745000.12"),
        ("97208.17", "97208.17"),
        ("123456.78901", "123456.78901"),
        ("27909466112", "27909466112"),
        # A float of 64 bits is: its last digits are noise.
        ("129.04000000000002", "129.04"),
        ("0.30000000000000004", "0.3"),
        # Eighteen decimal places are what an amount may have.
        ("8.123456789012345e-06", "0.000008123456789012"),
        ("1.25000000000000001e-17", "1.2E-17"),
    ],
)
def test_a9_the_number_behind_the_noise(literal: str, meant: str) -> None:
    assert str(without_noise(Decimal(literal))) == meant


@given(st.integers(1, 999_999), st.integers(0, 6))
def test_a9_every_price_of_six_digits_survives_a_binary32(digits: int, scale: int) -> None:
    price = Decimal(digits).scaleb(-scale)
    assert without_noise(as_binary32(price)) == price


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=0, max_value=99_999))
def test_a9_what_is_left_would_make_the_same_float(price: Decimal) -> None:
    spelled = as_binary32(price)
    assert as_binary32(without_noise(spelled)) == spelled


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1E+400", "1E-400", "0", "1234567890123456789012345678901"])
def test_what_is_no_price_is_left_to_be_refused(text: str) -> None:
    assert str(without_noise(Decimal(text))) == text


@pytest.mark.parametrize(
    ("divided", "new", "old", "price"),
    [
        ("124.80750274658203", 4, 1, "499.23"),
        ("0.1283479928970337", 224, 1, "28.75"),
        ("7.133749961853027", 2, 1, "14.2675"),
        ("131", 4, 1, "524"),
    ],
)
def test_a9_the_price_before_a_split(divided: str, new: int, old: int, price: str) -> None:
    assert str(before_division(Decimal(divided), Decimal(new), Decimal(old))) == price


@given(st.integers(1, 999_999), st.integers(0, 2), st.integers(1, 300), st.integers(1, 16))
def test_a9_every_price_of_six_digits_survives_a_split(digits: int, scale: int, new: int, old: int) -> None:
    price = Decimal(digits).scaleb(-scale)
    assume(price * old / new < 1 << 24)
    divided = as_binary32(round(price * old / new, 6))
    assert before_division(divided, Decimal(new), Decimal(old)) == price


@pytest.mark.parametrize("text", ["1E+30", "1E-31", "20000000"])
def test_what_no_split_price_can_be_is_refused(text: str) -> None:
    with pytest.raises(ArithmeticError):
        before_division(Decimal(text), Decimal(4), Decimal(1))
