"""Financial Modeling Prep's lists of dividends and splits: documents, and their corporate actions.

Their models and what must be true of them. Asking and refusals are in fmp.py. A list has what is announced, too: that
is a document, and becomes an action when its day has come, since until then its date may move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from pricing_pipeline.domain.answers import Answer, CorporateAction, Dividend, Document, RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.base import Schema, check_count, read_rows
from pricing_pipeline.providers.values import IsoDay, Number, of_day, price_of, settle_documents, split_of


class _Dividend(Schema):
    """One payment; `date` is the first day that trades without it. Its yield is left out: that is the market's.

    `dividend` is for a share of that day, `adjDividend` for one of today.
    """

    symbol: str
    date: IsoDay
    dividend: Number | None
    adjDividend: Number | None = None
    recordDate: str | None = None
    paymentDate: str | None = None
    declarationDate: str | None = None
    frequency: str | None = None


class _Split(Schema):
    """From `date` on, `numerator` shares are what `denominator` were."""

    symbol: str
    date: IsoDay
    numerator: Number
    denominator: Number


_Found = tuple[Document, CorporateAction] | RejectedValue


def actions_of(fetcher: Fetcher, symbol: str, rows: Sequence[object], what: str, now: datetime) -> Answer:
    """One symbol's rows as documents, and those of days that have come as actions.

    Two payments of one day that differ are both rejected: whether they add up or one corrects the other is unknown.
    Raises SchemaDrift if none is one, or for too many.
    """
    check_count(len(rows), what)
    read: list[_Found]
    if fetcher is Fetcher.DIVIDENDS:
        read = read_rows(_Dividend, _dividend, rows, symbol, what)
    else:
        read = read_rows(_Split, _split, rows, symbol, what)
    answer = settle_documents(symbol, [row if isinstance(row, RejectedValue) else row[0] for row in read])
    today = now.astimezone(UTC).date()
    kept = {record.period for record in answer.records if isinstance(record, Document)}
    actions = {
        row[1].ex_on: row[1]
        for row in read
        if not isinstance(row, RejectedValue) and row[1].ex_on in kept and row[1].ex_on <= today
    }
    return replace(answer, actions=tuple(actions[day] for day in sorted(actions)))


def _dividend(row: _Dividend) -> _Found:
    def read(day: date) -> tuple[Document, CorporateAction]:
        # It names no currency: it is taken to be that of the prices.
        paid = Dividend(row.symbol, day, price_of(row.dividend, "dividend"))
        return Document(row.symbol, day, row.model_dump(exclude_unset=True)), paid

    return of_day(row.symbol, row.date, row.dividend, read)


def _split(row: _Split) -> _Found:
    def read(day: date) -> tuple[Document, CorporateAction]:
        new, old = price_of(row.numerator, "numerator"), price_of(row.denominator, "denominator")
        return Document(row.symbol, day, row.model_dump(exclude_unset=True)), split_of(row.symbol, day, new, old)

    return of_day(row.symbol, row.date, row.numerator, read)
