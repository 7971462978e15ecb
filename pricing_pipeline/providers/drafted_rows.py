"""The kind of an answer, and which parts of it may be rows, for a drafted declaration.

drafted_readings.py reads their values.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import decode_json, safe_words
from pricing_pipeline.providers.bodies import NAMES, CsvForm, Kind, decode_csv, decode_xml, kind_of
from pricing_pipeline.providers.drafted_readings import is_day, is_time

_DEPTH = 6
_SEEN = 50
"""Rows that are looked at."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One way to find rows in an answer: the line of the declaration, and the rows."""

    line: str
    rows: list[object]

    @property
    def samples(self) -> dict[str, list[object]]:
        """The values of the first and the last rows, by path."""
        found: dict[str, list[object]] = {}
        for row in [*self.rows[:_SEEN], *self.rows[-_SEEN:]]:
            for path, value in fields_of(row):
                if value not in (None, ""):
                    found.setdefault(path, []).append(value)
        return found

    def paths_to(self, symbol: str | None) -> list[str]:
        """The paths that lead to the symbol in some row."""
        return [path for path, values in self.samples.items() if symbol and symbol in values]


@dataclass(frozen=True, slots=True)
class Decoded:
    """An answer as data."""

    kind: Kind
    data: object
    line: str
    """The line of the declaration about its kind."""

    @property
    def candidates(self) -> list[Rows]:
        """The parts of the answer that may be its rows."""
        if self.kind == "csv":
            return [Rows("", list(_members(self.data)))]
        found: list[Rows] = []
        for one in _walk(self.data, "", 0):
            if one.rows and all(one.rows != other.rows for other in found):  # two paths lead to a list of one
                found.append(one)
        return found

    @property
    def whole(self) -> Rows:
        """The answer as one row."""
        return Rows("", [self.data])


def decoded(response: Response, now: datetime) -> Decoded:
    """An answer as what it looks like. Raises SchemaDrift for a kind that has no prices."""
    kind = kind_of(response)
    if kind == "json":
        return Decoded(kind, decode_json("the service", response), "")
    if kind == "xml":
        return Decoded(kind, decode_xml("the service", response), "body: {format: xml}")
    if kind != "csv":
        raise SchemaDrift(
            f"the answer is {NAMES[kind]}, which has no prices. It begins {safe_words(response.body[:200])!r}"
        )
    return _decoded_csv(response, now)


def _decoded_csv(response: Response, now: datetime) -> Decoded:
    """Lines, with the delimiter that most of them have, from the first line of names or of values on."""
    encoding = "utf-8"
    try:
        text = response.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = "windows-1252"
        text = response.body.decode(encoding, "replace")
    lines = text.splitlines()
    lines = lines[:200] + lines[200:][-20:]
    tables = {one: [next(csv.reader([line], delimiter=one), []) for line in lines] for one in ",;|\t"}
    widths = {one: [len(cells) for cells in table] for one, table in tables.items()}
    sign = max(widths, key=lambda one: _wide_lines(widths[one]))
    table, width = tables[sign], _commonest(widths[sign])
    first = next(
        (
            number
            for number, cells in enumerate(table)
            if len(cells) == width and any(is_time(cell, now) for cell in cells)
        ),
        0,
    )
    heads = [
        number
        for number, cells in enumerate(table[:first])
        if len(cells) == width == len({cell.strip() for cell in cells} - {""})
    ]
    header, skip = bool(heads), heads[0] if heads else first
    ends = {
        cells[0].strip()[:40]
        for cells in table[first:]
        if cells and len(cells) == width and cells[0].strip() and not any(is_time(cell, now) for cell in cells)
    }
    comments = tuple(sorted(ends)) if len(ends) <= 5 else ()
    form = CsvForm(sign, header, skip, comments, encoding)
    told = {
        "delimiter": "" if sign == "," else f'"{"tab" if sign == chr(9) else sign}"',
        "header": "" if header else "false",
        "skip": str(skip) if skip else "",
        "comments": json.dumps(comments, ensure_ascii=False) if comments else "",
        "encoding": "" if encoding == "utf-8" else encoding,
    }
    more = "".join(f", {name}: {value}" for name, value in told.items() if value)
    return Decoded("csv", list(decode_csv("the service", response, form)), f"body: {{format: csv{more}}}")


