"""Drafts of declarations (F11): what one answer of each service suggests reads the same values from it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Request
from pricing_pipeline.providers.declaration import Key
from pricing_pipeline.providers.declaration_draft import Draft, draft
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.drafted_request import Asked
from pricing_pipeline.registry import declarations
from pricing_pipeline_tests.support.declarations import answered, asked
from pricing_pipeline_tests.support.provider_contract import good, over, provider_of, widened
from pricing_pipeline_tests.support.provider_samples import NOW, Sample
from pricing_pipeline_tests.support.shape_samples import SHAPES

PERCENT = "onvista"
"""Nothing in its answer says that a price is in percent."""


def drafted(body: object, url: str, symbol: str | None, *answers: int, **more: object) -> tuple[Draft, list[str]]:
    """The draft, and the questions that were asked; each is answered by its number, or by 0."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    questions: list[str] = []
    given = iter(answers)

    def ask(question: str, readings: object) -> int:
        questions.append(f"{question} {readings}")
        return next(given, 0)

    about = Asked(url, symbol, **more)  # type: ignore[arg-type]
    return draft(Response(200, {}, raw, len(raw)), about, ask, NOW), questions


@over(*SHAPES)
def test_f11_the_draft_of_each_example_asks_and_reads_as_the_example_does(sample: Sample) -> None:
    symbol, provider = sample.symbols[0], provider_of(sample)
    values = widened(good(sample, symbol))
    body = sample.encoded((symbol,), values)
    request = asked(provider, sample.fetcher, [symbol], sample.window, now=NOW)
    query = f"?{urlencode(request.params)}" if request.params else ""
    found, _ = drafted(body, f"{provider.base_url}{request.path}{query}", symbol)
    ours = DeclaredProvider(read_text(found.text, "draft.yaml"))
    (fetcher,) = ours.fetchers
    again = asked(ours, fetcher, [symbol], sample.window, now=NOW)
    base = provider.base_url.removeprefix(ours.base_url)
    assert (again.path, again.params) == (f"{base}{request.path}", request.params)
    answer = answered(ours, fetcher, [symbol], sample.window, Response(200, {}, body, len(body)), now=NOW)
    factor = 100 if sample.provider == PERCENT else 1
    assert [one.close for one in answer.observations] == [Decimal(one.close) * factor for one in values]


@pytest.mark.parametrize(
    ("rows", "answers", "line", "question"),
    [
        ([{"d": "03/04/2026", "c": 5.5}], (1,), 'format: "%m/%d/%Y"', "How are days written in d?"),
        ([{"d": "13/04/2026", "c": 5.5}], (), 'format: "%d/%m/%Y"', None),
        ([{"d": "2026", "c": 5.5}, {"d": "2025", "c": 5}], (), 'format: "%Y"} # 2026 is 2026-12-31 00:00', None),
        ([{"d": "2026-04-03", "c": "1,234"}], (0,), 'thousands: ","', "How are numbers written?"),
        ([{"d": "2026-04-03", "c": "1,234"}], (1,), 'decimal: ","', "How are numbers written?"),
        ([{"d": "2026-04-03", "c": "1.234,50"}], (), 'decimal: ",", thousands: "."', None),
        (
            [{"d": "2026-04-03", "bid": 5, "ask": 6, "last": 7}],
            (1,),
            "price: last",
            "Which number is the price?",
        ),
        ([{"d": "2026-04-03T10:00:00", "c": 5}], (), "zone: UTC} # CHECK", None),
        ([{"d": "2026-04-03", "c": "N/A"}, {"d": "2026-04-02", "c": "5.5"}], (), 'blank: ["N/A"]', None),
    ],
)
def test_f11_what_can_be_read_in_two_ways_is_asked(
    rows: list[object], answers: tuple[int, ...], line: str, question: str | None
) -> None:
    found, questions = drafted({"rows": rows}, "https://api.example.com/v1/a?s=A", "A", *answers)
    if line == "price: last":
        line = "close: last"
    assert line in found.text
    assert any(question in one for one in questions) if question else not questions
    read_text(found.text, "draft.yaml")


