"""Yahoo Finance: quotes and daily bars from the open endpoints behind its charts, without a key.

This module knows its URLs, envelopes and refusals; yahoo_series.py reads the contents of an envelope. Bars are divided
by all splits that followed, so an answer is asked to run from the window's start until now: then the splits that it
names undo that.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from pydantic import Field

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import KeyRefused, PlanRestricted, ProviderError, SchemaDrift
from pricing_pipeline.providers.base import (
    Question,
    Request,
    Schema,
    answered_at,
    decode_json,
    failed,
    refusal,
    safe_words,
    validate,
    words_of,
)
from pricing_pipeline.providers.canonical import FX, pair_of, share_of, with_suffix
from pricing_pipeline.providers.values import merge
from pricing_pipeline.providers.yahoo_series import Series, read_series, unknown

MAX_SYMBOLS = 20
"""The most that /v7/finance/spark answers."""

# Begins with a letter, digit or ^, so that no symbol is a step up in the path.
_SYMBOL = re.compile(r"[A-Z0-9^][A-Z0-9^.=&'_-]{0,31}")
_LATEST_RANGE = "5d"
_EVENTS = ("events", "div|split|capitalGains")


class _Fault(Schema):
    code: str
    description: str | None = None


class _Charts(Schema):
    result: list[Series] = Field(min_length=1, max_length=1)


class _ChartAnswer(Schema):
    chart: _Charts


class _Spark(Schema):
    """One member of a batch, not yet looked into: a bad one must not cost the others."""

    symbol: str
    response: list[object] = Field(min_length=1, max_length=1)


class _Sparks(Schema):
    result: list[object] = Field(min_length=1)


class _SparkAnswer(Schema):
    spark: _Sparks


class _Outcome(Schema):
    error: _Fault | None = None


class _FaultyAnswer(Schema):
    """An answer that may be an error: instead of the data, or under `finance` if no endpoint was reached."""

    chart: _Outcome | None = None
    spark: _Outcome | None = None
    finance: _Outcome | None = None


class Yahoo:
    """Provider `yahoo`. Symbols as its pages spell them: `AAPL`, `BRK-B`, `VOD.L`, `EURUSD=X`, `^GSPC`."""

    name = "yahoo"
    base_url = "https://query1.finance.yahoo.com"
    needs_key = False
    fetchers = frozenset({Fetcher.QUOTE, Fetcher.DAILY_BARS})

    def accepts(self, symbol: str) -> bool:
        """Capitals, digits and ^ . = & ' _ -, at most 32: it becomes part of a path and of a comma list."""
        return _SYMBOL.fullmatch(symbol) is not None

    def spell(self, symbol: str, asset_class: str) -> str:
        """BRK.B is BRK-B, VOD:XLON is VOD.L, EUR/USD is EURUSD=X, BTC/USD is BTC-USD."""
        if pair := pair_of(symbol, asset_class):
            return f"{pair.base}{pair.quote}=X" if asset_class == FX else f"{pair.base}-{pair.quote}"
        share = share_of(symbol, asset_class)
        return with_suffix(share) if share else symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """20 quotes; the bars of one symbol."""
        return MAX_SYMBOLS if fetcher is Fetcher.QUOTE else 1

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """None: daily bars reach back to the first one."""
        return None

    def build(self, question: Question) -> Request:
        """One symbol by its chart, several quotes by /v7/finance/spark.

        A window's days are those of the exchange, whose zone is not known yet, so one day more is asked for at its
        start; and everything until `now`, because the splits after it are needed.
        """
        fetcher, symbols, window = question.fetcher, question.symbols, question.window
        daily = ("interval", "1d")
        if fetcher is Fetcher.QUOTE and len(symbols) > 1:
            return Request("/v7/finance/spark", (("symbols", ",".join(symbols)), ("range", "1d"), daily))
        path = f"/v8/finance/chart/{symbols[0].replace('&', '%26')}"
        if fetcher is Fetcher.QUOTE:
            return Request(path, (("range", "1d"), daily))
        if window is None:
            return Request(path, (("range", _LATEST_RANGE), daily, _EVENTS))
        # Before the calendar's first day there is no day to step back to.
        begin = window.start - timedelta(days=window.start > date.min)
        since = int(datetime.combine(begin, time(), tzinfo=UTC).timestamp())
        span = (("period1", str(since)), ("period2", str(int(question.now.timestamp()))))
        return Request(path, (*span, daily, _EVENTS))

    def authorize(self, key: str) -> Mapping[str, str]:
        """There is no key."""
        return {}

    def parse(self, question: Question, response: Response) -> Answer:
        """Quotes at the source's second, bars at midnight UTC of their day. See OneRequest.parse."""
        now = question.now
        try:
            body = decode_json(self.name, response)
            is_chart, fault = _fault(body)
        except SchemaDrift as drift:
            raise (self._refusal(response, now) or drift) from None
        if fault is not None:
            return self._refused(question.symbols, fault, response, now, is_chart=is_chart)
        refused = self._refusal(response, now)
        if refused is not None:
            raise refused
        if len(question.symbols) > 1:
            return _batch(question, validate(_SparkAnswer, body, "yahoo's batch of quotes"))
        symbol = question.symbol
        answer = validate(_ChartAnswer, body, f"yahoo's chart of {symbol}")
        return read_series(question, symbol, answer.chart.result[0], answered_at(response))

    def _refused(
        self, symbols: Sequence[str], fault: _Fault, response: Response, now: datetime, *, is_chart: bool
    ) -> Answer:
        """An error object. Its code is the status in words, and decides where the status is 200."""
        words = safe_words(fault.description or fault.code)
        status = response.status if response.status >= 400 else _STATUS.get(fault.code.lower(), 200)
        if "data doesn't exist for startdate" in words.lower():
            return Answer(empty=frozenset(symbols))
        if status == 404 and is_chart:
            return merge([unknown(symbol, words) for symbol in symbols])
        error = self._refusal(replace(response, status=status), now, words)
        raise error or SchemaDrift(f"yahoo answered with an unknown error ({safe_words(fault.code)}: {words}).")

    def _refusal(self, response: Response, now: datetime, words: str = "") -> ProviderError | None:
        """As `base.refusal`; but without a key or a plan, not to be let in is a matter of cookies, and may pass.

        Programs that do not name themselves as browsers are refused with the statuses of other refusals.
        """
        error = refusal(self.name, response, now=now, detail=words)
        if isinstance(error, KeyRefused | PlanRestricted):
            error = KeyRefused(
                f"yahoo answered {response.status}: {words.rstrip('.') or 'no explanation'}. It may want a cookie and "
                "a crumb, which this client never sends. Route these data types elsewhere until it lets in without."
            )
        if error is not None and response.status in _REFUSALS_OF_AGENTS:
            said = (words or words_of(response))[:_MOST_OF_THEIR_WORDS].rstrip(".") or "no explanation"
            error.if_never_answered = (
                f"yahoo answered {response.status} ({said}), as it is known to do to programs that do not name "
                "themselves as browsers. It looks at the User-Agent, so fewer calls do not help. docs/providers.md "
                "says what PRICING_USER_AGENT can do, and what to use instead of yahoo."
            )
        return error


