"""What the examples in docs/examples ask, and what they make of the odd answers of their services (F11)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    DeclarationRefused,
    KeyRefused,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline_tests.support.declarations import DECLARED, ROOT, answered, asked, changed

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 30))
EXAMPLES = ROOT / "docs" / "examples"


def answer(
    provider: DeclaredProvider | str,
    body: object,
    symbol: str,
    window: Window | None = NOVEMBER,
    *,
    fetcher: Fetcher = Fetcher.DAILY_BARS,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    one = DECLARED[provider] if isinstance(provider, str) else provider
    return answered(one, fetcher, [symbol], window, Response(status, headers or {}, raw, len(raw)), now=NOW)


def values(found: Answer) -> list[tuple[str, str]]:
    return [(f"{one.observed_at:%Y-%m-%d}", f"{one.close:f}") for one in found.observations]


# --- requests ---


@pytest.mark.parametrize(
    ("name", "symbol", "path", "params"),
    [
        ("finnhub", "AAPL", "/stock/candle", {"from": "1793491200", "to": "1796083199"}),
        (
            "refinitiv",
            "VOD.L",
            "/data/historical-pricing/v1/views/interday-summaries/VOD.L",
            {"end": "2026-11-30"},
        ),
        ("binance", "BTC/USDT", "/klines", {"symbol": "BTCUSDT", "endTime": "1796083199999"}),
        ("kraken", "XBT/USD", "/OHLC", {"pair": "XBTUSD", "since": "1793491200"}),
        ("stooq", "^spx", "/q/d/l/", {"d1": "20261101", "d2": "20261130"}),
        ("cbr", "R01235/RUB", "/scripts/XML_dynamic.asp", {"date_req1": "01/11/2026", "VAL_NM_RQ": "R01235"}),
        ("worldbank", "JPN", "/country/JPN/indicator/PA.NUS.FCRF", {"date": "2026:2026", "page": "1"}),
        ("coingecko", "bitcoin/usd", "/coins/bitcoin/market_chart", {"days": "20"}),
        ("alphavantage", "IBM", "/query", {"outputsize": "full"}),
    ],
)
def test_f11_days_are_asked_for_as_the_service_writes_them(
    name: str, symbol: str, path: str, params: dict[str, str]
) -> None:
    request = asked(
        DECLARED[name],
        Fetcher.DAILY_BARS if name != "worldbank" else Fetcher.NAV,
        [symbol],
        NOVEMBER,
        now=NOW,
    )
    assert request.path == path
    assert params.items() <= dict(request.params).items()


def test_f11_the_services_own_names_are_sent_and_ours_are_stored() -> None:
    provider = DECLARED["coingecko"]
    assert provider.spell("BTC/USD", "crypto") == "bitcoin/usd"
    body = {"bitcoin": {"usd": 97000.12, "last_updated_at": int(NOW.timestamp()) - 60}}
    (one,) = answer("coingecko", body, "bitcoin/usd", None, fetcher=Fetcher.QUOTE).observations
    assert (one.close, one.currency) == (Decimal("97000.12"), "USD")


def test_f11_a_span_without_days_is_the_whole_history_of_one_call() -> None:
    assert DECLARED["alphavantage"].max_window_days(Fetcher.DAILY_BARS) == 50_000
    days = {day: {"4. close": "5"} for day in ("2026-10-30", "2026-11-02", "2026-12-01")}
    body = {"Meta Data": {"2. Symbol": "IBM"}, "Time Series (Daily)": days}
    window = Window(date(2026, 11, 1), date(2026, 11, 19))
    found = answer(
        "alphavantage",
        body | {"Time Series (Daily)": {**days, "2026-11-20": {"4. close": "6"}}},
        "IBM",
        window,
    )
    assert values(found) == [("2026-11-02", "5")]
    assert found.left_out == 2, "of the days before and after; the one of the future is a fault"
    assert [one.reason for one in found.rejected] == ["day 2026-12-01 lies in the future"]


# --- rows beside the asked ones ---


def frankfurter(rates: dict[str, float], window: Window) -> Answer:
    body = {"amount": 1.0, "base": "EUR", "rates": {day: {"USD": rate} for day, rate in rates.items()}}
    return answer("frankfurter", body, "EUR/USD", window)


def test_f11_frankfurter_begins_a_weekend_with_its_friday_and_that_is_no_fault() -> None:
    weekend = Window(date(2026, 11, 14), date(2026, 11, 15))
    found = frankfurter({"2026-11-13": 1.15}, weekend)
    assert (found.empty, found.failures, found.rejected, found.left_out) == (
        frozenset({"EUR/USD"}),
        (),
        (),
        1,
    )
    august = Window(date(2026, 8, 1), date(2026, 8, 31))  # begins on a Saturday
    found = frankfurter({"2026-07-31": 1.14, "2026-08-03": 1.15}, august)
    assert (values(found), found.rejected, found.left_out) == ([("2026-08-03", "1.15")], (), 1)


def test_f11_rows_on_both_sides_of_the_span_are_left_out_and_counted_and_never_refused() -> None:
    """Even those that cannot be read; but days that ignore the span altogether are no empty span."""
    week = Window(date(2026, 11, 2), date(2026, 11, 6))
    beside = {"2026-10-30": 1.1, "2026-10-29": -1, "2026-11-03": 1.2, "2026-11-09": 1.3, "2026-11-10": -1}
    found = frankfurter(beside, week)
    assert (values(found), found.rejected, found.left_out) == ([("2026-11-03", "1.2")], (), 4)
    found = frankfurter({"2026-10-30": 1.1, "2026-11-09": 1.3}, week)
    assert (found.empty, found.failures, found.rejected, found.left_out) == (
        frozenset({"EUR/USD"}),
        (),
        (),
        2,
    )
    found = frankfurter({"2026-11-09": 1.3, "2026-11-10": 1.4}, week)
    assert [one.kind for one in found.failures] == [FailureKind.IMPLAUSIBLE]
    assert "lie outside the asked 2026-11-02..2026-11-06" in found.failures[0].message


def test_f11_frankfurter_knows_nothing_of_years_before_the_euro() -> None:
    window = Window(date(1997, 1, 1), date(1997, 12, 31))
    found = answer("frankfurter", {"message": "not found"}, "EUR/USD", window, status=404)
    assert (found.empty, found.failures) == (frozenset({"EUR/USD"}), ())
    assert frankfurter({}, window).empty
    (failure,) = answer("frankfurter", {"message": "not found"}, "EUR/XXX", None, status=404).failures
    assert failure.kind is FailureKind.UNKNOWN_SYMBOL


def test_f11_a_row_that_comes_twice_is_left_out_and_one_with_another_price_is_refused() -> None:
    rows = [[1793577600000, 5], [1793577600000, 5], [1793664000000, 6], [1793664000000, 7]]
    found = answer("coingecko", {"prices": rows}, "bitcoin/usd")
    assert (values(found), found.left_out, len(found.rejected)) == ([("2026-11-02", "5")], 1, 2)


# --- bodies ---


def test_f11_headings_and_short_lines_of_a_table_cost_no_other_line() -> None:
    head = "Scheme Code;ISIN Div Payout/ ISIN Growth;Net Asset Value;Date\r\n"
    lines = "\r\nOpen Ended Schemes(A)\r\nA House\r\n119551;X;104.5432;19-Nov-2026\r\n100;X;N.A.;19-Nov-2026\r\n1;2\r\n"
    found = answer("amfi", (head + lines).encode(), "119551", None, fetcher=Fetcher.NAV)
    assert values(found) == [("2026-11-19", "104.5432")]


@pytest.mark.parametrize(
    ("name", "symbol", "body", "words"),
    [
        ("frankfurter", "EUR/USD", b"Date,Open\n2026-11-19,5\n", "not JSON: this is CSV, and the declaration reads"),
        ("frankfurter", "EUR/USD", b"<a><b/></a>", "not JSON: this is XML, and the declaration reads json"),
        ("stooq", "cdr", b'{"a": 1}', "not CSV: this is JSON, and the declaration reads csv (line "),
        ("stooq", "cdr", b"Service unavailable", "not CSV: this is text"),
        ("stooq", "cdr", b"", "not CSV: this is nothing"),
        ("ecb_xml", "EUR/USD", b"<html><body>", "not XML: this is a page of HTML"),
        ("stooq", "cdr", b"Sorry, too many of you\n", "CSV that has no column 'Open' (line "),
        ("stooq", "cdr", b"Date,Close,Close\n1,2,3\n", "has the column 'Close' twice"),
        ("stooq", "cdr", b"\xff,\xff\n", "is not utf-8. Correct `encoding`"),
        ("finnhub", "AAPL", b'{"s": "ok", "t": [1, 2], "c": [1]}', "lists of different lengths (t: 2, c: 1)"),
        ("ecb_xml", "EUR/USD", b"<a><b></a>", "that we cannot read as XML (mismatched tag"),
        ("ecb_xml", "EUR/USD", b"<a b='1'><b/></a>", "an attribute and a child 'b'"),
        ("ecb_xml", "EUR/USD", b"<a>" * 99, "too many within each other"),
        ("ecb_xml", "EUR/USD", b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "it has a document type"),
        ("ecb_xml", "EUR/USD", b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "it has a document type"),
    ],
)  # fmt: skip
def test_f11_a_body_of_another_kind_is_told_by_its_kind(name: str, symbol: str, body: bytes, words: str) -> None:
    with pytest.raises(SchemaDrift) as caught:
        answer(name, body, symbol)
    assert words in str(caught.value)


def test_b2_no_entity_of_an_xml_body_is_made() -> None:
    """Neither one that reads a file nor one that would fill the memory, in any encoding."""
    laughs = "".join(f'<!ENTITY a{n} "&a{n - 1};&a{n - 1};">' for n in range(1, 60))
    text = f'<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY a0 "x">{laughs}]><a>&a59;</a>'
    for body in (text.encode("utf-16"), text.replace("utf-16", "utf-8").encode()):
        with pytest.raises(SchemaDrift):
            answer("ecb_xml", body, "EUR/USD")


def test_f11_a_year_stands_for_its_last_day_and_pages_follow() -> None:
    def page(number: int, year: str) -> Response:
        rows = [{"countryiso3code": "JPN", "date": year, "value": 149.5}]
        raw = json.dumps([{"page": number, "pages": 2}, rows]).encode()
        return Response(200, {}, raw, len(raw))

    window = Window(date(2024, 1, 1), date(2025, 12, 31))
    found = answered(DECLARED["worldbank"], Fetcher.NAV, ["JPN"], window, page(1, "2025"), page(2, "2024"), now=NOW)
    assert values(found) == [("2024-12-31", "149.5"), ("2025-12-31", "149.5")]
    found = answer("worldbank", [{"page": 1, "pages": 1}, None], "JPN", window, fetcher=Fetcher.NAV)
    assert found.empty


# --- numbers and times ---

QUOTE = """
name: one
base_url: https://one.example.com
limits: {minute: {units: 1, seconds: 60}}
symbols: {fx: {spelling: "{base}/{quote}"}}
fetchers:
  quote:
    latest:
      path: /{base}{quote}
      answer:
        time: TIME
        price: p
        numbers: NUMBERS
        currency: {code: USD}