@pytest.mark.parametrize(
    "names",
    [
        ("Eröffnung", "Hoch", "Tief", "Schluss"),
        ("Eröffnungskurs", "Höchstkurs", "Tiefstkurs", "Schlußkurs"),
        ("Ouverture", "Plus haut", "Plus bas", "Clôture"),
        ("Apertura", "Máximo", "Mínimo", "Cierre"),
        ("Otwarcie", "Najwyzszy", "Najnizszy", "Zamkniecie"),
        ("open_price", "high_price", "low_price", "closing_price"),
    ],
)
def test_f11_the_parts_of_a_bar_are_known_by_their_usual_names(names: tuple[str, ...]) -> None:
    body = f"Datum;{';'.join(names)};Volumen\r\n20.11.2026;5,50;7,50;4,50;6,50;1200\r\n".encode()
    found, questions = drafted(body, "https://api.example.com/A.csv", "A")
    assert not questions
    assert "CHECK: or" not in found.text
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    window = Window(date(2026, 11, 1), date(2026, 11, 21))
    response = Response(200, {}, body, len(body))
    (bar,) = answered(provider, Fetcher.DAILY_BARS, ["A"], window, response, now=NOW).observations
    assert [f"{part:f}" for part in (bar.open, bar.high, bar.low, bar.close, bar.volume) if part] == [
        *("5.50", "7.50", "4.50", "6.50", "1200")
    ]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"alpha": 5, "beta": 6}, "close: alpha # CHECK: or is it one of these? beta"),
        ({"bid": 5, "rate": 6}, "close: bid # CHECK: or is it one of these? rate"),
        ({"close": 5, "high": 6, "dayHigh": 7}, "high: high # CHECK: or is it one of these? dayHigh"),
    ],
)
def test_f11_a_number_chosen_among_several_is_to_be_checked_in_the_file(row: dict[str, object], line: str) -> None:
    found, questions = drafted([{"d": "2026-04-03", **row}], "https://api.example.com/A", "A")
    assert line in found.text
    assert len(questions) == 1
    found, _ = drafted([["2026-04-03", 5, 7, 4, 6, 1200]], "https://api.example.com/A", "A")
    assert "close: '[4]' # CHECK: or is it one of these? [1], [2], [3], [5]" in found.text


def test_f11_the_request_becomes_a_template() -> None:
    url = "https://api.example.com/v1/AAPL?from=2026-04-01&to=2026-04-30&apikey=canary&n=100"
    found, _ = drafted([{"d": "2026-04-03", "c": 5}], url, "AAPL", headers={"X-Host": "a b"})
    assert "canary" not in found.text
    assert "key: {query: apikey}" in found.text
    assert 'headers: {X-Host: "a b"}' in found.text
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    window = Window(date(2025, 1, 1), date(2025, 2, 3))
    (fetcher,) = provider.fetchers
    query = (("from", "2025-01-01"), ("to", "2025-02-03"), ("n", "100"))
    assert asked(provider, fetcher, ["IBM"], window, now=NOW) == Request("/v1/IBM", query, headers=(("X-Host", "a b"),))
    found, _ = drafted([{"d": "2026-04-03", "c": 5}], url, "AAPL", start=date(2026, 4, 30))
    assert 'from: "2026-04-01"' in found.text


@pytest.mark.parametrize("name", ["apikey", "password", "private_key", "x-secret.token", "signature", "appid"])
def test_a4_no_parameter_that_a_declaration_would_refuse_as_a_key_stands_in_a_draft(name: str) -> None:
    url = f"https://api.example.com/A?{name}=canary-5ecret&n=1"
    found, _ = drafted([{"d": "2026-04-03", "c": 5}], url, "A")
    assert "canary" not in found.text + "".join(found.shape)
    assert read_text(found.text, "draft.yaml").declaration.key == Key(query=name)


