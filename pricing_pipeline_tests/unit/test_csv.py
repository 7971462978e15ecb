"""E9: columns written all at once have the bytes that a writer of single cells would write."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain import cells
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.prices import digits
from pricing_pipeline.prices.frames import LEAST

amounts = st.one_of(st.just(LEAST), st.integers(-999, 999), st.integers(-(10**18) + 1, 10**18 - 1))
scales = st.one_of(st.just(2), st.integers(0, 18))
words = st.text(st.one_of(st.sampled_from("=+-@\t\r\n\",; '"), st.characters(codec="utf-8", exclude_characters="\0")))


@given(st.lists(st.tuples(amounts, scales), min_size=1, max_size=20))
def test_e9_amounts_of_a_column_have_the_digits_of_decimals(prices: list[tuple[int, int]]) -> None:
    spelled = digits.in_digits(*(np.array(column) for column in zip(*prices, strict=True)))
    exact = ["" if amount == LEAST else f"{Decimal(amount).scaleb(-scale):f}" for amount, scale in prices]
    assert spelled == " ".join(exact)


@given(
    st.lists(st.tuples(words, st.none() | st.decimals(allow_nan=False, allow_infinity=False))),
    st.sampled_from(Decimals),
)
def test_e9_columns_of_cells_are_those_of_a_table(rows: list[tuple[str, Decimal | None]], decimals: Decimals) -> None:
    numbers = ["" if number is None else f"{number:f}" for _, number in rows]
    columns = cells.texts([text for text, _ in rows], decimals), cells.numbers(numbers, decimals)
    one_by_one = [
        (cells.safe(text), cells.number(number, decimals)) for (text, _), number in zip(rows, numbers, strict=True)
    ]
    assert cells.lines(zip(*columns, strict=True), decimals) == cells.table(one_by_one, decimals)