"""


def quoted(price: object, numbers: str = "{}", time: str = "{at: fetch}", **more: object) -> Any:
    provider = DeclaredProvider(read_text(QUOTE.replace("TIME", time).replace("NUMBERS", numbers), "one.yaml"))
    found = answer(provider, {"p": price, **more}, "EUR/USD", None, fetcher=Fetcher.QUOTE)
    return found.observations[0] if found.observations else found


@pytest.mark.parametrize(
    ("raw", "numbers", "price"),
    [
        ("59.726,44", "{decimal: ',', thousands: .}", "59726.44"),
        ("1.234", "{decimal: ',', thousands: .}", "1234"),
        ("1,234.56", "{thousands: ','}", "1234.56"),
        ("1,23,456.5", "{thousands: ','}", "123456.5"),
        ("59'726.44", '{thousands: "\'"}', "59726.44"),
        ("59\u2019726.44", '{thousands: "\'"}', "59726.44"),
        ("59\u202f726,44", "{decimal: ',', thousands: ' '}", "59726.44"),
        (59726.44, "{decimal: ',', thousands: .}", "59726.44"),
        ("1,23", "{thousands: ','}", None),
        ("1,234,5", "{thousands: ','}", None),
        ("1.23", "{decimal: ',', thousands: .}", None),
        ("1,2,3", "{decimal: ','}", None),
        ("0,123", "{thousands: ','}", None),
        ("00,123.5", "{thousands: ','}", None),
        ("0.045", "{decimal: ',', thousands: .}", None),
        ("0,045", "{decimal: ',', thousands: .}", "0.045"),
        ("98.75", "{factor: 0.01}", "0.9875"),
        ("0.1", "{factor: 3}", "0.3"),
        ("0.1234567890123456", "{factor: 0.000001}", None),
        ("4", "{inverse: true}", "0.25"),
        ("3", "{inverse: true}", "0.333333333333333"),
        ("0.0000007", "{inverse: true}", "1428571.42857143"),
        ("25431", "{inverse: true}", "0.000039322087216389"),
        ("90000000001", "{inverse: true}", "0.000000000011111111"),
        ("123456789012345", "{inverse: true}", None),
        ("1e17", "{inverse: true}", "0.00000000000000001"),
        ("1", "{inverse: true, per: seven}", "7"),
        ("3", "{inverse: true, per: n, factor: 25}", "1.33333333333333"),
        ("13.456", "{per: n}", "0.13456"),
        ("1e999", "{factor: 0.01}", None),
    ],
)
def test_a9_numbers_are_read_and_changed_exactly(raw: object, numbers: str, price: str | None) -> None:
    found = quoted(raw, numbers, n=100, seven=7)
    assert (f"{found.close:f}" if price else found.failures[0].kind) == (price or FailureKind.IMPLAUSIBLE)


@pytest.mark.parametrize(
    ("raw", "time", "expected"),
    [
        ("27.11.2025", "%d.%m.%Y", "2025-11-27T00:00:00+00:00"),
        ("20251127", "%Y%m%d", "2025-11-27T00:00:00+00:00"),
        (20251127, "%Y%m%d", "2025-11-27T00:00:00+00:00"),
        ("2025117", "%Y%m%d", None),
        ("26-NOV-2025", "%d-%b-%Y", "2025-11-26T00:00:00+00:00"),
        ("2025-10", "%Y-%m", "2025-10-31T00:00:00+00:00"),
        ("2024", "%Y", "2024-12-31T00:00:00+00:00"),
        ("/Date(1764244800250+0100)/", "dotnet", "2025-11-27T12:00:00.250000+00:00"),
        ("/Date(1764244800250", "dotnet", None),
        ("/Date(1764244800250+9900)/", "dotnet", None),
        (1764244800, "epoch_milliseconds", None),
        ("9999-12", "%Y-%m", None),
        ("11/27/2025 4:00 PM|zone: America/New_York", "%m/%d/%Y %I:%M %p", "2025-11-27T21:00:00+00:00"),
        ("2025-11-27T16:00:00|zone: America/New_York", "iso_time", "2025-11-27T21:00:00+00:00"),
        ("2025-11-27T16:00:00", "iso_time", None),
        ("2025-11-27T16:00:00.123456789Z", "iso_time", "2025-11-27T16:00:00.123456+00:00"),
    ],
)
def test_f11_times_are_read_as_the_service_writes_them(raw: Any, time: str, expected: str | None) -> None:
    text, _, zone = raw.partition("|") if isinstance(raw, str) else (raw, "", "")
    found = quoted("5", time=f'{{path: t, format: "{time}"{", " + zone if zone else ""}}}', t=text)
    assert (found.observed_at.isoformat() if expected else found.failures[0].kind) == (
        expected or FailureKind.IMPLAUSIBLE
    )


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ('{path: t, format: "%d.%m"}', "a pattern has a year"),
        ('{path: t, format: "%d %Y"}', "a pattern with a day has a month"),
        ('{path: t, format: "%Y %Q"}', "a pattern has each of the letters"),
        ('{path: t, format: "%d.%m.%Y %H:%M %p", zone: UTC}', "a pattern has its hour as %H, or as %I"),
        ('{path: t, format: "%d.%m.%Y %I:%M", zone: UTC}', "a pattern has its hour as %H, or as %I"),
        ('{path: t, format: "%d.%m.%Y %H %I %p", zone: UTC}', "a pattern has its hour as %H, or as %I"),
        ('{path: t, format: "%d.%m.%Y %H:%M"}', "`zone` says whose clock they are of"),
        ("{path: t}", "a time has `path` and `format`, or `at: fetch`"),
        ("{at: fetch, path: t, format: iso_date}", "a time has `path` and `format`, or `at: fetch`"),
    ],
)
def test_f11_a_time_that_could_mean_two_is_refused_with_its_line(time: str, words: str) -> None:
    with pytest.raises(DeclarationRefused, match=r"one\.yaml:11: ") as caught:
        read_text(QUOTE.replace("TIME", time).replace("NUMBERS", "{}"), "one.yaml")
    assert words in str(caught.value)


# --- rules ---


@pytest.mark.parametrize(
    ("name", "symbol", "body", "status", "kind"),
    [
        ("finnhub", "AAPL", {"s": "no_data"}, 200, "empty"),
        ("stooq", "cdr", b"No data", 200, "empty"),
        ("stooq", "cdr", b"Exceeded the daily hits limit", 200, Throttled),
        ("ecb", "EUR/USD", b"No results found.", 404, "empty"),
        ("ecb", "EUR/USD", b"<html>", 404, ProviderError),
        ("kraken", "XBT/USD", {"error": ["EQuery:Unknown asset pair"]}, 200, FailureKind.UNKNOWN_SYMBOL),
        ("kraken", "XBT/USD", {"error": ["EGeneral:Internal error"]}, 200, RequestRefused),
        ("alphavantage", "IBM", {"Information": "our standard API rate limit is 25 requests"}, 200, Throttled),
        ("alphavantage", "IBM", {"Information": "a premium endpoint"}, 200, FailureKind.PLAN_RESTRICTED),
        ("alphavantage", "IBM", {"Error Message": "Invalid API call"}, 200, FailureKind.UNKNOWN_SYMBOL),
        ("exchangerate_host", "EUR/USD", {"success": False, "error": {"code": 101}}, 200, KeyRefused),
        ("exchangerate_host", "EUR/USD", {"success": False, "error": {"code": 105}}, 200, FailureKind.PLAN_RESTRICTED),
        ("exchangerate_host", "EUR/USD", {"success": False, "error": {"code": 1}}, 200, RequestRefused),
        ("binance", "BTC/USDT", {"code": -1003, "msg": "banned"}, 418, Throttled),
    ],
)  # fmt: skip
def test_f11_what_an_answer_without_data_means_is_told_by_rules(
    name: str, symbol: str, body: object, status: int, kind: Any
) -> None:
    if isinstance(kind, type):
        with pytest.raises(kind):
            answer(name, body, symbol, status=status)
        return
    found = answer(name, body, symbol, status=status)
    assert found.empty if kind == "empty" else [one.kind for one in found.failures] == [kind]


RATES = """
name: rates
base_url: https://rates.example.com
limits: {minute: {units: 1, seconds: 60}}
symbols: {fx: {spelling: "{base}/{quote}"}}
fetchers:
  daily_bars:
    latest:
      path: "/rates/{base}"
      answer:
        body: {format: FORMAT}
        time: {path: date, format: iso_date}
        close: PATH
        currency: {code: "{quote}"}