def test_f11_a_key_of_a_header_does_not_stand_in_the_file() -> None:
    body = [{"d": "2026-04-03", "c": 5}]
    headers = {"Authorization": "Bearer canary-5ecret"}
    found, _ = drafted(body, "https://api.example.com/A", "A", headers=headers)
    assert "key: {header: Authorization, scheme: Bearer}" in found.text
    assert "canary" not in found.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><body>No</body></html>", "the answer is a page of HTML"),
        (b"", "the answer is nothing"),
        (b"No data", "the answer is text"),
        ({"message": "not found"}, "no part of it has a price"),
        (b"[1,", "not JSON"),
        (b"<a><b/>", "cannot read as XML"),
        (b"a,b\nc,d\n", "no part of it has a price"),
    ],
)
def test_f11_what_has_no_prices_is_told_by_its_kind(body: object, words: str) -> None:
    with pytest.raises(SchemaDrift, match=words):
        drafted(body, "https://api.example.com/A", "A")


def test_f11_a_quote_without_a_time_is_of_its_call() -> None:
    found, _ = drafted({"p": {"price": "5.25", "currency": "EUR"}}, "https://api.example.com/A", "A")
    assert "time: {at: fetch}" in found.text
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    (fetcher,) = provider.fetchers
    now = datetime(2026, 11, 20, 15, tzinfo=UTC)
    body = json.dumps({"p": {"price": "5.25", "currency": "EUR"}}).encode()
    (one,) = answered(provider, fetcher, ["A"], None, Response(200, {}, body, len(body)), now=now).observations
    assert (one.close, one.currency, one.observed_at) == (Decimal("5.25"), "EUR", now)


POINTS = [{"ts": 1795132800000, "c": 1.1}, {"ts": 1795046400000, "c": 1.2}]


@pytest.mark.parametrize(
    ("body", "symbol", "lines"),
    [
        ({"i": {"ticker": "EUR/USD"}, "p": POINTS}, "EUR/USD", ['expect: {"i.ticker": "{base}/{quote}"}']),
        (
            {"symbol": "EURUSD", "base": "EUR", "p": POINTS},
            "EUR/USD",
            ['expect: {"symbol": "{base}{quote}"}'],
        ),
        ({"base": "EUR", "p": POINTS}, "EUR/USD", ['expect: {"base": "{base}"}']),
        ({"symbol": "AAPL", "p": POINTS}, "AAPL", ['expect: {"symbol": "{symbol}"}', "    span:"]),
        ({"p": [{"of": "AAPL", **one} for one in POINTS]}, "AAPL", ["symbol: of", "    span:"]),
    ],
)
def test_f11_a_draft_checks_the_symbol_wherever_the_answer_names_it(
    body: object, symbol: str, lines: list[str]
) -> None:
    found, _ = drafted(body, f"https://api.example.com/A?s={symbol}", symbol)
    assert [line for line in lines if line not in found.text] == []
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    raw = json.dumps(body).encode()
    other = json.dumps(body).replace("AAPL", "IBM").replace("EUR", "GBP").encode()
    window = Window(date(2026, 11, 1), date(2026, 11, 21))
    for sent, values in ((raw, 2), (other, 0)):
        response = Response(200, {}, sent, len(sent))
        answer = answered(provider, Fetcher.DAILY_BARS, [symbol], window, response, now=NOW)
        assert len(answer.observations) == values


def test_f11_one_price_of_the_last_hours_is_a_quote() -> None:
    def text(at: datetime) -> str:
        quote = {"ticker": "AAPL", "last": {"price": 5.5, "ts": int(at.timestamp() * 1000)}, "ccy": "USD"}
        return drafted({"quotes": [quote]}, "https://api.example.com/A?t=AAPL", "AAPL")[0].text

    found = text(NOW - timedelta(seconds=5))
    assert "  quote:\n    latest:" in found
    assert "        symbol: ticker\n" in found
    assert {one.value for one in DeclaredProvider(read_text(found, "draft.yaml")).fetchers} == {"quote"}
    for at in (NOW.replace(hour=0), NOW - timedelta(days=2)):
        assert "  daily_bars:\n" in text(at)


