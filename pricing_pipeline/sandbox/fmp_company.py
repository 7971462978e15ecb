"""The companies of the sandbox: profiles, quarterly earnings, annual statements, all made up.

A pure function of the symbol and of the day it is asked on, so that two processes agree. Reports that lie ahead
have estimates only, and get their figures on their day. How they are asked for is not decided here.
"""

from __future__ import annotations

from datetime import date, timedelta

from pricing_pipeline.sandbox.instruments import Instrument, pick

FIRST_YEAR = 2010
_REPORTED_AFTER = timedelta(days=30)
_MOVES = timedelta(days=45)
"""A report's day is a guess until this number of days before it."""
_FILED_AFTER = timedelta(days=40)
_TRADES = ("Software", "Semiconductors", "Banks", "Insurance", "Retail", "Pharmaceuticals")
Row = dict[str, object]


def shares(symbol: str) -> int:
    """Shares outstanding."""
    return pick(f"shares:{symbol}", 10**8, 10**10)


def profile(instrument: Instrument) -> Row:
    """The facts of a company; the dialect adds those of the market."""
    symbol = instrument.key
    trade = _TRADES[pick(f"trade:{symbol}", 0, len(_TRADES))]
    return {
        "companyName": instrument.name,
        "currency": instrument.currency,
        "isin": f"{instrument.venue.country_code}{pick(f'isin:{symbol}', 10**9, 10**10)}",
        "exchangeFullName": instrument.venue.name,
        "exchange": instrument.exchange,
        "industry": trade,
        "website": f"https://www.{instrument.symbol.lower()}.example",
        "description": f"{instrument.name} is made up and deals in {trade.lower()}.",
        "sector": "Technology" if trade in _TRADES[:2] else "Other",
        "country": instrument.venue.country_code,
        "fullTimeEmployees": str(pick(f"employees:{symbol}", 100, 200_000)),
        "beta": _hundredths(pick(f"beta:{symbol}", 20, 220)),
        "ipoDate": str(instrument.first_day),
    }


def earnings(symbol: str, today: date) -> list[Row]:
    """Quarterly reports, the newest first: all of the past, and the next two."""
    quarters = [(year, quarter) for year in range(FIRST_YEAR, today.year + 2) for quarter in range(4)]
    days = [(_report_day(symbol, *one, today), *one) for one in quarters]
    ahead = [one for one in days if one[0] > today]
    reports = [one for one in days if one[0] <= today] + ahead[:2]
    return [_report(symbol, *one, today, has_guess=one not in ahead[1:]) for one in reversed(reports)]


def statements(symbol: str, today: date, most: int) -> list[Row]:
    """Annual income statements that are filed, the newest first."""
    years = [year for year in range(FIRST_YEAR, today.year + 1) if _year_end(year) + _FILED_AFTER <= today]
    return [_statement(symbol, year) for year in reversed(years[-most:])]


def _report_day(symbol: str, year: int, quarter: int, today: date) -> date:
    ended = date(year, 3 * quarter + 1, 1)
    guess = ended + _REPORTED_AFTER
    # The true day is announced when it is near: until then another one is listed.
    shift = timedelta(days=pick(f"day:{symbol}:{year}:{quarter}", -5, 6))
    return guess + shift if guess - _MOVES <= today else guess


def _report(symbol: str, day: date, year: int, quarter: int, today: date, *, has_guess: bool) -> Row:
    key, is_out = f"{symbol}:{year}:{quarter}", day <= today
    eps, revenue = pick(f"eps:{key}", -50, 500), pick(f"revenue:{key}", 10**9, 10**11)
    return {
        "date": str(day),
        "epsActual": _hundredths(eps) if is_out else None,
        "epsEstimated": _hundredths(eps + pick(f"miss:{key}", -20, 20)) if has_guess else None,
        "revenueActual": revenue if is_out else None,
        "revenueEstimated": revenue * pick(f"guess:{key}", 95, 105) // 100 if has_guess else None,
        "lastUpdated": str(min(day, today)),
    }


def _statement(symbol: str, year: int) -> Row:
    key = f"{symbol}:{year}"
    revenue = pick(f"annual:{key}", 4, 400) * 10**9
    cost = revenue * pick(f"cost:{key}", 30, 70) // 100
    spent = revenue * pick(f"spent:{key}", 5, 25) // 100
    income = revenue - cost - spent
    tax = max(income, 0) * 21 // 100
    earned, wear = income - tax, revenue * 3 // 100
    filed = _year_end(year) + _FILED_AFTER
    return {
        "date": str(_year_end(year)),
        "reportedCurrency": "USD",
        "cik": f"{pick(f'cik:{symbol}', 10**5, 2 * 10**6):010d}",
        "filingDate": str(filed),
        "acceptedDate": f"{filed} 06:01:36",
        "fiscalYear": str(year),
        "period": "FY",
        "revenue": revenue,
        "costOfRevenue": cost,
        "grossProfit": revenue - cost,
        "operatingExpenses": spent,
        "costAndExpenses": cost + spent,
        "depreciationAndAmortization": wear,
        "ebitda": income + wear,
        "ebit": income,
        "operatingIncome": income,
        "incomeBeforeTax": income,
        "incomeTaxExpense": tax,
        "netIncome": earned,
        "eps": _hundredths(earned * 100 // shares(symbol)),
        "epsDiluted": _hundredths(earned * 100 // (shares(symbol) * 101 // 100)),
    }


def _year_end(year: int) -> date:
    return date(year, 9, 30)


def _hundredths(amount: int) -> float:
    return amount // 100 if amount % 100 == 0 else amount / 100