"""
LIST = b"""<rates date="2026-11-20"><rate><code>USD</code><value>1.1523</value></rate>
<rate><code>JPY</code><value>0.5512</value></rate></rates>"""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("rate[?code=='{quote}'].value", LIST),
        ("rate[?code[0]=='{quote}'].value[]", LIST),
        ("rate[?code!='JPY'].value", LIST),
        ('rates."{quote}"', {"date": "2026-11-20", "rates": {"USD": 1.1523}}),
        ("rates[?code=='{quote}'].v", {"date": "2026-11-20", "rates": [{"code": "USD", "v": 1.1523}]}),
    ],
)
def test_f11_a_symbol_that_is_not_in_a_list_of_rates_is_unknown_and_nothing_is_quarantined(
    path: str, body: object
) -> None:
    form = "json" if isinstance(body, dict) else "xml"
    text = RATES.replace("PATH", json.dumps(path)).replace("FORMAT", form)
    provider = DeclaredProvider(read_text(text, "rates.yaml"))
    assert values(answer(provider, body, "EUR/USD", None)) == [("2026-11-20", "1.1523")]
    if "quote" not in path:
        return
    found = answer(provider, body, "EUR/CHF", None)
    (failure,) = found.failures
    assert (failure.kind, found.rejected) == (FailureKind.UNKNOWN_SYMBOL, ())
    assert f"has no price of EUR/CHF: `{path}` (line 13 of its declaration) finds nothing" in failure.message
    for meaning, kinds in (("empty", []), ("refused", [FailureKind.SCHEMA_DRIFT])):
        other = text.replace("        time", f"        if_missing: {meaning}\n        time")
        found = answer(DeclaredProvider(read_text(other, "rates.yaml")), body, "EUR/CHF", None)
        assert [one.kind for one in found.failures] == kinds
        assert bool(found.empty) is (meaning == "empty")


def test_a6_a_limit_told_in_a_body_says_how_long_to_wait() -> None:
    rule = "    - {means: limit, where: Note, wait: seconds}"
    provider = DeclaredProvider(changed(EXAMPLES / "alphavantage.yaml", ("    - {means: limit, where: Note}", rule)))
    for told, wait in ((7, 7.0), ("99999", 3600.0), ("soon", None), (None, None)):
        with pytest.raises(Throttled) as caught:
            answer(provider, {"Note": "slow down", "seconds": told}, "IBM")
        assert caught.value.retry_after == wait