ECB = """<?xml version="1.0" encoding="UTF-8"?><gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref"><gesmes:subject>Reference rates</gesmes:subject><Cube>
<Cube time="2026-11-20"><Cube currency="USD" rate="1.1523"/><Cube currency="JPY" rate="178.23"/></Cube></Cube>
</gesmes:Envelope>"""
CBR = """<?xml version="1.0" encoding="windows-1251"?><ValCurs Date="20.11.2026" name="Foreign Currency Market">
<Valute ID="R01235"><NumCode>840</NumCode><CharCode>USD</CharCode><Nominal>1</Nominal><Value>78,2201</Value></Valute>
<Valute ID="R01820"><NumCode>392</NumCode><CharCode>JPY</CharCode><Nominal>100</Nominal><Value>50,3301</Value></Valute>
</ValCurs>"""
RATES = {
    "effectiveDate": "2026-11-20",
    "rates": [{"code": "USD", "mid": 3.61}, {"code": "JPY", "mid": 0.0233}],
}


@pytest.mark.parametrize(
    ("body", "symbols", "closes"),
    [
        (ECB, ("EUR/USD", "EUR/JPY"), ("1.1523", "178.23")),
        (CBR, ("USD/RUB", "JPY/RUB"), ("78.2201", "0.503301")),
        (json.dumps(RATES), ("USD/PLN", "JPY/PLN"), ("3.61", "0.0233")),
    ],
)
def test_f11_a_day_that_stands_outside_of_the_rows_is_found(
    body: str, symbols: tuple[str, str], closes: tuple[str, str]
) -> None:
    """The file drafted for one currency reads another one, too."""
    found, questions = drafted(body.encode(), "https://rates.example.com/daily?on=20/11/2026", symbols[0])
    assert all("for so many units" in one for one in questions)
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    response = Response(200, {}, body.encode(), len(body))
    for symbol, close in zip(symbols, closes, strict=True):
        answer = answered(provider, Fetcher.DAILY_BARS, [symbol], None, response, now=NOW)
        assert [f"{one.observed_at.date()} {one.close:f}" for one in answer.observations] == [f"2026-11-20 {close}"]


def test_f11_a_draft_of_many_rates_without_a_symbol_says_what_is_missing() -> None:
    with pytest.raises(SchemaDrift, match="no part of it has a price that is known without --symbol"):
        drafted(CBR.encode(), "https://rates.example.com/daily", None)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.frankfurter.dev", "frankfurter"),
        ("127.0.0.1:8099", None),
        ("[::1]:8099", None),
        ("2.0.192.in-addr.arpa", "p_2_0_192_in_addr"),
        ("localhost", "localhost"),
        ("xn--brse-5qa.de", "xn_brse_5qa"),
        (f"{'a' * 60}.{'b' * 60}.example.com", f"{'a' * 48}"),
        ("___.com", None),
        ("api.twelvedata.com", "twelvedata_declared"),
    ],
)
def test_f11_a_draft_names_its_provider_as_the_registry_accepts_it(host: str, name: str | None) -> None:
    url = f"https://{host}/A"
    found, _ = drafted([{"d": "2026-04-03", "c": 5}], url, "A")
    proposed = read_text(found.text, "draft.yaml").declaration.name
    assert proposed == (name or "my_provider")
    assert ("# CHECK: any name" in found.text) == (name is None)
    declarations.require_free_name(proposed)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"error": []}, "errors: {message: 'error[0]', rules: [{means: refused, where: 'error[0]'}]}"),
        (
            {"errorMessage": None},
            "errors: {message: errorMessage, rules: [{means: refused, where: errorMessage}]}",
        ),
        ({"Error Message": ""}, "errors: {message: '\"Error Message\"', rules:"),
        ({"message": "OK"}, "errors: {message: message}\n"),
        ({"error": {"code": 0, "message": "none"}}, "errors: {message: error.message}\n"),
        ({"error": False, "description": "of the fund"}, None),
        ({}, None),
    ],
)
def test_f11_a_draft_reads_the_words_of_a_refusal_where_the_answer_has_a_place_for_them(
    more: dict[str, object], line: str | None
) -> None:
    found, _ = drafted({**more, "rows": [{"d": "2026-04-03", "c": 5}]}, "https://api.example.com/A", "A")
    assert line is None or line in found.text
    assert line or "errors:" not in found.text
    read_text(found.text, "draft.yaml")


