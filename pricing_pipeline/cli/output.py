"""How values are printed: JSON and ISO times for programs, tables and short words for people."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import typer

from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import is_wide, zone
from pricing_pipeline.domain.words import as_json, plain
from pricing_pipeline.domain.words import decimal as decimal
from pricing_pipeline.domain.words import duration as duration
from pricing_pipeline.domain.words import iso as iso
from pricing_pipeline.domain.words import printable as printable
from pricing_pipeline.domain.words import size as size

if TYPE_CHECKING:
    from rich.console import Console

    from pricing_pipeline.db.roles import RoleFault

_WIDE = 500
"""Columns assumed where no terminal says how many there are: a pipe must not cut a table."""
_NARROW = 80
"""Columns that a table is fitted to there, where it can do without some of its own."""


def print_json(content: Mapping[str, Any]) -> None:
    """The one result of a command."""
    typer.echo(json.dumps(content, indent=2, default=as_json))


def print_event(content: Mapping[str, Any]) -> None:
    """One of many results, on a line of its own and at once."""
    typer.echo(json.dumps(content, default=as_json))


def print_role_faults(faults: Sequence[RoleFault]) -> None:
    """Why the roles are not separated, with the SQL for an administrator; nothing when they are."""
    if faults:
        typer.echo("The roles of owner and worker are not separated. As an administrator of the server:")
    for fault in faults:
        typer.echo(f"  {fault.fault}:\n    {fault.remedy}")


def login() -> str:
    """The person at the keyboard, by the name that decisions record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"user {os.getuid()}"


def console(*, stderr: bool = False) -> Console:
    """The terminal for people. Text is printed as it is: symbols may look like markup."""
    from rich.console import Console

    screen = Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not screen.is_terminal:
        screen.width = _WIDE
    return screen


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
    long: str | None = None,
    wrap: bool = False,
) -> None:
    """A table for people; the columns named in `right` hold numbers.

    Where it is wider than the terminal, or than 80 columns in a pipe, its `long` column is cut to what is left (or
    wrapped at words), and those named in `spare` are left out before that, the first of them first. A hint says which.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(value) for value in row] for row in rows]
    names, left_out, widest = list(headings), list[str](), None
    if not is_wide():
        names, cells, left_out, widest = _fitted(names, cells, spare, long)
    if widest is not None and not wrap:
        for row in cells:
            row[names.index(long or "")] = _cut(row[names.index(long or "")], widest)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        wraps = wrap and name == long
        table.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=not wraps,
            overflow="fold",
            max_width=widest if wraps else None,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    where = console()
    # A terminal wraps what is too wide at its edge; rich would split words to make room.
    where.width = max(where.width, sum(_widths(names, cells)) + _GAP * len(names))
    with where.capture() as printed:
        where.print(table)
    # rich has decided on colours already.
    typer.echo(_PADDING.sub(_without_spaces, printed.get()), nl=False, color=True)
    if left_out:
        hint(f"no room for: {', '.join(left_out)}. --wide shows all columns, --json all there is.")


def _cell(value: object) -> str:
    # A line end in it would look like another row.
    return "" if value is None else printable(str(value)).replace("\n", "\\n")


def print_lines(lines: Mapping[str, object]) -> None:
    """One thing for people: a line for each name that has a value."""
    widest = max(map(len, lines)) + 3
    for name, value in lines.items():
        if value not in (None, ""):
            typer.echo(f"{name + ':':<{widest}}{printable(str(value))}")


_PADDING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)
"""What rich fills the end of a line with: spaces and codes of style."""


def _without_spaces(padding: re.Match[str]) -> str:
    return padding[0].replace(" ", "")


_GAP = 2
_LEAST = 24
"""Characters of a long column that say something."""


def _fitted(
    names: list[str], cells: list[list[str]], spare: Sequence[str], long: str | None
) -> tuple[list[str], list[list[str]], list[str], int | None]:
    """The table without the columns that do not fit, the names of those columns, and the width of the long column."""
    where = console()
    room = where.width if where.is_terminal else _NARROW
    widths = _widths(names, cells)
    if long is not None:
        widths[names.index(long)] = min(widths[names.index(long)], max(_LEAST, len(long)))
    kept = list(range(len(names)))

    def left() -> int:
        return room - sum(widths[n] for n in kept) - _GAP * (len(kept) - 1)

    # Empty columns go first.
    for n in [n for n in kept if names[n] in spare and not any(row[n] for row in cells)]:
        if cells and left() < 0:
            kept.remove(n)
    left_out = []
    for name in spare:
        if left() >= 0:
            break
        if names.index(name) in kept:
            kept.remove(names.index(name))
            left_out.append(name)
    widest = None if long is None else widths[names.index(long)] + max(0, left())
    return [names[n] for n in kept], [[row[n] for n in kept] for row in cells], left_out, widest


def _widths(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max([cell_len(name), *(max(map(cell_len, row[n].split("\n"))) for row in cells)])
        for n, name in enumerate(names)
    ]


def _cut(text: str, widest: int) -> str:
    return text if len(text) <= widest else f"{text[: widest - 1].rstrip()}…"


def moment(value: datetime | None) -> str:
    """A time for people, to the second, in the zone that the command was given."""
    return "" if value is None else value.astimezone(zone()).strftime("%Y-%m-%d %H:%M:%S")


def bounds_words(lowest: Decimal | None, highest: Decimal | None, jumps_trusted_until: datetime | None) -> str:
    """Bounds of prices for people: `0.5 to any, jumps trusted until ...`, or `none`."""
    words = []
    if lowest is not None or highest is not None:
        words.append(" to ".join("any" if price is None else decimal(price) for price in (lowest, highest)))
    if jumps_trusted_until is not None:
        words.append(f"jumps trusted until {moment(jumps_trusted_until)}")
    return ", ".join(words) or "none"


def listed(names: Sequence[str], at_most: int = 8) -> str:
    """Names for people, the first few of many."""
    shown = ", ".join(names[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"


def print_change(
    names: Mapping[str, object], before: Mapping[str, object], after: Mapping[str, object], *, as_json: bool
) -> None:
    """What the settings of one thing were, and what they are now. `names` says which thing it is."""
    if as_json:
        print_json({**names, "before": before, "after": after})
        return
    rows = [
        (name.replace("_", " "), _setting(before[name]), _setting(value))
        for name, value in after.items()
        if before[name] != value
    ]
    if rows:
        print_table([" ".join(str(name) for name in names.values() if name), "before", "after"], rows, long="after")
    else:
        typer.echo("it was so already; nothing has changed.")


def _setting(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
    return str(plain(value))
