"""A declared provider beside the coded one that it copies (F11): the same requests, values and failures."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    InvalidRange,
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers.base import Provider, Question, Request
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline_tests.support.declarations import (
    DECLARED,
    FUNDS,
    SHARES,
    answered,
    asked,
    changed,
)
from pricing_pipeline_tests.support.recordings import recorded, recorded_files

NOW = datetime(2026, 6, 2, 4, 0, tzinfo=UTC)
CODED, COPY = MfApi(), DECLARED["funds"]
SPANS = [Window(date(2006, 1, 1), date(2026, 6, 2)), Window(date(2024, 1, 1), date(2024, 6, 2))]
QUESTIONS = [
    *(([code], window) for code in ("125497", "100051") for window in (None, *SPANS)),
    (["118632", "125497"], None),
    (["100027", "125497", "100051"], None),
]


def outcome(provider: Provider, codes: list[str], window: Window | None, response: Response) -> Any:
    """All that matters of an answer: everything but the words for people, and what came beside the asked days."""
    try:
        answer = answered(provider, Fetcher.NAV, codes, window, response, now=NOW)
    except ProviderError as error:
        return type(error), getattr(error, "retry_after", None)
    beside = [one for one in answer.rejected if one.unasked or "more than once" in one.reason]
    refused = [one for one in answer.rejected if one not in beside]
    is_empty = bool(beside) and not refused and not answer.observations
    return (
        list(answer.observations),
        [] if is_empty else [(one.symbol, one.kind) for one in answer.failures],
        answer.empty or (frozenset(codes) if is_empty else answer.empty),
        [(one.symbol, one.observed_at, one.text, one.count) for one in refused],
        dict(answer.unread),
        answer.left_out + sum(one.count for one in beside),
    )


def test_f11_a_copy_reads_all_recorded_answers_as_the_coded_provider_does() -> None:
    values = 0
    for file in sorted(recorded_files("mfapi")):
        response = recorded("mfapi", file)
        for codes, window in QUESTIONS:
            ours = outcome(COPY, codes, window, response)
            assert ours == outcome(CODED, codes, window, response), (file, codes, window)
            values += len(ours[0]) if isinstance(ours[0], list) else 0
    assert values > 3_000


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 503])
def test_f11_a_copy_reads_refusals_as_the_coded_provider_does(status: int) -> None:
    for body in (
        b'{"error":"Invalid scheme code"}',
        b'{"message":"no"}',
        b"<html>",
        b"",
        b"[]",
        b"{}",
        b"null",
    ):
        response = Response(status, {"retry-after": "7"}, body, len(body))
        for codes, window in QUESTIONS[:3]:
            told = outcome(COPY, codes, window, response)
            # A body that does not say who it is about is a drift either way; which one names it first may differ.
            assert told == outcome(CODED, codes, window, response), (body, codes, window)


def test_f11_a_copy_asks_as_the_coded_provider_does() -> None:
    for codes, window in QUESTIONS:
        assert asked(COPY, Fetcher.NAV, codes, window, now=NOW) == CODED.build(
            Question(Fetcher.NAV, codes, window, NOW)
        )
    for window in (None, SPANS[1]):
        assert COPY.batch_limit(Fetcher.NAV, window) == CODED.batch_limit(Fetcher.NAV, window)
    for symbol in ("1", "0", "125497", "-1", "12345678901", "1/2", "", "1\n"):
        assert COPY.accepts(symbol) == CODED.accepts(symbol), symbol
        assert COPY.spell(symbol, "fund") == CODED.spell(symbol, "fund")


def read(
    name: str, fetcher: Fetcher, body: object, *symbols: str, window: Window | None = None, status: int = 200
) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answered(DECLARED[name], fetcher, symbols, window, Response(status, {}, raw, len(raw)), now=NOW)


# --- a provider with a key ---

ERRORS = [("bad_key", KeyRefused), ("slow_down", Throttled), ("plan", PlanRestricted)]


@pytest.mark.parametrize(("code", "kind"), ERRORS)
@pytest.mark.parametrize("status", [200, 400, 403])
def test_f11_errors_in_a_body_mean_what_is_declared(code: str, kind: type[ProviderError], status: int) -> None:
    body = {"error": {"code": code, "text": "no, no"}}
    with pytest.raises(kind, match=r"no, no \(by the rule in line [0-9]+"):
        read("shares", Fetcher.QUOTE, body, "AAPL", "IBM", status=status)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_f11_no_rule_changes_what_a_server_in_trouble_means(status: int) -> None:
    body = {"error": {"code": "no_such_share", "text": "no"}}
    with pytest.raises((ProviderDown, Throttled)):
        read("shares", Fetcher.QUOTE, body, "AAPL", status=status)


def test_f11_one_unknown_symbol_is_told_by_its_own_answer_only() -> None:
    body = {"error": {"code": "no_such_share", "text": "no"}}
    assert [one.kind for one in read("shares", Fetcher.QUOTE, body, "X").failures] == [FailureKind.UNKNOWN_SYMBOL]
    with pytest.raises(SchemaDrift):
        read("shares", Fetcher.QUOTE, body, "X", "Y")


def test_f11_a_missing_or_refused_key_is_told_by_what_a_declared_provider_has() -> None:
    """Its keys are stored; no setting holds one."""
    with (
        ProviderClient(DECLARED["shares"], "https://shares.example.com", {}) as client,
        pytest.raises(KeyRefused) as missing,
    ):
        client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
    assert str(missing.value) == (
        "this worker has no key 'default' of shares. Store it with `pricing-pipeline key set shares --name default`."
    )
    with pytest.raises(KeyRefused) as refused:
        read("shares", Fetcher.QUOTE, {"error": {"code": "bad_key"}}, "AAPL")
    assert "Check the API key: `pricing-pipeline key list shares`" in str(refused.value)
    with pytest.raises(SettingsError) as wrong:
        ProviderClient(DECLARED["shares"], "https://me" + "@shares.example.com", {})
    assert not [told for told in (missing, refused, wrong) if "PRICING_" in str(told.value)]


def test_f1_a_quote_in_pence_is_stored_in_pounds() -> None:
    at = int((NOW - timedelta(minutes=1)).timestamp())
    body = {"quotes": [{"ticker": "VOD", "last": 71.52, "high": 72, "low": 71, "currency": "GBp", "at": at}]}
    (one,) = read("shares", Fetcher.QUOTE, body, "VOD").observations
    assert (one.close, one.currency, one.text) == (Decimal("0.7152"), "GBP", "71.52")


@pytest.mark.parametrize(
    ("form", "raw", "expected"),
    [
        ("iso_time", "2026-06-01T20:00:00.250Z", "2026-06-01T20:00:00.250000+00:00"),
        ("iso_time", "2026-06-01 16:00:00-04:00", "2026-06-01T20:00:00+00:00"),
        ("iso_time", "0001-01-01T00:00:00+14:00", None),
        ("epoch_milliseconds", 1780344000250, "2026-06-01T20:00:00.250000+00:00"),
        ("epoch_seconds", "1780344000.5", "2026-06-01T20:00:00.500000+00:00"),
        ("epoch_seconds", -5, None),
        ("iso_date", "2026-06-01", "2026-06-01T00:00:00+00:00"),
        ("iso_date", "2026-13-01", None),
    ],
)
def test_f11_times_are_read_in_every_form(form: str, raw: object, expected: str | None) -> None:
    provider = DeclaredProvider(changed(SHARES, ("format: epoch_seconds", f"format: {form}")))
    body = json.dumps({"quotes": [{"ticker": "A", "last": 1, "currency": "USD", "at": raw}]}).encode()
    answer = answered(provider, Fetcher.QUOTE, ["A"], None, Response(200, {}, body, len(body)), now=NOW)
    assert [one.observed_at.isoformat() for one in answer.observations] == ([expected] if expected else [])
    assert bool(answer.failures) == (expected is None)


def test_f11_a_day_of_epoch_times_is_of_the_declared_zone() -> None:
    provider = DeclaredProvider(
        changed(
            SHARES,
            ("{path: day, format: iso_date}", "{path: day, format: epoch_seconds, zone: Australia/Sydney}"),
        )
    )
    bar = {"day": 1780268400, "close": 5, "open": 5, "high": 5, "low": 5, "volume": 1}  # 2026-05-31T23:00:00Z
    body = json.dumps({"ticker": "A", "currency": "AUD", "bars": [bar]}).encode()
    window = Window(date(2026, 5, 1), date(2026, 6, 2))
    (one,) = answered(
        provider, Fetcher.DAILY_BARS, ["A"], window, Response(200, {}, body, len(body)), now=NOW
    ).observations
    assert one.observed_at.date() == date(2026, 6, 1)


@pytest.mark.parametrize(
    ("time", "zone", "day"),
    [
        ("2026-05-29T00:00:00+01:00", "", 29),
        ("2026-05-28T20:00:00-05:00", "", 28),
        ("2026-05-28T20:00:00-05:00", ", zone: Australia/Sydney", 29),
        ("2026-05-28T00:00:00Z", "", 28),
    ],
)
def test_f11_a_daily_value_with_a_time_is_of_the_day_that_it_names(time: str, zone: str, day: int) -> None:
    provider = DeclaredProvider(
        changed(SHARES, ("{path: day, format: iso_date}", f"{{path: day, format: iso_time{zone}}}"))
    )
    bar = {"day": time, "close": 5, "open": 5, "high": 5, "low": 5, "volume": 1}
    body = json.dumps({"ticker": "A", "currency": "AUD", "bars": [bar]}).encode()
    window = Window(date(2026, 5, 1), date(2026, 6, 2))
    (one,) = answered(
        provider, Fetcher.DAILY_BARS, ["A"], window, Response(200, {}, body, len(body)), now=NOW
    ).observations
    assert one.observed_at.date() == date(2026, 5, day)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "0001-01-02T00:00:00Z"])
def test_f11_a_day_beyond_the_calendar_costs_no_other_day(time: str) -> None:
    provider = DeclaredProvider(
        changed(SHARES, ("{path: day, format: iso_date}", "{path: day, format: iso_time, zone: Australia/Sydney}"))
    )
    bars = [{"day": at, "close": 5} for at in (time, "2026-05-29T06:00:00Z")]
    body = json.dumps({"ticker": "A", "currency": "AUD", "bars": bars}).encode()
    answer = answered(
        provider,
        Fetcher.DAILY_BARS,
        ["A"],
        Window(date(2026, 5, 1), date(2026, 6, 2)),
        Response(200, {}, body, len(body)),
        now=NOW,
    )
    assert [one.observed_at.date() for one in answer.observations] == [date(2026, 5, 29)]
    assert len(answer.rejected) + answer.left_out == 1, "told, or beside the span"


def test_f11_without_a_path_for_the_latest_the_last_days_are_asked_for() -> None:
    request = asked(DECLARED["shares"], Fetcher.DAILY_BARS, ["AAPL"], None, now=NOW)
    assert request == Request("/shares/AAPL/bars", (("from", "2026-05-23"), ("to", "2026-06-03")))


def test_f11_what_no_span_answers_is_refused() -> None:
    with pytest.raises(InvalidRange, match="no history"):
        asked(DECLARED["shares"], Fetcher.QUOTE, ["AAPL"], SPANS[0], now=NOW)


def test_f11_a_wrong_path_is_told_with_its_line() -> None:
    text = FUNDS.read_text()
    provider = DeclaredProvider(changed(FUNDS, ("rows: data", "rows: dta")))
    body = json.dumps({"meta": {"scheme_code": 1}, "data": [], "status": "SUCCESS"}).encode()
    with pytest.raises(SchemaDrift, match=rf"`dta` \(line {text[: text.index('rows: data')].count(chr(10)) + 1} of"):
        answered(provider, Fetcher.NAV, ["1"], None, Response(200, {}, body, len(body)), now=NOW)


@given(symbol=st.text(max_size=12))
def test_b2_no_symbol_changes_where_a_request_goes(symbol: str) -> None:
    """What is accepted stands in the path as one part, whatever it is."""
    wide = DeclaredProvider(changed(SHARES, ('pattern: "[A-Z0-9^][A-Z0-9.^-]{0,31}"', 'pattern: ".*"')))
    if wide.accepts(symbol):
        path = asked(wide, Fetcher.DAILY_BARS, [symbol], None, now=NOW).path
        assert path.count("/") == 3
        assert ".." not in path
        assert path.isascii()
        assert not set(path) & set("?#\\ \r\n")
