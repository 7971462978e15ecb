"""Where the key of a declared provider travels, and where it never stands (F11, A4)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError, SettingsError, Throttled
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.declarations import DECLARED, ROOT, changed
from pricing_pipeline_tests.support.patience import PATIENCE

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
WINDOW = Window(date(2026, 11, 9), date(2026, 11, 19))
KEY = "canary-5ecret+/0123456789"
EXAMPLES = ROOT / "docs" / "examples"


def fetch(provider: DeclaredProvider, key: str, answer: Any, seen: list[bytes], symbol: str = "IBM") -> Any:
    def serve(connection: Connection) -> None:
        seen.append(connection.request)
        answer(connection)

    witnessed: list[str] = []
    with (
        ScriptedServer(serve) as server,
        ProviderClient(provider, server.url, SecretStr(key), deadline=PATIENCE) as one,
    ):
        try:
            is_quote = Fetcher.QUOTE in provider.fetchers and Fetcher.DAILY_BARS not in provider.fetchers
            fetcher, window = (Fetcher.QUOTE, None) if is_quote else (Fetcher.DAILY_BARS, WINDOW)
            return one.fetch(fetcher, [symbol], window, now=NOW, witness=lambda *told: witnessed.append(repr(told)))
        finally:
            assert not [told for told in witnessed if key in told or "canary" in told]


def test_a4_a_key_in_the_query_is_sent_and_stands_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[bytes] = []

    def echo(connection: Connection) -> None:
        target = connection.request.split(b" ")[1].decode()
        body = json.dumps({"Error Message": f"the call {target} with {KEY} failed"}).encode()
        connection.answer(body)

    fetched = fetch(DECLARED["alphavantage"], KEY, echo, seen)
    (failure,) = fetched.answer.failures
    assert b"apikey=canary-5ecret%2B%2F0123456789" in seen[0].split(b"\r\n")[0]
    assert "***" in failure.message
    told = failure.message + caplog.text + repr(fetched) + fetched.evidence.decode()
    assert "canary" not in told.lower()


def test_a4_an_error_of_a_request_with_its_key_in_the_query_does_not_name_it() -> None:
    def broken(connection: Connection) -> None:
        connection.answer(b"gone", "503 Service Unavailable")

    with pytest.raises(ProviderError) as caught:
        fetch(DECLARED["alphavantage"], KEY, broken, [])
    assert "canary" not in str(caught.value)


def test_a4_a_key_in_parts_is_sent_in_its_headers_and_each_part_is_hidden() -> None:
    way = ("key: {header: X-Finnhub-Token}", "key: {headers: [X-Key-Id, X-Key-Secret]}")
    provider = DeclaredProvider(changed(EXAMPLES / "finnhub.yaml", way))
    seen: list[bytes] = []

    def echo(connection: Connection) -> None:
        connection.answer(b'{"error": "wrong canary-part-two-0123"}', "401 Unauthorized")

    with pytest.raises(ProviderError) as caught:
        fetch(provider, "canary-part-one-0123:canary-part-two-0123", echo, seen)
    assert b"X-Key-Id: canary-part-one-0123\r\n" in seen[0]
    assert b"X-Key-Secret: canary-part-two-0123\r\n" in seen[0]
    assert "canary" not in str(caught.value)
    with pytest.raises(SettingsError, match="has 2 parts, for X-Key-Id and X-Key-Secret"):
        ProviderClient(provider, "https://finnhub.io", SecretStr("one-part"))


def test_a6_limits_are_read_from_headers_of_any_name() -> None:
    seen: list[bytes] = []
    text = b'{"symbol": "IBM", "price": "1,234.56", "time": "2026-11-20 09:00:00", "currency": "USD"}'

    def serve(connection: Connection) -> None:
        connection.send(
            b"HTTP/1.1 200 OK\r\nX-RateLimit-Requests-Limit: 500\r\nX-RateLimit-Requests-Remaining: 7\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(text), text)
        )

    fetched = fetch(DECLARED["rapidapi"], KEY, serve, seen)
    assert b"X-RapidAPI-Host: quotes.p.rapidapi.com\r\n" in seen[0]
    assert (fetched.units_left, fetched.receipt.shown) == (7, (500, None))
    assert [f"{one.close:f}" for one in fetched.answer.observations] == ["1234.56"]


def test_a6_how_long_to_wait_is_read_from_a_header_of_any_name() -> None:
    changed_file = changed(EXAMPLES / "finnhub.yaml", ("limits:", "limit_headers: {wait: X-Retry-In}\nlimits:"))

    def serve(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 429 No\r\nX-Retry-In: 7\r\nContent-Length: 2\r\n\r\nno")

    with pytest.raises(Throttled) as caught:
        fetch(DeclaredProvider(changed_file), KEY, serve, [])
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("key", ["k3y-5ec", "k3y5ec", "k3y-5ecret-0123"])
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
@pytest.mark.parametrize("before", [60, 71, 74, 77, 290, 294])
def test_a4_a_short_key_is_not_quoted_in_part_where_a_quotation_ends(key: str, status: str, before: int) -> None:
    """A body that is not what was declared is quoted by its beginning, which may end within a key."""

    def echo(connection: Connection) -> None:
        connection.answer(f"{'x' * before};{key}; is no key of ours".encode(), status)

    with pytest.raises(ProviderError) as caught:
        fetch(DECLARED["alphavantage"], key, echo, [])
    assert key[:3] not in str(caught.value)


@pytest.mark.parametrize("words", ["x" * 285, "x" * 290, " " * 985, " " * 994])
def test_a4_a_short_key_is_not_quoted_in_part_where_the_words_of_a_good_answer_are_cut(words: str) -> None:
    """The words stand in the middle of a sentence, and the body keeps a key that could be a part of a price."""
    key = "k3y-5ecret-0123"

    def echo(connection: Connection) -> None:
        connection.answer(json.dumps({"Error Message": f"no {words}{key} of ours"}).encode())

    (failure,) = fetch(DECLARED["alphavantage"], key, echo, []).answer.failures
    assert "answered 200: no" in failure.message
    assert key[:3] not in failure.message
