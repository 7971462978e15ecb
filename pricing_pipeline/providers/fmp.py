"""Financial Modeling Prep (`stable` API): quotes, daily bars and, by fmp_documents.py and fmp_actions.py, documents.

This module knows only its URLs and answers. Answers are flat lists, newest first; an unknown symbol is an empty list.
Refusals are JSON or plain text, and one of them was seen with HTTP 200, so words decide before the status does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pydantic import Field

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, storable
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import KeyRefused, PlanRestricted, SchemaDrift
from pricing_pipeline.providers.base import (
    Question,
    Request,
    Schema,
    check_key,
    check_status,
    decode_json,
    failed,
    read_rows,
    refusal,
    safe_words,
    throttled,
    untrue,
    validate,
    validate_rows,
    words_of,
)
from pricing_pipeline.providers.canonical import PARTS_SUFFIXES, pair_of, share_of, with_suffix
from pricing_pipeline.providers.currencies import CURRENCIES
from pricing_pipeline.providers.fmp_actions import actions_of
from pricing_pipeline.providers.fmp_documents import documents_of
from pricing_pipeline.providers.values import (
    Implausible,
    IsoDay,
    Number,
    calendar_day,
    check_range,
    daily_bar,
    instant_of,
    merge,
    midnight,
    plain_price,
    price_of,
    settle_days,
    spelling,
)

MAX_SYMBOLS = 100
MAX_DAYS = 1825
"""Five years, beyond which answers were seen to be cut off."""
LATEST_DAYS = 10
"""Days asked for without a window: whatever the holidays, a listed share has traded in them."""
STATEMENTS = 5
"""Fiscal years of one answer: what the free plan allows."""

_SYMBOL = re.compile(r"[A-Z0-9^][A-Z0-9.^&'-]{0,31}")
_PATHS = {
    Fetcher.QUOTE: "/quote",
    Fetcher.DAILY_BARS: "/historical-price-eod/full",
    Fetcher.PROFILE: "/profile",
    Fetcher.EARNINGS: "/earnings",
    Fetcher.INCOME_STATEMENT: "/income-statement",
    Fetcher.DIVIDENDS: "/dividends",
    Fetcher.SPLITS: "/splits",
}
_ACTIONS = frozenset({Fetcher.DIVIDENDS, Fetcher.SPLITS})
_BATCH = "/batch-quote"

_GATED_VALUE = re.compile(r"values? (?:set )?for '(\w+)'|Premium Query Parameter: '(\w+)'", re.I)
_GATED_ENDPOINT = re.compile(
    r"(restricted|exclusive|legacy|special) endpoint|this endpoint is (not|only) available|premium", re.I
)

# Prices name no currency. Shares on these exchanges are quoted in dollars. Exchanges with a minor unit quote most in
# hundredths, or thousandths, and some not, so that a number from there could be a hundred times too high; grain and
# coffee (`ZCUSX`) come in cents.
_IN_DOLLARS = frozenset({"NASDAQ", "NYSE", "AMEX"})
_IN_PARTS = re.compile(rf"\.({'|'.join(PARTS_SUFFIXES)})$|.USX$")
_PAIR = re.compile(r"[A-Z0-9]{6,}")
"""Longer than the ticker of any share without a suffix: `EURUSD`, `BTCUSDT`, `DOGEUSD`."""


class _Named(Schema):
    """The fields that every row of every answer has."""

    symbol: str


class _Quote(_Named):
    price: Number
    timestamp: int
    exchange: str | None = None
    name: str | None = None
    open: Number | None = None
    dayHigh: Number | None = None
    dayLow: Number | None = None
    volume: Number | None = None
    previousClose: Number | None = None
    change: Number | None = None
    changePercentage: Number | None = None
    yearHigh: Number | None = None
    yearLow: Number | None = None
    marketCap: Number | None = None
    priceAvg50: Number | None = None
    priceAvg200: Number | None = None


class _Bar(_Named):
    """One day. Each value is read separately: a broken one must not cost the other days."""

    date: IsoDay
    open: object
    high: object
    low: object
    close: object
    volume: object = None


class _Error(Schema):
    message: str = Field(alias="Error Message")


class Fmp:
    """Provider `fmp`. Symbols: `AAPL`, `BRK-B`, `SAP.DE`, `^GSPC`, `EURUSD`."""

    name = "fmp"
    base_url = "https://financialmodelingprep.com/stable"
    needs_key = True
    fetchers = frozenset(_PATHS)

    def accepts(self, symbol: str) -> bool:
        """Capital letters, digits, `.`, `-`, `^`, `&` and `'`; a comma would part a batch."""
        return _SYMBOL.fullmatch(symbol) is not None

    def spell(self, symbol: str, asset_class: str) -> str:
        """BRK.B is BRK-B, VOD:XLON is VOD.L, EUR/USD is EURUSD, BTC/USD is BTCUSD."""
        if pair := pair_of(symbol, asset_class):
            return f"{pair.base}{pair.quote}"
        share = share_of(symbol, asset_class)
        return with_suffix(share) if share else symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """100 quotes; everything else is asked one symbol a call.

        Batches have a path of their own that the free plan lacks: there `batch_size` must be 1 in
        `provider_capabilities`.
        """
        return MAX_SYMBOLS if fetcher is Fetcher.QUOTE else 1

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """Five years of daily bars."""
        return MAX_DAYS if fetcher is Fetcher.DAILY_BARS else None

    def build(self, question: Question) -> Request:
        """One symbol by its own path, several quotes by that of batches; bars by their days, both included."""
        fetcher, symbols = question.fetcher, question.symbols
        if len(symbols) > 1:
            return Request(_BATCH, (("symbols", ",".join(symbols)),))
        params = [("symbol", symbols[0])]
        if fetcher is Fetcher.DAILY_BARS:
            days = question.window or _latest_days(question.now)
            params += [("from", days.start.isoformat()), ("to", days.end.isoformat())]
        elif fetcher is Fetcher.INCOME_STATEMENT:
            params += [("period", "annual"), ("limit", str(STATEMENTS))]
        return Request(_PATHS[fetcher], tuple(params))

    def authorize(self, key: str) -> Mapping[str, str]:
        """The documented header form of the key."""
        return {"apikey": key}

    def parse(self, question: Question, response: Response) -> Answer:
        """See OneRequest.parse."""
        try:
            body = decode_json(self.name, response)
        except SchemaDrift as drift:
            return self._refused(question, response, words_of(response), drift)
        if isinstance(body, dict) and "Error Message" in body:
            words = safe_words(validate(_Error, body, "fmp's error").message)
            return self._refused(question, response, words)
        check_status(self.name, response, now=question.now)
        if not isinstance(body, list):
            raise SchemaDrift(
                f"fmp's {question.fetcher!s} is not the list that it promises. It may have changed its API; nothing "
                "was stored."
            )
        return self._read(question, body)

    def _read(self, question: Question, body: list[object]) -> Answer:
        fetcher, symbols = question.fetcher, question.symbols
        rows: dict[str, list[object]] = {}
        nameless: list[object] = []
        for row in body:
            symbol = row.get("symbol") if isinstance(row, dict) else None
            (rows.setdefault(symbol, []) if isinstance(symbol, str) else nameless).append(row)
        if nameless and not rows:
            validate(_Named, nameless[0], f"a row of fmp's {fetcher!s}")
        if len(symbols) == 1 and symbols[0] in rows:
            rows[symbols[0]] += nameless  # each is refused separately
        unasked = sorted(rows.keys() - set(symbols))
        of_others = [row for stranger in unasked for row in rows[stranger]] if len(symbols) == 1 else []
        answers = []
        for symbol in symbols:
            if unasked and len(of_others) >= len(rows.get(symbol, ())):
                answers.append(untrue(symbol, _what(fetcher, symbol), f"it is about {', '.join(unasked[:3])}"))
            elif symbol in rows:
                answers.append(_one(question, symbol, rows[symbol], of_others))
            elif nameless:
                message = (
                    f"{_what(fetcher, symbol)} has no row, and {len(nameless)} rows name no symbol. Nothing was stored."
                )
                answers.append(failed(symbol, FailureKind.SCHEMA_DRIFT, message))
            elif question.window is not None or fetcher in _ACTIONS:
                # Most shares were never split, and many pay nothing: unknown symbols look the same.
                answers.append(Answer(empty=frozenset({symbol})))
            else:
                message = (
                    f"fmp has no {fetcher!s} of {symbol}: its answer does not hold it. Correct the symbol, or route it "
                    "to another provider."
                )
                answers.append(failed(symbol, FailureKind.UNKNOWN_SYMBOL, message))
        return merge(answers)

    def _refused(self, question: Question, response: Response, words: str, drift: SchemaDrift | None = None) -> Answer:
        """The meaning of an answer without data: an Answer about one symbol, or an error for the whole call."""
        status, message = response.status, f"fmp answered {response.status}: {words.rstrip('.')}."
        if status < 500 and not words.startswith("<"):
            if status == 429 or "limit reach" in words.lower():
                raise throttled(message, response, now=question.now)
            if "invalid api key" in words.lower():
                raise KeyRefused(f"{message} {check_key(self.name)}")
            if gated := _GATED_VALUE.search(words):
                return _gated(question.symbols, message, gated[1] or gated[2])
            if _GATED_ENDPOINT.search(words):
                raise _gated_endpoint(question.fetcher, question.symbols, message)
        raise (
            refusal(self.name, response, now=question.now, detail=words)
            or drift
            or SchemaDrift(f"{message} That is not an answer of its API that we know; nothing was stored.")
        )


def _latest_days(now: datetime) -> Window:
    """A day more than today, because Sydney's day begins before UTC's."""
    today = now.astimezone(UTC).date()
    return Window(today - timedelta(days=LATEST_DAYS), today + timedelta(days=1))


def _gated(symbols: Sequence[str], message: str, parameter: str) -> Answer:
    if parameter not in ("symbol", "symbols"):
        raise PlanRestricted(f"{message} Its parameter {parameter} needs a larger plan.")
    if len(symbols) > 1:
        raise PlanRestricted(f"{message} It does not say which of {len(symbols)} symbols it means.")
    text = f"{message} Change the plan, or route {symbols[0]} to another provider."
    return failed(symbols[0], FailureKind.PLAN_RESTRICTED, text)


def _gated_endpoint(fetcher: Fetcher, symbols: Sequence[str], message: str) -> PlanRestricted:
    if len(symbols) == 1:
        advice = "Change the plan, correct the base URL, or route the data elsewhere."
        return PlanRestricted(f"{message} {advice}", is_whole_endpoint=True)
    # One symbol is asked for by another path, which the plan may have.
    error = PlanRestricted(
        f"{message} `pricing-pipeline provider change fmp --batch-size {fetcher!s}=1` has {_BATCH} not asked any more; "
        "or change the plan."
    )
    error.most_symbols = 1
    return error


def _what(fetcher: Fetcher, symbol: str) -> str:
    return f"fmp's {fetcher!s} of {symbol}"


def _one(question: Question, symbol: str, rows: Sequence[object], of_others: Sequence[object]) -> Answer:
    """One symbol's rows. Raises SchemaDrift when it was asked alone; else the symbol fails with it.

    Rows `of_others` that came among them are refused, each for itself.
    """
    fetcher, now = question.fetcher, question.now
    is_money = fetcher.contents is Contents.PRICES or fetcher is Fetcher.DIVIDENDS
    if is_money and _IN_PARTS.search(symbol):
        message = (
            f"fmp names no currency, and {symbol} may be quoted in hundredths or thousandths of one, so what it says "
            "could be that many times too high; nothing was stored. Route it to a provider that names the currency."
        )
        return failed(symbol, FailureKind.MISCONFIGURED, message)
    what = _what(fetcher, symbol)
    strange = tuple(_strange(symbol, row) for row in of_others)
    try:
        match fetcher:
            case Fetcher.QUOTE:
                answer = _quotes(validate_rows(_Quote, rows, symbol, what, place="rows"), now)
            case Fetcher.DAILY_BARS:
                bars = read_rows(_Bar, lambda bar: _bar(bar, now), rows, symbol, what)
                return settle_days(symbol, (*bars, *strange), question.window)
            case Fetcher.DIVIDENDS | Fetcher.SPLITS:
                answer = actions_of(fetcher, symbol, [_storable(row) for row in rows], what, now)
            case _:
                answer = documents_of(fetcher, symbol, [_storable(row) for row in rows], what, now)
        return replace(answer, rejected=(*answer.rejected, *strange))
    except Implausible as fault:
        return untrue(symbol, what, fault)
    except SchemaDrift as drift:
        if len(question.symbols) == 1:
            raise
        return failed(symbol, FailureKind.SCHEMA_DRIFT, str(drift))


def _strange(symbol: str, row: object) -> RejectedValue:
    """A row of another symbol than the one that was asked for, with the day that it names."""
    fields = row if isinstance(row, dict) else {}
    try:
        at = midnight(calendar_day(fields.get("date")))
    except Implausible:
        at = None
    return RejectedValue(symbol, at, f"it is about {safe_words(str(fields.get('symbol')))}", spelling(row))


def _storable(row: object) -> object:
    """A document's row whose texts the database holds."""
    if not isinstance(row, dict):
        return row
    return {name: storable(value) if isinstance(value, str) else value for name, value in row.items()}


