"""`docs/maintainers/requirements.md` lists every row once, and what it calls done has a test that says so."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "pricing_pipeline_tests"
COUNTS = {"A": 11, "B": 29, "C": 4, "D": 6, "E": 8, "F": 12, "G": 8}


@dataclass(frozen=True)
class Row:
    """One line of the page's tables."""

    id: str
    promise: str
    tests: tuple[str, ...]
    status: str
    missing: str


def rows() -> list[Row]:
    lines = re.findall(
        r"^\| ([A-G]\d+) \|(.*)\|$", (ROOT / "docs/maintainers/requirements.md").read_text(), re.MULTILINE
    )
    found = []
    for name, cells in lines:
        promise, tests, status, missing = (cell.strip() for cell in cells.split("|"))
        found.append(Row(name, promise, tuple(re.findall(r"`([^`]+)`", tests)), status, missing))
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
def test_a_row_is_proven_as_far_as_it_claims(row: Row) -> None:
    found = proofs()[row.id]
    assert row.promise
    assert set(row.tests) <= found, f"{row.id} is found in {sorted(found)}"
    match row.status:
        case "open":
            assert not row.missing
        case "in part":
            assert row.tests, f"say where; {row.id} is found in {sorted(found)}"
            assert row.missing, f"say what {row.id} lacks"
        case "done":
            assert row.tests, f"say where; {row.id} is found in {sorted(found)}"
            assert not row.missing
        case other:
            pytest.fail(f"{row.id} has the status {other!r}; it is open, in part or done")
