"""Mutated logins, lists of names, and pages of XML with rows beside the span: no crash, no lie (F11)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.dialogue import MAX_REQUESTS

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
WINDOW = Window(date(2026, 11, 2), date(2026, 11, 13))
FILE = """
name: mutations
base_url: https://mutations.example.com
key: {header: Authorization, scheme: Bearer}
login:
  path: /token
  form: {grant_type: client_credentials}
  parts: [id, secret]
  token: access.token
  lifetime: access.seconds
limits: {minute: {units: 1, seconds: 60}}
plans:
  free:
    title: the free plan
    limits: {minute: {units: 5, seconds: 60}, day: {units: 50, day: UTC}}
    batch: {daily_bars: 1}
    types:
      coin_daily: {asset_class: crypto, fetcher: daily_bars, at_least: 240, history_from: 2000-01-01}
    check: {type: coin_daily, symbol: BTC/USD}
symbols:
  crypto:
    spelling: "{base}/{quote}"
    names: {BTC: bitcoin}
    list: {path: /list, rows: coins, ours: symbol, theirs: id}
fetchers:
  daily_bars:
    span:
      path: /bars
      query: {of: "{base}", from: "{start}", after: "{cursor}"}
      pages: {cursor: next}
      answer:
        body: {format: xml}
        rows: bar || `[]`
        expect: {of: "{base}"}
        time: {path: d, format: iso_date}
        close: c
        currency: {code: "{quote}"}
"""
PROVIDER = DeclaredProvider(read_text(FILE, "mutations.yaml"))
TOKEN = "canary-token-0123456789"
NAMES = {f"COIN{n}": f"coin-{n}" for n in range(20)}
CLOSES = {date(2026, 10, 29) + timedelta(days=n): Decimal(f"{100 + n}.25") for n in range(20)}
"""Days before, in and after the span."""


@st.composite
def mutated(draw: st.DrawFn, body: bytes) -> bytes:
    """Some bytes are changed, taken out, moved or doubled, once to three times."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(body) - 1, 0)))
        length = draw(st.integers(0, 8))
        signs = [
            b'"',
            b"\n",
            b"<",
            b"</bar>",
            b"}",
            b"[",
            b"\0",
            b"1e9",
            b"-",
            b": ",
            b"  ",
            b"null",
            b"\xff",
            body,
        ]
        put = draw(st.binary(max_size=4) | st.sampled_from([*signs, body[at : at + 60]]))
        body = body[:at] + put + body[at + length :]
    return body


def response(body: bytes) -> Response:
    return Response(200, {}, body, len(body))


LOGIN = json.dumps({"access": {"token": TOKEN, "seconds": 3600, "scope": "all"}}).encode()


@given(body=mutated(LOGIN))
def test_b18_a_mutated_login_brings_a_token_that_a_header_can_carry_or_none(body: bytes) -> None:
    assert PROVIDER.log_in is not None
    told = ""
    try:
        token = PROVIDER.log_in.token(response(body), NOW)
    except ProviderError as error:
        told = str(error)
    assert TOKEN not in told
    if told:
        return
    secret = token.secret.get_secret_value()
    assert secret.isascii()
    assert secret.isprintable()
    assert " " not in secret
    assert NOW < token.ends_at <= NOW + timedelta(days=30)


LIST = json.dumps({"coins": [{"id": theirs, "symbol": ours} for ours, theirs in NAMES.items()]}).encode()


@given(body=mutated(LIST))
def test_b18_a_mutated_list_of_names_misnames_no_symbol_that_was_not_touched(body: bytes) -> None:
    try:
        found = PROVIDER.lists["crypto"].names(response(body), NOW)
    except ProviderError:
        return
    # Each change touches two rows at most, and may make names of its own.
    wrong = [ours for ours, theirs in NAMES.items() if ours in found and theirs not in found[ours]]
    assert len(wrong) <= 6
    assert all(isinstance(name, str) and name for names in found.values() for name in names)


def page(number: int) -> bytes:
    """Five rows of a page, and one of the last page again."""
    days = list(CLOSES)[max(5 * number - 1, 0) : 5 * number + 5]
    rows = "".join(f"<bar><d>{day}</d><c>{CLOSES[day]}</c></bar>" for day in days)
    cursor = f"<next>page-{number + 1}</next>" if number < 3 else ""
    return f'<bars of="bitcoin">{cursor}{rows}</bars>'.encode()


@given(data=st.data(), at=st.integers(0, 3))
def test_b18_mutated_pages_of_xml_end_and_store_no_day_twice_or_beside_the_span(data: st.DataObject, at: int) -> None:
    bodies = [page(number) for number in range(4)]
    bodies[at] = data.draw(mutated(bodies[at]))
    dialogue = PROVIDER.ask(Question(Fetcher.DAILY_BARS, ["bitcoin/USD"], WINDOW, NOW))
    request, asked = next(dialogue), 1
    assert isinstance(request, Request)
    try:
        while True:
            cursor = dict(request.params).get("after", "page-0")
            known = cursor.startswith("page-") and cursor[5:] in ("0", "1", "2", "3")
            request = dialogue.send(response(bodies[int(cursor[5:])] if known else b'<bars of="bitcoin"/>'))
            asked += 1
            assert asked <= MAX_REQUESTS
    except ProviderError:
        return
    except StopIteration as end:
        answer = end.value
    days = [one.observed_at.date() for one in answer.observations]
    assert days == sorted(set(days))
    assert all(WINDOW.start <= day <= WINDOW.end for day in days)
    assert len([one for one in answer.observations if one.close != CLOSES[one.observed_at.date()]]) <= 6
    assert {one.currency for one in answer.observations} <= {"USD"}
