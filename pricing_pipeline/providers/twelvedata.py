"""Twelve Data: quotes and daily bars of equities, funds, currencies and more, in batches.

This module knows only its URLs and answers. Numbers come as strings; errors came with HTTP 200 and a code in the body
until about 2025, and come with their true status since: both are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue
from pricing_pipeline.domain.calls import Response, ShownLimit
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError, SchemaDrift, Throttled
from pricing_pipeline.providers.base import (
    Question,
    Request,
    Schema,
    check_status,
    decode_rows,
    decode_unless_refused,
    failed,
    read_rows,
    refusal,
    safe_words,
    untrue,
    validate,
)
from pricing_pipeline.providers.canonical import share_of
from pricing_pipeline.providers.flat import FlatRows
from pricing_pipeline.providers.values import (
    ISO_DAY,
    Implausible,
    IsoDay,
    Number,
    calendar_day,
    check_day,
    check_range,
    daily_bar,
    in_major_unit,
    instant_of,
    major_unit,
    merge,
    midnight,
    plain_bars,
    plain_price,
    price_of,
    settle_days,
    spelling,
    without_currency,
)

MAX_SYMBOLS = 120
MAX_BARS = 5000
"""Bars of one symbol in one answer. More are cut off without a word, so windows never hold more days."""
LATEST_BARS = 5
"""Bars asked for without a window: the forming day and enough before it to see a correction."""
# About 135 bytes a bar: 7 MB at most, well inside the client's cap and deadline.
_MAX_BARS_PER_CALL = 50_000

_SYMBOL = re.compile(r"[!-+\--~]{1,64}")  # printable ASCII without space and comma, which parts a batch


class _YearRange(Schema):
    low: Number | None = None
    high: Number | None = None
    low_change: Number | None = None
    high_change: Number | None = None
    low_change_percent: Number | None = None
    high_change_percent: Number | None = None
    range: str | None = None


class _Quote(Schema):
    symbol: str
    close: Number
    datetime: str
    timestamp: int | None = None
    last_quote_at: int | None = None
    name: str | None = None
    exchange: str | None = None
    mic_code: str | None = None
    currency: str | None = None
    open: Number | None = None
    high: Number | None = None
    low: Number | None = None
    volume: Number | None = None
    previous_close: Number | None = None
    change: Number | None = None
    percent_change: Number | None = None
    average_volume: Number | None = None
    is_market_open: bool | None = None
    fifty_two_week: _YearRange | None = None


class _SeriesMeta(Schema):
    symbol: str
    interval: Literal["1day"]
    currency: str | None = None
    currency_base: str | None = None
    currency_quote: str | None = None
    exchange: str | None = None
    mic_code: str | None = None
    exchange_timezone: str | None = None
    type: str | None = None


class _Bar(Schema):
    """One day. Each value is read separately: a broken one must not cost the other days."""

    datetime: IsoDay
    open: object
    high: object
    low: object
    close: object
    volume: object = None


class _Series(Schema):
    meta: _SeriesMeta
    values: list[object]
    status: Literal["ok"] = "ok"


class _Error(Schema):
    """The error object: the whole body, or one member of a batch."""

    status: Literal["error"]
    code: int
    message: str


class TwelveData:
    """Provider `twelvedata`. Symbols: `AAPL`, `ALD:TASE` (with exchange), `EUR/USD` (pairs)."""

    name = "twelvedata"
    base_url = "https://api.twelvedata.com"
    needs_key = True
    fetchers = frozenset({Fetcher.QUOTE, Fetcher.DAILY_BARS})

    def accepts(self, symbol: str) -> bool:
        """Printable ASCII of at most 64 characters, without a comma: it separates a batch's symbols."""
        return _SYMBOL.fullmatch(symbol) is not None

    def spell(self, symbol: str, asset_class: str) -> str:
        """VOD:XLON is VOD:LSE; classes of shares and pairs are as people write them."""
        share = share_of(symbol, asset_class)
        if share is None or share.exchange is None or share.exchange.twelvedata is None:
            return symbol
        return f"{symbol.partition(':')[0]}:{share.exchange.twelvedata}"

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """120; fewer for long windows, so that no answer has more than 50,000 bars."""
        if fetcher is Fetcher.QUOTE or window is None:
            return MAX_SYMBOLS
        return max(1, min(MAX_SYMBOLS, _MAX_BARS_PER_CALL // max(1, _days(window))))

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """5000 days of bars: calendar days, since some markets trade on all."""
        return MAX_BARS if fetcher is Fetcher.DAILY_BARS else None

    def build(self, question: Question) -> Request:
        """Quotes, or daily bars as traded (`adjust=none`): of a window, or the latest few."""
        joined, window = ("symbol", ",".join(question.symbols)), question.window
        if question.fetcher is Fetcher.QUOTE:
            return Request("/quote", (joined,))
        fixed = (joined, ("interval", "1day"), ("order", "ASC"), ("timezone", "UTC"), ("adjust", "none"))
        if window is None:
            return Request("/time_series", (*fixed, ("outputsize", str(LATEST_BARS))))
        span = (("start_date", window.start.isoformat()), ("end_date", window.end.isoformat()))
        return Request("/time_series", (*fixed, ("outputsize", str(MAX_BARS)), *span))

    def authorize(self, key: str) -> Mapping[str, str]:
        """The documented header form of the key."""
        return {"Authorization": f"apikey {key}"}

    def parse(self, question: Question, response: Response) -> Answer:
        """See OneRequest.parse. One symbol is answered bare, several as members of an object."""
        plain = _plain(question, response)
        if plain is not None:
            return plain
        body = decode_unless_refused(self.name, response, question.now)
        if isinstance(body, dict) and body.get("status") == "error":
            return self._refused(question, validate(_Error, body, "twelvedata's error"), response)
        check_status(self.name, response, now=question.now)
        if len(question.symbols) == 1:
            return _member(question, question.symbol, body)
        if not isinstance(body, dict) or not any(symbol in body for symbol in question.symbols):
            raise SchemaDrift(
                "twelvedata answered a batch without a member for any of its symbols. "
                "The provider may have changed its API; nothing was stored."
            )
        return self._batch(question, body, response)

    def _batch(self, question: Question, body: Mapping[str, object], response: Response) -> Answer:
        fetcher, now = question.fetcher, question.now
        answers: list[Answer] = []
        quotes: list[Observation] = []
        whole_call: list[ProviderError] = []
        for symbol in question.symbols:
            member = body.get(symbol)
            try:
                if isinstance(member, dict) and member.get("status") == "error":
                    error = validate(_Error, member, f"twelvedata's error for {symbol}")
                    kind = _kind(error.code, error.message)
                    if kind in _WHOLE_CALL:
                        whole_call.append(self._whole(error, response, now))
                    answers.append(_failed(symbol, kind, error.message))
                elif fetcher is Fetcher.QUOTE and member is not None:
                    quotes.append(_quote(symbol, validate(_Quote, member, _what(fetcher, symbol)), now))
                else:
                    answers.append(_member(question, symbol, member))
            except Implausible as fault:
                answers.append(untrue(symbol, _what(fetcher, symbol), fault))
            except SchemaDrift as drift:
                answers.append(failed(symbol, FailureKind.SCHEMA_DRIFT, str(drift)))
        if len(whole_call) == len(question.symbols):
            raise whole_call[0]
        return merge([Answer(observations=Rows(quotes)), *answers])

    def _refused(self, question: Question, error: _Error, response: Response) -> Answer:
        """An error object as the whole body, with the true HTTP status or, as in older days, with 200."""
        symbols = question.symbols
        code = response.status if response.status >= 400 else error.code
        kind = _kind(code, error.message)
        if kind is None:
            return Answer(empty=frozenset(symbols))
        about_symbol = kind is FailureKind.UNKNOWN_SYMBOL or (
            kind is FailureKind.PLAN_RESTRICTED and re.search("symbol|instrument", error.message.lower())
        )
        if about_symbol and len(symbols) == 1:
            return _failed(symbols[0], kind, error.message)
        if about_symbol:
            # It does not say which symbol it means; failing all of them would be final (requirement B8).
            raise SchemaDrift(
                f"twelvedata refused a batch of {len(symbols)} as a whole ({safe_words(error.message)}), where "
                "it promises an answer for each. Nothing was stored; ask for its symbols one by one."
            )
        raise self._whole(error, response, question.now)

    def _whole(self, error: _Error, response: Response, now: datetime) -> ProviderError:
        status = response.status if response.status >= 400 else error.code
        if _kind(status, error.message) is FailureKind.PLAN_RESTRICTED:
            status = 403  # plan gates came with other codes too
        refused = refusal(self.name, replace(response, status=status), now=now, detail=error.message)
        if isinstance(refused, Throttled):
            refused.shown = _named_limit(error.message)
        return refused or SchemaDrift(f"twelvedata sent an error with code {status}: {safe_words(error.message)}.")


def _named_limit(message: str) -> ShownLimit | None:
    """The limit that a refusal for too many credits names."""
    named = re.search(r"for the (?:current )?(minute|day)\b.*\bcurrent limit being ([0-9]{1,9})\b", message)
    if named is None or int(named[2]) == 0:
        return None
    return int(named[2]), 60 if named[1] == "minute" else 86_400


_WHOLE_CALL = frozenset({FailureKind.KEY_REFUSED, FailureKind.THROTTLED, FailureKind.PROVIDER_DOWN})


def _kind(code: int, message: str) -> FailureKind | None:
    """The kind of an error; None means that there is validly nothing in the window.

    The words decide before the code: plan gates came as 400, 403 and 404, unknown symbols as 400 and
    404, and an empty window as 400.
    """
    words = message.lower()
    if code == 401:
        return FailureKind.KEY_REFUSED
    if code == 429:
        return FailureKind.THROTTLED
    if code >= 500 or code == 408:
        return FailureKind.PROVIDER_DOWN
    if "no data is available" in words:
        return None
    if code in (402, 403) or "your plan" in words or "available starting with" in words:
        return FailureKind.PLAN_RESTRICTED
    if code == 404 or "**symbol** not found" in words or "**symbol** or **figi** parameter" in words:
        return FailureKind.UNKNOWN_SYMBOL
    return FailureKind.REQUEST_REFUSED


def _failed(symbol: str, kind: FailureKind | None, message: str) -> Answer:
    if kind is None:
        return Answer(empty=frozenset({symbol}))
    # For an unknown symbol, its message says nothing else, and mentions the parameter.
    if kind is FailureKind.UNKNOWN_SYMBOL and "**symbol**" in message.lower():
        told = f"twelvedata does not know {symbol}."
    else:
        told = f"twelvedata has no value for {symbol}: {safe_words(message).rstrip('.')}."
    text = f"{told} {_ADVICE.get(kind, '')}"
    return failed(symbol, kind, text.rstrip())


_ADVICE = {
    FailureKind.UNKNOWN_SYMBOL: "Correct the symbol, or route it to another provider.",
    FailureKind.PLAN_RESTRICTED: "Change the plan, or route the symbol to another provider.",
    FailureKind.REQUEST_REFUSED: "The request must change; asking again will not help.",
}


def _what(fetcher: Fetcher, symbol: str) -> str:
    return f"twelvedata's {fetcher.value} of {symbol}"


def _member(question: Question, symbol: str, data: object) -> Answer:
    """One symbol's data. Raises SchemaDrift."""
    if data is None:
        raise SchemaDrift(f"twelvedata's batch answer has no member for {symbol}; nothing was stored.")
    what, now = _what(question.fetcher, symbol), question.now
    try:
        if question.fetcher is Fetcher.QUOTE:
            quote = validate(_Quote, data, what)
            return Answer(observations=Rows([_quote(symbol, quote, now)]))
        series = validate(_Series, data, what)
        _check_same(symbol, series.meta.symbol, series.meta.exchange, series.meta.mic_code)
        currency, power = _currency(symbol, series.meta)
    except Implausible as fault:
        return untrue(symbol, what, fault)
    rows = series.values
    bars = read_rows(_Bar, lambda bar: _bar(symbol, bar, currency, power, now), rows, symbol, what, "values")
    return settle_days(symbol, bars, question.window)


def _plain(question: Question, response: Response) -> Answer | None:
    """Bars of one symbol in a past span, if every value is there and plain; None if anything is unusual."""
    window = question.window
    if question.fetcher is not Fetcher.DAILY_BARS or window is None or len(question.symbols) > 1:
        return None
    if response.status != 200 or window.end >= question.now.astimezone(UTC).date():
        return None
    parts = decode_rows(TwelveData.name, response, "values")
    if parts is None:
        return None
    (body, rows), symbol = parts, question.symbol
    try:
        return _columns(symbol, validate(_Series, body, _what(Fetcher.DAILY_BARS, symbol)), rows, window)
    except (SchemaDrift, Implausible):
        return None  # the long way says so, too


def _columns(symbol: str, series: _Series, rows: FlatRows, window: Window) -> Answer | None:
    _check_same(symbol, series.meta.symbol, series.meta.exchange, series.meta.mic_code)
    currency, power = _currency(symbol, series.meta)
    if currency is None or power:
        return None
    bars = plain_bars(symbol, currency, rows, window, day="datetime")
    return None if bars is None else Answer(observations=bars)


def _quote(symbol: str, quote: _Quote, now: datetime) -> Observation:
    _check_same(symbol, quote.symbol, quote.exchange, quote.mic_code)
    currency, power = _currency(symbol, quote)
    price = price_of(quote.close, "close")
    # The day's open, high, low and volume belong to the day, not to this one price: they would change
    # under an unchanged price and stamp.
    check_range(price, plain_price(quote.high), plain_price(quote.low))
    close = in_major_unit(price, power)
    value = Observation(symbol, _quoted_at(symbol, quote, now), close, spelling(quote.close), currency)
    return value if currency else without_currency(value)


def _quoted_at(symbol: str, quote: _Quote, now: datetime) -> datetime:
    """The quote's own time. `timestamp` is that of the day's bar, `last_quote_at` of its last minute."""
    if quote.last_quote_at is not None:
        try:
            return instant_of(quote.last_quote_at, now)
        except Implausible:
            if quote.timestamp is None:
                raise
    if quote.timestamp is not None:
        return instant_of(quote.timestamp, now)
    # Answers of before 2023 have neither; a bare day is still a time that can only be too early.
    if not re.fullmatch(ISO_DAY, quote.datetime):
        raise SchemaDrift(
            f"twelvedata's quote of {symbol} has no time stamp, and its datetime {safe_words(quote.datetime)!r} "
            "names no time zone; nothing was stored."
        )
    day = calendar_day(quote.datetime)
    check_day(day, now)
    return midnight(day)


def _bar(symbol: str, bar: _Bar, currency: str | None, power: int, now: datetime) -> Observation | RejectedValue | None:
    def price(raw: object, what: str) -> Decimal:
        return in_major_unit(price_of(raw, what), power)

    value = daily_bar(symbol, bar.datetime, bar.model_dump(), currency, now, price=price)
    return without_currency(value) if isinstance(value, Observation) and currency is None else value


def _check_same(asked: str, symbol: str, exchange: str | None, mic_code: str | None) -> None:
    """Raise Implausible if the answer is about something else than what was asked for."""
    ticker, _, market = asked.partition(":")
    if symbol not in (asked, ticker) or (market and market not in (exchange, mic_code)):
        raise Implausible(f"it is about {symbol} on {exchange or 'an unnamed exchange'}, not {asked}")


def _currency(asked: str, about: _SeriesMeta | _Quote) -> tuple[str | None, int]:
    """The currency of the price: a pair's name ends with it, everything else states it, or null."""
    pair, slash, quoted_in = asked.partition(":")[0].partition("/")
    currency = quoted_in if pair and slash else about.currency
    if currency == "" or (currency is None and "currency" not in about.model_fields_set):
        raise SchemaDrift(f"twelvedata's answer for {asked} names no currency; nothing was stored.")
    return (None, 0) if currency is None else major_unit(currency)


def _days(window: Window) -> int:
    return (window.end - window.start).days + 1
