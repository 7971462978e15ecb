"""Histories: how each kind of transaction changes the quantity that is held.

Sums do not depend on the order of lines, because the quantity of a split is the change that it makes, with its sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Entry, Fault, LeftOut, Names, Read
from pricing_pipeline.holdings_files.tables import Row, Table, lines_of

_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(.*)")


@dataclass(frozen=True, slots=True)
class Kinds:
    """How the names of kinds of transactions begin, in lower case.

    `signed` are those whose quantity has a sign, such as splits. `payments` change no quantity.
    """

    adds: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    payments: tuple[str, ...] = ("dividend",)


def changes(
    table: Table,
    kinds: Kinds,
    names_of: Callable[[Row], Names],
    kind_of: Callable[[Row], str],
    *,
    shares: int | None,
    at: int | None,
    usual: Mark = Mark.POINT,
    left_out: Callable[[Row], str] = lambda _: "",
) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none; `left_out` may know a reason.

    `shares` and `at` are the columns of the quantity and the time. A line of an unknown kind is a payment if it has
    no quantity.
    """
    assert shares is not None  # noqa: S101 - a format is recognised by it
    quantity = table.numbers(shares, usual)

    def change(row: Row, names: Names) -> Read:
        said = " ".join(kind_of(row).split())
        what, kind = names.in_words or said, said.casefold()
        if not names.in_words:
            return LeftOut(row.line, what, "cash")
        if reason := left_out(row):
            return LeftOut(row.line, what, reason)
        time = sortable(row[at])
        if kind.startswith(kinds.payments):
            return LeftOut(row.line, what, "a payment")
        if kind.startswith(kinds.takes):
            return Entry(row.line, names, -abs(quantity(row)), time)
        if kind.startswith(kinds.adds):
            return Entry(row.line, names, abs(quantity(row)), time)
        if kind.startswith(kinds.signed):
            return Entry(row.line, names, quantity(row), time)
        if not row[shares]:
            return LeftOut(row.line, what, "a payment")
        return Fault(row.line, what, f"{said!r} is no kind of transaction that is known here")

    return lines_of(table, names_of, change)


def sortable(time: str) -> str:
    """A time as a text that sorts. In 05.11.2026 the day is first, unless only the month can be."""
    parts = _DATE.fullmatch(time)
    if parts is None:
        return time
    first, _, second, year, clock = parts.groups()
    day, month = (second, first) if int(second) > 12 else (first, second)
    return f"{year}-{month:0>2}-{day:0>2}{clock}"
