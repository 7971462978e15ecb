"""`docs/maintainers/requirements.md` lists every row once, and each has tests that name it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "pricing_pipeline_tests"
COUNTS = {"A": 11, "B": 29, "C": 4, "D": 6, "E": 9, "F": 13, "G": 8}


@dataclass(frozen=True)
class Row:
    """One promise of the page."""

    id: str
    promise: str
    tests: tuple[str, ...]


def rows() -> list[Row]:
    page = (ROOT / "docs/maintainers/requirements.md").read_text()
    found = []
    for name, text in re.findall(r"^- \*\*([A-G]\d+)\*\* (.*(?:\n  .*)*)", page, re.MULTILINE):
        promise, _, rest = " ".join(text.split()).partition(" (`")
        found.append(Row(name, promise, tuple(re.findall(r"([\w/]+\.py)`", rest))))
    return found


@cache
def proofs() -> dict[str, set[str]]:
    """For each row the test files that hold a test named after it, or whose docstrings name it."""
    found = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__).resolve():
            continue
        text = path.read_text()
        named = set(re.findall(r"\b[A-G]\d+\b", text))
        for marks in re.findall(r"def test_((?:[a-g]\d+_)+)", text):
            named |= set(marks.upper().split("_"))
        for row in named:
            found[row].add(path.relative_to(TESTS).as_posix())
    return found


def test_every_row_is_listed_once() -> None:
    expected = [f"{part}{number}" for part, count in COUNTS.items() for number in range(1, count + 1)]
    assert sorted(row.id for row in rows()) == sorted(expected)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_row_is_proven(row: Row) -> None:
    found = proofs()[row.id]
    assert row.promise
    assert row.tests, f"say where; {row.id} is found in {sorted(found)}"
    assert set(row.tests) <= found, f"{row.id} is found in {sorted(found)}"
