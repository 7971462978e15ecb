"""`document show`: what providers say about a company, as it is or was believed. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import as_of_time
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.options import AsOf, Json, Symbol, Type
from pricing_pipeline.cli.output import decimal, duration, iso, moment, print_json, print_table
from pricing_pipeline.cli.price import sentences_of
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import listing
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.prices import documents
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from pricing_pipeline.demand.freshness import Why
    from pricing_pipeline.domain.answers import Scalar
    from pricing_pipeline.prices.documents import Reading, StoredDocument

noun = typer.Typer()

_MOST_COLUMNS = 8
"""Fields up to which each document is a line; with more, each is a column."""
_MOST_ACROSS = 5


@noun.command()
@listing
def show(symbol: Symbol, data_type: Type, believed_at: AsOf = None, as_json: Json = False) -> None:
    """Show what providers say about a company: its documents of one type, the newest period first.

    Missing and stale documents are requested. --as-of shows what was believed then.

    \b
    Example: pricing-pipeline document show AAPL --type company_profile --as-of 2026-11-20
    """
    as_of = as_of_time(believed_at)
    with open_connection() as connection:
        type_ = data_type_registry.active_data_type(connection, data_type)
        if type_.contents is not Contents.DOCUMENTS:
            others = [
                other.data_type
                for other in data_type_registry.active_data_types(connection)
                if other.contents is Contents.DOCUMENTS
            ]
            raise UnknownDataType(
                f"{data_type} is a type of prices, which `pricing-pipeline price show` and `price history` read. "
                f"Types of documents are: {', '.join(others) or 'none yet'}."
            )
        symbol = instruments.spelled_anywhere(connection, symbol)
        if as_of is None:
            reading = documents.read(connection, data_type, symbol)
            stops = [why for why in freshness.why(connection, symbol, data_type) if why.is_stopped]
        else:
            stored = documents.as_of(connection, data_type, symbol, as_of)
            reading, stops = documents.Reading(stored, None, None, False, False), []
        if not reading.documents:
            reads.require_instruments(connection, type_, [symbol])
        connection.commit()
    if as_json:
        print_json(_content(symbol, type_, as_of, reading))
    elif reading.documents:
        _print(reading.documents)
        if reading.age_seconds is not None:
            hint(f"Confirmed {duration(reading.age_seconds)} ago, which is {_judged(reading)}.")
    if not reading.documents:
        hint(_what_will_come(symbol, type_, as_of, reading, stops))
    elif stops and not as_json:
        hint(f"nothing newer comes now. {sentences_of(stops)}")
    elif reading.is_requested and not as_json:
        hint("A newer answer is queued; a running pipeline fetches it in a moment.")


def _content(symbol: str, type_: DataType, as_of: datetime | None, reading: Reading) -> dict[str, Any]:
    past = {"as_of": iso(as_of)} if as_of is not None else {}
    now = {} if as_of is not None else {"fetched_at": reading.fetched_at, "fresh": reading.fresh}
    return {
        "symbol": symbol,
        "data_type": type_.data_type,
        **past,
        **now,
        "documents": [
            {
                "period": document.period,
                "recorded_at": document.recorded_at,
                "provider": document.provider,
                "body": dict(document.body),
            }
            for document in reading.documents
        ],
    }


def _judged(reading: Reading) -> str:
    return "fresh" if reading.fresh else "stale"


def _print(stored: Sequence[StoredDocument]) -> None:
    """With few fields, a line for each period. With many, a line for each field, and the newest periods side by
    side."""
    fields = list(dict.fromkeys(name for document in stored for name in document.body))
    if len(stored) > 1 and len(fields) <= _MOST_COLUMNS:
        rows = ([_text(document.body.get(name)) for name in fields] for document in stored)
        print_table(fields, rows, spare=fields[:1:-1])
        return
    shown = stored[:_MOST_ACROSS]
    heads = [str(document.period or moment(document.recorded_at)) for document in shown]
    values = ([name, *(_text(document.body.get(name)) for document in shown)] for name in fields)
    print_table(["", *heads], values, spare=heads[:0:-1], long=heads[0], wrap=True)
    if len(shown) < len(stored):
        hint(f"{len(stored) - len(shown)} older ones are told with --json.")


def _text(value: Scalar) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return decimal(value)
    return str(value)


def _what_will_come(
    symbol: str, type_: DataType, as_of: datetime | None, reading: Reading, stops: Sequence[Why]
) -> str:
    sentence = f"nothing is stored of {symbol} {type_.data_type}"
    if as_of is not None:
        return f"{sentence} that was believed at {iso(as_of)}."
    if stops:
        return f"{sentence} yet. {sentences_of(stops)}"
    if reading.is_requested:
        return f"{sentence} yet. It is queued; a running pipeline fetches it in a moment."
    return (
        f"{sentence} yet. Either it is on its way, or it failed and is left alone for a while: "
        "pricing-pipeline task list"
    )
