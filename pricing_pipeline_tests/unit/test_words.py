"""Words for people."""

from __future__ import annotations

import pytest

from pricing_pipeline.domain.words import counted


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(0, "task", "0 tasks"), (1, "task", "1 task"), (2, "day", "2 days"), (2, "quantity", "2 quantities")],
)
def test_one_thing_is_no_plural(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
