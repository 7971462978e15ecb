"""The pages of `docs/` as HTML: people who are told what to do can read it here without internet."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pricing_pipeline.api.page.rendering import documentation_page

_FOLDER = Path(__file__).parents[3] / "docs"
"""A clone has it; an installed package has not."""


def page(name: str) -> str | None:
    """A page of the documentation by its name, such as `runbook`; None if it does not exist."""
    # Anybody may ask for any name, so only names of pages are looked up and kept.
    return _rendered(name) if name in _pages() else None


@cache
def _pages() -> dict[str, Path]:
    return {path.stem: path for path in [*_FOLDER.glob("*.md"), *_FOLDER.glob("maintainers/*.md")]}


@cache
def _rendered(name: str) -> str:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    # Here all pages are in one folder.
    text = re.sub(r"\]\((?:\.\./|maintainers/)([\w-]+\.md)", r"](\1", _pages()[name].read_text())
    tokens = markdown.parse(text)
    title = _name_headings(tokens) or name
    return documentation_page(title, markdown.renderer.render(tokens, markdown.options, {}))


def _name_headings(tokens: list[Token]) -> str | None:
    """Give each heading the id by which links name it; returns the first heading."""
    first = None
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            first = first or inline.content
            opening.attrSet("id", re.sub(r"[^\w\- ]", "", inline.content.lower()).replace(" ", "-"))
    return first
