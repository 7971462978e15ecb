"""A table of text with one header. Columns are read by their position: a header may repeat a name, or have none."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.numbers import Mark, NotANumber, mark_of, number
from pricing_pipeline.holdings_files.positions import Fault, Names, Read

_SEPARATORS = (",", ";", "\t", "|")
_HEADER_WITHIN = 30
"""Lines before the header, which some brokers fill with an account and a date."""
_MOST_LINES = 200_000
_MOST_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: its number in the file, the first being 1, and its cells."""

    line: int
    cells: Sequence[str]

    def __getitem__(self, position: int | None) -> str:
        """The cell of a column, empty where the line ends before it, and for no column."""
        if position is None or position >= len(self.cells):
            return ""
        # A line break in a cell would break the line on the terminal.
        text = " ".join(self.cells[position].split())
        # Some write ="0700" so that a spreadsheet keeps the zeros.
        return text[2:-1] if text.startswith('="') and text.endswith('"') else text


class Header:
    """The names of columns, compared without case and outer spaces."""

    def __init__(self, cells: Sequence[str]) -> None:
        self.shown = [" ".join(cell.split()) for cell in cells]
        self.names = [cell.casefold() for cell in self.shown]
        self._named = frozenset(filter(None, self.names))

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self.names

    def position(self, *names: str) -> int | None:
        """The first column that is called by one of these names."""
        for name in names:
            if name.casefold() in self.names:
                return self.names.index(name.casefold())
        return None

    def is_like(self, row: Row) -> bool:
        """Whether a row has most of these names, and so is a header itself. Raises HoldingsFileRefused."""
        begins = row[0].casefold() in self._named
        if not begins and len(row.cells) <= len(self.names):  # as nearly all
            return False
        common = self._named.intersection(cell.casefold() for cell in row.cells)
        if 2 * len(common) <= len(self._named):
            return False
        if not begins:
            raise HoldingsFileRefused(
                f"line {row.line} has a header behind other text. Join files that end with a line break."
            )
        return True

    def positions(self, name: str) -> list[int]:
        """All columns of a name."""
        return [place for place, each in enumerate(self.names) if each == " ".join(name.split()).casefold()]


@dataclass(frozen=True, slots=True)
class Table:
    """The header and the rows below it; `decimal` is the decimal mark that a person has named."""

    header: Header
    rows: list[Row]
    decimal: Mark | None = None

    def numbers(self, column: int, usual: Mark) -> Callable[[Row], Decimal]:
        """A reader of a column's numbers. Their decimal mark is the one that the column shows, or the one that all
        columns show, or the usual one. Where a column shows both marks, each number must show its own.
        """
        if self.decimal is not None:
            mark: Mark | None = self.decimal
        else:
            own = self._marks(column)
            mark = None if len(own) > 1 else next(iter(own), None) or self._mark or usual
        return lambda row: number(row[column], mark)

    def shows_mark(self, column: int) -> bool:
        """Whether the decimal mark of a column is known, and not just assumed to be the usual one."""
        return self.decimal is not None or bool(self._marks(column)) or self._mark is not None

    def _marks(self, column: int) -> set[Mark | None]:
        return {mark_of([row[column]]) for row in self.rows} - {None}

    @property
    def _mark(self) -> Mark | None:
        return mark_of(cell for row in self.rows for cell in row.cells)


def tables(text: str) -> Iterator[tuple[Header, Callable[[Mark | None], list[Table]]]]:
    """Each line near the beginning that may be the header, read with each separator, and the tables below it.

    There are several tables if files are joined, such as those of several years: each begins with its header.
    """
    named = _named_separator(text)
    alone = list[tuple[Header, Callable[[Mark | None], list[Table]]]]()
    for separator in _SEPARATORS if named is None else (named,):
        try:
            for row in _rows(text, separator, _HEADER_WITHIN):
                if named is not None and row.line == 1:
                    continue
                candidate = Header(row.cells), _below(text, separator, row)
                if len(row.cells) > 1:
                    yield candidate
                else:
                    alone.append(candidate)
        except HoldingsFileRefused:  # not a table with this separator
            continue
    yield from alone  # a table of one column


def _below(text: str, separator: str, header: Row) -> Callable[[Mark | None], list[Table]]:
    def joined(decimal: Mark | None) -> list[Table]:
        found = list[Table]()
        for row in _rows(text, separator, first=header.line):
            if not found or found[-1].header.is_like(row):
                found.append(Table(Header(row.cells), [], decimal))
            elif any(map(str.strip, row.cells)):
                found[-1].rows.append(row)
        return found

    return joined


def lines_of(table: Table, names_of: Callable[[Row], Names], read: Callable[[Row, Names], Read]) -> Iterator[Read]:
    """Each line as `read` reads it. It is a fault if it has more cells than the header, or `read` raises NotANumber."""
    for row in table.rows:
        names = names_of(row)
        try:
            # A text without quotes has a separator in it, so every later column is shifted.
            if any(cell.strip() for cell in row.cells[len(table.header.names) :]):
                reason = "the line has more cells than the header"
                yield Fault(row.line, names.in_words or row[0], reason, "put quotes around its texts")
            else:
                yield read(row, names)
        except NotANumber as error:
            yield Fault(row.line, names.in_words or row[0], str(error))


def _rows(text: str, separator: str, at_most: int = _MOST_LINES, first: int | None = None) -> Iterator[Row]:
    """The rows from a line on, which begin a table, or those among which its header is looked for."""
    lines = io.StringIO(text, newline="")
    line = first or 1
    for _ in range(1, line):
        lines.readline()
    # An unclosed quote would swallow all lines below it unnoticed. The lines above a table may have any quotes.
    reader = csv.reader(lines, delimiter=separator, strict=first is not None)
    try:
        for count, cells in enumerate(reader):
            if count >= at_most:
                if at_most == _MOST_LINES:
                    raise HoldingsFileRefused(f"the file has more than {_MOST_LINES:,} lines.")
                return
            if len(cells) > _MOST_COLUMNS:
                raise HoldingsFileRefused(f"line {line} has more than {_MOST_COLUMNS} columns.")
            yield Row(line, cells)
            line = (first or 1) + reader.line_num
    except csv.Error as error:
        raise HoldingsFileRefused(
            f"line {line} is not a line of a table: {error}. Close its quotes; one within a text is written twice."
        ) from error


def _named_separator(text: str) -> str | None:
    """The separator that a first line such as sep=; names; Excel writes it."""
    first = text[:20].splitlines()[0].strip().strip('"').lower() if text.strip() else ""
    return first[4] if first.startswith("sep=") and len(first) == 5 else None