def _wide_lines(counts: Sequence[int]) -> tuple[int, int]:
    """How many lines have the commonest number of cells, and that number; none if no line has several."""
    width = _commonest(counts)
    return (counts.count(width), width) if width else (0, 0)


def _commonest(counts: Sequence[int]) -> int:
    wide = [count for count in counts if count > 1]
    return max(set(wide), key=lambda one: (wide.count(one), one)) if wide else 0


class _Path(str):
    """A part of a path that is not a plain name."""


def about(rows: Rows, marks: Sequence[str]) -> Rows:
    """Rows in which a list of objects is replaced by the one object that names the symbol."""

    def chosen(row: object) -> object:
        if not isinstance(row, dict):
            return row
        found: dict[str, object] = {}
        for name, value in row.items():
            named = [
                (key, mark, one)
                for one in (value if isinstance(value, list) else ())
                if isinstance(one, dict)
                for key, text in one.items()
                for mark in marks
                if text in (mark, [mark])  # a child in XML is in a list
            ]
            if len(named) == 1:
                key, mark, one = named[0]
                found[_Path(f"{quoted(name)}[?{quoted(key)}=='{mark}']")] = one
            else:
                found[name] = value
        return found

    return replace(rows, rows=[chosen(row) for row in rows.rows])


def quoted(name: str) -> str:
    """A name as a part of a path."""
    if isinstance(name, _Path):
        return name
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name, ensure_ascii=False)


def scalar(path: str) -> str:
    """A path as a scalar of YAML."""
    return path if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", path) else "'" + path.replace("'", "''") + "'"


def _joined(path: str, name: str) -> str:
    return f"{path}.{quoted(name)}" if path else quoted(name)


def _walk(node: object, path: str, depth: int) -> Iterator[Rows]:
    if depth > _DEPTH:
        return
    if isinstance(node, list):
        if node and all(isinstance(one, dict | list) for one in node):
            if isinstance(node[0], list) or any(not isinstance(one, dict | list) for one in _members(node[0])):
                yield Rows(f"rows: {path or '@'}", node)
            flat = [inner for one in node if isinstance(one, dict) for inner in one.items()]
            lists: dict[str, list[object]] = {}
            for name, inner in flat:
                if isinstance(inner, list):
                    lists.setdefault(name, []).extend(inner)
            for name, inner in lists.items():
                yield from _walk(
                    inner,
                    f"{path}[].{quoted(name)}[]" if not path.endswith("[]") else f"{path}.{quoted(name)}[]",
                    depth + 1,
                )
        if len(node) <= 3:
            for number, one in enumerate(node):
                if isinstance(one, list | dict):
                    yield from _walk(one, f"{path}[{number}]", depth + 1)
    elif isinstance(node, dict):
        lengths = {len(one) for one in node.values() if isinstance(one, list) and _is_column(one)}
        columns = {name: one for name, one in node.items() if isinstance(one, list) and _is_column(one)}
        if len(columns) > 1 and len(lengths) == 1 and lengths != {0}:
            rows: list[object] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            others = any(isinstance(one, list) and name not in columns for name, one in node.items())
            chosen = "{" + ", ".join(f"{quoted(name)}: {quoted(name)}" for name in columns) + "}" if others else ""
            yield Rows(f"columns: {scalar('.'.join(filter(None, (path, chosen))) or '@')}", rows)
        if node and all(is_day(name) for name in node):
            yield Rows(f"rows: {scalar(path or '@')}", [{"key": name, "value": one} for name, one in node.items()])
        else:
            for name, one in node.items():
                yield from _walk(one, _joined(path, name), depth + 1)


def _members(node: object) -> Sequence[object]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()


def _is_column(values: Sequence[object]) -> bool:
    return bool(values) and not any(isinstance(one, list | dict) for one in values)


def fields_of(row: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every value of a row that holds nothing else, by its path."""
    if depth > 3:
        return
    if isinstance(row, dict):
        for name, one in row.items():
            yield from fields_of(one, _joined(path, name), depth + 1)
    elif isinstance(row, list) and (depth == 0 or len(row) == 1):
        for number, one in enumerate(row):
            yield from fields_of(one, f"{path}[{number}]", depth + 1)
    elif path:
        yield path, row
