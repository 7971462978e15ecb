"""The project's pages, read as tests need them: which there are, and the code blocks in them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "client/README.md", *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def relative(path: Path) -> str:
    """The path as a person writes it."""
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str | None = None) -> list[str]:
    """The fenced code blocks of a page in their order, those of one language if it is given."""
    found = _FENCE.findall(page.read_text())
    return [textwrap.dedent(block) for said, block in found if language in (None, said)]


def without_blocks(page: Path) -> str:
    """The page without its fenced code blocks."""
    return _FENCE.sub("", page.read_text())


def table(text: str, first_column: str) -> list[list[str]]:
    """Rows of the table whose first heading is this one."""
    found = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, f"no table begins with a column {first_column!r}"
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found[1].splitlines()]
