"""Bodies of answers as data that one kind of path reads: JSON, CSV and XML.

Objects are dicts, lists are lists, numbers of JSON are exact, and all of CSV and XML is text. A body is bounded in
values and depth before anything is made of it, and no XML may have a document type, so it has no entities either.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal
from xml.parsers import expat

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import MAX_ROWS, MAX_VALUES, decode_json, safe_words
from pricing_pipeline.providers.flat import FlatRows, read_lines

Kind = Literal["json", "csv", "xml", "html", "text", "nothing"]

NAMES: dict[Kind, str] = {
    "json": "JSON",
    "csv": "CSV",
    "xml": "XML",
    "html": "a page of HTML",
    "text": "text",
    "nothing": "nothing",
}
_DEPTH = 64
"""Elements of XML within each other."""
_MOST_TEXT = 64 * 1024
"""How many bytes of a body are searched for words."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How lines become rows: objects by the names in the header line, or lists without one."""

    delimiter: str = ","
    header: bool = True
    skip: int = 0
    comments: tuple[str, ...] = ()
    encoding: str = "utf-8"


def kind_of(response: Response, encoding: str = "utf-8") -> Kind:
    """The kind of a body, judged by its beginning."""
    text = response.body[:4000].decode(encoding, "replace").lstrip("\ufeff \t\r\n")
    lowered = text[:200].lower()
    if not text:
        return "nothing"
    if text[0] in "{[":
        return "json"
    if text[0] == "<":
        return "html" if lowered.startswith(("<!doctype html", "<html", "<head", "<body")) else "xml"
    return "csv" if any(sign in text for sign in ",;|\t") else "text"


def contains(response: Response, words: str) -> bool:
    """Whether the beginning of a body has these words, in letters of any case."""
    return words.lower() in response.body[:_MOST_TEXT].decode("utf-8", "replace").lower()


class Table(list[object]):
    """The rows of CSV. `names` are those of its columns, none without a header line."""

    names: tuple[str, ...] = ()


def decode_csv(provider: str, response: Response, form: CsvForm) -> Table:
    """The lines of a body: an object by column, or a list of cells. Raises SchemaDrift.

    Lines without a delimiter are headings between tables and left out, if the table has several columns. A line with
    another number of cells stands as a text, which no path reads as a row.
    """
    body = response.body
    if body.count(form.delimiter.encode()) + body.count(b"\n") > MAX_VALUES or body.count(b"\n") > MAX_ROWS:
        raise SchemaDrift(
            f"{provider} sent more than the {MAX_ROWS} lines or {MAX_VALUES} values that one answer may have. "
            "Nothing of it was read."
        )
    try:
        text = body.removeprefix(_BOM).decode(form.encoding)
        lines = islice(io.StringIO(text, newline=""), form.skip, None)
        wanted = (line for line in lines if not line.startswith(form.comments))
        rows = [row for row in csv.reader(wanted, delimiter=form.delimiter, strict=True) if any(row)]
    except UnicodeDecodeError:
        raise SchemaDrift(
            f"{provider} answered with a body that is not {form.encoding}. Correct `encoding`; nothing was stored."
        ) from None
    except csv.Error as error:
        raise SchemaDrift(
            f"{provider} answered HTTP {response.status} with a body that we cannot read as CSV "
            f"({safe_words(str(error))}). Nothing was stored."
        ) from None
    cells = [[cell.strip() for cell in row] for row in rows]
    if not form.header or not cells:
        return Table(cells)
    table = Table(_by_name(provider, cells))
    table.names = tuple(cells[0])
    return table


def _by_name(provider: str, cells: list[list[str]]) -> Iterator[object]:
    names = cells[0]
    twice = next((name for name, count in Counter(filter(None, names)).items() if count > 1), None)
    if twice is not None:
        raise SchemaDrift(
            f"{provider} answered with CSV that has the column {safe_words(twice)!r} twice. Nothing was stored."
        )
    for row in cells[1:]:
        if len(row) == len(names) + 1 and not row[-1]:  # a delimiter at the end of each line but the header
            row = row[:-1]
        if len(row) == len(names):
            yield {name: cell for name, cell in zip(names, row, strict=True) if name}
        elif len(row) > 1:
            yield ",".join(row)


def flat_csv(response: Response, form: CsvForm) -> FlatRows | None:
    """The lines of a body in columns, if it has plain figures only; None where anything is odd."""
    if not form.header or form.skip or form.comments or form.encoding != "utf-8":
        return None
    return read_lines(response.body, form.delimiter)


class _Refused(ValueError):
    """XML that is not read; its text says why."""


class _Tree:
    """Builds data from the events of a parser: an element is an object of its attributes and its children.

    Children are in lists under their names, even a single one. An element with nothing but text is its text; beside
    attributes or children, text stands under `_text`. Prefixes of names are left out.
    """

    def __init__(self) -> None:
        self.root: object = None
        self._open: list[tuple[str, dict[str, object], list[str]]] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1 + len(attributes)
        if len(self._open) >= _DEPTH or self._count > MAX_VALUES:
            raise _Refused("it has too many elements, or too many within each other")
        own: dict[str, object] = {}
        for full, value in attributes.items():
            if full == "xmlns" or full.startswith("xmlns:"):
                continue
            if _local(full) in own:
                raise _Refused(f"an element has the attribute {safe_words(full)!r} twice")
            own[_local(full)] = value
        self._open.append((_local(name), own, []))

    def text(self, words: str) -> None:
        if self._open:
            self._open[-1][2].append(words)

    def end(self, _: str) -> None:
        name, own, words = self._open.pop()
        text = "".join(words).strip()
        if own and text:
            own["_text"] = text
        value: object = own or text
        if not self._open:
            self.root = value
            return
        siblings = self._open[-1][1].setdefault(name, [])
        if not isinstance(siblings, list):
            raise _Refused(f"an element has an attribute and a child {safe_words(name)!r}")
        siblings.append(value)

    def refuse(self, *_: object) -> None:
        raise _Refused("it has a document type, which may name files and entities")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def decode_xml(provider: str, response: Response) -> object:
    """The root element of a body as data. Raises SchemaDrift."""
    tree, parser = _Tree(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = tree.start, tree.end
    parser.CharacterDataHandler = tree.text
    parser.StartDoctypeDeclHandler = tree.refuse
    try:
        parser.Parse(response.body, True)
    except (expat.ExpatError, _Refused, ValueError, LookupError) as error:
        raise SchemaDrift(
            f"{provider} answered HTTP {response.status} with a body that we cannot read as XML "
            f"({safe_words(str(error))}). Nothing was stored."
        ) from None
    return tree.root


def decode(provider: str, response: Response, kind: Kind, form: CsvForm, at: str) -> object:
    """The body as data of a declared kind. Raises SchemaDrift, which names the kind that came; `at` names our line."""
    came = kind_of(response, form.encoding)
    if kind == "json" and came not in ("csv", "xml"):
        return decode_json(provider, response)
    if came == kind:
        return decode_csv(provider, response, form) if kind == "csv" else decode_xml(provider, response)
    raise SchemaDrift(
        f"{provider} answered HTTP {response.status} with a body that is not {NAMES[kind]}: this is {NAMES[came]}, and "
        f"the declaration reads {kind} ({at}). It begins {safe_words(response.body[:80])!r}; nothing was stored."
    )


def decode_hint(provider: str, response: Response) -> object:
    """A body that may explain a refusal: data, if it is JSON; else None."""
    if kind_of(response) != "json":
        return None
    try:
        return decode_json(provider, response)
    except SchemaDrift:
        return None