TWO = [{"symbol": "AAPL", "price": 1.5, "ccy": "USD"}, {"symbol": "IBM", "price": 2.5, "ccy": "USD"}]


@pytest.mark.parametrize(
    ("body", "sign", "lines"),
    [
        (TWO, ",", ["rows: '@'", "symbol: symbol", 'query: {s: "{symbols}"}', "most: 2 # CHECK"]),
        ({"data": TWO}, "|", ["rows: data", "symbol: symbol", 'separator: "|"']),
        ({"at": int(NOW.timestamp()), "data": TWO}, ",", ["price: 'data[?symbol==''{symbol}''].price'"]),
    ],
)
def test_f11_a_draft_of_rows_without_a_time_reads_the_row_of_each_symbol(
    body: object, sign: str, lines: list[str]
) -> None:
    found, _ = drafted(body, f"https://api.example.com/q?s=AAPL{sign}IBM", "IBM")
    assert [line for line in lines if line not in found.text] == []
    provider = DeclaredProvider(read_text(found.text, "draft.yaml"))
    raw = json.dumps(body).encode()
    for symbol, close in (("AAPL", "1.5"), ("IBM", "2.5")):
        answer = answered(provider, Fetcher.QUOTE, [symbol], None, Response(200, {}, raw, len(raw)), now=NOW)
        assert [(one.close, one.currency) for one in answer.observations] == [(Decimal(close), "USD")]


def test_f11_lines_without_cells_do_not_tell_the_delimiter() -> None:
    body = b"Code;Name;Value;Date\r\n \r\n\r\nA House\r\n\r\n\r\nA;A fund;10.20;17-Nov-2026\r\n"
    found, _ = drafted(body, "https://api.example.com/all.txt", "A")
    assert 'delimiter: ";"' in found.text


def test_f11_a_request_for_one_symbol_that_is_answered_with_others_too_asks_for_one() -> None:
    found, _ = drafted(TWO, "https://api.example.com/q?s=IBM", "IBM")
    assert "most:" not in found.text
    assert asked(DeclaredProvider(read_text(found.text, "d")), Fetcher.QUOTE, ["A"], None, now=NOW).params == (
        ("s", "A"),
    )


DAYS = [{"d": "2026-11-19", "c": 5.5}, {"d": "2026-11-20", "c": 6.5}]


@pytest.mark.parametrize(
    ("beside", "line"),
    [
        ({"links": {"next": "/v1/a?s=A&page=2"}}, "pages: {next: links.next}"),
        ({"next_url": "https://api.example.com/v1/a?s=A&page=2"}, "pages: {next: next_url}"),
        ({"meta": {"next_cursor": "x7"}}, "# CHECK: do more pages follow, as meta.next_cursor may say?"),
        ({"links": {"next": None}}, "# CHECK: do more pages follow, as links.next may say?"),
        ({"meta": {"count": 2}}, None),
    ],
)
def test_f11_an_answer_that_leads_to_another_page_is_no_whole_one(beside: dict[str, object], line: str | None) -> None:
    found, _ = drafted({"rows": DAYS, **beside}, "https://api.example.com/v1/a?s=A", "A")
    read_text(found.text, "draft.yaml")
    assert line in found.text if line else "pages" not in found.text


def test_f11_a_draft_says_where_the_symbol_belongs_that_the_service_calls_otherwise() -> None:
    said = 'put "{symbol}" for what stands for DTE:XETR'
    found, _ = drafted(DAYS, "https://api.example.com/v1/a?code=KW-5557", "DTE:XETR")
    (line,) = [line for line in found.text.splitlines() if said in line]
    assert line.strip().startswith('query: {code: "KW-5557"}')
    assert said not in drafted(DAYS, "https://api.example.com/v1/a?code=DTE", "DTE")[0].text


def test_f11_the_type_of_a_drafted_span_has_a_history_that_can_be_backfilled() -> None:
    found, _ = drafted(DAYS, "https://api.example.com/v1/a?s=A", "A")
    (plan,) = read_text(found.text, "draft.yaml").declaration.plans.values()
    assert [one.history_from for one in plan.types.values()] == [date(2000, 1, 1)]