def _quotes(rows: Sequence[_Quote | RejectedValue], now: datetime) -> Answer:
    first, *others = [row for row in rows if isinstance(row, _Quote)]
    if any(other != first for other in others):
        raise Implausible(f"it appears {1 + len(others)} times with different values")
    rejected = tuple(row for row in rows if isinstance(row, RejectedValue))
    return Answer(observations=Rows([_quote(first, now)]), rejected=rejected)


def _quote(quote: _Quote, now: datetime) -> Observation:
    price = price_of(quote.price, "price")
    check_range(price, plain_price(quote.dayHigh), plain_price(quote.dayLow))
    return Observation(
        quote.symbol,
        instant_of(quote.timestamp, now),
        price,
        spelling(quote.price),
        "USD" if quote.exchange in _IN_DOLLARS else _quoted_in(quote.symbol),
    )


def _quoted_in(symbol: str) -> str | None:
    """The currency that the symbol of a pair ends with; None for other symbols.

    Where two endings are currencies, as in `BTCBUSD`, the one that leaves another currency or coin counts.
    """
    if not _PAIR.fullmatch(symbol):
        return None
    ends = [symbol[-size:] for size in (3, 4, 5) if symbol[-size:] in CURRENCIES]
    return next((end for end in ends if symbol.removesuffix(end) in CURRENCIES), ends[0] if ends else None)


def _bar(bar: _Bar, now: datetime) -> Observation | RejectedValue | None:
    currency = _quoted_in(bar.symbol)
    return daily_bar(bar.symbol, bar.date, bar.model_dump(), currency, now, adjustment=Adjustment.SPLITS)