_REFUSALS_OF_AGENTS = frozenset({403, 429})
_MOST_OF_THEIR_WORDS = 150
"""Our advice comes after the provider's words, and must not be cut off where such a refusal is kept."""

_STATUS = {
    "bad request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not found": 404,
    "unprocessable entity": 422,
    "too many requests": 429,
    "internal server error": 500,
    "bad gateway": 502,
    "service unavailable": 503,
    "gateway timeout": 504,
}


def _fault(body: object) -> tuple[bool, _Fault | None]:
    """The error in an answer, if it is one, and whether it comes from the endpoint that was asked."""
    if not isinstance(body, dict):
        return False, None
    answer = validate(_FaultyAnswer, body, "yahoo's answer")
    for is_chart, outcome in ((True, answer.chart), (True, answer.spark), (False, answer.finance)):
        if outcome is not None and outcome.error is not None:
            return is_chart, outcome.error
    return False, None


def _batch(question: Question, answer: _SparkAnswer) -> Answer:
    """Members in any order. One that is missing is unknown, unless the answer has unrequested or broken rows.

    No more than twice as many as were asked for are looked at: that shows which come twice.
    """
    answers: dict[str, list[Answer]] = {symbol: [] for symbol in question.symbols}
    members = [member for member in answer.spark.result if isinstance(member, dict) and _is_of(member, answers)]
    looked_at = members[: 2 * len(answers)]
    is_doubtful = len(looked_at) < len(answer.spark.result)
    unasked = _unasked(answer.spark.result, answers)
    for member in looked_at:
        try:
            spark = validate(_Spark, member, "a member of yahoo's batch of quotes")
        except SchemaDrift:
            is_doubtful = True
            continue
        try:
            series = validate(Series, spark.response[0], f"yahoo's quote of {spark.symbol}")
            answers[spark.symbol].append(read_series(question, spark.symbol, series, None))
        except SchemaDrift as drift:
            answers[spark.symbol].append(failed(spark.symbol, FailureKind.SCHEMA_DRIFT, str(drift)))
    return merge([_one(symbol, own, unasked, is_doubtful=is_doubtful) for symbol, own in answers.items()])


def _unasked(members: Sequence[object], symbols: Container[str]) -> str:
    """The first symbols of a batch that nobody asked for."""
    named = [member.get("symbol") for member in members if isinstance(member, dict)]
    unasked = dict.fromkeys(name for name in named if isinstance(name, str) and name not in symbols)
    return ", ".join(safe_words(name) for name in [*unasked][:3])


def _is_of(member: Mapping[str, object], symbols: Container[str]) -> bool:
    symbol = member.get("symbol")
    return isinstance(symbol, str) and symbol in symbols


def _one(symbol: str, answers: Sequence[Answer], unasked: str, *, is_doubtful: bool) -> Answer:
    if not answers and is_doubtful:
        others = f"is about {unasked}, which nobody asked for" if unasked else "has members of no symbol"
        message = f"yahoo's batch of quotes has no member for {symbol}, and {others}. Nothing was stored for it."
        return failed(symbol, FailureKind.SCHEMA_DRIFT, message)
    if not answers:
        return unknown(symbol, "it is missing in a batch that was answered for others")
    if any(answer != answers[0] for answer in answers):
        message = f"yahoo's batch of quotes holds {symbol} twice, with different values. Nothing was stored."
        return failed(symbol, FailureKind.IMPLAUSIBLE, message)
    return answers[0]
