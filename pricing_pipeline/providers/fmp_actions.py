"""Financial Modeling Prep's lists of dividends and splits: documents, and their corporate actions.

Their models and what must be true of them. Asking and refusals are in fmp.py. A list has what is announced, too: that
is a document, and becomes an action when its day has come, since until then its date may move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from pricing_pipeline.domain.answers import Answer, CorporateAction, Dividend, Document, RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.base import Schema, check_count, validate_rows
from pricing_pipeline.providers.values import (
    Implausible,
    Number,
    calendar_day,
    midnight,
    price_of,
    settle_documents,
    spelling,
    split_of,
)

_Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class _Dividend(Schema):
    """One payment; `date` is the first day that trades without it. Its yield is left out: that is the market's.

    `dividend` is for a share of that day, `adjDividend` for one of today.
    """

    symbol: str
    date: _Day
    dividend: Number | None
    adjDividend: Number | None = None
    recordDate: str | None = None
    paymentDate: str | None = None
    declarationDate: str | None = None
    frequency: str | None = None


class _Split(Schema):
    """From `date` on, `numerator` shares are what `denominator` were."""

    symbol: str
    date: _Day
    numerator: Number
    denominator: Number


_Found = tuple[Document, CorporateAction] | RejectedValue


def actions_of(fetcher: Fetcher, symbol: str, rows: Sequence[object], what: str, now: datetime) -> Answer:
    """One symbol's rows as documents, and those of days that have come as actions.

    Two payments of one day that differ are both rejected: whether they add up or one corrects the other is unknown.
    Raises SchemaDrift if none is one, or for too many.
    """
    check_count(len(rows), what)
    model = _Dividend if fetcher is Fetcher.DIVIDENDS else _Split
    read = [_read(row) for row in validate_rows(model, rows, symbol, what, place="rows")]
    answer = settle_documents(symbol, [row if isinstance(row, RejectedValue) else row[0] for row in read])
    today, kept = (
        now.astimezone(UTC).date(),
        {record.period for record in answer.records if isinstance(record, Document)},
    )
    actions = {
        row[1].ex_on: row[1]
        for row in read
        if not isinstance(row, RejectedValue) and row[1].ex_on in kept and row[1].ex_on <= today
    }
    return replace(answer, actions=tuple(actions[day] for day in sorted(actions)))


def _read(row: Schema | RejectedValue) -> _Found:
    match row:
        case _Dividend():
            return _dividend(row)
        case _Split():
            return _split(row)
        case _:
            assert isinstance(row, RejectedValue)  # noqa: S101 - for the type checker
            return row


def _dividend(row: _Dividend) -> _Found:
    at = None
    try:
        day = calendar_day(row.date)
        at = midnight(day)
        # It names no currency: it is taken to be that of the prices.
        paid = Dividend(row.symbol, day, price_of(row.dividend, "dividend"))
    except Implausible as fault:
        return RejectedValue(row.symbol, at, str(fault), spelling(row.dividend))
    return Document(row.symbol, day, row.model_dump(exclude_unset=True)), paid


def _split(row: _Split) -> _Found:
    at = None
    try:
        day = calendar_day(row.date)
        at = midnight(day)
        new, old = price_of(row.numerator, "numerator"), price_of(row.denominator, "denominator")
        split = split_of(row.symbol, day, new, old)
    except Implausible as fault:
        return RejectedValue(row.symbol, at, str(fault), spelling(row.numerator))
    return Document(row.symbol, day, row.model_dump(exclude_unset=True)), split
