"""The formats of files, and which one a file has: its header says it, or a person does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files import (
    degiro,
    freetrade,
    ghostfolio,
    interactive_brokers,
    mapped,
    parqet,
    portfolio_performance,
    revolut,
    trade_republic,
    trading212,
    xtb,
)
from pricing_pipeline.holdings_files.mapped import FIELDS
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import HoldingsFile, Read, summed
from pricing_pipeline.holdings_files.tables import Header, Table, tables
from pricing_pipeline.holdings_files.text import decoded


@dataclass(frozen=True, slots=True)
class _Csv:
    """A format of tables. A history sums to what is held; the others say it."""

    title: str
    is_history: bool
    recognises: Callable[[Header], bool]
    read: Callable[[Table], Iterator[Read]]


_FLEX = "interactive-brokers"
_GHOSTFOLIO = "ghostfolio"
_MAPPED = "columns"
_CSV: Mapping[str, _Csv] = {
    "portfolio-performance": _Csv(
        "Portfolio Performance, transactions",
        True,
        portfolio_performance.recognises,
        portfolio_performance.read,
    ),
    "trading212": _Csv("Trading 212, history", True, trading212.recognises, trading212.read),
    "degiro-transactions": _Csv("Degiro, transactions", True, degiro.recognises_transactions, degiro.read_transactions),
    "degiro-portfolio": _Csv("Degiro, portfolio", False, degiro.recognises_portfolio, degiro.read_portfolio),
    "trade-republic": _Csv("Trade Republic, transactions", True, trade_republic.recognises, trade_republic.read),
    "parqet": _Csv("Parqet, activities", True, parqet.recognises, parqet.read),
    "freetrade": _Csv("Freetrade, activity", True, freetrade.recognises, freetrade.read),
    "revolut": _Csv("Revolut, statement of shares", True, revolut.recognises, revolut.read),
    "xtb": _Csv("XTB, cash operations", True, xtb.recognises, xtb.read),
}
FORMATS: Mapping[str, str] = {
    **{name: csv.title for name, csv in _CSV.items()},
    _FLEX: "Interactive Brokers, open positions of a Flex query (XML)",
    _GHOSTFOLIO: "Ghostfolio, export (JSON)",
}
"""Title by the name of each format that is recognised."""
YAHOO_CUSTOM = frozenset({"portfolio-performance", _GHOSTFOLIO})
"""Formats with Yahoo's tickers: one without a suffix is American."""


def read_file(
    content: bytes,
    format_: str | None = None,
    columns: Mapping[str, str] | None = None,
    decimal: Mark | None = None,
) -> HoldingsFile:
    """Read a file, as the format that is named or else as the one that its header shows.

    With `columns`, name of a column (or #3) by field, it is any table. Raises HoldingsFileRefused.
    """
    if format_ is not None and format_ not in FORMATS:
        raise HoldingsFileRefused(f"there is no format {format_!r}; there are: {', '.join(FORMATS)}.")
    if columns and format_ is not None:
        raise HoldingsFileRefused("a format knows its columns: name a format or columns, not both.")
    text = decoded(content)
    if columns:
        return _read_mapped(text, columns, decimal)
    begins = text.lstrip("\ufeff \t\r\n")[:1]
    if begins == "<":
        return _read_flex(text, format_)
    if begins == "{" and format_ in (None, _GHOSTFOLIO):
        return summed(_GHOSTFOLIO, ghostfolio.read(text), is_history=True)
    shown: Header | None = None
    for header, below in tables(text):
        for name, csv in _CSV.items():
            if format_ in (None, name) and csv.recognises(header):
                joined = below(decimal)
                _require_alike(joined, csv.recognises)
                read = chain.from_iterable(map(csv.read, joined))
                return summed(name, read, is_history=csv.is_history, by_listing=not csv.is_history)
        # The candidate with the most columns is shown to people as the header.
        if shown is None or len(header.names) > len(shown.names):
            shown = header
    raise HoldingsFileRefused(_unknown(shown, format_))


def _read_mapped(text: str, columns: Mapping[str, str], decimal: Mark | None) -> HoldingsFile:
    mapped.require_fields(columns)
    shown: Header | None = None
    for header, below in tables(text):
        if mapped.recognises(header, columns):
            joined = below(decimal)
            _require_alike(joined, lambda other: mapped.recognises(other, columns))
            read = chain.from_iterable(mapped.read(table, columns) for table in joined)
            return summed(_MAPPED, read, is_history="action" in columns)
        if shown is None or len(header.names) > len(shown.names):
            shown = header
    named = ", ".join(map(repr, columns.values()))
    raise HoldingsFileRefused(f"no line of the file has all of the columns {named}.{_columns_of(shown)}")


def _require_alike(joined: Sequence[Table], recognises: Callable[[Header], bool]) -> None:
    """Raise HoldingsFileRefused unless all tables of joined files have the format of the first."""
    if not all(recognises(table.header) for table in joined):
        raise HoldingsFileRefused("the file has a second header, of another format. Join files of one format only.")


def _read_flex(text: str, format_: str | None) -> HoldingsFile:
    if format_ not in (None, _FLEX) or not interactive_brokers.recognises(text):
        raise HoldingsFileRefused(
            "the file is XML and no Flex query of Interactive Brokers, the only XML that is read. Export CSV."
        )
    return summed(_FLEX, interactive_brokers.read(text), is_history=False, by_listing=True)


def _unknown(header: Header | None, format_: str | None) -> str:
    wanted = f"the file is not of the format {format_}" if format_ else "the header of the file has no known format"
    return (
        f"{wanted}.{_columns_of(header)} Name the columns yourself, as in --column symbol=Ticker --column "
        f"quantity=Shares; a column can be: {', '.join(FIELDS)}. Known formats: {', '.join(FORMATS)}."
    )


def _columns_of(header: Header | None) -> str:
    if header is None:
        return ""
    names = ", ".join(repr(name[:40]) if name else f"#{place}" for place, name in enumerate(header.shown[:40], 1))
    return f" Its columns seem to be {names}."
