"""A reading as HTML. What others wrote (symbols, names, messages of providers) is text, never markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pricing_pipeline.api.ids import MOST_IDS
from pricing_pipeline.api.page import charts
from pricing_pipeline.api.page.reading import Reading
from pricing_pipeline.api.page.verdict import judge
from pricing_pipeline.domain.words import decimal, printable, size
from pricing_pipeline.operations.alerts import ui_link, ui_place

_FOLDER = Path(__file__).parent / "templates"
_FEW_WATCHED = 20
"""Watched pairs that are always shown; the others unfold."""
_COMMAND = re.compile(r"`([a-z][a-z-]*(?: [\w./<>=-]+)*)`")
_LONGEST = 700
"""Characters of a text of others; the rest of a longer one is cut off."""


def sections(reading: Reading, *, ui_url: str | None, asset_prefix: str | None = None, may_operate: bool) -> str:
    """All sections of the page, with buttons for those who may use them."""

    def dagster(place: str | None) -> str | None:
        return ui_link(ui_url, ui_place(place, asset_prefix))

    return (
        _templates()
        .get_template("sections.html")
        .render(
            reading=reading,
            verdict=judge(reading),
            may_operate=may_operate,
            dagster=dagster,
            charts=charts,
            most_ids=MOST_IDS,
            few_watched=_FEW_WATCHED,
        )
    )


def documentation_page(title: str, body: str) -> str:
    """A page of the documentation, whose body is HTML already."""
    return _templates().get_template("documentation.html").render(title=title, body=Markup(body))  # noqa: S704 - of our docs


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "at": at,
        "text": text,
        "sentence": sentence,
        "attribute": attribute,
        "kind": kind,
        "size": size,
        "decimal": decimal,
        "share": share,
    }
    return environment


def at(moment: datetime | None) -> Markup:
    """A time, exact in UTC; the page's script makes it relative."""
    if moment is None:
        return Markup("<span>never</span>")
    moment = moment.astimezone(UTC)
    exact = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    stamp = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp, exact, exact)


def attribute(words: Any) -> str:
    """A text of others for an attribute: cut, with a visible spelling for each control character."""
    return printable(str("" if words is None else words)[:_LONGEST])


def text(words: Any) -> Markup:
    """A text of others, as `attribute` has it, whose direction of writing changes nothing around it.

    Commands in backquotes are set as code.
    """
    words = str("" if words is None else words)
    if len(words) <= _LONGEST:
        return Markup("<bdi>{}</bdi>").format(_with_commands(printable(words)))
    whole = printable(words[: 10 * _LONGEST])
    return Markup('<bdi title="{}">{}…</bdi>').format(whole, _with_commands(printable(words[:_LONGEST])))


def _with_commands(words: str) -> Markup:
    parts = _COMMAND.split(words)  # every second one is a command
    marked = (Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts))
    return Markup("").join(marked)


def sentence(words: str | None) -> Markup:
    """A text of others that begins with a capital letter."""
    words = words or "no reason was recorded"
    return text(words[:1].upper() + words[1:])


def kind(word: str) -> Markup:
    """A word of our own, such as unknown_symbol, for people."""
    return text(str(word).replace("_", " "))


def share(part: float, whole: float) -> Markup:
    """A share as a whole per cent, never 100 % unless it is all."""
    per_cent = 100 * part / whole if whole else 0
    return escape(f"{int(per_cent) if part < whole else 100} %")
