"""Financial Modeling Prep's documents: company profiles, earnings reports, annual income statements.

Their models and what must be true of them. Asking, refusals and prices are in fmp.py. Numbers stay decimals, in the
provider's own digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from pricing_pipeline.domain.answers import Answer, Document, RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.base import Schema, check_count, read_rows
from pricing_pipeline.providers.values import Implausible, IsoDay, check_day, of_day, settle_documents

_Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
_Exact = int | Annotated[Decimal, Field(max_digits=40, decimal_places=20, allow_inf_nan=False)]


class _Profile(Schema):
    """The profile of a company. What the market says of it (price, capitalisation, beta) is left out: it is new
    every day, and prices have data types of their own."""

    symbol: str
    companyName: str
    currency: str | None
    exchange: str | None
    exchangeFullName: str | None = None
    cik: str | None = None
    isin: str | None = None
    cusip: str | None = None
    industry: str | None = None
    sector: str | None = None
    country: str | None = None
    website: str | None = None
    description: str | None = None
    ceo: str | None = None
    fullTimeEmployees: str | None = None
    phone: str | None = None
    address: str | None = None
    city: str | None = None
    state: str | None = None
    zip: str | None = None
    image: str | None = None
    ipoDate: str | None = None
    lastDividend: _Exact | None = None
    defaultImage: bool | None = None
    isEtf: bool | None = None
    isActivelyTrading: bool | None = None
    isAdr: bool | None = None
    isFund: bool | None = None


class _Earnings(Schema):
    """One report: `date` is its day. What is still to come has estimates only, or nothing."""

    symbol: str
    date: IsoDay
    epsActual: _Exact | None
    epsEstimated: _Exact | None
    revenueActual: _Exact | None
    revenueEstimated: _Exact | None
    lastUpdated: IsoDay | None = None


class _IncomeStatement(Schema):
    """One fiscal year, `date` its last day. `acceptedDate` is New York's time."""

    symbol: str
    date: IsoDay
    reportedCurrency: _Currency
    cik: str | None = None
    filingDate: str | None = None
    acceptedDate: str | None = None
    fiscalYear: str
    period: str
    revenue: _Exact | None
    costOfRevenue: _Exact | None
    grossProfit: _Exact | None
    researchAndDevelopmentExpenses: _Exact | None = None
    generalAndAdministrativeExpenses: _Exact | None = None
    sellingAndMarketingExpenses: _Exact | None = None
    sellingGeneralAndAdministrativeExpenses: _Exact | None = None
    otherExpenses: _Exact | None = None
    operatingExpenses: _Exact | None = None
    costAndExpenses: _Exact | None = None
    netInterestIncome: _Exact | None = None
    interestIncome: _Exact | None = None
    interestExpense: _Exact | None = None
    depreciationAndAmortization: _Exact | None = None
    ebitda: _Exact | None = None
    ebit: _Exact | None = None
    nonOperatingIncomeExcludingInterest: _Exact | None = None
    operatingIncome: _Exact | None = None
    totalOtherIncomeExpensesNet: _Exact | None = None
    incomeBeforeTax: _Exact | None = None
    incomeTaxExpense: _Exact | None = None
    netIncomeFromContinuingOperations: _Exact | None = None
    netIncomeFromDiscontinuedOperations: _Exact | None = None
    otherAdjustmentsToNetIncome: _Exact | None = None
    netIncome: _Exact | None
    netIncomeDeductions: _Exact | None = None
    bottomLineNetIncome: _Exact | None = None
    eps: _Exact | None
    epsDiluted: _Exact | None = None
    weightedAverageShsOut: _Exact | None = None
    weightedAverageShsOutDil: _Exact | None = None


def documents_of(fetcher: Fetcher, symbol: str, rows: Sequence[object], what: str, now: datetime) -> Answer:
    """One symbol's rows as documents. Raises SchemaDrift when every row is unlike its model, or for too many."""
    check_count(len(rows), what)
    read: list[Document | RejectedValue]
    match fetcher:
        case Fetcher.PROFILE:
            read = read_rows(_Profile, _profile, rows, symbol, what)
        case Fetcher.EARNINGS:
            read = read_rows(_Earnings, lambda row: _report(row, now), rows, symbol, what)
        case _:
            read = read_rows(_IncomeStatement, lambda row: _statement(row, now), rows, symbol, what)
    return settle_documents(symbol, read)


def _profile(profile: _Profile) -> Document | RejectedValue:
    return Document(profile.symbol, None, profile.model_dump(exclude_unset=True))


def _report(report: _Earnings, now: datetime) -> Document | RejectedValue:
    def read(day: date) -> Document:
        try:
            if report.epsActual is not None or report.revenueActual is not None:
                check_day(day, now)
        except Implausible as fault:
            raise Implausible(f"its figures cannot be actual: {fault}") from None
        return Document(report.symbol, day, report.model_dump(exclude_unset=True))

    return of_day(report.symbol, report.date, report.date, read)


def _statement(statement: _IncomeStatement, now: datetime) -> Document | RejectedValue:
    def read(day: date) -> Document:
        check_day(day, now)
        if statement.period != "FY":
            raise Implausible(f"a statement of {statement.period} where whole years were asked for")
        return Document(statement.symbol, day, statement.model_dump(exclude_unset=True))

    return of_day(statement.symbol, statement.date, statement.date, read)
