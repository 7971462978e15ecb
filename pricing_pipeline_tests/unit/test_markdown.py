"""Texts that are not ours never become markdown: they are escaped in one place, and nobody else makes any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

import pricing_pipeline
from pricing_pipeline.defs.markdown import escaped, with_picture
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.hostile_texts import hostile_texts

PACKAGE = Path(pricing_pipeline.__file__).parent
MAKER = PACKAGE / "defs/markdown.py"

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""As the UI renders, but for links of bare addresses, which `address_in` looks for."""
RENDERER.validateLink = lambda url: True  # type: ignore[method-assign]  # it would leave out pictures in SVG

PIECES = [
    *"ab1 .,:/@_-*`[]()<>!#&;|~\\=+'\"$^{}\n\t",
    *(
        "http://",
        "www.",
        "a.co",
        "&#33;",
        "<!--",
        "-->",
        "](",
        "![",
        "```",
        "\n\n",
        "    ",
        "mailto:",
        "é",
        "中",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Z"]), max_size=30
)


def shown(markdown: str) -> str:
    """What a reader sees of markdown. AssertionError for anything but text in lines."""
    blocks = RENDERER.parse(markdown)
    assert [block.type for block in blocks] in ([], ["paragraph_open", "inline", "paragraph_close"])
    return "".join(map(_shown_of, _parts(blocks)))


def _parts(blocks: list[Token]) -> list[Token]:
    return [part for block in blocks for part in block.children or ()]


def _shown_of(part: Token) -> str:
    match part.type:
        case "text" | "text_special":
            assert not address_in(part.content), part.content
            return part.content
        case "hardbreak":
            return "\n"
        case "html_inline" if part.content == "<!-- -->":
            return ""
    raise AssertionError(f"{part.type} {part.content}")


def address_in(text: str) -> bool:
    """Whether GFM makes a link of a part of a text, which it does after all else is rendered."""
    return bool(re.search(r"[a-z]://|\bwww\.|[-.\w+]@[-.\w]", text, re.IGNORECASE))


def lines(text: str) -> str:
    """The text without white space at the ends of its lines, of which a browser shows nothing."""
    return "\n".join(line.strip(" \t") for line in text.strip().split("\n"))


@settings(max_examples=examples(500))
@given(TEXTS)
def test_an_escaped_text_is_shown_as_it_is(text: str) -> None:
    assert shown(escaped(text)) == lines(text)


def test_hostile_texts_are_shown_as_they_are_alone_and_together() -> None:
    texts = [*hostile_texts("evil.example:80"), "   # a title further in", "\t- item"]
    together = [gap.join(texts) for gap in (" ", "\n", "\n\n")]
    pairs = map("\n".join, product(texts, texts))  # what the last line is decides what the one before it is
    for text in (*texts, *together, *pairs):
        assert shown(escaped(text)) == lines(text)
    assert shown(escaped("one\r\ntwo\rthree")) == "one\ntwo\nthree"


@pytest.mark.parametrize(
    "text", ["[a](b)", "<b>x", "`x`", "a|b\n-|-\n1|2", "http://a.co", "www.a.co", "x@a.co", "# x", "a\n\nb"]
)
def test_the_same_texts_are_not_shown_as_they_are_unless_they_are_escaped(text: str) -> None:
    with pytest.raises(AssertionError):
        assert shown(text) == text


def test_ordinary_words_stay_as_they_are_where_descriptions_are_shown_without_rendering() -> None:
    text = "Prices of type equity_daily (raw; S&P 500): due again 5 minutes after 10:30, up to -3.5 % - or < 3!"
    assert escaped(text) == text


@given(TEXTS)
def test_a_picture_holds_what_is_drawn_and_asks_nobody(text: str) -> None:
    (_, picture) = str(with_picture(text, text).value).rsplit("\n\n", 1)
    (part,) = _parts(RENDERER.parse(picture))
    assert part.type == "image"
    address = str(part.attrs["src"])
    assert unquote(address) == f"data:image/svg+xml,{text}"


# ── Nobody else makes markdown ───────────────────────────────────────────────────────────────────

PLAIN = {"sensor", "run_failure_sensor", "schedule", "Field"}
"""What has a description that the UI shows as it is."""


def faults(source: str) -> list[str]:
    """Places that make markdown, or describe something by a text that is neither written out nor escaped."""
    return [f"{node.lineno}: {ast.unparse(node)}" for node in _faulty(ast.parse(source))]


def _faulty(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="md" | "MarkdownMetadataValue") | ast.Name(id="MarkdownMetadataValue"):
                yield node
            case ast.Call(func=ast.Attribute(attr=maker) | ast.Name(id=maker)) if maker not in PLAIN:
                said = [word.value for word in node.keywords if word.arg == "description"]
                yield from (text for text in said if not _is_safe(text))


def _is_safe(text: ast.expr) -> bool:
    match text:
        case ast.Constant() | ast.Call(func=ast.Name(id="escaped")):
            return True
        case ast.Attribute(value=ast.Name(id="evaluation"), attr="description"):
            return True  # handed on as it was made
    return False


def test_nobody_else_makes_markdown() -> None:
    """Only these modules know Dagster, as test_architecture.py holds."""
    folders = (PACKAGE / "defs", PACKAGE / "dagster")
    modules = {PACKAGE / "definitions.py", *(path for folder in folders for path in folder.rglob("*.py"))} - {MAKER}
    found = {path.name: faults(path.read_text()) for path in modules}
    assert {name: said for name, said in found.items() if said} == {}
    assert faults(MAKER.read_text()), "the maker itself is found"


@pytest.mark.parametrize(
    "source",
    [
        "dg.MetadataValue.md(x)",
        "MarkdownMetadataValue(x)",
        "dg.AssetSpec(key, description=kind.description)",
        "dg.AssetSpec(key, description=f'{kind} is')",
        "dg.AssetObservation(key, description=escaped(x) + y)",
    ],
)
def test_markdown_made_elsewhere_is_found(source: str) -> None:
    assert faults(source)
